/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options, flags and names. Options that are one number are entries in a table. Sizes
 * have no effect on a socket that is connected already.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"

struct number {
	int level, name;
	size_t offset;
	uint32_t min, max; /* values outside are set to the limit, as in socket(7) */
	bool flag;         /* reads as 0 or 1 */
};

#define NUMBER(level, name, field, min, max) \
	{ level, name, offsetof(struct rs_options, field), min, max, false }
#define FLAG(level, name, field) \
	{ level, name, offsetof(struct rs_options, field), 0, 1, true }

static const struct number numbers[] = {
	NUMBER(SOL_SOCKET, SO_RCVBUF, recv_size, 4096, 1u << 30),
	NUMBER(SOL_SOCKET, SO_SNDBUF, send_size, 4096, 1u << 30),
	FLAG(SOL_SOCKET, SO_REUSEADDR, reuse_addr),
	FLAG(SOL_SOCKET, SO_KEEPALIVE, keep_alive),
	FLAG(SOL_SOCKET, SO_OOBINLINE, oob_inline),
	FLAG(IPPROTO_TCP, TCP_NODELAY, no_delay),
	NUMBER(IPPROTO_TCP, TCP_KEEPIDLE, keep_idle, 1, 32767),
	NUMBER(IPPROTO_TCP, TCP_KEEPINTVL, keep_interval, 1, 32767),
	NUMBER(IPPROTO_TCP, TCP_KEEPCNT, keep_count, 1, 127),
	FLAG(IPPROTO_IPV6, IPV6_V6ONLY, v6_only),
	NUMBER(SOL_RDMA, RDMA_SQSIZE, sq_size, 8, 16384),
	NUMBER(SOL_RDMA, RDMA_RQSIZE, rq_size, 2, 16384),
	NUMBER(SOL_RDMA, RDMA_INLINE, inline_size, 0, 1024),
	NUMBER(SOL_RDMA, RDMA_IOMAPSIZE, map_count, 0, RS_MAPS_MAX),
};

static const struct number *number_find(int level, int name)
{
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (numbers[i].level == level && numbers[i].name == name)
			return &numbers[i];
	return NULL;
}

static uint32_t *number_field(struct rs_options *o, const struct number *n)
{
	return (uint32_t *)(void *)((char *)o + n->offset);
}

/* Is the option fixed, because a queue pair was made with it? */
static bool is_fixed(const struct rs *rs, const struct number *n)
{
	return rs->qp && (n->level == SOL_RDMA ||
			  (n->level == SOL_SOCKET &&
			   (n->name == SO_RCVBUF || n->name == SO_SNDBUF)));
}

static int number_set(struct rs *rs, const struct number *n, const void *value,
		      socklen_t len)
{
	int64_t number;
	int given;

	if (!value || len < sizeof(given))
		return -EINVAL;
	memcpy(&given, value, sizeof(given));
	if (n->level == SOL_RDMA && given < 0)
		return -EINVAL;
	number = n->flag ? given != 0 : given;
	number = MAX(MIN(number, (int64_t)n->max), (int64_t)n->min);
		if (is_fixed(rs, n)) /* only less inline data is possible */
		return n->name == RDMA_INLINE && n->level == SOL_RDMA ?
			       rs_inline_set(rs, (uint32_t)number) :
		       n->level == SOL_SOCKET ? 0 : -EINVAL;
	*number_field(&rs->opt, n) = (uint32_t)number;
	if (rs->id && n->level == SOL_SOCKET && n->name == SO_REUSEADDR)
		rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
				&rs->opt.reuse_addr, sizeof(int));
	return 0;
}

static int timeout_set(int *field_ms, const void *value, socklen_t len)
{
	struct timeval tv;
	int64_t ms;

	if (!value || len < sizeof(tv))
		return -EINVAL;
	memcpy(&tv, value, sizeof(tv));
	if (tv.tv_sec < 0 || tv.tv_usec < 0 || tv.tv_usec >= 1000000)
		return -EDOM;
	ms = (int64_t)MIN(tv.tv_sec, 2000000) * 1000 + (tv.tv_usec + 999) / 1000;
	*field_ms = (int)ms;
	return 0;
}

