/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random operations of two sides on many queue pairs against a model of what has
 * to come out (model.h): memory, completions, their order, events, states; with
 * receives that are late, registrations that change, queues that are resized,
 * queue pairs that are reset, re-created, drained and made to fail in between.
 *
 *     adapter-random [SECONDS [SEED [REQUESTS]]]
 *
 * RANDOM_SECONDS in the environment is the default of SECONDS, of which one process
 * and two processes get a half each; with REQUESTS, it ends when so many have been posted,
 * half of them in one process, and SECONDS is the most that it takes. The seed is printed;
 * the same seed does the same operations, though not at the same times.
 */
#include <string.h>

#include "random.h"

/* What one look may count of the time since the one before it. */
#define TURN_MS 50

static unsigned seconds = 20;
static uint64_t seed, requests = UINT64_MAX;

void random_send(struct model *m, struct work *w)
{
	int ret = act_send(m->side[w->s], w->q, &w->r, pair_kind(w->q)->extended);

	if (ret)
		fail("pair %d: %s of %u bytes not taken: %d", w->q, w->op->name,
		     w->length, ret);
	model_posted(m, w);
}

static const struct model_op *any_op(struct model *m)
{
	uint32_t sum = 0, pick;

	for (int i = 0; i < model_op_count; i++)
		sum += model_ops[i].weight;
	pick = dice(m, sum);
	for (int i = 0;; i++) {
		if (pick < model_ops[i].weight)
			return &model_ops[i];
		pick -= model_ops[i].weight;
	}
}

static void do_send(struct model *m, int s, int q)
{
	struct work *w = model_work(m, s, q, any_op(m));

	if (w)
		random_send(m, w);
}

/* A request that sends what the one before it, not complete yet, brings. */
static void do_chain(struct model *m, int s, int q)
{
	static const char *const firsts[] = { "read", "compare and swap",
					      "fetch and add" };
	static const char *const thens[] = { "send", "write",
						"write with immediate" };
	struct work *w = model_work(m, s, q, model_op_named(firsts[dice(m, 3)]));

	if (!w)
		return;
	random_send(m, w);
	w = model_chain(m, w, model_op_named(thens[dice(m, 3)]));
	if (w)
		random_send(m, w);
}

bool random_receive(struct model *m, int s, int q)
{
	struct receive r;
	struct recv_req req;

	if (!model_receive(m, s, q, &r))
		return false;
	req.wr_id = r.wr_id;
	req.num_sge = r.num_sge;
	memcpy(req.sge, r.sge, sizeof(r.sge));
	expect_eq(act_recv(m->side[s], q, &req), 0);
	model_recv_posted(m, s, q, &r);
	return true;
}

static int do_poll(struct model *m, int s, int cq, int most)
{
	struct ibv_wc wc[16];
	int n = act_poll(m->side[s], cq, wc, most);

	if (n < 0)
		fail("side %d: completion queue %d overrun", s, cq);
	for (int i = 0; i < n; i++)
		model_completed(m, s, cq, &wc[i]);
	return n;
}

int random_poll_pair(struct model *m, int s, int q)
{
	const struct pair_kind *k = pair_kind(q);

	return do_poll(m, s, k->cq[SEND_CQ], 16) +
	       do_poll(m, s, k->cq[RECV_CQ], 16);
}

/* ---- settling ---- */

/* Behind it everything before is complete. */
static void post_marker(struct model *m, int s, int q)
{
	struct flow *f = &m->flow[s][q];
	bool ud = pair_kind(q)->type == IBV_QPT_UD;
	struct work *w;

	if (!f->sent_count ||
	    (f->sent[f->sent_count - 1]->r.flags & IBV_SEND_SIGNALED))
		return;
	w = model_work(m, s, q, model_op_named(ud ? "send" : "write"));
	if (!w)
		return;
	if (ud && !w->lost) {
		w->lost = true;
		w->r.qkey++;
	}
	w->r.flags |= IBV_SEND_SIGNALED;
	random_send(m, w);
}

