/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors of calls with impossible arguments, and options. */
#include "rs_help.h"

#include <endian.h>
#include <infiniband/ib.h>
#include <pthread.h>

#define V4 ((socklen_t)sizeof(struct sockaddr_in))

static void what_is_no_socket_is_refused(void)
{
	CHECK(rsocket(AF_UNIX, SOCK_STREAM, 0) == -1 && errno == EAFNOSUPPORT);
	CHECK(rsocket(AF_INET, SOCK_RAW, 0) == -1 && errno == ESOCKTNOSUPPORT);
	CHECK(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP) == -1 &&
	      errno == EPROTONOSUPPORT);
	CHECK(rclose(-1) == -1 && errno == EBADF);
	CHECK(rbind(0, cm_loopback(0), V4) == -1 && errno == EBADF);
	CHECK(rsend(1 << 20, "", 1, 0) == -1 && errno == EBADF);
	CHECK(rlisten(99, 1) == -1 && errno == EBADF);
}

/* A GID and a service in the port space of TCP, which listens at the loopback address. */
static void a_stream_may_have_addresses_of_infiniband(void)
{
	struct sockaddr_ib ib = { .sib_family = AF_IB }, at;
	socklen_t len = sizeof(at);
	int listener = rsocket(AF_IB, SOCK_STREAM, 0), caller = rsocket(AF_IB, SOCK_STREAM, 0);
	int callee;
	char bytes[4];

	CHECK(rsocket(AF_IB, SOCK_DGRAM, 0) == -1 && errno == EAFNOSUPPORT);
	CHECK(listener >= 0 && caller >= 0);
	CHECK(rbind(listener, cm_loopback(0), V4) == -1 && errno == EAFNOSUPPORT);
	CHECK(rbind(listener, (struct sockaddr *)&ib, V4) == -1 && errno == EINVAL);
	CHECK(inet_pton(AF_INET6, "::ffff:127.0.0.1", &ib.sib_addr) == 1);
	CHECK(rbind(listener, (struct sockaddr *)&ib, sizeof(ib)) == 0);
	CHECK(rlisten(listener, 1) == 0);
	CHECK(rgetsockname(listener, (struct sockaddr *)&at, &len) == 0);
	CHECK(len == sizeof(at) && at.sib_family == AF_IB && be64toh(at.sib_sid) & 0xffff);
	at.sib_sid_mask = UINT64_MAX;
	rs_nonblock(caller, true);
	CHECK(rconnect(caller, (struct sockaddr *)&at, len) == -1 && errno == EINPROGRESS);
	while (!rs_poll(listener, POLLIN, 1))
		rs_poll(caller, POLLOUT, 1);
	len = sizeof(at);
	callee = raccept(listener, (struct sockaddr *)&at, &len);
	CHECK(callee >= 0 && len == sizeof(at) && at.sib_family == AF_IB);
	CHECK(rs_poll(caller, POLLOUT, -1) == POLLOUT);
	rs_nonblock(caller, false);
	rs_write_all(caller, "abc", 4);
	rs_read_all(callee, bytes, 4);
	CHECK(!memcmp(bytes, "abc", 4));
	rs_write_all(callee, "def", 4);
	rs_read_all(caller, bytes, 4);
	CHECK(!memcmp(bytes, "def", 4));
	CHECK(!rclose(caller) && !rclose(callee) && !rclose(listener));
}

static void an_unconnected_socket_says_so(void)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	char byte;

	CHECK(fd >= 0);
	CHECK(rsend(fd, "x", 1, 0) == -1 && errno == ENOTCONN);
	CHECK(rrecv(fd, &byte, 1, 0) == -1 && errno == ENOTCONN);
	CHECK(rshutdown(fd, SHUT_WR) == -1 && errno == ENOTCONN);
	CHECK(raccept(fd, NULL, NULL) == -1 && errno == EINVAL);
	CHECK(rgetpeername(fd, (struct sockaddr *)&name, &len) == -1 &&
	      errno == ENOTCONN);
	CHECK(rgetsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
	      name.ss_family == AF_INET);
	CHECK(riomap(fd, &byte, 1, PROT_WRITE, 0, 0) == -1 && errno == ENOTCONN);
	CHECK(rclose(fd) == 0);
}

