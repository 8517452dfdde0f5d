/* SPDX-License-Identifier: BSD-2-Clause */
/* Two sockets that are connected to each other, one for each process of a pair. */
#ifndef BENCH_FLOOR_SOCKET_PAIR_H
#define BENCH_FLOOR_SOCKET_PAIR_H

#include "bench/floor/floor_parts.h"
#include "util/udp_offload.h"

/* 0 or a negative errno; fd[i] is -1, or has to be closed also after an error. A call that
 * sleeps in one gives up after a second. */
int floor_udp_sockets(const struct floor_host hosts[2], int fd[2]);
int floor_tcp_sockets(const struct floor_host hosts[2], int fd[2]);
void floor_sockets_close(const int fd[2]);

#endif
