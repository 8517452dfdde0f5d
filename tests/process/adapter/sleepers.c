/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that sleep in ibv_get_cq_event() move the messages that wake them
 * (src/hca/share/arrival.h). Whatever becomes of such a thread, and whatever else the program
 * does, no message and no event may be left over.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "join.h"
#include "pair.h"

enum { MESSAGES = 400, ATTEMPTS = 20, LOOPS = 24, ROUNDS = 40, OPERATIONS = 400, WORD = 8,
       ATOMIC_AT = 4096 };
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
static const struct side_options ev = { .events = true, .send_wr = 256, .recv_wr = 256,
					.cqe = 1024, .mr_access = ACCESS };

/* What both processes see. */
static struct {
	atomic_bool ready, over;
} *shared;

static void share(void)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	expect(shared != MAP_FAILED);
}

static void nap_us(long us)
{
	const struct timespec t = { 0, us * 1000 };

	nanosleep(&t, NULL);
}

static void start(struct pair *p)
{
	p->conn.access_a = p->conn.access_b = ACCESS;
	pair_start(p, &ev);
}

/* Condition, or fails. */
#define wait_until(cond)                                       \
	do {                                                   \
		uint64_t limit_ = now_ms() + WAIT_MS;          \
		while (!(cond)) {                              \
			if (now_ms() > limit_)                 \
				fail("no end: %s", #cond);     \
			nap_us(100);                           \
		}                                              \
	} while (0)

/* ---- who is woken ---- */

/* How often the progress thread of this process has gone to sleep. */
static long progress_sleeps(void)
{
	char path[60], line[200];
	long sleeps = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status",
		 (int)thread_named(getpid(), "busbar-progress"));
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
	if (f)
		fclose(f);
	return sleeps;
}

struct talk {
	int messages;
	bool begins;
	long progress_sleeps; /* meanwhile */
};

static int next_event(struct end *e)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(e->channel, &cq, &context) || cq != e->cq[RECV_CQ])
		return -1;
	ibv_ack_cq_events(cq, 1);
	return ibv_req_notify_cq(cq, 0);
}

static int post_recv(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 64, e->mr[0]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(e->qp[0], &wr, &bad);
}

static int post_send(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer + 64, 64, e->mr[0]->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
				  .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(e->cq[SEND_CQ], 1, &wc)) > 0)
		if (wc.status != IBV_WC_SUCCESS)
			return -1;
	return n ? n : ibv_post_send(e->qp[0], &wr, &bad);
}

/* Messages to and fro; a receive is posted for each. */
static int converse(struct end *e, void *arg)
{
	struct talk *t = arg;
	long before = progress_sleeps();
	struct ibv_wc wc;
	int ret = 0;

	if (t->begins)
		ret = post_send(e);
	for (int got = 0; !ret && got < t->messages;) {
		int n = ibv_poll_cq(e->cq[RECV_CQ], 1, &wc);

		if (n == 0) {
			ret = next_event(e);
			continue;
		}
		if (n < 0 || wc.status != IBV_WC_SUCCESS)
			return -2;
		got++;
		ret = post_recv(e);
		if (!ret && !(t->begins && got == t->messages))
			ret = post_send(e);
	}
	t->progress_sleeps = progress_sleeps() - before;
	return ret;
}

static void prepare_to_converse(struct pair *p)
{
	start(p);
	for (uint64_t i = 0; i < 8; i++) {
		side_recv(&p->a, i, 0, 64);
		side_recv(&p->b, i, 0, 64);
	}
	expect_eq(side_arm(&p->a, RECV_CQ, false), 0);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
}

static void let_converse(struct pair *p, struct talk *a, struct talk *b)
{
	side_start(&p->b, converse, b, sizeof(*b));
	expect_eq(side_run(&p->a, converse, a, sizeof(*a)), 0);
	expect_eq(side_join(&p->b, b, sizeof(*b)), 0);
}

/* The progress thread slept through most of the messages, which on a loaded machine is so in some
 * of the attempts only. */
