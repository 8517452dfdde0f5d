/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state machine of a queue pair, row by row (InfiniBand specification
 * volume 1, table 91 in 11.2.5.2; ibv_modify_qp(3)). The queue pair is
 * connected to itself, so one side is enough.
 */
#include <errno.h>
#include <string.h>

#include "pair.h"

enum {
	PKEY = IBV_QP_PKEY_INDEX,
	PORT = IBV_QP_PORT,
	ACCESS = IBV_QP_ACCESS_FLAGS,
	QKEY = IBV_QP_QKEY,
	AV = IBV_QP_AV,
	MTU = IBV_QP_PATH_MTU,
	DEST = IBV_QP_DEST_QPN,
	RQPSN = IBV_QP_RQ_PSN,
	SQPSN = IBV_QP_SQ_PSN,
	RESP_RD = IBV_QP_MAX_DEST_RD_ATOMIC,
	INIT_RD = IBV_QP_MAX_QP_RD_ATOMIC,
	RNR_NAK = IBV_QP_MIN_RNR_TIMER,
	TIMEOUT = IBV_QP_TIMEOUT,
	RETRY = IBV_QP_RETRY_CNT,
	RNR = IBV_QP_RNR_RETRY,
	CUR = IBV_QP_CUR_STATE,
	ALT = IBV_QP_ALT_PATH,
	MIG = IBV_QP_PATH_MIG_STATE,
	NOTIFY = IBV_QP_EN_SQD_ASYNC_NOTIFY,
	CAP = IBV_QP_CAP,
};

/* Everything that ibv_modify_qp() knows besides the state itself. */
static const int every[] = { CUR,   NOTIFY, ACCESS, PKEY, PORT, QKEY,  AV,
			     MTU,   TIMEOUT, RETRY, RNR,  RQPSN, INIT_RD, ALT,
			     RNR_NAK, SQPSN, RESP_RD, MIG, CAP, DEST };
enum { EVERY = sizeof(every) / sizeof(every[0]) };

/* In the table, but there are no alternate paths: attributes.c. */
enum { REFUSED = ALT };

struct row {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int required, optional;
};