bool patience_is_over(struct patience *p)
{
	uint64_t now = now_ms();

	if (p->last_ms)
		p->waited_ms += now - p->last_ms < TURN_MS ?
					(unsigned)(now - p->last_ms) : TURN_MS;
	p->last_ms = now;
	return p->waited_ms > WAIT_MS;
}

void random_settle(struct model *m, int q)
{
	struct patience p = { 0 };

	while (!model_idle(m, q)) {
		bool over = patience_is_over(&p);

		for (int s = 0; s < 2; s++) {
			struct flow *f = &m->flow[s][q];

			if (f->due_count && (pair_kind(q)->srq ||
					     model_credits(m, s, q) <= 0))
				random_receive(m, s, q);
			post_marker(m, s, q);
			random_poll_pair(m, s, q);
			/* A shared receive may be taken by others; a datagram
			 * may come from any. */
			for (int cq = 0; cq < CQS; cq++)
				do_poll(m, s, cq, 16);
		}
		if (over && !model_idle(m, q))
			fail("pair %d: %d+%d sends and %d+%d messages do not end",
			     q, m->flow[0][q].sent_count,
			     m->flow[1][q].sent_count, m->flow[0][q].due_count,
			     m->flow[1][q].due_count);
	}
	model_arrives(m, q);
}

/* ---- life of the pairs ---- */

