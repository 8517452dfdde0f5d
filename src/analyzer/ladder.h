/* SPDX-License-Identifier: BSD-2-Clause */
/* The packets of a flow around its first stall, for a diagram of them. */
#ifndef ANALYZER_LADDER_H
#define ANALYZER_LADDER_H

#include "analyzer/result.h"

#define ANALYZER_LADDER_MAX 128

enum analyzer_rung_note { /* bits */
	ANALYZER_RUNG_LOST = 1 << 0,      /* no answer came, and it was sent again much later */
	ANALYZER_RUNG_DISCARDED = 1 << 1, /* the requester dropped this answer */
	ANALYZER_RUNG_AGAIN = 1 << 2,
	ANALYZER_RUNG_OPENS = 1 << 3,     /* a pending period */
	ANALYZER_RUNG_CLOSES = 1 << 4,
};

struct analyzer_rung {
	uint64_t number;
	int64_t when_ns;
	bool answer;               /* from the responder */
	uint8_t opcode, syndrome;
	uint32_t psn;
	unsigned notes;            /* enum analyzer_rung_note */
	enum analyzer_trigger trigger; /* with ANALYZER_RUNG_AGAIN */
};

struct analyzer_ladder {
	uint64_t added;
	bool ending;               /* the stall was found */
	unsigned still;            /* packets that are still taken */
	struct analyzer_rung rung[ANALYZER_LADDER_MAX];
};

/* Without a ladder (NULL) these do nothing. */
void analyzer_ladder_add(struct analyzer_ladder *l, const struct analyzer_packet *p, bool answer);
/* Notes something about a packet that was added; one that is not kept is ignored. */
void analyzer_ladder_note(struct analyzer_ladder *l, uint64_t number, unsigned notes);
void analyzer_ladder_again(struct analyzer_ladder *l, uint64_t number, enum analyzer_trigger trigger);
/* A stall was found: a few more packets are taken. */
void analyzer_ladder_end(struct analyzer_ladder *l);
/* The kept packets in order, from 0; NULL behind the last. */
const struct analyzer_rung *analyzer_ladder_at(const struct analyzer_ladder *l, unsigned i);

#endif
