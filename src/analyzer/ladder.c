/* SPDX-License-Identifier: BSD-2-Clause */
/* The packets of a flow around its first stall; see ladder.h. */
#include "analyzer/ladder.h"

#define AFTER_STALL 12

void analyzer_ladder_add(struct analyzer_ladder *l, const struct analyzer_packet *p, bool answer)
{
	if (!l || (l->ending && !l->still))
		return;
	l->still -= l->ending;
	l->rung[l->added++ % ANALYZER_LADDER_MAX] = (struct analyzer_rung){
		.number = p->number,
		.when_ns = p->when_ns,
		.answer = answer,
		.opcode = p->ib.opcode,
		.psn = p->ib.psn,
		.syndrome = p->ib.headers & IB_HAS_AETH ? p->ib.aeth.syndrome : 0,
	};
}

static unsigned kept(const struct analyzer_ladder *l)
{
	return l->added < ANALYZER_LADDER_MAX ? (unsigned)l->added : ANALYZER_LADDER_MAX;
}

static struct analyzer_rung *find(struct analyzer_ladder *l, uint64_t number)
{
	for (unsigned i = 0; l && i < kept(l); i++)
		if (l->rung[i].number == number)
			return &l->rung[i];
	return NULL;
}

void analyzer_ladder_note(struct analyzer_ladder *l, uint64_t number, unsigned notes)
{
	struct analyzer_rung *r = find(l, number);

	if (r)
		r->notes |= notes;
}

void analyzer_ladder_again(struct analyzer_ladder *l, uint64_t number, enum analyzer_trigger trigger)
{
	struct analyzer_rung *r = find(l, number);

	if (!r)
		return;
	r->notes |= ANALYZER_RUNG_AGAIN;
	r->trigger = trigger;
}

void analyzer_ladder_end(struct analyzer_ladder *l)
{
	if (!l || l->ending)
		return;
	l->ending = true;
	l->still = AFTER_STALL;
}

const struct analyzer_rung *analyzer_ladder_at(const struct analyzer_ladder *l, unsigned i)
{
	if (i >= kept(l))
		return NULL;
	return &l->rung[(l->added - kept(l) + i) % ANALYZER_LADDER_MAX];
}
