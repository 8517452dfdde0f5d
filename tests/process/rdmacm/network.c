/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What only connections between hosts have: messages that are lost after the identifier or the
 * listener is gone, a peer of which nothing is heard, several processes behind one queue
 * pair 1. Over network_fake.c.
 */
#include "cm_help.h"

#include <arpa/inet.h>
#include <poll.h>

#include "transport/roce/dispatch.h"
#include "util/abstract.h"
#include "verbs/private.h"
#include "wire/cm.h"

#define MANY 100
#define FIRST_QPN 0x1000

static struct rdma_conn_param by_hand = { .qp_num = 5, .retry_count = 7 };

static struct rdma_event_channel *channel(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	CHECK(ch);
	return ch;
}

/* With a short ACK timeout, of 4 ms, by which the round trip is estimated. */
static struct rdma_cm_id *caller_to(struct rdma_event_channel *ch, uint16_t port)
{
	struct rdma_cm_id *id = cm_caller(ch, RDMA_PS_TCP, port);
	uint8_t timeout = 10;

	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			      &timeout, sizeof(timeout)) == 0);
	return id;
}

/* A request that came: accepts it without a queue pair. */
static struct rdma_cm_id *accept_next(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = ev->id;

	CHECK(rdma_accept(id, &by_hand) == 0);
	rdma_ack_cm_event(ev);
	return id;
}

/* Connects without a queue pair; the listener is another process or thread. */
static struct rdma_cm_id *connect_to(struct rdma_event_channel *ch, uint16_t port)
{
	struct rdma_cm_id *id = caller_to(ch, port);

	CHECK(rdma_connect(id, &by_hand) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_CONNECT_RESPONSE) == 0);
	CHECK(rdma_establish(id) == 0);
	return id;
}

/* ---- the identifier is gone, and its last message was lost ---- */

static void a_disconnect_is_repeated_after_the_identifier_is_gone(void)
{
	struct rdma_event_channel *server = channel(), *client = channel();
	struct rdma_cm_id *listener, *callee, *caller;
	uint16_t port;

	listener = cm_listener(server, RDMA_PS_TCP, 4, &port);
	for (int i = 0; i < 4; i++) {
		caller = caller_to(client, port);
		CHECK(rdma_connect(caller, &by_hand) == 0);
		callee = accept_next(server);
		CHECK(cm_expect_ack(client, RDMA_CM_EVENT_CONNECT_RESPONSE) == 0);
		CHECK(rdma_establish(caller) == 0);
		CHECK(cm_expect_ack(server, RDMA_CM_EVENT_ESTABLISHED) == 0);
		CHECK(rdma_destroy_id(caller) == 0);
		CHECK(cm_expect_ack(server, RDMA_CM_EVENT_DISCONNECTED) == 0);
		cm_id_free(callee);
	}
	cm_id_free(listener);
	rdma_destroy_event_channel(client);
	rdma_destroy_event_channel(server);
}

static void a_rejection_is_repeated_after_the_identifier_is_gone(void)
{
	struct rdma_event_channel *server = channel(), *client = channel();
	struct rdma_cm_id *listener, *caller;
	struct rdma_cm_event *ev;
	struct rdma_cm_id *callee;
	uint16_t port;

	listener = cm_listener(server, RDMA_PS_TCP, 4, &port);
	for (int i = 0; i < 4; i++) {
		caller = caller_to(client, port);
		CHECK(rdma_connect(caller, &by_hand) == 0);
		ev = cm_expect(server, RDMA_CM_EVENT_CONNECT_REQUEST);
		callee = ev->id;
		rdma_ack_cm_event(ev);
		CHECK(rdma_reject(callee, NULL, 0) == 0);
		CHECK(rdma_destroy_id(callee) == 0);
		CHECK(cm_expect_ack(client, RDMA_CM_EVENT_REJECTED) == 28);
		cm_id_free(caller);
	}
	cm_expect_quiet(server, 0);
	cm_id_free(listener);
	rdma_destroy_event_channel(client);
	rdma_destroy_event_channel(server);
}

