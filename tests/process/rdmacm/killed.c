/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that is killed or stopped at each stage of a connection: the other side gets
 * soon the one event that reports it, also if many connections between the two processes
 * share one link. death.c tests the data side.
 */
#include "cm_help.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>

#define SOON_MS 10000
#define MANY 40

/* The stage at which the victim stops; it writes this letter when it is there. */
enum stage {
	ASKED = 'a',       /* caller: REQ sent; callee: REQ received */
	ANSWERED = 'r',    /* REP received, or sent */
	CONNECTED = 'c',
	DISCONNECTING = 'd', /* the DREQ was sent */
	RESTING = 't',     /* time-wait */
};

static struct rdma_conn_param by_hand = { .qp_num = 0, .retry_count = 7 };
static int port_pipe[2];

static void tell_and_wait(int fd, char stage)
{
	CHECK(write(fd, &stage, 1) == 1);
	pause();
}

/* Both are connected: goes on to the victim's stage. */
static void go_on(struct rdma_event_channel *ch, struct rdma_cm_id *id, int fd,
		  enum stage last)
{
	if (last == DISCONNECTING) {
		CHECK(rdma_disconnect(id) == 0);
		tell_and_wait(fd, DISCONNECTING);
	}
	if (last == RESTING) {
		cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED);
		tell_and_wait(fd, RESTING);
	}
	tell_and_wait(fd, CONNECTED);
}

/* The victim is the callee. Without QPs, so that each step is a separate call. */
static void victim_callee(int fd, uint16_t last)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	uint16_t port;

	cm_listener(ch, RDMA_PS_TCP, 4, &port);
	CHECK(write(fd, &port, sizeof(port)) == sizeof(port));
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = ev->id;
	if (last == ASKED)
		tell_and_wait(fd, ASKED);
	CHECK(rdma_accept(id, &by_hand) == 0);
	if (last == ANSWERED)
		tell_and_wait(fd, ANSWERED);
	cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED);
	go_on(ch, id, fd, (enum stage)last);
}

static void victim_caller(int fd, uint16_t last)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	uint16_t port;

	CHECK(read(port_pipe[0], &port, sizeof(port)) == sizeof(port));
	ch = rdma_create_event_channel();
	id = cm_caller(ch, RDMA_PS_TCP, port);
	CHECK(rdma_connect(id, &by_hand) == 0);
	if (last == ASKED)
		tell_and_wait(fd, ASKED);
	cm_expect_ack(ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	if (last == ANSWERED)
		tell_and_wait(fd, ANSWERED);
	CHECK(rdma_establish(id) == 0);
	go_on(ch, id, fd, (enum stage)last);
}

static void kill_and_expect(struct cm_child *victim, struct rdma_event_channel *ch,
			    enum rdma_cm_event_type type, int status)
{
	struct pollfd pfd = { .fd = ch->fd, .events = POLLIN };
	uint64_t start = cm_now_ms();

	cm_child_kill(victim);
	CHECK(cm_expect_ack(ch, type) == status);
	CHECK(cm_now_ms() - start < SOON_MS);
	/* No second event but the end of the time-wait. */
	if (poll(&pfd, 1, 20) == 1) {
		CHECK(type == RDMA_CM_EVENT_DISCONNECTED ||
		      type == RDMA_CM_EVENT_CONNECT_ERROR);
		cm_expect_ack(ch, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	}
}

/* The caller survives; the callee is killed at stage `last`. */
static void survive_callee(enum stage last, enum rdma_cm_event_type type,
			   int status)
{
	struct cm_child victim = cm_fork(victim_callee, last);
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	uint16_t port;

	CHECK(read(victim.fd, &port, sizeof(port)) == sizeof(port));
	ch = rdma_create_event_channel();
	id = cm_caller(ch, RDMA_PS_TCP, port);
	CHECK(rdma_connect(id, &by_hand) == 0);
	if (last == ANSWERED) {
		/* The REP is taken only after its sender was killed. */
		cm_child_expect(&victim, ANSWERED);
		CHECK(kill(victim.pid, SIGKILL) == 0);
	}
	if (last != ASKED) {
		cm_expect_ack(ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
		if (last != ANSWERED)
			CHECK(rdma_establish(id) == 0);
	}
	if (last == RESTING)
		CHECK(rdma_disconnect(id) == 0);
	if (last != ANSWERED)
		cm_child_expect(&victim, (char)last);
	if (last == RESTING)
		cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED);
	kill_and_expect(&victim, ch, type, status);
	CHECK(rdma_disconnect(id) == 0 || errno == EINVAL);
	cm_id_free(id);
	rdma_destroy_event_channel(ch);
}

/* The callee survives; the caller is killed at stage `last`. */
static void survive_caller(enum stage last, enum rdma_cm_event_type type,
			   int status)
{
	struct rdma_cm_id *listener, *id;
	struct rdma_event_channel *ch;
	struct rdma_cm_event *ev;
	struct cm_child victim;
	uint16_t port;

	CHECK(pipe(port_pipe) == 0);
	victim = cm_fork(victim_caller, last);
	ch = rdma_create_event_channel();
	listener = cm_listener(ch, RDMA_PS_TCP, 4, &port);
	CHECK(write(port_pipe[1], &port, sizeof(port)) == sizeof(port));
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = ev->id;
	rdma_ack_cm_event(ev);
	if (last != ASKED)
		CHECK(rdma_accept(id, &by_hand) == 0);
	if (last != ASKED && last != ANSWERED)
		cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED);
	if (last == RESTING)
		CHECK(rdma_disconnect(id) == 0);
	cm_child_expect(&victim, (char)last);
	if (last == RESTING)
		cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED);
	kill_and_expect(&victim, ch, type, status);
	cm_id_free(id);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static void a_caller_killed_before_the_answer_has_given_up(void)
{
	survive_caller(ASKED, RDMA_CM_EVENT_REJECTED, 4);
}

