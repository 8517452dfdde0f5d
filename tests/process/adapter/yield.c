/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that polls without result yields the processor, but not for long while the
 * program holds a spin lock of its own around the poll: its other threads spend their
 * time slices waiting for that lock. On two processors, and for the good case on one.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

enum {
	THREADS = 4,
	WINDOW = 16, /* receives posted; each thread has one message under way */
	BYTES = 64,
	POLLS = 1024, /* in vain, to a yield */
	YIELDS = 100,
};

/* The library calls this one. In the thread of a case each yield takes so long, and is
 * counted. */
#define KERNEL_DECIDES (-1)
static _Thread_local bool counted;
static int64_t yield_takes_ns;
static unsigned yields;
static uint64_t given_ns, longest_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int sched_yield(void)
{
	struct timespec t = { 0 };
	uint64_t start = now_ns(), took;

	/* The adapter's own thread does not look at what the tests set. */
	if (!counted)
		return (int)syscall(SYS_sched_yield);
	t.tv_nsec = yield_takes_ns;
	yields++;
	if (t.tv_nsec == KERNEL_DECIDES)
		syscall(SYS_sched_yield);
	else if (t.tv_nsec > 0)
		nanosleep(&t, NULL);
	took = now_ns() - start;
	given_ns += took;
	if (took > longest_ns)
		longest_ns = took;
	return 0;
}

static void poll_in_vain(struct end *e, int count)
{
	struct ibv_wc wc;

	for (int i = 0; i < count; i++)
		expect_eq(ibv_poll_cq(e->cq[RECV_CQ], 1, &wc), 0);
}

static atomic_bool stop_running;

static void *run(void *arg)
{
	while (!stop_running)
		;
	return arg;
}

/* For yields that take a turn of the scheduler, or nothing. */
static void prepare(struct pair *p, int64_t takes_ns)
{
	side_open(&p->a, NULL);
	poll_in_vain(p->a.end, 10 * POLLS);
	counted = true;
	yield_takes_ns = takes_ns;
	yields = 0;
	given_ns = longest_ns = 0;
}

static void yields_while_other_threads_run_take_little_of_the_time(struct pair *p)
{
	uint64_t start, elapsed;
	pthread_t thread;

	prepare(p, 2000000);
	expect_eq(pthread_create(&thread, NULL, run, NULL), 0);
	start = now_ns();
	do {
		poll_in_vain(p->a.end, POLLS);
		elapsed = now_ns() - start;
		/* Longer where others delay the yields: of all of the time they take little. */
	} while (elapsed < 200000000 || elapsed < 20 * longest_ns ||
		 (given_ns > elapsed / 4 && elapsed < 3000000000));
	stop_running = true;
	pthread_join(thread, NULL);
	expect(yields > 0);
	if (given_ns > elapsed / 4)
		fail("%llu us of %llu were given away in %u yields",
		     (unsigned long long)given_ns / 1000,
		     (unsigned long long)elapsed / 1000, yields);
}

static void a_process_of_one_thread_yields_however_long_others_run(struct pair *p)
{
	prepare(p, 1000000);
	poll_in_vain(p->a.end, YIELDS * POLLS);
	expect(yields >= YIELDS - 1);
}

static void yields_that_take_no_time_go_on_while_other_threads_run(struct pair *p)
{
	pthread_t thread;

	prepare(p, 0);
	expect_eq(pthread_create(&thread, NULL, run, NULL), 0);
	poll_in_vain(p->a.end, YIELDS * POLLS);
	stop_running = true;
	pthread_join(thread, NULL);
	/* Some may have been long because this thread lost its processor. */
	expect(yields >= YIELDS / 2);
}

