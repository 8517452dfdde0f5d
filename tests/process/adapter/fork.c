/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork() in a process that has a device open: the child's end does not disturb
 * the parent, and the child may open a device of its own (ibv_fork_init(3)).
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "join.h"
#include "pair.h"

static void exchange(struct pair *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint32_t length = (uint32_t)(i * 3001 % 40000);

		side_fill(&p->a, 0, length, i);
		side_recv(&p->b, i, 0, 40000);
		side_send(&p->a, i, 0, length);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_check(&p->b, 0, length, i);
	}
}

/* The thread sanitizer cannot start threads in a child of several threads; in such
 * a child the address sanitizer's allocator may stay locked for ever by one of the
 * parent's, which is the progress thread's as soon as there is a link. */
static void child_starts_threads(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	exit(77);
#endif
}

static void expect_exit_0(pid_t pid)
{
	int status;

	expect(pid > 0);
	expect_eq(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail("the child ended with status 0x%x", status);
}

static void a_child_that_ends_leaves_the_parents_traffic_alone(struct pair *p)
{
	pair_start(p, NULL);
	exchange(p, 3);
	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		exchange(p, 5);
		expect_exit_0(pid);
		exchange(p, 5);
	}
}

/* Two queue pairs of a device of its own talk to each other. */
static int converse(void)
{
	static struct end end;
	struct side own = { .end = &end }, *a = &own;
	struct recv_req rr;
	struct send_req r;

	memset(&end, 0, sizeof(end));
	alarm(30);
	side_open(a, NULL);
	expect_eq(side_qp_create(a, NULL), 1);
	join(end.qp[0], end.qp[1]);
	for (uint64_t i = 0; i < 20; i++) {
		rr = (struct recv_req){ .wr_id = i, .num_sge = 1,
					.sge = { side_sge(a, 30000, 30000) } };
		expect_eq(side_post_recv(a, 1, &rr, 1).ret, 0);
		r = send_req(a, IBV_WR_SEND, i, 0, (uint32_t)i * 1500);
		expect_eq(side_post_send(a, 0, &r, 1).ret, 0);
		side_wait_ok(a, RECV_CQ, i);
		side_wait_ok(a, SEND_CQ, i);
	}
	side_close(a);
	return 0;
}

/* The same with the parent's device closed before, between and after it. */
static int converse_and_close(struct ibv_context *inherited[3])
{
	static struct end end;
	struct side own = { .end = &end };
	int ret;

	expect_eq(ibv_close_device(inherited[0]), 0);
	ret = converse();
	side_open(&own, NULL);
	expect_eq(ibv_close_device(inherited[1]), 0);
	side_close(&own);
	expect_eq(ibv_close_device(inherited[2]), 0);
	return ret ? ret : converse();
}

static void a_child_that_closes_its_parents_device_keeps_its_own(struct pair *p)
{
	struct ibv_context *more[3];
	pid_t pid;

	child_starts_threads();
	pair_start(p, NULL);
	for (int i = 0; i < 3; i++) {
		more[i] = ibv_open_device(p->a.end->ctx->device);
		expect(more[i]);
	}
	pid = fork();
	if (pid == 0)
		_exit(converse_and_close(more));
	expect_exit_0(pid);
	exchange(p, 5);
	for (int i = 0; i < 3; i++)
		expect_eq(ibv_close_device(more[i]), 0);
}

static void a_child_may_open_a_device_of_its_own(struct pair *p)
{
	child_starts_threads();
	pair_start(p, NULL);
	exchange(p, 3);
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(converse());
		exchange(p, 10);
		expect_exit_0(pid);
		exchange(p, 3);
	}
}

static void a_grandchild_may_as_well(struct pair *p)
{
	pid_t pid;

	child_starts_threads();
	pair_start(p, NULL);
	pid = fork();
	if (pid == 0) {
		static struct end end;
		struct side s = { .end = &end };
		pid_t grand;

		side_open(&s, NULL);
		grand = fork();
		if (grand == 0)
			_exit(converse());
		expect_exit_0(grand);
		side_close(&s);
		_exit(0);
	}
	exchange(p, 10);
	expect_exit_0(pid);
}

static atomic_bool stop_traffic;

static void *traffic(void *arg)
{
	struct pair *p = arg;

	while (!stop_traffic)
		exchange(p, 1);
	return NULL;
}

/* The address table is behind a lock of the whole process. */
static void *ask_for_addresses(void *arg)
{
	struct pair *p = arg;
	union ibv_gid gid;

	while (!stop_traffic)
		if (ibv_query_gid(p->a.end->ctx, 1, 0, &gid))
			fail("no address");
	return NULL;
}

static void forks_in_the_middle_of_traffic_lock_nothing_up(struct pair *p)
{
	pthread_t thread, asker;

	child_starts_threads();
	pair_start(p, NULL);
	expect_eq(pthread_create(&thread, NULL, traffic, p), 0);
	expect_eq(pthread_create(&asker, NULL, ask_for_addresses, p), 0);
	for (int i = 0; i < 30; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(converse());
		expect_exit_0(pid);
	}
	stop_traffic = true;
	pthread_join(thread, NULL);
	pthread_join(asker, NULL);
}

/* The peer must see the end of the parent, although a child lives on. */
static void the_parents_death_is_seen_although_a_child_lives(struct pair *p)
{
	int pipe_fd[2];
	pid_t pid;

	/* Here b's process is the parent: it forks when told to. */
	pair_end_soon(p, 14, 1);
	expect_eq(pipe(pipe_fd), 0);
	pair_start(p, NULL);
	exchange(p, 3);
	pid = fork(); /* a's process: its child keeps copies of a's descriptors */
	if (pid == 0) {
		char byte;

		close(pipe_fd[1]);
		if (read(pipe_fd[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	close(pipe_fd[0]);
	/* a closes its device; b's sends must fail in time. */
	side_close(&p->a);
	if (transport_under_test()->streams)
		side_wait_state(&p->b, 0, IBV_QPS_ERR);
	side_send(&p->b, 1, 0, 100);
	expect_status(side_wait(&p->b, SEND_CQ), transport_under_test()->streams ?
							 IBV_WC_WR_FLUSH_ERR :
							 IBV_WC_RETRY_EXC_ERR);
	close(pipe_fd[1]);
	expect_exit_0(pid);
}

static const struct test_case cases[] = {
	RULE("ibv_fork_init(3)",
	     a_child_that_ends_leaves_the_parents_traffic_alone),
	CASE(a_child_may_open_a_device_of_its_own),
	CASE(a_child_that_closes_its_parents_device_keeps_its_own),
	CASE(a_grandchild_may_as_well),
	RULE("ibv_fork_init(3)",
	     forks_in_the_middle_of_traffic_lock_nothing_up),
	CASE_IN(ONLY_TWO_PROCESSES,
		the_parents_death_is_seen_although_a_child_lives),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
