/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagram sockets below their calls: the cache of peers by address, and datagrams that come. */
#define LOG_ROOM "rsocket"
#include <stdlib.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"
#include "util/clock.h"
#include "util/log.h"

/* ---- address handles ---- */

/* Destroys the handles that only the first `done` datagrams could use. */
static void retired_free(struct rs *rs, uint64_t done)
{
	struct rs_retired **at = &rs->retired, *r;

	while ((r = *at)) {
		if (r->posted > done) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		ibv_destroy_ah(r->ah);
		free(r);
	}
}

void rs_ah_retire(struct rs *rs, struct ibv_ah *ah)
{
	struct rs_retired *r;

	retired_free(rs, rs->tx.done);
	if (!ah)
		return;
	r = rs->tx.posted == rs->tx.done ? NULL : malloc(sizeof(*r));
	if (!r) {
		/* No datagram is posted, or there is no memory. In the second case
		 * most adapters have copied the handle into the posted work. */
		ibv_destroy_ah(ah);
		return;
	}
	r->ah = ah;
	r->posted = rs->tx.posted;
	r->next = rs->retired;
	rs->retired = r;
}

/* ---- peers ---- */

static struct rs_peer *bucket_of(struct rs *rs, const struct sockaddr *addr)
{
	uint32_t hash = 2166136261u;
	uint8_t ip[16];

	rs_addr_to_wire(addr, ip);
	for (size_t i = 0; i < sizeof(ip); i++)
		hash = (hash ^ ip[i]) * 16777619u;
	hash = (hash ^ rs_addr_port(addr)) * 16777619u;
	hash = (hash ^ hash >> 16) % (RS_PEERS / RS_PEERS_BUCKET);
	return rs->peers + hash * RS_PEERS_BUCKET;
}

struct rs_peer *rs_peer_find(struct rs *rs, const struct sockaddr *addr)
{
	struct rs_peer *p;

	if (!rs->peers)
		return NULL;
	p = bucket_of(rs, addr);
	for (int i = 0; i < RS_PEERS_BUCKET; i++, p++)
		if (p->addr.ss_family && rs_addr_equal(rs_sa(&p->addr), addr))
			return p;
	return NULL;
}

struct rs_peer *rs_peer_put(struct rs *rs, const struct rs_peer *from)
{
	struct rs_peer *p = rs_peer_find(rs, rs_sa(&from->addr));

	if (!p) {
		struct rs_peer *bucket = bucket_of(rs, rs_sa(&from->addr));

		p = bucket;
		for (int i = 1; i < RS_PEERS_BUCKET; i++)
			if (bucket[i].fresh_ns < p->fresh_ns)
				p = &bucket[i];
	}
	rs_ah_retire(rs, p->ah);
	*p = *from;
	return p;
}

int rs_peers_make(struct rs *rs)
{
	if (!rs->peers)
		rs->peers = calloc(RS_PEERS, sizeof(*rs->peers));
	return rs->peers ? 0 : -ENOMEM;
}

int rs_dgram_open(struct rs *rs, struct rdma_cm_id *id)
{
	int ret = rs_peers_make(rs);

	if (ret)
		return ret;
	if (rs->qp)
		return rs->qp->context == id->verbs ? 0 : -EHOSTUNREACH;
	ret = rs_dgram_qp_create(rs, id);
	if (ret)
		rs_qp_destroy(rs);
	rs_wake(rs, -1);
	return ret;
}

void rs_peers_free(struct rs *rs)
{
	for (size_t i = 0; rs->peers && i < RS_PEERS; i++)
		rs_ah_retire(rs, rs->peers[i].ah);
	if (rs->qp) { /* before the address handles that it uses */
		ibv_destroy_qp(rs->qp);
		rs->qp = NULL;
	}
	retired_free(rs, UINT64_MAX);
	free(rs->peers);
	rs->peers = NULL;
}

/* ---- completions ---- */

bool rs_dgram_room(const struct rs *rs)
{
	return rs->tx.posted - rs->tx.done < rs->tx.sq_entries;
}

void rs_dgram_failed(struct rs *rs, const struct ibv_wc *wc)
{
	log_debug("socket %d: datagram: %s", rs->fd,
		  ibv_wc_status_str(wc->status));
	if (!(wc->wr_id & RS_WR_RECV))
		rs_stream_sent(rs, wc->wr_id);
}

void rs_dgram_return(struct rs *rs, uint32_t slot)
{
	if (rs_post_recv(rs, &slot, 1))
		log_error("socket %d: a receive could not be posted", rs->fd);
}

/* Enters the sender of a datagram in the cache: an answer then needs no lookup. */
static void peer_learn(struct rs *rs, const struct ibv_wc *wc, uint32_t slot,
		       const struct sockaddr_storage *from,
		       const struct rs_datagram *h)
{
	struct rs_peer *p = rs_peer_find(rs, rs_sa(from)), fresh;
	uint64_t now_ns = clock_now_ns();

	if (p && p->ah && p->qpn == wc->src_qp) {
		p->fresh_ns = now_ns;
		return;
	}
	fresh = (struct rs_peer){
		.addr = *from,
		.qpn = wc->src_qp,
		.qkey = RDMA_UDP_QKEY,
		.fresh_ns = now_ns,
	};
	rs_addr_from_wire(&fresh.local, h->ip, h->dst, ntohs(h->dst_port));
	fresh.ah = ibv_create_ah_from_wc(rs->qp->pd, (struct ibv_wc *)(uintptr_t)wc,
					 (struct ibv_grh *)(void *)rs_slot(rs, slot),
					 rs->port_num);
	if (fresh.ah)
		rs_peer_put(rs, &fresh);
}

void rs_dgram_received(struct rs *rs, const struct ibv_wc *wc, uint32_t slot)
{
	struct rs_rx *rx = &rs->rx;
	struct sockaddr_storage from;
	struct rs_datagram h;

	if (wc->byte_len < RS_GRH_SIZE + RS_DGRAM_HEADER || !(wc->wc_flags & IBV_WC_GRH))
		goto drop;
	memcpy(&h, rs_slot(rs, slot) + RS_GRH_SIZE, RS_DGRAM_HEADER);
	if (h.version != RS_VERSION || (h.ip != 4 && h.ip != 6) ||
	    h.dst_port != rdma_get_src_port(rs->id))
		goto drop;
	rs_addr_from_wire(&from, h.ip, h.src, ntohs(h.src_port));
	peer_learn(rs, wc, slot, &from, &h);
	if (rx->shut || (rs->connected.ss_family &&
			 !rs_addr_equal(rs_sa(&from), rs_sa(&rs->connected))))
		goto drop;
	rs->edges[RS_EDGE_IN]++;
	rx->ready[rx->ready_head++ % rx->slot_count] = (struct rs_ready){
		.slot = slot,
		.at = RS_GRH_SIZE + RS_DGRAM_HEADER,
		.len = wc->byte_len - RS_GRH_SIZE - RS_DGRAM_HEADER,
	};
	return;

drop:
	rs_dgram_return(rs, slot);
}
