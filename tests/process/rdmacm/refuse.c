/* SPDX-License-Identifier: BSD-2-Clause */
/* Failed connections: each cause is reported with its own event and status. */
#include "cm_help.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "wire/cm.h"

static struct rdma_event_channel *ch;

static void channel_free(void)
{
	rdma_destroy_event_channel(ch);
}

static void setup(void)
{
	ch = rdma_create_event_channel();
	CHECK(ch && !atexit(channel_free));
}

static void reject_carries_reason_and_data(void)
{
	struct rdma_conn_param param = { .retry_count = 7 };
	struct rdma_cm_id *listener, *caller, *callee;
	struct rdma_cm_event *ev;
	uint16_t port;

	setup();
	listener = cm_listener(ch, RDMA_PS_TCP, 1, &port);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, &param) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	rdma_ack_cm_event(ev);
	CHECK(rdma_reject(callee, "no seat", 8) == 0);
	CHECK(rdma_reject(callee, NULL, 0) == -1 && errno == EINVAL);
	ev = cm_expect(ch, RDMA_CM_EVENT_REJECTED);
	CHECK(ev->id == caller && ev->status == 28);
	CHECK(ev->param.conn.private_data_len == 148);
	CHECK(!memcmp(ev->param.conn.private_data, "no seat", 8));
	rdma_ack_cm_event(ev);
	CHECK(cm_qp_state(caller) == IBV_QPS_ERR);
	cm_id_free(callee);
	cm_id_free(caller);
	cm_id_free(listener);
}

static void a_port_without_listener_rejects_with_reason_8(void)
{
	struct rdma_cm_id *caller;

	setup();
	caller = cm_caller(ch, RDMA_PS_TCP, 1);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == 8);
	cm_id_free(caller);
}

static void a_bound_port_that_does_not_listen_rejects_too(void)
{
	struct rdma_cm_id *holder, *caller;

	setup();
	CHECK(rdma_create_id(ch, &holder, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(holder, cm_loopback(0)) == 0);
	caller = cm_caller(ch, RDMA_PS_TCP, ntohs(rdma_get_src_port(holder)));
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == 8);
	cm_id_free(caller);
	cm_id_free(holder);
}

static void a_foreign_address_is_an_address_error(void)
{
	/* 192.0.2.1, a documentation address (RFC 5737), which no host has. */
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(1),
				  .sin_addr.s_addr = htonl(0xc0000201) };
	struct rdma_cm_id *id;

	setup();
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 100) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_ERROR) == -ENETUNREACH);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&to) == -1);
	CHECK(errno == EADDRNOTAVAIL);
	/* The identifier can be used again. */
	CHECK(rdma_resolve_addr(id, NULL, cm_loopback(1), 100) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	cm_id_free(id);
}

static void hold_port(int fd, uint16_t unused)
{
	struct rdma_event_channel *own = rdma_create_event_channel();
	uint16_t port;

	(void)unused;
	cm_listener(own, RDMA_PS_TCP, 1, &port);
	CHECK(write(fd, &port, sizeof(port)) == sizeof(port));
	pause();
}

static void a_port_is_taken_once_on_the_host(void)
{
	struct cm_child child = cm_fork(hold_port, 0);
	struct rdma_cm_id *id, *other;
	uint16_t port;

	CHECK(read(child.fd, &port, sizeof(port)) == sizeof(port));
	setup();
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, cm_loopback(port)) == -1);
	CHECK(errno == EADDRINUSE);
	/* Each port space has ports of its own. */
	CHECK(rdma_create_id(ch, &other, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_bind_addr(other, cm_loopback(port)) == 0);
	cm_id_free(other);
	/* The kernel frees the port when its process is killed. */
	cm_child_kill(&child);
	CHECK(rdma_bind_addr(id, cm_loopback(port)) == 0);
	CHECK(rdma_listen(id, 1) == 0);
	cm_id_free(id);
}

