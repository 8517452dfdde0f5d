/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of pointers: bounds, order, and two threads. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/ring.h"

static void *item(uintptr_t n)
{
	return (void *)(n + 1); /* never NULL */
}

static void an_empty_ring_gives_nothing(void **unused)
{
	struct ring r;

	assert_int_equal(ring_init(&r, 4), 0);
	assert_null(ring_pop(&r));
	assert_int_equal(ring_count(&r), 0);
	ring_destroy(&r);
}

static void a_full_ring_refuses_and_keeps_what_it_has(void **unused)
{
	struct ring r;

	/* Rounded up to a power of two. */
	assert_int_equal(ring_init(&r, 5), 0);
	for (uintptr_t i = 0; i < 8; i++)
		assert_true(ring_push(&r, item(i)));
	assert_false(ring_push(&r, item(99)));
	assert_int_equal(ring_count(&r), 8);
	for (uintptr_t i = 0; i < 8; i++)
		assert_ptr_equal(ring_pop(&r), item(i));
	assert_null(ring_pop(&r));
	assert_true(ring_push(&r, item(1)));
	ring_destroy(&r);
}

static void order_is_kept_over_many_laps(void **unused)
{
	struct ring r;
	uintptr_t in = 0, out = 0;

	assert_int_equal(ring_init(&r, 8), 0);
	for (int round = 0; round < 1000; round++) {
		for (int k = 0; k < round % 9; k++)
			if (ring_push(&r, item(in)))
				in++;
		for (int k = 0; k < (round * 7) % 9; k++) {
			void *p = ring_pop(&r);

			if (p)
				assert_ptr_equal(p, item(out++));
		}
		assert_int_equal(ring_count(&r), in - out);
	}
	ring_destroy(&r);
}

enum { ITEMS = 50000 };

static void *produce(void *arg)
{
	for (uintptr_t i = 0; i < ITEMS;) {
		if (ring_push(arg, item(i)))
			i++;
		else
			sched_yield();
	}
	return NULL;
}

static void two_threads_lose_and_reorder_nothing(void **unused)
{
	struct ring r;
	pthread_t thread;

	assert_int_equal(ring_init(&r, 64), 0);
	assert_int_equal(pthread_create(&thread, NULL, produce, &r), 0);
	for (uintptr_t i = 0; i < ITEMS;) {
		void *p = ring_pop(&r);

		if (p)
			assert_ptr_equal(p, item(i++));
		else
			sched_yield();
	}
	pthread_join(thread, NULL);
	assert_null(ring_pop(&r));
	ring_destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_ring_gives_nothing),
		cmocka_unit_test(a_full_ring_refuses_and_keeps_what_it_has),
		cmocka_unit_test(order_is_kept_over_many_laps),
		cmocka_unit_test(two_threads_lose_and_reorder_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
