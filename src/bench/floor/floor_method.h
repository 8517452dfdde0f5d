/* SPDX-License-Identifier: BSD-2-Clause */
/* How the floor is measured: by one process, or by two on two CPUs. */
#ifndef BENCH_FLOOR_METHOD_H
#define BENCH_FLOOR_METHOD_H

#include <stdatomic.h>
#include <sys/types.h>

#include "bench/floor/floor.h"
#include "util/clock.h"
#include "util/container_of.h"

struct pair;

/* A method has a `run` and what that calls; see the file that has it. */
struct floor_method {
	/* Fills `rounds` with one figure each; 0 or a negative errno. */
	int (*run)(const struct floor_measure *m, const struct floor_setting *setting,
		   struct floor_rounds *rounds);
	void (*operation)(void *arg);           /* of one process */
	/* Of two: makes their sockets; answers; one round trip, or one call that sends. */
	int (*sockets)(const struct floor_host hosts[2], int fd[2]);
	void (*partner)(struct pair *p);
	int (*trip)(struct pair *p);
	bool sleeps;                            /* both sides, until something comes */
};

/* floor_local.c; floor_pair.c; floor_trips.c */
extern const struct floor_method floor_clock_gettime, floor_clock_ticks, floor_system_call,
	floor_memcpy, floor_paced, floor_paced_busy;
extern const struct floor_method floor_cacheline, floor_eventfd, floor_vm_writev, floor_vm_readv;
/* Round trips; udp_packets: with what a packet of RoCE v2 needs: sockets that are not connected,
 * addresses with each packet, an acknowledgement as a second segment, and what a receiver is
 * told. */
extern const struct floor_method floor_udp, floor_udp_packets, floor_tcp, floor_udp_sleeping,
	floor_tcp_sleeping;
/* One way, as fast as it goes. `size_bytes`: of a segment; of what one call sends. */
extern const struct floor_method floor_udp_stream, floor_tcp_stream;

/* ---- floor_pair.c: two processes that answer each other. The partner is forked and pinned, and
 * ends on request or when its parent dies. Every wait has a deadline. ---- */

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