/* perftest does this: the reply may be lost, and the request comes again. */
static void a_listener_may_close_before_the_connection_is_made(void)
{
	struct rdma_event_channel *server = channel(), *client = channel();
	struct rdma_cm_id *listener, *callee, *caller;
	uint16_t port;

	for (int i = 0; i < 5; i++) {
		listener = cm_listener(server, RDMA_PS_TCP, 4, &port);
		caller = caller_to(client, port);
		CHECK(rdma_connect(caller, &by_hand) == 0);
		callee = accept_next(server);
		CHECK(rdma_destroy_id(listener) == 0);
		CHECK(cm_expect_ack(client, RDMA_CM_EVENT_CONNECT_RESPONSE) == 0);
		CHECK(rdma_establish(caller) == 0);
		CHECK(cm_expect_ack(server, RDMA_CM_EVENT_ESTABLISHED) == 0);
		cm_id_free(caller);
		cm_id_free(callee);
	}
	rdma_destroy_event_channel(client);
	rdma_destroy_event_channel(server);
}

/* ---- the other process ends ---- */

/* Processes are made before this one has threads, so they ask until it listens. */
static void connect_soon(uint16_t port)
{
	struct rdma_event_channel *ch = channel();
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	for (;;) {
		id = caller_to(ch, port);
		CHECK(rdma_connect(id, &by_hand) == 0);
		CHECK(rdma_get_cm_event(ch, &ev) == 0);
		if (ev->event == RDMA_CM_EVENT_CONNECT_RESPONSE)
			break;
		CHECK(ev->event == RDMA_CM_EVENT_REJECTED && ev->status == 8);
		rdma_ack_cm_event(ev);
		CHECK(rdma_destroy_id(id) == 0);
	}
	rdma_ack_cm_event(ev);
	CHECK(rdma_establish(id) == 0);
}

/* Connects, reports it, and ends or waits to be killed. */
static void connect_and_exit(int fd, uint16_t port)
{
	connect_soon(port);
	CHECK(write(fd, "c", 1) == 1);
	exit(0);
}

static void connect_and_wait(int fd, uint16_t port)
{
	connect_soon(port);
	CHECK(write(fd, "c", 1) == 1);
	pause();
}

static uint16_t free_port(void)
{
	return (uint16_t)(20000 + getpid() % 10000);
}

static struct rdma_cm_id *listener_at(struct rdma_event_channel *ch, uint16_t port)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, cm_loopback(port)) == 0);
	CHECK(rdma_listen(id, 4) == 0);
	return id;
}

