/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion events: arming, waking, acknowledging (ibv_get_cq_event(3),
 * ibv_req_notify_cq(3); InfiniBand specification volume 1, 11.4.2.2).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

static const struct side_options ev = { .events = true, .send_wr = 256,
					.recv_wr = 256, .cqe = 1024 };

static void sleep_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* A message that has arrived for certain: the sender has its completion. */
static void deliver(struct pair *p, uint64_t wr_id, unsigned flags)
{
	struct send_req r = send_req(&p->a, IBV_WR_SEND, wr_id, 0, 10);

	r.flags |= flags;
	side_recv(&p->b, wr_id, 0, 100);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, wr_id);
}

static void an_armed_queue_gives_one_event_for_the_next_completion(struct pair *p)
{
	pair_start(p, &ev);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	expect_eq(side_event(&p->b, QUIET_MS), -1);
	deliver(p, 1, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	/* One-shot: not for the second, not for the other queue. */
	deliver(p, 2, 0);
	expect_eq(side_event(&p->b, QUIET_MS), -1);
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 2);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	deliver(p, 3, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	side_wait_ok(&p->b, RECV_CQ, 3);
}

static void a_queue_that_is_not_armed_gives_no_event(struct pair *p)
{
	pair_start(p, &ev);
	deliver(p, 1, IBV_SEND_SOLICITED);
	expect_eq(side_event(&p->b, QUIET_MS), -1);
	expect_eq(side_event(&p->a, 0), -1);
}

static void what_is_in_the_queue_already_gives_no_event(struct pair *p)
{
	need_arrival();
	pair_start(p, &ev);
	deliver(p, 1, 0);
	deliver(p, 2, 0);
	side_wait_ok(&p->b, RECV_CQ, 1); /* both have been moved by this */
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	expect_eq(side_event(&p->b, QUIET_MS), -1);
	deliver(p, 3, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	side_wait_ok(&p->b, RECV_CQ, 2);
	side_wait_ok(&p->b, RECV_CQ, 3);
}

static void arming_twice_gives_one_event(struct pair *p)
{
	pair_start(p, &ev);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	deliver(p, 1, 0);
	deliver(p, 2, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	expect_eq(side_event(&p->b, QUIET_MS), -1);
}

static void a_send_completion_wakes_the_sender(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ };

	need_rnr();
	pair_start(p, &ev);
	for (unsigned i = 0; i < 3; i++) {
		struct send_req r = rdma_req(&p->a, &p->b, ops[i], i, 0, 0, 100);

		expect_eq(side_arm(&p->a, SEND_CQ, false), 0);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		if (i == 0) {
			expect_eq(side_event(&p->a, QUIET_MS), -1);
			side_recv(&p->b, 9, 0, 100);
		}
		expect_eq(side_event(&p->a, WAIT_MS), SEND_CQ);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
}

static void send_ten_bytes(struct side *from, struct side *to, uint64_t wr_id)
{
	struct send_req r = send_req(from, IBV_WR_SEND, wr_id, 0, 10);

	side_recv(to, wr_id, 1000, 100);
	expect_eq(side_post_send(from, 0, &r, 1).ret, 0);
}

/* Where acknowledgements came along with answers so far, and none follows. */
static void a_message_without_answer_wakes_its_sender_too(struct pair *p)
{
	struct send_req last;

	need_arrival();
	pair_start(p, &ev);
	last = send_req(&p->a, IBV_WR_SEND, 9, 0, 10);
	for (int round = 0; round < 20; round++) {
		for (uint64_t i = 1; i <= 8; i++) {
			send_ten_bytes(&p->a, &p->b, i);
			side_wait_ok(&p->b, RECV_CQ, i);
			send_ten_bytes(&p->b, &p->a, i);
			side_wait_ok(&p->a, RECV_CQ, i);
			side_wait_ok(&p->a, SEND_CQ, i);
			side_wait_ok(&p->b, SEND_CQ, i);
		}
		/* It must not be there before the arming, or gives no event. */
		side_recv(&p->b, 9, 1000, 100);
		side_stop(&p->b);
		expect_eq(side_post_send(&p->a, 0, &last, 1).ret, 0);
		expect_eq(side_arm(&p->a, SEND_CQ, false), 0);
		side_signal(&p->b, SIGCONT);
		expect_eq(side_event(&p->a, WAIT_MS), SEND_CQ);
		side_wait_ok(&p->a, SEND_CQ, 9);
		side_wait_ok(&p->b, RECV_CQ, 9);
	}
}

static void solicited_only_waits_for_a_solicited_message(struct pair *p)
{
	struct send_req r;

	pair_start(p, &ev);
	expect_eq(side_arm(&p->b, RECV_CQ, true), 0);
	deliver(p, 1, 0);
	expect_eq(side_event(&p->b, QUIET_MS), -1);
	deliver(p, 2, IBV_SEND_SOLICITED);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 2);
	/* A WRITE with immediate may be solicited as well. */
	expect_eq(side_arm(&p->b, RECV_CQ, true), 0);
	side_recv(&p->b, 3, 0, 0);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 0, 0, 10);
	r.flags |= IBV_SEND_SOLICITED;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
}

static void solicited_only_does_not_weaken_an_earlier_request(struct pair *p)
{
	pair_start(p, &ev);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	expect_eq(side_arm(&p->b, RECV_CQ, true), 0);
	deliver(p, 1, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
}

static void an_error_completion_counts_as_solicited(struct pair *p)
{
	pair_start(p, &ev);
	expect_eq(side_arm(&p->b, RECV_CQ, true), 0);
	side_recv(&p->b, 1, 0, 10);
	expect_eq(side_to_state(&p->b, 0, IBV_QPS_ERR), 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
}

static void a_receiver_asleep_is_woken_by_every_kind_of_message(struct pair *p)
{
	static const uint32_t lengths[] = { 0, 10, 1000, 15000, 40000 };

	pair_start(p, &ev);
	for (unsigned i = 0; i < 5; i++) {
		expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
		sleep_ms(10); /* every thread of it sleeps by now */
		side_recv(&p->b, i, 0, 50000);
		side_send(&p->a, i, 0, lengths[i]);
		expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
		expect_eq(side_wait_ok(&p->b, RECV_CQ, i).byte_len, lengths[i]);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
}

static void a_non_blocking_channel_says_eagain(struct pair *p)
{
	struct end *e = p->b.end;
	struct ibv_cq *cq;
	void *context;
	struct pollfd fd;

	pair_start(p, &ev);
	fd = (struct pollfd){ .fd = e->channel->fd, .events = POLLIN };
	fcntl(e->channel->fd, F_SETFL, O_NONBLOCK);
	expect_eq(ibv_get_cq_event(e->channel, &cq, &context), -1);
	expect_eq(errno, EAGAIN);
	expect_eq(poll(&fd, 1, 0), 0);
	expect_eq(ibv_req_notify_cq(e->cq[RECV_CQ], 0), 0);
	expect_eq(poll(&fd, 1, 0), 0);
	deliver(p, 1, 0);
	expect_eq(poll(&fd, 1, WAIT_MS), 1);
	expect_eq(poll(&fd, 1, 0), 1); /* until it is read */
	expect_eq(ibv_get_cq_event(e->channel, &cq, &context), 0);
	expect(cq == e->cq[RECV_CQ]);
	expect(context == e);
	expect_eq(poll(&fd, 1, 0), 0);
	expect_eq(ibv_get_cq_event(e->channel, &cq, &context), -1);
	expect_eq(errno, EAGAIN);
	ibv_ack_cq_events(cq, 1);
}

static void several_queues_share_a_channel(struct pair *p)
{
	struct end *e = p->b.end;
	bool seen[2] = { false, false };

	pair_start(p, &ev);
	expect_eq(ibv_req_notify_cq(e->cq[RECV_CQ], 0), 0);
	expect_eq(ibv_req_notify_cq(e->cq[SEND_CQ], 0), 0);
	side_recv(&p->a, 1, 1000, 100);
	side_send(&p->b, 2, 0, 100);
	deliver(p, 3, 0);
	for (int i = 0; i < 2; i++) {
		int cq = side_event(&p->b, WAIT_MS);

		expect(cq >= 0);
		expect(!seen[cq]);
		seen[cq] = true;
	}
	expect_eq(side_event(&p->b, QUIET_MS), -1);
}

static void *ack_late(void *arg)
{
	sleep_ms(100);
	ibv_ack_cq_events(arg, 2);
	return NULL;
}

static void destroying_waits_until_events_are_acknowledged(struct pair *p)
{
	struct end *e = p->b.end;
	struct ibv_cq *cq;
	void *context;
	pthread_t thread;
	uint64_t start;

	pair_start(p, &ev);
	for (uint64_t i = 0; i < 2; i++) {
		expect_eq(ibv_req_notify_cq(e->cq[RECV_CQ], 0), 0);
		deliver(p, i, 0);
		expect_eq(ibv_get_cq_event(e->channel, &cq, &context), 0);
	}
	expect_eq(side_qp_destroy(&p->b, 0), 0);
	start = now_ms();
	expect_eq(pthread_create(&thread, NULL, ack_late, cq), 0);
	expect_eq(ibv_destroy_cq(cq), 0);
	expect(now_ms() - start >= 90);
	pthread_join(thread, NULL);
	e->cq[RECV_CQ] = e->cq[SEND_CQ];
}

static void an_unread_event_of_a_destroyed_queue_is_gone(struct pair *p)
{
	struct end *e = p->b.end;
	struct ibv_cq *cq = NULL;

	pair_start(p, &ev);
	cq = e->cq[RECV_CQ];
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	expect_eq(side_arm(&p->b, SEND_CQ, false), 0);
	deliver(p, 1, 0);
	expect_eq(side_qp_destroy(&p->b, 0), 0);
	expect_eq(ibv_destroy_cq(cq), 0);
	e->cq[RECV_CQ] = e->cq[SEND_CQ];
	expect_eq(side_event(&p->b, QUIET_MS), -1);
}

static volatile sig_atomic_t signals;
static atomic_bool interrupted;

static void on_signal(int sig)
{
	signals++;
}

/* Again and again: the first may come before the thread waits. */
static void *signal_late(void *arg)
{
	do {
		sleep_ms(50);
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
	} while (!atomic_load(&interrupted));
	return NULL;
}

static void a_signal_interrupts_waiting_and_loses_nothing(struct pair *p)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct end *e = p->b.end;
	pthread_t self = pthread_self(), thread;
	struct ibv_cq *cq;
	void *context;

	pair_start(p, &ev);
	sigaction(SIGUSR1, &action, NULL); /* without SA_RESTART */
	expect_eq(ibv_req_notify_cq(e->cq[RECV_CQ], 0), 0);
	expect_eq(pthread_create(&thread, NULL, signal_late, &self), 0);
	expect_eq(ibv_get_cq_event(e->channel, &cq, &context), -1);
	expect_eq(errno, EINTR);
	expect(signals >= 1);
	atomic_store(&interrupted, true);
	pthread_join(thread, NULL);
	deliver(p, 1, 0);
	expect_eq(ibv_get_cq_event(e->channel, &cq, &context), 0);
	expect(cq == e->cq[RECV_CQ]);
	ibv_ack_cq_events(cq, 1);
	side_wait_ok(&p->b, RECV_CQ, 1);
}

static void *cancelled(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	ibv_get_cq_event(arg, &cq, &context);
	return NULL;
}

static void a_waiting_thread_can_be_cancelled(struct pair *p)
{
	pthread_t thread;
	void *ret;

	pair_start(p, &ev);
	expect_eq(pthread_create(&thread, NULL, cancelled, p->b.end->channel), 0);
	sleep_ms(20);
	expect_eq(pthread_cancel(thread), 0);
	expect_eq(pthread_join(thread, &ret), 0);
	expect(ret == PTHREAD_CANCELED);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	deliver(p, 1, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
}

/* ---- who polls what ---- */

static void a_receiver_that_does_nothing_still_receives(struct pair *p)
{
	/* 50 ms in which nobody polls at the receiver. */
	pair_start(p, NULL);
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 10; i++)
			side_recv(&p->b, i, 0, 40000);
		/* Also right after it polled busily. */
		if (round)
			side_poll(&p->b, RECV_CQ, 1, 2);
		for (uint64_t i = 0; i < 10; i++)
			side_send(&p->a, i, 0, i % 2 ? 30000 : 30);
		for (uint64_t i = 0; i < 10; i++)
			side_wait_ok(&p->a, SEND_CQ, i);
		sleep_ms(50);
		for (uint64_t i = 0; i < 10; i++)
			side_wait_ok(&p->b, RECV_CQ, i);
	}
}

static void a_sender_that_does_nothing_gets_all_its_messages_out(struct pair *p)
{
	/* More than fit on the way, and nobody polls at the sender. */
	const struct side_options opt = { .send_wr = 1000, .recv_wr = 1000,
					  .cqe = 2000 };
	struct send_req r[8];

	pair_start(p, &opt);
	side_fill(&p->a, 0, 10000, 1);
	for (int i = 0; i < 8; i++)
		r[i] = send_req(&p->a, IBV_WR_SEND, 1, 0, 10000);
	for (uint64_t i = 0; i < 800; i++)
		side_recv(&p->b, i, 0, 10000);
	for (int i = 0; i < 100; i++)
		expect_eq(side_post_send(&p->a, 0, r, 8).ret, 0);
	for (uint64_t i = 0; i < 800; i++)
		side_wait_ok(&p->b, RECV_CQ, i);
	for (int i = 0; i < 800; i++)
		side_wait_ok(&p->a, SEND_CQ, 1);
}

static int wait_send_event(struct end *e, void *arg)
{
	struct pollfd fd = { .fd = e->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, WAIT_MS) != 1 ||
	    ibv_get_cq_event(e->channel, &cq, &context))
		return -1;
	ibv_ack_cq_events(cq, 1);
	return cq == e->cq[SEND_CQ] ? 0 : -2;
}

struct stop {
	atomic_bool now;
};

static struct stop stop;

static void *poll_receives(void *arg)
{
	struct end *e = arg;
	struct ibv_wc wc;

	while (!stop.now)
		if (ibv_poll_cq(e->cq[RECV_CQ], 1, &wc))
			return (void *)1;
	return NULL;
}

static void busy_polling_for_receives_does_not_starve_a_sleeping_sender(struct pair *p)
{
	need_rnr();
	/* The mixed mode: one thread polls the receive queue, another one
	 * sleeps until its sends are complete. */
	pthread_t thread;
	void *ret;

	pair_start(p, &ev);
	for (uint64_t i = 0; i < 20; i++) {
		expect_eq(side_arm(&p->a, SEND_CQ, false), 0);
		stop.now = false;
		expect_eq(pthread_create(&thread, NULL, poll_receives, p->a.end),
			  0);
		sleep_ms(2);
		side_send(&p->a, i, 0, 100);
		side_recv(&p->b, i, 0, 100);
		expect_eq(wait_send_event(p->a.end, NULL), 0);
		stop.now = true;
		pthread_join(thread, &ret);
		expect(ret == NULL);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
}

/* ---- the race-free sequence ---- */

/* The thread sanitizer is for the locks on the way, which a part of them takes all. */
#ifdef __SANITIZE_THREAD__
enum { MESSAGES = 20000 };
#else
enum { MESSAGES = 100000 };
#endif
enum { WINDOW = 200 };

struct soak {
	uint32_t seed;
	int messages;
};

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static int post_one_recv(struct end *e, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 256, e->mr[0]->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return ibv_post_recv(e->qp[0], &wr, &bad);
}

/* Poll, arm, poll, sleep, acknowledge, poll: nothing may be lost. */
static int receive_by_events(struct end *e, void *arg)
{
	struct soak *soak = arg;
	struct ibv_cq *cq = e->cq[RECV_CQ];
	struct ibv_wc wc[8];
	int got = 0, sleeps = 0;

	while (got < soak->messages) {
		struct pollfd fd = { .fd = e->channel->fd, .events = POLLIN };
		struct ibv_cq *which;
		void *context;
		int n = ibv_poll_cq(cq, 8, wc);

		if (n == 0) {
			if (ibv_req_notify_cq(cq, 0))
				return -1;
			n = ibv_poll_cq(cq, 8, wc);
		}
		if (n == 0) {
			if (poll(&fd, 1, WAIT_MS) != 1)
				return -100 - got; /* an event was lost */
			if (ibv_get_cq_event(e->channel, &which, &context))
				return -2;
			ibv_ack_cq_events(which, 1);
			sleeps++;
			continue;
		}
		for (int i = 0; i < n; i++, got++) {
			if (wc[i].status || wc[i].wr_id != (uint64_t)got)
				return -3;
			if (soak->messages > 1 &&
			    post_one_recv(e, (uint64_t)got + WINDOW))
				return -4;
		}
	}
	soak->messages = sleeps;
	return 0;
}

static int send_in_bursts(struct end *e, struct soak *soak)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 0, e->mr[0]->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t end = now_ms() + 50000;
	int sent = 0, done = 0;
	struct ibv_wc wc[16];

	while (done < soak->messages) {
		uint32_t burst = next_random(&soak->seed) % 64;
		uint32_t pause = next_random(&soak->seed) % 3000;

		for (; burst && sent < soak->messages && sent - done < 100;
		     burst--, sent++) {
			sge.length = next_random(&soak->seed) % 256;
			if (ibv_post_send(e->qp[0], &wr, &bad))
				return -1;
		}
		do {
			int n = ibv_poll_cq(e->cq[SEND_CQ], 16, wc);

			for (int i = 0; i < n; i++)
				if (wc[i].status)
					return -10 - (int)wc[i].status;
			done += n > 0 ? n : 0;
		} while (pause-- > 0);
		if (now_ms() > end)
			return -2;
	}
	return 0;
}

static void the_three_poll_sequence_loses_nothing(struct pair *p)
{
	/* A receiver sleeps oftener for a quarter of them over packets than for all over memory. */
	struct soak out = { .seed = (uint32_t)now_ms() | 1,
			    .messages = transport_under_test()->waits ? MESSAGES / 4 : MESSAGES };
	struct soak in = out;
	int ret;

	need_rnr();
	if (getenv("ADAPTER_SEED"))
		out.seed = (uint32_t)atol(getenv("ADAPTER_SEED"));
	printf("    seed %u (ADAPTER_SEED)\n", out.seed);
	pair_start(p, &ev);
	for (uint64_t i = 0; i < WINDOW; i++)
		side_recv(&p->b, i, 0, 256);
	side_start(&p->b, receive_by_events, &in, sizeof(in));
	ret = send_in_bursts(p->a.end, &out);
	expect_eq(ret, 0);
	expect_eq(side_join(&p->b, &in, sizeof(in)), 0);
	expect(in.messages > 0); /* it did sleep */
}

/* Registers and deregisters, which takes the locks of every link for a moment. */
static void *churn(void *arg)
{
	struct end *e = arg;

	while (!stop.now) {
		struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buffer, 4096, 0);

		if (!mr || ibv_dereg_mr(mr))
			return (void *)1;
	}
	return NULL;
}