static void a_port_is_bound_once(void)
{
	uint16_t port;
	int listener = rs_listener(&port, NULL);
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	CHECK(rbind(fd, cm_loopback(port), V4) == -1 && errno == EADDRINUSE);
	CHECK(rbind(fd, (struct sockaddr *)&v6, sizeof(v6)) == -1 &&
	      errno == EAFNOSUPPORT);
	CHECK(rbind(fd, cm_loopback(0), 4) == -1 && errno == EINVAL);
	CHECK(rclose(listener) == 0);
	/* The port is free as soon as the socket is closed. */
	CHECK(rbind(fd, cm_loopback(port), V4) == 0);
	CHECK(rbind(fd, cm_loopback(0), V4) == -1 && errno == EINVAL);
	CHECK(rclose(fd) == 0);
}

static void nobody_there_refuses(void)
{
	uint16_t port;
	int listener = rs_listener(&port, NULL);
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	CHECK(rclose(listener) == 0);
	CHECK(rconnect(fd, cm_loopback(port), V4) == -1 && errno == ECONNREFUSED);
	CHECK(rclose(fd) == 0);

	fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(rconnect(fd, cm_loopback(port), V4) == -1 && errno == EINPROGRESS);
	CHECK(rs_poll(fd, POLLOUT, -1) & POLLERR);
	CHECK(rs_get_int(fd, SOL_SOCKET, SO_ERROR) == ECONNREFUSED);
	CHECK(rs_get_int(fd, SOL_SOCKET, SO_ERROR) == 0);
	CHECK(rclose(fd) == 0);
}

/* The caller is a program of the connection manager without rsockets. */
static void a_caller_without_rsockets_is_rejected(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_conn_param param = { .private_data = "hello, world, hello, world",
					 .private_data_len = 26 };
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	uint16_t port;
	int listener = rs_listener(&port, NULL);

	CHECK(ch);
	id = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(id);
	CHECK(rdma_connect(id, &param) == 0);
	/* The listener refuses while it is polled. */
	do
		CHECK(rs_poll(listener, POLLIN, 20) == 0);
	while (poll(&(struct pollfd){ .fd = ch->fd, .events = POLLIN }, 1, 0) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_REJECTED);
	/* The reject carries the hello: magic number, version, kind. */
	CHECK(!memcmp(ev->param.conn.private_data, "bbrs\1\1", 6));
	CHECK(rdma_ack_cm_event(ev) == 0);
	cm_id_free(id);
	rdma_destroy_event_channel(ch);
	CHECK(rclose(listener) == 0);
}

static void a_listener_that_is_no_rsocket_is_understood(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_event *ev;
	struct rdma_cm_id *listener, *callee;
	uint16_t port;
	int fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	listener = cm_listener(ch, RDMA_PS_TCP, 4, &port);
	CHECK(rconnect(fd, cm_loopback(port), V4) == -1 && errno == EINPROGRESS);
	for (int events = 0; !events;) { /* takes steps of both sides */
		struct pollfd p = { .fd = ch->fd, .events = POLLIN };

		rs_poll(fd, POLLOUT, 1);
		events = poll(&p, 1, 0);
	}
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	CHECK(rdma_ack_cm_event(ev) == 0);
	cm_qp(callee);
	CHECK(rdma_accept(callee, &param) == 0);
	CHECK(rs_poll(fd, POLLOUT, -1) & POLLERR);
	CHECK(rs_get_int(fd, SOL_SOCKET, SO_ERROR) == EPROTONOSUPPORT);
	CHECK(rclose(fd) == 0);
	cm_id_free(callee);
	CHECK(rdma_destroy_id(listener) == 0);
	rdma_destroy_event_channel(ch);
}

static void *accept_one(void *arg)
{
	int fd = raccept(*(int *)arg, NULL, NULL);

	return (void *)(intptr_t)(fd >= 0 ? fd : -errno);
}

