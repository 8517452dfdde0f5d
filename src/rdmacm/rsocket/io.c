/* SPDX-License-Identifier: BSD-2-Clause */
/* rsend, rrecv and their variants. */
#include <fcntl.h>

#include "rdmacm/rsocket/epoll.h"
#include "rdmacm/rsocket/rs.h"

/* Flags that ask for something that is not implemented. Other unknown flags are
 * ignored, as by a TCP socket. */
#define SEND_REFUSED (MSG_OOB | MSG_ZEROCOPY | MSG_FASTOPEN)
#define RECV_REFUSED (MSG_OOB | MSG_ERRQUEUE)

static bool may_block(const struct rs *rs, int flags)
{
	return !(rs->flags & O_NONBLOCK) && !(flags & MSG_DONTWAIT);
}

static int error_take(struct rs *rs)
{
	int error = rs->error;

	rs->error = 0;
	return error;
}

/* ---- sending ---- */

/* 1: a message with `len` bytes can be posted; 0: not now; < 0: it never can. */
static int send_ready(struct rs *rs, uint32_t len)
{
	if (rs->closing)
		return -EBADF;
	if (rs->error)
		return -error_take(rs);
	if (rs->state != RS_CONNECTED || rs->tx.shut)
		return -EPIPE;
	return rs_stream_room(rs, RS_DATA, len);
}

static int send_wait(struct rs *rs, uint32_t len, int flags)
{
	int ret = send_ready(rs, len);

	if (likely(ret))
		return ret < 0 ? ret : 0;
	rs_progress(rs);
	ret = send_ready(rs, len);
	if (ret)
		return ret < 0 ? ret : 0;
	rs->out_full = true;
	if (!may_block(rs, flags))
		return -EAGAIN;
	return rs_wait(rs, send_ready, len, rs->opt.send_timeout_ms);
}

static ssize_t stream_send(struct rs *rs, const struct iovec *iov, size_t count,
			   int flags)
{
	struct rs_iter it;
	size_t all;
	int ret = rs_iter_init(&it, iov, count);

	if (!ret)
		ret = rs_connected(rs, flags);
	/* For a connection that has ended send(2) has EPIPE. */
	if (ret == -ENOTCONN && rs->state == RS_GONE)
		ret = -EPIPE;
	if (ret)
		return ret;
	all = it.left;
	while (it.left) {
		uint32_t len = (uint32_t)MIN(it.left, (size_t)rs->tx.payload_max);

		ret = send_wait(rs, len, flags);
		if (!ret)
			ret = rs_stream_message(rs, RS_DATA, &it, len);
		if (ret)
			break;
		if (it.left) { /* lets a receiving thread have the lock */
			pthread_mutex_unlock(&rs->lock);
			pthread_mutex_lock(&rs->lock);
		}
	}
	return it.left < all ? (ssize_t)(all - it.left) : ret;
}

static ssize_t send_iov(int socket, const struct iovec *iov, size_t count,
			int flags, const struct sockaddr *to, socklen_t len)
{
	struct rs *rs = rs_enter(socket);
	ssize_t ret;

	if (!rs)
		return -1;
	if (flags & SEND_REFUSED)
		ret = -EOPNOTSUPP;
	else if (!rs_is_stream(rs))
		ret = rs_dgram_send(rs, iov, count, flags, to, len);
	else
		ret = stream_send(rs, iov, count, flags);
	return rs_leave(rs, ret);
}

RS_EXPORT ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };

	return send_iov(socket, &iov, 1, flags, NULL, 0);
}

RS_EXPORT ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
			  const struct sockaddr *dest_addr, socklen_t addrlen)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };

	return send_iov(socket, &iov, 1, flags, dest_addr, addrlen);
}

RS_EXPORT ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	/* No control messages are supported. */
	if (msg->msg_control && msg->msg_controllen)
		return rs_result(-EOPNOTSUPP);
	return send_iov(socket, msg->msg_iov, msg->msg_iovlen, flags,
			msg->msg_name, msg->msg_namelen);
}

RS_EXPORT ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsend(socket, buf, count, 0);
}

RS_EXPORT ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	if (iovcnt < 0)
		return rs_result(-EINVAL);
	return send_iov(socket, iov, (size_t)iovcnt, 0, NULL, 0);
}

/* ---- receiving ---- */

