/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two network namespaces that a cable (veth) joins, so that what two gateways exchange goes
 * through the network of the kernel and not over its loopback interface. Nothing has a name
 * outside: both vanish with the processes that hold them, which end with this one.
 */
#ifndef BENCH_NODE_NAMESPACES_H
#define BENCH_NODE_NAMESPACES_H

#include <sys/types.h>

/* Addresses of the two ends. */
#define BENCH_NODE_ADDRESS_SOURCE "10.203.77.1"
#define BENCH_NODE_ADDRESS_TARGET "10.203.77.2"

struct bench_node_namespaces {
	pid_t holder[2]; /* of source and target, to enter */
	int pipe;        /* its end ends the holders */
};

/* 0; -EOPNOTSUPP: this process may not (logged why); or another negative errno. */
int bench_node_namespaces_make(struct bench_node_namespaces *n);
void bench_node_namespaces_end(struct bench_node_namespaces *n);

/* Moves the calling process, which has one thread, into those of `holder`. 0 or a negative errno. */
int bench_node_namespaces_enter(pid_t holder);

#endif