static void shutting_a_listener_wakes_accept(void)
{
	uint16_t port;
	int listener = rs_listener(&port, NULL);
	pthread_t thread;
	void *result;

	CHECK(!pthread_create(&thread, NULL, accept_one, &listener));
	usleep(20000);
	CHECK(rshutdown(listener, SHUT_RDWR) == 0);
	CHECK(!pthread_join(thread, &result) && (intptr_t)result == -EINVAL);
	CHECK(rclose(listener) == 0);

	listener = rs_listener(&port, NULL);
	rs_nonblock(listener, true);
	CHECK(raccept(listener, NULL, NULL) == -1 && errno == EAGAIN);
	CHECK(rclose(listener) == 0);
}

static void a_time_limit_ends_waiting(void)
{
	struct timeval tv = { 0, 30000 };
	struct rs_pair p;
	uint64_t start = cm_now_ms();
	char byte;

	rs_pair_make(&p, NULL);
	CHECK(rsetsockopt(p.caller, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == 0);
	CHECK(rrecv(p.caller, &byte, 1, 0) == -1 && errno == EAGAIN);
	CHECK(cm_now_ms() - start >= 30);
	rs_pair_free(&p);
}

static void options_are_kept(void)
{
	static const struct {
		int level, name, value;
	} kept[] = {
		{ SOL_SOCKET, SO_RCVBUF, 100000 },
		{ SOL_SOCKET, SO_SNDBUF, 50000 },
		{ SOL_SOCKET, SO_REUSEADDR, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ SOL_SOCKET, SO_OOBINLINE, 1 },
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ IPPROTO_IPV6, IPV6_V6ONLY, 1 },
		{ SOL_RDMA, RDMA_SQSIZE, 99 },
		{ SOL_RDMA, RDMA_RQSIZE, 98 },
		{ SOL_RDMA, RDMA_INLINE, 97 },
		{ SOL_RDMA, RDMA_IOMAPSIZE, 96 },
	};
	struct linger in = { 1, 5 }, out = { 0, 0 };
	socklen_t len = sizeof(out);
	int fd = rsocket(AF_INET, SOCK_STREAM, 0), value;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		rs_set_int(fd, kept[i].level, kept[i].name, kept[i].value);
		CHECK(rs_get_int(fd, kept[i].level, kept[i].name) == kept[i].value);
	}
	CHECK(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &in, sizeof(in)) == 0);
	CHECK(rgetsockopt(fd, SOL_SOCKET, SO_LINGER, &out, &len) == 0);
	CHECK(!memcmp(&in, &out, sizeof(in)));
	CHECK(rs_get_int(fd, IPPROTO_TCP, TCP_MAXSEG) > 0);
	CHECK(rs_get_int(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM);
	CHECK(rs_get_int(fd, SOL_SOCKET, SO_ERROR) == 0);
	CHECK(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, 2) == -1 &&
	      errno == EINVAL);
	CHECK(rsetsockopt(fd, IPPROTO_TCP, TCP_CORK, &value, sizeof(value)) == -1 &&
	      errno == ENOPROTOOPT);
	CHECK(rgetsockopt(fd, SOL_SOCKET, SO_MARK, &value, &len) == -1 &&
	      errno == ENOPROTOOPT);
	CHECK(rclose(fd) == 0);
}

static struct ibv_path_data route;

static void set_route(int fd)
{
	CHECK(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, &route, sizeof(route)) == 0);
}

