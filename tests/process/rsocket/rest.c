/* SPDX-License-Identifier: BSD-2-Clause */
/* Mapped buffers, datagrams, and peers that are killed. */
#include "rs_help.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define V4 ((socklen_t)sizeof(struct sockaddr_in))

/* ---- riomap ---- */

static void two_maps(int fd)
{
	rs_set_int(fd, SOL_RDMA, RDMA_IOMAPSIZE, 2);
}

static void writes_go_where_they_are_mapped_before_later_bytes(void)
{
	static char target[100000], other[4096], from[100000];
	struct rs_pair p;
	off_t at;
	char byte;

	rs_pair_make(&p, two_maps);
	memset(from, 'y', sizeof(from));
	CHECK(riomap(p.callee, target, sizeof(target), PROT_WRITE, 0, 0) == 0);
	at = riomap(p.callee, other, sizeof(other), PROT_WRITE, 0, -1);
	CHECK(at >= (off_t)sizeof(target));
	CHECK(riomap(p.callee, from, 1, PROT_WRITE, 0, -1) == -1 &&
	      errno == ENOBUFS);
	CHECK(riomap(p.callee, from, 1, PROT_NONE, 0, -1) >= 0);
	CHECK(rsend(p.callee, "m", 1, 0) == 1);
	CHECK(rrecv(p.caller, &byte, 1, 0) == 1);

	CHECK(riowrite(p.caller, from, sizeof(from), 0, 0) == sizeof(from));
	CHECK(riowrite(p.caller, "abc", 3, at + 10, 0) == 3);
	CHECK(riowrite(p.caller, "abc", 3, at + (off_t)sizeof(other), 0) ==
	      (size_t)-1 && errno == EINVAL);
	CHECK(riowrite(p.caller, from, 10, at + (off_t)sizeof(other) - 4, 0) == 4);
	CHECK(rsend(p.caller, "w", 1, 0) == 1);
	CHECK(rrecv(p.callee, &byte, 1, 0) == 1);
	CHECK(!memcmp(target, from, sizeof(target)));
	CHECK(!memcmp(other + 10, "abc", 3) && !memcmp(other + 4092, "yyyy", 4));

	CHECK(riounmap(p.callee, target, sizeof(target)) == 0);
	CHECK(riounmap(p.callee, target, sizeof(target)) == -1 && errno == EINVAL);
	CHECK(rsend(p.callee, "u", 1, 0) == 1);
	CHECK(rrecv(p.caller, &byte, 1, 0) == 1);
	CHECK(riowrite(p.caller, "abc", 3, 0, 0) == (size_t)-1 && errno == EINVAL);
	rs_pair_free(&p);
}

static void without_places_at_the_peer_nothing_is_mapped(void)
{
	struct rs_pair p;
	char buf[16];

	rs_pair_make(&p, NULL);
	CHECK(riomap(p.caller, buf, sizeof(buf), PROT_WRITE, 0, 0) == -1 &&
	      errno == ENOBUFS);
	CHECK(riomap(p.caller, buf, sizeof(buf), PROT_READ, 0, 0) == -1 &&
	      errno == EINVAL);
	rs_pair_free(&p);
}

/* ---- datagrams ---- */

static int dgram(uint16_t *port)
{
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	int fd = rsocket(AF_INET, SOCK_DGRAM, 0);

	CHECK(fd >= 0);
	CHECK(rbind(fd, cm_loopback(0), V4) == 0);
	CHECK(rgetsockname(fd, (struct sockaddr *)&name, &len) == 0);
	*port = ntohs(name.sin_port);
	return fd;
}

