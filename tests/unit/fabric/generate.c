/* SPDX-License-Identifier: BSD-2-Clause */
/* Generated subnets: their sizes, degrees, distances and names, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/topology/generate.h"

static struct topology *generate(const char *text)
{
	struct topology *t = NULL;
	char why[300];

	if (topology_generate(text, &t, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	return t;
}

static const struct {
	const char *text;
	unsigned switches, hosts, links;
	unsigned ports_min, ports_max; /* of switches */
	unsigned diameter;             /* in links, from host to host */
} cases[] = {
	{ "single:3", 1, 3, 3, 3, 3, 2 },
	{ "single:254", 1, 254, 254, 254, 254, 2 },
	{ "line:5", 5, 5, 9, 2, 3, 6 },
	{ "line:1", 1, 1, 1, 1, 1, 0 },
	{ "ring:8", 8, 8, 16, 3, 3, 6 },
	{ "ring:3", 3, 3, 6, 3, 3, 3 },
	{ "ring:2", 2, 2, 3, 2, 2, 3 },
	{ "ring:8,hosts=2", 8, 16, 24, 4, 4, 6 },
	{ "mesh:4x4", 16, 16, 40, 3, 5, 8 },
	{ "mesh:3x4x5", 60, 60, 193, 4, 7, 11 },
	{ "torus:4x4", 16, 16, 48, 5, 5, 6 },
	{ "torus:4x4x2", 32, 32, 112, 6, 6, 7 },
	{ "torus:4x4x3,hosts=3", 48, 144, 288, 9, 9, 7 },
	{ "fat-tree:36x18", 54, 648, 1296, 36, 36, 4 },
	{ "fat-tree:16x16,spines=8", 24, 256, 512, 32, 32, 4 },
	{ "fat-tree:4x4,spines=2,links=1", 6, 16, 24, 4, 6, 4 },
	{ "fat-tree:k=4", 20, 16, 48, 4, 4, 6 },
	{ "fat-tree:k=8", 80, 128, 384, 8, 8, 6 },
	{ "fat-tree:2x4x4,spines=2,cores=2", 14, 32, 68, 2, 9, 6 },
	{ "dragonfly:4x2x2", 36, 72, 162, 7, 7, 5 },
	{ "dragonfly:4x2x2,groups=5", 20, 40, 90, 7, 7, 5 },
	{ "dragonfly:4x2x2,groups=1", 4, 8, 14, 5, 5, 3 },
};

static unsigned diameter(const struct topology *t)
{
	uint32_t *hops = malloc(t->node_count * sizeof(*hops));
	unsigned most = 0;

	for (uint32_t from = 0; from < t->node_count; from++) {
		if (t->nodes[from].kind != TOPOLOGY_HCA)
			continue;
		assert_int_equal(topology_hops(t, from, hops), 0);
		for (uint32_t to = 0; to < t->node_count; to++)
			if (t->nodes[to].kind == TOPOLOGY_HCA && hops[to] > most)
				most = hops[to];
	}
	free(hops);
	return most;
}

static void families_have_their_sizes_degrees_and_diameters(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct topology *t = generate(cases[i].text);
		unsigned switches = 0, least = 255, most = 0;
		char why[300] = "";

		for (uint32_t k = 0; k < t->node_count; k++) {
			const struct topology_node *n = &t->nodes[k];

			for (unsigned port = 1; port <= n->port_count; port++)
				assert_int_not_equal(n->ports[port].link, TOPOLOGY_NONE);
			if (n->kind != TOPOLOGY_SWITCH) {
				assert_int_equal(n->port_count, 1);
				continue;
			}
			switches++;
			least = n->port_count < least ? n->port_count : least;
			most = n->port_count > most ? n->port_count : most;
		}
		if (switches != cases[i].switches || t->node_count - switches != cases[i].hosts ||
		    t->link_count != cases[i].links || least != cases[i].ports_min ||
		    most != cases[i].ports_max || diameter(t) != cases[i].diameter ||
		    topology_check_connected(t, why, sizeof(why)))
			fail_msg("%s: %u switches, %u hosts, %u links, %u to %u ports, diameter %u %s",
				 cases[i].text, switches, t->node_count - switches, t->link_count, least, most,
				 diameter(t), why);
		topology_free(t);
	}
}

