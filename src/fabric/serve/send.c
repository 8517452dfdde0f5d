/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets into the engine; see send.h. */
#include "fabric/serve/send.h"

#include <errno.h>

#include "fabric/serve/out.h"
#include "fabric/serve/pool.h"

#define VCRC_BYTES 2

static struct fabric_packet *make_packet(struct serve *s, struct serve_buffer *b,
					 const struct ib_native *n, uint32_t flow)
{
	struct fabric_packet *p = fabric_packet(s->fabric);

	if (!p)
		return NULL;
	p->data = b;
	p->bytes = b->head.bytes + VCRC_BYTES;
	p->flow = flow;
	p->slid = n->lrh.slid;
	p->dlid = n->lrh.dlid;
	p->sl = n->lrh.sl;
	p->pkey = n->packet.pkey;
	p->lane = n->lrh.vl == FABRIC_LANE_MANAGEMENT ? FABRIC_LANE_MANAGEMENT : 0;
	p->flags = p->lane == FABRIC_LANE_MANAGEMENT ? 0 : FABRIC_MAY_MARK;
	return p;
}

/* How many packets of a host's processes may be in the engine: no host takes the buffers of others. */
static unsigned limit_of(const struct serve *s)
{
	unsigned limit = SERVE_INSIDE_SHARE / (s->used_hosts ? s->used_hosts : 1);

	return limit > SERVE_INSIDE_MAX ? SERVE_INSIDE_MAX : limit < SERVE_INSIDE_MIN ? SERVE_INSIDE_MIN : limit;
}

/* As fabric_send(), within the host's limit. */
static int send_from(struct serve *s, struct serve_host *h, struct fabric_packet *p)
{
	struct serve_buffer *b = p->data;
	int ret;

	if (h->inside >= limit_of(s))
		return -EAGAIN;
	/* It may arrive, or be lost, within the call. */
	b->host = (uint32_t)(h - s->hosts);
	b->inside = true;
	h->inside++;
	ret = fabric_send(s->fabric, h->node, h->port, p);
	if (ret) {
		b->inside = false;
		h->inside--;
	}
	return ret;
}

void serve_send_done(struct serve *s, struct serve_buffer *b)
{
	struct serve_host *h = &s->hosts[b->host];

	if (!b->inside)
		return;
	b->inside = false;
	h->inside--;
	if (!list_empty(&h->waiting) && h->inside < limit_of(s) / 2 && list_empty(&h->in_writable))
		list_push(&s->writable, &h->in_writable);
}

static void lose(struct serve *s, struct fabric_packet *p)
{
	serve_pool_give(&s->pool, p->data);
	fabric_packet_free(s->fabric, p);
}

static void wait(struct serve_flow *w, struct fabric_packet *p)
{
	p->next = NULL;
	*w->last = p;
	w->last = &p->next;
	w->client->waiting++;
	if (list_empty(&w->in_waiting))
		list_push(&w->client->host->waiting, &w->in_waiting);
}

void serve_send_flow(struct serve_flow *w, struct serve_buffer *b, const struct ib_native *n)
{
	struct serve *s = w->client->serve;
	struct serve_host *h = w->client->host;
	struct fabric_packet *p = make_packet(s, b, n, w->number);
	int ret;

	if (!p) {
		s->no_buffer++;
		serve_pool_give(&s->pool, b);
		return;
	}
	if (w->first) {
		wait(w, p);
		return;
	}
	ret = send_from(s, h, p);
	if (ret == -EAGAIN)
		wait(w, p);
	else if (ret)
		lose(s, p);
}

bool serve_send_node(struct serve *s, uint32_t node, uint8_t port, struct serve_buffer *b,
		     const struct ib_native *n)
{
	struct fabric_packet *p = make_packet(s, b, n, 0);

	if (!p)
		serve_pool_give(&s->pool, b);
	else if (fabric_send(s->fabric, node, port, p))
		lose(s, p);
	else
		return true;
	s->mads_lost++;
	return false;
}

void serve_send_loop(struct serve *s, uint32_t host, struct serve_buffer *b)
{
	b->host = host;
	b->next = NULL;
	*s->looped_last = b;
	s->looped_last = &b->next;
}

/* False: the flow still has no room. */
static bool send_flow(struct serve_flow *w)
{
	struct serve *s = w->client->serve;
	struct serve_host *h = w->client->host;
	struct fabric_packet *p;
	int ret;

	while ((p = w->first)) {
		w->first = p->next;
		ret = send_from(s, h, p);
		if (ret == -EAGAIN) {
			p->next = w->first;
			w->first = p;
			return false;
		}
		if (!w->first)
			w->last = &w->first;
		w->client->waiting--;
		if (ret)
			lose(s, p);
	}
	return true;
}

void serve_send_waiting(struct serve *s)
{
	struct list *l;

	while ((l = list_pop(&s->writable))) {
		struct serve_host *h = list_entry(l, struct serve_host, in_writable);
		struct list again;

		/* Each flow once, and the first of this round is the last of the next. */
		list_init(&again);
		list_splice(&again, &h->waiting);
		while ((l = list_pop(&again))) {
			struct serve_flow *w = list_entry(l, struct serve_flow, in_waiting);

			if (!send_flow(w))
				list_push(&h->waiting, &w->in_waiting);
			serve_out_touch(w->client);
		}
	}
}
