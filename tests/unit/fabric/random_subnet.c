/* SPDX-License-Identifier: BSD-2-Clause */
/* Random subnets; see random_subnet.h. */
#include "random_subnet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "util/prng.h"

struct topology *random_subnet(uint64_t seed)
{
	struct prng g = prng_from(seed);
	unsigned switches = 1 + (unsigned)prng_below(&g, 24), more = (unsigned)prng_below(&g, 40);
	unsigned used[100] = { 0 };
	struct topology *t = topology_new();
	struct topology_link l = { .width = TOPOLOGY_4X };
	uint32_t node;

	for (unsigned i = 0; i < switches; i++) {
		struct topology_node n = { .kind = TOPOLOGY_SWITCH, .port_count = 100 };

		snprintf(n.id, sizeof(n.id), "s%u", i);
		assert_int_equal(topology_add_node(t, &n, &node, NULL, 0), 0);
	}
	for (unsigned i = 1; i < switches + more; i++) {
		uint32_t a = i < switches ? i : (uint32_t)prng_below(&g, switches);
		uint32_t b = (uint32_t)prng_below(&g, i < switches ? i : switches);

		l.end[0] = (struct topology_end){ a, (uint8_t)++used[a] };
		l.end[1] = (struct topology_end){ b, (uint8_t)++used[b] };
		assert_int_equal(topology_add_link(t, &l, NULL, 0), 0);
	}
	for (unsigned i = 0; i < switches; i++)
		for (unsigned hosts = (unsigned)prng_below(&g, 4); hosts; hosts--) {
			struct topology_node n = { .kind = TOPOLOGY_HCA, .port_count = 1 };

			snprintf(n.id, sizeof(n.id), "h%u-%u", i, hosts);
			assert_int_equal(topology_add_node(t, &n, &node, NULL, 0), 0);
			l.end[0] = (struct topology_end){ i, (uint8_t)++used[i] };
			l.end[1] = (struct topology_end){ node, 1 };
			assert_int_equal(topology_add_link(t, &l, NULL, 0), 0);
		}
	return t;
}
