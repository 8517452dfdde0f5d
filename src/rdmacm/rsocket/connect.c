/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and connections: rbind, rlisten, raccept, rconnect. */
#include <fcntl.h>
#include <infiniband/ib.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"

static int id_make(struct rs *rs)
{
	if (rs->id)
		return 0;
	if (rdma_create_id(rs->channel, &rs->id, NULL, RDMA_PS_TCP))
		return -errno;
	rs_id_options(rs);
	return 0;
}

static int stream_bind(struct rs *rs, const struct sockaddr *addr)
{
	struct sockaddr_storage copy;
	int ret;

	if (rs->state != RS_OPEN)
		return -EINVAL;
	ret = id_make(rs);
	if (ret)
		return ret;
	rs_addr_copy(&copy, addr);
	if (rdma_bind_addr(rs->id, (struct sockaddr *)&copy))
		return -errno;
	rs->state = RS_BOUND;
	return 0;
}

static int any_bind(struct rs *rs)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_ib ib = { .sib_family = AF_IB };

	return stream_bind(rs, rs->domain == AF_INET ? (struct sockaddr *)&v4 :
			       rs->domain == AF_IB   ? (struct sockaddr *)&ib :
						       (struct sockaddr *)&v6);
}

RS_EXPORT int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	CANCEL_OFF;
	struct rs *rs = rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	ret = rs_addr_check(rs, addr, addrlen);
	if (!ret)
		ret = rs_is_stream(rs) ? stream_bind(rs, addr) :
					 rs_dgram_bind(rs, addr, addrlen);
	return (int)rs_leave(rs, ret);
}

static int stream_listen(struct rs *rs, int backlog)
{
	int ret = 0;

	if (!rs_is_stream(rs))
		return -EOPNOTSUPP;
	if (rs->state == RS_LISTENING)
		return 0;
	if (rs->state == RS_OPEN)
		ret = any_bind(rs);
	if (ret || rs->state != RS_BOUND)
		return ret ? ret : -EINVAL;
	if (rdma_listen(rs->id, backlog))
		return -errno;
	rs->state = RS_LISTENING;
	return 0;
}

RS_EXPORT int rlisten(int socket, int backlog)
{
	CANCEL_OFF;
	struct rs *rs = rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	ret = stream_listen(rs, backlog);
	return (int)rs_leave(rs, ret);
}

/* Makes a connected socket of a request; on failure the request is destroyed. */
static int request_accept(struct rdma_cm_id *id, const struct rs_hello *peer,
			  const struct rs *listener, struct rs **out)
{
	CANCEL_OFF;
	struct rdma_conn_param param;
	struct rs_hello hello;
	struct rs *rs = rs_new(listener->domain, SOCK_STREAM);
	int ret = -ENOMEM;

	if (!rs)
		goto err_id;
	rs->opt = listener->opt;
	rs->opt.route = NULL;
	ret = rs_open_channel(rs);
	if (!ret && rdma_migrate_id(id, rs->channel))
		ret = -errno;
	if (ret)
		goto err_rs;
	rs->id = id;
	id = NULL;
	ret = rs_stream_qp_create(rs);
	if (ret)
		goto err_rs;
	rs_stream_meet(rs, peer);
	rs->theirs_count = rs->opt.map_count;
	rs_conn_params(rs, &hello, &param);
	rs->state = RS_ACCEPTING;
	ret = rs_publish(rs);
	/* The caller may have ended its attempt meanwhile. */
	if (!ret && rdma_accept(rs->id, &param)) {
		rs_withdraw(rs);
		ret = -ECONNABORTED;
	}
	if (ret)
		goto err_rs;
	*out = rs;
	return 0;

err_rs:
	atomic_store(&rs->dead, true);
	rs_put(rs);
err_id:
	if (id)
		rdma_destroy_id(id);
	return ret;
}

static int request_ready(struct rs *rs, uint32_t arg)
{
	(void)arg;
	if (rs->closing || rs->state != RS_LISTENING)
		return -EINVAL;
	return rs->pending != NULL;
}

static int stream_accept(struct rs *rs, struct rs **out)
{
	struct rdma_cm_id *id;
	struct rs_hello peer;
	int ret;

	if (!rs_is_stream(rs))
		return -EOPNOTSUPP;
	rs_progress(rs);
	ret = request_ready(rs, 0);
	if (!ret)
		ret = rs->flags & O_NONBLOCK ?
			      -EAGAIN :
			      rs_wait(rs, request_ready, 0,
				      rs->opt.recv_timeout_ms);
	if (ret < 0)
		return ret;
	id = rs->pending;
	peer = rs->pending_hello;
	rs->pending = NULL;
		/* Unlocked, so that other threads can accept or close meanwhile. */
	pthread_mutex_unlock(&rs->lock);
	ret = request_accept(id, &peer, rs, out);
	pthread_mutex_lock(&rs->lock);
	return ret;
}

RS_EXPORT int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_enter(socket), *made = NULL;
	int ret;

	if (!rs)
		return -1;
	ret = stream_accept(rs, &made);
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	if (ret < 0)
		return (int)rs_result(ret);
	rs_addr_give(made->domain, rdma_get_peer_addr(made->id), addr, addrlen);
	return made->fd;
}

static int connect_ready(struct rs *rs, uint32_t arg)
{
	(void)arg;
	if (rs->closing)
		return -EBADF;
	if (rs->state == RS_CONNECTED)
		return 1;
	if (rs->state == RS_GONE) {
		int error = rs->error;

		rs->error = 0;
		return error ? -error : -ENOTCONN;
	}
	return rs->state < RS_RESOLVING_ADDR ? -ENOTCONN : 0;
}

int rs_connected(struct rs *rs, int flags)
{
	int ret = connect_ready(rs, 0);

	if (ret)
		return ret < 0 ? ret : 0;
	rs_progress(rs);
	ret = connect_ready(rs, 0);
	if (!ret)
		ret = (rs->flags & O_NONBLOCK) || (flags & MSG_DONTWAIT) ?
			      -EAGAIN : rs_wait(rs, connect_ready, 0, 0);
	return ret < 0 ? ret : 0;
}

static int stream_connect(struct rs *rs, const struct sockaddr *addr)
{
	struct sockaddr_storage to;
	int ret;

	switch (rs->state) {
	case RS_OPEN:
	case RS_BOUND:
		break;
	case RS_CONNECTED:
	case RS_ACCEPTING:
		return -EISCONN;
	case RS_LISTENING:
		return -EOPNOTSUPP;
	case RS_GONE:
		return rs->error ? connect_ready(rs, 0) : -EINVAL;
	default:
		ret = rs_connected(rs, 0);
		return ret == -EAGAIN ? -EALREADY : ret;
	}
	ret = id_make(rs);
	if (ret)
		return ret;
	rs_addr_copy(&to, addr);
	rs->theirs_count = rs->opt.map_count;
	if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)&to, RS_RESOLVE_MS))
		return -errno;
	rs->state = RS_RESOLVING_ADDR;
	ret = rs_connected(rs, 0);
	if (ret == -EINTR) /* the attempt continues, as with connect(2) */
		return ret;
	return ret == -EAGAIN ? -EINPROGRESS : ret;
}

RS_EXPORT int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs *rs = rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	if (!rs_is_stream(rs)) {
		ret = rs_dgram_connect(rs, addr, addrlen);
	} else {
		ret = rs_addr_check(rs, addr, addrlen);
		if (!ret)
			ret = stream_connect(rs, addr);
	}
	return (int)rs_leave(rs, ret);
}
