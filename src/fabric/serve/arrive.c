/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets at nodes; see arrive.h. */
#include "fabric/serve/arrive.h"

#include "fabric/agent/agent.h"
#include "fabric/serve/datagram.h"
#include "fabric/serve/nodes.h"
#include "fabric/serve/out.h"
#include "fabric/serve/owner.h"
#include "fabric/serve/pool.h"
#include "fabric/serve/send.h"

#include <string.h>

#define PKEY_FULL 0x8000
#define PKEY_BASE 0x7fff

static bool read_buffer(const struct serve_buffer *b, struct ib_native *n)
{
	return !ib_native_decode(b->body, b->head.bytes + (size_t)IB_VCRC_BYTES, 0, n) && n->has_bth;
}

/* Has the port a P_Key of the packet's partition, and one of both ends is a full member? */
static const uint16_t *find_pkey(const struct serve_host *h, uint16_t pkey)
{
	for (unsigned i = 0; i < PLUG_PKEYS; i++) {
		uint16_t own = h->state.pkeys[i];

		if (own & PKEY_BASE && !((own ^ pkey) & PKEY_BASE) && (own | pkey) & PKEY_FULL)
			return &h->state.pkeys[i];
	}
	return NULL;
}

static struct agent_violation violation_of(const struct ib_native *n)
{
	struct agent_violation v = {
		.key = n->packet.pkey, .slid = n->lrh.slid, .dlid = n->lrh.dlid, .sl = n->lrh.sl,
		.dest_qp = n->packet.dest_qpn,
	};

	if (n->packet.headers & IB_HAS_DETH)
		v.src_qp = n->packet.deth.src_qpn;
	if (n->has_grh) {
		memcpy(v.sgid, n->grh.sgid, sizeof(v.sgid));
		memcpy(v.dgid, n->grh.dgid, sizeof(v.dgid));
	}
	return v;
}

/* The packet was marked on its way: the flow that it belongs to is to be slowed down. */
static void notify(struct serve *s, struct serve_host *h, const struct ib_native *of, uint16_t pkey,
		   uint32_t flow)
{
	struct serve_buffer *b = serve_pool_take(&s->pool);
	struct ib_native n;
	size_t bytes;

	if (!b)
		return;
	bytes = serve_datagram_notice(of, pkey, &n, b->body);
	if (!bytes) {
		serve_pool_give(&s->pool, b);
		return;
	}
	serve_pool_head(b, PLUG_PACKET, 0, 0, bytes);
	b->flow = flow;
	h->notified += serve_send_node(s, h->node, h->port, b, &n);
}

static void take_notice(struct serve *s, struct serve_host *h, const struct ib_native *n, uint32_t flow)
{
	const struct agent_becn becn = {
		.local_qp = n->packet.dest_qpn, .local_lid = n->lrh.dlid, .remote_lid = n->lrh.slid,
		.sl = n->lrh.sl, .service = n->packet.dest_qpn ? 3 : 0,
	};

	fabric_becn(s->fabric, flow);
	fabric_agents_becn(s->agents, h->node, h->port, &becn, s->now_ns);
}

static void at_host(struct serve *s, struct serve_host *h, struct serve_buffer *b,
		    const struct ib_native *n)
{
	const bool group = n->lrh.dlid >= IB_LID_MULTICAST && n->lrh.dlid != IB_LID_PERMISSIVE;
	struct serve_client *c;

	if (!find_pkey(h, n->packet.pkey)) {
		struct agent_violation v = violation_of(n);

		h->partition++;
		fabric_agents_violation(s->agents, h->node, h->port, &v, s->now_ns);
	} else if (group) {
		if (!n->has_grh ||
		    !serve_owner_members(s, h, n->lrh.dlid, n->grh.dgid, serve_out_packet, b))
			h->no_owner++;
	} else if (n->packet.dest_qpn == 1) {
		serve_nodes_receive(s, h->node, h->port, b->body, n);
	} else {
		c = serve_owner_of_qp(s, h, n->packet.dest_qpn);
		if (c)
			serve_out_packet(c, b);
		else
			h->no_owner++;
	}
}

void serve_arrive(struct serve *s, uint32_t node, uint8_t port, struct fabric_packet *p)
{
	struct serve_host *h = serve_nodes_host(s, node, port);
	struct serve_buffer *b = p->data;
	struct ib_native n;

	serve_send_done(s, b);
	if (!read_buffer(b, &n)) {
		if (h)
			h->malformed++;
	} else if (!h || !n.packet.dest_qpn) {
		/* A notification for a connection names QP 0, but not on the lane of management. */
		if (h && b->flow)
			take_notice(s, h, &n, b->flow);
		else
			serve_nodes_receive(s, node, port, b->body, &n);
	} else if (b->flow) {
		take_notice(s, h, &n, b->flow);
	} else {
		if (p->flags & FABRIC_FECN && b->references == 1) {
			const uint16_t *pkey = find_pkey(h, n.packet.pkey);

			serve_datagram_mark(b->body, &n);
			if (pkey && p->flow)
				notify(s, h, &n, *pkey, p->flow);
		}
		at_host(s, h, b, &n);
	}
	serve_pool_give(&s->pool, b);
	fabric_packet_free(s->fabric, p);
}

void serve_arrive_not(struct serve *s, uint32_t node, uint8_t port, struct fabric_packet *p,
		      enum fabric_drop why)
{
	struct serve_buffer *b = p->data;
	struct ib_native n;

	s->drops[why]++;
	serve_send_done(s, b);
	if (why == FABRIC_DROP_PARTITION && read_buffer(b, &n)) {
		struct agent_violation v = violation_of(&n);

		fabric_agents_switch_violation(s->agents, node, port, &v, s->now_ns);
	}
	serve_pool_give(&s->pool, b);
	fabric_packet_free(s->fabric, p);
}

void serve_arrive_looped(struct serve *s)
{
	struct serve_buffer *b;

	/* A packet of this list may cause another one at its end, by an agent's answer; not for ever. */
	for (unsigned i = 0; i < SERVE_LOOPED_MAX && (b = s->looped); i++) {
		struct ib_native n;

		s->looped = b->next;
		if (!s->looped)
			s->looped_last = &s->looped;
		if (read_buffer(b, &n))
			at_host(s, &s->hosts[b->host], b, &n);
		serve_pool_give(&s->pool, b);
	}
}
