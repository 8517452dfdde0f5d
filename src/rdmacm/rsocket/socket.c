/* SPDX-License-Identifier: BSD-2-Clause */
/* A socket's birth and end: rsocket, rshutdown, rclose. */
#define LOG_ROOM "rsocket"
#include <fcntl.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"

/* How long rclose() waits for the peer's adapter to take the rest in, where
 * SO_LINGER says nothing else. The peer's program need not do anything for that. */
#define CLOSE_MS 2000

int rs_open_channel(struct rs *rs)
{
	int flags;

	rs->channel = rdma_create_event_channel();
	if (!rs->channel)
		return -errno;
	rs->fd = rs->channel->fd;
	flags = fcntl(rs->fd, F_GETFL);
	/* Blocking is made of poll(2), never of the channel. */
	return fcntl(rs->fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

RS_EXPORT int rsocket(int domain, int type, int protocol)
{
	CANCEL_OFF;
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct rs *rs;
	int ret;

	if (domain != AF_INET && domain != AF_INET6)
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
	       (rs->tx.end_sent && rs->tx.done == rs->tx.posted);
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

	/* A caller that we have just answered deserves to be connected first. */
	if (rs->state == RS_ACCEPTING && !abort)
		rs_wait(rs, settled, 0, CLOSE_MS);
	rs->tx.shut = true;
	rs->tx.end_sent |= abort; /* the peer is to take it for a failure */
	rs_stream_discard(rs);
	if (rs->state == RS_CONNECTED && !abort) {
		/* A signal does not lose what was sent. */
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
		/* accept() returns, as it does with TCP. */
		if (how != SHUT_WR)
			rs->state = RS_BOUND;
		return 0;
	}
	if (rs->state < RS_ACCEPTING)
		return -ENOTCONN;
	if (how != SHUT_RD) {
		rs->tx.shut = true;
		/* An entry of the send queue is all that it needs, and the peer's
		 * adapter gives one back soon: so this waits even where nothing
		 * else would, for nobody may come by again. */
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
	struct rs *rs = rs_get(socket);
	int ret;

	if (!rs)
		return (int)rs_result(-EBADF);
	pthread_mutex_lock(&rs->lock);
	ret = shut(rs, how);
	rs_wake(rs, -1);
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return (int)rs_result(ret);
}

RS_EXPORT int rclose(int socket)
{
	CANCEL_OFF;
	struct rs *rs = rs_get(socket);
	bool first;

	if (!rs)
		return (int)rs_result(-EBADF);
	pthread_mutex_lock(&rs->lock);
	first = !rs->closing;
	rs->closing = true;
	rs_wake(rs, -1);
	if (first && rs_is_stream(rs))
		rs_stream_close(rs);
	pthread_mutex_unlock(&rs->lock);
	if (first) {
		if (!rs_is_stream(rs))
			rs_dgram_close(rs);
		rs_withdraw(rs);
		atomic_store(&rs->dead, true);
		rs_put(rs);
	}
	rs_put(rs);
	return first ? 0 : (int)rs_result(-EBADF);
}
