/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that receives the answer to a message finds the completion of that message first, as
 * with an adapter, which acknowledges a message before the receiver's program knows of it. The
 * specification gives no order between two completion queues, but programs are written on
 * adapters that keep this one.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "pair.h"

enum {
	ROUNDS = 60,
	BYTES = 1 << 20,
	BACK = BYTES / 2, /* where received messages go */
	WINDOW = 8,
};

/* How a side talks. */
struct way {
	uint32_t bytes;   /* of its messages */
	uint32_t awaited; /* of the peer's */
	bool events;      /* sleeps until a completion event */
	bool one_cq;
	bool sends_first; /* waits for the completion of its message, then for the answer */
	unsigned signal_every;
	bool asks;        /* begins, else it answers */
	unsigned late;    /* out: answers that came in front of the completion */
	unsigned first;   /* out: the round of the first one */
	unsigned missing; /* out: the round that did not end, from 1 */
};

/* What a side has seen. */
struct seen {
	struct end *e;
	unsigned sent, got;   /* completions */
	unsigned wanted_sent; /* that are signaled */
	bool failed;
};

static int receive(struct end *e, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer + BACK, bytes, e->mr[0]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(e->qp[0], &wr, &bad);
}

static int send_message(struct end *e, uint32_t bytes, bool signaled)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, bytes, e->mr[0]->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
				  .send_flags = signaled ? IBV_SEND_SIGNALED : 0 }, *bad;

	return ibv_post_send(e->qp[0], &wr, &bad);
}

/* One completion of that queue. */
static bool take(struct seen *s, struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(cq, 1, &wc);

	if (n > 0 && wc.status == IBV_WC_SUCCESS)
		*(wc.opcode == IBV_WC_RECV ? &s->got : &s->sent) += 1;
	s->failed |= n < 0 || (n > 0 && wc.status != IBV_WC_SUCCESS);
	return n > 0;
}

/* Waits for an event, and takes all completions of its queue. */
static bool sleep_and_take(struct seen *s, int timeout_ms)
{
	struct pollfd p = { .fd = s->e->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, timeout_ms) != 1 || ibv_get_cq_event(s->e->channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	while (take(s, cq))
		;
	if (ibv_req_notify_cq(cq, 0))
		return false;
	while (take(s, cq))
		;
	return true;
}

/* Until *count is `want`. `way`: the queue in which it is counted. */
static bool await(struct seen *s, const struct way *w, enum side_cq which,
		  const unsigned *count, unsigned want)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (*count < want && !s->failed) {
		if (w->events) {
			/* An event in front of the awaited one is of another completion. */
			if (!sleep_and_take(s, WAIT_MS))
				return false;
		} else if (!take(s, s->e->cq[which]) && now_ms() > end) {
			return false;
		}
	}
	return !s->failed;
}

/* The answer is there: so is the completion of what it answers, without waiting. */
static void look_for_completion(struct seen *s, const struct way *w, struct way *out)
{
	if (!w->events && !w->one_cq)
		take(s, s->e->cq[SEND_CQ]);
	if (s->sent < s->wanted_sent && !out->late++)
		out->first = s->got;
}

/* Before the peer sends. */
static int make_ready(struct end *e, void *arg)
{
	const struct way *w = arg;

	for (int i = 0; i < WINDOW; i++)
		if (receive(e, w->awaited))
			return -1;
	return 0;
}

static int talk(struct end *e, void *arg)
{
	struct way *w = arg;
	const struct way way = *w;
	struct seen s = { .e = e };

	for (int k = 0; way.events && k < 2; k++) {
		if (ibv_req_notify_cq(e->cq[k], 0))
			return -2;
		/* The peer may have begun. */
		while (take(&s, e->cq[k]))
			;
	}
	for (unsigned i = 1; i <= ROUNDS; i++) {
		bool signaled = i % way.signal_every == 0;

		w->missing = i;
		if (!way.asks && !await(&s, &way, RECV_CQ, &s.got, i))
			return -3;
		if (send_message(e, way.bytes, signaled))
			return -4;
		s.wanted_sent += signaled;
		if (way.sends_first && !await(&s, &way, SEND_CQ, &s.sent, s.wanted_sent))
			return -5;
		if (way.asks) {
			if (!await(&s, &way, RECV_CQ, &s.got, i))
				return -6;
			look_for_completion(&s, &way, w);
		}
		if (receive(e, way.awaited))
			return -7;
		if (!await(&s, &way, SEND_CQ, &s.sent, s.wanted_sent))
			return -8;
	}
	w->missing = 0;
	return 0;
}

/* Where messages are packets or over a stream, a thread that polls may answer what another one of its process has
 * just received, and not acknowledged by a packet yet: one of the program, or seldom the
 * adapter's own. And the first packets of a connection take two ways. */
static unsigned late_most(const struct pair *p, const struct way *w)
{
	if (!strcmp(transport_under_test()->name, "shm"))
		return 0;
	return p->two_processes || w->events ? ROUNDS / 10 : ROUNDS;
}

static void try_way(struct pair *p, struct way ask)
{
	struct way answer = { .bytes = ask.awaited, .awaited = ask.bytes,
			      .events = ask.events, .one_cq = ask.one_cq,
			      .sends_first = ask.sends_first,
			      .signal_every = ask.signal_every };
	int ret;

	ask.asks = true;
	expect_eq(side_run(&p->a, make_ready, &ask, sizeof(ask)), 0);
	expect_eq(side_run(&p->b, make_ready, &answer, sizeof(answer)), 0);
	side_start(&p->b, talk, &answer, sizeof(answer));
	ret = side_run(&p->a, talk, &ask, sizeof(ask));
	if (ret || side_join(&p->b, &answer, sizeof(answer)) || ask.late > late_most(p, &ask))
		fail("%u bytes, answered by %u, %s, %s, %s first, each %u. is signaled: %u of %u answers were early, first in round %u (%d, rounds %u %u)",
		     ask.bytes, ask.awaited, ask.one_cq ? "one queue" : "two queues",
		     ask.events ? "events" : "polling",
		     ask.sends_first ? "its completion" : "the answer", ask.signal_every,
		     ask.late, ROUNDS, ask.first, ret, ask.missing, answer.missing);
	side_close(&p->a);
	side_close(&p->b);
}

static void all_ways(struct pair *p, bool events, bool one_cq)
{
	static const uint32_t lengths[][2] = { { 16, 16 }, { 16, 0 }, { 5000, 16 },
					       { 100000, 5000 } };
	struct side_options opt = { .bytes = BYTES, .events = events, .one_cq = one_cq,
				    .send_wr = 2 * WINDOW, .recv_wr = 2 * WINDOW };

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		for (unsigned k = 0; k < 4; k++) {
			pair_start(p, &opt);
			try_way(p, (struct way){ .bytes = lengths[i][0],
						 .awaited = lengths[i][1],
						 .events = events, .one_cq = one_cq,
						 .sends_first = k & 1,
						 .signal_every = k & 2 ? 4 : 1 });
		}
	}
}

static void with_two_queues_that_are_polled(struct pair *p)
{
	all_ways(p, false, false);
}

static void with_one_queue_that_is_polled(struct pair *p)
{
	all_ways(p, false, true);
}

static void with_two_queues_and_events(struct pair *p)
{
	all_ways(p, true, false);
}

static void with_one_queue_and_events(struct pair *p)
{
	all_ways(p, true, true);
}

static const struct test_case cases[] = {
	CASE(with_two_queues_that_are_polled),
	CASE(with_one_queue_that_is_polled),
	CASE(with_two_queues_and_events),
	CASE(with_one_queue_and_events),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
