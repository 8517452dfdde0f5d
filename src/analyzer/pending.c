/* SPDX-License-Identifier: BSD-2-Clause */
/* Pending periods of a flow; see pending.h. */
#include "analyzer/pending.h"

#include "engine/rc/packet.h"
#include "engine/rc/rules.h"

/* The longest real wait that was measured is five times the nominal one. */
#define INFLATION_MAX 6
/* An open period whose resend was not captured ends after this at the latest. */
#define OPEN_NS_MIN (5 * MS)

int64_t analyzer_rnr_ns(uint8_t syndrome)
{
	return (int64_t)rc_rnr_ns(syndrome & RC_SYN_VALUE);
}

struct analyzer_pending *analyzer_pending_open(struct analyzer_flow *f,
					       const struct analyzer_request *q,
					       enum analyzer_side side, int64_t now_ns,
					       uint64_t packet)
{
	uint32_t id = ++f->pending_last ? f->pending_last : ++f->pending_last;
	struct analyzer_pending *p = &f->pending[id % ANALYZER_PENDING_KEPT];

	*p = (struct analyzer_pending){ .id = id, .psn = q->psn, .opcode = q->opcode,
					.side = side, .open_ns = now_ns, .open_packet = packet };
	return p;
}

void analyzer_pending_close(struct analyzer_pending *p, int64_t now_ns, uint64_t packet)
{
	p->closed = true;
	p->close_ns = now_ns;
	p->close_packet = packet;
}

struct analyzer_pending *analyzer_pending_by_id(struct analyzer_flow *f, uint32_t id)
{
	struct analyzer_pending *p = &f->pending[id % ANALYZER_PENDING_KEPT];

	return id && p->id == id ? p : NULL;
}

struct analyzer_pending *analyzer_pending_now(struct analyzer_flow *f)
{
	struct analyzer_pending *p = analyzer_pending_by_id(f, f->pending_last);

	return p && !p->closed ? p : NULL;
}

uint32_t analyzer_pending_window(struct analyzer_flow *f, uint32_t psn, int64_t now_ns)
{
	const struct analyzer_pending *p = analyzer_pending_by_id(f, f->pending_last);
	int64_t end_ns;

	if (!p || rc_psn_diff(psn, p->psn) <= 0)
		return 0;
	end_ns = p->closed ? p->close_ns : p->open_ns;
	if (p->answer_ns > end_ns)
		end_ns = p->answer_ns;
	end_ns += ANALYZER_WINDOW_NS;
	if (!p->closed && p->side == ANALYZER_SERVER) {
		int64_t wait_ns = INFLATION_MAX * p->nominal_ns;

		wait_ns = p->open_ns + (wait_ns > OPEN_NS_MIN ? wait_ns : OPEN_NS_MIN);
		end_ns = wait_ns > end_ns ? wait_ns : end_ns;
	}
	return now_ns >= p->open_ns && now_ns <= end_ns ? p->id : 0;
}