static void a_message_wakes_the_thread_that_sleeps_and_no_other(struct pair *p)
{
	long fewest = MESSAGES;

	need_no_rnic("the progress thread alone sleeps for its many sockets");
	prepare_to_converse(p);
	for (int i = 0; i < ATTEMPTS && fewest > MESSAGES / 2; i++) {
		struct talk a = { MESSAGES, true, 0 }, b = { MESSAGES, false, 0 };

		let_converse(p, &a, &b);
		expect(a.progress_sleeps >= 0);
		if (a.progress_sleeps < fewest)
			fewest = a.progress_sleeps;
	}
	printf("    %ld wake-ups of the progress thread for %d messages\n", fewest, MESSAGES);
#ifndef __SANITIZE_THREAD__ /* with which a message takes longer than the glances' pauses */
	expect(fewest <= MESSAGES / 2);
#endif
}

/* ---- other work of the process ---- */

static void *sleep_for_event(void *arg)
{
	struct end *e = arg;
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(e->channel, &cq, &context))
		return NULL;
	ibv_ack_cq_events(cq, 1);
	return cq;
}

static int raise_own_event(struct end *e)
{
	struct ibv_wc wc;
	int n;

	if (post_send(e))
		return -1;
	do
		n = ibv_poll_cq(e->cq[SEND_CQ], 1, &wc);
	while (n == 0);
	return n == 1 && wc.status == IBV_WC_SUCCESS ? 0 : -1;
}

/* A thread sleeps for the queue of sends, for which nothing comes. */
static int sleep_beside_operations(struct end *e, void *arg)
{
	pthread_t thread;
	void *got;

	(void)arg;
	if (ibv_req_notify_cq(e->cq[SEND_CQ], 0) ||
	    pthread_create(&thread, NULL, sleep_for_event, e))
		return -1;
	atomic_store(&shared->ready, true);
	while (!atomic_load(&shared->over))
		nap_us(200);
	if (raise_own_event(e) || pthread_join(thread, &got))
		return -2;
	return got == e->cq[SEND_CQ] ? 0 : -3;
}

/* The target has to carry them out, or to acknowledge them. The initiator sleeps meanwhile, as
 * its polls would wake the target once more. */
static void fetch_and_add(struct pair *p, uint64_t wr_id)
{
	struct send_req r = rdma_req(&p->a, &p->b, IBV_WR_ATOMIC_FETCH_AND_ADD, wr_id, 0,
				     ATOMIC_AT, WORD);

	r.compare_add = 1;
	expect_eq(side_arm(&p->a, SEND_CQ, false), 0);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	/* One of the other queue may be left. */
	if (side_event(&p->a, WAIT_MS) != SEND_CQ) {
		expect_eq(side_arm(&p->a, RECV_CQ, false), 0);
		expect_eq(side_event(&p->a, WAIT_MS), SEND_CQ);
	}
	side_wait_ok(&p->a, SEND_CQ, wr_id);
}

static void operate_beside(struct pair *p, side_fn *fn)
{
	atomic_store(&shared->ready, false);
	atomic_store(&shared->over, false);
	start(p);
	side_recv(&p->a, 1, 0, 64);
	side_set(&p->b, ATOMIC_AT, WORD, 0);
	side_start(&p->b, fn, NULL, 0);
	wait_until(atomic_load(&shared->ready));
	for (uint64_t i = 0; i < OPERATIONS; i++)
		fetch_and_add(p, i);
	atomic_store(&shared->over, true);
	expect_eq(side_join(&p->b, NULL, 0), 0);
	side_wait_ok(&p->a, RECV_CQ, 1);
}

static void a_thread_that_sleeps_serves_queues_that_are_not_armed(struct pair *p)
{
	operate_beside(p, sleep_beside_operations);
}

