/* SPDX-License-Identifier: BSD-2-Clause */
/* What the pool promises to one thread (src/ripc/pool.h). */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "pool_help.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static struct ground g;

static int get(const void *at, size_t bytes, enum pool_access access, struct pool_ref *ref)
{
	return pool_get(g.pool, at, bytes, access, ref);
}

static bool reached(const void *at, size_t bytes)
{
	struct pool_ref ref;
	int ret = get(at, bytes, POOL_LOCAL, &ref);

	if (!ret)
		pool_put(g.pool, &ref);
	else
		check_eq(ret, -ENOENT);
	return !ret;
}

static void every_size_is_aligned_whole_and_not_much_larger(void)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 65, 96, 128, 129, 192, 193, 1400, 3000,
					3072, 3073, 4095, 4096, 4097, 6144, 6145, 8192, 12288,
					49152, 49153, 65535, 65536, 65537, 98304, 98305,
					MIB - 1, MIB, 5 * MIB, 80 * MIB };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const size_t bytes = sizes[i];
		char *b = pool_alloc(g.pool, bytes);

		check(b);
		check_eq((uintptr_t)b % 64, 0);
		if (bytes >= 4096)
			check_eq((uintptr_t)b % 4096, 0);
		if (bytes)
			b[0] = b[bytes - 1] = 1;
		check(reached(b, bytes));
		check(reached(b + bytes / 2, bytes - bytes / 2));
		check(!reached(b + 1, 2 * bytes + 64));
		check(!reached(b - 1, 2));
		check_eq(pool_free(g.pool, b), 0);
		check(!reached(b, bytes));
	}
}

static void impossible_sizes_are_refused_with_a_reason(void)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX / 2, SIZE_MAX - 4095, 1ull << 47 };
	char *own = malloc(64);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		errno = 0;
		check(!pool_alloc(g.pool, sizes[i]));
		check_eq(errno, ENOMEM);
		check(strstr(pool_why(), "Cannot allocate memory"));
	}
	check_eq(pool_register(g.pool, own, SIZE_MAX), -EINVAL);
	check_eq(pool_register(g.pool, own, SIZE_MAX - (uintptr_t)own + 1), -EINVAL);
	check_eq(pool_register(g.pool, own, 0), -EINVAL);
	check_eq(pool_register(g.pool, NULL, 64), -EINVAL);
	check(!reached((void *)UINTPTR_MAX, 1));
	check(!reached(NULL, 0));
	check_eq(pool_free(g.pool, NULL), -EINVAL);
	free(own);
}

static void ten_thousand_buffers_of_one_size_register_once(void)
{
	static const size_t sizes[] = { 200, 5000, 100 * KIB, 3 * MIB };

	pool_trim(g.pool, 0); /* nothing is registered for local use only */
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const uint64_t before = counters_of(g.pool).registrations;
		void *first = NULL;

		for (unsigned n = 0; n < 10000; n++) {
			void *b = pool_alloc(g.pool, sizes[i]);
			struct pool_ref source, sink, local;

			first = first ? first : b;
			check(b == first);
			check_eq(get(b, sizes[i], POOL_SOURCE, &source), 0);
			check_eq(get(b, sizes[i], POOL_SINK, &sink), 0);
			check_eq(get(b, sizes[i], POOL_LOCAL, &local), 0);
			check(source.rkey != sink.rkey);
			check(local.lkey == source.lkey || local.lkey == sink.lkey);
			pool_put(g.pool, &source);
			pool_put(g.pool, &sink);
			pool_put(g.pool, &local);
			check_eq(pool_free(g.pool, b), 0);
		}
		check_eq(counters_of(g.pool).registrations, before + 2);
	}
}

static void what_is_no_buffer_is_not_freed(void)
{
	char *b = pool_alloc(g.pool, 1000), *big = pool_alloc(g.pool, MIB), own[64];

	check_eq(pool_free(g.pool, own), -EINVAL);
	check_eq(pool_free(g.pool, &own), -EINVAL);
	check_eq(pool_free(g.pool, (void *)8), -EINVAL);
	check_eq(pool_free(g.pool, b + 2048), -EINVAL); /* a free one of the same slab */
	check_eq(pool_free(g.pool, b + 500), 0);        /* any pointer into it */
	check_eq(pool_free(g.pool, b), -EINVAL);
	check_eq(pool_free(g.pool, big + MIB - 1), 0);
	check_eq(pool_free(g.pool, big), -EINVAL);
	check_eq(pool_register(g.pool, own, sizeof(own)), 0);
	check_eq(pool_free(g.pool, own), -EINVAL);
	check_eq(pool_unregister(g.pool, own), 0);
}

