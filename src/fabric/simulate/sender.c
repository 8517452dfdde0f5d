/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What adapters send and receive; see sender.h. A packet's `data` is no pointer but the number of its flow with
 * the marks below. A marked packet is answered by a congestion notification, as an adapter of datagrams does; of
 * connections the acknowledgement would carry the same bit.
 */
#include "fabric/simulate/sender.h"

#include <errno.h>

enum { FIRST = 1, LAST = 2, NOTIFICATION = 4, MARKS = 3 /* bits */ };

static void *data_of(uint32_t flow, unsigned marks)
{
	return (void *)((uintptr_t)flow << MARKS | marks);
}

static struct simulate_flow *flow_of(const struct simulate_state *st, const struct fabric_packet *p)
{
	return &st->r->flows[(uintptr_t)p->data >> MARKS];
}

static bool has_mark(const struct fabric_packet *p, unsigned mark)
{
	return (uintptr_t)p->data & mark;
}

int simulate_sender_open(struct simulate_state *st)
{
	for (uint32_t i = 0; i < st->sender_count; i++) {
		struct simulate_sender *sd = &st->senders[i];

		sd->engine_flow = fabric_flow_open(st->f, sd->at.node, sd->at.port, st->s->traffic[sd->traffic].sl);
		if (!sd->engine_flow)
			return -ENOSPC;
	}
	return 0;
}

/* ---- sending ---- */

/* The flow of the next message. */
static uint32_t choose_flow(struct simulate_state *st, struct simulate_sender *sd)
{
	const struct simulate_traffic *f = &st->s->traffic[sd->traffic];
	const struct topology_end hot = f->targets[f->hot_target];
	uint32_t flow = sd->first_flow;

	if (f->pattern == SIMULATE_HOT_SPOT && prng_chance(&st->prng, f->hot_share))
		for (uint32_t i = 0; i < sd->flow_count; i++)
			if (st->r->flows[flow + i].target.node == hot.node &&
			    st->r->flows[flow + i].target.port == hot.port)
				return flow + i;
	if (f->pattern == SIMULATE_HOT_SPOT || f->pattern == SIMULATE_UNIFORM)
		return flow + (uint32_t)prng_below(&st->prng, sd->flow_count);
	flow += sd->turn;
	sd->turn = sd->turn + 1 == sd->flow_count ? 0 : sd->turn + 1;
	return flow;
}

static void end_sender(struct simulate_state *st, struct simulate_sender *sd)
{
	if (!sd->done)
		st->senders_done++;
	sd->done = true;
	sd->left_bytes = 0;
}

/* False: no message is to be sent now. */
static bool begin_message(struct simulate_state *st, struct simulate_sender *sd)
{
	const struct simulate_traffic *f = &st->s->traffic[sd->traffic];

	if (!sd->messages_left) {
		end_sender(st, sd);
		return false;
	}
	if (sd->interval_ps && !sd->due_messages)
		return false;
	if (sd->interval_ps)
		sd->due_messages--;
	sd->flow = choose_flow(st, sd);
	sd->left_bytes = f->message_bytes;
	sd->messages_left--;
	return true;
}

/* False: there is no room. */
static bool send_packet(struct simulate_state *st, struct simulate_sender *sd)
{
	const struct simulate_traffic *f = &st->s->traffic[sd->traffic];
	struct simulate_flow *w = &st->r->flows[sd->flow];
	uint32_t bytes = sd->left_bytes < f->packet_bytes ? sd->left_bytes : f->packet_bytes;
	struct fabric_packet *p = fabric_packet(st->f);

	if (!p) {
		st->out_of_packets = true;
		return false;
	}
	p->data = data_of(sd->flow, (sd->left_bytes == f->message_bytes ? FIRST : 0u) |
				    (sd->left_bytes == bytes ? LAST : 0u));
	p->bytes = bytes + SIMULATE_HEADER_BYTES;
	p->flow = sd->engine_flow;
	p->slid = w->slid;
	p->dlid = w->dlid;
	p->pkey = 0xffff;
	p->sl = w->sl;
	p->flags = FABRIC_MAY_MARK;
	/* Counted before: what cannot leave is dropped at once. */
	sd->left_bytes -= bytes;
	sd->outstanding++;
	w->sent++;
	if (!fabric_send(st->f, sd->at.node, sd->at.port, p))
		return true;
	sd->left_bytes += bytes;
	sd->outstanding--;
	w->sent--;
	fabric_packet_free(st->f, p);
	return false;
}

void simulate_sender_pump(struct simulate_state *st, struct simulate_sender *sd)
{
	const struct simulate_traffic *f = &st->s->traffic[sd->traffic];

	/* fabric_send() may call drop(), which comes here again. */
	if (sd->pumping)
		return;
	sd->pumping = true;
	while (sd->started && !sd->done) {
		if (fabric_now_ps(st->f) >= f->stop_ps) {
			end_sender(st, sd);
			break;
		}
		if (!sd->left_bytes && !begin_message(st, sd))
			break;
		if (f->window && sd->outstanding >= f->window)
			break;
		if (!send_packet(st, sd))
			break;
	}
	sd->pumping = false;
}

