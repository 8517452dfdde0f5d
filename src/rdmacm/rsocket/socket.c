/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket, rshutdown, rclose. */
#define LOG_ROOM "rsocket"
#include <fcntl.h>
#include <infiniband/ib.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"

/* How long rclose() waits, without SO_LINGER, until the peer's adapter has received
 * all bytes. The peer's program need not make a call for that. */
#define CLOSE_MS 2000

int rs_open_channel(struct rs *rs)
{
	int flags;

	rs->channel = rdma_create_event_channel();
	if (!rs->channel)
		return -errno;
	rs->fd = rs->channel->fd;
	flags = fcntl(rs->fd, F_GETFL);
	/* The channel never blocks; blocking calls wait in poll(2). */
	return fcntl(rs->fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

RS_EXPORT int rsocket(int domain, int type, int protocol)
{
	CANCEL_OFF;
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct rs *rs;
	int ret;

	/* Streams may have addresses of InfiniBand, too (a GID and a service); of datagrams each
	 * belongs to a port of UDP. */
	if (domain != AF_INET && domain != AF_INET6 &&
	    (domain != AF_IB || kind != SOCK_STREAM))
		return (int)rs_result(-EAFNOSUPPORT);
	if (kind != SOCK_STREAM && kind != SOCK_DGRAM)
		return (int)rs_result(-ESOCKTNOSUPPORT);
	if (protocol && protocol != (kind == SOCK_STREAM ? IPPROTO_TCP :
							  IPPROTO_UDP))
		return (int)rs_result(-EPROTONOSUPPORT);
	clock_init();
	rs = rs_new(domain, kind);
	if (!rs)
		return (int)rs_result(-ENOMEM);
	if (type & SOCK_NONBLOCK)
		rs->flags |= O_NONBLOCK;
	ret = rs_open_channel(rs);
	if (!ret)
		ret = rs_publish(rs);
	if (ret) {
		atomic_store(&rs->dead, true);
		rs_put(rs);
		return (int)rs_result(ret);
	}
	return rs->fd;
}

static int end_posted(struct rs *rs, uint32_t arg)
{
	(void)arg;
	rs_stream_end(rs);
	return rs->state != RS_CONNECTED || rs->tx.end_sent;
}

static int sent_all(struct rs *rs, uint32_t arg)
{
	(void)arg;
	rs_stream_end(rs);
	return rs->state != RS_CONNECTED ||
	       (rs->tx.end_sent && rs->tx.done >= rs->tx.end);
}

static int settled(struct rs *rs, uint32_t arg)
{
	(void)arg;
	return rs->state != RS_ACCEPTING;
}

void rs_stream_close(struct rs *rs)
{
	const struct linger *l = &rs->opt.linger;
	int limit_ms = l->l_onoff && l->l_linger > 0 ? l->l_linger * 1000 : CLOSE_MS;
	bool abort = l->l_onoff && !l->l_linger;

	/* Otherwise the caller, which was accepted, would see a failed attempt. */
	if (rs->state == RS_ACCEPTING && !abort)
		rs_wait(rs, settled, 0, CLOSE_MS);
	rs->tx.shut = true;
	rs->tx.end_sent |= abort; /* without RS_END the peer sees ECONNRESET */
	rs_stream_discard(rs);
	if (rs->state == RS_CONNECTED && !abort) {
		/* A signal must not lose bytes that were accepted. */
		while (rs_wait(rs, sent_all, 0, limit_ms) == -EINTR)
			;
		rs_stream_discard(rs);
	}
	if (rs->qp && (rs->state == RS_CONNECTED || rs->state == RS_GONE))
		rdma_disconnect(rs->id);
}

static int shut(struct rs *rs, int how)
{
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (!rs_is_stream(rs)) {
		rs->rx.shut |= how != SHUT_WR;
		rs->tx.shut |= how != SHUT_RD;
		return 0;
	}
	if (rs->state == RS_LISTENING) {
		/* A blocked accept() returns, as with TCP. */
		if (how != SHUT_WR)
			rs->state = RS_BOUND;
		return 0;
	}
	if (rs->state < RS_ACCEPTING)
		return -ENOTCONN;
	if (how != SHUT_RD) {
		rs->tx.shut = true;
		/* RS_END needs only an entry of the send queue, which the peer's
		 * adapter frees soon. This waits even with O_NONBLOCK, because
		 * the program may make no further call on the socket. */
		if (rs->state == RS_CONNECTED)
			rs_wait(rs, end_posted, 0, CLOSE_MS);
	}
	if (how != SHUT_WR) {
		rs->rx.shut = true;
		rs_stream_discard(rs);
	}
	return 0;
}

RS_EXPORT int rshutdown(int socket, int how)
{
	CANCEL_OFF;
	struct rs *rs = rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	ret = shut(rs, how);
	rs->edges[RS_EDGE_STATE] += !ret;
	rs_wake(rs, -1);
	return (int)rs_leave(rs, ret);
}

RS_EXPORT int rclose(int socket)
{
	CANCEL_OFF;
	struct rs *rs = rs_enter(socket);
	bool first;

	if (!rs)
		return -1;
	first = !rs->closing;
	rs->closing = true;
	rs_wake(rs, -1);
	if (first && rs_is_stream(rs))
		rs_stream_close(rs);
	pthread_mutex_unlock(&rs->lock);
	if (first) {
		rs_watches_end(rs);
		if (!rs_is_stream(rs))
			rs_dgram_close(rs);
		rs_withdraw(rs);
		atomic_store(&rs->dead, true);
		rs_put(rs);
	}
	rs_put(rs);
	return first ? 0 : (int)rs_result(-EBADF);
}
