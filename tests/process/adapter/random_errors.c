/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways in which a settled pair is made to fail, and what the rules say comes
 * of each: the completion of the request, that of the receive, the states of both
 * queue pairs, the asynchronous event of the responder; everything posted behind
 * is flushed in order. Afterwards the pair is connected anew.
 *
 * A new way to fail is an entry of `errors`.
 */
#include <string.h>

#include "random.h"

struct error {
	const char *name;
	const char *op;
	unsigned services; /* 1 << enum ibv_qp_type */
	/* Makes the request fail; false: not possible now. */
	bool (*spoil)(struct model *m, struct work *w);
	enum ibv_wc_status status;
	/* Of the responder: of its first receive (success: it has none of it). */
	enum ibv_wc_status recv_status;
	bool peer_fails;
	int peer_event;    /* enum ibv_event_type, -1: none */
};

enum {
	RC = 1 << IBV_QPT_RC,
	UC = 1 << IBV_QPT_UC,
	UD = 1 << IBV_QPT_UD,
	ALL = RC | UC | UD,
};

static bool wrong_rkey(struct model *m, struct work *w)
{
	w->r.rkey += 1 + dice(m, 100);
	if (!w->length) /* then no key is looked at */
		return false;
	return true;
}

static bool beyond_region(struct model *m, struct work *w)
{
	const struct pair_kind *k = pair_kind(w->q);
	uint64_t end = m->flow[!w->s][w->q].iova + (k->end - k->target);

	w->r.remote_addr = (end - w->length + 8 + dice(m, 100) * 8) & ~UINT64_C(7);
	return w->length > 0;
}

static bool other_key(struct model *m, struct work *w)
{
	/* Of the areas that are for local use. */
	w->r.rkey = m->flow[!w->s][w->q].lkey;
	w->r.remote_addr = (m->side[!w->s]->addr + pair_kind(w->q)->out + 7) &
			   ~UINT64_C(7);
	return w->length > 0;
}

static bool misaligned(struct model *m, struct work *w)
{
	w->r.remote_addr += 1 + dice(m, 7);
	return true;
}

static bool wrong_lkey(struct model *m, struct work *w)
{
	for (int i = 0; i < w->r.num_sge; i++)
		if (w->r.sge[i].length) {
			w->r.sge[i].lkey++;
			w->r.flags &= ~(unsigned)IBV_SEND_INLINE;
			return true;
		}
	return false;
}

static bool right_taken(struct model *m, struct work *w)
{
	expect_eq(act_access(m->side[!w->s], w->q, 0), 0);
	return true;
}

static bool too_long(struct model *m, struct work *w)
{
	w->r.num_sge = 1;
	w->r.flags &= ~(unsigned)IBV_SEND_INLINE;
	w->r.sge[0].addr = m->side[w->s]->addr + pair_kind(w->q)->out;
	w->r.sge[0].lkey = m->flow[w->s][w->q].lkey;
	w->r.sge[0].length = 4097 + dice(m, 1000);
	return true;
}

static bool nothing_posted(struct model *m, struct work *w)
{
	return pair_kind(w->q)->rnr_retry != 7 &&
	       m->flow[!w->s][w->q].recv_count == 0;
}

/* The receive at the head is too short for any message, or of a wrong key. */
static bool first_receive(struct model *m, const struct work *w, bool short_one)
{
	struct flow *to = &m->flow[!w->s][w->q];
	struct receive r;
	struct recv_req req = { .num_sge = 1 };

	if (pair_kind(w->q)->srq || to->recv_count || !w->length ||
	    !model_receive(m, !w->s, w->q, &r))
		return false;
	if (short_one)
		r.sge[0].length = dice(m, w->length);
	else
		r.sge[0].lkey++;
	if (!short_one)
		r.sge[0].length = pair_kind(w->q)->room;
	r.num_sge = 1;
	r.expect = short_one ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR;
	req.wr_id = r.wr_id;
	req.sge[0] = r.sge[0];
	expect_eq(act_recv(m->side[!w->s], w->q, &req), 0);
	model_recv_posted(m, !w->s, w->q, &r);
	return true;
}

static bool short_receive(struct model *m, struct work *w)
{
	return first_receive(m, w, true);
}

static bool bad_receive(struct model *m, struct work *w)
{
	return first_receive(m, w, false);
}

