/* SPDX-License-Identifier: BSD-2-Clause */
/* Two sockets that are connected to each other, one for each process of a pair. A host may be a
 * network namespace. */
#ifndef BENCH_FLOOR_SOCKETS_H
#define BENCH_FLOOR_SOCKETS_H

#include "bench/floor/floor.h"
#include "util/udp_offload.h"

/* All fill fd[]; 0 or a negative errno; fd[i] is -1, or has to be closed also after an error. A call
 * that sleeps in one gives up after a second. */
int floor_sockets_udp(const struct floor_host hosts[2], int fd[2]);
int floor_sockets_tcp(const struct floor_host hosts[2], int fd[2]);
/* Not connected: source and destination stand with each packet; and what receivers are told of
 * each is asked for. They do not sleep. */
int floor_sockets_packet(const struct floor_host hosts[2], int fd[2]);
void floor_sockets_close(const int fd[2]);

#endif
