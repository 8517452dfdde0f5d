/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that are killed: the other side gets an event soon and never hangs. */
#include "cm_help.h"

#include <arpa/inet.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#define SOON_MS 10000

/* Serves one connection up to `stage`, then waits to be killed. */
static void serve_until(int fd, uint16_t stage)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	uint16_t port;

	cm_listener(ch, RDMA_PS_TCP, 4, &port);
	CHECK(write(fd, &port, sizeof(port)) == sizeof(port));
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(write(fd, "q", 1) == 1);
	if (stage == 'e') {
		id = ev->id;
		cm_qp(id);
		CHECK(rdma_accept(id, NULL) == 0);
		CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
		CHECK(write(fd, "e", 1) == 1);
	}
	pause();
}

static uint16_t port_of(struct cm_child *c)
{
	uint16_t port;

	CHECK(read(c->fd, &port, sizeof(port)) == sizeof(port));
	return port;
}

static void a_killed_peer_ends_the_connection_soon(void)
{
	struct cm_child child = cm_fork(serve_until, 'e');
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *caller = cm_caller(ch, RDMA_PS_TCP, port_of(&child));
	char buf[16];
	struct ibv_mr *mr;
	struct ibv_wc wc;
	uint64_t start;

	cm_qp(caller);
	mr = rdma_reg_msgs(caller, buf, sizeof(buf));
	CHECK(mr && rdma_post_recv(caller, NULL, buf, sizeof(buf), mr) == 0);
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	cm_child_expect(&child, 'q');
	cm_child_expect(&child, 'e');
	start = cm_now_ms();
	cm_child_kill(&child);
	cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(cm_now_ms() - start < SOON_MS);
	CHECK(cm_qp_state(caller) == IBV_QPS_ERR);
	CHECK(rdma_get_recv_comp(caller, &wc) == 1);
	CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(rdma_disconnect(caller) == 0);
	CHECK(rdma_dereg_mr(mr) == 0);
	cm_id_free(caller);
	rdma_destroy_event_channel(ch);
}

static void a_listener_killed_before_it_answers_is_unreachable(void)
{
	struct cm_child child = cm_fork(serve_until, 'q');
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *caller = cm_caller(ch, RDMA_PS_TCP, port_of(&child));
	uint64_t start;

	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	cm_child_expect(&child, 'q');
	start = cm_now_ms();
	cm_child_kill(&child);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_UNREACHABLE) < 0);
	CHECK(cm_now_ms() - start < SOON_MS);
	cm_id_free(caller);
	rdma_destroy_event_channel(ch);
}

static void call_and_wait(int fd, uint16_t port)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = cm_caller(ch, RDMA_PS_TCP, port);

	cm_qp(id);
	CHECK(rdma_connect(id, NULL) == 0);
	CHECK(write(fd, "c", 1) == 1);
	pause();
}

/* The child reads the port from this pipe, which it inherits. */
static int port_pipe[2];

static void call_when_told(int fd, uint16_t unused)
{
	uint16_t port;

	(void)unused;
	CHECK(read(port_pipe[0], &port, sizeof(port)) == sizeof(port));
	call_and_wait(fd, port);
}

static void a_caller_killed_between_reply_and_ready_fails_the_accept(void)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener, *callee;
	struct rdma_cm_event *ev;
	struct cm_child child;
	uint16_t port;
	int type;

	/* Forked first, while no device is open. */
	CHECK(pipe(port_pipe) == 0);
	child = cm_fork(call_when_told, 0);
	ch = rdma_create_event_channel();
	listener = cm_listener(ch, RDMA_PS_TCP, 4, &port);
	CHECK(write(port_pipe[1], &port, sizeof(port)) == sizeof(port));
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	rdma_ack_cm_event(ev);
	cm_child_expect(&child, 'c');
	cm_qp(callee);
	/* The child never takes the REP, so it sends no RTU. */
	CHECK(rdma_accept(callee, NULL) == 0);
	cm_expect_quiet(ch, 50);
	cm_child_kill(&child);
	CHECK(rdma_get_cm_event(ch, &ev) == 0);
	type = ev->event;
	CHECK(type == RDMA_CM_EVENT_UNREACHABLE && ev->status < 0);
	rdma_ack_cm_event(ev);
	CHECK(cm_qp_state(callee) == IBV_QPS_ERR);
	cm_id_free(callee);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static void become(uid_t uid)
{
	CHECK(setgroups(0, NULL) == 0 && setgid(uid) == 0 && setuid(uid) == 0);
	/* A change of user resets it. */
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
}

static void serve_as_another(int fd, uint16_t unused)
{
	(void)unused;
	become(65534);
	serve_until(fd, 'e');
}

static void call_as_another(int fd, uint16_t port)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *caller;

	become(65533);
	ch = rdma_create_event_channel();
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == 28);
	cm_id_free(caller);
	rdma_destroy_event_channel(ch);
	CHECK(write(fd, "r", 1) == 1);
}

