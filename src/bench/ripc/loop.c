/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop of who asks, over whatever. */
#include "bench/ripc/ripc.h"

#include "util/clock.h"

int ripc_bench_loop(struct ripc_bench *b, ripc_bench_once *once, void *arg,
		    void (*warm)(struct ripc_bench *b, void *arg))
{
	for (uint64_t i = 0; i < b->warmup + b->count; i++) {
		uint64_t begin, end;
		int ret;

		if (i == b->warmup && warm)
			warm(b, arg);
		begin = clock_monotonic_ns_slow();
		ret = once(b, arg, i);
		end = clock_monotonic_ns_slow();
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
