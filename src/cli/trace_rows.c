/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a diagram of packets; see trace_rows.h. */
#include "cli/trace_rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/pending.h"
#include "analyzer/words.h"

/* A pause that a diagram breaks off: longer than a round trip or a usual page fault. */
#define SILENCE_NS_MIN INT64_C(1000000)

enum syndrome { RNR = 1, NAK = 3 };

static void label_of(const struct analyzer_rung *r, char *text, size_t size)
{
	unsigned kind = (r->opcode & IB_OPERATION_MASK) == IB_ACKNOWLEDGE ? r->syndrome >> 5 : 0;

	if (kind == RNR)
		snprintf(text, size, "RNR NAK PSN %u, %.2f ms", r->psn,
			 (double)analyzer_rnr_ns(r->syndrome) / 1e6);
	else if (kind == NAK && !(r->syndrome & 31))
		snprintf(text, size, "sequence NAK PSN %u", r->psn);
	else if (kind == NAK)
		snprintf(text, size, "NAK code %u PSN %u", r->syndrome & 31, r->psn);
	else
		snprintf(text, size, "%s PSN %u", ib_opcode_name(r->opcode), r->psn);
}

static void note(struct trace_row *row, const char *before, const char *text)
{
	snprintf(row->note[row->notes], sizeof(row->note[0]), "%s%s", before, text);
	row->notes++;
}

static void notes_of(struct trace_row *row, unsigned notes)
{
	if (notes & ANALYZER_RUNG_AGAIN)
		note(row, "again: ", analyzer_trigger_name(row->rung->trigger));
	if (notes & ANALYZER_RUNG_DISCARDED)
		note(row, "", "dropped by the requester");
	if (notes & ANALYZER_RUNG_OPENS)
		note(row, "", "pending period begins");
	if (notes & ANALYZER_RUNG_CLOSES)
		note(row, "", "pending period ends");
	if (notes & ANALYZER_RUNG_LOST)
		note(row, "", "LOST");
}

unsigned trace_rows(const struct analyzer_ladder *l, struct trace_row row[ANALYZER_LADDER_MAX])
{
	const struct analyzer_rung *r;
	bool pending = false;
	unsigned count = 0;

	for (; l && (r = analyzer_ladder_at(l, count)); count++) {
		struct trace_row *to = &row[count];
		int64_t pause_ns = count ? r->when_ns - to[-1].rung->when_ns : 0;

		memset(to, 0, sizeof(*to));
		to->rung = r;
		label_of(r, to->label, sizeof(to->label));
		notes_of(to, r->notes);
		pending &= !(r->notes & ANALYZER_RUNG_CLOSES);
		to->pending = pending;
		to->opens = (r->notes & ANALYZER_RUNG_OPENS) != 0;
		to->lost = !r->answer && (r->notes & ANALYZER_RUNG_LOST) != 0;
		to->silence_ns = pause_ns >= SILENCE_NS_MIN ? pause_ns : 0;
		pending |= to->opens;
	}
	return count;
}