/* A completion: that of a receive which is flushed. */
static void find_one(struct end *e)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_wc wc;

	expect_eq(ibv_modify_qp(e->qp[0], &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	expect_eq(ibv_post_recv(e->qp[0], &wr, &bad), 0);
	expect_eq(ibv_modify_qp(e->qp[0], &error, IBV_QP_STATE), 0);
	expect_eq(ibv_poll_cq(e->cq[RECV_CQ], 1, &wc), 1);
}

/* There is no peer, and so none near. */
static void a_yield_that_took_long_is_dear_where_no_peer_is_near(struct pair *p)
{
	uint64_t start;

	prepare(p, 3000000);
	poll_in_vain(p->a.end, POLLS);
	expect_eq(yields, 1);
	/* The waiting begins anew. */
	find_one(p->a.end);
	start = now_ns();
	for (yields = given_ns = 0; !yields;)
		poll_in_vain(p->a.end, 1);
	expect(now_ns() - start - given_ns >= 3000000);
}

/* ---- two processes of several threads ---- */

/* The first `count` processors that this process may use. */
static void stay_on(int count)
{
	cpu_set_t may, set;

	CPU_ZERO(&set);
	expect_eq(sched_getaffinity(0, sizeof(may), &may), 0);
	for (int i = 0; i < CPU_SETSIZE && count; i++) {
		if (!CPU_ISSET(i, &may))
			continue;
		CPU_SET(i, &set);
		count--;
	}
	expect_eq(sched_setaffinity(0, sizeof(set), &set), 0);
}

struct crew {
	struct end *e;
	pthread_spinlock_t lock; /* the program's own, around each call */
	/* One of those who wait polls for all, the others sleep. */
	pthread_mutex_t turn;
	pthread_cond_t come[THREADS];
	bool polled, asleep[THREADS];
	atomic_int got[THREADS];
	int rounds;
	atomic_int error;
};

struct worker {
	struct crew *crew;
	int nth;
	pthread_t thread;
};

static int post_receive(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, BYTES, e->mr[0]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(e->qp[0], &wr, &bad);
}

enum { NOBODY = -1 };

/* To one of the threads there, or to nobody in particular. */
static int post_message(struct end *e, int to)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer + BYTES, BYTES,
			       e->mr[0]->lkey };
	struct ibv_send_wr wr = { .opcode = to == NOBODY ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM,
				  .imm_data = (uint32_t)to,
				  .send_flags = IBV_SEND_SIGNALED,
				  .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_send(e->qp[0], &wr, &bad);
}

/* The lock is held. */
static void poll_once(struct crew *c)
{
	struct ibv_wc wc;

	for (int k = 0; k < 2; k++) {
		if (ibv_poll_cq(c->e->cq[k], 1, &wc) != 1)
			continue;
		if (wc.status) {
			c->error = (int)wc.status;
		} else if (wc.opcode == IBV_WC_RECV) {
			if (post_receive(c->e))
				c->error = -1;
			pthread_mutex_lock(&c->turn);
			c->got[wc.imm_data]++;
			pthread_cond_signal(&c->come[wc.imm_data]);
			pthread_mutex_unlock(&c->turn);
		}
	}
}

static void poll_until(struct crew *c, int nth, int count)
{
	while (c->got[nth] < count && !c->error) {
		pthread_spin_lock(&c->lock);
		poll_once(c);
		pthread_spin_unlock(&c->lock);
	}
}

/* As MPI libraries do it for several threads. */
static void wait_for(struct crew *c, int nth, int count)
{
	pthread_mutex_lock(&c->turn);
	while (c->got[nth] < count && !c->error) {
		if (c->polled) {
			c->asleep[nth] = true;
			pthread_cond_wait(&c->come[nth], &c->turn);
			c->asleep[nth] = false;
			continue;
		}
		c->polled = true;
		pthread_mutex_unlock(&c->turn);
		poll_until(c, nth, count);
		pthread_mutex_lock(&c->turn);
		c->polled = false;
	}
	for (int i = 0; i < THREADS && !c->polled; i++)
		if (c->asleep[i]) {
			pthread_cond_signal(&c->come[i]);
			break;
		}
	pthread_mutex_unlock(&c->turn);
}

/* A message to the thread of the same number there, and one from it, in turn. */
static void *work(void *arg)
{
	struct worker *w = arg;
	struct crew *c = w->crew;

	for (int i = 0; i < c->rounds && !c->error; i++) {
		pthread_spin_lock(&c->lock);
		if (post_message(c->e, w->nth))
			c->error = -2;
		pthread_spin_unlock(&c->lock);
		wait_for(c, w->nth, i + 1);
	}
	return NULL;
}

struct order {
	int rounds, processors;
	uint64_t ms; /* out */
};

