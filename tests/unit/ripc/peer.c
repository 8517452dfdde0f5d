/* SPDX-License-Identifier: BSD-2-Clause */
/* How long peers that nobody uses are remembered, and how many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ripc/instance/instance.h"

#define SECOND UINT64_C(1000000000)
enum { KEPT = 4096, MINUTE = 60 };

static struct ripc *r;

static int setup(void **state)
{
	r = calloc(1, sizeof(*r));
	if (!r)
		return -1;
	for (unsigned i = 0; i < TABLE_SIZE; i++) {
		list_init(&r->peers[i]);
		list_init(&r->routes[i]);
	}
	return 0;
}

static int teardown(void **state)
{
	peers_sweep(r, true);
	free(r);
	return 0;
}

/* From number `first` on; used so long ago. */
static void meet(uint64_t first, unsigned count, uint64_t ago_ns)
{
	for (unsigned i = 0; i < count; i++) {
		struct peer *p = peer_get(r, first + i, true);

		assert_non_null(p);
		p->used_ns = now_ns() - ago_ns;
		peer_put(p);
	}
}

static unsigned remembered(uint64_t first, unsigned count)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++) {
		struct peer *p = peer_get(r, first + i, false);

		n += p != NULL;
		if (p)
			peer_put(p);
	}
	return n;
}

static void remembers_a_peer_for_a_minute(void **state)
{
	meet(1, 1, (MINUTE + 1) * SECOND);
	meet(2, 1, (MINUTE - 10) * SECOND);
	peers_sweep(r, false);
	assert_int_equal(remembered(1, 1), 0);
	assert_int_equal(remembered(2, 1), 1);
}

static void remembers_so_many_that_nobody_uses(void **state)
{
	meet(1, KEPT, 40 * SECOND);
	peers_sweep(r, false);
	assert_int_equal(remembered(1, KEPT), KEPT);
}

static void forgets_the_oldest_where_there_are_more(void **state)
{
	meet(1, KEPT, 40 * SECOND);
	meet(KEPT + 1, 100, 10 * SECOND);
	peers_sweep(r, false);
	assert_int_equal(remembered(1, KEPT), 0);
	assert_int_equal(remembered(KEPT + 1, 100), 100);
}

static void forgets_also_those_of_the_last_seconds(void **state)
{
	meet(1, 2 * KEPT, SECOND);
	peers_sweep(r, false);
	assert_true(remembered(1, 2 * KEPT) <= KEPT);
}

static void forgets_nobody_who_is_used(void **state)
{
	struct peer *used = peer_get(r, 1, true);

	assert_non_null(used);
	used->used_ns = now_ns() - 2 * MINUTE * SECOND;
	meet(2, 2 * KEPT, 50 * SECOND);
	peers_sweep(r, false);
	assert_int_equal(remembered(1, 1), 1);
	assert_true(remembered(2, 2 * KEPT) <= KEPT);
	peer_put(used);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(remembers_a_peer_for_a_minute, setup, teardown),
		cmocka_unit_test_setup_teardown(remembers_so_many_that_nobody_uses, setup,
						teardown),
		cmocka_unit_test_setup_teardown(forgets_the_oldest_where_there_are_more, setup,
						teardown),
		cmocka_unit_test_setup_teardown(forgets_also_those_of_the_last_seconds, setup,
						teardown),
		cmocka_unit_test_setup_teardown(forgets_nobody_who_is_used, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
