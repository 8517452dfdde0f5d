/* SPDX-License-Identifier: BSD-2-Clause */
/* Pools, reference counts and the memory they live in. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "fake.h"
#include "gateway/base/memory.h"

static void a_pool_gives_what_it_has_and_no_more(void **state)
{
	struct sample *s[10];
	struct pool p;

	assert_int_equal(pool_init(&p, 8, 3, &memory_heap), 0);
	assert_int_equal(sample_alloc_many(&p, s, 10), 8);
	assert_null(sample_alloc(&p));
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(s[i]->capacity, 3);
		assert_int_equal(s[i]->refcnt, 1);
		assert_int_equal((uintptr_t)s[i] % CACHE_LINE, 0);
	}
	sample_put_many(s, 8);
	assert_int_equal(p.available, 8);
	assert_int_equal(pool_destroy(&p), 0);
}

static void the_last_reference_returns_a_sample(void **state)
{
	struct sample *s;
	struct pool p;

	assert_int_equal(pool_init(&p, 1, 1, &memory_heap), 0);
	s = sample_alloc(&p);
	sample_get(s);
	sample_put(s);
	assert_null(sample_alloc(&p));
	s->flags = SAMPLE_HAS_DATA;
	s->length = 1;
	sample_put(s);
	s = sample_alloc(&p);
	assert_non_null(s);
	assert_int_equal(s->flags, 0);
	assert_int_equal(s->length, 0);
	sample_put(s);
	assert_int_equal(pool_destroy(&p), 0);
}

static void a_pool_tells_how_many_samples_are_missing(void **state)
{
	struct sample *s[2];
	struct pool p;

	fake_log_start();
	assert_int_equal(pool_init(&p, 4, 1, &memory_heap), 0);
	assert_int_equal(sample_alloc_many(&p, s, 2), 2);
	assert_int_equal(pool_destroy(&p), 2);
	assert_non_null(strstr(fake_log(), "2 of 4 samples"));
	/* Its memory was kept, so that this is still allowed. */
	sample_put_many(s, 2);
	assert_int_equal(pool_destroy(&p), 0);
}

static void a_copy_takes_what_fits(void **state)
{
	struct pool big, small;
	struct sample *a, *b;

	assert_int_equal(pool_init(&big, 1, 8, &memory_heap), 0);
	assert_int_equal(pool_init(&small, 1, 2, &memory_heap), 0);
	a = sample_alloc(&big);
	b = sample_alloc(&small);
	a->length = 8;
	a->sequence = 77;
	a->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_DATA;
	for (unsigned i = 0; i < 8; i++)
		a->data[i].f = i;
	sample_copy(b, a);
	assert_int_equal(b->length, 2);
	assert_int_equal(b->sequence, 77);
	assert_true(b->data[1].f == 1);
	assert_ptr_equal(b->pool, &small);
	sample_put(a);
	sample_put(b);
	assert_int_equal(pool_destroy(&big), 0);
	assert_int_equal(pool_destroy(&small), 0);
}

static void *exchange(void *arg)
{
	struct pool *p = arg;
	struct sample *s[5];

	for (unsigned i = 0; i < 20000; i++) {
		unsigned n = sample_alloc_many(p, s, 1 + i % 5);

		for (unsigned k = 0; k < n; k++) {
			s[k]->sequence = i;
			sample_get(s[k]);
			sample_put(s[k]);
		}
		sample_put_many(s, n);
	}
	return NULL;
}

static void threads_share_a_pool_without_losing_samples(void **state)
{
	pthread_t threads[3];
	struct pool p;

	assert_int_equal(pool_init(&p, 7, 1, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, exchange,
						&p),
				 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(p.available, 7);
	assert_int_equal(pool_destroy(&p), 0);
}

static void huge_page_memory_is_zeroed_and_aligned(void **state)
{
	struct memory_block *b = memory_alloc(&memory_hugepage, 3 << 20);

	assert_non_null(b);
	assert_int_equal((uintptr_t)b->addr % memory_hugepage.alignment, 0);
	assert_true(b->size_bytes >= 3 << 20);
	for (size_t i = 0; i < b->size_bytes; i += 997)
		assert_int_equal(((char *)b->addr)[i], 0);
	assert_ptr_equal(memory_block_of(b, &memory_hugepage), b);
	assert_null(memory_block_of(b, &memory_heap));
	memory_free(b);
}

static void impossible_pools_are_refused(void **state)
{
	struct pool p;

	assert_int_equal(pool_init(&p, 0, 1, &memory_heap), -EINVAL);
	assert_int_equal(pool_init(&p, UINT32_MAX, UINT32_MAX, NULL), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_gives_what_it_has_and_no_more),
		cmocka_unit_test(the_last_reference_returns_a_sample),
		cmocka_unit_test(a_pool_tells_how_many_samples_are_missing),
		cmocka_unit_test(a_copy_takes_what_fits),
		cmocka_unit_test(threads_share_a_pool_without_losing_samples),
		cmocka_unit_test(huge_page_memory_is_zeroed_and_aligned),
		cmocka_unit_test(impossible_pools_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