static int run_crew(struct end *e, void *arg)
{
	struct order *o = arg;
	struct crew c = { .e = e, .rounds = o->rounds };
	struct worker w[THREADS];
	uint64_t start;

	stay_on(o->processors);
	pthread_spin_init(&c.lock, PTHREAD_PROCESS_PRIVATE);
	pthread_mutex_init(&c.turn, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_cond_init(&c.come[i], NULL);
	start = now_ms();
	for (int i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .crew = &c, .nth = i };
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	o->ms = now_ms() - start;
	pthread_spin_destroy(&c.lock);
	return c.error;
}

/* For a measurement: YIELD_ROUNDS=300, on a machine that does nothing else. */
static void threads_that_poll_under_a_spin_lock_get_on(struct pair *p)
{
	const struct side_options opt = { .send_wr = WINDOW, .recv_wr = WINDOW,
					  .cqe = 4 * WINDOW };
	const char *rounds = getenv("YIELD_ROUNDS");
	struct order o = { .rounds = rounds ? atoi(rounds) : 3,
			   .processors = 2 };

	if (!offers(IBV_WR_SEND_WITH_IMM))
		need_no_rnic("it has no immediate data");
	p->conn.timeout = 20;
	p->conn.retry_cnt = p->conn.rnr_retry = 7;
	pair_start(p, &opt);
	for (int i = 0; i < WINDOW; i++) {
		side_recv(&p->a, 0, 0, BYTES);
		side_recv(&p->b, 0, 0, BYTES);
	}
	side_start(&p->b, run_crew, &o, sizeof(o));
	expect_eq(side_run(&p->a, run_crew, &o, sizeof(o)), 0);
	expect_eq(side_join(&p->b, &o, sizeof(o)), 0);
	if (rounds)
		printf("%d rounds in %llu ms\n", o.rounds,
		       (unsigned long long)o.ms);
}

/* ---- two processes on one processor ---- */

struct rally {
	int rounds, serves;
	unsigned yields; /* out */
	uint64_t ms;     /* out */
	uint64_t longest_ms; /* out: of a yield */
};

static int play(struct end *e, void *arg)
{
	struct rally *r = arg;
	struct ibv_wc wc;
	uint64_t start;

	counted = true;
	yield_takes_ns = KERNEL_DECIDES;
	stay_on(1);
	yields = 0;
	longest_ns = 0;
	start = now_ms();
	for (int i = 0; i < r->rounds; i++) {
		if (r->serves && post_message(e, NOBODY))
			return -1;
		while (ibv_poll_cq(e->cq[RECV_CQ], 1, &wc) != 1)
			;
		if (wc.status || post_receive(e) ||
		    (!r->serves && post_message(e, NOBODY)))
			return -1;
		while (ibv_poll_cq(e->cq[SEND_CQ], 1, &wc) != 1)
			;
		if (wc.status)
			return -1;
	}
	r->yields = yields;
	r->ms = now_ms() - start;
	r->longest_ms = longest_ns / 1000000;
	return 0;
}

static void two_processes_on_one_processor_answer_by_yielding(struct pair *p)
{
	const char *rounds = getenv("YIELD_ROUNDS");
	struct rally r = { .rounds = rounds ? atoi(rounds) : 200 };

	pair_start(p, NULL);
	side_recv(&p->a, 0, 0, BYTES);
	side_recv(&p->b, 0, 0, BYTES);
	side_start(&p->b, play, &r, sizeof(r));
	r.serves = 1;
	expect_eq(side_run(&p->a, play, &r, sizeof(r)), 0);
	expect_eq(side_join(&p->b, &r, sizeof(r)), 0);
	if (rounds)
		printf("%d rounds in %llu ms\n", r.rounds,
		       (unsigned long long)r.ms);
	/* Where other programs made one yield last a turn of theirs, and a thread of this process
	 * ran as well, none follows for 16 times as long. */
	if (r.yields <= (unsigned)r.rounds / 4 && 2 * 16 * r.longest_ms < r.ms)
		fail("%u yields in %d rounds of %llu ms, the longest of %llu ms", r.yields,
		     r.rounds, (unsigned long long)r.ms,
		     (unsigned long long)r.longest_ms);
}

static const struct test_case cases[] = {
	CASE_IN(ONLY_ONE_PROCESS,
		yields_while_other_threads_run_take_little_of_the_time),
	CASE_IN(ONLY_ONE_PROCESS,
		a_process_of_one_thread_yields_however_long_others_run),
	CASE_IN(ONLY_ONE_PROCESS,
		yields_that_take_no_time_go_on_while_other_threads_run),
	CASE_IN(ONLY_ONE_PROCESS, a_yield_that_took_long_is_dear_where_no_peer_is_near),
	CASE_IN(ONLY_TWO_PROCESSES,
		two_processes_on_one_processor_answer_by_yielding),
	CASE_IN(ONLY_TWO_PROCESSES, threads_that_poll_under_a_spin_lock_get_on),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