static void a_program_that_exits_disconnects(void)
{
	uint16_t port = free_port();
	struct cm_child child = cm_fork(connect_and_exit, port);
	struct rdma_event_channel *ch = channel();
	struct rdma_cm_id *listener = listener_at(ch, port), *callee;
	struct rdma_cm_event *ev;

	callee = accept_next(ch);
	cm_child_expect(&child, 'c');
	CHECK(rdma_get_cm_event(ch, &ev) == 0);
	/* The program may be faster than its RTU. */
	if (ev->event == RDMA_CM_EVENT_ESTABLISHED) {
		rdma_ack_cm_event(ev);
		CHECK(rdma_get_cm_event(ch, &ev) == 0);
	}
	CHECK(ev->event == RDMA_CM_EVENT_DISCONNECTED);
	rdma_ack_cm_event(ev);
	cm_child_join(&child);
	cm_id_free(callee);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static void a_killed_peer_is_disconnected_when_asked(void)
{
	uint16_t port = free_port();
	struct cm_child child = cm_fork(connect_and_wait, port);
	struct rdma_event_channel *ch = channel();
	struct rdma_cm_id *listener = listener_at(ch, port), *callee;

	callee = accept_next(ch);
	cm_child_expect(&child, 'c');
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	cm_child_kill(&child);
	/* Nothing tells it; but its host confirms the DREQ. */
	cm_expect_quiet(ch, 50);
	CHECK(rdma_disconnect(callee) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	cm_id_free(callee);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static void listen_until_killed(int fd, uint16_t port)
{
	struct rdma_event_channel *ch = channel();

	listener_at(ch, port);
	CHECK(write(fd, "l", 1) == 1);
	for (;;)
		accept_next(ch);
}

static void requests_for_a_killed_listener_are_rejected(void)
{
	uint16_t port = free_port();
	struct cm_child child = cm_fork(listen_until_killed, port);
	struct rdma_event_channel *ch;
	struct rdma_cm_id *caller;

	cm_child_expect(&child, 'l');
	ch = channel();
	caller = connect_to(ch, port);
	cm_child_kill(&child);
	cm_id_free(caller);
	caller = caller_to(ch, port);
	CHECK(rdma_connect(caller, &by_hand) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == 8);
	cm_id_free(caller);
	rdma_destroy_event_channel(ch);
}

/* ---- one port, two processes ---- */

static void serve_wildcard(int fd, uint16_t port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct rdma_event_channel *ch = channel();
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&any) == 0);
	CHECK(rdma_listen(id, 4) == 0);
	CHECK(write(fd, "l", 1) == 1);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(rdma_reject(ev->id, "wildcard", 9) == 0);
	rdma_ack_cm_event(ev);
	CHECK(write(fd, "r", 1) == 1);
	pause();
}

static void a_definite_listener_of_another_process_is_asked_first(void)
{
	uint16_t port = free_port();
	struct cm_child child = cm_fork(serve_wildcard, port);
	struct rdma_event_channel *server, *client;
	struct rdma_cm_id *listener, *caller, *callee;
	struct rdma_cm_event *ev;

	cm_child_expect(&child, 'l');
	server = channel();
	client = channel();
	listener = listener_at(server, port);
	caller = caller_to(client, port);
	CHECK(rdma_connect(caller, &by_hand) == 0);
	callee = accept_next(server);
	CHECK(cm_expect_ack(client, RDMA_CM_EVENT_CONNECT_RESPONSE) == 0);
	cm_id_free(caller);
	cm_id_free(callee);
	/* The same listener has no claim on this port any more. */
	cm_id_free(listener);
	caller = caller_to(client, port);
	CHECK(rdma_connect(caller, &by_hand) == 0);
	cm_child_expect(&child, 'r');
	ev = cm_expect(client, RDMA_CM_EVENT_REJECTED);
	CHECK(!memcmp(ev->param.conn.private_data, "wildcard", 9));
	rdma_ack_cm_event(ev);
	cm_id_free(caller);
	cm_child_kill(&child);
	rdma_destroy_event_channel(client);
	rdma_destroy_event_channel(server);
}

/* ---- many at once ---- */

struct seen {
	unsigned requests, responses, established, disconnected, rested;
	struct rdma_cm_id *callees[MANY];
};

/* Takes one event of either side and does what a program would. */
static void take_event(struct rdma_event_channel *ch, struct seen *s)
{
	struct rdma_cm_event *ev;
	uint32_t caller;

	CHECK(rdma_get_cm_event(ch, &ev) == 0);
	switch (ev->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		caller = ev->param.conn.qp_num - FIRST_QPN;
		CHECK(caller < MANY && !s->callees[caller]);
		s->callees[caller] = ev->id;
		s->requests++;
		by_hand.qp_num = 0x2000 + s->requests;
		CHECK(rdma_accept(ev->id, &by_hand) == 0);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		s->responses++;
		CHECK(rdma_establish(ev->id) == 0);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		s->established++;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		CHECK(ev->status == 0);
		s->disconnected++;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		s->rested++;
		break;
	default:
		fprintf(stderr, "%s, status %d\n", rdma_event_str(ev->event), ev->status);
		CHECK(!"expected event");
	}
	rdma_ack_cm_event(ev);
}

static void many_connections_begin_and_end_once_on_both_sides(void)
{
	struct rdma_event_channel *ch = channel();
	struct rdma_cm_id *listener, *callers[MANY];
	struct seen s = { 0 };
	uint16_t port;

	CHECK(rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(listener, cm_loopback(0)) == 0);
	CHECK(rdma_listen(listener, MANY) == 0);
	port = ntohs(rdma_get_src_port(listener));
	for (unsigned i = 0; i < MANY; i++)
		callers[i] = caller_to(ch, port);
	for (unsigned i = 0; i < MANY; i++) {
		struct rdma_conn_param param = by_hand;

		/* A second request of one queue pair would end the first connection. */
		param.qp_num = FIRST_QPN + i;
		CHECK(rdma_connect(callers[i], &param) == 0);
	}
	while (s.established < MANY)
		take_event(ch, &s);
	CHECK(s.requests == MANY && s.responses == MANY);
	/* One third by the caller, one by the callee, one by both at once. */
	for (unsigned i = 0; i < MANY; i++) {
		if (i % 3 != 0)
			rdma_disconnect(callers[i]);
		if (i % 3 != 1)
			rdma_disconnect(s.callees[i]);
	}
	while (s.disconnected < 2 * MANY || s.rested < 2 * MANY)
		take_event(ch, &s);
	cm_expect_quiet(ch, 100);
	for (unsigned i = 0; i < MANY; i++) {
		cm_id_free(callers[i]);
		cm_id_free(s.callees[i]);
	}
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

/* ---- a stranger's message ---- */

/* Relays a DREQ of an unknown connection to this process, and waits until it was taken. */
static void relay_stranger(void)
{
	const struct hca_gsi_address from = {
		.source = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
		.destination = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
	};
	const struct cm_mad mad = {
		.type = CM_DREQ,
		.dreq = { .local_comm_id = 7,
			  .remote_comm_id = busbar_gsi_comm_id(5) },
	};
	uint8_t bytes[CM_MAD_SIZE], relayed[ROCE_RELAY_BYTES];
	struct abstract_name name;
	int fd;

	CHECK(wire_cm_encode(&mad, bytes) == 0);
	roce_relay_encode(&from, bytes, relayed);
	CHECK(abstract_name(&name, "busbar.roce.cm.%u",
			    busbar_gsi_comm_id(0) >> HCA_GSI_SLOT_SHIFT) == 0);
	fd = abstract_connect(&name);
	CHECK(fd >= 0);
	CHECK(send(fd, relayed, sizeof(relayed), MSG_NOSIGNAL) == sizeof(relayed));
	CHECK(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 5000) == 1);
	close(fd);
}

/* Relays a request of 127.0.0.1 to the listener of this process that says it is of `said`. */
static void relay_request(uint16_t port, const char *said, uint32_t comm_id)
{
	const struct hca_gsi_address from = {
		.source = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
		.destination = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
	};
	struct cm_ip_header ip = { .ip_version = 4, .src_port = 99,
				   .dst = { [12] = 127, 0, 0, 1 } };
	struct cm_mad mad = {
		.type = CM_REQ,
		.req = { .local_comm_id = comm_id, .local_qpn = comm_id & 0xff,
			 .path_mtu = 3,
			 .service_id = wire_cm_service_id(RDMA_PS_TCP, port) },
	};
	uint8_t bytes[CM_MAD_SIZE], relayed[ROCE_RELAY_BYTES];
	struct abstract_name name;
	int fd;

	CHECK(inet_pton(AF_INET, said, ip.src + 12) == 1);
	memcpy(mad.req.primary.local_gid, from.source, 16);
	memcpy(mad.req.primary.remote_gid, from.source, 16);
	CHECK(wire_cm_ip_encode(&ip, mad.req.private_data) == 0);
	CHECK(wire_cm_encode(&mad, bytes) == 0);
	roce_relay_encode(&from, bytes, relayed);
	CHECK(abstract_name(&name, "busbar.roce.service.%llx.%016llx%016llx",
			    (unsigned long long)mad.req.service_id, 0ULL,
			    0xffff7f000001ULL) == 0);
	fd = abstract_connect(&name);
	CHECK(fd >= 0);
	CHECK(send(fd, relayed, sizeof(relayed), MSG_NOSIGNAL) == sizeof(relayed));
	CHECK(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 5000) == 1);
	close(fd);
}