static int route_set(struct rs *rs, const void *value, socklen_t len)
{
	struct ibv_path_data *route;

	if (!value || !len || len % sizeof(*route))
		return -EINVAL;
	if (rs->state > RS_BOUND)
		return -EISCONN;
	route = malloc(len);
	if (!route)
		return -ENOMEM;
	memcpy(route, value, len);
	free(rs->opt.route);
	rs->opt.route = route;
	rs->opt.route_count = (uint32_t)(len / sizeof(*route));
	return 0;
}

static int option_set(struct rs *rs, int level, int name, const void *value,
		      socklen_t len)
{
	const struct number *n = number_find(level, name);

	if (n)
		return number_set(rs, n, value, len);
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return route_set(rs, value, len);
	if (level != SOL_SOCKET)
		return -ENOPROTOOPT;
	switch (name) {
	case SO_LINGER:
		if (!value || len < sizeof(struct linger))
			return -EINVAL;
		memcpy(&rs->opt.linger, value, sizeof(struct linger));
		return 0;
	case SO_RCVTIMEO:
		return timeout_set(&rs->opt.recv_timeout_ms, value, len);
	case SO_SNDTIMEO:
		return timeout_set(&rs->opt.send_timeout_ms, value, len);
	default:
		return -ENOPROTOOPT;
	}
}

void rs_id_options(struct rs *rs)
{
	if (rs->opt.reuse_addr)
		rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
				&rs->opt.reuse_addr, sizeof(int));
	if (rs->opt.v6_only)
		rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY,
				&rs->opt.v6_only, sizeof(int));
}

RS_EXPORT int rsetsockopt(int socket, int level, int optname, const void *optval,
			  socklen_t optlen)
{
	CANCEL_OFF;
	struct rs *rs = rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	ret = option_set(rs, level, optname, optval, optlen);
	return (int)rs_leave(rs, ret);
}

/* ---- reading ---- */

static int give(const void *from, size_t size, void *value, socklen_t *len)
{
	memcpy(value, from, MIN(*len, size));
	*len = (socklen_t)MIN(*len, size);
	return 0;
}

static int give_int(int number, void *value, socklen_t *len)
{
	return give(&number, sizeof(number), value, len);
}

static int give_timeout(int ms, void *value, socklen_t *len)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	return give(&tv, sizeof(tv), value, len);
}

/* The path record in the layout of IBA 15.2.5.16. */
static int route_get(struct rs *rs, void *value, socklen_t *len)
{
	const struct ibv_sa_path_rec *p;
	struct ibv_path_data d = { 0 };

	if (!rs->id || !rs->id->route.num_paths)
		return -ENOTCONN;
	if (*len < sizeof(d))
		return -EINVAL;
	p = rs->id->route.path_rec;
	d.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
		  IBV_PATH_FLAG_BIDIRECTIONAL;
	d.path.dgid = p->dgid;
	d.path.sgid = p->sgid;
	d.path.dlid = p->dlid;
	d.path.slid = p->slid;
	d.path.flowlabel_hoplimit =
		htonl(ntohl(p->flow_label) << 8 | p->hop_limit);
	d.path.tclass = p->traffic_class;
	d.path.reversible_numpath =
		(uint8_t)((p->reversible ? 1 << 7 : 0) | (p->numb_path & 0x7f));
	d.path.pkey = p->pkey;
	d.path.qosclass_sl = htons(p->sl & 0xf);
	d.path.mtu = (uint8_t)(p->mtu_selector << 6 | p->mtu);
	d.path.rate = (uint8_t)(p->rate_selector << 6 | p->rate);
	d.path.packetlifetime = (uint8_t)(p->packet_life_time_selector << 6 |
					  p->packet_life_time);
	d.path.preference = p->preference;
	return give(&d, sizeof(d), value, len);
}