static void calls_out_of_order_are_refused(void)
{
	struct rdma_cm_id *id;

	setup();
	CHECK(rdma_create_id(ch, &id, NULL, (enum rdma_port_space)0x999) == -1);
	CHECK(errno == EINVAL);
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_connect(id, NULL) == -1 && errno == EINVAL);
	CHECK(rdma_resolve_route(id, 100) == -1 && errno == EINVAL);
	CHECK(rdma_disconnect(id) == -1 && errno == EINVAL);
	CHECK(rdma_reject(id, NULL, 0) == -1 && errno == EINVAL);
	CHECK(rdma_bind_addr(id, cm_loopback(0)) == 0);
	CHECK(rdma_bind_addr(id, cm_loopback(0)) == -1 && errno == EINVAL);
	CHECK(rdma_listen(id, 1) == 0);
	CHECK(rdma_listen(id, 1) == -1 && errno == EINVAL);
	cm_expect_quiet(ch, 0);
	cm_id_free(id);
}

static void requests_beyond_the_backlog_are_rejected(void)
{
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	struct rdma_cm_id *listener, *callers[3];
	uint16_t port;

	setup();
	listener = cm_listener(callee_ch, RDMA_PS_TCP, 2, &port);
	for (int i = 0; i < 3; i++) {
		callers[i] = cm_caller(ch, RDMA_PS_TCP, port);
		cm_qp(callers[i]);
		CHECK(rdma_connect(callers[i], NULL) == 0);
	}
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == 3);
	/* The two other requests were not taken: they are rejected with the listener. */
	cm_id_free(listener);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == 28);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == 28);
	for (int i = 0; i < 3; i++)
		cm_id_free(callers[i]);
	rdma_destroy_event_channel(callee_ch);
}

static void a_caller_that_gives_up_is_reported(void)
{
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	struct rdma_cm_id *listener, *caller, *callee;
	struct rdma_cm_event *ev;
	uint16_t port;

	setup();
	listener = cm_listener(callee_ch, RDMA_PS_TCP, 2, &port);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	ev = cm_expect(callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	rdma_ack_cm_event(ev);
	cm_id_free(caller);
	CHECK(cm_expect_ack(callee_ch, RDMA_CM_EVENT_REJECTED) == 4);
	cm_qp(callee);
	CHECK(rdma_accept(callee, NULL) == -1 && errno == ECONNRESET);
	cm_id_free(callee);
	cm_id_free(listener);
	rdma_destroy_event_channel(callee_ch);
}

static void an_application_that_does_not_answer_is_unreachable(void)
{
	struct rdma_event_channel *callee_ch;
	struct rdma_cm_id *listener, *caller;
	uint64_t start;
	uint16_t port;

	setup();
	callee_ch = rdma_create_event_channel();
	listener = cm_listener(callee_ch, RDMA_PS_TCP, 2, &port);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	start = cm_now_ms();
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_UNREACHABLE) == -ETIMEDOUT);
	/* About BUSBAR_CM_TIMEOUT_MS, which is set for this test. */
	CHECK(cm_now_ms() - start >= 250);
	cm_id_free(caller);
	cm_id_free(listener);
	rdma_destroy_event_channel(callee_ch);
}

static uint64_t cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

/* Without a free descriptor the listener pauses, and accepts the caller later. */
static void a_caller_waits_while_descriptors_are_short(void)
{
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	struct rdma_cm_id *listener, *caller;
	struct rlimit old, low;
	struct rdma_cm_event *ev;
	uint64_t before;
	uint16_t port;

	setup();
	listener = cm_listener(callee_ch, RDMA_PS_TCP, 4, &port);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
	low = old;
	/* The limit leaves one, for the caller's own socket. The library may have a file open
	 * for a moment. */
	for (int same = 0, fd, last = -1; same < 20; last = fd) {
		fd = dup(0);
		close(fd);
		same = fd == last ? same + 1 : 0;
		low.rlim_cur = (rlim_t)fd + 1;
		poll(NULL, 0, 1);
	}
	CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
	CHECK(rdma_connect(caller, NULL) == 0);
	before = cpu_ms();
	cm_expect_quiet(callee_ch, 300);
	CHECK(cpu_ms() - before < 150);
	CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
	ev = cm_expect(callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	cm_id_free(ev->id);
	rdma_ack_cm_event(ev);
	cm_id_free(listener);
	cm_id_free(caller);
	rdma_destroy_event_channel(callee_ch);
}

/* Writes bytes to the listener's socket that no peer of busbar would send. */
static void garbage_does_not_harm_a_listener(void)
{
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct rdma_cm_id *listener, *caller;
	struct rdma_cm_event *ev;
	uint8_t bytes[512];
	unsigned seed = 1;
	uint16_t port;
	int len;

	setup();
	listener = cm_listener(callee_ch, RDMA_PS_TCP, 4, &port);
	len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
		       "busbar.cm.0106.%u.127.0.0.1", port);
	for (int i = 0; i < 200; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		size_t size = i % 4 == 0 ? (size_t)rand_r(&seed) % 512 : 256;

		for (size_t b = 0; b < sizeof(bytes); b++)
			bytes[b] = (uint8_t)rand_r(&seed);
		/* Every second packet begins like a REQ. */
		if (i % 2) {
			memcpy(bytes, (uint8_t[]){ 1, 7, 2, 3 }, 4);
			bytes[16] = 0;
			bytes[17] = (uint8_t)(0x10 + i / 2 % 9);
			bytes[24 + 50] = 0x50;
		}
		CHECK(connect(fd, (struct sockaddr *)&name,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
					  1 + (size_t)len)) == 0);
		CHECK(send(fd, bytes, size, MSG_NOSIGNAL) >= 0 || errno == EPIPE);
		close(fd);
	}
	cm_expect_quiet(callee_ch, 0);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	ev = cm_expect(callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	cm_id_free(ev->id);
	rdma_ack_cm_event(ev);
	cm_id_free(listener);
	cm_id_free(caller);
	rdma_destroy_event_channel(callee_ch);
}