static const struct row rows[] = {
	{ IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0 },
	{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS },
	{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
	  AV | MTU | DEST | RQPSN | RESP_RD | RNR_NAK, ALT | ACCESS | PKEY },
	{ IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
	  TIMEOUT | RETRY | RNR | SQPSN | INIT_RD,
	  CUR | ALT | ACCESS | RNR_NAK | MIG },
	{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0,
	  CUR | ACCESS | ALT | MIG | RNR_NAK },
	{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  PORT | AV | TIMEOUT | RETRY | RNR | INIT_RD | RESP_RD | ALT | ACCESS |
		  PKEY | RNR_NAK | MIG },
	{ IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0,
	  CUR | ALT | ACCESS | RNR_NAK | MIG },
	{ IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0 },
	{ IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS },
	{ IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DEST | RQPSN,
	  ALT | ACCESS | PKEY },
	{ IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, SQPSN, CUR | ALT | ACCESS | MIG },
	{ IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG },
	{ IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  AV | ALT | ACCESS | PKEY | MIG },
	{ IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ALT | ACCESS | MIG },
	{ IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | ACCESS },
	{ IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | QKEY, 0 },
	{ IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | QKEY },
	{ IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, PKEY | QKEY },
	{ IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, SQPSN, CUR | QKEY },
	{ IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | QKEY },
	{ IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, PKEY | QKEY },
	{ IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | QKEY },
	{ IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | QKEY },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Good values for every attribute. */
static struct ibv_qp_attr values(const struct side *s, enum ibv_qp_state from,
				 enum ibv_qp_state to)
{
	struct ibv_ah_attr ah = {
		.is_global = 1, .dlid = 1, .port_num = 1,
		.grh = { .dgid = s->gid, .hop_limit = 64 },
	};

	return (struct ibv_qp_attr){
		.qp_state = to,
		.cur_qp_state = from,
		.path_mtu = IBV_MTU_2048,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = 0x1234,
		.rq_psn = 77,
		.sq_psn = 77,
		.dest_qp_num = s->qpn[0],
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
		.cap = { .max_send_wr = 10, .max_recv_wr = 10,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.ah_attr = ah,
		.alt_ah_attr = ah,
		.port_num = 1,
		.alt_port_num = 1,
		.max_rd_atomic = 3,
		.max_dest_rd_atomic = 2,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 5,
		.rnr_retry = 6,
	};
}

static const struct row *find_row(enum ibv_qp_type type, enum ibv_qp_state from,
				  enum ibv_qp_state to)
{
	for (int i = 0; i < ROWS; i++)
		if (rows[i].type == type && rows[i].from == from &&
		    rows[i].to == to)
			return &rows[i];
	return NULL;
}

#define OTHER_TABLE "its queue pairs make other changes of the state"

static void step(struct side *s, enum ibv_qp_type type, enum ibv_qp_state from,
		 enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = values(s, from, to);

	if (to == IBV_QPS_RTR)
		need_no_rnic(OTHER_TABLE);
	expect_eq(side_modify(s, 0, &attr, IBV_QP_STATE |
					   find_row(type, from, to)->required),
		  0);
	expect_eq(side_state(s, 0), to);
}

/* A message whose key is wrong puts the send queue of an unreliable service into
 * SQE. */
static void break_send_queue(struct side *s, enum ibv_qp_type type)
{
	struct send_req r = send_req(s, IBV_WR_SEND, 1, 0, 100);

	if (type == IBV_QPT_UD)
		r.ah = side_ah_to(s, &s->gid);
	r.remote_qpn = s->qpn[0];
	r.sge[0].lkey = 0;
	expect_eq(side_post_send(s, 0, &r, 1).ret, 0);
	expect_status(side_wait(s, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	if (type == IBV_QPT_UD)
		side_ah_destroy(s, r.ah);
	expect_eq(side_state(s, 0), IBV_QPS_SQE);
}

static void bring_to(struct side *s, enum ibv_qp_type type,
		     enum ibv_qp_state state)
{
	expect_eq(side_to_state(s, 0, IBV_QPS_RESET), 0);
	if (state == IBV_QPS_RESET)
		return;
	if (state == IBV_QPS_ERR) {
		expect_eq(side_to_state(s, 0, IBV_QPS_ERR), 0);
		return;
	}
	step(s, type, IBV_QPS_RESET, IBV_QPS_INIT);
	if (state == IBV_QPS_INIT)
		return;
	step(s, type, IBV_QPS_INIT, IBV_QPS_RTR);
	if (state == IBV_QPS_RTR)
		return;
	step(s, type, IBV_QPS_RTR, IBV_QPS_RTS);
	if (state == IBV_QPS_SQD)
		step(s, type, IBV_QPS_RTS, IBV_QPS_SQD);
	if (state == IBV_QPS_SQE)
		break_send_queue(s, type);
}

static void open_of(struct side *s, enum ibv_qp_type type)
{
	const struct side_options opt = { .type = type };

	side_open(s, &opt);
}

static void check_row(struct side *s, const struct row *row)
{
	struct ibv_qp_attr attr = values(s, row->from, row->to);

	bring_to(s, row->type, row->from);
	for (int i = 0; i < EVERY; i++) {
		int bit = every[i];
		int mask = IBV_QP_STATE | row->required;
		int error = EINVAL;
		bool good;

		if (bit & row->required) {
			mask &= ~bit;
			good = false;
		} else {
			mask |= bit;
			good = bit & row->optional & ~REFUSED;
			if (bit & row->optional & REFUSED)
				error = EOPNOTSUPP;
		}
		if (side_modify(s, 0, &attr, mask) != (good ? 0 : error))
			fail("type %d, %d -> %d with attributes 0x%x: %s",
			     row->type, row->from, row->to, mask,
			     good ? "refused" : "accepted");
		expect_eq(side_state(s, 0), good ? row->to : row->from);
		if (good)
			bring_to(s, row->type, row->from);
	}
	expect_eq(side_modify(s, 0, &attr,
			      (IBV_QP_STATE | row->required | row->optional) &
				      ~REFUSED), 0);
	expect_eq(side_state(s, 0), row->to);
}

static void check_type(struct pair *p, enum ibv_qp_type type)
{
	need_no_rnic(OTHER_TABLE);
	open_of(&p->a, type);
	for (int i = 0; i < ROWS; i++)
		if (rows[i].type == type)
			check_row(&p->a, &rows[i]);
}

static void every_transition_of_rc_takes_what_the_table_says(struct pair *p)
{
	check_type(p, IBV_QPT_RC);
}

static void every_transition_of_uc_takes_what_the_table_says(struct pair *p)
{
	check_type(p, IBV_QPT_UC);
}

static void every_transition_of_ud_takes_what_the_table_says(struct pair *p)
{
	check_type(p, IBV_QPT_UD);
}

static void check_missing_rows(struct pair *p, enum ibv_qp_type type)
{
	static const enum ibv_qp_state from[] = {
		IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
		IBV_QPS_SQD,   IBV_QPS_ERR,  IBV_QPS_SQE,
	};
	static const enum ibv_qp_state to[] = { IBV_QPS_INIT, IBV_QPS_RTR,
						IBV_QPS_RTS, IBV_QPS_SQD,
						IBV_QPS_SQE };
	struct side *s = &p->a;

	need_no_rnic(OTHER_TABLE);
	open_of(s, type);
	for (int f = 0; f < 7; f++) {
		if (from[f] == IBV_QPS_SQE && type == IBV_QPT_RC)
			continue;
		for (int t = 0; t < 5; t++) {
			struct ibv_qp_attr attr = values(s, from[f], to[t]);
			const struct row *like;

			if (find_row(type, from[f], to[t]))
				continue;
			bring_to(s, type, from[f]);
			expect_eq(side_modify(s, 0, &attr, IBV_QP_STATE), EINVAL);
			/* With what another way to that state requires. */
			for (int i = 0; i < ROWS; i++) {
				like = &rows[i];
				if (like->type == type && like->to == to[t])
					expect_eq(side_modify(s, 0, &attr,
							IBV_QP_STATE |
							like->required), EINVAL);
			}
			expect_eq(side_state(s, 0), from[f]);
		}
	}
}

static void what_is_not_in_the_table_is_refused_for_rc(struct pair *p)
{
	check_missing_rows(p, IBV_QPT_RC);
}

static void what_is_not_in_the_table_is_refused_for_uc(struct pair *p)
{
	check_missing_rows(p, IBV_QPT_UC);
}

static void what_is_not_in_the_table_is_refused_for_ud(struct pair *p)
{
	check_missing_rows(p, IBV_QPT_UD);
}

/* ---- of an RNIC ---- */

static void bring_rnic_to(struct pair *p, enum ibv_qp_state state)
{
	pair_reset_qp(p, 0);
	if (state == IBV_QPS_INIT)
		expect_eq(side_to_init(&p->a, 0, 0), 0);
	else if (state == IBV_QPS_RTS)
		pair_connect_qp(p, 0);
	else if (state == IBV_QPS_ERR)
		expect_eq(side_to_state(&p->a, 0, IBV_QPS_ERR), 0);
}

/* Without other attributes, and with each of them. */
static void check_of_rnic(struct pair *p, enum ibv_qp_state from, enum ibv_qp_state to)
{
	const bool end = to == IBV_QPS_RESET || to == IBV_QPS_ERR;
	const bool good = end || to == from || (from == IBV_QPS_RESET && to == IBV_QPS_INIT);
	const int optional = end ? CUR : CUR | ACCESS | PKEY | PORT;

	for (int i = -1; i < EVERY; i++) {
		int bit = i < 0 ? 0 : every[i];
		bool taken = good && !(bit & ~optional);
		struct ibv_qp_attr attr;

		bring_rnic_to(p, from);
		attr = values(&p->a, from, to);
		if (side_modify(&p->a, 0, &attr, IBV_QP_STATE | bit) != (taken ? 0 : EINVAL))
			fail("%d -> %d with attributes 0x%x: %s", from, to, (unsigned)bit,
			     taken ? "refused" : "accepted");
		expect_eq(side_state(&p->a, 0), taken ? to : from);
	}
}

/* RTS is reached by a stream alone. */
static void an_rnic_makes_few_changes_of_the_state(struct pair *p)
{
	static const enum ibv_qp_state from[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTS,
						  IBV_QPS_ERR };

	if (!transport_under_test()->streams)
		exit(77);
	pair_open(p, NULL);
	for (int i = 0; i < 4; i++)
		for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++)
			check_of_rnic(p, from[i], (enum ibv_qp_state)to);
}

/* ---- others ---- */

static void reset_and_error_are_reached_from_every_state(struct pair *p)
{
	static const enum ibv_qp_state from[] = { IBV_QPS_INIT, IBV_QPS_RTR,
						  IBV_QPS_RTS, IBV_QPS_SQD,
						  IBV_QPS_ERR };

	side_open(&p->a, NULL);
	for (int i = 0; i < 5; i++) {
		bring_to(&p->a, IBV_QPT_RC, from[i]);
		expect_eq(side_to_state(&p->a, 0, IBV_QPS_ERR), 0);
		expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
		expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
		bring_to(&p->a, IBV_QPT_RC, from[i]);
		expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
		expect_eq(side_state(&p->a, 0), IBV_QPS_RESET);
	}
}

static void a_wrong_current_state_is_refused(struct pair *p)
{
	struct ibv_qp_attr attr;

	side_open(&p->a, NULL);
	bring_to(&p->a, IBV_QPT_RC, IBV_QPS_RTR);
	attr = values(&p->a, IBV_QPS_RTS, IBV_QPS_RTS);
	expect_eq(side_modify(&p->a, 0, &attr,
			      IBV_QP_STATE | CUR | TIMEOUT | RETRY | RNR |
				      SQPSN | INIT_RD), EINVAL);
	expect_eq(side_state(&p->a, 0), IBV_QPS_RTR);
}

static void refuse_value(struct side *s, enum ibv_qp_state from, int bit,
			 struct ibv_qp_attr attr)
{
	enum ibv_qp_state to = attr.qp_state;
	const struct row *row = find_row(IBV_QPT_RC, from, to);

	if (!((row->required | row->optional) & bit))
		fail("test error");
	bring_to(s, IBV_QPT_RC, from);
	if (side_modify(s, 0, &attr, IBV_QP_STATE | row->required | bit) !=
	    EINVAL)
		fail("attribute 0x%x: a value out of range was taken", bit);
	expect_eq(side_state(s, 0), from);
}

static void values_out_of_range_are_refused(struct pair *p)
{
	struct side *s = &p->a;
	struct ibv_qp_attr a, good_init, good_rtr, good_rts;

	side_open(s, NULL);
	good_init = values(s, IBV_QPS_RESET, IBV_QPS_INIT);
	good_rtr = values(s, IBV_QPS_INIT, IBV_QPS_RTR);
	good_rts = values(s, IBV_QPS_RTR, IBV_QPS_RTS);
#define REFUSE(from, bit, good, ...)                                     \
	(a = (good), __VA_ARGS__, refuse_value(s, IBV_QPS_##from, bit, a))
	REFUSE(RESET, PORT, good_init, a.port_num = 0);
	REFUSE(RESET, PORT, good_init, a.port_num = 2);
	REFUSE(RESET, PKEY, good_init, a.pkey_index = 1);
	REFUSE(INIT, MTU, good_rtr, a.path_mtu = 0);
	REFUSE(INIT, MTU, good_rtr, a.path_mtu = 6);
	REFUSE(INIT, RNR_NAK, good_rtr, a.min_rnr_timer = 32);
	REFUSE(INIT, RESP_RD, good_rtr, a.max_dest_rd_atomic = 255);
	REFUSE(INIT, DEST, good_rtr, a.dest_qp_num = 1 << 24);
	REFUSE(INIT, AV, good_rtr, a.ah_attr.port_num = 2);
	REFUSE(INIT, AV, good_rtr, a.ah_attr.grh.sgid_index = 250);
	REFUSE(RTR, TIMEOUT, good_rts, a.timeout = 32);
	REFUSE(RTR, RETRY, good_rts, a.retry_cnt = 8);
	REFUSE(RTR, RNR, good_rts, a.rnr_retry = 8);
	REFUSE(RTR, INIT_RD, good_rts, a.max_rd_atomic = 255);
}

/* All that a region may have, and FLUSH, which later versions of the interface have. */
static void each_access_right_is_taken_or_refused(struct pair *p)
{
	const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };
	const unsigned known = 0x3ff | IBV_ACCESS_OPTIONAL_RANGE;
	const int services = transport_under_test()->streams ? 1 : 2;
	struct side *s = &p->a;
	struct ibv_qp_attr a, q;

	for (int i = 0; i < services * 33; i++) {
		unsigned bit = i % 33 < 32 ? 1u << i % 33 : known;
		bool taken = !(bit & ~known);

		if (i % 33 == 0) {
			if (i)
				side_close(s);
			open_of(s, types[i / 33]);
		}
		bring_to(s, types[i / 33], IBV_QPS_RESET);
		a = values(s, IBV_QPS_RESET, IBV_QPS_INIT);
		a.qp_access_flags = bit;
		expect_eq(side_modify(s, 0, &a, IBV_QP_STATE | PKEY | PORT | ACCESS),
			  taken ? 0 : EINVAL);
		side_query(s, 0, &q, NULL);
		expect_eq(q.qp_access_flags, taken ? bit : 0);
		expect_eq(side_state(s, 0), taken ? IBV_QPS_INIT : IBV_QPS_RESET);
	}
}

static void query_returns_what_was_set(struct pair *p)
{
	const struct side_options opt = { .send_wr = 10, .recv_wr = 20,
					  .sges = 3, .inline_bytes = 64,
					  .sig_all = true };
	struct side *s = &p->a;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr q, v;

	side_open(s, &opt);
	bring_to(s, IBV_QPT_RC, IBV_QPS_RTS);
	v = values(s, IBV_QPS_RTR, IBV_QPS_RTS);
	side_query(s, 0, &q, &init);
	expect_eq(q.qp_state, IBV_QPS_RTS);
	expect_eq(q.cur_qp_state, IBV_QPS_RTS);
	expect_eq(q.path_mtu, v.path_mtu);
	expect_eq(q.rq_psn, v.rq_psn);
	expect_eq(q.sq_psn, v.sq_psn);
	expect_eq(q.dest_qp_num, v.dest_qp_num);
	expect_eq(q.qp_access_flags, v.qp_access_flags);
	expect_eq(q.pkey_index, 0);
	expect_eq(q.port_num, 1);
	expect_eq(q.max_rd_atomic, v.max_rd_atomic);
	expect_eq(q.max_dest_rd_atomic, v.max_dest_rd_atomic);
	expect_eq(q.min_rnr_timer, v.min_rnr_timer);
	expect_eq(q.timeout, v.timeout);
	expect_eq(q.retry_cnt, v.retry_cnt);
	expect_eq(q.rnr_retry, v.rnr_retry);
	expect_eq(q.sq_draining, 0);
	expect_eq(q.ah_attr.is_global, 1);
	expect_eq(q.ah_attr.port_num, 1);
	expect_eq(q.ah_attr.grh.hop_limit, 64);
	expect(!memcmp(q.ah_attr.grh.dgid.raw, s->gid.raw, 16));
	expect(q.cap.max_send_wr >= 10 && q.cap.max_recv_wr >= 20);
	expect(q.cap.max_send_sge >= 3 && q.cap.max_recv_sge >= 3);
	expect(q.cap.max_inline_data >= 64);
	expect_eq(init.qp_type, IBV_QPT_RC);
	expect_eq(init.sq_sig_all, 1);
	expect(init.send_cq == s->end->cq[SEND_CQ]);
	expect(init.recv_cq == s->end->cq[RECV_CQ]);
	expect(!memcmp(&init.cap, &q.cap, sizeof(q.cap)));
	/* The structure that programs look at without a query. */
	expect_eq(s->end->qp[0]->state, IBV_QPS_RTS);
	expect_eq(s->end->qp[0]->qp_type, IBV_QPT_RC);
}

static void query_returns_the_qkey_of_a_datagram_queue_pair(struct pair *p)
{
	struct ibv_qp_attr q = { .qkey = 0x5555 };

	open_of(&p->a, IBV_QPT_UD);
	bring_to(&p->a, IBV_QPT_UD, IBV_QPS_RTS);
	expect_eq(side_modify(&p->a, 0, &q, QKEY), 0);
	side_query(&p->a, 0, &q, NULL);
	expect_eq(q.qkey, 0x5555);
	expect_eq(q.sq_psn, 77);
}

static void the_public_state_follows_an_error(struct pair *p)
{
	struct send_req r;

	side_open(&p->a, NULL);
	bring_to(&p->a, IBV_QPT_RC, IBV_QPS_RTS);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 8);
	r.sge[0].lkey = 0;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
	expect_eq(p->a.end->qp[0]->state, IBV_QPS_ERR);
}

static int drain(struct side *s, int mask, uint8_t notify)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = notify };

	need_no_rnic("it has no state SQD");
	return side_modify(s, 0, &attr, IBV_QP_STATE | mask);
}

static void draining_finishes_old_sends_holds_new_ones_and_reports(struct pair *p)
{
	struct ibv_qp_attr q;

	pair_start(p, NULL);
	for (uint64_t i = 0; i < 3; i++)
		side_send(&p->a, i, 0, 100);
	expect_eq(drain(&p->a, NOTIFY, 1), 0);
	side_query(&p->a, 0, &q, NULL);
	expect_eq(q.qp_state, IBV_QPS_SQD);
	expect_eq(q.sq_draining, 1);
	side_send(&p->a, 7, 0, 100);
	expect_eq(side_async(&p->a, QUIET_MS), -1);
	for (uint64_t i = 0; i < 5; i++)
		side_recv(&p->b, i, 0, 100);
	for (uint64_t i = 0; i < 3; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	expect_eq(side_async(&p->a, WAIT_MS), IBV_EVENT_SQ_DRAINED);
	side_query(&p->a, 0, &q, NULL);
	expect_eq(q.sq_draining, 0);
	side_expect_none(&p->a, SEND_CQ);
	/* Receiving goes on. */
	side_recv(&p->a, 20, 0, 100);
	side_send(&p->b, 21, 1000, 100);
	side_wait_ok(&p->a, RECV_CQ, 20);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RTS), 0);
	side_wait_ok(&p->a, SEND_CQ, 7);
	expect_eq(side_async(&p->a, 0), -1);
}