/* Messages become due whether or not the adapter takes them. */
void simulate_sender_due(struct simulate_state *st, struct simulate_sender *sd)
{
	const struct simulate_traffic *f = &st->s->traffic[sd->traffic];

	sd->started = true;
	if (sd->interval_ps) {
		sd->due_messages++;
		sd->next_ps += f->random_arrivals ? prng_below(&st->prng, 2 * sd->interval_ps + 1) : sd->interval_ps;
	}
	simulate_sender_pump(st, sd);
	if (sd->interval_ps && !sd->done)
		fabric_queue_arm(&st->due, &sd->due, sd->next_ps < f->stop_ps ? sd->next_ps : f->stop_ps);
}

void simulate_sender_writable(void *arg, uint32_t node, uint8_t port)
{
	struct simulate_state *st = arg;
	struct simulate_sender *sd = st->by_node[node] ? &st->senders[st->by_node[node] - 1] : NULL;

	for (; sd; sd = sd->next_there)
		if (sd->at.port == port)
			simulate_sender_pump(st, sd);
}

/* ---- receiving ---- */

/* The receiver of a marked packet tells its sender. */
static void notify(struct simulate_state *st, const struct fabric_packet *marked)
{
	const struct simulate_flow *w = flow_of(st, marked);
	struct fabric_packet *p = fabric_packet(st->f);

	if (!p) {
		st->out_of_packets = true;
		return;
	}
	p->data = data_of((uint32_t)(w - st->r->flows), NOTIFICATION);
	p->bytes = SIMULATE_NOTIFICATION_BYTES;
	p->slid = w->dlid;
	p->dlid = w->slid;
	p->pkey = 0xffff;
	p->sl = w->back_sl;
	p->flags = FABRIC_BECN;
	if (fabric_send(st->f, w->target.node, w->target.port, p))
		fabric_packet_free(st->f, p);
	else
		st->r->notifications++;
}

static void count_message(const struct simulate_state *st, struct simulate_flow *w, const struct fabric_packet *p,
			  bool measured)
{
	struct simulate_group *g = &st->r->groups[w->traffic];

	if (has_mark(p, FIRST))
		w->begun_ps = p->sent_ps;
	if (!has_mark(p, LAST) || w->begun_ps == FABRIC_NEVER)
		return;
	w->messages++;
	if (measured)
		hist_record(&g->whole, (fabric_now_ps(st->f) - w->begun_ps) / 1000);
	w->begun_ps = FABRIC_NEVER;
}

static void count(const struct simulate_state *st, struct simulate_flow *w, const struct fabric_packet *p)
{
	const uint64_t now = fabric_now_ps(st->f), latency_ns = (now - p->sent_ps) / 1000;
	const bool measured = now >= st->s->measure_from_ps && now <= st->s->traffic[w->traffic].stop_ps;

	w->delivered++;
	if (p->number <= w->number)
		w->reordered++;
	w->number = p->number;
	w->last_ps = now;
	count_message(st, w, p, measured);
	if (!measured)
		return;
	w->bytes += p->bytes;
	hist_record(&st->r->groups[w->traffic].packets, latency_ns);
	if (w->latency)
		hist_record(w->latency, latency_ns);
}

void simulate_sender_deliver(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p)
{
	struct simulate_state *st = arg;
	struct simulate_flow *w = flow_of(st, p);
	struct simulate_sender *sd = &st->senders[w->sender];

	(void)node;
	(void)port;
	st->r->hops += p->hops;
	if (has_mark(p, NOTIFICATION)) {
		fabric_becn(st->f, sd->engine_flow);
	} else {
		count(st, w, p);
		if ((p->flags & FABRIC_FECN) && st->s->congestion.at_hosts)
			notify(st, p);
		sd->outstanding--;
	}
	fabric_packet_free(st->f, p);
	if (st->s->traffic[sd->traffic].window)
		simulate_sender_pump(st, sd);
}

void simulate_sender_drop(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p, enum fabric_drop why)
{
	struct simulate_state *st = arg;
	struct simulate_flow *w = flow_of(st, p);
	bool notification = has_mark(p, NOTIFICATION);

	(void)node;
	(void)port;
	st->r->hops += p->hops;
	/* Those that are inside when a scenario ends are not lost. */
	if (st->senders && !notification) {
		w->lost++;
		w->begun_ps = FABRIC_NEVER;
		st->r->lost_why[why]++;
		st->senders[w->sender].outstanding--;
	}
	fabric_packet_free(st->f, p);
	if (st->senders && st->s->traffic[w->traffic].window)
		simulate_sender_pump(st, &st->senders[w->sender]);
}
