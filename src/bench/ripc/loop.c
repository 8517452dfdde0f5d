/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop of who asks, over whatever. */
#include <errno.h>
#include <time.h>

#include "bench/ripc/ripc.h"

uint64_t ripc_bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int ripc_bench_loop(struct ripc_bench *b, ripc_bench_once *once, void *arg,
		    void (*warm)(struct ripc_bench *b, void *arg))
{
	for (uint64_t i = 0; i < b->warmup + b->count; i++) {
		uint64_t begin, end;
		int ret;

		if (i == b->warmup && warm)
			warm(b, arg);
		begin = ripc_bench_now();
		ret = once(b, arg, i);
		end = ripc_bench_now();
		if (ret)
			return ret;
		if (!i)
			b->first_ns = end - begin;
		if (i >= b->warmup) {
			b->times[i - b->warmup] = (int64_t)begin;
			b->times[b->count + i - b->warmup] = (int64_t)end;
		}
		atomic_store_explicit(&b->done, i + 1, memory_order_relaxed);
	}
	return 0;
}