static int cancel_sleepers(struct end *e, void *arg)
{
	unsigned seed = 1;
	void *got;

	(void)arg;
	while (!atomic_load(&shared->over)) {
		pthread_t thread; /* of which each is woken by messages, or is not */

		if (pthread_create(&thread, NULL, sleep_for_event, e))
			return -1;
		atomic_store(&shared->ready, true);
		nap_us(rand_r(&seed) % 200);
		if (pthread_cancel(thread) || pthread_join(thread, &got) ||
		    got != PTHREAD_CANCELED)
			return -2;
	}
	return raise_own_event(e);
}

static void a_thread_that_is_cancelled_leaves_no_message_over(struct pair *p)
{
	operate_beside(p, cancel_sleepers);
}

/* Events in quick succession, and then no call of the adapter any more. */
static int converse_and_compute(struct end *e, void *arg)
{
	const volatile uint64_t *word = (const uint64_t *)(void *)(e->buffer + ATOMIC_AT);
	uint64_t limit = now_ms() + WAIT_MS, before = *word;
	int ret = converse(e, arg);

	while (!ret && *word == before && now_ms() < limit)
		;
	return ret ? ret : *word == before ? -3 : 0;
}

static void a_program_that_ceases_to_sleep_is_served(struct pair *p)
{
	prepare_to_converse(p);
	side_set(&p->b, ATOMIC_AT, WORD, 0);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct talk a = { MESSAGES / 10, true, 0 }, b = { MESSAGES / 10, false, 0 };

		side_start(&p->b, converse_and_compute, &b, sizeof(b));
		expect_eq(side_run(&p->a, converse, &a, sizeof(a)), 0);
		/* Those of the messages. */
		while (side_poll(&p->a, SEND_CQ, MAX_WCS, 1).count > 0)
			;
		fetch_and_add(p, i);
		expect_eq(side_join(&p->b, &b, sizeof(b)), 0);
	}
}

/* ---- several threads ---- */

/* A queue pair that is connected to itself, or over a stream to a second one, their channel, and a
 * thread that sleeps there. */
struct loop {
	struct end *e;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp, *sender;
	pthread_t thread;
	atomic_int received;
	atomic_bool failed;
};

static struct ibv_qp *make_qp(struct loop *l)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = l->cq, .recv_cq = l->cq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(l->e->pd, &init);

	expect(qp);
	return qp;
}

static int post_loop_recv(struct loop *l)
{
	struct ibv_sge sge = { (uintptr_t)l->e->buffer, 64, l->e->mr[0]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(l->qp, &wr, &bad);
}

/* Unsignaled but for every eighth. */
static void send_to(struct loop *l, int i)
{
	struct ibv_sge sge = { (uintptr_t)l->e->buffer + 64, 64, l->e->mr[0]->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .send_flags = i % 8 ? 0 : IBV_SEND_SIGNALED,
				  .sg_list = &sge, .num_sge = 1 }, *bad;

	expect_eq(ibv_post_send(l->sender, &wr, &bad), 0);
}

/* Until the error of the flushed receives. */
static int take_all(struct loop *l, bool *over)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(l->cq, 1, &wc)) > 0) {
		if (wc.status == IBV_WC_WR_FLUSH_ERR)
			*over = true;
		else if (wc.status != IBV_WC_SUCCESS)
			return -1;
		else if (wc.opcode & IBV_WC_RECV) {
			if (post_loop_recv(l))
				return -1;
			atomic_fetch_add(&l->received, 1);
		}
	}
	return n;
}

static void *receive_asleep(void *arg)
{
	struct loop *l = arg;
	bool over = false;

	while (!over) {
		struct ibv_cq *cq;
		void *context;

		if (ibv_get_cq_event(l->channel, &cq, &context) || cq != l->cq ||
		    context != l)
			break;
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0) || take_all(l, &over))
			break;
	}
	atomic_store(&l->failed, !over);
	return NULL;
}

