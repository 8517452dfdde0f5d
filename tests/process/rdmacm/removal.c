/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device fails while identifiers use it (`busbar devices --fail`): each one gets
 * RDMA_CM_EVENT_DEVICE_REMOVAL and can then only be destroyed.
 */
#include "cm_help.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static struct rdma_event_channel *ch;

/* In another process, as a user would do. */
static void let_fail(pid_t pid)
{
	char text[16], name[] = "busbar", devices[] = "devices", option[] = "--fail";
	char *const argv[] = { name, devices, option, text, NULL };
	const char *busbar = getenv("BUSBAR");
	pid_t child;
	int status;

	CHECK(busbar);
	snprintf(text, sizeof(text), "%d", (int)pid);
	CHECK(posix_spawn(&child, busbar, NULL, NULL, argv, environ) == 0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* `busbar devices --fail` finds a process only after its first queue pair. */
static void make_askable(void)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_bind_addr(id, cm_loopback(0)) == 0);
	cm_qp(id);
	cm_id_free(id);
}

static void open_channel(void)
{
	ch = rdma_create_event_channel();
	CHECK(ch);
	make_askable();
}

static void expect_removal(struct rdma_event_channel *from, struct rdma_cm_id *id)
{
	struct rdma_cm_event *ev = cm_expect(from, RDMA_CM_EVENT_DEVICE_REMOVAL);

	CHECK(ev->id == id && ev->status == 0);
	CHECK(rdma_ack_cm_event(ev) == 0);
}

/* New identifiers work: the device was opened again. */
static void expect_all_well(void)
{
	struct cm_pair p;

	cm_pair_make(&p);
	cm_message(p.caller, p.callee);
	cm_pair_free(&p);
}

