/* SPDX-License-Identifier: BSD-2-Clause */
/* See copies.h. */
#include "hca/run/copies.h"

#include <sched.h>

#include "util/spin.h"

static void wait_for(atomic_uint *copying)
{
	for (unsigned i = 1; atomic_load(copying); i++) {
		if (i % SPIN_TRIES)
			cpu_relax();
		else
			sched_yield();
	}
}

void hca_copies_wait(struct hca_copies *c)
{
	unsigned turn;

	atomic_thread_fence(memory_order_seq_cst);
	turn = atomic_fetch_add(&c->phase, 1) & 1;
	wait_for(&c->under_way[turn]);
	/* A thread may have read the phase before its last change. */
	wait_for(&c->under_way[!turn]);
}

bool hca_copies_any(struct hca_copies *c)
{
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load(&c->under_way[0]) || atomic_load(&c->under_way[1]);
}

void hca_copies_forked(struct hca_copies *c)
{
	atomic_store(&c->under_way[0], 0);
	atomic_store(&c->under_way[1], 0);
}
