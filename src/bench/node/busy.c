/* SPDX-License-Identifier: BSD-2-Clause */
/* Other work on the machine while a case runs; see gateway.h. */
#define LOG_ROOM "bench/node"
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "bench/node/gateway.h"
#include "util/log.h"
#include "util/spawn.h"

static void spin_for_ever(void)
{
	/* Ctrl-C is for the benchmark, which ends us. */
	signal(SIGINT, SIG_IGN);
	for (volatile unsigned long i = 0;; i++)
		;
}

int bench_node_busy_start(pid_t *pids, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		pids[i] = spawn_copy(SIGKILL);
		if (!pids[i])
			spin_for_ever();
		if (pids[i] < 0) {
			int err = errno;

			pids[i] = 0;
			log_error("cannot start a process: %s", strerror(err));
			return -err;
		}
	}
	return 0;
}

void bench_node_busy_end(pid_t *pids, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (!pids[i])
			continue;
		kill(pids[i], SIGKILL);
		spawn_wait(pids[i]);
		pids[i] = 0;
	}
}
