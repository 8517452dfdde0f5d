/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that fails, as `busbar devices --fail` has it fail: what the program
 * sees of it, and what is left (ibv_get_async_event(3)).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../threads_rest.h"
#include "pair.h"
#include "verbs/private.h"

static pid_t pid_of(const struct side *s)
{
	return s->pid > 0 ? s->pid : getpid();
}

static void let_fail(const struct side *s)
{
	expect_eq(busbar_fail_ask((uint32_t)pid_of(s), transport_under_test()->device), 0);
}

static void expect_fatal_once(struct side *s)
{
	expect_eq(side_async(s, WAIT_MS), IBV_EVENT_DEVICE_FATAL);
	expect_eq(side_async(s, QUIET_MS), -1);
}

static void what_is_posted_is_flushed_when_the_device_fails(struct pair *p)
{
	struct ibv_wc wc;

	need_rnr();
	/* Nothing is posted for them there: they wait. */
	pair_start(p, NULL);
	for (uint64_t i = 1; i <= 3; i++) {
		side_send(&p->a, i, 0, 100);
		side_recv(&p->a, 10 + i, 0, 100);
	}
	let_fail(&p->a);
	/* At the end of the request, not some time later. */
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
	for (uint64_t i = 1; i <= 3; i++) {
		wc = side_wait(&p->a, SEND_CQ);
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
		expect_eq(wc.wr_id, i);
		wc = side_wait(&p->a, RECV_CQ);
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
		expect_eq(wc.wr_id, 10 + i);
	}
	side_recv(&p->a, 20, 0, 100);
	expect_status(side_wait(&p->a, RECV_CQ), IBV_WC_WR_FLUSH_ERR);
	expect_fatal_once(&p->a);
	/* Another process's device is its own. */
	expect_eq(side_async(&p->b, p->two_processes ? QUIET_MS : WAIT_MS),
		  p->two_processes ? -1 : IBV_EVENT_DEVICE_FATAL);
	expect_eq(side_state(&p->b, 0), p->two_processes ? IBV_QPS_RTS :
							    IBV_QPS_ERR);
}

static void every_context_is_told_once(struct pair *p)
{
	pair_open(p, NULL);
	let_fail(&p->a);
	let_fail(&p->a);
	expect_fatal_once(&p->a);
	if (!p->two_processes)
		expect_fatal_once(&p->b);
}

static void queue_pairs_of_every_state_and_service_fail(struct pair *p)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC,
						  IBV_QPT_UD };
	const int services = transport_under_test()->streams ? 1 : 3;

	pair_start(p, NULL);
	for (int i = 0; i < services; i++) {
		struct side_options opt = { .type = types[i] };
		int reset = side_qp_create(&p->a, &opt);
		int init = side_qp_create(&p->a, &opt);

		expect_eq(reset, 1 + 2 * i);
		expect_eq(side_to_init(&p->a, init, 0), 0);
	}
	let_fail(&p->a);
	for (int i = 0; i <= 2 * services; i++)
		expect_eq(side_state(&p->a, i), IBV_QPS_ERR);
	expect_fatal_once(&p->a);
}

static int on_failed_context(struct end *e, void *arg)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = e->cq[SEND_CQ],
		.recv_cq = e->cq[RECV_CQ],
		.cap = { 1, 1, 1, 1, 0 },
	};

	errno = 0;
	if (ibv_create_qp(e->pd, &init) || errno != EIO)
		return 1;
	return ibv_modify_qp(e->qp[0], &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS) == EIO ? 0 : 2;
}

static void a_failed_context_makes_and_moves_no_queue_pair(struct pair *p)
{
	int nothing = 0;

	pair_open(p, NULL);
	let_fail(&p->a);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
	expect_eq(side_run(&p->a, on_failed_context, &nothing, sizeof(nothing)), 0);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_ERR), 0);
	expect_fatal_once(&p->a);
}

