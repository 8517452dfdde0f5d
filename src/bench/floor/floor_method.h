/* SPDX-License-Identifier: BSD-2-Clause */
/* How the floor is measured: by one process, or by two on two CPUs. */
#ifndef BENCH_FLOOR_METHOD_H
#define BENCH_FLOOR_METHOD_H

#include "bench/floor/floor.h"

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

/* floor_local.c; floor_pair.c; floor_sockets.c */
extern const struct floor_method floor_clock_gettime, floor_clock_ticks, floor_system_call,
	floor_memcpy, floor_paced, floor_paced_busy;
extern const struct floor_method floor_cacheline, floor_eventfd, floor_vm_writev, floor_vm_readv;
/* Round trips; udp_packets: with what a packet of RoCE v2 needs: sockets that are not connected,
 * addresses with each packet, an acknowledgement as a second segment, and what a receiver is told. */
extern const struct floor_method floor_udp, floor_udp_packets, floor_tcp, floor_udp_sleeping,
	floor_tcp_sleeping;
/* One way, as fast as it goes. `size_bytes`: of a segment; of what one call sends. */
extern const struct floor_method floor_udp_stream, floor_tcp_stream;

#endif
