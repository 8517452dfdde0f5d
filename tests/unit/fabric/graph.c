/* SPDX-License-Identifier: BSD-2-Clause */
/* A description as a graph: neighbours, distances, and a subnet that is in two parts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/topology/topology.h"

/* A description of nodes a, b, c ...: letters of `kinds` are S and H, links are pairs of letters. */
static struct topology *make(const char *kinds, const char *links)
{
	struct topology *t = topology_new();
	unsigned ports[26] = { 0 };
	char why[300];
	uint32_t node;

	for (unsigned i = 0; kinds[i]; i++) {
		struct topology_node n = { .kind = kinds[i] == 'S' ? TOPOLOGY_SWITCH : TOPOLOGY_HCA,
					   .port_count = 8 };

		snprintf(n.id, sizeof(n.id), "%c", (char)('a' + i));
		assert_int_equal(topology_add_node(t, &n, &node, why, sizeof(why)), 0);
	}
	for (; *links; links += links[2] ? 3 : 2) {
		struct topology_link l = { .width = TOPOLOGY_4X };

		for (unsigned i = 0; i < 2; i++) {
			node = (uint32_t)(links[i] - 'a');
			l.end[i] = (struct topology_end){ node, (uint8_t)++ports[node] };
		}
		if (topology_add_link(t, &l, why, sizeof(why)))
			fail_msg("%s", why);
	}
	return t;
}

static void peers_are_the_two_ends_of_a_link(void **state)
{
	struct topology *t = make("SSH", "ab ab ac bb");
	struct topology_end end;

	assert_true(topology_peer(t, 0, 2, &end) && end.node == 1 && end.port == 2);
	assert_true(topology_peer(t, 1, 2, &end) && end.node == 0 && end.port == 2);
	/* A cable from a switch to itself. */
	assert_true(topology_peer(t, 1, 3, &end) && end.node == 1 && end.port == 4);
	assert_true(topology_peer(t, 1, 4, &end) && end.node == 1 && end.port == 3);
	assert_false(topology_peer(t, 0, 4, &end));
	assert_false(topology_peer(t, 0, 0, &end));
	assert_false(topology_peer(t, 0, 9, &end));
	assert_false(topology_peer(t, 3, 1, &end));
	topology_free(t);
}

static void host_adapters_do_not_forward(void **state)
{
	/* Two switches, joined only through an adapter with two ports. */
	struct topology *t = make("SHSH", "ab bc cd");
	uint32_t hops[4];

	assert_int_equal(topology_hops(t, 0, hops), 0);
	assert_true(hops[0] == 0 && hops[1] == 1 && hops[2] == UINT32_MAX && hops[3] == UINT32_MAX);
	assert_int_equal(topology_hops(t, 1, hops), 0);
	assert_true(hops[0] == 1 && hops[2] == 1 && hops[3] == 2);
	topology_free(t);
}

static void a_subnet_in_two_parts_is_told_with_a_node_of_each(void **state)
{
	static const struct {
		const char *kinds, *links, *parts; /* NULL: it is in one */
	} subnets[] = {
		{ "S", "", NULL },
		{ "HH", "ab", NULL },
		{ "HHH", "ab bc ca", NULL },
		{ "HHH", "ab bc", "from 'a' to 'c'" },
		{ "HHH", "ab ac", "from 'b' to 'c'" },
		{ "SSHH", "ab ac bd", NULL },
		{ "SSHH", "ac bd", "from 'a' to 'b'" },
		{ "HSHS", "ab bc cd", "from 'b' to 'd'" },
		{ "HSH", "ab", "from 'b' to 'c'" },
	};

	for (size_t i = 0; i < sizeof(subnets) / sizeof(subnets[0]); i++) {
		struct topology *t = make(subnets[i].kinds, subnets[i].links);
		char why[300] = "";
		int err = topology_check_connected(t, why, sizeof(why));

		if (err != (subnets[i].parts ? -ENETUNREACH : 0) ||
		    (subnets[i].parts && !strstr(why, subnets[i].parts)))
			fail_msg("%s %s: %d %s", subnets[i].kinds, subnets[i].links, err, why);
		topology_free(t);
	}
}

static void rates_are_those_of_the_lanes_less_their_codes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bits;
	} rates[] = {
		{ "1xSDR", 2000000000 },     { "4xsdr", 8000000000 },	{ "4xQDR", 32000000000 },
		{ "4xFDR10", 40000000000 },  { "4XFDR", 54545454544 },	{ "4xEDR", 100000000000 },
		{ "2xHDR", 100000000000 },   { "12xHDR", 600000000000 }, { "4xNDR", 400000000000 },
	};
	static const char *const wrong[] = { "", "x", "4x", "QDR", "3xQDR", "4xQDRR", "4xQD", "44xQDR", "4 xQDR" };
	struct topology_link l;

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		assert_int_equal(topology_parse_rate(rates[i].text, strlen(rates[i].text), &l.width, &l.speed), 0);
		assert_true(topology_link_bit_rate(&l) == rates[i].bits);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(topology_parse_rate(wrong[i], strlen(wrong[i]), &l.width, &l.speed), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers_are_the_two_ends_of_a_link),
		cmocka_unit_test(host_adapters_do_not_forward),
		cmocka_unit_test(a_subnet_in_two_parts_is_told_with_a_node_of_each),
		cmocka_unit_test(rates_are_those_of_the_lanes_less_their_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
