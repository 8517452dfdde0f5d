/* SPDX-License-Identifier: BSD-2-Clause */
/* See publisher.h. */
#include "gateway/node/iec61850-8-1/publisher.h"

/* Both numbers go on at 1: 0 is for the message of a change, and for a control block that has
 * sent nothing. */
static uint32_t next_number(uint32_t n)
{
	return n == UINT32_MAX ? 1 : n + 1;
}

void goose_publisher_begin(struct goose_publisher *p, const struct goose_repetition *r,
			   uint32_t state)
{
	*p = (struct goose_publisher){ .repetition = *r, .state = state, .next_ns = UINT64_MAX };
}

void goose_publisher_change(struct goose_publisher *p, uint64_t now_ns)
{
	p->state = next_number(p->state);
	p->sequence = 0;
	p->at_once = p->repetition.burst;
	p->interval_ns = p->repetition.min_ns;
	p->next_ns = now_ns;
}

static uint64_t grown(const struct goose_publisher *p)
{
	double ns = (double)p->interval_ns * p->repetition.factor;

	return ns < (double)p->repetition.max_ns ? (uint64_t)ns : p->repetition.max_ns;
}

bool goose_publisher_take(struct goose_publisher *p, uint64_t now_ns, struct goose_publication *out)
{
	if (now_ns < p->next_ns)
		return false;
	*out = (struct goose_publication){ p->state, p->sequence };
	p->sequence = next_number(p->sequence);
	if (p->at_once)
		p->at_once--;
	if (p->at_once) {
		p->next_ns = now_ns;
		return true;
	}
	p->next_ns = now_ns + p->interval_ns;
	p->interval_ns = grown(p);
	return true;
}
