/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that were captured at two places: at two interfaces, or sent and received. */
#ifndef ANALYZER_COPIES_H
#define ANALYZER_COPIES_H

#include "analyzer/flow.h"

#define ANALYZER_COPIES_KEPT 128

struct analyzer_copies {
	uint32_t next;
	struct {
		uint32_t psn, origin;
		int64_t when_ns;
		uint8_t opcode, syndrome;
		bool waits; /* no copy was found yet */
	} last[ANALYZER_COPIES_KEPT];
};

/* Is it the copy of a packet of this flow that was captured elsewhere? Remembers it if not. */
bool analyzer_copies_is(struct analyzer_flow *f, const struct analyzer_packet *p);

#endif
