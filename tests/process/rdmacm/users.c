/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections between processes of different users: made if both permit the other one
 * (BUSBAR_PEERS), rejected at once if one does not, and never made only to fail later.
 */
#include "cm_help.h"

#include <arpa/inet.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CONSUMER 28 /* reason of a REJ */
#define SIDR_REJECTED 2
#define LETTER 21
#define CALLS 300
#define ALLOWED 256 /* links of one user */

struct plan {
	uid_t server, caller;
	const char *server_peers, *caller_peers;
	enum rdma_port_space ps;
	bool refused;
};
static struct plan plan;
/* The caller waits for the first pipe, the server for the second; both are inherited. */
static int port_pipe[2], told_pipe[2];

static void become(uid_t uid, const char *peers)
{
	if (peers)
		CHECK(setenv("BUSBAR_PEERS", peers, 1) == 0);
	if (!uid)
		return;
	CHECK(setgroups(0, NULL) == 0 && setgid(uid) == 0 && setuid(uid) == 0);
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
}

static struct ibv_mr *receive(struct rdma_cm_id *id, uint8_t *to, size_t size)
{
	struct ibv_mr *mr = rdma_reg_msgs(id, to, size);

	CHECK(mr && rdma_post_recv(id, NULL, to, size, mr) == 0);
	return mr;
}

static void expect_letter(struct rdma_cm_id *id, const uint8_t *in, size_t at,
			  uint8_t letter)
{
	struct ibv_wc wc;

	CHECK(rdma_get_recv_comp(id, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && in[at] == letter);
}

static void send_done(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	CHECK(rdma_get_send_comp(id, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS);
}

static void serve(int fd, uint16_t unused)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener, *id;
	struct rdma_cm_event *ev;
	struct rdma_conn_param param = { 0 };
	uint8_t in[64] = { 0 }, out[64] = { LETTER + 1 };
	struct ibv_mr *in_mr, *out_mr;
	bool datagram = plan.ps == RDMA_PS_UDP;
	uint16_t port;

	(void)unused;
	become(plan.server, plan.server_peers);
	ch = rdma_create_event_channel();
	listener = cm_listener(ch, plan.ps, 4, &port);
	CHECK(write(port_pipe[1], &port, sizeof(port)) == sizeof(port));
	if (plan.refused) {
		/* The caller was rejected; the server got no event. */
		CHECK(read(told_pipe[0], &port, 1) == 1);
		cm_expect_quiet(ch, 0);
		goto out;
	}
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = ev->id;
	cm_qp(id);
	in_mr = receive(id, in, sizeof(in));
	out_mr = rdma_reg_msgs(id, out, sizeof(out));
	CHECK(out_mr);
	param.qp_num = id->qp->qp_num;
	CHECK(rdma_accept(id, &param) == 0);
	CHECK(rdma_ack_cm_event(ev) == 0);
	if (!datagram)
		CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	expect_letter(id, in, datagram ? 40 : 0, LETTER);
	if (!datagram) {
		CHECK(rdma_post_send(id, NULL, out, 1, out_mr, 0) == 0);
		send_done(id);
		cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED);
	}
	CHECK(rdma_dereg_mr(in_mr) == 0 && rdma_dereg_mr(out_mr) == 0);
	cm_id_free(id);
out:
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
	CHECK(write(fd, "s", 1) == 1);
}

static void talk(struct rdma_event_channel *ch, struct rdma_cm_id *id)
{
	uint8_t in[64] = { 0 }, out[64] = { LETTER };
	struct ibv_mr *in_mr = receive(id, in, sizeof(in));
	struct ibv_mr *out_mr = rdma_reg_msgs(id, out, sizeof(out));
	struct rdma_cm_event *ev = cm_expect(ch, RDMA_CM_EVENT_ESTABLISHED);
	bool datagram = plan.ps == RDMA_PS_UDP;

	CHECK(out_mr);
	if (datagram) {
		struct ibv_ah *ah = ibv_create_ah(id->pd,
						  &ev->param.ud.ah_attr);

		CHECK(ah && rdma_post_ud_send(id, NULL, out, 1, out_mr, 0, ah,
					      ev->param.ud.qp_num) == 0);
		send_done(id);
		CHECK(ibv_destroy_ah(ah) == 0);
	} else {
		CHECK(rdma_post_send(id, NULL, out, 1, out_mr, 0) == 0);
		send_done(id);
		expect_letter(id, in, 0, LETTER + 1);
	}
	CHECK(rdma_ack_cm_event(ev) == 0);
	if (!datagram) {
		CHECK(rdma_disconnect(id) == 0);
		cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED);
	}
	CHECK(rdma_dereg_mr(in_mr) == 0 && rdma_dereg_mr(out_mr) == 0);
}