static void bound_and_resolved_identifiers_are_told_once(void)
{
	struct rdma_cm_id *bound, *resolved, *unbound;
	struct rdma_cm_event *ev;

	open_channel();
	CHECK(rdma_create_id(ch, &unbound, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_create_id(ch, &bound, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(bound, cm_loopback(0)) == 0);
	resolved = cm_caller(ch, RDMA_PS_TCP, 1);
	let_fail(getpid());
	for (int i = 0; i < 2; i++) {
		ev = cm_expect(ch, RDMA_CM_EVENT_DEVICE_REMOVAL);
		CHECK(ev->id == (i ? resolved : bound));
		CHECK(rdma_ack_cm_event(ev) == 0);
	}
	cm_expect_quiet(ch, 50);
	CHECK(rdma_listen(bound, 1) == -1 && errno == ENODEV);
	CHECK(rdma_resolve_addr(bound, NULL, cm_loopback(1), 100) == -1 &&
	      errno == ENODEV);
	CHECK(rdma_connect(resolved, NULL) == -1 && errno == ENODEV);
	CHECK(rdma_resolve_route(resolved, 100) == -1 && errno == ENODEV);
	CHECK(rdma_disconnect(resolved) == -1 && errno == ENODEV);
	CHECK(rdma_create_qp(resolved, NULL, &(struct ibv_qp_init_attr){
		.cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC }) == -1 &&
	      errno == ENODEV);
	/* An identifier that was not bound gets the new device. */
	CHECK(rdma_bind_addr(unbound, cm_loopback(0)) == 0);
	CHECK(unbound->verbs && unbound->verbs != bound->verbs);
	cm_id_free(bound);
	cm_id_free(resolved);
	cm_id_free(unbound);
	expect_all_well();
	rdma_destroy_event_channel(ch);
}

static void a_listener_is_told_and_its_port_is_free(void)
{
	struct rdma_cm_id *listener, *again, *caller, *callee;
	struct rdma_cm_event *ev;
	uint16_t port;

	open_channel();
	listener = cm_listener(ch, RDMA_PS_TCP, 4, &port);
	let_fail(getpid());
	expect_removal(ch, listener);
	cm_expect_quiet(ch, 50);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == 8);
	cm_id_free(caller);
	/* The port can be taken again before the old identifier is destroyed. */
	CHECK(rdma_create_id(ch, &again, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(again, cm_loopback(port)) == 0);
	CHECK(rdma_listen(again, 1) == 0);
	cm_id_free(listener);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(ev->listen_id == again);
	callee = ev->id;
	rdma_ack_cm_event(ev);
	cm_id_free(callee);
	cm_id_free(again);
	cm_id_free(caller);
	rdma_destroy_event_channel(ch);
}

static void a_wildcard_listener_goes_on(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rdma_cm_id *listener, *caller;
	struct rdma_cm_event *ev;

	open_channel();
	CHECK(rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(listener, (struct sockaddr *)&any) == 0);
	CHECK(rdma_listen(listener, 1) == 0);
	let_fail(getpid());
	cm_expect_quiet(ch, 50);
	caller = cm_caller(ch, RDMA_PS_TCP, ntohs(rdma_get_src_port(listener)));
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(ev->id->verbs == caller->verbs);
	cm_id_free(caller);
	cm_qp(ev->id);
	cm_id_free(ev->id);
	rdma_ack_cm_event(ev);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static void both_ends_of_a_connection_are_told_once(void)
{
	struct cm_pair p;
	struct ibv_wc wc;
	char buf[16];
	struct ibv_mr *mr;

	cm_pair_make(&p);
	mr = rdma_reg_msgs(p.callee, buf, sizeof(buf));
	CHECK(mr && rdma_post_recv(p.callee, NULL, buf, sizeof(buf), mr) == 0);
	let_fail(getpid());
	CHECK(cm_qp_state(p.caller) == IBV_QPS_ERR);
	CHECK(cm_qp_state(p.callee) == IBV_QPS_ERR);
	CHECK(rdma_get_recv_comp(p.callee, &wc) == 1);
	CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
	expect_removal(p.caller_ch, p.caller);
	expect_removal(p.callee_ch, p.listener);
	expect_removal(p.callee_ch, p.callee);
	cm_expect_quiet(p.caller_ch, 50);
	cm_expect_quiet(p.callee_ch, 0);
	CHECK(rdma_disconnect(p.caller) == -1 && errno == ENODEV);
	CHECK(rdma_dereg_mr(mr) == 0);
	cm_pair_free(&p);
	expect_all_well();
}

/* ---- a peer in another process: reports 'p' and its port, then takes orders ---- */

static struct rdma_cm_id *expect_request(uint16_t port, int fd)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	CHECK(write(fd, &port, sizeof(port)) == sizeof(port));
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = ev->id;
	cm_qp(id);
	CHECK(rdma_accept(id, &ev->param.conn) == 0);
	CHECK(rdma_ack_cm_event(ev) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	return id;
}

static void callee_that_is_left(int fd, uint16_t unused)
{
	struct rdma_cm_id *listener, *id;
	uint16_t port;

	(void)unused;
	ch = rdma_create_event_channel();
	listener = cm_listener(ch, RDMA_PS_TCP, 1, &port);
	id = expect_request(port, fd);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	CHECK(rdma_disconnect(id) == 0);
	CHECK(write(fd, "d", 1) == 1);
	cm_id_free(id);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static void callee_that_fails(int fd, uint16_t unused)
{
	struct rdma_cm_id *listener, *id;
	uint16_t port;

	(void)unused;
	ch = rdma_create_event_channel();
	listener = cm_listener(ch, RDMA_PS_TCP, 1, &port);
	id = expect_request(port, fd);
	expect_removal(ch, listener);
	expect_removal(ch, id);
	cm_expect_quiet(ch, 50);
	CHECK(write(fd, "r", 1) == 1);
	cm_id_free(id);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static struct rdma_cm_id *connect_to(struct cm_child *c)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *id;
	uint16_t port;

	CHECK(read(c->fd, &port, sizeof(port)) == sizeof(port));
	ch = rdma_create_event_channel();
	id = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(id);
	CHECK(rdma_connect(id, &param) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	return id;
}

static void the_peer_of_a_caller_is_disconnected(void)
{
	struct cm_child c = cm_fork(callee_that_is_left, 0);
	struct rdma_cm_id *id = connect_to(&c);

	let_fail(getpid());
	expect_removal(ch, id);
	/* Before this side destroys an identifier. */
	cm_child_expect(&c, 'd');
	cm_expect_quiet(ch, 50);
	cm_id_free(id);
	rdma_destroy_event_channel(ch);
	cm_child_join(&c);
}

static void the_peer_of_a_callee_is_disconnected(void)
{
	struct cm_child c = cm_fork(callee_that_fails, 0);
	struct rdma_cm_id *id = connect_to(&c);

	let_fail(c.pid);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	cm_child_expect(&c, 'r');
	CHECK(rdma_disconnect(id) == 0);
	cm_id_free(id);
	rdma_destroy_event_channel(ch);
	cm_child_join(&c);
}

static void what_is_queued_comes_before_the_removal(void)
{
	struct rdma_cm_id *listener, *caller, *callee;
	struct rdma_cm_event *ev;
	uint16_t port;

	open_channel();
	listener = cm_listener(ch, RDMA_PS_TCP, 4, &port);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(poll(&(struct pollfd){ .fd = ch->fd, .events = POLLIN }, 1, 5000) == 1);
	let_fail(getpid());
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	rdma_ack_cm_event(ev);
	expect_removal(ch, listener);
	expect_removal(ch, caller);
	expect_removal(ch, callee);
	CHECK(rdma_accept(callee, &(struct rdma_conn_param){ 0 }) == -1 &&
	      errno == ENODEV);
	cm_expect_quiet(ch, 50);
	cm_id_free(callee);
	cm_id_free(caller);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static void identifiers_may_be_destroyed_with_all_events_unread(void)
{
	struct rdma_cm_id *listener, *caller;
	uint16_t port;

	open_channel();
	listener = cm_listener(ch, RDMA_PS_TCP, 4, &port);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(poll(&(struct pollfd){ .fd = ch->fd, .events = POLLIN }, 1, 5000) == 1);
	let_fail(getpid());
	cm_id_free(caller);
	cm_id_free(listener);
	cm_expect_quiet(ch, 0);
	rdma_destroy_event_channel(ch);
}

static void datagram_identifiers_are_told_once(void)
{
	struct rdma_cm_id *listener, *caller;
	uint16_t port;

	open_channel();
	listener = cm_listener(ch, RDMA_PS_UDP, 1, &port);
	caller = cm_caller(ch, RDMA_PS_UDP, port);
	cm_qp(caller);
	let_fail(getpid());
	CHECK(cm_qp_state(caller) == IBV_QPS_ERR);
	expect_removal(ch, listener);
	expect_removal(ch, caller);
	cm_expect_quiet(ch, 50);
	CHECK(rdma_connect(caller, NULL) == -1 && errno == ENODEV);
	cm_id_free(caller);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

/* ---- synchronous ---- */

struct blocked {
	struct rdma_cm_id *id;
	bool listens;
	int error;
};

static void *block(void *arg)
{
	struct blocked *b = arg;
	struct rdma_conn_param param = { .retry_count = 7 };
	struct rdma_cm_id *made;
	int ret = b->listens ? rdma_get_request(b->id, &made) :
			       rdma_connect(b->id, &param);

	b->error = ret ? errno : 0;
	return NULL;
}

static void blocking_calls_of_endpoints_fail(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct blocked waits = { .listens = true }, calls = { 0 };
	struct rdma_cm_id *busy;
	pthread_t waiter, caller;
	uint16_t port;
	char text[8];

	open_channel();
	/* A listener that does not answer its request. */
	busy = cm_listener(ch, RDMA_PS_TCP, 1, &port);
	snprintf(text, sizeof(text), "%u", port);
	CHECK(rdma_getaddrinfo("127.0.0.1", text, &hints, &res) == 0);
	CHECK(rdma_create_ep(&calls.id, res, NULL, &attr) == 0);
	rdma_freeaddrinfo(res);
	hints.ai_flags = RAI_PASSIVE;
	CHECK(rdma_getaddrinfo("127.0.0.1", "0", &hints, &res) == 0);
	CHECK(rdma_create_ep(&waits.id, res, NULL, &attr) == 0);
	rdma_freeaddrinfo(res);
	CHECK(rdma_listen(waits.id, 1) == 0);
	CHECK(pthread_create(&waiter, NULL, block, &waits) == 0);
	CHECK(pthread_create(&caller, NULL, block, &calls) == 0);
	/* The call has been made; the other thread may or may not wait already. */
	CHECK(poll(&(struct pollfd){ .fd = ch->fd, .events = POLLIN }, 1, 5000) == 1);
	let_fail(getpid());
	CHECK(pthread_join(waiter, NULL) == 0 && pthread_join(caller, NULL) == 0);
	CHECK(waits.error == ENODEV && calls.error == ENODEV);
	CHECK(waits.id->event &&
	      waits.id->event->event == RDMA_CM_EVENT_DEVICE_REMOVAL);
	CHECK(calls.id->event->event == RDMA_CM_EVENT_DEVICE_REMOVAL);
	/* A second call does not wait. */
	block(&waits);
	CHECK(waits.error == ENODEV);
	CHECK(rdma_disconnect(calls.id) == -1 && errno == ENODEV);
	rdma_destroy_ep(waits.id);
	rdma_destroy_ep(calls.id);
	cm_id_free(busy);
	rdma_destroy_event_channel(ch);
}

static void the_program_reads_the_fatal_event_too(void)
{
	struct rdma_cm_id *id;
	struct ibv_async_event event;

	open_channel();
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, cm_loopback(0)) == 0);
	let_fail(getpid());
	expect_removal(ch, id);
	CHECK(poll(&(struct pollfd){ .fd = id->verbs->async_fd,
				     .events = POLLIN }, 1, 5000) == 1);
	CHECK(ibv_get_async_event(id->verbs, &event) == 0);
	CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	cm_id_free(id);
	rdma_destroy_event_channel(ch);
}

/* Makes, resolves and destroys identifiers while the device fails. */
static void *come_and_go(void *arg)
{
	for (int i = 0; i < 400; i++) {
		struct rdma_cm_id *id;

		CHECK(rdma_create_id(arg, &id, NULL, RDMA_PS_TCP) == 0);
		/* ENODEV: the device failed during the call. */
		CHECK(rdma_bind_addr(id, cm_loopback(0)) == 0 || errno == ENODEV);
		CHECK(rdma_destroy_id(id) == 0);
	}
	return NULL;
}

static void failures_among_coming_and_going_leave_nothing_behind(void)
{
	pthread_t threads[2];

	open_channel();
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, come_and_go, ch) == 0);
	for (int i = 0; i < 3; i++)
		let_fail(getpid());
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	cm_expect_quiet(ch, 0);
	expect_all_well();
	rdma_destroy_event_channel(ch);
}

CM_MAIN(CASE(bound_and_resolved_identifiers_are_told_once),
	CASE(a_listener_is_told_and_its_port_is_free),
	CASE(a_wildcard_listener_goes_on),
	CASE(both_ends_of_a_connection_are_told_once),
	CASE(the_peer_of_a_caller_is_disconnected),
	CASE(the_peer_of_a_callee_is_disconnected),
	CASE(what_is_queued_comes_before_the_removal),
	CASE(identifiers_may_be_destroyed_with_all_events_unread),
	CASE(datagram_identifiers_are_told_once),
	CASE(blocking_calls_of_endpoints_fail),
	CASE(the_program_reads_the_fatal_event_too),
	CASE(failures_among_coming_and_going_leave_nothing_behind))