static void loop_open(struct loop *l, struct end *e, void *(*fn)(void *))
{
	*l = (struct loop){ .e = e, .channel = ibv_create_comp_channel(e->ctx) };
	expect(l->channel);
	l->cq = ibv_create_cq(e->ctx, 64, l, l->channel, 0);
	expect(l->cq);
	l->qp = make_qp(l);
	l->sender = transport_under_test()->streams ? make_qp(l) : l->qp;
	join(l->sender, l->qp);
	for (int i = 0; i < 8; i++)
		expect_eq(post_loop_recv(l), 0);
	expect_eq(ibv_req_notify_cq(l->cq, 0), 0);
	expect_eq(pthread_create(&l->thread, NULL, fn, l), 0);
}

static void loop_destroy(struct loop *l)
{
	expect_eq(ibv_destroy_qp(l->qp), 0);
	if (l->sender != l->qp)
		expect_eq(ibv_destroy_qp(l->sender), 0);
	expect_eq(ibv_destroy_cq(l->cq), 0);
	expect_eq(ibv_destroy_comp_channel(l->channel), 0);
}

static void loop_close(struct loop *l)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	expect_eq(ibv_modify_qp(l->qp, &a, IBV_QP_STATE), 0);
	expect_eq(pthread_join(l->thread, NULL), 0);
	expect(!atomic_load(&l->failed));
	loop_destroy(l);
}

/* More than there are places for; each has its own events, in any order, one at a time or many. */
static void each_of_many_threads_gets_its_events(struct pair *p)
{
	static struct loop loops[LOOPS];
	unsigned seed = 1;

	side_open(&p->a, &ev);
	for (int round = 0; round < 3; round++) {
		int sent[LOOPS] = { 0 };

		for (int i = 0; i < LOOPS; i++)
			loop_open(&loops[i], p->a.end, receive_asleep);
		for (int i = 0; i < MESSAGES; i++) {
			int to = rand_r(&seed) % LOOPS, many = rand_r(&seed) % 4 + 1;

			for (int k = 0; k < many; k++)
				send_to(&loops[to], sent[to]++);
			if (rand_r(&seed) % 2)
				wait_until(atomic_load(&loops[to].received) == sent[to]);
			else
				wait_until(atomic_load(&loops[to].received) > sent[to] - 4);
		}
		for (int i = 0; i < LOOPS; i++)
			wait_until(atomic_load(&loops[i].received) == sent[i]);
		for (int i = 0; i < LOOPS; i++)
			loop_close(&loops[i]);
	}
}

static atomic_bool stop;
static atomic_int ended;

static void *receive_by_polls(void *arg)
{
	struct loop *l = arg;
	bool over = false;

	while (!over && !take_all(l, &over))
		;
	atomic_store(&l->failed, !over);
	return NULL;
}

static void a_thread_that_polls_beside_one_that_sleeps_takes_nothing_away(struct pair *p)
{
	static struct loop asleep, polling;

	side_open(&p->a, &ev);
	loop_open(&asleep, p->a.end, receive_asleep);
	loop_open(&polling, p->a.end, receive_by_polls);
	for (int i = 0; i < MESSAGES; i++) {
		send_to(&asleep, i);
		wait_until(atomic_load(&asleep.received) == i + 1);
		send_to(&polling, i);
		wait_until(atomic_load(&polling.received) == i + 1);
	}
	loop_close(&asleep);
	loop_close(&polling);
}

/* Four threads in one channel; each event is one thread's. */
static void *receive_shared(void *arg)
{
	struct loop *l = arg;

	while (!atomic_load(&stop)) {
		struct ibv_cq *cq;
		bool over = false;
		void *context;

		if (ibv_get_cq_event(l->channel, &cq, &context) || cq != l->cq) {
			atomic_store(&l->failed, true);
			break;
		}
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0) || take_all(l, &over))
			atomic_store(&l->failed, true);
	}
	atomic_fetch_add(&ended, 1);
	return NULL;
}

