/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output lanes that wait for each other's credits. A lane that lacks credits waits for the input buffer
 * at the other end of its link, and so for the output lanes to which packets of that buffer want to
 * go. It is stuck if all of these are stuck: lanes that can move are taken away until none is left
 * that can, and what remains are the cycles and the lanes that wait for them.
 */
#include "engine/fabric/credit.h"
#include "engine/fabric/report.h"

enum { MOVES = 0, STUCK = 1, SEEN = 2 }; /* from SEEN on: number of a walk */

/* The output lane that the source's packets wait for; NULL: they move. */
static struct fabric_lane *waits_for(const struct fabric_source *s)
{
	return s->sending || !s->head || list_empty(&s->request) ? NULL : s->lane;
}

static bool is_stuck(const struct fabric_lane *lane)
{
	return lane && lane->mark != MOVES;
}

/* The next lane that a stuck lane waits for, by a queue with packets; NULL: it is not stuck. */
static struct fabric_lane *next_of(const struct fabric_lane *lane)
{
	const struct fabric_port *peer = lane->port->peer;
	const struct fabric_lane *in = lane->peer;
	struct fabric_lane *next = NULL;

	if (peer->node->kind == FABRIC_HOST)
		return NULL;
	if (!in->by_output) {
		next = waits_for(&in->in);
		return is_stuck(next) ? next : NULL;
	}
	for (unsigned i = 1; i <= peer->node->ports; i++) {
		const struct fabric_source *s = &in->by_output[i];

		if (!s->head && !s->sending)
			continue;
		next = waits_for(s);
		if (!is_stuck(next))
			return NULL;
	}
	return next;
}

static bool waits_still(const struct fabric *f, struct fabric_lane *lane, uint64_t still_ps)
{
	const struct fabric_source *s;

	if (list_empty(&lane->requests) || !lane->starved || lane->port->sending || !lane->port->up ||
	    f->now_ps - lane->starved_ps < still_ps)
		return false;
	s = list_entry(lane->requests.next, struct fabric_source, request);
	return !fabric_credit_suffices(lane, fabric_blocks(s->head->bytes));
}

/* All lanes that lack credits, in scratch; how many. */
static uint32_t collect(struct fabric *f, uint64_t still_ps)
{
	uint32_t count = 0;

	for (uint32_t n = 0; n < f->node_count; n++) {
		for (unsigned i = 1; i <= f->nodes[n]->ports; i++) {
			struct fabric_port *o = &f->nodes[n]->port[i];

			for (unsigned k = 0; o->lanes && k < o->link_lanes; k++) {
				struct fabric_lane *lane = &o->lanes[k];

				lane->mark = waits_still(f, lane, still_ps) ? STUCK : MOVES;
				if (lane->mark == STUCK)
					f->scratch[count++] = lane;
			}
		}
	}
	return count;
}

/* Takes away lanes that can move; how many remain. */
static uint32_t reduce(struct fabric *f, uint32_t count)
{
	uint32_t before;

	do {
		uint32_t to = 0;

		before = count;
		for (uint32_t i = 0; i < count; i++) {
			if (next_of(f->scratch[i]))
				f->scratch[to++] = f->scratch[i];
			else
				f->scratch[i]->mark = MOVES;
		}
		count = to;
	} while (count < before);
	return count;
}

static void tell(struct fabric *f, struct fabric_lane *first)
{
	struct fabric_lane *lane = first;
	size_t count = 0;

	do {
		f->cycle[count++] = (struct fabric_lane_at){
			lane->port->node->number, lane->port->number, lane->number
		};
		lane = next_of(lane);
	} while (lane != first);
	if (f->ops.deadlock)
		f->ops.deadlock(f->ops.arg, f->cycle, count);
}

unsigned fabric_find_deadlock(struct fabric *f, uint64_t still_ps)
{
	uint32_t count = reduce(f, collect(f, still_ps));
	unsigned found = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct fabric_lane *lane = f->scratch[i];

		/* Walks until a lane that a walk has seen: of this walk, it is a cycle. */
		while (lane->mark == STUCK) {
			lane->mark = SEEN + i;
			lane = next_of(lane);
		}
		if (lane->mark == SEEN + i) {
			tell(f, lane);
			found++;
		}
	}
	return found;
}