static const struct error errors[] = {
	{ "write with a wrong key", "write", RC, wrong_rkey,
	  IBV_WC_REM_ACCESS_ERR, 0, true, IBV_EVENT_QP_ACCESS_ERR },
	{ "write beyond the region", "write", RC, beyond_region,
	  IBV_WC_REM_ACCESS_ERR, 0, true, IBV_EVENT_QP_ACCESS_ERR },
	{ "write without the right", "write", RC, other_key,
	  IBV_WC_REM_ACCESS_ERR, 0, true, IBV_EVENT_QP_ACCESS_ERR },
	{ "read with a wrong key", "read", RC, wrong_rkey,
	  IBV_WC_REM_ACCESS_ERR, 0, true, IBV_EVENT_QP_ACCESS_ERR },
	{ "read without the right", "read", RC, other_key,
	  IBV_WC_REM_ACCESS_ERR, 0, true, IBV_EVENT_QP_ACCESS_ERR },
	{ "atomic with a wrong key", "fetch and add", RC, wrong_rkey,
	  IBV_WC_REM_ACCESS_ERR, 0, true, IBV_EVENT_QP_ACCESS_ERR },
	{ "atomic without the right", "compare and swap", RC, other_key,
	  IBV_WC_REM_ACCESS_ERR, 0, true, IBV_EVENT_QP_ACCESS_ERR },
	{ "atomic beyond the region", "fetch and add", RC, beyond_region,
	  IBV_WC_REM_ACCESS_ERR, 0, true, IBV_EVENT_QP_ACCESS_ERR },
	{ "atomic that is not aligned", "fetch and add", RC, misaligned,
	  IBV_WC_REM_INV_REQ_ERR, 0, true, IBV_EVENT_QP_REQ_ERR },
	{ "send with a wrong local key", "send", ALL, wrong_lkey,
	  IBV_WC_LOC_PROT_ERR, 0, false, -1 },
	{ "write to who gives no rights", "write", RC, right_taken,
	  IBV_WC_REM_INV_REQ_ERR, 0, true, IBV_EVENT_QP_REQ_ERR },
	{ "read from who gives no rights", "read", RC, right_taken,
	  IBV_WC_REM_INV_REQ_ERR, 0, true, IBV_EVENT_QP_REQ_ERR },
	{ "atomic at who gives no rights", "fetch and add", RC, right_taken,
	  IBV_WC_REM_INV_REQ_ERR, 0, true, IBV_EVENT_QP_REQ_ERR },
	{ "datagram that is too long", "send", UD, too_long,
	  IBV_WC_LOC_LEN_ERR, 0, false, -1 },
	{ "write with a wrong local key", "write", RC | UC, wrong_lkey,
	  IBV_WC_LOC_PROT_ERR, 0, false, -1 },
	{ "read into a wrong local key", "read", RC, wrong_lkey,
	  IBV_WC_LOC_PROT_ERR, 0, false, -1 },
	{ "send that nobody receives", "send", RC, nothing_posted,
	  IBV_WC_RNR_RETRY_EXC_ERR, 0, false, -1 },
	{ "send that is too long", "send", RC, short_receive,
	  IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, true, -1 },
	{ "send into a wrong key", "send with immediate", RC, bad_receive,
	  IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, true, -1 },
};

enum { ERRORS = sizeof(errors) / sizeof(errors[0]) };

/* Some more requests, which are flushed. */
static void post_behind(struct model *m, int s, int q)
{
	for (uint32_t n = dice(m, 4); n > 0; n--) {
		const struct model_op *op =
			&model_ops[dice(m, (uint32_t)model_op_count)];
		struct work *w;

		/* Nothing that may be executed when a datagram's queue pair
		 * comes back, or that waits for a receive. */
		if (op->message)
			op = model_op_named("write");
		w = model_work(m, s, q, op);
		if (!w)
			continue;
		w->expect = IBV_WC_WR_FLUSH_ERR;
		random_send(m, w);
	}
}

static bool all_flushed(const struct model *m, int q)
{
	for (int s = 0; s < 2; s++)
		if (m->flow[s][q].sent_count ||
		    (m->flow[s][q].broken && !pair_kind(q)->srq &&
		     m->flow[s][q].recv_count))
			return false;
	return true;
}

static void wait_for_flush(struct model *m, int q, const char *name)
{
	struct patience p = { 0 };

	while (!all_flushed(m, q)) {
		bool over = patience_is_over(&p);

		for (int s = 0; s < 2; s++)
			random_poll_pair(m, s, q);
		if (over && !all_flushed(m, q))
			fail("pair %d, %s: not everything was flushed (%d, %d sends, %d, %d receives left)",
			     q, name, m->flow[0][q].sent_count,
			     m->flow[1][q].sent_count, m->flow[0][q].recv_count,
			     m->flow[1][q].recv_count);
	}
}