static void a_caller_killed_before_it_is_ready_is_unreachable(void)
{
	survive_caller(ANSWERED, RDMA_CM_EVENT_UNREACHABLE, -ECONNRESET);
}

static void a_caller_killed_while_connected_is_disconnected(void)
{
	survive_caller(CONNECTED, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void a_caller_killed_while_it_disconnects_is_disconnected_once(void)
{
	survive_caller(DISCONNECTING, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void a_caller_killed_in_time_wait_does_not_shorten_ours(void)
{
	survive_caller(RESTING, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

static void a_callee_killed_before_its_answer_is_unreachable(void)
{
	survive_callee(ASKED, RDMA_CM_EVENT_UNREACHABLE, -ECONNRESET);
}

static void a_callee_killed_after_its_answer_is_a_connect_error(void)
{
	survive_callee(ANSWERED, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
}

static void a_callee_killed_while_connected_is_disconnected(void)
{
	survive_callee(CONNECTED, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void a_callee_killed_while_it_disconnects_is_disconnected_once(void)
{
	survive_callee(DISCONNECTING, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void a_callee_killed_in_time_wait_does_not_shorten_ours(void)
{
	survive_callee(RESTING, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

static void lookup_victim(int fd, uint16_t unused)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	uint16_t port;

	(void)unused;
	cm_listener(ch, RDMA_PS_UDP, 4, &port);
	CHECK(write(fd, &port, sizeof(port)) == sizeof(port));
	cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	tell_and_wait(fd, ASKED);
}

static void a_listener_killed_during_a_lookup_is_unreachable(void)
{
	struct cm_child victim = cm_fork(lookup_victim, 0);
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	uint16_t port;

	CHECK(read(victim.fd, &port, sizeof(port)) == sizeof(port));
	ch = rdma_create_event_channel();
	id = cm_caller(ch, RDMA_PS_UDP, port);
	cm_qp(id);
	CHECK(rdma_connect(id, NULL) == 0);
	cm_child_expect(&victim, ASKED);
	kill_and_expect(&victim, ch, RDMA_CM_EVENT_UNREACHABLE, -ECONNRESET);
	cm_id_free(id);
	rdma_destroy_event_channel(ch);
}

static int fd_count(void)
{
	DIR *d = opendir("/proc/self/fd");
	int count = 0;

	CHECK(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

/* The smallest of several counts: the progress thread opens some for a moment. */
static int fd_count_at_rest(void)
{
	int least = fd_count();

	for (int i = 0; i < 20; i++) {
		int count;

		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		count = fd_count();
		least = count < least ? count : least;
	}
	return least;
}

/* Accepts MANY connections; reports the descriptors that all but the first need. */
static void serve_many(int fd, uint16_t unused)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	int up = 0, first = 0;
	uint16_t port;

	(void)unused;
	cm_listener(ch, RDMA_PS_TCP, MANY, &port);
	CHECK(write(fd, &port, sizeof(port)) == sizeof(port));
	while (up < MANY) {
		struct rdma_cm_event *ev;

		CHECK(rdma_get_cm_event(ch, &ev) == 0);
		if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			CHECK(rdma_accept(ev->id, &by_hand) == 0);
		else
			CHECK(ev->event == RDMA_CM_EVENT_ESTABLISHED);
		if (ev->event == RDMA_CM_EVENT_ESTABLISHED && !up++)
			first = fd_count_at_rest();
		rdma_ack_cm_event(ev);
	}
	tell_and_wait(fd, (char)(fd_count_at_rest() - first));
}

static void many_connections_share_one_socket_and_end_one_by_one(void)
{
	struct cm_child victim = cm_fork(serve_many, 0);
	struct rdma_cm_id *ids[MANY];
	struct rdma_event_channel *ch;
	bool ended[MANY] = { false };
	uint16_t port;

	CHECK(read(victim.fd, &port, sizeof(port)) == sizeof(port));
	ch = rdma_create_event_channel();
	for (intptr_t i = 0; i < MANY; i++) {
		ids[i] = cm_caller(ch, RDMA_PS_TCP, port);
		ids[i]->context = (void *)i;
		CHECK(rdma_connect(ids[i], &by_hand) == 0);
		cm_expect_ack(ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
		CHECK(rdma_establish(ids[i]) == 0);
	}
	cm_child_expect(&victim, 0);
	cm_child_kill(&victim);
	for (int i = 0; i < MANY; i++) {
		struct rdma_cm_event *ev =
			cm_expect(ch, RDMA_CM_EVENT_DISCONNECTED);

		CHECK(!ended[(intptr_t)ev->id->context]);
		ended[(intptr_t)ev->id->context] = true;
		rdma_ack_cm_event(ev);
	}
	for (int i = 0; i < MANY; i++)
		cm_id_free(ids[i]);
	rdma_destroy_event_channel(ch);
}

/* This and the next case run with BUSBAR_CM_TIMEOUT_MS=60. */
static void a_program_that_takes_long_to_accept_is_waited_for(void)
{
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *listener, *caller, *callee;
	struct rdma_cm_event *ev;
	uint16_t port;

	listener = cm_listener(callee_ch, RDMA_PS_TCP, 4, &port);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	CHECK(rdma_connect(caller, &by_hand) == 0);
	ev = cm_expect(callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	rdma_ack_cm_event(ev);
	/* Longer than an unanswered request is repeated; no second event. */
	cm_expect_quiet(ch, 700);
	cm_expect_quiet(callee_ch, 700);
	CHECK(rdma_accept(callee, &by_hand) == 0);
	cm_expect_ack(ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(rdma_establish(caller) == 0);
	cm_expect_ack(callee_ch, RDMA_CM_EVENT_ESTABLISHED);
	cm_id_free(caller);
	cm_expect_ack(callee_ch, RDMA_CM_EVENT_DISCONNECTED);
	cm_id_free(callee);
	cm_id_free(listener);
	rdma_destroy_event_channel(callee_ch);
	rdma_destroy_event_channel(ch);
}

static void listen_and_wait(int fd, uint16_t unused)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	uint16_t port;

	(void)unused;
	cm_listener(ch, RDMA_PS_TCP, 4, &port);
	CHECK(write(fd, &port, sizeof(port)) == sizeof(port));
	pause();
}

static void a_process_that_is_stopped_is_given_up(void)
{
	struct cm_child victim = cm_fork(listen_and_wait, 0);
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	uint16_t port;

	CHECK(read(victim.fd, &port, sizeof(port)) == sizeof(port));
	CHECK(kill(victim.pid, SIGSTOP) == 0);
	ch = rdma_create_event_channel();
	id = cm_caller(ch, RDMA_PS_TCP, port);
	CHECK(rdma_connect(id, &by_hand) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_UNREACHABLE) == -ETIMEDOUT);
	cm_id_free(id);
	cm_child_kill(&victim);
	rdma_destroy_event_channel(ch);
}

CM_MAIN(CASE(a_caller_killed_before_the_answer_has_given_up),
	CASE(a_caller_killed_before_it_is_ready_is_unreachable),
	CASE(a_caller_killed_while_connected_is_disconnected),
	CASE(a_caller_killed_while_it_disconnects_is_disconnected_once),
	CASE(a_caller_killed_in_time_wait_does_not_shorten_ours),
	CASE(a_callee_killed_before_its_answer_is_unreachable),
	CASE(a_callee_killed_after_its_answer_is_a_connect_error),
	CASE(a_callee_killed_while_connected_is_disconnected),
	CASE(a_callee_killed_while_it_disconnects_is_disconnected_once),
	CASE(a_callee_killed_in_time_wait_does_not_shorten_ours),
	CASE(a_listener_killed_during_a_lookup_is_unreachable),
	CASE(many_connections_share_one_socket_and_end_one_by_one),
	CASE(a_program_that_takes_long_to_accept_is_waited_for),
	CASE(a_process_that_is_stopped_is_given_up))
