/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram sockets: binding, sending, receiving. As with UDP, a
 * datagram is lost if no socket has the address, or if the peer has no free receive.
 */
#define LOG_ROOM "rsocket"
#include <fcntl.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"

/* A peer that sent nothing for that long is looked up again: another socket may have
 * its address now. */
#define FRESH_NS (1000 * RS_NSEC_PER_MSEC)
/* How long the failure of a lookup is remembered. */
#define FAILED_NS (100 * RS_NSEC_PER_MSEC)
#define SIGNALS 4

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
	struct rs_peer found, *p = rs_peer_find(rs, addr);

	if (!is_usable(p, now_ns)) {
		if (p && p->failure && now_ns - p->failed_ns < FAILED_NS)
			return p->failure;
		memset(&found, 0, sizeof(found));
		rs_addr_copy(&found.addr, addr);
		pthread_mutex_unlock(&rs->lock);
		found.failure = rs_lookup(rs, rs_sa(&found.addr), &found);
		pthread_mutex_lock(&rs->lock);
		if (rs->closing) {
			rs_ah_retire(rs, found.ah);
			return -EBADF;
		}
		if (rs_peers_make(rs)) {
			rs_ah_retire(rs, found.ah);
			return -ENOMEM;
		}
		found.fresh_ns = found.failed_ns = clock_now_ns();
		p = rs_peer_put(rs, &found);
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
		.dst_port = htons(rs_addr_port(rs_sa(&p->addr))),
	};
	rs_addr_to_wire(rs_sa(&p->local), h->src);
	rs_addr_to_wire(rs_sa(&p->addr), h->dst);
}

static int datagram_post(struct rs *rs, const struct rs_peer *p,
			 struct rs_iter *it)
{
	struct rs_tx *tx = &rs->tx;
	uint32_t len = RS_DGRAM_HEADER + (uint32_t)it->left;
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
	memcpy(at, &header, RS_DGRAM_HEADER);
	rs_iter_read(it, at + RS_DGRAM_HEADER, it->left);
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
		ret = peer_get(rs, to ? to : rs_sa(&rs->connected), &peer);
	if (ret)
		return ret;
	size = (ssize_t)it.left;
	if (it.left > rs->mtu - RS_DGRAM_HEADER)
		return -EMSGSIZE;
	rs_progress(rs);
	if (!rs_dgram_room(rs)) {
		if ((rs->flags & O_NONBLOCK) || flags & MSG_DONTWAIT)
			return -EAGAIN;
		ret = rs_wait(rs, room_ready, 0, rs->opt.send_timeout_ms);
		/* During the wait the cache may have changed. */
		if (!ret)
			ret = peer_get(rs, to ? to : rs_sa(&rs->connected), &peer);
		if (ret)
			return ret;
	}
	ret = datagram_post(rs, peer, &it);
	return ret ? ret : size;
}

/* ---- receiving ---- */

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
	memcpy(&h, rs_slot(rs, r->slot) + RS_GRH_SIZE, RS_DGRAM_HEADER);
	rs_addr_from_wire(&source, h.ip, h.src, ntohs(h.src_port));
	rs_addr_give(rs->domain, rs_sa(&source), from, len);
	n = MIN((size_t)r->len, it.left);
	rs_iter_write(&it, rs_slot(rs, r->slot) + r->at, n);
	if (n < r->len && msg_flags)
		*msg_flags |= MSG_TRUNC;
	if (flags & MSG_TRUNC)
		n = r->len;
	if (!(flags & MSG_PEEK)) {
		rx->ready_tail++;
		rs_dgram_return(rs, r->slot);
	}
	return (ssize_t)n;
}

/* ---- closing ---- */

void rs_dgram_close(struct rs *rs)
{
	rs_unserve(rs);
	pthread_mutex_lock(&rs->lock);
	rs_peers_free(rs);
	pthread_mutex_unlock(&rs->lock);
}