static void draining_needs_no_poll(struct pair *p)
{
	struct send_req r[3];
	struct ibv_qp_attr q;

	pair_start(p, NULL);
	for (uint64_t i = 0; i < 3; i++) {
		r[i] = send_req(&p->a, IBV_WR_SEND, i, 0, 100);
		r[i].flags = 0;
	}
	for (int round = 0; round < 4; round++) {
		/* With the end of the messages behind the change and before it; twice, as the
		 * progress thread looks after a new link for a while anyway. */
		bool before = round % 2;

		if (before)
			for (uint64_t i = 0; i < 3; i++)
				side_recv(&p->b, i, 0, 100);
		expect_eq(side_post_send(&p->a, 0, r, 3).ret, 0);
		if (before)
			for (uint64_t i = 0; i < 3; i++)
				side_wait_ok(&p->b, RECV_CQ, i);
		expect_eq(drain(&p->a, NOTIFY, 1), 0);
		if (!before)
			for (uint64_t i = 0; i < 3; i++)
				side_recv(&p->b, i, 0, 100);
		expect_eq(side_async(&p->a, WAIT_MS), IBV_EVENT_SQ_DRAINED);
		side_query(&p->a, 0, &q, NULL);
		expect_eq(q.sq_draining, 0);
		if (!before)
			for (uint64_t i = 0; i < 3; i++)
				side_wait_ok(&p->b, RECV_CQ, i);
		expect_eq(side_to_state(&p->a, 0, IBV_QPS_RTS), 0);
	}
}

