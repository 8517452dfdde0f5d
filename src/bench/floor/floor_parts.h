/* SPDX-License-Identifier: BSD-2-Clause */
/* The single measurements of the floor, and what they share. */
#ifndef BENCH_FLOOR_PARTS_H
#define BENCH_FLOOR_PARTS_H

#include <stdint.h>

#include "bench/floor/floor.h"

/* With this time a dozen measurements take less than four seconds. */
#define FLOOR_ROUND_NS (7 * UINT64_C(1000000))

int floor_pin(int cpu);

int floor_clock_gettime(const struct floor_cpus *cpus, size_t size_bytes,
			double rounds[FLOOR_ROUNDS]);
int floor_clock_ticks(const struct floor_cpus *cpus, size_t size_bytes,
		      double rounds[FLOOR_ROUNDS]);
int floor_system_call(const struct floor_cpus *cpus, size_t size_bytes,
		      double rounds[FLOOR_ROUNDS]);
/* `size_bytes` is the rate in steps per second. */
int floor_paced(const struct floor_cpus *cpus, size_t size_bytes,
		double rounds[FLOOR_ROUNDS]);
int floor_paced_busy(const struct floor_cpus *cpus, size_t size_bytes,
		     double rounds[FLOOR_ROUNDS]);
int floor_memcpy(const struct floor_cpus *cpus, size_t size_bytes,
		 double rounds[FLOOR_ROUNDS]);

int floor_cacheline(const struct floor_cpus *cpus, size_t size_bytes,
		    double rounds[FLOOR_ROUNDS]);
int floor_vm_writev(const struct floor_cpus *cpus, size_t size_bytes,
		    double rounds[FLOOR_ROUNDS]);
int floor_vm_readv(const struct floor_cpus *cpus, size_t size_bytes,
		   double rounds[FLOOR_ROUNDS]);
int floor_udp(const struct floor_cpus *cpus, size_t size_bytes,
	      double rounds[FLOOR_ROUNDS]);
/* The same with what a packet of RoCE v2 needs: sockets that are not connected, addresses with
 * each packet, an acknowledgement as a second segment, and what a receiver is told. */
int floor_udp_packets(const struct floor_cpus *cpus, size_t size_bytes,
		      double rounds[FLOOR_ROUNDS]);
int floor_tcp(const struct floor_cpus *cpus, size_t size_bytes,
	      double rounds[FLOOR_ROUNDS]);
int floor_eventfd(const struct floor_cpus *cpus, size_t size_bytes,
		  double rounds[FLOOR_ROUNDS]);

#endif