static void call(int fd, uint16_t unused)
{
	struct rdma_conn_param param = { .retry_count = 7,
					 .rnr_retry_count = 7 };
	struct rdma_event_channel *ch;
	bool datagram = plan.ps == RDMA_PS_UDP;
	struct rdma_cm_id *id;
	uint64_t start;
	uint16_t port;

	(void)unused;
	CHECK(read(port_pipe[0], &port, sizeof(port)) == sizeof(port));
	become(plan.caller, plan.caller_peers);
	ch = rdma_create_event_channel();
	/* A second refused call uses the link of the first. */
	for (int i = 0; i < (plan.refused ? 2 : 1); i++) {
		id = cm_caller(ch, plan.ps, port);
		cm_qp(id);
		start = cm_now_ms();
		CHECK(rdma_connect(id, &param) == 0);
		if (!plan.refused)
			talk(ch, id);
		else if (datagram)
			CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_UNREACHABLE) ==
			      SIDR_REJECTED);
		else
			CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) ==
			      CONSUMER);
		/* At once: the timeout would be a minute. */
		CHECK(cm_now_ms() - start < 10000);
		cm_id_free(id);
	}
	rdma_destroy_event_channel(ch);
	if (plan.refused)
		CHECK(write(told_pipe[1], "e", 1) == 1);
	CHECK(write(fd, "c", 1) == 1);
}

static void play(struct plan p)
{
	struct cm_child server, caller;

	if (geteuid() != 0)
		exit(77);
	CHECK(unsetenv("BUSBAR_PEERS") == 0 && unsetenv("BUSBAR_SHM_PEERS") == 0);
	plan = p;
	CHECK(pipe(port_pipe) == 0 && pipe(told_pipe) == 0);
	server = cm_fork(serve, 0);
	caller = cm_fork(call, 0);
	cm_child_expect(&caller, 'c');
	cm_child_expect(&server, 's');
	cm_child_join(&caller);
	cm_child_join(&server);
}

#define ONE 65533
#define OTHER 65534

static void a_server_of_root_serves_a_user(void)
{
	play((struct plan){ 0, ONE, NULL, NULL, RDMA_PS_TCP, false });
}

static void a_server_of_a_user_serves_root(void)
{
	play((struct plan){ ONE, 0, NULL, NULL, RDMA_PS_TCP, false });
}

static void datagrams_of_a_user_reach_a_server_of_root(void)
{
	play((struct plan){ 0, ONE, NULL, NULL, RDMA_PS_UDP, false });
}

static void datagrams_of_root_reach_a_server_of_a_user(void)
{
	play((struct plan){ ONE, 0, NULL, NULL, RDMA_PS_UDP, false });
}

static void a_server_that_does_not_let_the_caller_in_rejects(void)
{
	play((struct plan){ ONE, OTHER, "user", "any", RDMA_PS_TCP, true });
}

static void a_caller_that_does_not_let_the_server_in_is_rejected(void)
{
	play((struct plan){ ONE, OTHER, "any", "user", RDMA_PS_TCP, true });
}

static void a_lookup_by_another_user_is_refused(void)
{
	play((struct plan){ ONE, OTHER, "user", "any", RDMA_PS_UDP, true });
	play((struct plan){ ONE, OTHER, "any", "user", RDMA_PS_UDP, true });
}

static void two_users_connect_when_both_let_any_in(void)
{
	play((struct plan){ ONE, OTHER, "any", "any", RDMA_PS_TCP, false });
}

/* Were those that are too many closed, and no others? On a machine that is so busy that others
 * are closed meanwhile, too, it is not seen. */
static bool the_last_are_closed(int fds[CALLS], uint16_t port)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
			   "busbar.cm.0106.%u.127.0.0.1", port);
	int closed = 0;
	char byte;

	for (int i = 0; i < CALLS; i++) {
		fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		CHECK(connect(fds[i], (struct sockaddr *)&name,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
					  1 + (size_t)len)) == 0);
	}
	/* Accepted in order: the first sockets stay open (for five seconds without a
	 * message), the last are closed, because they are too many. */
	CHECK(recv(fds[CALLS - 1], &byte, 1, 0) <= 0);
	for (int i = 0; i < CALLS; i++)
		closed += recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0;
	return closed == CALLS - ALLOWED;
}

