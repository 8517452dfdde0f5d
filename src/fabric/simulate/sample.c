/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion trees over time, and deadlocks; see sample.h. A lane of a switch is congested while half a buffer or
 * more waits for it. Where it has credits more comes than the link carries: the root of a tree. Where it
 * has none it is a branch, which waits for the lanes behind its link. This is not the congested state of annex
 * A10, which there is only with a threshold.
 */
#include "fabric/simulate/sample.h"

#include <errno.h>
#include <stdlib.h>

int simulate_sample_open(struct simulate_state *st)
{
	st->open = calloc(st->s->topology->link_count * 2u * st->s->lanes + 1, sizeof(*st->open));
	return st->open ? 0 : -ENOMEM;
}

/* A new interval. NULL: there is no room. */
static struct simulate_congested *begin(struct simulate_state *st)
{
	struct simulate_result *r = st->r;

	if (r->congested_count == st->congested_capacity && r->congested_count < SIMULATE_CONGESTED_MAX) {
		uint32_t capacity = st->congested_capacity ? st->congested_capacity * 2 : 64;
		struct simulate_congested *more = realloc(r->congested, capacity * sizeof(*more));

		if (more) {
			r->congested = more;
			st->congested_capacity = capacity;
		}
	}
	if (r->congested_count == st->congested_capacity) {
		r->congested_left_out++;
		return NULL;
	}
	return &r->congested[r->congested_count++];
}

static void look(struct simulate_state *st, const struct topology_end *at, uint8_t lane, uint32_t *open)
{
	const uint32_t blocks = (st->s->mtu + SIMULATE_HEADER_BYTES + FABRIC_BLOCK_BYTES - 1) / FABRIC_BLOCK_BYTES;
	const uint64_t now = fabric_now_ps(st->f);
	struct fabric_lane_state now_state;
	struct simulate_congested *c;

	if (fabric_get_lane(st->f, at->node, at->port, lane, &now_state))
		return;
	if (now_state.queued_bytes < st->s->buffer_bytes / 2) {
		if (*open)
			st->r->congested[*open - 1].to_ps = now;
		*open = 0;
		return;
	}
	if (!*open) {
		c = begin(st);
		if (!c)
			return;
		*c = (struct simulate_congested){ .at = *at, .lane = lane, .from_ps = now };
		*open = st->r->congested_count;
	}
	c = &st->r->congested[*open - 1];
	c->samples++;
	c->with_credits += now_state.credit_blocks >= blocks;
	if (now_state.queued_bytes > c->peak_bytes)
		c->peak_bytes = now_state.queued_bytes;
}

void simulate_sample_congestion(struct simulate_state *st)
{
	const struct topology *t = st->s->topology;
	uint32_t *open = st->open;

	for (uint32_t i = 0; i < t->link_count * 2; i++) {
		const struct topology_end *at = &t->links[i / 2].end[i % 2];

		for (uint8_t lane = 0; lane < st->s->lanes; lane++, open++)
			if (t->nodes[at->node].kind == TOPOLOGY_SWITCH)
				look(st, at, lane, open);
	}
}

void simulate_sample_end(struct simulate_state *st)
{
	for (uint32_t i = 0; i < st->r->congested_count; i++) {
		struct simulate_congested *c = &st->r->congested[i];

		if (!c->to_ps)
			c->to_ps = fabric_now_ps(st->f);
		c->root = c->with_credits * 2 > c->samples;
	}
}

/* ---- deadlocks ---- */

static bool is_known(const struct simulate_result *r, const struct fabric_lane_at *cycle, size_t count)
{
	for (uint32_t i = 0; i < r->deadlock_count; i++)
		for (size_t k = 0; k < count; k++)
			if (r->deadlocks[i].lanes[0].at.node == cycle[k].node &&
			    r->deadlocks[i].lanes[0].at.port == cycle[k].port &&
			    r->deadlocks[i].lanes[0].lane == cycle[k].lane)
				return true;
	return false;
}

void simulate_sample_deadlock(void *arg, const struct fabric_lane_at *cycle, size_t count)
{
	struct simulate_state *st = arg;
	struct simulate_deadlock *d;

	if (st->r->deadlock_count == SIMULATE_DEADLOCKS_MAX || is_known(st->r, cycle, count))
		return;
	if (!st->r->deadlocks)
		st->r->deadlocks = calloc(SIMULATE_DEADLOCKS_MAX, sizeof(*st->r->deadlocks));
	if (!st->r->deadlocks)
		return;
	d = &st->r->deadlocks[st->r->deadlock_count];
	d->lanes = calloc(count, sizeof(*d->lanes));
	if (!d->lanes)
		return;
	d->at_ps = fabric_now_ps(st->f);
	d->count = (uint32_t)count;
	for (size_t i = 0; i < count; i++)
		d->lanes[i] = (struct simulate_lane){ { cycle[i].node, cycle[i].port }, cycle[i].lane };
	st->r->deadlock_count++;
}

unsigned simulate_sample_deadlocks(struct simulate_state *st)
{
	return fabric_find_deadlock(st->f, st->s->still_ps);
}
