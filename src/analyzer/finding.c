/* SPDX-License-Identifier: BSD-2-Clause */
/* Stalls of a flow; see finding.h. */
#include "analyzer/finding.h"

#include <stdlib.h>

#include "analyzer/pending.h"
#include "engine/rc/rules.h"

#define TIMEOUT_UNIT_NS 4096
/* Detected timeouts are 1.55 to 2.0 times the nominal ones; the code of the largest nominal
 * one with a factor of this at least is reported. */
#define FACTOR_MIN 1.4
#define CODE_MAX 31

static void estimate(struct analyzer_finding *g)
{
	double units = (double)g->stall_ns / TIMEOUT_UNIT_NS;
	unsigned code = 1;

	while (code < CODE_MAX && units / (double)(UINT64_C(1) << (code + 1)) >= FACTOR_MIN)
		code++;
	g->timeout_code = code;
	g->timeout_factor = units / (double)(UINT64_C(1) << code);
}

/* A finding to fill in, or NULL. */
static struct analyzer_finding *add(struct analyzer_result *r)
{
	r->findings_all++;
	if (r->findings == ANALYZER_FINDINGS_MAX)
		return NULL;
	if ((r->findings & (r->findings - 1)) == 0) { /* doubles: 1, 2, 4 ... */
		struct analyzer_finding *more = realloc(r->finding, (r->findings ? r->findings * 2u : 1u) *
								    sizeof(*more));

		if (!more)
			return NULL;
		r->finding = more;
	}
	return &r->finding[r->findings++];
}

/* Was q sent first in the window of a pending period and never answered? */
static struct analyzer_pending *window_of(struct analyzer_flow *f, const struct analyzer_request *q)
{
	return q->answers || !q->open ? NULL : analyzer_pending_by_id(f, q->pending);
}

static void fill(struct analyzer_finding *g, const struct analyzer_request *q,
		 const struct analyzer_pending *p, int64_t now_ns, uint64_t packet)
{
	*g = (struct analyzer_finding){
		.kind = ANALYZER_TIMEOUT,
		.begin_ns = q->last_ns,
		.stall_ns = now_ns - q->last_ns,
		.psn = q->psn,
		.opcode = q->opcode,
		.stuck = 1,
		.packet_sent = q->last_packet,
		.packet_again = packet,
	};
	if (!p)
		return;
	g->side = p->side;
	g->psn_before = p->psn;
	g->opcode_before = p->opcode;
	g->packet_open = p->open_packet;
	g->packet_closed = p->close_packet;
	g->after_ns = q->first_ns - p->open_ns;
	g->confidence = p->side != ANALYZER_SIDE_UNKNOWN && p->closed ? ANALYZER_HIGH : ANALYZER_MEDIUM;
}

/* The last finding is of the same request, which has timed out before: -1 if it is not. */
static int repeated(struct analyzer_flow *f, const struct analyzer_request *q, int64_t now_ns,
		    uint64_t packet)
{
	struct analyzer_result *r = &f->result;
	struct analyzer_finding *g = r->findings ? &r->finding[r->findings - 1] : NULL;

	if (!g || g->psn != q->psn || g->packet_answer || !g->timeouts ||
	    g->packet_again != q->last_packet)
		return -1;
	g->timeouts++;
	g->stall_ns = now_ns - g->begin_ns;
	g->packet_again = packet;
	return (int)r->findings - 1;
}

int analyzer_finding_timeout(struct analyzer_flow *f, const struct analyzer_request *q,
			     int64_t now_ns, uint64_t packet, enum analyzer_kind *kind)
{
	struct analyzer_pending *p = q->sends == 1 ? window_of(f, q) : NULL;
	int again = repeated(f, q, now_ns, packet);
	struct analyzer_finding *g;

	*kind = p ? ANALYZER_DAMMING : ANALYZER_TIMEOUT;
	if (again >= 0) {
		*kind = f->result.finding[again].kind;
		return again;
	}
	f->result.kinds |= 1u << *kind;
	g = add(&f->result);
	if (!g)
		return -1;
	fill(g, q, p, now_ns, packet);
	g->kind = *kind;
	g->timeouts = 1;
	estimate(g);
	return (int)f->result.findings - 1;
}

bool analyzer_finding_recovered(struct analyzer_flow *f, const struct analyzer_request *q,
				int64_t now_ns, uint64_t packet)
{
	struct analyzer_pending *p = q->sends == 1 ? window_of(f, q) : NULL;
	struct analyzer_finding *g;

	if (!p)
		return false;
	f->result.kinds |= 1u << ANALYZER_DAMMING_RECOVERED;
	g = add(&f->result);
	if (!g)
		return true;
	fill(g, q, p, now_ns, packet);
	g->kind = ANALYZER_DAMMING_RECOVERED;
	return true;
}

void analyzer_finding_answered(struct analyzer_flow *f, uint32_t psn, uint64_t packet)
{
	struct analyzer_result *r = &f->result;
	struct analyzer_finding *g = r->findings ? &r->finding[r->findings - 1] : NULL;

	if (g && !g->packet_answer && rc_psn_diff(psn, g->psn) >= 0)
		g->packet_answer = packet;
}