static void call_many_times(int fd, uint16_t port)
{
	int fds[CALLS], tries = 0;
	char byte;

	become(OTHER, NULL);
	while (!the_last_are_closed(fds, port)) {
		CHECK(++tries < 4);
		for (int i = 0; i < CALLS; i++)
			close(fds[i]);
	}
	CHECK(write(fd, "m", 1) == 1);
	close(port_pipe[1]);
	CHECK(read(port_pipe[0], &byte, 1) == 0);
}

static void callers_of_another_user_are_limited(void)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener, *caller;
	struct cm_child many;
	struct rdma_cm_event *ev;
	uint16_t port;

	if (geteuid() != 0)
		exit(77);
	CHECK(pipe(port_pipe) == 0);
	ch = rdma_create_event_channel();
	listener = cm_listener(ch, RDMA_PS_TCP, 2, &port);
	many = cm_fork(call_many_times, port);
	cm_child_expect(&many, 'm');
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	cm_id_free(ev->id);
	rdma_ack_cm_event(ev);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == CONSUMER);
	close(port_pipe[1]);
	cm_child_join(&many);
	cm_id_free(caller);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static void listen_without_a_number(int fd, uint16_t unused)
{
	struct rdma_event_channel *ch;
	uint16_t port = 0;

	(void)unused;
	become(ONE, "any");
	if (!unshare(CLONE_NEWUSER)) {
		ch = rdma_create_event_channel();
		cm_listener(ch, RDMA_PS_TCP, 2, &port);
	}
	CHECK(write(told_pipe[1], &port, sizeof(port)) == sizeof(port));
	pause();
}

/* A namespace shows all users that it does not map as one, the listener's, too. */
static void callers_without_a_number_are_limited(void)
{
	struct cm_child server, many;
	uint16_t port;

	if (geteuid() != 0)
		exit(77);
	CHECK(pipe(port_pipe) == 0 && pipe(told_pipe) == 0);
	server = cm_fork(listen_without_a_number, 0);
	CHECK(read(told_pipe[0], &port, sizeof(port)) == sizeof(port));
	if (!port) {
		cm_child_kill(&server);
		exit(77);
	}
	many = cm_fork(call_many_times, port);
	cm_child_expect(&many, 'm');
	cm_child_kill(&server);
	close(port_pipe[1]);
	cm_child_join(&many);
}

/* ---- names that another user has taken ---- */

static void take_the_address(int fd, uint16_t port)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
			   "busbar.cm.0106.%u.127.0.0.1", port);

	become(OTHER, NULL);
	CHECK(bind(socket_fd, (struct sockaddr *)&name,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			       (size_t)len)) == 0);
	CHECK(listen(socket_fd, 5) == 0);
	CHECK(write(fd, "t", 1) == 1);
	/* Ends when the parent closes its end of the pipe; a process of another user
	 * cannot be killed by it. */
	close(port_pipe[1]);
	CHECK(read(port_pipe[0], &port, 1) == 0);
}

/* The listener has the wildcard's port, the other user the same port of an address. */
static void a_name_taken_by_another_user_does_not_hide_the_listener(void)
{
	struct rdma_event_channel *ch;
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rdma_cm_id *listener, *caller;
	struct rdma_cm_event *ev;
	struct cm_child thief;
	uint16_t port = (uint16_t)(20000 + getpid() % 10000);

	if (geteuid() != 0)
		exit(77);
	CHECK(pipe(port_pipe) == 0);
	thief = cm_fork(take_the_address, port);
	cm_child_expect(&thief, 't');
	become(ONE, "user");
	any.sin_port = htons(port);
	ch = rdma_create_event_channel();
	CHECK(rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(listener, (struct sockaddr *)&any) == 0);
	CHECK(rdma_listen(listener, 2) == 0);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	cm_id_free(ev->id);
	rdma_ack_cm_event(ev);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == CONSUMER);
	cm_id_free(caller);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
	close(port_pipe[1]);
	cm_child_join(&thief);
}

CM_MAIN(CASE(a_server_of_root_serves_a_user),
	CASE(a_server_of_a_user_serves_root),
	CASE(datagrams_of_a_user_reach_a_server_of_root),
	CASE(datagrams_of_root_reach_a_server_of_a_user),
	CASE(a_server_that_does_not_let_the_caller_in_rejects),
	CASE(a_caller_that_does_not_let_the_server_in_is_rejected),
	CASE(a_lookup_by_another_user_is_refused),
	CASE(two_users_connect_when_both_let_any_in),
	CASE(callers_of_another_user_are_limited),
	CASE(callers_without_a_number_are_limited),
	CASE(a_name_taken_by_another_user_does_not_hide_the_listener))
