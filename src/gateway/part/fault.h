/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts faults of single messages and logs them at most once a second, so that a peer
 * cannot fill the log.
 *
 * A node-type that has one of them gives its first figures (node.h) the numbers of the kinds
 * that it notes, so that the control requests show them.
 */
#ifndef GATEWAY_PART_FAULT_H
#define GATEWAY_PART_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/spin.h"

struct node;

enum socket_fault {
	FAULT_MALFORMED, /* the format cannot read the message */
	FAULT_TRUNCATED, /* the message was longer than the buffer */
	FAULT_FOREIGN,   /* verify_source: the sender is not the peer */
	FAULT_OVERRUN,   /* the kernel had no room: reading is too slow */
	FAULT_DROPPED,   /* the peer takes nothing, or too slowly */
	FAULT_KINDS,
};

struct fault_counters {
	struct node *node;
	struct spin lock;
	uint64_t count[FAULT_KINDS], said[FAULT_KINDS];
	uint64_t next_ns;
	/* fault_may_log(): lines of the second that began at lines_ns, and those that were too many. */
	uint64_t lines_ns;
	unsigned lines, left_out;
};

/* Counts `n` faults; the text gives the details of this one. Any thread. */
void fault_note(struct fault_counters *f, enum socket_fault kind, uint64_t n,
		const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Whether a line that a peer can cause as often as it likes is to be logged now: so many of the
 * node in a second. The number of those left out is logged. Any thread. */
bool fault_may_log(struct fault_counters *f);

/* Logs the faults that were not logged yet. */
void fault_finish(struct fault_counters *f);

#endif