static void another_user_is_refused(void)
{
	struct cm_child server, caller;

	if (geteuid() != 0)
		exit(77);
	server = cm_fork(serve_as_another, 0);
	caller = cm_fork(call_as_another, port_of(&server));
	cm_child_expect(&caller, 'r');
	cm_child_join(&caller);
	cm_child_kill(&server);
}

static void death_wakes_a_program_that_polls_the_channel(void)
{
	struct cm_child child = cm_fork(serve_until, 'e');
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *caller = cm_caller(ch, RDMA_PS_TCP, port_of(&child));
	struct pollfd pfd = { .fd = ch->fd, .events = POLLIN };

	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	cm_child_expect(&child, 'q');
	cm_child_expect(&child, 'e');
	CHECK(poll(&pfd, 1, 0) == 0);
	cm_child_kill(&child);
	/* The channel's descriptor becomes readable. */
	CHECK(poll(&pfd, 1, SOON_MS) == 1 && pfd.revents == POLLIN);
	cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED);
	cm_id_free(caller);
	rdma_destroy_event_channel(ch);
}

/* ---- the last message of a connection ---- */

enum { LAST_ROUNDS = 40, LAST_BYTES = 5000 };

/* Sends a message to each caller and ends the connection at once: by a call, or dies. */
static void send_last(int fd, uint16_t rounds)
{
	static char bytes[LAST_BYTES];
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id, *listener;
	struct ibv_mr *mr;
	uint16_t port;

	listener = cm_listener(ch, RDMA_PS_TCP, 4, &port);
	for (int i = 0; !rounds || i < rounds; i++) {
		/* Each process of the host may take the end of a connection, or the next request, to
		 * this one: which comes first is not said. */
		CHECK(write(fd, &port, sizeof(port)) == sizeof(port));
		ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		id = ev->id;
		cm_qp(id);
		mr = rdma_reg_msgs(id, bytes, sizeof(bytes));
		CHECK(mr && rdma_accept(id, &ev->param.conn) == 0);
		CHECK(rdma_ack_cm_event(ev) == 0);
		CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
		CHECK(rdma_post_send(id, NULL, bytes, i % 2 ? 16 : LAST_BYTES, mr, 0) == 0);
		if (!rounds)
			kill(getpid(), SIGKILL);
		CHECK(rdma_disconnect(id) == 0);
		CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
		CHECK(rdma_dereg_mr(mr) == 0);
		cm_id_free(id);
	}
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static bool is_readable(int fd, int ms)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, ms) == 1;
}

/* Waits for the end of the connection and for nothing else; then looks once for the message,
 * at the channel of completions if `armed`, and in the queue. */
static void expect_last(uint16_t port, bool armed)
{
	static char bytes[LAST_BYTES];
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = cm_caller(ch, RDMA_PS_TCP, port);
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct ibv_mr *mr;
	struct ibv_wc wc;

	cm_qp(id);
	mr = rdma_reg_msgs(id, bytes, sizeof(bytes));
	CHECK(mr && rdma_post_recv(id, NULL, bytes, sizeof(bytes), mr) == 0);
	if (armed)
		CHECK(ibv_req_notify_cq(id->recv_cq, 0) == 0);
	CHECK(rdma_connect(id, &param) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	CHECK(is_readable(ch->fd, SOON_MS));
	CHECK(!armed || is_readable(id->recv_cq_channel->fd, 0));
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	CHECK(ibv_poll_cq(id->recv_cq, 1, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS);
	CHECK(rdma_dereg_mr(mr) == 0);
	cm_id_free(id);
	rdma_destroy_event_channel(ch);
}

static void the_last_message_is_there_before_the_disconnect(void)
{
	struct cm_child child = cm_fork(send_last, LAST_ROUNDS);

	for (int i = 0; i < LAST_ROUNDS; i++)
		expect_last(port_of(&child), i % 4 < 3);
	cm_child_join(&child);
}

static void the_last_message_of_a_peer_is_there_before_its_end(void)
{
	struct cm_child children[LAST_ROUNDS / 4];

	/* Before this process has threads. */
	for (int i = 0; i < LAST_ROUNDS / 4; i++)
		children[i] = cm_fork(send_last, 0);
	for (int i = 0; i < LAST_ROUNDS / 4; i++) {
		expect_last(port_of(&children[i]), i % 4 < 3);
		cm_child_kill(&children[i]);
	}
}

CM_MAIN(CASE(a_killed_peer_ends_the_connection_soon),
	CASE(a_listener_killed_before_it_answers_is_unreachable),
	CASE(a_caller_killed_between_reply_and_ready_fails_the_accept),
	CASE(another_user_is_refused),
	CASE(death_wakes_a_program_that_polls_the_channel),
	CASE(the_last_message_is_there_before_the_disconnect),
	CASE(the_last_message_of_a_peer_is_there_before_its_end))