static void a_caller_has_the_address_that_its_request_came_from(void)
{
	struct rdma_event_channel *ch = channel();
	struct rdma_cm_id *listener, *callee;
	struct rdma_cm_event *ev;
	struct sockaddr_in peer;
	uint16_t port;

	listener = cm_listener(ch, RDMA_PS_TCP, 4, &port);
	relay_request(port, "192.0.2.1", busbar_gsi_comm_id(5));
	/* All of 127.0.0.0/8 has the GID of 127.0.0.1. */
	for (uint32_t i = 1; i < 3; i++) {
		relay_request(port, i == 1 ? "127.0.0.1" : "127.0.0.2",
			      busbar_gsi_comm_id(5 + i));
		ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		callee = ev->id;
		memcpy(&peer, rdma_get_peer_addr(callee), sizeof(peer));
		CHECK(peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK + i - 1));
		rdma_ack_cm_event(ev);
		cm_id_free(callee);
	}
	cm_expect_quiet(ch, 0);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static void a_message_before_any_connection_harms_nobody(void)
{
	struct rdma_event_channel *ch = channel();
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, cm_loopback(1), 100) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	/* When the second one was taken, the first one was handled. */
	relay_stranger();
	relay_stranger();
	cm_id_free(id);
	rdma_destroy_event_channel(ch);
}

CM_MAIN(CASE(a_message_before_any_connection_harms_nobody),
	CASE(a_caller_has_the_address_that_its_request_came_from),
	CASE(a_disconnect_is_repeated_after_the_identifier_is_gone),
	CASE(a_rejection_is_repeated_after_the_identifier_is_gone),
	CASE(a_listener_may_close_before_the_connection_is_made),
	CASE(a_program_that_exits_disconnects),
	CASE(a_killed_peer_is_disconnected_when_asked),
	CASE(requests_for_a_killed_listener_are_rejected),
	CASE(a_definite_listener_of_another_process_is_asked_first),
	CASE(many_connections_begin_and_end_once_on_both_sides))
