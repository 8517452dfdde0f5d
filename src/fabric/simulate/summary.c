/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums and rates of a run; see summary.h. */
#include "fabric/simulate/summary.h"

#include <errno.h>
#include <stdlib.h>

#define WAIT_TICK_PS 22e3 /* of PortXmitWait: struct fabric_counters */
#define VCRC_BYTES 2

int simulate_summary_begin(struct simulate_state *st)
{
	const struct topology *t = st->s->topology;

	if (!st->before)
		st->before = calloc(t->link_count * 2u + 1, sizeof(*st->before));
	if (!st->before)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->link_count * 2; i++) {
		const struct topology_end *from = &t->links[i / 2].end[i % 2];

		fabric_get_counters(st->f, from->node, from->port, &st->before[i]);
	}
	return 0;
}

static int add_links(struct simulate_state *st)
{
	const struct topology *t = st->s->topology;
	double seconds = (double)(st->r->end_ps - st->s->measure_from_ps) * 1e-12;

	if (st->r->end_ps <= st->s->measure_from_ps)
		seconds = 1;
	st->r->links = calloc(t->link_count * 2u + 1, sizeof(*st->r->links));
	if (!st->r->links)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->link_count * 2; i++) {
		struct simulate_link *l = &st->r->links[st->r->link_count++];
		const struct fabric_counters *b = &st->before[i];
		struct fabric_counters c;
		uint64_t packets;

		l->from = t->links[i / 2].end[i % 2];
		l->to = t->links[i / 2].end[1 - i % 2];
		l->bps = (double)topology_link_bit_rate(&t->links[i / 2]);
		if (fabric_get_counters(st->f, l->from.node, l->from.port, &c))
			continue;
		packets = c.xmit_packets - b->xmit_packets;
		l->packets = packets;
		l->load = 8 * (double)((c.xmit_words - b->xmit_words) * 4 + packets * VCRC_BYTES) / (l->bps * seconds);
		l->wait = (double)(c.xmit_wait - b->xmit_wait) * WAIT_TICK_PS * 1e-12 / seconds;
		l->marked = c.marked - b->marked;
		l->discards = c.xmit_discards + c.rcv_switch_relay - b->xmit_discards - b->rcv_switch_relay;
		l->errors = c.rcv_errors - b->rcv_errors;
		st->r->marked += c.marked;
	}
	return 0;
}

/* The time in which a line of traffic was measured: of one with a number of messages until the last has come. */
static void measure_group(const struct simulate_state *st, uint32_t i)
{
	const struct simulate_traffic *f = &st->s->traffic[i];
	struct simulate_group *g = &st->r->groups[i];
	uint64_t last_ps = 0;

	g->from_ps = f->start_ps > st->s->measure_from_ps ? f->start_ps : st->s->measure_from_ps;
	g->to_ps = f->stop_ps < st->r->end_ps ? f->stop_ps : st->r->end_ps;
	for (uint32_t k = g->first_flow; k < g->first_flow + g->flow_count; k++)
		if (st->r->flows[k].last_ps > last_ps)
			last_ps = st->r->flows[k].last_ps;
	if (f->messages && last_ps < g->to_ps)
		g->to_ps = last_ps;
	if (g->to_ps < g->from_ps)
		g->to_ps = g->from_ps;
}

static void add_flow(struct simulate_result *r, struct simulate_group *g, struct simulate_flow *w)
{
	double seconds = (double)(g->to_ps - g->from_ps) * 1e-12;

	w->rate_bps = seconds > 0 ? 8 * (double)w->bytes / seconds : 0;
	g->sent += w->sent;
	g->delivered += w->delivered;
	g->lost += w->lost;
	g->reordered += w->reordered;
	g->messages += w->messages;
	g->rate_bps += w->rate_bps;
	r->sent += w->sent;
	r->delivered += w->delivered;
	r->lost += w->lost;
	r->reordered += w->reordered;
}

static void share_group(const struct simulate_result *r, struct simulate_group *g)
{
	g->share = g->least_share = g->most_share = -1;
	for (uint32_t k = g->first_flow; k < g->first_flow + g->flow_count; k++) {
		double share;

		g->fair_bps += r->flows[k].fair_bps;
		if (r->flows[k].fair_bps <= 0)
			continue;
		share = r->flows[k].rate_bps / r->flows[k].fair_bps;
		if (g->least_share < 0 || share < g->least_share)
			g->least_share = share;
		if (share > g->most_share)
			g->most_share = share;
	}
	if (g->fair_bps > 0)
		g->share = g->rate_bps / g->fair_bps;
}

/* What the senders' ports carried of what their links could, of each port once. */
static double carried(const struct simulate_state *st)
{
	const struct topology *t = st->s->topology;
	double all = 0, rate = 0;

	for (uint32_t node = 0; node < t->node_count; node++) {
		const struct simulate_sender *sd = st->by_node[node] ? &st->senders[st->by_node[node] - 1] : NULL;

		if (sd)
			all += (double)topology_link_bit_rate(&t->links[t->nodes[node].ports[sd->at.port].link]);
	}
	for (uint32_t i = 0; i < st->r->group_count; i++)
		rate += st->r->groups[i].rate_bps;
	return all > 0 ? rate / all : 0;
}

int simulate_summary(struct simulate_state *st)
{
	struct simulate_result *r = st->r;
	int err = add_links(st);

	for (uint32_t i = 0; i < r->group_count; i++) {
		struct simulate_group *g = &r->groups[i];

		measure_group(st, i);
		for (uint32_t k = g->first_flow; k < g->first_flow + g->flow_count; k++)
			add_flow(r, g, &r->flows[k]);
	}
	r->inside = r->sent - r->delivered - r->lost;
	r->carried = carried(st);
	if (!err)
		err = simulate_share_flows(st);
	for (uint32_t i = 0; i < r->group_count; i++)
		share_group(r, &r->groups[i]);
	return err ? err : simulate_judge(st->s, r);
}