static void the_route_of_a_connection_can_be_read(void)
{
	socklen_t len = sizeof(route);
	int fd, listener;
	struct rs_pair p;
	uint16_t port;

	rs_pair_make(&p, NULL);
	CHECK(rgetsockopt(p.caller, SOL_RDMA, RDMA_ROUTE, &route, &len) == 0);
	CHECK(len == sizeof(route));
	CHECK(route.flags & IBV_PATH_FLAG_PRIMARY);
	CHECK(route.path.pkey == 0xffff);
	CHECK(route.path.dgid.raw[15] == 1 && route.path.sgid.raw[15] == 1);
	/* Options of the queue pair cannot change once there is one. */
	CHECK(rsetsockopt(p.caller, SOL_RDMA, RDMA_SQSIZE, &(int){ 8 },
			  sizeof(int)) == -1 && errno == EINVAL);
	rs_set_int(p.caller, SOL_SOCKET, SO_RCVBUF, 4096);
	rs_pair_free(&p);
	/* The next connection uses the route; a route to another address fails. */
	rs_pair_make(&p, set_route);
	rs_pair_free(&p);
	route.path.dgid.raw[15] ^= 0xff;
	listener = rs_listener(&port, NULL);
	fd = rsocket(AF_INET, SOCK_STREAM, 0);
	set_route(fd);
	CHECK(rconnect(fd, cm_loopback(port), sizeof(struct sockaddr_in)) == -1 &&
	      errno == EINVAL);
	CHECK(rclose(fd) == 0 && rclose(listener) == 0);
}

static void both_ends_know_their_names(void)
{
	struct sockaddr_in a, b;
	socklen_t len = sizeof(a);
	struct rs_pair p;

	rs_pair_make(&p, NULL);
	CHECK(!rgetsockname(p.caller, (struct sockaddr *)&a, &len));
	CHECK(!rgetpeername(p.callee, (struct sockaddr *)&b, &len));
	CHECK(a.sin_port == b.sin_port && a.sin_addr.s_addr == b.sin_addr.s_addr);
	CHECK(!rgetpeername(p.caller, (struct sockaddr *)&a, &len));
	CHECK(!rgetsockname(p.callee, (struct sockaddr *)&b, &len));
	CHECK(a.sin_port == b.sin_port && a.sin_addr.s_addr == b.sin_addr.s_addr);
	CHECK(rconnect(p.caller, (struct sockaddr *)&a, sizeof(a)) == -1 &&
	      errno == EISCONN);
	rs_pair_free(&p);
}

static void rselect_watches_sockets_and_files_together(void)
{
	struct timeval none = { 0, 0 }, some = { 0, 20000 };
	struct rs_pair p;
	fd_set r, w;
	int fds[2];
	char byte;

	rs_pair_make(&p, NULL);
	CHECK(!pipe(fds));
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_SET(p.callee, &r);
	FD_SET(fds[0], &r);
	CHECK(rselect(FD_SETSIZE, &r, NULL, NULL, &none) == 0);
	CHECK(!FD_ISSET(p.callee, &r));
	FD_SET(p.callee, &r);
	FD_SET(fds[0], &r);
	CHECK(rselect(FD_SETSIZE, &r, NULL, NULL, &some) == 0);
	CHECK(write(fds[1], "x", 1) == 1);
	FD_SET(p.callee, &r);
	FD_SET(fds[0], &r);
	FD_SET(p.callee, &w);
	CHECK(rselect(FD_SETSIZE, &r, &w, NULL, NULL) == 2);
	CHECK(!FD_ISSET(p.callee, &r) && FD_ISSET(fds[0], &r) &&
	      FD_ISSET(p.callee, &w));
	CHECK(read(fds[0], &byte, 1) == 1);
	CHECK(rsend(p.caller, "x", 1, 0) == 1);
	FD_SET(p.callee, &r);
	FD_SET(fds[0], &r);
	CHECK(rselect(FD_SETSIZE, &r, NULL, NULL, NULL) == 1);
	CHECK(FD_ISSET(p.callee, &r) && !FD_ISSET(fds[0], &r));
	rs_pair_free(&p);
}

CM_MAIN(CASE(what_is_no_socket_is_refused),
	CASE(a_stream_may_have_addresses_of_infiniband),
	CASE(an_unconnected_socket_says_so),
	CASE(a_port_is_bound_once),
	CASE(nobody_there_refuses),
	CASE(a_caller_without_rsockets_is_rejected),
	CASE(a_listener_that_is_no_rsocket_is_understood),
	CASE(shutting_a_listener_wakes_accept),
	CASE(a_time_limit_ends_waiting),
	CASE(options_are_kept),
	CASE(the_route_of_a_connection_can_be_read),
	CASE(both_ends_know_their_names),
	CASE(rselect_watches_sockets_and_files_together))