/* A REQ on a socket of its own to the listener at 127.0.0.1, by a caller that says it has the
 * address. The reason of the REJ that comes within `ms`; 0: none. */
static int call_as(uint16_t port, const char *said, int ms)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct cm_ip_header ip = { .ip_version = 4, .src_port = 99,
				   .dst = { [12] = 127, 0, 0, 1 } };
	struct cm_mad mad = {
		.type = CM_REQ,
		.req = { .local_comm_id = 7, .local_qpn = 7, .path_mtu = 3,
			 .service_id = wire_cm_service_id(RDMA_PS_TCP, port),
			 .primary.local_gid = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
			 .primary.remote_gid = { [10] = 0xff, 0xff, 127, 0, 0, 1 } },
	};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), reason = 0;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t bytes[CM_MAD_SIZE];
	int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
			   "busbar.cm.0106.%u.127.0.0.1", port);

	CHECK(inet_pton(AF_INET, said, ip.src + 12) == 1);
	CHECK(wire_cm_ip_encode(&ip, mad.req.private_data) == 0);
	CHECK(wire_cm_encode(&mad, bytes) == 0);
	CHECK(connect(fd, (struct sockaddr *)&name,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				  (size_t)len)) == 0);
	CHECK(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) == sizeof(bytes));
	if (poll(&p, 1, ms) == 1 && recv(fd, bytes, sizeof(bytes), 0) == sizeof(bytes)) {
		CHECK(wire_cm_decode(bytes, sizeof(bytes), &mad) == 0);
		reason = mad.type == CM_REJ ? mad.rej.reason : 0;
	}
	close(fd);
	return reason;
}

static void a_caller_of_this_host_has_an_address_of_it(void)
{
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	struct rdma_cm_id *listener;
	struct rdma_cm_event *ev;
	uint16_t port;

	setup();
	listener = cm_listener(callee_ch, RDMA_PS_TCP, 4, &port);
	CHECK(call_as(port, "192.0.2.1", 10000) == CM_REASON_INVALID_GID);
	CHECK(call_as(port, "127.0.0.1", 100) == 0);
	ev = cm_expect(callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	cm_id_free(ev->id);
	rdma_ack_cm_event(ev);
	cm_id_free(listener);
	rdma_destroy_event_channel(callee_ch);
}

CM_MAIN(CASE(reject_carries_reason_and_data),
	CASE(a_port_without_listener_rejects_with_reason_8),
	CASE(a_bound_port_that_does_not_listen_rejects_too),
	CASE(a_foreign_address_is_an_address_error),
	CASE(a_port_is_taken_once_on_the_host),
	CASE(calls_out_of_order_are_refused),
	CASE(requests_beyond_the_backlog_are_rejected),
	CASE(a_caller_that_gives_up_is_reported),
	CASE(an_application_that_does_not_answer_is_unreachable),
	CASE(a_caller_waits_while_descriptors_are_short),
	CASE(garbage_does_not_harm_a_listener),
	CASE(a_caller_of_this_host_has_an_address_of_it))
