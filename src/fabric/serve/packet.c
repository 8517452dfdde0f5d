/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of clients; see packet.h. */
#include "fabric/serve/packet.h"

#include <string.h>

#include "fabric/serve/datagram.h"
#include "fabric/serve/mads.h"
#include "fabric/serve/owner.h"
#include "fabric/serve/pool.h"
#include "fabric/serve/send.h"
#include "wire/mad/mad.h"

#define QPN_GSI 1

static const char *const refused_names[SERVE_REFUSED_KINDS] = {
	[SERVE_BAD_LENGTH] = "length", [SERVE_BAD_HEADER] = "header", [SERVE_BAD_SLID] = "slid",
	[SERVE_BAD_DLID] = "dlid",     [SERVE_BAD_PKEY] = "pkey",     [SERVE_BAD_QP] = "qp",
	[SERVE_BAD_STATE] = "state",   [SERVE_BAD_MAD] = "mad",
};

const char *serve_packet_refused_name(enum serve_refused kind)
{
	return refused_names[kind];
}

static bool is_own_lid(const struct serve_host *h, uint16_t lid)
{
	const struct plug_port *p = &h->state;

	return p->lid && lid >= p->lid && lid < p->lid + (1u << p->lmc);
}

/* The sender's P_Key is one of the table's, with its kind of membership. */
static bool has_pkey(const struct serve_host *h, uint16_t pkey)
{
	for (unsigned i = 0; i < PLUG_PKEYS; i++)
		if (h->state.pkeys[i] == pkey)
			return pkey & 0x7fff;
	return false;
}

/* The queue pair that a datagram names as its source is one of the client's. */
static bool has_source(struct serve_client *c, const struct ib_packet *p)
{
	if (!(p->headers & IB_HAS_DETH))
		return true;
	if (p->deth.src_qpn == QPN_GSI)
		return c->purpose == PLUG_VERBS && p->dest_qpn == QPN_GSI;
	return serve_owner_of_qp(c->serve, c->host, p->deth.src_qpn) == c;
}

/* Of a datagram to queue pair 1. */
static bool has_permitted_mad(const struct serve_client *c, const struct serve_buffer *b,
			      const struct ib_native *n)
{
	const size_t at = serve_datagram_payload(n);
	struct mad_header m;

	/* Nobody takes a shorter one for a MAD. */
	if (at + MAD_BYTES > b->head.bytes)
		return true;
	mad_header_unpack(b->body + at, &m);
	return serve_mads_permitted(c, &m);
}

/* SERVE_REFUSED_KINDS: nothing is wrong. */
static enum serve_refused check(struct serve_client *c, const struct serve_buffer *b,
				const struct ib_native *n)
{
	const struct serve_host *h = c->host;

	if (!n->has_bth || n->lrh.vl == IB_VL_MANAGEMENT)
		return SERVE_BAD_HEADER;
	if (h->state.state != FABRIC_PORT_ACTIVE)
		return SERVE_BAD_STATE;
	if (!is_own_lid(h, n->lrh.slid))
		return SERVE_BAD_SLID;
	if (!n->lrh.dlid || n->lrh.dlid == FABRIC_LID_PERMISSIVE)
		return SERVE_BAD_DLID;
	if (!has_pkey(h, n->packet.pkey))
		return SERVE_BAD_PKEY;
	/* QP0 is the port's own, QP1 is for datagrams. */
	if (!n->packet.dest_qpn || !has_source(c, &n->packet) ||
	    (n->packet.dest_qpn == QPN_GSI && !(n->packet.headers & IB_HAS_DETH)))
		return SERVE_BAD_QP;
	if (n->packet.dest_qpn == QPN_GSI && !has_permitted_mad(c, b, n))
		return SERVE_BAD_MAD;
	return SERVE_REFUSED_KINDS;
}

static enum serve_refused kind_of(enum ib_native_fault fault)
{
	switch (fault) {
	case IB_NATIVE_LENGTH:
	case IB_NATIVE_SHORT:
		return SERVE_BAD_LENGTH;
	case IB_NATIVE_DLID:
	case IB_NATIVE_MULTICAST:
		return SERVE_BAD_DLID;
	case IB_NATIVE_SLID:
		return SERVE_BAD_SLID;
	default:
		return SERVE_BAD_HEADER;
	}
}

/* A datagram's queue pair; of a connection, which does not name it, the peer's. */
static uint64_t flow_key(const struct ib_native *n)
{
	if (n->packet.headers & IB_HAS_DETH)
		return n->packet.deth.src_qpn;
	return (uint64_t)n->lrh.dlid << 24 | n->packet.dest_qpn | UINT64_C(1) << 48;
}

void serve_packet_take(struct serve_client *c, struct serve_buffer *b)
{
	struct serve *s = c->serve;
	enum ib_native_fault fault;
	enum serve_refused refused;
	struct serve_flow *w;
	struct ib_native n;
	bool group;

	fault = ib_native_decode(b->body, b->head.bytes + (size_t)IB_VCRC_BYTES, 0, &n);
	refused = fault ? kind_of(fault) : check(c, b, &n);
	if (refused != SERVE_REFUSED_KINDS) {
		c->counts.refused[refused]++;
		serve_pool_give(&s->pool, b);
		return;
	}
	c->counts.taken++;
	if (is_own_lid(c->host, n.lrh.dlid)) {
		serve_send_loop(s, (uint32_t)(c->host - s->hosts), b);
		return;
	}
	/* Members at the host itself get a copy without the link. */
	group = n.lrh.dlid >= FABRIC_LID_MULTICAST;
	if (group) {
		struct serve_buffer *copy = serve_pool_take(&s->pool);

		if (copy) {
			copy->head = b->head;
			copy->bytes = b->bytes;
			memcpy(copy->body, b->body, b->head.bytes);
			serve_send_loop(s, (uint32_t)(c->host - s->hosts), copy);
		}
	}
	w = serve_owner_flow(c, flow_key(&n), n.lrh.sl);
	serve_send_flow(w, b, &n);
}