/* 1: there are more than that many bytes, an error or the end to return; 0: not yet. */
static int recv_ready(struct rs *rs, uint32_t more_than)
{
	const struct rs_rx *rx = &rs->rx;

	if (rs->closing)
		return -EBADF;
	return rx->ready_bytes > more_than || rx->ended || rx->shut ||
	       rs->error || rs->state == RS_GONE;
}

static int recv_wait(struct rs *rs, uint32_t more_than, int flags)
{
	int ret = recv_ready(rs, more_than);

	if (ret)
		return ret < 0 ? ret : 0;
	rs_progress(rs);
	ret = recv_ready(rs, more_than);
	if (ret)
		return ret < 0 ? ret : 0;
	if (!may_block(rs, flags))
		return -EAGAIN;
	return rs_wait(rs, recv_ready, more_than, rs->opt.recv_timeout_ms);
}

/* Bytes that came before the end of a connection can still be read. */
static int recv_allowed(struct rs *rs, int flags)
{
	if (rs->state == RS_CONNECTED || rs->state == RS_ACCEPTING ||
	    (rs->state == RS_GONE && (rs->rx.slots || rs->error)))
		return 0;
	return rs_connected(rs, flags);
}

static ssize_t stream_recv(struct rs *rs, const struct iovec *iov, size_t count,
			   int flags)
{
	struct rs_iter it;
	size_t got = 0;
	int ret = rs_iter_init(&it, iov, count);

	if (!ret)
		ret = recv_allowed(rs, flags);
	if (ret || !it.left)
		return ret;
	/* A repeated MSG_PEEK must see bytes that came since. */
	if (flags & MSG_PEEK)
		rs_progress(rs);
	do {
		size_t n;

		ret = recv_wait(rs, 0, flags);
		if (ret)
			break;
		n = rs_stream_take(rs, &it, flags & MSG_PEEK);
		got += n;
		if (!n) { /* no more bytes */
			if (!got && rs->error && !rs->rx.shut)
				ret = -error_take(rs);
			break;
		}
		/* The slots just read allow further messages to come in. */
		if (it.left && !(flags & MSG_PEEK))
			rs_progress(rs);
	} while (it.left && !(flags & MSG_PEEK) &&
		 (rs->rx.ready_bytes || (flags & MSG_WAITALL)));
	return got ? (ssize_t)got : ret;
}

static ssize_t recv_iov(int socket, const struct iovec *iov, size_t count,
			int flags, struct sockaddr *from, socklen_t *len,
			int *msg_flags)
{
	struct rs *rs = rs_enter(socket);
	ssize_t ret;

	if (!rs)
		return -1;
	if (flags & RECV_REFUSED) {
		ret = -EOPNOTSUPP;
	} else if (!rs_is_stream(rs)) {
		ret = rs_dgram_recv(rs, iov, count, flags, from, len, msg_flags);
	} else {
		ret = stream_recv(rs, iov, count, flags);
		if (ret >= 0 && len)
		*len = 0; /* a stream gives no sender addresses */
	}
	return rs_leave(rs, ret);
}

RS_EXPORT ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	struct iovec iov = { buf, len };

	return recv_iov(socket, &iov, 1, flags, NULL, NULL, NULL);
}

RS_EXPORT ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags,
			    struct sockaddr *src_addr, socklen_t *addrlen)
{
	struct iovec iov = { buf, len };

	return recv_iov(socket, &iov, 1, flags, src_addr, addrlen, NULL);
}

RS_EXPORT ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	int msg_flags = 0;
	ssize_t ret = recv_iov(socket, msg->msg_iov, msg->msg_iovlen, flags,
			       msg->msg_name, &msg->msg_namelen, &msg_flags);

	if (ret >= 0) {
		msg->msg_controllen = 0;
		msg->msg_flags = msg_flags;
	}
	return ret;
}

RS_EXPORT ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecv(socket, buf, count, 0);
}

RS_EXPORT ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	if (iovcnt < 0)
		return rs_result(-EINVAL);
	return recv_iov(socket, iov, (size_t)iovcnt, 0, NULL, NULL, NULL);
}

RS_EXPORT int busbar_rreadable(int socket, int *bytes)
{
	struct rs *rs = rs_enter(socket);

	if (!rs)
		return -1;
	rs_progress(rs);
	*bytes = (int)MIN(rs->rx.ready_bytes, (uint64_t)INT32_MAX);
	return (int)rs_leave(rs, 0);
}
