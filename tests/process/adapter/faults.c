/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults that begin and end while processes talk, as `busbar devices --faults` has them
 * (busbar-adapter(7), BUSBAR_FAULTS).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hca/view/inspect.h"
#include "pair.h"
#include "util/prng.h"
#include "verbs/private.h"

static uint32_t pid_of(const struct side *s)
{
	return (uint32_t)(s->pid > 0 ? s->pid : getpid());
}

static int ask(const struct side *s, const char *text)
{
	struct hca_faults_view v;

	return busbar_faults_ask(pid_of(s), text, &v);
}

static void set(const struct side *s, const char *text)
{
	expect_eq(ask(s, text), 0);
}

static void expect_set(const struct side *s, const char *text)
{
	struct hca_faults_view v;

	expect_eq(busbar_faults_ask(pid_of(s), NULL, &v), 0);
	if (strcmp(v.set, text) != 0)
		fail("set is '%s', expected '%s'", v.set, text);
}

/* In shared memory only where it was prepared for. */
static bool can_change(void)
{
	return strcmp(transport_under_test()->name, "shm") != 0;
}

/* 268 ms, 2 s in all: a partition ends when this thread gets a processor. */
enum { IN_TIME = 16 };

static void message(struct pair *p, uint64_t id)
{
	side_recv(&p->b, id, 0, 100);
	side_send(&p->a, id, 0, 100);
	side_wait_ok(&p->b, RECV_CQ, id);
	side_wait_ok(&p->a, SEND_CQ, id);
}

static void what_meets_a_partition_comes_when_it_ends(struct pair *p)
{
	static const char *const partitions[] = { "partition=1", "in.partition=1" };

	if (!can_change())
		exit(77);
	p->conn.timeout = IN_TIME;
	pair_start(p, NULL);
	message(p, 1);
	for (uint64_t i = 0; i < 2; i++) {
		set(i ? &p->b : &p->a, partitions[i]);
		side_recv(&p->b, 10 + i, 0, 100);
		side_send(&p->a, 10 + i, 0, 100);
		side_expect_none(&p->b, RECV_CQ);
		set(i ? &p->b : &p->a, "");
		side_wait_ok(&p->b, RECV_CQ, 10 + i);
		side_wait_ok(&p->a, SEND_CQ, 10 + i);
	}
	message(p, 2);
}

static void a_connection_that_is_made_later_meets_them(struct pair *p)
{
	if (!can_change())
		exit(77);
	p->conn.timeout = IN_TIME;
	pair_open(p, NULL);
	set(&p->a, "partition=1");
	expect_set(&p->a, "partition=1");
	pair_connect_qp(p, 0);
	side_recv(&p->b, 1, 0, 100);
	side_send(&p->a, 1, 0, 100);
	side_expect_none(&p->b, RECV_CQ);
	set(&p->a, "");
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 1);
}

static void messages_are_late_and_in_time_again(struct pair *p)
{
	enum { LATE_MS = 40 };
	uint64_t began, took = UINT64_MAX;

	if (!can_change())
		exit(77);
	pair_start(p, NULL);
	message(p, 1);
	set(&p->b, "in.delay=40ms");
	began = now_ms();
	message(p, 2);
	if (now_ms() - began < LATE_MS - 1)
		fail("only %llu ms", (unsigned long long)(now_ms() - began));
	set(&p->b, "");
	for (uint64_t i = 0; i < 50 && took >= LATE_MS / 2; i++) {
		began = now_ms();
		message(p, 3 + i);
		took = now_ms() - began;
	}
	expect(took < LATE_MS / 2);
}

/* ---- while threads are at work ---- */

enum { STREAM_MS = 500, DEPTH = 32, BYTES = 64 };
#define LAST UINT64_MAX

static struct ibv_sge place(struct end *e, unsigned i)
{
	return (struct ibv_sge){ (uint64_t)(uintptr_t)e->buffer + i * BYTES, BYTES,
				 e->mr[0]->lkey };
}

static int send_numbers(struct end *e, void *arg)
{
	uint64_t end = now_ms() + STREAM_MS, limit = end + WAIT_MS, next = 0, done = 0;
	bool last = false;
	struct ibv_wc wc;

	(void)arg;
	while (!last || done < next) {
		if (!last && next - done < DEPTH) {
			struct ibv_sge sge = place(e, next % DEPTH);
			struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
						  .opcode = IBV_WR_SEND,
						  .send_flags = IBV_SEND_SIGNALED }, *bad;

			last = now_ms() >= end;
			*(uint64_t *)(void *)(uintptr_t)sge.addr = last ? LAST : next;
			if (ibv_post_send(e->qp[0], &wr, &bad))
				return 1;
			next++;
		}
		while (ibv_poll_cq(e->cq[SEND_CQ], 1, &wc) > 0) {
			if (wc.status != IBV_WC_SUCCESS)
				return 100 + (int)wc.status;
			done++;
		}
		if (now_ms() > limit)
			return 2;
	}
	return 0;
}

static int receive_post(struct end *e, unsigned i)
{
	struct ibv_sge sge = place(e, DEPTH + i);
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(e->qp[0], &wr, &bad);
}