static void a_buffer_that_is_freed_in_use_joins_the_pool_with_its_last_reference(void)
{
	static const size_t sizes[] = { 640, MIB };

	for (size_t i = 0; i < 2; i++) {
		void *b = pool_alloc(g.pool, sizes[i]), *other;
		struct pool_ref one, two, no;

		check_eq(get(b, sizes[i], POOL_SOURCE, &one), 0);
		check_eq(get(b, 1, POOL_SINK, &two), 0);
		check_eq(pool_free(g.pool, b), 0);
		check_eq(pool_free(g.pool, b), -EINVAL);
		check_eq(get(b, 1, POOL_SOURCE, &no), -ENOENT);
		pool_put(g.pool, &one);
		other = pool_alloc(g.pool, sizes[i]);
		check(other != b);
		pool_put(g.pool, &two);
		check(pool_alloc(g.pool, sizes[i]) == b);
		check_eq(pool_free(g.pool, b), 0);
		check_eq(pool_free(g.pool, other), 0);
	}
}

static void memory_of_the_program_is_registered_once_and_left_when_nobody_uses_it(void)
{
	char *own = malloc(3 * 4096), *b = pool_alloc(g.pool, MIB);
	struct pool_ref ref, no;

	check_eq(pool_register(g.pool, own + 4096, 4096), 0);
	check_eq(pool_register(g.pool, own + 4096, 4096), -EEXIST);
	check_eq(pool_register(g.pool, own, 3 * 4096), -EEXIST);
	check_eq(pool_register(g.pool, own, 4097), -EEXIST);
	check_eq(pool_register(g.pool, own + 8191, 1), -EEXIST);
	check_eq(pool_register(g.pool, b + 100, 1), -EEXIST);
	check_eq(pool_register(g.pool, own, 4096), 0);
	check_eq(pool_register(g.pool, own + 8192, 1), 0);
	/* A range in two of them is in none. */
	check_eq(get(own + 4000, 200, POOL_SOURCE, &no), -ENOENT);
	check_eq(get(own + 5000, 100, POOL_SOURCE, &ref), 0);
	check_eq(pool_unregister(g.pool, own + 4096), -EBUSY);
	check_eq(pool_unregister(g.pool, own + 5000), -EINVAL);
	pool_put(g.pool, &ref);
	check_eq(pool_unregister(g.pool, own + 4096), 0);
	check_eq(pool_unregister(g.pool, own + 4096), -EINVAL);
	check(!reached(own + 5000, 1));
	check(reached(own, 4096));
	check_eq(pool_unregister(g.pool, b), -EINVAL);
	check_eq(pool_unregister(g.pool, own), 0);
	/* The third one is left to pool_close(). */
	check_eq(pool_free(g.pool, b), 0);
	pool_trim(g.pool, 0);
	check_eq(counters_of(g.pool).registered_bytes, 0);
	ground_close(&g);
	free(own);
	ground_open(&g, 64 * MIB);
}

static void the_longest_unused_go_first(void)
{
	void *b[4];

	pool_trim(g.pool, 0);
	check_eq(counters_of(g.pool).kept_bytes, 0);
	for (unsigned i = 0; i < 4; i++)
		b[i] = pool_alloc(g.pool, 24 * MIB);
	check_eq(counters_of(g.pool).kept_bytes, 0);
	for (unsigned i = 0; i < 4; i++)
		check_eq(pool_free(g.pool, b[i]), 0);
	/* 64 MiB may be kept: the last two. */
	check_eq(counters_of(g.pool).kept_bytes, 48 * MIB);
	check(pool_alloc(g.pool, 24 * MIB) == b[3]);
	check(pool_alloc(g.pool, 24 * MIB) == b[2]);
	check_eq(pool_free(g.pool, b[3]), 0);
	check_eq(pool_free(g.pool, b[2]), 0);
	pool_trim(g.pool, 24 * MIB);
	check_eq(counters_of(g.pool).kept_bytes, 24 * MIB);
	check(pool_alloc(g.pool, 24 * MIB) == b[2]);
	/* One that may not be kept takes no other with it. */
	b[0] = pool_alloc(g.pool, 96 * MIB);
	check_eq(pool_free(g.pool, b[2]), 0);
	check_eq(pool_free(g.pool, b[0]), 0);
	check_eq(counters_of(g.pool).kept_bytes, 24 * MIB);
}