static void threads_that_sleep_in_one_channel_share_its_events(struct pair *p)
{
	static struct loop l;
	pthread_t more[3];

	atomic_store(&stop, false);
	atomic_store(&ended, 0);
	side_open(&p->a, &ev);
	loop_open(&l, p->a.end, receive_shared);
	for (int i = 0; i < 3; i++)
		expect_eq(pthread_create(&more[i], NULL, receive_shared, &l), 0);
	for (int i = 0; i < MESSAGES; i++) {
		send_to(&l, i);
		wait_until(atomic_load(&l.received) == i + 1);
	}
	/* Each takes one more event and ends. */
	atomic_store(&stop, true);
	while (atomic_load(&ended) < 4) {
		int before = atomic_load(&ended);

		send_to(&l, 1);
		wait_until(atomic_load(&ended) > before);
	}
	for (int i = 0; i < 3; i++)
		expect_eq(pthread_join(more[i], NULL), 0);
	expect_eq(pthread_join(l.thread, NULL), 0);
	expect(!atomic_load(&l.failed));
	loop_destroy(&l);
}

/* ---- signals ---- */

static atomic_int handled;

static void on_signal(int sig)
{
	(void)sig;
	atomic_fetch_add(&handled, 1);
}

struct waiter {
	struct ibv_comp_channel *channel;
	pthread_t thread;
	int ret, error;
	atomic_bool returned;
};

static void *wait_there(void *arg)
{
	struct waiter *w = arg;
	struct ibv_cq *cq;
	void *context;

	w->ret = ibv_get_cq_event(w->channel, &cq, &context);
	w->error = errno;
	if (!w->ret)
		ibv_ack_cq_events(cq, 1);
	atomic_store(&w->returned, true);
	return NULL;
}

static void install(int sig, int flags)
{
	const struct sigaction a = { .sa_handler = on_signal, .sa_flags = flags };

	expect_eq(sigaction(sig, &a, NULL), 0);
}

static void begin_to_wait(struct waiter *w, struct end *e)
{
	*w = (struct waiter){ .channel = e->channel };
	expect_eq(pthread_create(&w->thread, NULL, wait_there, w), 0);
}

/* As read() does behind a handler with SA_RESTART. */
static void continues_behind(struct waiter *w, int sig)
{
	for (int i = 0; i < 20; i++) {
		int before = atomic_load(&handled);

		/* Again and again, as the thread sanitizer may keep one back. */
		wait_until(!pthread_kill(w->thread, sig) && atomic_load(&handled) > before);
		nap_us(500);
		expect(!atomic_load(&w->returned));
	}
}

static void ends_behind(struct waiter *w, int sig)
{
	uint64_t limit = now_ms() + WAIT_MS;

	while (!atomic_load(&w->returned)) {
		expect(now_ms() < limit);
		expect_eq(pthread_kill(w->thread, sig), 0);
		nap_us(500);
	}
	pthread_join(w->thread, NULL);
	expect_eq(w->ret, -1);
	expect_eq(w->error, EINTR);
}

static void ends_with_event(struct waiter *w, struct pair *p, uint64_t wr_id)
{
	side_recv(&p->b, wr_id, 0, 64);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	side_send(&p->a, wr_id, 0, 64);
	side_wait_ok(&p->a, SEND_CQ, wr_id);
	pthread_join(w->thread, NULL);
	expect_eq(w->ret, 0);
	side_wait_ok(&p->b, RECV_CQ, wr_id);
}

static void a_signal_does_what_it_does_to_read(struct pair *p)
{
	struct waiter w;

	start(p);
	/* Each of the first two alone, then both together. */
	install(SIGUSR1, SA_RESTART);
	begin_to_wait(&w, p->b.end);
	continues_behind(&w, SIGUSR1);
	ends_with_event(&w, p, 1);

	signal(SIGUSR1, SIG_DFL);
	install(SIGUSR2, 0);
	begin_to_wait(&w, p->b.end);
	ends_behind(&w, SIGUSR2);

	install(SIGUSR1, SA_RESTART);
	begin_to_wait(&w, p->b.end);
	ends_behind(&w, SIGUSR2);
	begin_to_wait(&w, p->b.end);
#ifndef __SANITIZE_THREAD__ /* which runs no handler during a read() that continues */
	continues_behind(&w, SIGUSR1);
#endif
	ends_with_event(&w, p, 2);
}