static int receive_numbers(struct end *e, void *arg)
{
	uint64_t limit = now_ms() + STREAM_MS + WAIT_MS, expected = 0, got = 0;
	struct ibv_wc wc;

	(void)arg;
	for (unsigned i = 0; i < 2 * DEPTH; i++)
		if (receive_post(e, i))
			return 1;
	while (got != LAST) {
		if (now_ms() > limit)
			return 2;
		if (ibv_poll_cq(e->cq[RECV_CQ], 1, &wc) < 1)
			continue;
		if (wc.status != IBV_WC_SUCCESS)
			return 100 + (int)wc.status;
		got = *(uint64_t *)(void *)(uintptr_t)place(e, DEPTH + (unsigned)wc.wr_id).addr;
		if (got != LAST && got != expected++)
			return 3;
		if (got != LAST && receive_post(e, (unsigned)wc.wr_id))
			return 1;
	}
	return 0;
}

static void they_begin_and_end_while_threads_post_and_poll(struct pair *p)
{
	static const struct side_options opt = { .send_wr = DEPTH, .recv_wr = 2 * DEPTH,
						 .cqe = 256 };
	/* The last two are for packets only. */
	static const char *const texts[] = {
		"loss=1%", "", "in.loss=1%,seed=3", "in.delay=10us,in.jitter=30us", "",
		"partition=0", "dup=1%,reorder=2%", "delay=20us,jitter=20us,rate=1Gbit",
	};
	bool packets = strncmp(transport_under_test()->name, "shm", 3) != 0;
	unsigned count = packets ? 8 : 6, changes = 0;
	struct prng random = prng_from(1);
	uint64_t end;
	int nothing = 0;

	need_rnr();
	if (!can_change())
		exit(77);
	p->conn.timeout = IN_TIME;
	pair_start(p, &opt);
	side_start(&p->b, receive_numbers, &nothing, sizeof(nothing));
	side_start(&p->a, send_numbers, &nothing, sizeof(nothing));
	end = now_ms() + STREAM_MS;
	while (now_ms() < end || changes < 2 * count) {
		/* All in turn; then at random, or each repetition might come with the same period
		 * as the partition, and so into it. */
		unsigned n = changes < 2 * count ? changes / 2 : (unsigned)prng_below(&random, count);

		set(changes % 2 ? &p->b : &p->a, texts[n]);
		changes++;
	}
	set(&p->a, "");
	set(&p->b, "");
	expect_eq(side_join(&p->a, &nothing, sizeof(nothing)), 0);
	expect_eq(side_join(&p->b, &nothing, sizeof(nothing)), 0);
}

/* ---- what is answered ---- */

static void what_cannot_be_read_changes_nothing(struct pair *p)
{
	char longer[1000];
	struct hca_faults_view v;

	if (!can_change())
		exit(77);
	pair_start(p, NULL);
	set(&p->a, "in.delay=1us");
	expect_eq(busbar_faults_ask(pid_of(&p->a), "loss=2", &v), -EINVAL);
	expect(strstr(v.notes, "loss: '2' is not usable"));
	memset(longer, ' ', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	expect_eq(ask(&p->a, longer), -EINVAL);
	expect_set(&p->a, "in.delay=1us");
	message(p, 1);
}

static void what_a_transport_does_not_offer_is_said(struct pair *p)
{
	const char *name = transport_under_test()->name, *text = "dup=1%";
	struct hca_faults_view v;

	pair_start(p, NULL);
	if (!strncmp(name, "loop", 4))
		text = "corrupt=1%";
	else if (strncmp(name, "shm", 3) != 0)
		exit(77);
	busbar_faults_ask(pid_of(&p->a), text, &v);
	expect(strstr(v.notes, "no faults"));
	message(p, 1);
	/* Nothing is said where there is nothing to say. */
	expect_eq(busbar_faults_ask(pid_of(&p->a), "", &v), 0);
	expect_eq(v.notes[0], 0);
}

static void another_user_is_not_obeyed(struct pair *p)
{
	int go[2], status;
	pid_t child;

	if (geteuid() != 0)
		exit(77);
	expect(!pipe2(go, O_CLOEXEC));
	child = fork();
	if (child == 0) {
		struct side parent = { .pid = getppid() };
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		expect(read(go[0], &byte, 1) == 1);
		expect(!setresuid(65534, 65534, 65534));
		expect_eq(ask(&parent, "partition=1"), -EPERM);
		_exit(0);
	}
	setenv("BUSBAR_PEERS", "any", 1); /* whatever other doors this opens */
	pair_start(p, NULL);
	expect(write(go[1], "", 1) == 1);
	expect_eq(waitpid(child, &status, 0), child);
	expect_eq(status, 0);
	message(p, 1);
	close(go[0]);
	close(go[1]);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(what_meets_a_partition_comes_when_it_ends),
		CASE(a_connection_that_is_made_later_meets_them),
		CASE(messages_are_late_and_in_time_again),
		CASE(they_begin_and_end_while_threads_post_and_poll),
		CASE(what_cannot_be_read_changes_nothing),
		CASE(what_a_transport_does_not_offer_is_said),
		CASE_IN(ONLY_ONE_PROCESS, another_user_is_not_obeyed),
	};

	return RUN_CASES(argc, argv, cases);
}