static pthread_t churner;

static int start_churn(struct end *e, void *arg)
{
	stop.now = false;
	return pthread_create(&churner, NULL, churn, e);
}

static int stop_churn(struct end *e, void *arg)
{
	void *bad;

	stop.now = true;
	pthread_join(churner, &bad);
	return bad ? -1 : 0;
}

static void control_calls_of_another_thread_swallow_no_wakeup(struct pair *p)
{
	struct soak one;
	struct send_req r;

	/* The sender does not poll: it cannot wake the receiver once more. */
	pair_start(p, &ev);
	expect_eq(side_run(&p->b, start_churn, NULL, 0), 0);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 16);
	for (uint64_t i = 0; i < 3000; i++) {
		one = (struct soak){ .messages = 1 };
		side_recv(&p->b, 0, 0, 256);
		side_start(&p->b, receive_by_events, &one, sizeof(one));
		r.flags = i % 50 ? 0 : IBV_SEND_SIGNALED;
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		expect_eq(side_join(&p->b, &one, sizeof(one)), 0);
		if (r.flags)
			side_wait_ok(&p->a, SEND_CQ, 1);
	}
	expect_eq(side_run(&p->b, stop_churn, NULL, 0), 0);
}

enum { TURNS = 50 };

/* The next event of any queue, which is armed again. */
static void take_event(struct end *e)
{
	struct ibv_cq *cq;
	void *context;

	expect_eq(ibv_get_cq_event(e->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	expect_eq(ibv_req_notify_cq(cq, 0), 0);
}

/* ---- messages that come behind the last poll ---- */

enum { LOOKS = 200, FEW_LOOKS = 10, SPIN_US = 300, STREAM = 3000, STREAMS = 20 };

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Takes all completions and posts their receives again; how many. */
static int take_all(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 64, e->mr[0]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;
	int n = 0;

	for (; ibv_poll_cq(e->cq[RECV_CQ], 1, &wc) > 0; n++)
		expect(!wc.status && !ibv_post_recv(e->qp[0], &wr, &bad));
	return n;
}

/* Polls, does something else, arms the queue, and polls again: how often a completion was there
 * then and had raised its event. */
static int do_look(struct end *e, void *arg)
{
	struct pollfd f = { .fd = e->channel->fd, .events = POLLIN };
	int events = 0, received = 0;
	struct ibv_cq *cq;
	void *context;

	(void)arg;
	for (int i = 0; i < LOOKS; i++) {
		uint64_t end = now_us() + SPIN_US;
		int n, came;

		while (now_us() < end)
			received += take_all(e);
		for (end += SPIN_US; now_us() < end;)
			;
		expect_eq(ibv_req_notify_cq(e->cq[RECV_CQ], 0), 0);
		came = poll(&f, 1, 0);
		n = take_all(e);
		received += n;
		events += came && n > 0;
		if (received == STREAM) /* nothing comes that would raise an event */
			break;
		/* Until it is not armed any more. */
		expect_eq(ibv_get_cq_event(e->channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
	}
	while (received < STREAM)
		received += take_all(e);
	return events;
}

/* How many events there were, or -1. */
static int look_at_a_stream(struct pair *p)
{
	uint64_t end = now_us();

	side_start(&p->b, do_look, NULL, 0);
	for (int i = 0; i < STREAM; i++) {
		side_send(&p->a, 1, 0, 8);
		side_wait_ok(&p->a, SEND_CQ, 1);
		for (end += SPIN_US / 3; now_us() < end;)
			;
		end = now_us();
	}
	return side_join(&p->b, NULL, 0);
}

/* A message that lies in shared memory is new to a program that found its queue empty: with
 * adapters that poll would have found it, or it would raise the event; and there are programs
 * (accelio) that do some of their work only after an event. */
static void what_comes_behind_an_empty_poll_gives_its_event(struct pair *p)
{
	bool tells = strcmp(transport_under_test()->name, "shm") == 0;
	int events = 0;

	need_rnr();
	pair_start(p, &ev);
	for (uint64_t i = 0; i < 200; i++)
		side_recv(&p->b, i, 0, 64);
	/* Again while both sides do not run at the same time, as other programs have the
	 * processors. */
	for (int i = 0; i < STREAMS && events < FEW_LOOKS; i++) {
		events = look_at_a_stream(p);
		expect(events >= 0);
		if (!tells)
			return;
	}
	expect(events >= FEW_LOOKS);
}

/* As perftest does: one channel for both queues, and the first event that comes
 * after a message was sent is taken for that of its completion. */
static int take_turns(struct end *e, void *arg)
{
	const bool first = *(const bool *)arg;
	/* Not where receives go. */
	struct ibv_sge from = { (uintptr_t)e->buffer + 1000, 2,
				e->mr[0]->lkey };
	struct ibv_sge to = { (uintptr_t)e->buffer, 2, e->mr[0]->lkey };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 };
	struct ibv_send_wr send = { .sg_list = &from, .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr *bad_recv;
	struct ibv_send_wr *bad_send;
	struct ibv_wc wc;

	for (int i = 0; i < TURNS; i++) {
		if (i || !first) {
			take_event(e);
			expect_eq(ibv_poll_cq(e->cq[RECV_CQ], 1, &wc), 1);
			expect_status(wc, IBV_WC_SUCCESS);
			expect_eq(ibv_post_recv(e->qp[0], &recv, &bad_recv), 0);
		}
		expect_eq(ibv_post_send(e->qp[0], &send, &bad_send), 0);
		take_event(e);
		expect_eq(ibv_poll_cq(e->cq[SEND_CQ], 1, &wc), 1);
		expect_status(wc, IBV_WC_SUCCESS);
	}
	return 0;
}

static void an_answer_comes_after_the_completion_of_what_it_answers(struct pair *p)
{
	bool first = false;

	pair_start(p, &ev);
	for (uint64_t i = 0; i < 4; i++) {
		side_recv(&p->a, i, 0, 100);
		side_recv(&p->b, i, 0, 100);
	}
	for (enum side_cq cq = SEND_CQ; cq <= RECV_CQ; cq++) {
		expect_eq(side_arm(&p->a, cq, false), 0);
		expect_eq(side_arm(&p->b, cq, false), 0);
	}
	side_start(&p->b, take_turns, &first, sizeof(first));
	first = true;
	expect_eq(side_run(&p->a, take_turns, &first, sizeof(first)), 0);
	expect_eq(side_join(&p->b, &first, sizeof(first)), 0);
}

static int post_one(struct end *e, void *arg)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 64, e->mr[0]->lkey };
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_SEND,
				  .sg_list = &sge, .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	return ibv_post_send(e->qp[0], &wr, &bad);
}

/* One instruction after the other, until what the thread sends has arrived here;
 * there it stands. */
static void step_until_received(struct pair *p, pid_t thread)
{
	uint64_t end = now_ms() + 5 * WAIT_MS;
	struct ibv_wc wc;
	int status;

	for (;;) {
		int n = ibv_poll_cq(p->a.end->cq[RECV_CQ], 1, &wc);

		expect(n >= 0);
		if (n)
			break;
		expect(now_ms() < end);
		expect_eq(ptrace(PTRACE_SINGLESTEP, thread, NULL, NULL), 0);
		expect_eq(waitpid(thread, &status, __WALL), thread);
		expect(WIFSTOPPED(status));
	}
	expect_status(wc, IBV_WC_SUCCESS);
}

/* The acknowledgement comes, and wakes, while the sender is still inside of
 * ibv_post_send(), wherever it happens to be interrupted there. */
static void an_acknowledgement_before_posting_returns_makes_its_event(struct pair *p)
{
	const struct side_options opt = { .events = true };
	struct side *a = &p->a, *b = &p->b;
	pid_t thread;
	int status;

#ifdef __SANITIZE_THREAD__
	/* Half a million instructions, each of them two switches of processes. */
	printf("    not tried: it would take too long\n");
	return;
#endif
	pair_start(p, &opt);
	thread = b->pid;
	if (ptrace(PTRACE_SEIZE, thread, NULL, NULL)) {
		printf("    not tried: ptrace: %s\n", strerror(errno));
		return;
	}
	side_recv(a, 1, 0, 64);
	expect_eq(side_arm(b, SEND_CQ, false), 0);
	expect_eq(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL), 0);
	expect_eq(waitpid(thread, &status, __WALL), thread);
	side_start(b, post_one, NULL, 0);
	step_until_received(p, thread);
	/* Its progress thread sees what there is to see. */
	side_expect_none(a, RECV_CQ);
	expect_eq(ptrace(PTRACE_DETACH, thread, NULL, NULL), 0);
	expect_eq(side_join(b, NULL, 0), 0);
	/* Not at the next timer, which a new link has in five seconds. */
	expect_eq(side_event(b, WAIT_MS / 2), SEND_CQ);
	side_wait_ok(b, SEND_CQ, 1);
}

/* Waits for the event of a receive that fails; the state of its queue pair then, or -1. */
static int fails_and_is_asked(struct end *e, void *arg)
{
	struct pollfd fd = { .fd = e->channel->fd, .events = POLLIN };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	if (poll(&fd, 1, WAIT_MS) != 1 || ibv_get_cq_event(e->channel, &cq, &context))
		return -1;
	ibv_ack_cq_events(cq, 1);
	if (ibv_poll_cq(cq, 1, &wc) != 1 || wc.status != IBV_WC_LOC_LEN_ERR ||
	    ibv_query_qp(e->qp[0], &attr, IBV_QP_STATE, &init))
		return -1;
	return attr.qp_state;
}

/* Whichever thread takes the message. */
static void who_reads_that_a_receive_failed_finds_the_error_state(struct pair *p)
{
	int unused = 0;

	need_arrival();
	pair_start(p, &ev);
	for (uint64_t i = 0; i < 50; i++) {
		side_recv(&p->b, i, 0, 10);
		expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
		side_start(&p->b, fails_and_is_asked, &unused, sizeof(unused));
		side_send(&p->a, i, 0, 100);
		expect_eq(side_join(&p->b, &unused, sizeof(unused)), IBV_QPS_ERR);
		expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_INV_REQ_ERR);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
}

static const struct test_case cases[] = {
	RULE("ibv_req_notify_cq(3)",
	     an_armed_queue_gives_one_event_for_the_next_completion),
	RULE("ibv_req_notify_cq(3)", a_queue_that_is_not_armed_gives_no_event),
	RULE("IBTA 11.4.2.2", what_is_in_the_queue_already_gives_no_event),
	CASE_IN(ONLY_TWO_PROCESSES, what_comes_behind_an_empty_poll_gives_its_event),
	RULE("IBTA 11.4.2.2", arming_twice_gives_one_event),
	RULE("ibv_get_cq_event(3)", a_send_completion_wakes_the_sender),
	CASE_IN(ONLY_TWO_PROCESSES, a_message_without_answer_wakes_its_sender_too),
	CASE_IN(ONLY_TWO_PROCESSES,
		an_answer_comes_after_the_completion_of_what_it_answers),
	RULE("ibv_req_notify_cq(3)",
	     solicited_only_waits_for_a_solicited_message),
	RULE("IBTA 11.4.2.2",
	     solicited_only_does_not_weaken_an_earlier_request),
	RULE("ibv_req_notify_cq(3)", an_error_completion_counts_as_solicited),
	RULE("ibv_get_cq_event(3)",
	     a_receiver_asleep_is_woken_by_every_kind_of_message),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_get_cq_event(3)",
		a_non_blocking_channel_says_eagain),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_create_comp_channel(3)",
		several_queues_share_a_channel),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_get_cq_event(3)",
		destroying_waits_until_events_are_acknowledged),
	CASE_IN(ONLY_ONE_PROCESS, an_unread_event_of_a_destroyed_queue_is_gone),
	CASE_IN(ONLY_ONE_PROCESS, a_signal_interrupts_waiting_and_loses_nothing),
	CASE_IN(ONLY_ONE_PROCESS, a_waiting_thread_can_be_cancelled),
	CASE(a_receiver_that_does_nothing_still_receives),
	CASE(a_sender_that_does_nothing_gets_all_its_messages_out),
	CASE_IN(ONLY_TWO_PROCESSES,
		busy_polling_for_receives_does_not_starve_a_sleeping_sender),
	RULE("IBTA 10.3.1.7", who_reads_that_a_receive_failed_finds_the_error_state),
	RULE("ibv_get_cq_event(3)", the_three_poll_sequence_loses_nothing),
	CASE_IN(ONLY_TWO_PROCESSES,
		control_calls_of_another_thread_swallow_no_wakeup),
	RULE_IN(ONLY_TWO_PROCESSES, "ibv_get_cq_event(3)",
		an_acknowledgement_before_posting_returns_makes_its_event),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