/* ---- other processes ---- */

/* A device and a thread of its own, of which messages wake the latter. */
static _Noreturn void sleep_in_child(void)
{
	static uint8_t buffer[128];
	static struct loop l;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct end e = { .buffer = buffer };

	alarm(60);
	expect(list && list[0]);
	e.ctx = ibv_open_device(list[0]);
	expect(e.ctx);
	e.pd = ibv_alloc_pd(e.ctx);
	expect(e.pd);
	e.mr[0] = ibv_reg_mr(e.pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	expect(e.mr[0]);
	loop_open(&l, &e, receive_asleep);
	for (int i = 0; i < MESSAGES; i++) {
		send_to(&l, i);
		wait_until(atomic_load(&l.received) == i + 1);
	}
	_exit(0);
}

static void parent_and_child_sleep_each_for_itself(struct pair *p)
{
#ifdef __SANITIZE_THREAD__
	printf("    not tried: this sanitizer allows no threads in such a child\n");
	(void)p;
	(void)sleep_in_child;
#else
	struct talk a = { MESSAGES, true, 0 }, b = { MESSAGES, false, 0 };
	pid_t child, gone = 0;
	int status;

	prepare_to_converse(p);
	let_converse(p, &a, &b);
	child = fork();
	expect(child >= 0);
	if (!child)
		sleep_in_child();
	while (!gone) {
		let_converse(p, &a, &b);
		gone = waitpid(child, &status, WNOHANG);
	}
	expect_eq(gone, child);
	expect_eq(status, 0);
	let_converse(p, &a, &b);
#endif
}

static void a_channel_that_is_made_non_blocking_does_not_sleep_any_more(struct pair *p)
{
	struct talk a = { MESSAGES, true, 0 }, b = { MESSAGES, false, 0 };
	struct ibv_cq *cq;
	void *context;
	int fd;

	prepare_to_converse(p);
	let_converse(p, &a, &b);
	while (side_event(&p->a, QUIET_MS) >= 0)
		;
	fd = p->a.end->channel->fd;
	expect_eq(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
	expect_eq(ibv_get_cq_event(p->a.end->channel, &cq, &context), -1);
	expect_eq(errno, EAGAIN);
}

static const struct test_case cases[] = {
	RULE_IN(ONLY_TWO_PROCESSES, "ibv_get_cq_event(3)",
		a_message_wakes_the_thread_that_sleeps_and_no_other),
	RULE_IN(ONLY_TWO_PROCESSES, "ibv_get_cq_event(3)",
		a_thread_that_sleeps_serves_queues_that_are_not_armed),
	RULE_IN(ONLY_TWO_PROCESSES, "pthread_cancel(3)",
		a_thread_that_is_cancelled_leaves_no_message_over),
	RULE_IN(ONLY_TWO_PROCESSES, "ibv_get_cq_event(3)",
		a_program_that_ceases_to_sleep_is_served),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_get_cq_event(3)", each_of_many_threads_gets_its_events),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_get_cq_event(3)",
		a_thread_that_polls_beside_one_that_sleeps_takes_nothing_away),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_get_cq_event(3)",
		threads_that_sleep_in_one_channel_share_its_events),
	RULE_IN(ONLY_ONE_PROCESS, "signal(7)", a_signal_does_what_it_does_to_read),
	RULE_IN(ONLY_TWO_PROCESSES, "fork(2)", parent_and_child_sleep_each_for_itself),
	RULE_IN(ONLY_TWO_PROCESSES, "ibv_get_cq_event(3)",
		a_channel_that_is_made_non_blocking_does_not_sleep_any_more),
};

int main(int argc, char **argv)
{
	/* Before there are processes. */
	share();
	return RUN_CASES(argc, argv, cases);
}
