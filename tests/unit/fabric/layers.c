/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LASH and DFSSSP: shortest paths in as few layers as the first that fits gives, none of which has a circle; and
 * DFSSSP's paths share cables with fewer others.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fabric/routing/routing.h"
#include "fabric/topology/generate.h"
#include "random_subnet.h"

struct layered {
	struct topology *t;
	struct routing *r;
	struct routing_layers *l;
};

static struct layered make(const char *text, unsigned layers_max)
{
	struct layered a = { 0 };
	char why[300];

	if (topology_generate(text, &a.t, why, sizeof(why)) ||
	    routing_lash(a.t, layers_max, &a.r, &a.l, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	return a;
}

static void end(struct layered *a)
{
	routing_layers_free(a->l);
	routing_tables_free(a->r);
	topology_free(a->t);
}

static uint8_t layer_of(const void *context, uint32_t source, uint32_t target, uint32_t node, uint8_t in,
			uint8_t out)
{
	const struct layered *a = context;

	return routing_layer(a->r, a->l, source, target);
}

static uint8_t no_layer(const void *context, uint32_t source, uint32_t target, uint32_t node, uint8_t in,
			uint8_t out)
{
	return 0;
}

static int circle_of(const struct layered *a, routing_lane *lane)
{
	struct routing_channel *circle = NULL;
	int count = routing_credit_loop(a->t, a->r, lane, a, &circle);

	assert_true(count >= 0);
	free(circle);
	return count;
}

static void layers_have_no_circle(void **state)
{
	static const struct {
		const char *text;
		unsigned least; /* layers that it needs */
	} cases[] = {
		{ "ring:5", 2 }, { "ring:8,hosts=2", 2 }, { "torus:4x4", 2 }, { "torus:5x5", 2 },
		{ "torus:3x3x3", 1 }, { "fat-tree:8x4", 1 }, { "dragonfly:4x2x2", 2 }, { "mesh:4x4", 1 },
		{ "single:4", 1 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct layered a = make(cases[i].text, ROUTING_LANES_MAX);

		assert_int_equal(circle_of(&a, layer_of), 0);
		assert_in_range(a.l->count, cases[i].least, 6);
		/* Without the layers there is a circle where more than one is in use. */
		if (a.l->count > 1)
			assert_true(circle_of(&a, no_layer) > 0);
		end(&a);
	}
}

/* Of all paths between adapters, those on the cable with the most in one direction. */
static uint32_t most_paths(const struct topology *t, const struct routing *r)
{
	uint32_t *paths = calloc(t->link_count * 2U, sizeof(*paths)), most = 0;

	for (uint32_t s = 0; s < r->target_count; s++)
		for (uint32_t to = 0; to < r->target_count; to++) {
			uint32_t links[64], at = r->targets[s].node;
			int count = routing_path(t, r, s, to, links, 64);

			for (int i = 0; i < count && r->targets[s].port && r->targets[to].port; i++) {
				const struct topology_link *l = &t->links[links[i]];
				/* A cable from a switch to itself leads nowhere, so it is on no path. */
				bool back = l->end[1].node == at;

				paths[links[i] * 2 + back]++;
				at = l->end[back ? 0 : 1].node;
			}
		}
	for (uint32_t i = 0; i < t->link_count * 2; i++)
		most = paths[i] > most ? paths[i] : most;
	free(paths);
	return most;
}

static void each_path_is_shortest(const struct topology *t, const struct routing *r)
{
	uint32_t *hops = malloc(t->node_count * sizeof(*hops));

	for (uint32_t s = 0; s < r->target_count; s++) {
		assert_int_equal(topology_hops(t, r->targets[s].node, hops), 0);
		for (uint32_t to = 0; to < r->target_count; to++)
			assert_int_equal(routing_path(t, r, s, to, NULL, 0), hops[r->targets[to].node]);
	}
	free(hops);
}

static void dfsssp_on_a_thousand_random_subnets(void **state)
{
	uint64_t most = 0, most_min_hop = 0;

	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct layered a = { .t = random_subnet(seed) };
		struct routing *min_hop;
		char why[300];

		if (routing_dfsssp(a.t, ROUTING_LANES_MAX, &a.r, &a.l, why, sizeof(why)) ||
		    routing_check_paths(a.t, a.r, why, sizeof(why)))
			fail_msg("%u: %s", (unsigned)seed, why);
		each_path_is_shortest(a.t, a.r);
		assert_int_equal(circle_of(&a, layer_of), 0);
		assert_int_equal(routing_min_hop(a.t, &min_hop), 0);
		most += most_paths(a.t, a.r);
		most_min_hop += most_paths(a.t, min_hop);
		routing_tables_free(min_hop);
		end(&a);
	}
	printf("paths on the cable with the most, mean: %.1f, by min-hop %.1f\n", (double)most / 1000,
	       (double)most_min_hop / 1000);
	assert_true(most < most_min_hop);
}

static void dfsssp_needs_few_layers(void **state)
{
	static const struct { const char *text; unsigned layers; } cases[] = {
		{ "fat-tree:8x4", 1 }, { "single:4", 1 }, { "ring:5", 2 }, { "torus:4x4", 4 }, { "dragonfly:4x2x2", 4 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct layered a = { 0 };
		char why[300];

		if (topology_generate(cases[i].text, &a.t, why, sizeof(why)) ||
		    routing_dfsssp(a.t, cases[i].layers, &a.r, &a.l, why, sizeof(why)))
			fail_msg("%s: %s", cases[i].text, why);
		assert_int_equal(circle_of(&a, layer_of), 0);
		end(&a);
	}
}

static void each_layer_in_use_has_a_path(void **state)
{
	struct layered a = make("torus:4x4,hosts=2", ROUTING_LANES_MAX);
	unsigned used = 0;

	for (uint32_t s = 0; s < a.r->target_count; s++)
		for (uint32_t t = 0; t < a.r->target_count; t++) {
			assert_true(routing_layer(a.r, a.l, s, t) < a.l->count);
			used |= 1u << routing_layer(a.r, a.l, s, t);
		}
	assert_int_equal(used, (1u << a.l->count) - 1);
	end(&a);
}

static void too_few_layers_are_told(void **state)
{
	struct routing_layers *l = NULL;
	struct routing *r = NULL;
	struct topology *t;
	char why[300];

	assert_int_equal(topology_generate("ring:6", &t, why, sizeof(why)), 0);
	assert_int_equal(routing_lash(t, 1, &r, &l, why, sizeof(why)), -ENOSPC);
	assert_string_equal(why, "the shortest paths of this subnet need more than 1 layers to be without circles");
	assert_null(r);
	assert_null(l);
	assert_int_equal(routing_lash(t, 16, &r, &l, why, sizeof(why)), -EINVAL);
	assert_int_equal(routing_lash(t, 2, &r, &l, why, sizeof(why)), 0);
	routing_layers_free(l);
	routing_tables_free(r);
	topology_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_have_no_circle),
		cmocka_unit_test(each_layer_in_use_has_a_path),
		cmocka_unit_test(dfsssp_on_a_thousand_random_subnets),
		cmocka_unit_test(dfsssp_needs_few_layers),
		cmocka_unit_test(too_few_layers_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