static void draining_an_idle_queue_reports_at_once(struct pair *p)
{
	pair_start(p, NULL);
	expect_eq(drain(&p->a, NOTIFY, 1), 0);
	expect_eq(side_async(&p->a, WAIT_MS), IBV_EVENT_SQ_DRAINED);
}

static void draining_reports_only_when_asked_to(struct pair *p)
{
	pair_start(p, NULL);
	/* The field without its bit in the mask says nothing. */
	expect_eq(drain(&p->a, 0, 1), 0);
	expect_eq(side_async(&p->a, QUIET_MS), -1);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RTS), 0);
	expect_eq(drain(&p->a, NOTIFY, 0), 0);
	expect_eq(side_async(&p->a, QUIET_MS), -1);
}

#define TABLE "IBTA 11.2.5.2"
#define MODIFY "ibv_modify_qp(3)"
#define QUERY "ibv_query_qp(3)"
#define DRAIN "IBTA 10.3.1.5"
static const struct test_case cases[] = {
	RULE_IN(ONLY_ONE_PROCESS, TABLE,
		every_transition_of_rc_takes_what_the_table_says),
	RULE_IN(ONLY_ONE_PROCESS, TABLE,
		every_transition_of_uc_takes_what_the_table_says),
	RULE_IN(ONLY_ONE_PROCESS, TABLE,
		every_transition_of_ud_takes_what_the_table_says),
	RULE_IN(ONLY_ONE_PROCESS, TABLE,
		what_is_not_in_the_table_is_refused_for_rc),
	RULE_IN(ONLY_ONE_PROCESS, TABLE,
		what_is_not_in_the_table_is_refused_for_uc),
	RULE_IN(ONLY_ONE_PROCESS, TABLE,
		what_is_not_in_the_table_is_refused_for_ud),
	CASE_IN(ONLY_ONE_PROCESS, an_rnic_makes_few_changes_of_the_state),
	RULE_IN(ONLY_ONE_PROCESS, TABLE,
		reset_and_error_are_reached_from_every_state),
	RULE_IN(ONLY_ONE_PROCESS, MODIFY, a_wrong_current_state_is_refused),
	CASE_IN(ONLY_ONE_PROCESS, each_access_right_is_taken_or_refused),
	RULE_IN(ONLY_ONE_PROCESS, MODIFY, values_out_of_range_are_refused),
	RULE_IN(ONLY_ONE_PROCESS, QUERY, query_returns_what_was_set),
	RULE_IN(ONLY_ONE_PROCESS, QUERY,
		query_returns_the_qkey_of_a_datagram_queue_pair),
	RULE_IN(ONLY_ONE_PROCESS, QUERY, the_public_state_follows_an_error),
	RULE(DRAIN, draining_finishes_old_sends_holds_new_ones_and_reports),
	RULE(DRAIN, draining_an_idle_queue_reports_at_once),
	RULE(DRAIN, draining_reports_only_when_asked_to),
	RULE(DRAIN, draining_needs_no_poll),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
