/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram sockets: a UD queue pair and a cache of peers by address. As with UDP, a
 * datagram is lost if no socket has the address, or if the peer has no free receive.
 */
#define LOG_ROOM "rsocket"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"

#define GRH_SIZE 40
#define HEADER ((uint32_t)sizeof(struct rs_datagram))
/* A peer that sent nothing for that long is looked up again: another socket may have
 * its address now. */
#define FRESH_NS (1000 * RS_NSEC_PER_MSEC)
/* How long the failure of a lookup is remembered. */
#define FAILED_NS (100 * RS_NSEC_PER_MSEC)
#define SIGNALS 4

static const struct sockaddr *sa(const struct sockaddr_storage *s)
{
	return (const struct sockaddr *)s;
}

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

/* Destroys `ah` when all posted datagrams are done, which may use it. A peer that does
 * not send is looked up every second and gets a new handle each time. */
static void ah_retire(struct rs *rs, struct ibv_ah *ah)
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

static struct rs_peer *peer_find(struct rs *rs, const struct sockaddr *addr)
{
	struct rs_peer *p;

	if (!rs->peers)
		return NULL;
	p = bucket_of(rs, addr);
	for (int i = 0; i < RS_PEERS_BUCKET; i++, p++)
		if (p->addr.ss_family && rs_addr_equal(sa(&p->addr), addr))
			return p;
	return NULL;
}

/* Enters `from`, replacing the entry of its address or the oldest of its bucket. */
static struct rs_peer *peer_put(struct rs *rs, const struct rs_peer *from)
{
	struct rs_peer *p = peer_find(rs, sa(&from->addr));

	if (!p) {
		struct rs_peer *bucket = bucket_of(rs, sa(&from->addr));

		p = bucket;
		for (int i = 1; i < RS_PEERS_BUCKET; i++)
			if (bucket[i].fresh_ns < p->fresh_ns)
				p = &bucket[i];
	}
	ah_retire(rs, p->ah);
	*p = *from;
	return p;
}

static int peers_make(struct rs *rs)
{
	if (!rs->peers)
		rs->peers = calloc(RS_PEERS, sizeof(*rs->peers));
	return rs->peers ? 0 : -ENOMEM;
}

