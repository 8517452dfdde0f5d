/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes on two CPUs that answer each other. The partner is forked and pinned, and
 * ends on request or when its parent dies. Every wait has a deadline.
 */
#ifndef BENCH_FLOOR_PAIR_H
#define BENCH_FLOOR_PAIR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/floor/floor_method.h"
#include "util/clock.h"
#include "util/container_of.h"

#define WAIT_MAX_NS NSEC_PER_SEC

struct shared {
	cache_aligned _Atomic uint64_t ping;
	cache_aligned _Atomic uint64_t pong;
	cache_aligned atomic_bool stop;
	atomic_bool ready;
};

struct pair {
	struct shared *shared;
	pid_t partner;
	int cpu;
	/* The forked partner inherits these. */
	int fd[2];       /* sockets: ours, the partner's; or the same eventfd twice */
	const struct floor_host *hosts; /* of the sockets */
	char *buffer;    /* private memory at the same address in both */
	size_t size_bytes;
	uint64_t count;  /* pings sent so far */
	bool each;       /* each trip counts, not only the mean of a round */
	bool sleeps;     /* both sides, until something comes */
};

/* Has `deadline_ns` passed? Reads the clock only every 1024 calls. */
static inline bool overdue(unsigned *spins, uint64_t deadline_ns)
{
	return ++*spins % 1024 == 0 && clock_now_ns() > deadline_ns;
}

/* Starts the partner, which runs `partner`, and waits until it does. 0 or a negative errno;
 * -ENODEV: there is one CPU. */
int pair_start(struct pair *p, const struct floor_cpus *cpus, void (*partner)(struct pair *));
void pair_stop(struct pair *p);

/* Fills `rounds` with ns per trip of the method, which its partner answers. 0 or a negative
 * errno; -ETIMEDOUT: the machine gave the partner no time; -ENODEV: there is one CPU. */
int pair_measure(struct pair *p, const struct floor_method *method,
		 const struct floor_setting *setting, struct floor_rounds *rounds);

#endif
