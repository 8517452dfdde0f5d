/* SPDX-License-Identifier: BSD-2-Clause */
/* Waking the peer; see wake.h. */
#define LOG_ROOM "shm"
#include <string.h>

#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "transport/shm/link/control.h"
#include "transport/shm/link/state.h"
#include "transport/shm/link/wake.h"
#include "util/log.h"
#include "util/wakeup.h"

void shm_wake(struct shm_link *l)
{
	int ret = 0;

	HCA_COUNT_PROCESS(KICKS_SENT, 1);
	if (unlikely(l->kick_fd < 0))
		shm_control_kick(l->fd);
	else
		ret = wakeup_post(l->kick_fd);
	if (ret)
		log_debug("peer pid %d not woken: %s", (int)l->pid, strerror(-ret));
}

/* The target's program may read its memory only and not poll, and our program sleeps, so
 * that wake_idle_peer(), which needs polls, does not wake the target: without this the
 * request would wait for the next tick of the target's progress thread. */
void shm_wake_target(struct shm_link *l)
{
	if (atomic_load_explicit(&l->peer->wants_kick, memory_order_relaxed) ||
	    atomic_load_explicit(&hca_process.segment->wants_kick,
				 memory_order_relaxed) != HCA_WAKE_ALL)
		return;
	shm_wake(l);
}
