/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fair share of each flow: the mean of its max-min shares over the time in which it was measured, since other
 * traffic starts and stops. Cables that are cut do not count.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/simulate/fair.h"
#include "fabric/simulate/summary.h"

/* With more flows it takes too long. */
#define FLOWS_MAX 20000u

struct shares {
	struct simulate_state *st;
	uint32_t *links;            /* of all flows, one behind the other */
	uint32_t *first;            /* of a flow; [flow_count]: the end */
	uint32_t capacity;
	struct simulate_fair_flow *active;
	uint32_t *number;           /* of an active flow */
	double *room;
	uint64_t *times;
	uint32_t time_count;
};

/* Appends the links, each in one direction, that the flow's packets pass. */
static int add_path(struct shares *s, uint32_t flow)
{
	const struct topology *t = s->st->s->topology;
	const struct simulate_flow *w = &s->st->r->flows[flow];
	struct topology_end at = w->source, peer;
	uint32_t at_link = s->first[flow];

	for (uint32_t steps = 0; steps <= t->node_count; steps++) {
		const uint8_t *table = s->st->routing->ports[at.node];
		uint8_t port = table ? table[w->dlid - 1] : at.port;
		uint32_t link;

		if (at_link == s->capacity) {
			uint32_t capacity = s->capacity ? s->capacity * 2 : 1024;
			uint32_t *more = realloc(s->links, capacity * sizeof(*more));

			if (!more)
				return -ENOMEM;
			s->links = more;
			s->capacity = capacity;
		}
		if (!topology_peer(t, at.node, port, &peer))
			break;
		link = t->nodes[at.node].ports[port].link;
		s->links[at_link++] = link * 2 + !(t->links[link].end[0].node == at.node &&
						   t->links[link].end[0].port == port);
		at = peer;
		if (at.node == w->target.node)
			break;
	}
	s->first[flow + 1] = at_link;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The shares while the flows that are there between two times are. */
static int share_phase(struct shares *s, uint64_t from_ps, uint64_t to_ps)
{
	struct simulate_result *r = s->st->r;
	const struct topology *t = s->st->s->topology;
	uint32_t count = 0;
	int err;

	for (uint32_t i = 0; i < r->flow_count; i++) {
		const struct simulate_flow *w = &r->flows[i];
		const struct simulate_traffic *f = &s->st->s->traffic[w->traffic];
		const struct simulate_group *g = &r->groups[w->traffic];
		const struct simulate_sender *sd = &s->st->senders[w->sender];
		double rate = (double)topology_link_bit_rate(&t->links[t->nodes[w->source.node].ports[w->source.port].link]);

		if (f->start_ps > from_ps || g->to_ps < to_ps)
			continue;
		s->number[count] = i;
		s->active[count++] = (struct simulate_fair_flow){
			.links = s->links + s->first[i], .link_count = s->first[i + 1] - s->first[i],
			.demand = rate * (f->load > 0 ? f->load : 1) / sd->flow_count,
		};
	}
	for (uint32_t l = 0; l < t->link_count * 2; l++)
		s->room[l] = (double)topology_link_bit_rate(&t->links[l / 2]);
	err = simulate_fair_shares(s->active, count, s->room, t->link_count * 2);
	for (uint32_t i = 0; i < count && !err; i++) {
		struct simulate_flow *w = &r->flows[s->number[i]];
		const struct simulate_group *g = &r->groups[w->traffic];

		if (g->from_ps <= from_ps)
			w->fair_bps += s->active[i].share * (double)(to_ps - from_ps) / (double)(g->to_ps - g->from_ps);
	}
	return err;
}

static int share_all(struct shares *s)
{
	struct simulate_result *r = s->st->r;
	int err = 0;

	for (uint32_t i = 0; i < r->flow_count && !err; i++)
		err = add_path(s, i);
	for (uint32_t i = 0; i < r->group_count; i++)
		for (unsigned k = 0; k < 2; k++)
			s->times[s->time_count++] = k ? r->groups[i].to_ps : r->groups[i].from_ps;
	qsort(s->times, s->time_count, sizeof(*s->times), by_time);
	for (uint32_t i = 1; i < s->time_count && !err; i++)
		if (s->times[i - 1] < s->times[i])
			err = share_phase(s, s->times[i - 1], s->times[i]);
	return err;
}

int simulate_share_flows(struct simulate_state *st)
{
	const uint32_t flows = st->r->flow_count;
	struct shares s = { .st = st };
	int err = -ENOMEM;

	if (flows > FLOWS_MAX)
		return 0;
	s.first = calloc(flows + 1u, sizeof(*s.first));
	s.active = calloc(flows + 1u, sizeof(*s.active));
	s.number = calloc(flows + 1u, sizeof(*s.number));
	s.room = calloc(st->s->topology->link_count * 2u + 1, sizeof(*s.room));
	s.times = calloc(st->r->group_count * 2u + 1, sizeof(*s.times));
	if (s.first && s.active && s.number && s.room && s.times)
		err = share_all(&s);
	free(s.links);
	free(s.first);
	free(s.active);
	free(s.number);
	free(s.room);
	free(s.times);
	return err;
}
