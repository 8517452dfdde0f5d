/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of iWARP: what differs from those by messages of connection management, and callers
 * that speak by TCP what they like. With BUSBAR_DEVICES=iwarp. */
#include "cm_help.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define ROUNDS 200
#define PAIRS 20

static void each_side_may_send_first(void)
{
	struct cm_pair p;

	cm_pair_make(&p);
	CHECK(p.caller->verbs->device->transport_type == IBV_TRANSPORT_IWARP);
	CHECK(p.caller->verbs->device->node_type == IBV_NODE_RNIC);
	cm_message(p.callee, p.caller);
	cm_message(p.caller, p.callee);
	CHECK(rdma_get_dst_port(p.callee) == rdma_get_src_port(p.caller) ||
	      rdma_get_dst_port(p.callee));
	cm_pair_free(&p);
}

static void private_data_have_their_own_length(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	uint8_t question[252], answer[199];
	struct rdma_conn_param ask = { question, 253, 3, 2, 0, 0, 0, 0, 0 };
	struct rdma_conn_param say = { answer, sizeof(answer), 2, 1, 0, 0, 0, 0, 0 };
	struct rdma_cm_id *listener, *caller, *callee;
	struct rdma_cm_event *ev;
	uint16_t port;

	for (unsigned i = 0; i < sizeof(question); i++)
		question[i] = (uint8_t)i;
	memset(answer, 0xa5, sizeof(answer));
	listener = cm_listener(callee_ch, RDMA_PS_TCP, 1, &port);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, &ask) == -1 && errno == EINVAL);
	ask.private_data_len = sizeof(question);
	CHECK(rdma_connect(caller, &ask) == 0);
	ev = cm_expect(callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	CHECK(ev->param.conn.private_data_len == sizeof(question));
	CHECK(!memcmp(ev->param.conn.private_data, question, sizeof(question)));
	CHECK(ev->param.conn.responder_resources == 2);
	CHECK(ev->param.conn.initiator_depth == 3);
	cm_qp(callee);
	CHECK(rdma_accept(callee, &say) == 0);
	rdma_ack_cm_event(ev);
	ev = cm_expect(ch, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(ev->param.conn.private_data_len == sizeof(answer));
	CHECK(!memcmp(ev->param.conn.private_data, answer, sizeof(answer)));
	rdma_ack_cm_event(ev);
	CHECK(cm_expect_ack(callee_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	cm_id_free(caller);
	CHECK(cm_expect_ack(callee_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	cm_id_free(callee);
	cm_id_free(listener);
	rdma_destroy_event_channel(callee_ch);
	rdma_destroy_event_channel(ch);
}

static void a_rejection_carries_data(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	struct rdma_cm_id *listener, *caller, *callee;
	struct rdma_cm_event *ev;
	uint16_t port;

	listener = cm_listener(callee_ch, RDMA_PS_TCP, 1, &port);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	ev = cm_expect(callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	CHECK(rdma_reject(callee, "not now", 8) == 0);
	CHECK(rdma_reject(callee, NULL, 0) == -1 && errno == EINVAL);
	rdma_ack_cm_event(ev);
	ev = cm_expect(ch, RDMA_CM_EVENT_REJECTED);
	CHECK(ev->status == -ECONNREFUSED);
	CHECK(ev->param.conn.private_data_len == 8);
	CHECK(!memcmp(ev->param.conn.private_data, "not now", 8));
	rdma_ack_cm_event(ev);
	CHECK(cm_qp_state(caller) == IBV_QPS_ERR);
	cm_id_free(callee);
	cm_id_free(caller);
	/* Nobody listens. */
	cm_id_free(listener);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == -ECONNREFUSED);
	cm_id_free(caller);
	rdma_destroy_event_channel(callee_ch);
	rdma_destroy_event_channel(ch);
}

static struct rdma_cm_id *listen_at(struct rdma_event_channel *ch, uint16_t port)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	if (rdma_bind_addr(id, cm_loopback(port)) || rdma_listen(id, 1)) {
		rdma_destroy_id(id);
		return NULL;
	}
	return id;
}

/* False: this process was late, or the port taken. */
static bool call_before_who_listens(struct rdma_event_channel *ch, struct rdma_event_channel *callee_ch)
{
	struct rdma_cm_id *listener, *caller, *callee;
	struct rdma_cm_event *ev;
	uint64_t began_ms;
	bool in_time;
	uint16_t port;

	listener = cm_listener(callee_ch, RDMA_PS_TCP, 1, &port);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	cm_id_free(listener);
	began_ms = cm_now_ms();
	CHECK(rdma_connect(caller, NULL) == 0);
	poll(NULL, 0, 60);
	listener = listen_at(callee_ch, port);
	in_time = listener && cm_now_ms() - began_ms < 300;
	if (in_time) {
		cm_expect_quiet(ch, 0);
		ev = cm_expect(callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		callee = ev->id;
		rdma_ack_cm_event(ev);
		cm_id_free(callee);
	}
	cm_id_free(caller);
	if (listener)
		cm_id_free(listener);
	return in_time;
}

/* perftest's server closes its listener and opens it again while its client calls. */
static void a_call_waits_a_while_for_who_listens(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();

	while (!call_before_who_listens(ch, callee_ch))
		;
	rdma_destroy_event_channel(callee_ch);
	rdma_destroy_event_channel(ch);
}

static void a_disconnect_ends_both_sides_and_flushes(void)
{
	char buf[16];
	struct cm_pair p;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	cm_pair_make(&p);
	mr = rdma_reg_msgs(p.caller, buf, sizeof(buf));
	CHECK(mr && rdma_post_recv(p.caller, NULL, buf, sizeof(buf), mr) == 0);
	CHECK(rdma_disconnect(p.caller) == 0);
	CHECK(rdma_get_recv_comp(p.caller, &wc) == 1);
	CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(cm_expect_ack(p.caller_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	CHECK(cm_expect_ack(p.callee_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	/* There is one stream: its end is that of both queue pairs. */
	CHECK(cm_qp_state(p.callee) == IBV_QPS_ERR);
	CHECK(rdma_disconnect(p.callee) == 0);
	CHECK(rdma_disconnect(p.caller) == 0);
	cm_expect_quiet(p.caller_ch, 20);
	cm_expect_quiet(p.callee_ch, 0);
	CHECK(rdma_dereg_mr(mr) == 0);
	cm_pair_free(&p);
}

/* The sender ends its connection as soon as its message is complete. */
static void last_message(bool destroys)
{
	char to[16] = "", from[16] = "the last message";
	struct ibv_mr *to_mr, *from_mr;
	struct cm_pair p;
	struct ibv_wc wc;

	cm_pair_make(&p);
	to_mr = rdma_reg_msgs(p.callee, to, sizeof(to));
	from_mr = rdma_reg_msgs(p.caller, from, sizeof(from));
	CHECK(to_mr && from_mr);
	CHECK(rdma_post_recv(p.callee, NULL, to, sizeof(to), to_mr) == 0);
	CHECK(rdma_post_send(p.caller, NULL, from, sizeof(from), from_mr, IBV_SEND_SIGNALED) == 0);
	CHECK(rdma_get_send_comp(p.caller, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	if (destroys)
		rdma_destroy_qp(p.caller);
	else
		CHECK(rdma_disconnect(p.caller) == 0);
	CHECK(cm_expect_ack(p.callee_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	/* It is complete before the event is there. */
	CHECK(ibv_poll_cq(p.callee->recv_cq, 1, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && !memcmp(to, from, sizeof(to)));
	CHECK(rdma_dereg_mr(to_mr) == 0 && rdma_dereg_mr(from_mr) == 0);
	CHECK(cm_expect_ack(p.caller_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	cm_pair_free(&p);
}

static void the_last_message_is_there_before_the_disconnect(void)
{
	for (int i = 0; i < ROUNDS; i++)
		last_message(i & 1);
}

static atomic_bool polls_end;

static void *poll_it(void *arg)
{
	struct ibv_wc wc;

	while (!atomic_load(&polls_end))
		CHECK(ibv_poll_cq(arg, 1, &wc) == 0);
	return NULL;
}

/* Polls, and the library's own thread, see the same end of a stream that has no queue pair any more. */
static void sockets_that_outlive_their_queue_pairs_end_once(void)
{
	struct cm_pair p[PAIRS];
	struct ibv_cq *cq;
	pthread_t poller;

	cm_pair_make(&p[0]);
	cq = ibv_create_cq(p[0].caller->verbs, 1, NULL, NULL, 0);
	CHECK(cq != NULL);
	CHECK(pthread_create(&poller, NULL, poll_it, cq) == 0);
	cm_pair_free(&p[0]);
	for (int round = 0; round < ROUNDS / PAIRS; round++) {
		for (int i = 0; i < PAIRS; i++)
			cm_pair_make(&p[i]);
		for (int i = 0; i < PAIRS; i++)
			rdma_destroy_qp(p[i].caller);
		for (int i = 0; i < PAIRS; i++)
			rdma_destroy_qp(p[i].callee);
		for (int i = 0; i < PAIRS; i++)
			cm_pair_free(&p[i]);
	}
	atomic_store(&polls_end, true);
	pthread_join(poller, NULL);
	CHECK(ibv_destroy_cq(cq) == 0);
}

/* ---- by TCP ---- */

static int dial(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && connect(fd, cm_loopback(port), sizeof(struct sockaddr_in)) == 0);
	return fd;
}

static void say(int fd, const void *bytes, size_t length)
{
	CHECK(send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length);
}

/* A request of revision 1 without private data, which asks for nothing. */
static const char request[20] = "MPA ID Req Frame\0\1\0";

/* A WRITE of no bytes: length, DDP and RDMAP control, STag, tagged offset, CRC. */
static const char empty_write[20] = "\0\16\301\100\0\0\0\1";

/* What the other end sends before it ends the stream, which it must. */
static size_t heard(int fd, char *to, size_t room)
{
	size_t there = 0;
	ssize_t n;

	while ((n = recv(fd, to + there, room - there, 0)) > 0)
		there += (size_t)n;
	close(fd);
	return there;
}

static void callers_that_speak_something_else_harm_nobody(void)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: nobody\r\n\r\n";
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	char frame[20], answer[64];
	struct rdma_cm_id *listener, *caller, *callee;
	struct rdma_cm_event *ev;
	int silent[300], fd;
	uint16_t port;

	listener = cm_listener(callee_ch, RDMA_PS_TCP, 4, &port);
	/* More than a listener keeps: the oldest ones make room. */
	for (int i = 0; i < 300; i++)
		silent[i] = dial(port);
	say(silent[299], request, 10);
	fd = dial(port);
	say(fd, http, sizeof(http) - 1);
	CHECK(heard(fd, answer, sizeof(answer)) == 0);
	/* A reply is no request. */
	fd = dial(port);
	say(fd, "MPA ID Rep Frame\0\1\0", 20);
	CHECK(heard(fd, answer, sizeof(answer)) == 0);
	/* A revision that there is not, and private data that are too long. */
	memcpy(frame, request, sizeof(frame));
	frame[17] = 9;
	fd = dial(port);
	say(fd, frame, sizeof(frame));
	CHECK(heard(fd, answer, sizeof(answer)) == 0);
	frame[17] = 1;
	frame[18] = 3;
	fd = dial(port);
	say(fd, frame, sizeof(frame));
	CHECK(heard(fd, answer, sizeof(answer)) == 0);
	/* An enhanced request without IRD and ORD is rejected. */
	memcpy(frame, request, sizeof(frame));
	frame[16] = 0x10;
	frame[17] = 2;
	fd = dial(port);
	say(fd, frame, sizeof(frame));
	CHECK(heard(fd, answer, sizeof(answer)) == sizeof(frame));
	CHECK(!memcmp(answer, "MPA ID Rep Frame\x20\2\0", sizeof(frame)));

	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	ev = cm_expect(callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	cm_qp(callee);
	CHECK(rdma_accept(callee, NULL) == 0);
	rdma_ack_cm_event(ev);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	CHECK(cm_expect_ack(callee_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	cm_message(caller, callee);
	cm_id_free(caller);
	CHECK(cm_expect_ack(callee_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	cm_id_free(callee);
	/* The listener goes with callers that have said nothing. */
	cm_id_free(listener);
	CHECK(heard(silent[299], answer, sizeof(answer)) == 0);
	for (int i = 0; i < 299; i++)
		close(silent[i]);
	rdma_destroy_event_channel(callee_ch);
	rdma_destroy_event_channel(ch);
}

/* Takes the request of a raw caller. */
static struct rdma_cm_id *take(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *callee = ev->id;

	rdma_ack_cm_event(ev);
	cm_qp(callee);
	return callee;
}

static void a_caller_that_has_gone_is_not_accepted(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *listener, *callee;
	uint16_t port;
	int fd;

	listener = cm_listener(ch, RDMA_PS_TCP, 4, &port);
	fd = dial(port);
	say(fd, request, sizeof(request));
	callee = take(ch);
	CHECK(shutdown(fd, SHUT_RDWR) == 0 && close(fd) == 0);
	/* Its end needs a moment to come here. */
	usleep(20000);
	CHECK(rdma_accept(callee, NULL) == -1 && errno == ECONNRESET);
	cm_id_free(callee);
	/* The initiator must not send before the reply (RFC 5044, 7.1.2). */
	fd = dial(port);
	say(fd, request, sizeof(request));
	callee = take(ch);
	say(fd, "early", 5);
	usleep(20000);
	CHECK(rdma_accept(callee, NULL) == -1 && errno == EPROTO);
	close(fd);
	cm_id_free(callee);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static void a_responder_is_silent_until_it_has_heard(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *listener, *callee;
	char reply[20], buf[16] = "me first";
	struct pollfd wait;
	struct ibv_mr *mr;
	uint16_t port;
	int fd;

	listener = cm_listener(ch, RDMA_PS_TCP, 4, &port);
	fd = dial(port);
	say(fd, request, sizeof(request));
	callee = take(ch);
	CHECK(rdma_accept(callee, NULL) == 0);
	mr = rdma_reg_msgs(callee, buf, sizeof(buf));
	CHECK(mr && rdma_post_send(callee, NULL, buf, sizeof(buf), mr, 0) == 0);
	CHECK(recv(fd, reply, sizeof(reply), MSG_WAITALL) == sizeof(reply));
	CHECK(!memcmp(reply, "MPA ID Rep Frame\0\1\0", sizeof(reply)));
	wait = (struct pollfd){ .fd = fd, .events = POLLIN };
	CHECK(poll(&wait, 1, 100) == 0);
	cm_expect_quiet(ch, 0);
	say(fd, empty_write, sizeof(empty_write));
	CHECK(poll(&wait, 1, 8000) == 1);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	close(fd);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	CHECK(rdma_dereg_mr(mr) == 0);
	cm_id_free(callee);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static void requests_beyond_the_backlog_are_rejected(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	struct rdma_cm_id *listener, *callers[3];
	uint16_t port;

	listener = cm_listener(callee_ch, RDMA_PS_TCP, 2, &port);
	for (int i = 0; i < 3; i++) {
		callers[i] = cm_caller(ch, RDMA_PS_TCP, port);
		cm_qp(callers[i]);
		CHECK(rdma_connect(callers[i], NULL) == 0);
	}
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == -ECONNREFUSED);
	/* The two other requests were not taken: they are rejected with the listener. */
	cm_id_free(listener);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == -ECONNREFUSED);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == -ECONNREFUSED);
	for (int i = 0; i < 3; i++)
		cm_id_free(callers[i]);
	rdma_destroy_event_channel(callee_ch);
	rdma_destroy_event_channel(ch);
}

static uint64_t processor_ms(void)
{
	struct rusage u;

	CHECK(getrusage(RUSAGE_SELF, &u) == 0);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static void callers_wait_while_there_is_no_descriptor(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), last;
	struct rdma_cm_id *listener, *callee;
	struct rlimit before, few;
	uint64_t used;
	uint16_t port;

	listener = cm_listener(ch, RDMA_PS_TCP, 4, &port);
	last = dup(fd);
	CHECK(last >= 0 && close(last) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
	few = before;
	few.rlim_cur = (rlim_t)last;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	CHECK(connect(fd, cm_loopback(port), sizeof(struct sockaddr_in)) == 0);
	say(fd, request, sizeof(request));
	used = processor_ms();
	cm_expect_quiet(ch, 500);
	CHECK(processor_ms() - used < 100);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	callee = take(ch);
	close(fd);
	cm_id_free(callee);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

/* What a process that forks tells the test. */
struct told {
	uint16_t port; /* where it listens */
	pid_t child;
};

static int listen_by_tcp(uint16_t *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t length = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && bind(fd, cm_loopback(0), sizeof(at)) == 0 && listen(fd, 1) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&at, &length) == 0);
	*port = ntohs(at.sin_port);
	return fd;
}

/* Listens, calls a port where nobody answers, accepts the first request and leaves the second. Then
 * its child lives until nobody holds the other end of `until`. */
_Noreturn static void fork_among_connections(uint16_t silent_port, int tell, int until)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	struct rdma_cm_id *caller = cm_caller(ch, RDMA_PS_TCP, silent_port);
	struct told t;
	char byte;

	cm_listener(callee_ch, RDMA_PS_TCP, 4, &t.port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(write(tell, &t, sizeof(t)) == sizeof(t));
	CHECK(rdma_accept(take(callee_ch), NULL) == 0);
	CHECK(cm_expect_ack(callee_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	CHECK(write(tell, &t, sizeof(t)) == sizeof(t));
	take(callee_ch);
	t.child = fork();
	if (t.child == 0)
		_exit(read(until, &byte, 1) == 0 ? 0 : 1);
	CHECK(write(tell, &t, sizeof(t)) == sizeof(t));
	while (true)
		pause();
}

/* Of a listener, a caller that has said nothing, a request that waits, a connection and a call. */
static void peers_see_the_end_of_a_process_whose_child_lives(void)
{
	int tell[2], until[2], silent, established, waiting, called, listener;
	struct rdma_event_channel *ch;
	struct rdma_cm_id *again;
	char answer[64];
	struct told t;
	uint16_t port;
	pid_t parent;

	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && pipe(tell) == 0 && pipe(until) == 0);
	listener = listen_by_tcp(&port);
	parent = fork();
	if (parent == 0) {
		close(until[1]);
		fork_among_connections(port, tell[1], until[0]);
	}
	CHECK(read(tell[0], &t, sizeof(t)) == sizeof(t));
	called = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(called >= 0);
	silent = dial(t.port);
	established = dial(t.port);
	say(established, request, sizeof(request));
	CHECK(recv(established, answer, 20, MSG_WAITALL) == 20);
	say(established, empty_write, sizeof(empty_write));
	CHECK(read(tell[0], &t, sizeof(t)) == sizeof(t));
	waiting = dial(t.port);
	say(waiting, request, sizeof(request));
	CHECK(read(tell[0], &t, sizeof(t)) == sizeof(t));
	CHECK(kill(parent, SIGKILL) == 0 && waitpid(parent, NULL, 0) == parent);
	heard(called, answer, sizeof(answer));
	CHECK(heard(silent, answer, sizeof(answer)) == 0);
	CHECK(heard(established, answer, sizeof(answer)) == 0);
	CHECK(heard(waiting, answer, sizeof(answer)) == 0);
	/* Nobody has the port any more. */
	ch = rdma_create_event_channel();
	CHECK(rdma_create_id(ch, &again, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(again, cm_loopback(t.port)) == 0 && rdma_listen(again, 1) == 0);
	cm_id_free(again);
	rdma_destroy_event_channel(ch);
	CHECK(kill(t.child, 0) == 0);
	close(until[1]);
	CHECK(waitpid(t.child, NULL, 0) == t.child);
	close(listener);
	close(tell[0]);
	close(tell[1]);
	close(until[0]);
}

/* With BUSBAR_NETWORK=off, in a network with the address 192.0.2.7 besides those of the loopback
 * interface. */
static void an_address_that_is_not_allowed_is_not_served(void)
{
	struct sockaddr_in outer = { .sin_family = AF_INET };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *listener, *callee;
	char answer[16];
	int fd;

	CHECK(rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_listen(listener, 4) == 0);
	outer.sin_port = rdma_get_src_port(listener);
	inet_pton(AF_INET, "192.0.2.7", &outer.sin_addr);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(connect(fd, (struct sockaddr *)&outer, sizeof(outer)) == 0);
	/* It may be closed already. */
	send(fd, request, sizeof(request), MSG_NOSIGNAL);
	CHECK(heard(fd, answer, sizeof(answer)) == 0);
	cm_expect_quiet(ch, 0);
	fd = dial(ntohs(outer.sin_port));
	say(fd, request, sizeof(request));
	callee = take(ch);
	close(fd);
	cm_id_free(callee);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

/* In a network with eight ports for who wants any, of which TCP has seven. */
static void a_port_of_0_is_free_for_tcp_too(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *listener;
	uint16_t port;
	int fd[7];

	for (uint16_t i = 0; i < 7; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(bind(fd[i], cm_loopback((uint16_t)(40000 + i)),
			   sizeof(struct sockaddr_in)) == 0);
	}
	listener = cm_listener(ch, RDMA_PS_TCP, 1, &port);
	CHECK(port == 40007);
	cm_id_free(listener);
	for (int i = 0; i < 7; i++)
		close(fd[i]);
	rdma_destroy_event_channel(ch);
}

CM_MAIN(CASE(each_side_may_send_first), CASE(private_data_have_their_own_length),
	CASE(a_rejection_carries_data), CASE(a_call_waits_a_while_for_who_listens),
	CASE(a_disconnect_ends_both_sides_and_flushes),
	CASE(the_last_message_is_there_before_the_disconnect),
	CASE(sockets_that_outlive_their_queue_pairs_end_once),
	CASE(callers_that_speak_something_else_harm_nobody),
	CASE(a_caller_that_has_gone_is_not_accepted),
	CASE(a_responder_is_silent_until_it_has_heard),
	CASE(requests_beyond_the_backlog_are_rejected),
	CASE(callers_wait_while_there_is_no_descriptor),
	CASE(peers_see_the_end_of_a_process_whose_child_lives),
	CASE(an_address_that_is_not_allowed_is_not_served),
	CASE(a_port_of_0_is_free_for_tcp_too))