static void names_can_be_typed(void **state)
{
	static const char *const names[][2] = {
		{ "ring:8", "switch-8" },	 { "ring:8", "host-8" },
		{ "mesh:4x3", "switch-4-3" },	 { "torus:4x3x2", "switch-4-3-2" },
		{ "fat-tree:4x2", "leaf-4" },	 { "fat-tree:4x2", "spine-2" },
		{ "fat-tree:k=4", "leaf-4-2" },	 { "fat-tree:k=4", "spine-4-2" },
		{ "fat-tree:k=4", "core-4" },	 { "dragonfly:4x2x2", "switch-9-4" },
		{ "single:5", "switch-1" },	 { "fat-tree:36x18", "host-648" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct topology *t = generate(names[i][0]);

		if (topology_find_name(t, names[i][1]) == TOPOLOGY_NONE)
			fail_msg("%s has no %s", names[i][0], names[i][1]);
		topology_free(t);
	}
}

static void hosts_come_first_on_a_switch_and_in_the_order_of_switches(void **state)
{
	struct topology *t = generate("fat-tree:4x2");
	struct topology_end end;

	assert_true(topology_peer(t, topology_find_id(t, "leaf-3"), 2, &end));
	assert_int_equal(end.node, topology_find_id(t, "host-6"));
	assert_true(topology_peer(t, topology_find_id(t, "leaf-3"), 4, &end));
	assert_int_equal(end.node, topology_find_id(t, "spine-2"));
	assert_int_equal(end.port, 3);
	topology_free(t);
}

/* Each two groups of a full dragonfly have one link. */
static void groups_of_a_dragonfly_have_as_many_links_between_any_two(void **state)
{
	static const struct {
		const char *text;
		unsigned groups, links;
	} flies[] = { { "dragonfly:4x2x2", 9, 1 }, { "dragonfly:4x2x2,groups=5", 5, 2 },
		      { "dragonfly:3x1x2,groups=3", 3, 3 } };

	for (size_t i = 0; i < sizeof(flies) / sizeof(flies[0]); i++) {
		struct topology *t = generate(flies[i].text);
		unsigned links[9][9] = { 0 }, size = 0;

		while (!strncmp(t->nodes[size].id, "switch-1-", 9))
			size++;
		for (uint32_t k = 0; k < t->link_count; k++) {
			const struct topology_link *l = &t->links[k];

			if (t->nodes[l->end[0].node].kind == TOPOLOGY_SWITCH &&
			    t->nodes[l->end[1].node].kind == TOPOLOGY_SWITCH)
				links[l->end[0].node / size][l->end[1].node / size]++;
		}
		for (unsigned a = 0; a < flies[i].groups; a++)
			for (unsigned b = a + 1; b < flies[i].groups; b++)
				assert_int_equal(links[a][b] + links[b][a], flies[i].links);
		topology_free(t);
	}
}

static void links_have_the_properties_that_are_asked_for(void **state)
{
	struct topology *t = generate("ring:4,speed=ndr,width=2x,delay=1.5us,ber=1e-15"), *usual = generate("ring:4");

	for (uint32_t i = 0; i < t->link_count; i++) {
		assert_int_equal(t->links[i].width, TOPOLOGY_2X);
		assert_int_equal(t->links[i].speed, TOPOLOGY_NDR);
		assert_true(t->links[i].delay_ns == 1500 && t->links[i].bit_error_rate == 1e-15);
		assert_true(topology_link_bit_rate(&t->links[i]) == 200000000000);
		assert_true(topology_link_bit_rate(&usual->links[i]) == 100000000000);
	}
	topology_free(t);
	topology_free(usual);
}

static void the_same_text_gives_the_same_subnet(void **state)
{
	struct topology *one = generate("torus:4x4"), *two = generate("torus:4x4"), *other = generate("mesh:4x4");

	assert_true(topology_equal(one, two));
	assert_false(topology_equal(one, other));
	topology_free(one);
	topology_free(two);
	topology_free(other);
}

static const struct {
	const char *text;
	int err;
	const char *message;
} refused[] = {
	{ "", -EINVAL, "'' is no family of subnets; known are single, line, ring" },
	{ "rign:8", -EINVAL, "'rign' is no family of subnets, did you mean 'ring'?" },
	{ "ring", -EINVAL, "ring has no size: right is ring:N" },
	{ "ring:", -EINVAL, "'' is no size of ring: right is ring:N, with numbers from 2 to 4096" },
	{ "ring:1", -EINVAL, "'1' is no size of ring" },
	{ "ring:-3", -EINVAL, "'-3' is no size of ring" },
	{ "ring:8x2", -EINVAL, "'8x2' is no size of ring" },
	{ "ring:99999999999999999999", -EINVAL, "'99999999999999999999' is no size of ring" },
	{ "mesh:4", -EINVAL, "'4' is no size of mesh: right is mesh:XxY or mesh:XxYxZ" },
	{ "mesh:4x", -EINVAL, "'4x' is no size of mesh" },
	{ "mesh:4x4x4x4", -EINVAL, "'4x4x4x4' is no size of mesh" },
	{ "torus:0x4", -EINVAL, "'0x4' is no size of torus" },
	{ "fat-tree:k=3", -EINVAL, "'k=3': k is an even number of ports" },
	{ "fat-tree:k=", -EINVAL, "'k=': k is an even number" },
	{ "fat-tree:4x4,cores=4", -EINVAL, "cores: a fat tree of two levels has none" },
	{ "fat-tree:4x4x4,cores=3", -EINVAL, "cores=3 is no multiple of the 4 spines of a pod" },
	{ "dragonfly:4x4", -EINVAL, "'4x4' is no size of dragonfly: right is dragonfly:AxPxH" },
	{ "dragonfly:4x4x4,groups=18", -EINVAL, "groups=18: groups of 4 switches with 4 links each can be at most 17" },
	{ "ring:8,", -EINVAL, "'' is no KEY=VALUE" },
	{ "ring:8,host=2", -EINVAL, "'host' is no key of ring, did you mean 'hosts'?" },
	{ "ring:8,spines=2", -EINVAL, "spines is no key of ring" },
	{ "ring:8,hosts=255", -EINVAL, "hosts='255': right is a number from 0 to 254" },
	{ "ring:8,hosts=", -EINVAL, "hosts='': right is a number" },
	{ "ring:8,hosts=2 ", -EINVAL, "hosts='2 ': right is a number" },
	{ "ring:8,width=3x", -EINVAL, "width='3x': right is 1x, 2x, 4x, 8x or 12x" },
	{ "ring:8,speed=XDR", -EINVAL, "speed='XDR': right is SDR" },
	{ "ring:8,delay=2s", -EINVAL, "delay='2s': right is a time up to 1s" },
	{ "ring:8,ber=2", -EINVAL, "ber='2': right is a bit error rate below 1" },
	{ "single:255", -ENOSPC, "'switch-1' would have more than 254 ports" },
	{ "ring:4,hosts=253", -ENOSPC, "'switch-" },
	{ "torus:16x16x17", -ENOSPC, "4352 switches and 4352 hosts are more than 4096 nodes" },
	{ "mesh:4096x4096x4096,hosts=254", -ENOSPC, "68719476736 switches" },
	{ "fat-tree:4096x4096x4096", -ENOSPC, "" },
	{ "dragonfly:4096x4096x4096", -ENOSPC, "" },
};

static void refusals_name_the_field_and_what_would_be_right(void **state)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct topology *t = NULL;
		char why[300] = "";
		int err = topology_generate(refused[i].text, &t, why, sizeof(why));

		if (err != refused[i].err || t || strncmp(why, refused[i].message, strlen(refused[i].message)))
			fail_msg("%s: %d '%s'", refused[i].text, err, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(families_have_their_sizes_degrees_and_diameters),
		cmocka_unit_test(names_can_be_typed),
		cmocka_unit_test(hosts_come_first_on_a_switch_and_in_the_order_of_switches),
		cmocka_unit_test(groups_of_a_dragonfly_have_as_many_links_between_any_two),
		cmocka_unit_test(links_have_the_properties_that_are_asked_for),
		cmocka_unit_test(the_same_text_gives_the_same_subnet),
		cmocka_unit_test(refusals_name_the_field_and_what_would_be_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