static void the_device_can_be_opened_anew(struct pair *p)
{
	for (int round = 0; round < 3; round++) {
		pair_start(p, NULL);
		side_recv(&p->b, 1, 0, 100);
		side_send(&p->a, 1, 0, 100);
		side_wait_ok(&p->b, RECV_CQ, 1);
		side_wait_ok(&p->a, SEND_CQ, 1);
		let_fail(round % 2 ? &p->a : &p->b);
		expect_eq(side_async(round % 2 ? &p->a : &p->b, WAIT_MS),
			  IBV_EVENT_DEVICE_FATAL);
		side_close(&p->a);
		side_close(&p->b);
	}
	pair_start(p, NULL);
	expect_eq(side_async(&p->a, QUIET_MS), -1);
}

/* Posts and polls as fast as it can until it sees the failure. */
static int post_until_flushed(struct end *e, void *arg)
{
	struct ibv_sge sge = { (uint64_t)(uintptr_t)e->buffer, 64,
			       e->mr[0]->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED }, *bad_send;
	uint64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	while (now_ms() < end) {
		ibv_post_recv(e->qp[0], &recv, &bad_recv);
		ibv_post_send(e->qp[0], &send, &bad_send);
		for (int cq = 0; cq < 2; cq++)
			while (ibv_poll_cq(e->cq[cq], 1, &wc) > 0)
				if (wc.status == IBV_WC_WR_FLUSH_ERR)
					return 0;
	}
	return 1;
}

static void it_fails_under_a_thread_that_posts_and_polls(struct pair *p)
{
	static const struct side_options opt = { .send_wr = 64, .recv_wr = 64,
						 .cqe = 4096 };
	int nothing = 0;

	for (int round = 0; round < 5; round++) {
		pair_start(p, &opt);
		side_start(&p->a, post_until_flushed, &nothing, sizeof(nothing));
		usleep((useconds_t)round * 2000); /* in different moments */
		let_fail(&p->a);
		expect_eq(side_join(&p->a, &nothing, sizeof(nothing)), 0);
		expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
		side_close(&p->a);
		side_close(&p->b);
	}
}

/* Makes queue pairs and leads them on until it is refused; how many are then in
 * another state than error. */
static int make_until_refused(struct end *e, void *arg)
{
	const bool rnic = transport_under_test()->streams;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init = {
		.qp_type = rnic ? IBV_QPT_RC : IBV_QPT_UD,
		.send_cq = e->cq[SEND_CQ],
		.recv_cq = e->cq[RECV_CQ],
		.cap = { 1, 1, 1, 1, 0 },
	};
	struct ibv_qp *qps[8] = { NULL };
	uint64_t end = now_ms() + WAIT_MS;
	int ret = 0, wrong = 0;

	for (unsigned i = 0; !ret && now_ms() < end; i = (i + 1) % 8) {
		if (qps[i] && ibv_destroy_qp(qps[i]))
			return -1;
		qps[i] = ibv_create_qp(e->pd, &init);
		ret = qps[i] ? 0 : errno;
		if (!ret)
			ret = ibv_modify_qp(qps[i], &attr, IBV_QP_STATE |
					    IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    (rnic ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY));
	}
	if (ret != EIO)
		return -2;
	usleep(QUIET_MS * 1000);
	for (unsigned i = 0; i < 8; i++) {
		struct ibv_qp_attr got;

		if (!qps[i])
			continue;
		if (ibv_query_qp(qps[i], &got, IBV_QP_STATE, &init))
			return -3;
		wrong += got.qp_state != IBV_QPS_ERR;
		if (ibv_destroy_qp(qps[i]))
			return -1;
	}
	return wrong;
}

static void no_queue_pair_escapes_that_is_made_meanwhile(struct pair *p)
{
	int nothing = 0;

	for (int round = 0; round < 5; round++) {
		pair_open(p, NULL);
		side_start(&p->a, make_until_refused, &nothing, sizeof(nothing));
		usleep((useconds_t)round * 1000); /* in different moments */
		let_fail(&p->a);
		expect_eq(side_join(&p->a, &nothing, sizeof(nothing)), 0);
		side_close(&p->a);
		side_close(&p->b);
	}
}