static void datagrams_keep_their_borders_and_say_who_sent_them(void)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	uint16_t port_a, port_b;
	int a = dgram(&port_a), b = dgram(&port_b);
	char in[64];

	CHECK(rsendto(a, "one", 3, 0, cm_loopback(port_b), V4) == 3);
	CHECK(rsendto(a, "", 0, 0, cm_loopback(port_b), V4) == 0);
	CHECK(rsendto(a, "three", 5, 0, cm_loopback(port_b), V4) == 5);
	CHECK(rs_poll(b, POLLIN, -1) == POLLIN);
	CHECK(rrecvfrom(b, in, 2, MSG_PEEK | MSG_TRUNC, NULL, NULL) == 3);
	CHECK(rrecvfrom(b, in, sizeof(in), 0, (struct sockaddr *)&from, &len) == 3);
	CHECK(!memcmp(in, "one", 3) && len == sizeof(from));
	CHECK(ntohs(from.sin_port) == port_a &&
	      from.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	CHECK(rrecv(b, in, sizeof(in), 0) == 0);
	CHECK(rrecv(b, in, 2, 0) == 2 && !memcmp(in, "th", 2));
	CHECK(rrecv(b, in, sizeof(in), MSG_DONTWAIT) == -1 && errno == EAGAIN);
	/* The answer needs no lookup. */
	CHECK(rsendto(b, "back", 4, 0, (struct sockaddr *)&from, len) == 4);
	CHECK(rrecv(a, in, sizeof(in), 0) == 4 && !memcmp(in, "back", 4));
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

static void a_datagram_that_is_too_long_is_refused(void)
{
	static char big[70000];
	uint16_t port_a, port_b;
	int a = dgram(&port_a), b = dgram(&port_b);

	CHECK(rsendto(a, big, sizeof(big), 0, cm_loopback(port_b), V4) == -1 &&
	      errno == EMSGSIZE);
	CHECK(rsendto(a, big, 4000, 0, cm_loopback(port_b), V4) == 4000);
	CHECK(rrecv(b, big, sizeof(big), 0) == 4000);
	CHECK(rsend(a, "x", 1, 0) == -1 && errno == EDESTADDRREQ);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

static void a_connected_datagram_socket_hears_its_peer_only(void)
{
	uint16_t port_a, port_b, port_c;
	int a = dgram(&port_a), b = dgram(&port_b), c = dgram(&port_c);
	char in[8];

	CHECK(rconnect(a, cm_loopback(port_b), V4) == 0);
	CHECK(rsendto(c, "unasked!", 8, 0, cm_loopback(port_a), V4) == 8);
	CHECK(rsendto(b, "friend", 6, 0, cm_loopback(port_a), V4) == 6);
	CHECK(rrecv(a, in, sizeof(in), 0) == 6 && !memcmp(in, "friend", 6));
	CHECK(rsend(a, "answer", 6, 0) == 6);
	CHECK(rrecv(b, in, sizeof(in), 0) == 6);
	CHECK(rclose(a) == 0 && rclose(b) == 0 && rclose(c) == 0);
}

static void a_datagram_to_nobody_is_refused_and_to_oneself_arrives(void)
{
	uint16_t port, gone;
	int fd = dgram(&gone), other;
	char in[8];

	CHECK(rclose(fd) == 0);
	fd = dgram(&port);
	CHECK(rsendto(fd, "x", 1, 0, cm_loopback(gone), V4) == -1 &&
	      errno == ECONNREFUSED);
	CHECK(rsendto(fd, "self", 4, 0, cm_loopback(port), V4) == 4);
	CHECK(rrecv(fd, in, sizeof(in), 0) == 4);
	/* An unbound socket is bound by its first datagram. */
	other = rsocket(AF_INET, SOCK_DGRAM, 0);
	CHECK(rsendto(other, "hi", 2, 0, cm_loopback(port), V4) == 2);
	CHECK(rrecv(fd, in, sizeof(in), 0) == 2);
	CHECK(rclose(fd) == 0 && rclose(other) == 0);
}

/* Calls of the library reach these functions, because the program's symbols come first. */
static atomic_int handles_made, handles_gone;

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *(*next)(struct ibv_pd *, struct ibv_ah_attr *) =
		(__typeof__(next))dlsym(RTLD_NEXT, "ibv_create_ah");

	atomic_fetch_add(&handles_made, 1);
	return next(pd, attr);
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	int (*next)(struct ibv_ah *) =
		(__typeof__(next))dlsym(RTLD_NEXT, "ibv_destroy_ah");

	atomic_fetch_add(&handles_gone, 1);
	return next(ah);
}

/* A peer that sends nothing is looked up again every second. */
static void a_silent_peer_costs_one_address_handle(void)
{
	uint16_t port_b;
	int a = rsocket(AF_INET, SOCK_DGRAM, 0), b = dgram(&port_b);

	rs_set_int(a, SOL_RDMA, RDMA_SQSIZE, 4); /* every datagram gets a completion */
	for (int made = 0; made < 3; made = atomic_load(&handles_made)) {
		char in[8];

		CHECK(rsendto(a, "x", 1, 0, cm_loopback(port_b), V4) == 1);
		CHECK(rrecv(b, in, sizeof(in), 0) == 1);
		CHECK(made - atomic_load(&handles_gone) <= 2);
		usleep(50000);
	}
	CHECK(atomic_load(&handles_made) - atomic_load(&handles_gone) <= 2);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* ---- death ---- */

static void child_serve(int fd, uint16_t unused)
{
	uint16_t port;
	int listener = rs_listener(&port, NULL), s;

	(void)unused;
	CHECK(write(fd, &port, 2) == 2);
	s = raccept(listener, NULL, NULL);
	CHECK(s >= 0);
	CHECK(rsend(s, "hello", 5, 0) == 5);
	CHECK(write(fd, "r", 1) == 1);
	pause();
}

static void bytes_of_a_killed_peer_are_read_then_comes_an_error(void)
{
	struct cm_child c = cm_fork(child_serve, 0);
	uint16_t port;
	char in[8];
	int fd;

	CHECK(read(c.fd, &port, 2) == 2);
	fd = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(rconnect(fd, cm_loopback(port), V4) == 0);
	CHECK(rrecv(fd, in, 1, 0) == 1);
	cm_child_expect(&c, 'r');
	cm_child_kill(&c);
	CHECK(rrecv(fd, in, 8, MSG_WAITALL) == 4 && !memcmp(in, "ello", 4));
	CHECK(rrecv(fd, in, 8, 0) == -1 && errno == ECONNRESET);
	CHECK(rrecv(fd, in, 8, 0) == 0);
	CHECK(rsend(fd, in, 8, 0) == -1 && errno == EPIPE);
	CHECK(rs_poll(fd, POLLIN, 0) & POLLHUP);
	CHECK(rclose(fd) == 0);
}

static void a_writer_that_waits_hears_of_the_death(void)
{
	struct cm_child c = cm_fork(child_serve, 0);
	static char block[1 << 20];
	uint16_t port;
	int fd;

	CHECK(read(c.fd, &port, 2) == 2);
	fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(rconnect(fd, cm_loopback(port), V4) == -1);
	CHECK(rs_poll(fd, POLLOUT, -1) == POLLOUT);
	cm_child_expect(&c, 'r');
	while (rsend(fd, block, sizeof(block), 0) > 0)
		;
	CHECK(errno == EAGAIN);
	cm_child_kill(&c);
	while (!(rs_poll(fd, POLLOUT, -1) & (POLLERR | POLLHUP)))
		;
	CHECK(rsend(fd, block, 1, 0) == -1 && errno == ECONNRESET);
	CHECK(rclose(fd) == 0);
}

static void lingering_for_no_time_resets(void)
{
	struct linger now = { 1, 0 };
	struct rs_pair p;
	char byte;

	rs_pair_make(&p, NULL);
	CHECK(rsetsockopt(p.caller, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == 0);
	CHECK(rclose(p.caller) == 0);
	CHECK(rrecv(p.callee, &byte, 1, 0) == -1 && errno == ECONNRESET);
	CHECK(rclose(p.callee) == 0 && rclose(p.listener) == 0);
}

/* The close takes in what the peer has sent and grants it as much anew; only its own end has
 * to be acknowledged. */
static void a_close_does_not_wait_for_the_credits_that_it_grants(void)
{
	struct linger linger = { 1, 60 };
	struct rs_pair p;
	uint64_t start;

	rs_pair_make(&p, NULL);
	CHECK(rsetsockopt(p.callee, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0);
	/* More than half of the messages that may be on their way. */
	for (int i = 0; i < 100; i++)
		rs_write_all(p.caller, "x", 1);
	start = cm_now_ms();
	CHECK(rclose(p.callee) == 0);
	CHECK(cm_now_ms() - start < 15000);
	CHECK(rclose(p.caller) == 0 && rclose(p.listener) == 0);
}

CM_MAIN(CASE(writes_go_where_they_are_mapped_before_later_bytes),
	CASE(without_places_at_the_peer_nothing_is_mapped),
	CASE(datagrams_keep_their_borders_and_say_who_sent_them),
	CASE(a_datagram_that_is_too_long_is_refused),
	CASE(a_connected_datagram_socket_hears_its_peer_only),
	CASE(a_datagram_to_nobody_is_refused_and_to_oneself_arrives),
	CASE(a_silent_peer_costs_one_address_handle),
	CASE(bytes_of_a_killed_peer_are_read_then_comes_an_error),
	CASE(a_writer_that_waits_hears_of_the_death),
	CASE(lingering_for_no_time_resets),
	CASE(a_close_does_not_wait_for_the_credits_that_it_grants))