int rs_dgram_open(struct rs *rs, struct rdma_cm_id *id)
{
	int ret = peers_make(rs);

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

static bool is_usable(const struct rs_peer *p, uint64_t now_ns)
{
	return p && p->ah && now_ns - p->fresh_ns < FRESH_NS;
}

/* Looks `addr` up in the cache or, without the lock (the peer may be this very
 * socket), by SIDR. 0 or the failure as a negative errno. */
static int peer_get(struct rs *rs, const struct sockaddr *addr,
		    struct rs_peer **out)
{
	uint64_t now_ns = clock_now_ns();
	struct rs_peer found, *p = peer_find(rs, addr);

	if (!is_usable(p, now_ns)) {
		if (p && p->failure && now_ns - p->failed_ns < FAILED_NS)
			return p->failure;
		memset(&found, 0, sizeof(found));
		rs_addr_copy(&found.addr, addr);
		pthread_mutex_unlock(&rs->lock);
		found.failure = rs_lookup(rs, sa(&found.addr), &found);
		pthread_mutex_lock(&rs->lock);
		if (rs->closing) {
			ah_retire(rs, found.ah);
			return -EBADF;
		}
		if (peers_make(rs)) {
			ah_retire(rs, found.ah);
			return -ENOMEM;
		}
		found.fresh_ns = found.failed_ns = clock_now_ns();
		p = peer_put(rs, &found);
	}
	*out = p;
	return p->failure;
}

/* ---- binding ---- */

int rs_dgram_bind(struct rs *rs, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_storage copy;
	int ret = 0;

	if (rs->state != RS_OPEN)
		return -EINVAL;
	if (!rs->id && rdma_create_id(rs->channel, &rs->id, NULL, RDMA_PS_UDP))
		return -errno;
	rs_id_options(rs);
	rs_addr_copy(&copy, addr);
	if (rdma_bind_addr(rs->id, (struct sockaddr *)&copy))
		return -errno;
	if (rs->id->verbs) /* else the device follows from the first peer */
		ret = rs_dgram_open(rs, rs->id);
	if (!ret && rdma_listen(rs->id, 0))
		ret = -errno;
	if (!ret)
		ret = rs_serve(rs);
	if (!ret)
		rs->state = RS_BOUND;
	return ret;
}

static int any_bind(struct rs *rs)
{
	CANCEL_OFF;
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	if (rs->state != RS_OPEN)
		return 0;
	return rs->domain == AF_INET ?
		       rs_dgram_bind(rs, (struct sockaddr *)&v4, sizeof(v4)) :
		       rs_dgram_bind(rs, (struct sockaddr *)&v6, sizeof(v6));
}

int rs_dgram_connect(struct rs *rs, const struct sockaddr *addr, socklen_t len)
{
	struct rs_peer *peer;
	int ret;

	if (addr && len >= sizeof(addr->sa_family) && addr->sa_family == AF_UNSPEC) {
		memset(&rs->connected, 0, sizeof(rs->connected));
		return 0;
	}
	ret = rs_addr_check(rs, addr, len);
	if (!ret)
		ret = any_bind(rs);
	if (ret)
		return ret;
	/* connect(2) does not fail if there is no such peer yet. */
	ret = peer_get(rs, addr, &peer);
	if (ret && ret != -ECONNREFUSED)
		return ret;
	rs_addr_copy(&rs->connected, addr);
	return 0;
}

/* ---- sending ---- */

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

static int room_ready(struct rs *rs, uint32_t arg)
{
	(void)arg;
	return rs->closing ? -EBADF : rs_dgram_room(rs);
}

static void header_fill(const struct rs *rs, const struct rs_peer *p,
			struct rs_datagram *h)
{
	*h = (struct rs_datagram){
		.version = RS_VERSION,
		.ip = p->addr.ss_family == AF_INET ? 4 : 6,
		.src_port = rdma_get_src_port(rs->id),
		.dst_port = htons(rs_addr_port(sa(&p->addr))),
	};
	rs_addr_to_wire(sa(&p->local), h->src);
	rs_addr_to_wire(sa(&p->addr), h->dst);
}

static int datagram_post(struct rs *rs, const struct rs_peer *p,
			 struct rs_iter *it)
{
	struct rs_tx *tx = &rs->tx;
	uint32_t len = HEADER + (uint32_t)it->left;
	uint8_t *at = tx->ring + tx->posted % tx->sq_entries * rs->mtu;
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = len,
			       .lkey = tx->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = tx->posted,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = len <= tx->inline_max ? IBV_SEND_INLINE : 0,
		.wr.ud = { .ah = p->ah, .remote_qpn = p->qpn,
			   .remote_qkey = p->qkey },
	};
	struct rs_datagram header;
	int ret;

	header_fill(rs, p, &header);
	memcpy(at, &header, HEADER);
	rs_iter_read(it, at + HEADER, it->left);
	if (tx->posted + 1 - tx->signaled >= MAX(tx->sq_entries / SIGNALS, 1u)) {
		wr.send_flags |= IBV_SEND_SIGNALED;
		tx->signaled = tx->posted + 1;
	}
	ret = ibv_post_send(rs->qp, &wr, &bad);
	if (ret)
		return -ret;
	tx->posted++;
	return 0;
}

ssize_t rs_dgram_send(struct rs *rs, const struct iovec *iov, size_t count,
		      int flags, const struct sockaddr *to, socklen_t len)
{
	struct rs_peer *peer = NULL;
	struct rs_iter it;
	ssize_t size;
	int ret = rs_iter_init(&it, iov, count);

	if (!ret && rs->tx.shut)
		ret = -EPIPE;
	if (!ret && to)
		ret = rs_addr_check(rs, to, len);
	else if (!ret && !rs->connected.ss_family)
		ret = -EDESTADDRREQ;
	if (!ret)
		ret = any_bind(rs);
	if (!ret)
		ret = peer_get(rs, to ? to : sa(&rs->connected), &peer);
	if (ret)
		return ret;
	size = (ssize_t)it.left;
	if (it.left > rs->mtu - HEADER)
		return -EMSGSIZE;
	rs_progress(rs);
	if (!rs_dgram_room(rs)) {
		if ((rs->flags & O_NONBLOCK) || flags & MSG_DONTWAIT)
			return -EAGAIN;
		ret = rs_wait(rs, room_ready, 0, rs->opt.send_timeout_ms);
		/* During the wait the cache may have changed. */
		if (!ret)
			ret = peer_get(rs, to ? to : sa(&rs->connected), &peer);
		if (ret)
			return ret;
	}
	ret = datagram_post(rs, peer, &it);
	return ret ? ret : size;
}

/* ---- receiving ---- */

static void slot_return(struct rs *rs, uint32_t slot)
{
	if (rs_post_recv(rs, &slot, 1))
		log_error("socket %d: a receive could not be posted", rs->fd);
}

