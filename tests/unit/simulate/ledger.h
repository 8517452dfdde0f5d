/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The account of every sample. What comes into a path must have left it when the
 * path is destroyed: into its destinations, or into one of the gateway's counters;
 * and what a path gave to a node must be what the node took, refused, or a hook of
 * it dropped.
 *
 * What the gateway's parts do is seen where they call each other (--wrap of the
 * linker); what they count is read when path and node are destroyed.
 */
#ifndef TEST_SIMULATE_LEDGER_H
#define TEST_SIMULATE_LEDGER_H

#include <stdint.h>

/* Where samples went, of all paths and nodes; a sample counts once for each path that
 * it passes. */
struct ledger {
	uint64_t handed;         /* came out of nodes */
	uint64_t delivered;      /* taken by nodes */
	uint64_t queue_full;     /* dropped by `queue_full` */
	uint64_t rested;         /* path paused or stopped */
	uint64_t not_sent;       /* node paused or stopped, or it refused */
	uint64_t unmade;         /* no free sample */
	uint64_t hooks;          /* dropped by hooks */
	uint64_t absorbed;       /* by the register: mode, mask */
	uint64_t no_destination; /* ended in a path without `out` */
	uint64_t peer;           /* lost with a peer that died */
	uint64_t stopped;        /* in a node when it was stopped, counted there */
};

extern struct ledger ledger;

/* Nothing may be open any more. */
void ledger_end(void);
/* The numbers of a run or of all, one line. */
void ledger_print(void);

#endif
