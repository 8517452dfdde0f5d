/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forwarding tables: min-hop is shortest and balanced, up/down never deadlocks, and circles of channels are
 * found where they are. On families, on random subnets and on the nine switches of the examples.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/routing/routing.h"
#include "fabric/topology/generate.h"
#include "random_subnet.h"

static struct topology *generate(const char *text)
{
	struct topology *t = NULL;
	char why[300];

	if (topology_generate(text, &t, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	return t;
}

static struct topology *nine_switches(void)
{
	struct topology *t = NULL;
	char why[300];

	if (topology_read_file(EXAMPLES "/nine-switches.topo", &t, why, sizeof(why)))
		fail_msg("%s", why);
	return t;
}

static int loop_of(const struct topology *t, const struct routing *r)
{
	struct routing_channel *circle = NULL;
	int length = routing_credit_loop(t, r, NULL, NULL, &circle);

	assert_true(length >= 0);
	free(circle);
	return length;
}

/* ---- min-hop ---- */

static void each_path_is_shortest(const struct topology *t, const struct routing *r)
{
	uint32_t *hops = malloc(t->node_count * sizeof(*hops));
	char why[300];

	if (routing_check_paths(t, r, why, sizeof(why)))
		fail_msg("%s", why);
	for (uint32_t source = 0; source < r->target_count; source++) {
		assert_int_equal(topology_hops(t, r->targets[source].node, hops), 0);
		for (uint32_t target = 0; target < r->target_count; target++)
			assert_int_equal(routing_path(t, r, source, target, NULL, 0),
					 hops[r->targets[target].node]);
	}
	free(hops);
}

static void min_hop_takes_shortest_paths(void **state)
{
	static const char *const texts[] = { "ring:7", "torus:4x3x2", "fat-tree:k=4", "dragonfly:3x2x1" };

	for (uint64_t i = 0; i < 64; i++) {
		struct topology *t = i < 4 ? generate(texts[i]) : random_subnet(i);
		struct routing *r;

		assert_int_equal(routing_min_hop(t, &r), 0);
		each_path_is_shortest(t, r);
		routing_tables_free(r);
		topology_free(t);
	}
}

static void min_hop_spreads_targets_over_the_links_up(void **state)
{
	struct topology *t = generate("fat-tree:12x6");
	struct routing *r;

	assert_int_equal(routing_min_hop(t, &r), 0);
	for (uint32_t node = 0; node < 12; node++) {
		unsigned load[13] = { 0 };

		for (uint32_t i = 0; i < r->target_count; i++)
			if (r->targets[i].port && r->targets[i].at != node)
				load[r->ports[node][i]]++;
		/* Port 1 to 6 are hosts; 66 hosts are elsewhere. */
		for (unsigned port = 7; port <= 12; port++)
			assert_int_equal(load[port], 11);
	}
	routing_tables_free(r);
	topology_free(t);
}

static void fat_trees_by_min_hop_have_no_circle(void **state)
{
	static const char *const texts[] = { "fat-tree:8x4,spines=2", "fat-tree:k=8", "line:9", "single:9" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct topology *t = generate(texts[i]);
		struct routing *r;

		assert_int_equal(routing_min_hop(t, &r), 0);
		assert_int_equal(loop_of(t, r), 0);
		routing_tables_free(r);
		topology_free(t);
	}
}

/* ---- up/down ---- */

/* No path goes up after it went down; `rank` is the distance from the root. */
static void paths_turn_once(const struct topology *t, const struct routing *r, const uint32_t *rank)
{
	uint32_t links[64];

	for (uint32_t source = 0; source < r->target_count; source++)
		for (uint32_t target = 0; target < r->target_count; target++) {
			int count = routing_path(t, r, source, target, links, 64);
			uint32_t at = r->targets[source].node;
			bool down = false;

			assert_true(count >= 0);
			for (int i = 0; i < count; i++) {
				const struct topology_link *l = &t->links[links[i]];
				uint32_t to = l->end[l->end[0].node == at].node;

				if (t->nodes[at].kind == TOPOLOGY_SWITCH && t->nodes[to].kind == TOPOLOGY_SWITCH) {
					bool up = rank[to] < rank[at] || (rank[to] == rank[at] && to < at);

					assert_false(up && down);
					down |= !up;
				}
				at = to;
			}
		}
}

static void up_down_from_any_root_turns_once_and_never_deadlocks(void **state)
{
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct topology *t = random_subnet(seed);
		uint32_t *rank = malloc(t->node_count * sizeof(*rank)), root = 0;
		struct routing *r;
		char why[300];

		while (t->nodes[root].kind != TOPOLOGY_SWITCH || (root < seed % 5 && root + 1 < t->node_count &&
								  t->nodes[root + 1].kind == TOPOLOGY_SWITCH))
			root++;
		assert_int_equal(routing_up_down(t, &root, 1, &r), 0);
		if (routing_check_paths(t, r, why, sizeof(why)))
			fail_msg("%s", why);
		assert_int_equal(topology_hops(t, root, rank), 0);
		paths_turn_once(t, r, rank);
		assert_int_equal(loop_of(t, r), 0);
		routing_tables_free(r);
		free(rank);
		topology_free(t);
	}
}

static void up_down_with_roots_of_its_own_reaches_all_adapters(void **state)
{
	static const char *const texts[] = {
		"single:3",	  "line:6",	     "ring:9",		 "mesh:4x4",	   "torus:4x4",
		"torus:3x3x3",	  "fat-tree:8x4",    "fat-tree:k=4",	 "dragonfly:4x2x2",
		"ring:4,hosts=0", "fat-tree:2x4x4,spines=2,cores=2",
	};

	for (uint64_t i = 0; i < 211; i++) {
		struct topology *t = i < 11 ? generate(texts[i]) : random_subnet(i);
		struct routing *r;
		char why[300];

		assert_int_equal(routing_up_down(t, NULL, 0, &r), 0);
		if (routing_check_paths(t, r, why, sizeof(why)))
			fail_msg("%u: %s", (unsigned)i, why);
		assert_int_equal(loop_of(t, r), 0);
		routing_tables_free(r);
		topology_free(t);
	}
}

static void up_down_on_the_nine_switches_avoids_the_turn_at_g(void **state)
{
	struct topology *t = nine_switches();
	uint32_t f = topology_find_id(t, "f"), d = topology_find_id(t, "d"), g = topology_find_id(t, "g");
	uint32_t root = topology_find_id(t, "a"), links[8], at = f;
	struct routing *r;
	int count;

	assert_int_equal(routing_up_down(t, &root, 1, &r), 0);
	count = routing_path(t, r, routing_find_target(r, f, 0), routing_find_target(r, d, 0), links, 8);
	assert_int_equal(count, 3);
	for (int i = 0; i < count; i++) {
		const struct topology_link *l = &t->links[links[i]];

		at = l->end[l->end[0].node == at].node;
		assert_int_not_equal(at, g);
		if (i == 1)
			assert_int_equal(at, root);
	}
	assert_int_equal(at, d);
	assert_int_equal(loop_of(t, r), 0);
	routing_tables_free(r);
	topology_free(t);
}

static void roots_are_central(void **state)
{
	static const struct {
		const char *text, *first;
		unsigned count;
	} cases[] = {
		{ "fat-tree:6x4", "spine-1", 4 }, { "fat-tree:k=4", "core-1", 4 }, { "line:5", "switch-3", 1 },
		{ "ring:8", "switch-1", 1 },	   { "mesh:3x3", "switch-2-2", 1 }, { NULL, "a", 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct topology *t = cases[i].text ? generate(cases[i].text) : nine_switches();
		uint32_t *roots = malloc(t->node_count * sizeof(*roots)), count;

		assert_int_equal(routing_find_roots(t, roots, &count), 0);
		assert_int_equal(count, cases[i].count);
		assert_string_equal(t->nodes[roots[0]].id, cases[i].first);
		free(roots);
		topology_free(t);
	}
}

/*
 * Roots r1, r2, r3 above switches s1 to s6: s1 s2 s3, s3 s4 s5, s5 s6 s1; hosts at s2, s4 and s6. The roots are
 * the centre, and if all of them are taken, no way leads from s2 to s4.
 */
static void several_roots_that_cut_off_adapters_are_not_taken(void **state)
{
	static const char text[] =
		"Hca 1 \"h2\"\n[1] \"s2\"[2]\n\nHca 1 \"h4\"\n[1] \"s4\"[2]\n\nHca 1 \"h6\"\n[1] \"s6\"[2]\n\n"
		"Switch 3 \"r1\"\n[1] \"s1\"[1]\n[2] \"s2\"[1]\n[3] \"s3\"[1]\n\n"
		"Switch 3 \"r2\"\n[1] \"s3\"[2]\n[2] \"s4\"[1]\n[3] \"s5\"[1]\n\n"
		"Switch 3 \"r3\"\n[1] \"s5\"[2]\n[2] \"s6\"[1]\n[3] \"s1\"[2]\n\n"
		"Switch 2 \"s1\"\n[1] \"r1\"[1]\n[2] \"r3\"[3]\n\nSwitch 2 \"s2\"\n[1] \"r1\"[2]\n[2] \"h2\"[1]\n\n"
		"Switch 2 \"s3\"\n[1] \"r1\"[3]\n[2] \"r2\"[1]\n\nSwitch 2 \"s4\"\n[1] \"r2\"[2]\n[2] \"h4\"[1]\n\n"
		"Switch 2 \"s5\"\n[1] \"r2\"[3]\n[2] \"r3\"[1]\n\nSwitch 2 \"s6\"\n[1] \"r3\"[2]\n[2] \"h6\"[1]\n";
	struct topology *t = NULL;
	uint32_t roots[12], count;
	struct routing *r;
	char why[300];

	if (topology_read(text, strlen(text), "text", &t, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(routing_find_roots(t, roots, &count), 0);
	assert_int_equal(count, 3);
	assert_string_equal(t->nodes[roots[1]].id, "r2");
	assert_int_equal(routing_up_down(t, roots, 3, &r), 0);
	assert_int_equal(routing_check_paths(t, r, NULL, 0), -ENETUNREACH);
	routing_tables_free(r);
	assert_int_equal(routing_up_down(t, NULL, 0, &r), 0);
	assert_int_equal(routing_check_paths(t, r, NULL, 0), 0);
	assert_int_equal(loop_of(t, r), 0);
	routing_tables_free(r);
	assert_int_equal(routing_up_down(t, (const uint32_t[]){ 0 }, 1, &r), -EINVAL);
	topology_free(t);
}

/* ---- circles ---- */

static void a_ring_by_min_hop_has_a_circle_in_each_direction(void **state)
{
	for (unsigned size = 5; size <= 9; size++) {
		char text[16];
		struct routing_channel *circle;
		struct topology *t;
		struct routing *r;
		int length;

		snprintf(text, sizeof(text), "ring:%u", size);
		t = generate(text);
		assert_int_equal(routing_min_hop(t, &r), 0);
		length = routing_credit_loop(t, r, NULL, NULL, &circle);
		assert_int_equal(length, size);
		for (int i = 0; i < length; i++) {
			const struct routing_channel *a = &circle[i], *b = &circle[(i + 1) % length];

			assert_int_equal(t->links[a->link].end[!a->from].node, t->links[b->link].end[b->from].node);
			assert_int_not_equal(a->link, b->link);
			assert_int_equal(a->lane, 0);
		}
		free(circle);
		routing_tables_free(r);
		topology_free(t);
	}
}

/* In a ring, a packet changes from lane 0 to lane 1 where it passes from the last switch to the first or
 * back (Dally and Seitz' own example). */
static uint8_t change_at_the_seam(const void *context, uint32_t source, uint32_t target, uint32_t node, uint8_t in,
				  uint8_t out)
{
	const struct topology *t = context;
	uint32_t switches = t->node_count / 2, start = source;
	struct topology_end peer;

	if (t->nodes[node].kind != TOPOLOGY_SWITCH)
		return 0;
	topology_peer(t, node, out, &peer);
	/* Targets are in the order of the nodes: all switches, then their hosts. */
	start = source % switches;
	if (peer.node == (node + 1) % switches)
		return node < start || node == switches - 1;
	return node > start || node == 0;
}

static void two_lanes_break_the_circles_of_a_ring(void **state)
{
	struct topology *t = generate("ring:7");
	struct routing_channel *circle = NULL;
	struct routing *r;

	assert_int_equal(routing_min_hop(t, &r), 0);
	assert_int_equal(routing_credit_loop(t, r, change_at_the_seam, t, &circle), 0);
	assert_null(circle);
	routing_tables_free(r);
	topology_free(t);
}

static void a_torus_by_min_hop_has_a_circle(void **state)
{
	struct topology *t = generate("torus:5x5");
	struct routing *r;

	assert_int_equal(routing_min_hop(t, &r), 0);
	assert_true(loop_of(t, r) > 0);
	routing_tables_free(r);
	topology_free(t);
}

/* ---- what is not reached ---- */

static void parts_without_a_cable_between_are_discarded(void **state)
{
	static const char text[] = "Switch 4 \"a\"\n[1] \"h\"[1]\n\nSwitch 4 \"b\"\n[1] \"i\"[2]\n\n"
				   "Hca 1 \"h\"\n[1] \"a\"[1]\n\nHca 2 \"i\"\n[2] \"b\"[1]\n";
	struct topology *t = NULL;
	struct routing *r;
	char why[300];

	assert_int_equal(topology_read(text, strlen(text), "text", &t, why, sizeof(why)), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(i ? routing_up_down(t, NULL, 0, &r) : routing_min_hop(t, &r), 0);
		assert_int_equal(r->target_count, 5);
		assert_int_equal(routing_find_target(r, 3, 2), 4);
		assert_int_equal(routing_find_target(r, 3, 0), TOPOLOGY_NONE);
		assert_int_equal(r->targets[3].at, TOPOLOGY_NONE);
		assert_int_equal(r->ports[0][4], ROUTING_DISCARD);
		assert_int_equal(r->ports[1][4], 1);
		assert_int_equal(routing_path(t, r, 2, 4, NULL, 0), -ENETUNREACH);
		assert_int_equal(routing_path(t, r, 2, 0, NULL, 0), 1);
		assert_int_equal(routing_check_paths(t, r, why, sizeof(why)), -ENETUNREACH);
		assert_string_equal(why, "no path leads from port 2 of 'i' to port 1 of 'h'");
		routing_tables_free(r);
	}
	topology_free(t);
}

/* Tables that somebody else made may be wrong. */
static void packets_in_circles_are_told(void **state)
{
	struct topology *t = generate("ring:4");
	struct routing *r;
	char why[300];

	assert_int_equal(routing_min_hop(t, &r), 0);
	/* Port 2 of the first switch leads to the second; there port 2 leads back. */
	r->ports[0][6] = 2;
	r->ports[1][6] = 2;
	assert_int_equal(routing_path(t, r, 4, 6, NULL, 0), -ELOOP);
	assert_int_equal(routing_check_paths(t, r, why, sizeof(why)), -ELOOP);
	assert_string_equal(why, "packets go in circles from port 1 of 'host-1' to port 1 of 'host-3'");
	assert_true(loop_of(t, r) > 0);
	routing_tables_free(r);
	topology_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(min_hop_takes_shortest_paths),
		cmocka_unit_test(min_hop_spreads_targets_over_the_links_up),
		cmocka_unit_test(fat_trees_by_min_hop_have_no_circle),
		cmocka_unit_test(up_down_from_any_root_turns_once_and_never_deadlocks),
		cmocka_unit_test(up_down_with_roots_of_its_own_reaches_all_adapters),
		cmocka_unit_test(up_down_on_the_nine_switches_avoids_the_turn_at_g),
		cmocka_unit_test(roots_are_central),
		cmocka_unit_test(several_roots_that_cut_off_adapters_are_not_taken),
		cmocka_unit_test(a_ring_by_min_hop_has_a_circle_in_each_direction),
		cmocka_unit_test(two_lanes_break_the_circles_of_a_ring),
		cmocka_unit_test(a_torus_by_min_hop_has_a_circle),
		cmocka_unit_test(parts_without_a_cable_between_are_discarded),
		cmocka_unit_test(packets_in_circles_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