/* Enters the sender of a datagram in the cache: an answer then needs no lookup. */
static void peer_learn(struct rs *rs, const struct ibv_wc *wc, uint32_t slot,
		       const struct sockaddr_storage *from,
		       const struct rs_datagram *h)
{
	struct rs_peer *p = peer_find(rs, sa(from)), fresh;
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
		peer_put(rs, &fresh);
}

void rs_dgram_received(struct rs *rs, const struct ibv_wc *wc, uint32_t slot)
{
	struct rs_rx *rx = &rs->rx;
	struct sockaddr_storage from;
	struct rs_datagram h;

	if (wc->byte_len < GRH_SIZE + HEADER || !(wc->wc_flags & IBV_WC_GRH))
		goto drop;
	memcpy(&h, rs_slot(rs, slot) + GRH_SIZE, HEADER);
	if (h.version != RS_VERSION || (h.ip != 4 && h.ip != 6) ||
	    h.dst_port != rdma_get_src_port(rs->id))
		goto drop;
	rs_addr_from_wire(&from, h.ip, h.src, ntohs(h.src_port));
	peer_learn(rs, wc, slot, &from, &h);
	if (rx->shut || (rs->connected.ss_family &&
			 !rs_addr_equal(sa(&from), sa(&rs->connected))))
		goto drop;
	rs->edges[RS_EDGE_IN]++;
	rx->ready[rx->ready_head++ % rx->slot_count] = (struct rs_ready){
		.slot = slot,
		.at = GRH_SIZE + HEADER,
		.len = wc->byte_len - GRH_SIZE - HEADER,
	};
	return;

drop:
	slot_return(rs, slot);
}

static int dgram_ready(struct rs *rs, uint32_t arg)
{
	(void)arg;
	if (rs->closing)
		return -EBADF;
	return rs->rx.ready_head != rs->rx.ready_tail || rs->rx.shut;
}

static int dgram_wait(struct rs *rs, int flags)
{
	if (rs->state == RS_OPEN) {
		int ret = any_bind(rs);

		if (ret)
			return ret;
	}
	if (!dgram_ready(rs, 0))
		rs_progress(rs);
	if (dgram_ready(rs, 0))
		return MIN(dgram_ready(rs, 0), 0);
	if ((rs->flags & O_NONBLOCK) || flags & MSG_DONTWAIT)
		return -EAGAIN;
	return rs_wait(rs, dgram_ready, 0, rs->opt.recv_timeout_ms);
}

ssize_t rs_dgram_recv(struct rs *rs, const struct iovec *iov, size_t count,
		      int flags, struct sockaddr *from, socklen_t *len,
		      int *msg_flags)
{
	struct rs_rx *rx = &rs->rx;
	struct sockaddr_storage source;
	struct rs_datagram h;
	struct rs_ready *r;
	struct rs_iter it;
	size_t n;
	int ret = rs_iter_init(&it, iov, count);

	if (!ret)
		ret = dgram_wait(rs, flags);
	if (ret || rx->ready_head == rx->ready_tail)
		return ret;
	r = &rx->ready[rx->ready_tail % rx->slot_count];
	memcpy(&h, rs_slot(rs, r->slot) + GRH_SIZE, HEADER);
	rs_addr_from_wire(&source, h.ip, h.src, ntohs(h.src_port));
	rs_addr_give(rs->domain, sa(&source), from, len);
	n = MIN((size_t)r->len, it.left);
	rs_iter_write(&it, rs_slot(rs, r->slot) + r->at, n);
	if (n < r->len && msg_flags)
		*msg_flags |= MSG_TRUNC;
	if (flags & MSG_TRUNC)
		n = r->len;
	if (!(flags & MSG_PEEK)) {
		rx->ready_tail++;
		slot_return(rs, r->slot);
	}
	return (ssize_t)n;
}

/* ---- closing ---- */

void rs_dgram_close(struct rs *rs)
{
	rs_unserve(rs);
	pthread_mutex_lock(&rs->lock);
	for (size_t i = 0; rs->peers && i < RS_PEERS; i++)
		ah_retire(rs, rs->peers[i].ah);
	if (rs->qp) { /* before the address handles that it uses */
		ibv_destroy_qp(rs->qp);
		rs->qp = NULL;
	}
	retired_free(rs, UINT64_MAX);
	free(rs->peers);
	rs->peers = NULL;
	pthread_mutex_unlock(&rs->lock);
}