static void a_slab_goes_as_a_whole(void)
{
	enum { N = 5000 };
	static char *b[N];

	pool_trim(g.pool, 0);
	for (unsigned i = 0; i < N; i++) {
		b[i] = pool_alloc(g.pool, 300);
		memset(b[i], (int)i, 300);
		check(reached(b[i], 300));
	}
	check(counters_of(g.pool).registrations > 0);
	check(counters_of(g.pool).registered_bytes <= 4 * N * 384);
	for (unsigned i = 0; i < N; i++)
		if (i % 100)
			check_eq(pool_free(g.pool, b[i]), 0);
	pool_trim(g.pool, 0);
	for (unsigned i = 0; i < N; i += 100) {
		for (unsigned at = 0; at < 300; at++)
			check_eq(b[i][at], (char)i);
		check_eq(pool_free(g.pool, b[i]), 0);
	}
	pool_trim(g.pool, 0);
	check_eq(counters_of(g.pool).registered_bytes, 0);
	check_eq(counters_of(g.pool).kept_bytes, 0);
}

static void a_limit_of_registered_memory_is_an_error_with_a_reason(void)
{
	char *kept = pool_alloc(g.pool, 6 * MIB), *b = pool_alloc(g.pool, 4 * MIB);
	struct pool_ref ref;

	pool_trim(g.pool, 0);
	check_eq(get(kept, 1, POOL_SOURCE, &ref), 0);
	pool_put(g.pool, &ref);
	registered_max = 8 * MIB;
	check_eq(get(b, 1, POOL_SINK, &ref), -ENOMEM);
	check(strstr(pool_why(), "registering 4194304 bytes: Cannot allocate memory"));
	/* What is only kept makes room. */
	check_eq(pool_free(g.pool, kept), 0);
	check_eq(get(b, 1, POOL_SINK, &ref), 0);
	check_eq(refused, 3); /* twice, and once before there was room */
	check_eq(counters_of(g.pool).kept_bytes, 0);
	pool_put(g.pool, &ref);
	refused_with = EINVAL;
	registered_max = 0;
	check_eq(get(b, 1, POOL_SOURCE, &ref), -ENOMEM);
	check(strstr(pool_why(), "Invalid argument"));
	registered_max = SIZE_MAX;
	/* Nothing is held after a failure. */
	check_eq(pool_free(g.pool, b), 0);
	check(!reached(b, 1));
}

static void memory_that_is_read_only_can_be_a_source(void)
{
	char own[256];
	struct pool_ref ref;

	check_eq(pool_register(g.pool, own, sizeof(own)), 0);
	read_only = true;
	check_eq(get(own, 256, POOL_SINK, &ref), -ENOMEM);
	check_eq(get(own, 256, POOL_LOCAL, &ref), 0);
	pool_put(g.pool, &ref);
	check_eq(get(own, 256, POOL_SOURCE, &ref), 0);
	pool_put(g.pool, &ref);
	read_only = false;
	check_eq(pool_unregister(g.pool, own), 0);
}

int main(void)
{
	ground_open(&g, 64 * MIB);
	every_size_is_aligned_whole_and_not_much_larger();
	impossible_sizes_are_refused_with_a_reason();
	ten_thousand_buffers_of_one_size_register_once();
	what_is_no_buffer_is_not_freed();
	a_buffer_that_is_freed_in_use_joins_the_pool_with_its_last_reference();
	memory_of_the_program_is_registered_once_and_left_when_nobody_uses_it();
	the_longest_unused_go_first();
	a_slab_goes_as_a_whole();
	a_limit_of_registered_memory_is_an_error_with_a_reason();
	memory_that_is_read_only_can_be_a_source();
	ground_close(&g);
	return 0;
}