static void closing_while_it_is_asked_for_harms_nobody(struct pair *p)
{
	for (int round = 0; round < 20; round++) {
		pid_t child;
		int status;

		pair_open(p, NULL);
		threads_rest();
		child = fork();
		if (child == 0) {
			int ret = busbar_fail_ask((uint32_t)pid_of(&p->b), NULL);

			_exit(ret && ret != -ESRCH && ret != -ENODEV &&
			      ret != -EPROTONOSUPPORT);
		}
		usleep((useconds_t)round * 200);
		side_close(&p->a);
		side_close(&p->b);
		expect_eq(waitpid(child, &status, 0), child);
		expect_eq(status, 0);
	}
}

/* ---- which processes may ask, and which can be asked ---- */

static void another_user_is_not_obeyed(struct pair *p)
{
	int go[2], status;
	pid_t child;

	if (geteuid() != 0)
		exit(77);
	expect(!pipe2(go, O_CLOEXEC));
	child = fork();
	if (child == 0) {
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		expect(read(go[0], &byte, 1) == 1);
		expect(!setresuid(65534, 65534, 65534));
		expect_eq(busbar_fail_ask((uint32_t)getppid(), NULL), -EPERM);
		_exit(0);
	}
	/* Whatever other doors this opens. */
	setenv("BUSBAR_SHM_PEERS", "any", 1);
	pair_start(p, NULL);
	expect(write(go[1], "", 1) == 1);
	expect_eq(waitpid(child, &status, 0), child);
	expect_eq(status, 0);
	expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
	expect_eq(side_async(&p->a, QUIET_MS), -1);
	close(go[0]);
	close(go[1]);
}

static void who_cannot_be_asked_is_told_apart(struct pair *p)
{
	pair_open(p, NULL);
	expect_eq(busbar_fail_ask(1u << 30, NULL), -ESRCH);
	expect_eq(busbar_fail_ask((uint32_t)getppid(), NULL), -ESRCH);
	expect_eq(busbar_fail_ask((uint32_t)getpid(), "soft2"), -ENODEV);
	expect_eq(busbar_fail_ask((uint32_t)getpid(), "mlx5_0"), -ENODEV);
	expect_eq(side_async(&p->a, QUIET_MS), -1);
}

/* Listens under a name of the adapter; closes each connection after its first message. */
static _Noreturn void old_one(int ready)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	unsigned block = 15000;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int len;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	do {
		len = snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1,
			       "busbar.qpn.%u", ++block);
		len += (int)offsetof(struct sockaddr_un, sun_path) + 1;
	} while (bind(fd, (struct sockaddr *)&sun, (socklen_t)len) &&
		 errno == EADDRINUSE);
	if (listen(fd, 16) || write(ready, "", 1) != 1)
		_exit(1);
	for (;;) {
		char bytes[64];
		int from = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (recv(from, bytes, sizeof(bytes), 0) < 0)
			_exit(1);
		close(from);
	}
}

static void a_process_that_does_not_know_the_request_is_named(struct pair *p)
{
	int ready[2];
	pid_t old;
	char byte;

	expect(!pipe2(ready, O_CLOEXEC));
	old = fork();
	if (old == 0)
		old_one(ready[1]);
	expect(read(ready[0], &byte, 1) == 1);
	expect_eq(busbar_fail_ask((uint32_t)old, NULL), -EPROTONOSUPPORT);
	kill(old, SIGKILL);
	waitpid(old, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	pair_open(p, NULL);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		RULE("IBTA 10.3.1.7",
		     what_is_posted_is_flushed_when_the_device_fails),
		RULE("ibv_get_async_event(3)", every_context_is_told_once),
		CASE(queue_pairs_of_every_state_and_service_fail),
		CASE(a_failed_context_makes_and_moves_no_queue_pair),
		CASE(the_device_can_be_opened_anew),
		CASE(it_fails_under_a_thread_that_posts_and_polls),
		CASE(no_queue_pair_escapes_that_is_made_meanwhile),
		CASE_IN(ONLY_TWO_PROCESSES,
			closing_while_it_is_asked_for_harms_nobody),
		CASE_IN(ONLY_ONE_PROCESS, another_user_is_not_obeyed),
		CASE_IN(ONLY_ONE_PROCESS, who_cannot_be_asked_is_told_apart),
		CASE_IN(ONLY_ONE_PROCESS,
			a_process_that_does_not_know_the_request_is_named),
	};

	return RUN_CASES(argc, argv, cases);
}
