/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes wrong with single messages: counted, and told at most once a second,
 * because a peer must not be able to fill the log.
 */
#ifndef GATEWAY_PART_FAULT_H
#define GATEWAY_PART_FAULT_H

#include <stdint.h>

#include "util/spin.h"

enum socket_fault {
	FAULT_MALFORMED, /* what came is nothing the format understands */
	FAULT_TRUNCATED, /* it was longer than there was room for */
	FAULT_FOREIGN,   /* verify_source: of somebody else */
	FAULT_OVERRUN,   /* the kernel had no room: reading is too slow */
	FAULT_TOO_LONG,  /* a sample is too long, or the format cannot hold it */
	FAULT_UNSENT,    /* the system refused to send it */
	FAULT_DROPPED,   /* the peer takes nothing, or too slowly */
	FAULT_KINDS,
};

struct fault_counters {
	const char *node; /* name */
	struct spin lock;
	uint64_t count[FAULT_KINDS], said[FAULT_KINDS];
	uint64_t next_ns;
};

/* Adds `n`; the text says what is special about this one. Any thread. */
void fault_note(struct fault_counters *f, enum socket_fault kind, uint64_t n,
		const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Tells what has not been told yet. */
void fault_finish(struct fault_counters *f);

#endif
