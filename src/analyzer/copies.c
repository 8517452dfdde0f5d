/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that were captured at two places; see copies.h. */
#include "analyzer/copies.h"

#include <stdlib.h>

bool analyzer_copies_is(struct analyzer_flow *f, const struct analyzer_packet *p)
{
	uint8_t syndrome = p->ib.headers & IB_HAS_AETH ? p->ib.aeth.syndrome : 0;
	struct analyzer_copies *c = f->copies;
	uint32_t i;

	if (!c)
		c = f->copies = calloc(1, sizeof(*c));
	if (!c)
		return false;
	for (i = 0; i < ANALYZER_COPIES_KEPT; i++) {
		if (!c->last[i].waits || c->last[i].psn != p->ib.psn || c->last[i].opcode != p->ib.opcode ||
		    c->last[i].syndrome != syndrome || c->last[i].origin == p->origin ||
		    p->when_ns - c->last[i].when_ns >= ANALYZER_TIMEOUT_NS_MIN)
			continue;
		c->last[i].waits = false;
		return true;
	}
	i = c->next++ % ANALYZER_COPIES_KEPT;
	c->last[i].psn = p->ib.psn;
	c->last[i].origin = p->origin;
	c->last[i].when_ns = p->when_ns;
	c->last[i].opcode = p->ib.opcode;
	c->last[i].syndrome = syndrome;
	c->last[i].waits = true;
	return false;
}
