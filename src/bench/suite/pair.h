/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes of one program: a server, which listens on a TCP port, and its client. */
#ifndef BENCH_SUITE_PAIR_H
#define BENCH_SUITE_PAIR_H

#include <stdatomic.h>

#include "bench/kind/process.h"

/* A TCP port that nobody uses, or a negative errno. */
int pair_free_port(void);

/*
 * Starts the server, waits until it listens on `port`, starts the client, waits for the end of
 * both. 0; -EINTR: `stop`; -ETIMEDOUT; -EIO: one of them failed; or another negative errno.
 * Logged but for -EINTR. No process is left.
 */
int pair_run(struct process *server, struct process *client, int port,
	     double seconds_max, const atomic_bool *stop);

#endif
