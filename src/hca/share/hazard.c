/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys that this process copies with, published for their owners; key.c explains how
 * owners use this.
 */
#include <sched.h>

#include "hca/share/process.h"
#include "util/fence.h"

int hca_hazard_enter(uint64_t key_id)
{
	_Atomic uint64_t *hazards = hca_process.segment->hazards;

	for (unsigned i = 0;; i = (i + 1) % HCA_HAZARDS) {
		uint64_t free_slot = 0;

		if (atomic_compare_exchange_strong(&hazards[i], &free_slot,
						   key_id)) {
			/* The store is visible before the caller reads the key. */
			fence_behind_exchange();
			return (int)i;
		}
		if (i == HCA_HAZARDS - 1)
			sched_yield();
	}
}

void hca_hazard_leave(int slot)
{
	_Atomic uint32_t *turn = &hca_process.segment->hazard_turns[slot];

	/* Only the thread that has the slot writes this. */
	atomic_store_explicit(turn,
			      atomic_load_explicit(turn, memory_order_relaxed) + 1,
			      memory_order_release);
	atomic_store_explicit(&hca_process.segment->hazards[slot], 0,
			      memory_order_release);
}
