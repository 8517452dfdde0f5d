/* SPDX-License-Identifier: BSD-2-Clause */
/* From patterns to flows and senders; see plan.h. */
#define LOG_ROOM "fabric"
#include "fabric/simulate/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/simulate/build.h"
#include "util/log.h"

struct plan {
	struct simulate_state *st;
	const struct simulate_traffic *f;
	uint32_t traffic;
	uint32_t flow_capacity, sender_capacity;
};

/* ---- lists ---- */

static uint8_t level_of(const struct simulate_state *st, const struct simulate_traffic *f, uint16_t from, uint16_t to)
{
	return st->layers ? routing_layer(st->routing, st->layers, from - 1u, to - 1u) : f->sl;
}

static int add_flow(struct plan *p, struct topology_end source, struct topology_end target)
{
	struct simulate_result *r = p->st->r;
	struct simulate_flow *w;

	if (r->flow_count == SIMULATE_FLOWS_MAX)
		return -ENOSPC;
	if (r->flow_count == p->flow_capacity) {
		uint32_t capacity = p->flow_capacity ? p->flow_capacity * 2 : 256;
		struct simulate_flow *more = realloc(r->flows, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		r->flows = more;
		p->flow_capacity = capacity;
	}
	w = &r->flows[r->flow_count++];
	*w = (struct simulate_flow){ .source = source, .target = target, .traffic = p->traffic };
	w->sender = p->st->sender_count - 1;
	w->slid = simulate_build_lid(p->st, source);
	w->dlid = simulate_build_lid(p->st, target);
	w->sl = level_of(p->st, p->f, w->slid, w->dlid);
	w->back_sl = level_of(p->st, p->f, w->dlid, w->slid);
	w->begun_ps = FABRIC_NEVER;
	p->st->senders[w->sender].flow_count++;
	return 0;
}

static int add_sender(struct plan *p, struct topology_end at)
{
	struct simulate_state *st = p->st;

	if (st->sender_count == SIMULATE_SENDERS_MAX)
		return -ENOSPC;
	if (st->sender_count == p->sender_capacity) {
		uint32_t capacity = p->sender_capacity ? p->sender_capacity * 2 : 64;
		struct simulate_sender *more = realloc(st->senders, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		st->senders = more;
		p->sender_capacity = capacity;
	}
	st->senders[st->sender_count++] = (struct simulate_sender){
		.at = at, .traffic = p->traffic, .first_flow = st->r->flow_count,
	};
	return 0;
}

/* A sender with one target. To itself: none. */
static int add_pair(struct plan *p, uint32_t source, uint32_t target)
{
	const struct topology_end from = p->f->sources[source], to = p->f->targets[target];
	int err;

	if (from.node == to.node && from.port == to.port)
		return 0;
	err = add_sender(p, from);
	return err ? err : add_flow(p, from, to);
}

/* ---- patterns ---- */

static int plan_listed(struct plan *p)
{
	const uint32_t sources = p->f->source_count, targets = p->f->target_count;
	int err = 0;

	for (uint32_t i = 0; i < sources && !err; i++)
		for (uint32_t k = 0; k < targets && !err; k++)
			if (sources != targets || i == k)
				err = add_pair(p, i, k);
	return err;
}

/* Each host with all others as targets, beginning behind it. */
static int plan_all(struct plan *p)
{
	const uint32_t count = p->f->source_count;
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++) {
		err = add_sender(p, p->f->sources[i]);
		for (uint32_t k = 1; k < count && !err; k++)
			err = add_flow(p, p->f->sources[i], p->f->sources[(i + k) % count]);
	}
	return err;
}

/* A circle through all hosts in a random order (Sattolo, 1986), so that nobody is its own target. */
static int plan_permutation(struct plan *p)
{
	const uint32_t count = p->f->source_count;
	uint32_t *to = malloc(count * sizeof(*to));
	int err = 0;

	if (!to)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		to[i] = i;
	for (uint32_t i = count - 1; i > 0; i--) {
		uint32_t k = (uint32_t)prng_below(&p->st->prng, i), swap = to[i];

		to[i] = to[k];
		to[k] = swap;
	}
	for (uint32_t i = 0; i < count && !err; i++)
		err = add_pair(p, i, to[i]);
	free(to);
	return err;
}

static int plan_shift(struct plan *p)
{
	int err = 0;

	for (uint32_t i = 0; i < p->f->source_count && !err; i++)
		err = add_pair(p, i, (i + p->f->shift) % p->f->source_count);
	return err;
}

static int plan_bit_reversal(struct plan *p)
{
	int err = 0;

	for (uint32_t i = 0; i < p->f->source_count && !err; i++) {
		uint32_t to = 0;

		for (uint32_t bit = 1, from = i; bit < p->f->source_count; bit <<= 1, from >>= 1)
			to = to << 1 | (from & 1);
		err = add_pair(p, i, to);
	}
	return err;
}

static int plan_line(struct plan *p)
{
	switch (p->f->pattern) {
	case SIMULATE_LISTED:
		return plan_listed(p);
	case SIMULATE_PERMUTATION:
		return plan_permutation(p);
	case SIMULATE_SHIFT:
		return plan_shift(p);
	case SIMULATE_BIT_REVERSAL:
		return plan_bit_reversal(p);
	case SIMULATE_ALL_TO_ALL:
	case SIMULATE_UNIFORM:
	case SIMULATE_HOT_SPOT:
		return plan_all(p);
	}
	return -EINVAL;
}

/* ---- what all senders have ---- */

/* How much time a message has, with the headers of its packets, at the load. */
static uint64_t interval_of(const struct simulate_state *st, const struct simulate_sender *sd)
{
	const struct simulate_traffic *f = &st->s->traffic[sd->traffic];
	const struct topology *t = st->s->topology;
	const struct topology_link *l = &t->links[t->nodes[sd->at.node].ports[sd->at.port].link];
	uint64_t packets = (f->message_bytes + f->packet_bytes - 1) / f->packet_bytes;
	double bits = 8.0 * (double)(f->message_bytes + packets * SIMULATE_HEADER_BYTES), ps;

	if (f->load <= 0)
		return 0;
	ps = bits * 1e12 / ((double)topology_link_bit_rate(l) * f->load);
	return ps < 1 ? 1 : ps > (double)SIMULATE_TIME_PS_MAX ? SIMULATE_TIME_PS_MAX : (uint64_t)(ps + 0.5);
}

static int prepare_senders(struct simulate_state *st)
{
	int err = fabric_queue_reserve(&st->due, st->sender_count);

	for (uint32_t i = st->sender_count; i-- > 0 && !err;) {
		struct simulate_sender *sd = &st->senders[i];
		const struct simulate_traffic *f = &st->s->traffic[sd->traffic];

		fabric_due_init(&sd->due, 0);
		sd->next_there = st->by_node[sd->at.node] ? &st->senders[st->by_node[sd->at.node] - 1] : NULL;
		st->by_node[sd->at.node] = i + 1;
		sd->interval_ps = interval_of(st, sd);
		sd->messages_left = f->messages ? f->messages : UINT64_MAX;
		if (f->messages && f->pattern == SIMULATE_ALL_TO_ALL)
			sd->messages_left = f->messages * sd->flow_count;
		/* Senders with a limited load begin at different times. */
		sd->next_ps = f->start_ps + (sd->interval_ps ? prng_below(&st->prng, sd->interval_ps) : 0);
		fabric_queue_arm(&st->due, &sd->due, sd->next_ps);
	}
	return err;
}

static int add_hists(struct simulate_result *r)
{
	for (uint32_t i = 0; r->flow_count <= SIMULATE_HISTS && i < r->flow_count; i++) {
		r->flows[i].latency = malloc(sizeof(struct hist));
		if (!r->flows[i].latency)
			return -ENOMEM;
		hist_init(r->flows[i].latency);
	}
	return 0;
}

int simulate_plan(struct simulate_state *st)
{
	struct plan p = { .st = st };
	int err = 0;

	st->by_node = calloc(st->s->topology->node_count, sizeof(*st->by_node));
	st->r->groups = calloc(st->s->traffic_count, sizeof(*st->r->groups));
	st->r->group_count = st->r->groups ? st->s->traffic_count : 0;
	if (!st->by_node || !st->r->groups)
		err = -ENOMEM;
	for (; !err && p.traffic < st->s->traffic_count; p.traffic++) {
		struct simulate_group *g = &st->r->groups[p.traffic];
		uint32_t senders = st->sender_count;

		p.f = &st->s->traffic[p.traffic];
		hist_init(&g->packets);
		hist_init(&g->whole);
		g->first_flow = st->r->flow_count;
		err = plan_line(&p);
		g->flow_count = st->r->flow_count - g->first_flow;
		g->sender_count = st->sender_count - senders;
	}
	if (!err)
		err = add_hists(st->r);
	if (!err)
		err = prepare_senders(st);
	if (err == -ENOSPC)
		log_error("the traffic has more than %u senders or %u flows", SIMULATE_SENDERS_MAX, SIMULATE_FLOWS_MAX);
	else if (err)
		log_error("no memory for the flows of the traffic");
	return err;
}
