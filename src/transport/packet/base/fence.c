/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts threads that copy by a key, for a thread that withdraws the key. A thread that copies
 * counts itself in before it looks at the key, and out when the copy is done. A thread that has
 * withdrawn a key waits until those that were counted then are out; a thread that counts itself
 * in later does not find the key. There are two counts, so that the one that is waited for only
 * falls.
 */
#include <sched.h>

#include "transport/packet/base/state.h"
#include "util/fence.h"

unsigned packet_copy_begin(struct packet_port *port)
{
	unsigned turn = atomic_load_explicit(&port->phase, memory_order_relaxed) & 1;

	atomic_fetch_add(&port->copying[turn], 1);
	/* The count is visible before the key is looked at. */
	fence_behind_exchange();
	return turn;
}

void packet_copy_end(struct packet_port *port, unsigned turn)
{
	atomic_fetch_sub_explicit(&port->copying[turn], 1, memory_order_release);
}

static void wait_for(atomic_uint *copying)
{
	for (unsigned i = 1; atomic_load(copying); i++) {
		if (i % SPIN_TRIES)
			cpu_relax();
		else
			sched_yield();
	}
}

void packet_fence(struct packet_port *port)
{
	unsigned turn;

	atomic_thread_fence(memory_order_seq_cst);
	turn = atomic_fetch_add(&port->phase, 1) & 1;
	wait_for(&port->copying[turn]);
	/* A thread may have read the phase before its last change. */
	wait_for(&port->copying[!turn]);
}

void packet_qp_fence(struct packet_port *port)
{
	packet_fence(port);
	/* The holder of the lock may wait for a build of this thread. */
	if (hca_self.depth)
		return;
	hca_lock(&port->receive_lock);
	hca_unlock(&port->receive_lock);
}

bool packet_copies(struct packet_port *port)
{
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load(&port->copying[0]) || atomic_load(&port->copying[1]);
}
