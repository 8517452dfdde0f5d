/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs directions ahead of the analysis; see scout.h. */
#include "analyzer/scout.h"

#include <stdlib.h>
#include <string.h>

#define MTU_MIN 256
#define TRIES_MAX 64
#define SCAN_MAX 1024

static struct analyzer_scout *scout_of(struct analyzer_flow *f)
{
	if (!f->scout)
		f->scout = calloc(1, sizeof(*f->scout));
	return f->scout;
}

static void request(struct analyzer_scout *s, const struct analyzer_packet *p)
{
	unsigned i = s->requests++ % ANALYZER_SCOUT_REQUESTS;

	s->request[i].psn = p->ib.psn;
	s->request[i].read = analyzer_operation(p->ib.opcode) == IB_READ_REQUEST;
	s->request[i].length = p->ib.headers & IB_HAS_RETH ? p->ib.reth.length : 0;
}

/* Did flow x send a request that the packet may answer? */
static bool fits(const struct analyzer_flow *x, const struct analyzer_packet *p)
{
	uint8_t op = analyzer_operation(p->ib.opcode);
	bool read = op >= IB_READ_RESPONSE_FIRST && op <= IB_READ_RESPONSE_ONLY;
	const struct analyzer_scout *s = x->scout;
	unsigned count = s && s->requests < ANALYZER_SCOUT_REQUESTS ? s->requests : ANALYZER_SCOUT_REQUESTS;

	for (unsigned i = 0; s && i < count; i++) {
		uint32_t behind = (p->ib.psn - s->request[i].psn) & IB_QPN_MASK;
		uint32_t span = s->request[i].read ? s->request[i].length / MTU_MIN + 1 : 1;

		if (behind >= span || (read && !s->request[i].read))
			continue;
		if (op != IB_READ_RESPONSE_ONLY || s->request[i].length == p->ib.bytes)
			return true;
	}
	return false;
}

static bool possible(const struct analyzer_flow *x, const struct analyzer_flow *y,
		     const struct analyzer_packet *p)
{
	return x != y && !x->partner && fits(x, p) && analyzer_table_opposite(x, y);
}

/* All flows that the first answer can belong to; none if there are too many. */
static void collect(struct analyzer_table *t, struct analyzer_flow *y, const struct analyzer_packet *p)
{
	struct analyzer_scout *s = y->scout;
	struct analyzer_flow **at = analyzer_table_opposites(t, y), *x;

	s->candidates = 0;
	for (unsigned i = 0; i < SCAN_MAX && (x = analyzer_table_alone(at)); i++, at = &x->next_host) {
		if (!possible(x, y, p))
			continue;
		if (s->candidates == ANALYZER_SCOUT_CANDIDATES) {
			s->candidates = 0;
			return;
		}
		s->candidate[s->candidates++] = x;
	}
}

static void narrow(struct analyzer_flow *y, const struct analyzer_packet *p)
{
	struct analyzer_scout *s = y->scout;
	unsigned left = 0;

	for (unsigned i = 0; i < s->candidates; i++)
		if (possible(s->candidate[i], y, p))
			s->candidate[left++] = s->candidate[i];
	s->candidates = left;
}

static void forget(struct analyzer_flow *f)
{
	free(f->scout);
	f->scout = NULL;
}

void analyzer_scout_packet(struct analyzer_table *t, struct analyzer_flow *f,
			   const struct analyzer_packet *p)
{
	struct analyzer_scout *s = f->partner ? NULL : scout_of(f);

	if (!s)
		return;
	if (!analyzer_is_answer(p->ib.opcode)) {
		request(s, p);
		return;
	}
	if (s->tries++ >= TRIES_MAX)
		return;
	if (s->candidates)
		narrow(f, p);
	if (!s->candidates)
		collect(t, f, p);
	if (s->candidates != 1)
		return;
	analyzer_table_join(s->candidate[0], f, true);
	forget(f->partner);
	forget(f);
}