/* In any order, and no others. */
static void wait_for_events(struct model *m, int s, int q, const int *types,
			    int count, const char *name)
{
	bool seen[2] = { false };

	for (int n = 0; n < count; n++) {
		int of, got = act_async(m->side[s], WAIT_MS, &of), i = 0;

		while (i < count && (seen[i] || types[i] != got))
			i++;
		if (i == count || of != q)
			fail("pair %d, %s: asynchronous event %d of pair %d",
			     q, name, got, of);
		seen[i] = true;
	}
}

static void expect_state(struct model *m, int s, int q, enum ibv_qp_state state,
			 const char *name)
{
	enum ibv_qp_state got = act_query(m->side[s], q);

	if (got != state)
		fail("pair %d, %s: side %d is in state %d, the model says %d", q,
		     name, s, got, state);
}

static void check_consequences(struct model *m, const struct error *e, int s,
			       int q)
{
	bool rc = pair_kind(q)->type == IBV_QPT_RC, srq = pair_kind(q)->srq;
	const int last = IBV_EVENT_QP_LAST_WQE_REACHED;
	int types[2], count = 0;

	wait_for_flush(m, q, e->name);
	expect_state(m, s, q, rc ? IBV_QPS_ERR : IBV_QPS_SQE, e->name);
	if (rc && srq)
		wait_for_events(m, s, q, &last, 1, e->name);
	if (e->peer_event >= 0)
		types[count++] = e->peer_event;
	if (e->peer_fails && srq)
		types[count++] = last;
	wait_for_events(m, !s, q, types, count, e->name);
	expect_state(m, !s, q, e->peer_fails ? IBV_QPS_ERR : IBV_QPS_RTS,
		     e->name);
}

/* A program that gives up: everything is flushed. */
static void end_by_program(struct model *m, int s, int q)
{
	const int last = IBV_EVENT_QP_LAST_WQE_REACHED;

	m->flow[s][q].broken = true;
	expect_eq(act_state(m->side[s], q, IBV_QPS_ERR), 0);
	post_behind(m, s, q);
	wait_for_flush(m, q, "modified to the error state");
	expect_state(m, s, q, IBV_QPS_ERR, "modified to the error state");
	if (pair_kind(q)->srq)
		wait_for_events(m, s, q, &last, 1, "modified to the error state");
}

static void repair(struct model *m, int q, uint8_t timeout)
{
	for (int s = 0; s < 2; s++)
		expect_eq(act_state(m->side[s], q, IBV_QPS_RESET), 0);
	model_reset(m, q);
	random_connect(m, q, timeout);
	m->errors++;
}

/* A peer that is not ready any more is given up after the retry time. */
static void end_by_absence(struct model *m, int s, int q)
{
	const char *name = "peer that is not there";
	const int last = IBV_EVENT_QP_LAST_WQE_REACHED;
	struct work *w;

	if (pair_kind(q)->type != IBV_QPT_RC)
		return;
	repair(m, q, QUICK);
	expect_eq(act_state(m->side[!s], q, IBV_QPS_RESET), 0);
	w = model_work(m, s, q, model_op_named(dice(m, 2) ? "write" : "read"));
	w->expect = IBV_WC_RETRY_EXC_ERR;
	m->flow[s][q].broken = true;
	random_send(m, w);
	post_behind(m, s, q);
	wait_for_flush(m, q, name);
	expect_state(m, s, q, IBV_QPS_ERR, name);
	if (pair_kind(q)->srq)
		wait_for_events(m, s, q, &last, 1, name);
}

void random_error(struct model *m, int q)
{
	uint32_t which = dice(m, ERRORS + 2);
	const struct error *e;
	const struct pair_kind *k = pair_kind(q);
	int s = (int)dice(m, 2);
	bool unanswered;
	struct work *w;

	random_settle(m, q);
	if (which >= ERRORS) {
		(which == ERRORS ? end_by_program : end_by_absence)(m, s, q);
		repair(m, q, SLOW);
		return;
	}
	e = &errors[which];
	if (!(e->services >> k->type & 1))
		return;
	/* The only answer may be lost, for a queue pair in the error state gives no other. */
	unanswered = e->peer_fails && transport_under_test()->loses;
	if (unanswered)
		repair(m, q, LOSSY);
	w = model_work(m, s, q, model_op_named(e->op));
	if (!w)
		return;
	w->expect = e->status;
	w->or_unanswered = unanswered;
	if (w->lost || !e->spoil(m, w)) {
		model_drop(w);
		return;
	}
	/* Only what local memory is for is flushed, too, when the peer stays. */
	m->flow[s][q].broken = k->type == IBV_QPT_RC;
	m->flow[!s][q].broken = e->peer_fails;
	random_send(m, w);
	post_behind(m, s, q);
	check_consequences(m, e, s, q);
	repair(m, q, SLOW);
}
