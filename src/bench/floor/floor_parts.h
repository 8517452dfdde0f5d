/* SPDX-License-Identifier: BSD-2-Clause */
/* The single measurements of the floor, and what they share. */
#ifndef BENCH_FLOOR_PARTS_H
#define BENCH_FLOOR_PARTS_H

#include <netinet/in.h>
#include <stdint.h>

#include "bench/floor/floor.h"

int floor_pin(int cpu);
/* A socket of IPv4 in the host's namespace, bound to its address and a port that is free,
 * which *addr gets. The descriptor, or a negative errno. */
int floor_host_socket(const struct floor_host *host, int type, struct sockaddr_in *addr);

int floor_clock_gettime(const struct floor_setting *setting, size_t size_bytes,
			struct floor_rounds *rounds);
int floor_clock_ticks(const struct floor_setting *setting, size_t size_bytes,
		      struct floor_rounds *rounds);
int floor_system_call(const struct floor_setting *setting, size_t size_bytes,
		      struct floor_rounds *rounds);
/* `size_bytes` is the rate in steps per second. */
int floor_paced(const struct floor_setting *setting, size_t size_bytes,
		struct floor_rounds *rounds);
int floor_paced_busy(const struct floor_setting *setting, size_t size_bytes,
		     struct floor_rounds *rounds);
int floor_memcpy(const struct floor_setting *setting, size_t size_bytes,
		 struct floor_rounds *rounds);

int floor_cacheline(const struct floor_setting *setting, size_t size_bytes,
		    struct floor_rounds *rounds);
int floor_vm_writev(const struct floor_setting *setting, size_t size_bytes,
		    struct floor_rounds *rounds);
int floor_vm_readv(const struct floor_setting *setting, size_t size_bytes,
		   struct floor_rounds *rounds);
/* `size_bytes` is what one call sends and receives; both sides poll. */
int floor_udp(const struct floor_setting *setting, size_t size_bytes,
	      struct floor_rounds *rounds);
/* The same with what a packet of RoCE v2 needs: sockets that are not connected, addresses with
 * each packet, an acknowledgement as a second segment, and what a receiver is told. */
int floor_udp_packets(const struct floor_setting *setting, size_t size_bytes,
		      struct floor_rounds *rounds);
int floor_tcp(const struct floor_setting *setting, size_t size_bytes,
	      struct floor_rounds *rounds);
/* The same, but both sides sleep until something comes. */
int floor_udp_sleeping(const struct floor_setting *setting, size_t size_bytes,
		       struct floor_rounds *rounds);
int floor_tcp_sleeping(const struct floor_setting *setting, size_t size_bytes,
		       struct floor_rounds *rounds);
/* One way, as fast as it goes. `size_bytes`: of a segment; of what one call sends. */
int floor_udp_stream(const struct floor_setting *setting, size_t size_bytes,
		     struct floor_rounds *rounds);
int floor_tcp_stream(const struct floor_setting *setting, size_t size_bytes,
		     struct floor_rounds *rounds);
int floor_eventfd(const struct floor_setting *setting, size_t size_bytes,
		  struct floor_rounds *rounds);

#endif
