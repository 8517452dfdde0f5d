/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator that a node of the type `shmem` starts (`exec`): one child
 * process, which ends with the gateway. It is not started again when it ends.
 */
#ifndef GATEWAY_NODE_SHMEM_SPAWN_H
#define GATEWAY_NODE_SHMEM_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

struct child {
	pid_t pid; /* 0: none */
};

/* Starts argv[0], looked for in PATH; `node` stands in messages. 0 or a negative
 * errno, which is logged. */
int shmem_child_start(struct child *c, const char *node, char *const argv[]);

/* Whether it runs; its end is logged, once. */
bool child_running(struct child *c, const char *node);

/* Asks it to end, and after two seconds ends it. */
void shmem_child_stop(struct child *c, const char *node);

#endif
