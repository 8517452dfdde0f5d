/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kind "ripc" of benchmark suites: round trips of messages of ripc and fetches of files,
 * and the same over plain TCP sockets. Two processes: who asks, and who answers. What needs
 * verbs is a module, which these load after the transport was chosen, so that the executable
 * needs none.
 */
#ifndef BENCH_RIPC_RIPC_H
#define BENCH_RIPC_RIPC_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/kind/kind.h"
#include "util/clock.h"

#define RIPC_BENCH_FILE "content" /* in `folder`: what is fetched */

enum ripc_side { RIPC_ASKS, RIPC_ANSWERS };

/* In memory of both processes and their parent; the first part is set before they start. */
struct ripc_bench {
	bool fetch;              /* a file, else round trips of messages */
	bool tcp, is_long, datagram;
	bool pushed;             /* long, into return buffers, in both directions */
	size_t size;             /* of a message or the file */
	uint64_t count, warmup;  /* round trips or fetches; the warm-up comes first */
	unsigned poll_us;        /* how long a call that waits polls before it sleeps */
	char folder[PATH_MAX];
	/* Of who answers: the service or the port, then it is ready. */
	uint32_t service;
	uint16_t port;
	atomic_bool ready;
	atomic_bool stop;
	_Atomic uint64_t done;   /* round trips, with the warm-up */
	int error[2];            /* of a side; logged */
	/* Of who asks. */
	uint64_t first_ns;       /* the first one, with finding and connecting */
	uint64_t registrations;  /* of memory, behind the warm-up; not of TCP */
	uint64_t returned;       /* answers behind the warm-up that came in return buffers */
	/* Of who answers: all, and those until the warm-up was over. */
	_Atomic uint64_t server_registrations, server_warm;
	int64_t times[];         /* count when sent, then count when received; ns */
};

/* Both in the module "bench_ripc"; negative errno, logged. */
typedef int ripc_bench_end(struct ripc_bench *b, enum ripc_side side);
ripc_bench_end bench_ripc_end;
/* Plain sockets: tcp.c. */
ripc_bench_end bench_ripc_tcp;

/* One round trip or fetch of who asks. 0; -EINTR: `stop`. */
typedef int ripc_bench_once(struct ripc_bench *b, void *arg, uint64_t number);
/* All of them, with their times. `warm` is called behind the warm-up. */
static inline int ripc_bench_loop(struct ripc_bench *b, ripc_bench_once *once, void *arg,
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

#endif