static int remote_access(void)
{
	return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
	       (offers(IBV_WR_ATOMIC_FETCH_AND_ADD) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

void random_register(struct model *m, int s, int q)
{
	const struct pair_kind *k = pair_kind(q);
	struct flow *f = &m->flow[s][q];

	f->lkey = act_register(m->side[s], q, MR_LOCAL, k->out,
			       k->target - k->out, m->side[s]->addr + k->out,
			       IBV_ACCESS_LOCAL_WRITE).lkey;
	/* Where the peer has to aim, which need not be where it is. */
	f->iova = dice(m, 2) ? m->side[s]->addr + k->target :
			       (uint64_t)dice(m, 1 << 30) << 12;
	f->rkey = act_register(m->side[s], q, MR_REMOTE, k->target,
			       k->end - k->target, f->iova, remote_access()).rkey;
}

void random_connect(struct model *m, int q, uint8_t timeout)
{
	const struct pair_kind *k = pair_kind(q);
	uint32_t psn[2] = { dice(m, 1 << 24), 0xffffff - dice(m, 40) };

	for (int s = 0; s < 2; s++) {
		model_fill(m, s, k->out, k->in - k->out);
		if (!k->srq) /* else others may use its receives now */
			model_fill(m, s, k->in, k->target - k->in);
		model_fill(m, s, k->target, k->end - k->target);
	}
	for (int s = 0; s < 2; s++) {
		const struct act_address to = {
			.qpn = m->qpn[!s][q], .psn_send = psn[s],
			.psn_receive = psn[!s], .gid = m->side[!s]->gid,
			.timeout = timeout, .retry_cnt = 7,
			.rnr_retry = k->rnr_retry,
		};

		act_connect(m->side[s], q, &to);
	}
	if (transport_under_test()->streams)
		random_join(m, q);
}

static bool adds_to_shared(const struct model *m, int q)
{
	for (int s = 0; s < 2; s++)
		for (int i = 0; i < m->flow[s][q].sent_count; i++)
			if (m->flow[s][q].sent[i]->op->no_result)
				return true;
	return false;
}

/* In the middle of everything, where what is lost is known. */
static void do_reset(struct model *m, int q)
{
	const struct pair_kind *k = pair_kind(q);
	bool renew = dice(m, 3) == 0;

	/* The end of the stream would be an event of the peer's shared receives. */
	if (k->srq && transport_under_test()->streams)
		return;
	if (k->srq || adds_to_shared(m, q))
		random_settle(m, q);
	/* Datagrams on their way name their sender. */
	for (int u = RC_PAIRS + UC_PAIRS; k->type == IBV_QPT_UD && u < PAIRS; u++)
		random_settle(m, u);
	for (int s = 0; s < 2; s++)
		expect_eq(act_state(m->side[s], q, IBV_QPS_RESET), 0);
	if (transport_under_test()->streams)
		random_check_terminates(m);
	for (int s = 0; renew && s < 2; s++)
		m->qpn[s][q] = act_recreate(m->side[s], q);
	model_reset(m, q);
	random_connect(m, q, SLOW);
	m->resets++;
}

/* New keys, rights and addresses for memory that nobody uses now. Posted
 * receives name the old local key, so that one stays while there are any. */
static void do_register(struct model *m, int s, int q)
{
	struct flow *f = &m->flow[s][q];
	bool posted = false;

	random_settle(m, q);
	for (int i = 0; i < SLOTS; i++)
		posted |= f->in_used[i];
	if (!posted && dice(m, 2))
		random_register(m, s, q);
	else if (dice(m, 2))
		f->rkey = act_reregister(m->side[s], q, MR_REMOTE,
					 IBV_REREG_MR_CHANGE_ACCESS,
					 remote_access()).rkey;
	else
		f->rkey = act_reregister(m->side[s], q, MR_REMOTE,
					 IBV_REREG_MR_CHANGE_PD, 0).rkey;
}

static void expect_async(struct model *m, int s, int type, int q)
{
	int of, got = act_async(m->side[s], WAIT_MS, &of);

	if (got != type || of != q)
		fail("asynchronous event %d of pair %d, the model says %d of pair %d",
		     got, of, type, q);
}

/* What is posted in SQD waits. */
static void do_drain(struct model *m, int s, int q)
{
	struct work *w;

	/* There is no such state over streams. */
	if (pair_kind(q)->type != IBV_QPT_RC || transport_under_test()->streams)
		return;
	random_settle(m, q);
	expect_eq(act_drain(m->side[s], q), 0);
	expect_async(m, s, IBV_EVENT_SQ_DRAINED, q);
	w = model_work(m, s, q, model_op_named("write"));
	if (w) {
		w->r.flags |= IBV_SEND_SIGNALED;
		random_send(m, w);
	}
	for (int i = 0; i < 10; i++)
		random_poll_pair(m, s, q);
	if (w)
		expect_eq(m->flow[s][q].sent_count, 1);
	expect_eq(act_state(m->side[s], q, IBV_QPS_RTS), 0);
}

/* ---- events ---- */

static void do_arm(struct model *m, int s, int cq)
{
	struct model_cq *c = &m->cq[s][cq];
	bool solicited = dice(m, 2);

	expect_eq(act_arm(m->side[s], cq, solicited), 0);
	c->possible++;
	c->fresh = false;
	if (!solicited || c->armed != ARMED_NEXT)
		c->armed = solicited ? ARMED_SOLICITED : ARMED_NEXT;
	/* What came before the arming. */
	while (do_poll(m, s, cq, 16))
		;
	c->fresh = true;
}

static bool take_event(struct model *m, int s, int timeout_ms)
{
	int cq = act_event(m->side[s], timeout_ms);
	struct model_cq *c;

	if (cq < 0)
		return false;
	c = &m->cq[s][cq];
	if (c->possible-- == 0)
		fail("event of completion queue %d, which is not armed", cq);
	c->armed = UNARMED;
	c->owed = 0;
	m->events++;
	return true;
}

static void do_events(struct model *m, int s)
{
	while (take_event(m, s, 0))
		;
	for (int cq = 0; cq < CQS; cq++)
		while (m->cq[s][cq].owed)
			if (!take_event(m, s, WAIT_MS))
				fail("no event of completion queue %d", cq);
}

/* The limit of the shared receive queue, which is reached at once or later. */
static void do_srq_limit(struct model *m, int s)
{
	int q;

	for (q = 0; q < model_pairs(); q++)
		if (pair_kind(q)->srq)
			random_settle(m, q);
	expect_eq(act_srq_limit(m->side[s], (uint32_t)m->srq_count[s] + 1), 0);
	expect_async(m, s, IBV_EVENT_SRQ_LIMIT_REACHED, -1);
}

/* ---- the run ---- */

static void check_everything(struct model *m)
{
	int of;

	for (int q = 0; q < model_pairs(); q++)
		random_settle(m, q);
	model_check_all(m);
	if (transport_under_test()->streams)
		random_check_terminates(m);
	for (int s = 0; s < 2; s++) {
		do_events(m, s);
		expect_eq(act_async(m->side[s], 0, &of), -1);
		for (int q = 0; q < model_pairs(); q++)
			expect_eq(act_query(m->side[s], q), IBV_QPS_RTS);
	}
}

/* How streams fail is in status.c and terminates.c. */
static void do_error(struct model *m, int q)
{
	if (!transport_under_test()->streams)
		random_error(m, q);
}

static void do_something(struct model *m)
{
	/* Where packets are lost, messages of the other services are, too, as they may. */
	int pairs = transport_under_test()->loses ? RC_PAIRS : model_pairs();
	int s = (int)dice(m, 2), q = (int)dice(m, (uint32_t)pairs);
	uint32_t what = dice(m, 10000);

	m->operations++;
	if (what < 3000)
		random_receive(m, s, q);
	else if (what < 5900)
		do_send(m, s, q);
	else if (what < 6000)
		do_chain(m, s, q);
	else if (what < 9700)
		do_poll(m, s, (int)dice(m, CQS), 1 + (int)dice(m, 16));
	else if (what < 9800)
		do_events(m, s);
	else if (what < 9880)
		do_arm(m, s, (int)dice(m, CQS));
	else if (what < 9910)
		do_reset(m, q);
	else if (what < 9940)
		do_register(m, s, q);
	else if (what < 9950)
		expect_eq(act_resize(m->side[s], (int)dice(m, CQS),
				     600 + (int)dice(m, 2000)), 0);
	else if (what < 9960)
		do_drain(m, s, q);
	else if (what < 9965)
		do_srq_limit(m, s);
	else if (what < 9992)
		do_error(m, q);
	else if (what < 9995)
		check_everything(m);
}

static void start(struct model *m, struct pair *p)
{
	const struct side_options opt = {
		.bytes = pair_kind(model_pairs() - 1)->end, .mr_access = -1,
	};

	pair_open(p, &opt);
	model_init(m, &p->a, &p->b, seed);
	for (int s = 0; s < 2; s++) {
		act_open(m->side[s], m->qpn[s]);
		side_set(m->side[s], 0, m->bytes, 0);
	}
	for (int q = 0; q < model_pairs(); q++) {
		for (int s = 0; s < 2; s++)
			random_register(m, s, q);
		random_connect(m, q, SLOW);
	}
	for (int s = 0; s < 2; s++)
		m->shared_rkey[s] = act_register(m->side[s], 0, MR_SHARED,
						 SHARED_WORD, 8,
						 m->side[s]->addr + SHARED_WORD,
						 remote_access()).rkey;
}

static void random_operations_do_what_the_model_says(struct pair *p)
{
	static struct model m;
	uint64_t end;

	printf("    seed %llu, %u s\n", (unsigned long long)seed, seconds);
	fflush(stdout);
	start(&m, p);
	end = now_ms() + seconds * UINT64_C(500);
	while (now_ms() < end && m.sends < requests / 2)
		do_something(&m);
	if (requests != UINT64_MAX && m.sends < requests / 2)
		fail("only %llu requests in %u s", (unsigned long long)m.sends, seconds / 2);
	check_everything(&m);
	printf("    %llu operations, %llu requests, %llu completions, %llu resets, %llu errors, %llu events, %llu checks\n",
	       (unsigned long long)m.operations, (unsigned long long)m.sends,
	       (unsigned long long)m.completions, (unsigned long long)m.resets,
	       (unsigned long long)m.errors, (unsigned long long)m.events,
	       (unsigned long long)m.checks);
	expect(m.completions > 0);
	act_close(&p->a);
	act_close(&p->b);
	model_free(&m);
}

int main(int argc, char **argv)
{
	struct test_case cases[] = {
		CASE(random_operations_do_what_the_model_says),
	};
	const char *text = getenv("RANDOM_SECONDS");

	seed = now_ms();
	if (text)
		seconds = (unsigned)strtoul(text, NULL, 10);
	if (argc > 1)
		seconds = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	if (argc > 3)
		requests = strtoull(argv[3], NULL, 10);
	cases[0].limit_s = seconds + 120;
	return RUN_CASES(1, argv, cases);
}
