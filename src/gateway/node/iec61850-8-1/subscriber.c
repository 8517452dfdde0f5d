/* SPDX-License-Identifier: BSD-2-Clause */
/* See subscriber.h. */
#include "gateway/node/iec61850-8-1/subscriber.h"

#define MS_NS UINT64_C(1000000)

/* How far `to` is ahead of `from`; -1: it is behind. */
static int64_t ahead(uint32_t from, uint32_t to)
{
	if (to >= from)
		return to > UINT32_MAX - GOOSE_WRAP_MAX && from <= GOOSE_WRAP_MAX ?
			       -1 : (int64_t)to - from;
	if (to && to <= GOOSE_WRAP_MAX && from > UINT32_MAX - GOOSE_WRAP_MAX)
		return (int64_t)(UINT32_MAX - from) + to;
	return -1;
}

bool goose_subscriber_expire(struct goose_subscriber *s, uint64_t now_ns)
{
	if (!s->alive || now_ns < s->until_ns)
		return false;
	s->alive = false;
	return true;
}

/* The message is used. */
static struct goose_arrival accept(struct goose_subscriber *s, const struct goose *g, bool simulated,
			     struct goose_arrival a, uint64_t now_ns)
{
	a.revised = s->known && g->revision != s->revision;
	a.resumed = s->known && !s->alive;
	s->known = s->alive = true;
	s->simulated = simulated;
	s->state = g->state;
	s->sequence = g->sequence;
	s->revision = g->revision;
	s->used_ns = now_ns;
	s->until_ns = now_ns + g->allowed_live_ms * MS_NS;
	return a;
}

/* Of a message that would be behind the last one: it comes late, or the publisher has begun
 * again. */
static struct goose_arrival go_back(struct goose_subscriber *s, const struct goose *g, bool simulated,
			      uint64_t now_ns)
{
	if (s->alive && now_ns - s->used_ns < GOOSE_LATE_MAX_NS)
		return (struct goose_arrival){ .verdict = GOOSE_OLD };
	return accept(s, g, simulated,
		      (struct goose_arrival){ .verdict = GOOSE_CHANGE, .restarted = true }, now_ns);
}

static struct goose_arrival take_next(struct goose_subscriber *s, const struct goose *g, bool simulated,
				uint64_t now_ns)
{
	int64_t states = ahead(s->state, g->state);
	struct goose_arrival a = { .verdict = GOOSE_CHANGE };

	if (states < 0)
		return go_back(s, g, simulated, now_ns);
	if (states) {
		a.lost_changes = (uint32_t)(states - 1);
		/* Of each state that is missing, one at least. */
		a.lost_messages = g->sequence > UINT32_MAX - a.lost_changes ?
					  UINT32_MAX : a.lost_changes + g->sequence;
	} else {
		int64_t messages = ahead(s->sequence, g->sequence);

		if (!messages && s->alive)
			return (struct goose_arrival){ .verdict = GOOSE_DUPLICATE };
		if (messages <= 0)
			return go_back(s, g, simulated, now_ns);
		a.verdict = GOOSE_REPETITION;
		a.lost_messages = (uint32_t)(messages - 1);
	}
	return accept(s, g, simulated, a, now_ns);
}

struct goose_arrival goose_subscriber_take(struct goose_subscriber *s, const struct goose *g, bool head,
			       uint64_t now_ns)
{
	bool simulated = head || g->simulation;

	if (simulated && !s->simulation)
		return (struct goose_arrival){ .verdict = GOOSE_SIMULATED };
	if (!simulated && s->simulated && s->alive)
		return (struct goose_arrival){ .verdict = GOOSE_REPLACED };
	if (g->needs_commissioning)
		return (struct goose_arrival){ .verdict = GOOSE_INCOMPLETE };
	if (!g->allowed_live_ms)
		return (struct goose_arrival){ .verdict = GOOSE_LIFELESS };
	/* The numbers of a test set have nothing to do with those of the publisher. */
	if (!s->known || simulated != s->simulated)
		return accept(s, g, simulated, (struct goose_arrival){ .verdict = GOOSE_CHANGE }, now_ns);
	return take_next(s, g, simulated, now_ns);
}