static int socket_get(struct rs *rs, int name, void *value, socklen_t *len)
{
	int error;

	switch (name) {
	case SO_ERROR:
		rs_progress_all(rs);
		error = rs->error;
		rs->error = 0;
		return give_int(error, value, len);
	case SO_LINGER:
		return give(&rs->opt.linger, sizeof(struct linger), value, len);
	case SO_RCVTIMEO:
		return give_timeout(rs->opt.recv_timeout_ms, value, len);
	case SO_SNDTIMEO:
		return give_timeout(rs->opt.send_timeout_ms, value, len);
	case SO_TYPE:
		return give_int(rs->type, value, len);
	case SO_DOMAIN:
		return give_int(rs->domain, value, len);
	case SO_PROTOCOL:
		return give_int(rs_is_stream(rs) ? IPPROTO_TCP : IPPROTO_UDP,
				value, len);
	case SO_ACCEPTCONN:
		return give_int(rs->state == RS_LISTENING, value, len);
	default:
		return -ENOPROTOOPT;
	}
}

static int segment_size(const struct rs *rs)
{
	if (rs->tx.payload_max)
		return (int)rs->tx.payload_max;
	return (int)(rs->opt.recv_size / MAX(rs->opt.rq_size, 1u));
}

static int option_get(struct rs *rs, int level, int name, void *value,
		      socklen_t *len)
{
	const struct number *n = number_find(level, name);

	if (!value || !len)
		return -EFAULT;
	if (n)
		return give_int((int)*number_field(&rs->opt, n), value, len);
	if (level == SOL_SOCKET)
		return socket_get(rs, name, value, len);
	if (level == IPPROTO_TCP && name == TCP_MAXSEG)
		return give_int(segment_size(rs), value, len);
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return route_get(rs, value, len);
	return -ENOPROTOOPT;
}

RS_EXPORT int rgetsockopt(int socket, int level, int optname, void *optval,
			  socklen_t *optlen)
{
	struct rs *rs = rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	ret = option_get(rs, level, optname, optval, optlen);
	return (int)rs_leave(rs, ret);
}

RS_EXPORT int rfcntl(int socket, int cmd, ... /* arg */)
{
	struct rs *rs = rs_get(socket);
	va_list args;
	int ret = 0;

	if (!rs)
		return (int)rs_result(-EBADF);
	va_start(args, cmd);
	pthread_mutex_lock(&rs->lock);
	if (cmd == F_GETFL)
		ret = rs->flags | O_RDWR;
	else if (cmd == F_SETFL)
		rs->flags = va_arg(args, int) & O_NONBLOCK;
	else if (cmd == F_GETFD)
		ret = fcntl(rs->fd, F_GETFD) < 0 ? -errno : FD_CLOEXEC;
	else if (cmd != F_SETFD) /* close-on-exec is always set; ignored */
		ret = -EINVAL;
	pthread_mutex_unlock(&rs->lock);
	va_end(args);
	rs_put(rs);
	return (int)rs_result(ret);
}

/* ---- names ---- */

static int name_get(struct rs *rs, bool peer, struct sockaddr *addr,
		    socklen_t *len)
{
	struct sockaddr_storage none = { .ss_family = (sa_family_t)rs->domain };
	const struct sockaddr *name = (struct sockaddr *)&none;

	if (!addr || !len)
		return -EFAULT;
	if (peer && !rs_is_stream(rs)) {
		if (!rs->connected.ss_family)
			return -ENOTCONN;
		name = (const struct sockaddr *)&rs->connected;
	} else if (peer) {
		if (rs->state < RS_ACCEPTING || !rs->qp)
			return -ENOTCONN;
		name = rdma_get_peer_addr(rs->id);
	} else if (rs->id && rdma_get_local_addr(rs->id)->sa_family) {
		name = rdma_get_local_addr(rs->id);
	}
	rs_addr_give(rs->domain, name, addr, len);
	return 0;
}

static int name_of(int socket, bool peer, struct sockaddr *addr, socklen_t *len)
{
	struct rs *rs = rs_enter(socket);
	int ret;

	if (!rs)
		return -1;
	ret = name_get(rs, peer, addr, len);
	return (int)rs_leave(rs, ret);
}

RS_EXPORT int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return name_of(socket, true, addr, addrlen);
}

RS_EXPORT int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return name_of(socket, false, addr, addrlen);
}
