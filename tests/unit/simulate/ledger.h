/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accounts for every sample. When a path is destroyed, each sample that came into it must
 * have left it, into its destinations or into one of the gateway's counters. Each sample
 * that a path gave to a node must have been taken or refused by the node, or dropped by one
 * of its hooks.
 *
 * The calls between the gateway's parts are observed by --wrap of the linker; their
 * counters are read when paths and nodes are destroyed.
 */
#ifndef TEST_SIMULATE_LEDGER_H
#define TEST_SIMULATE_LEDGER_H

#include <stdint.h>

/* Where the samples of all paths and nodes went; a sample counts once for each path. */
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

/* All paths and nodes must have been destroyed. */
void ledger_end(void);
/* The numbers of a run or of all, one line. */
void ledger_print(void);

#endif
