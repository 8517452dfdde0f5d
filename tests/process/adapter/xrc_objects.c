/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of extended reliable connections: creation, states, sharing and
 * destruction (ibv_create_qp_ex(3), ibv_create_srq_ex(3), ibv_open_qp(3),
 * ibv_modify_qp(3); InfiniBand specification volume 1, annex A14).
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "xrc_help.h"

/* In one process: the side's own objects, by the verbs themselves. */
struct world {
	struct end *e;
	struct ibv_xrcd *xrcd, *other;
	struct ibv_srq_init_attr_ex srq;
	struct ibv_qp_init_attr_ex ini, tgt;
};

static struct ibv_xrcd *private_domain(struct end *e)
{
	struct ibv_xrcd_init_attr a = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(e->ctx, &a);
}

static struct world world_open(struct pair *p)
{
	struct world w = { .e = p->a.end };

	side_open(&p->a, NULL);
	w.xrcd = private_domain(w.e);
	w.other = private_domain(w.e);
	expect(w.xrcd && w.other);
	w.srq = (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = w.e->pd,
		.xrcd = w.xrcd,
		.cq = w.e->cq[RECV_CQ],
	};
	w.ini = (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = w.e->pd,
		.send_cq = w.e->cq[SEND_CQ],
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	w.tgt = (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = w.xrcd,
	};
	return w;
}

static void world_close(struct world *w)
{
	expect_eq(ibv_close_xrcd(w->xrcd), 0);
	expect_eq(ibv_close_xrcd(w->other), 0);
}

#define REFUSED(error, call)              \
	do {                              \
		errno = 0;                \
		expect(!(call));          \
		expect_eq(errno, error);  \
	} while (0)

static void incomplete_descriptions_are_refused(struct pair *p)
{
	struct world w = world_open(p);
	struct ibv_srq_init_attr_ex s;
	struct ibv_qp_init_attr_ex q;
	struct ibv_xrcd_init_attr x = { .comp_mask = IBV_XRCD_INIT_ATTR_FD,
					.fd = -1 };
	struct ibv_qp_init_attr plain = { .qp_type = IBV_QPT_XRC_RECV,
					  .send_cq = w.e->cq[0],
					  .recv_cq = w.e->cq[1] };

	REFUSED(EINVAL, ibv_open_xrcd(w.e->ctx, &x));
	x = (struct ibv_xrcd_init_attr){ .comp_mask = 3, .fd = 1 << 20 };
	REFUSED(EBADF, ibv_open_xrcd(w.e->ctx, &x));
#define TRY_SRQ(error, change) \
	(s = w.srq, change, REFUSED_SRQ(error))
#define REFUSED_SRQ(error)                                           \
	({                                                           \
		REFUSED(error, ibv_create_srq_ex(w.e->ctx, &s));     \
		0;                                                   \
	})
	TRY_SRQ(EINVAL, s.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_XRCD);
	TRY_SRQ(EINVAL, s.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ);
	TRY_SRQ(EINVAL, s.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_PD);
	TRY_SRQ(EINVAL, s.attr.max_wr = 0);
	TRY_SRQ(EINVAL, s.attr.max_sge = 1000);
	TRY_SRQ(EOPNOTSUPP, s.srq_type = IBV_SRQT_TM);
	TRY_SRQ(EOPNOTSUPP, s.comp_mask |= IBV_SRQ_INIT_ATTR_TM);
	q = w.tgt;
	q.comp_mask = IBV_QP_INIT_ATTR_PD;
	q.pd = w.e->pd;
	REFUSED(EINVAL, ibv_create_qp_ex(w.e->ctx, &q));
	REFUSED(EINVAL, ibv_create_qp(w.e->pd, &plain));
	q = w.ini;
	q.send_cq = NULL;
	REFUSED(EINVAL, ibv_create_qp_ex(w.e->ctx, &q));
	q = w.ini;
	q.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	q.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW;
	REFUSED(EOPNOTSUPP, ibv_create_qp_ex(w.e->ctx, &q));
	world_close(&w);
}

static void what_is_in_use_stays(struct pair *p)
{
	struct world w = world_open(p);
	struct ibv_srq *srq = ibv_create_srq_ex(w.e->ctx, &w.srq);
	struct ibv_qp *tgt;

	expect(srq);
	expect_eq(ibv_close_xrcd(w.xrcd), EBUSY);
	expect_eq(ibv_destroy_cq(w.e->cq[RECV_CQ]), EBUSY);
	expect_eq(ibv_destroy_srq(srq), 0);
	tgt = ibv_create_qp_ex(w.e->ctx, &w.tgt);
	expect(tgt);
	expect_eq(ibv_close_xrcd(w.xrcd), EBUSY);
	expect_eq(ibv_destroy_qp(tgt), 0);
	world_close(&w);
}

static void only_xrc_queues_have_numbers(struct pair *p)
{
	struct world w = world_open(p);
	struct ibv_srq_init_attr_ex s = w.srq;
	struct ibv_srq *basic, *srq[2];
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = w.e->cq[SEND_CQ],
		.recv_cq = w.e->cq[RECV_CQ],
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	uint32_t number, numbers[2];

	s.srq_type = IBV_SRQT_BASIC;
	s.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	basic = ibv_create_srq_ex(w.e->ctx, &s);
	expect(basic);
	expect_eq(ibv_get_srq_num(basic, &number), EINVAL);
	for (int i = 0; i < 2; i++) {
		srq[i] = ibv_create_srq_ex(w.e->ctx, &w.srq);
		expect(srq[i]);
		expect_eq(ibv_get_srq_num(srq[i], &numbers[i]), 0);
		expect(numbers[i] < 1u << 24);
	}
	expect(numbers[0] != numbers[1]);
	/* Queue pairs are attached to basic ones. */
	init.srq = srq[0];
	REFUSED(EINVAL, ibv_create_qp(w.e->pd, &init));
	expect_eq(ibv_destroy_srq(basic), 0);
	for (int i = 0; i < 2; i++)
		expect_eq(ibv_destroy_srq(srq[i]), 0);
	world_close(&w);
}

static void halves_refuse_what_the_other_does(struct pair *p)
{
	struct world w = world_open(p);
	struct ibv_qp *ini = ibv_create_qp_ex(w.e->ctx, &w.ini);
	struct ibv_qp *tgt = ibv_create_qp_ex(w.e->ctx, &w.tgt);
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_send_wr *bad_send, send = { .opcode = IBV_WR_SEND };
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 1 };

	expect(ini && tgt);
	for (int i = 0; i < 2; i++)
		expect_eq(ibv_modify_qp(i ? ini : tgt, &init,
					IBV_QP_STATE | IBV_QP_PKEY_INDEX |
						IBV_QP_PORT |
						IBV_QP_ACCESS_FLAGS), 0);
	expect_eq(ibv_post_recv(ini, &recv, &bad_recv), EINVAL);
	expect(bad_recv == &recv);
	expect_eq(ibv_post_recv(tgt, &recv, &bad_recv), EINVAL);
	init.qp_state = IBV_QPS_ERR;
	expect_eq(ibv_modify_qp(tgt, &init, IBV_QP_STATE), 0);
	expect_eq(ibv_post_send(tgt, &send, &bad_send), EINVAL);
	expect(bad_send == &send);
	expect_eq(ibv_destroy_qp(ini), 0);
	expect_eq(ibv_destroy_qp(tgt), 0);
	world_close(&w);
}

/* ---- states ---- */

enum {
	INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       IBV_QP_ACCESS_FLAGS,
	RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	      IBV_QP_RQ_PSN,
	RTR_TGT = RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	RTS_TGT = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
	RTS = RTS_TGT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	      IBV_QP_MAX_QP_RD_ATOMIC,
};

/* Every single required attribute is missed, and one too many is refused. */
static void step(struct ibv_qp *qp, struct ibv_qp_attr *attr,
		 enum ibv_qp_state state, int mask)
{
	attr->qp_state = state;
	for (int bit = 1; bit < 1 << 21; bit <<= 1)
		if ((mask & bit) && bit != IBV_QP_STATE)
			expect_eq(ibv_modify_qp(qp, attr, mask & ~bit), EINVAL);
	expect_eq(ibv_modify_qp(qp, attr, mask | IBV_QP_QKEY), EINVAL);
	expect_eq(ibv_modify_qp(qp, attr, mask), 0);
}

static void each_half_needs_its_own_attributes(struct pair *p)
{
	struct world w = world_open(p);
	struct ibv_qp *ini = ibv_create_qp_ex(w.e->ctx, &w.ini);
	struct ibv_qp *tgt = ibv_create_qp_ex(w.e->ctx, &w.tgt);
	struct ibv_qp_attr attr = {
		.port_num = 1, .path_mtu = IBV_MTU_1024, .timeout = 14,
		.ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1,
			     .grh = { .dgid = p->a.gid } },
	};
	struct ibv_qp_init_attr init;

	expect(ini && tgt);
	attr.dest_qp_num = tgt->qp_num;
	step(ini, &attr, IBV_QPS_INIT, INIT);
	step(ini, &attr, IBV_QPS_RTR, RTR);
	step(ini, &attr, IBV_QPS_RTS, RTS);
	attr.dest_qp_num = ini->qp_num;
	step(tgt, &attr, IBV_QPS_INIT, INIT);
	step(tgt, &attr, IBV_QPS_RTR, RTR_TGT);
	step(tgt, &attr, IBV_QPS_RTS, RTS_TGT);
	expect_eq(ibv_query_qp(tgt, &attr, IBV_QP_STATE, &init), 0);
	expect_eq(attr.qp_state, IBV_QPS_RTS);
	expect_eq(attr.dest_qp_num, ini->qp_num);
	expect_eq(init.qp_type, IBV_QPT_XRC_RECV);
	expect_eq(ibv_destroy_qp(ini), 0);
	expect_eq(ibv_destroy_qp(tgt), 0);
	world_close(&w);
}

/* Programs give both halves the same attributes; those of the other half are not
 * looked at, as by the kernel's verbs. */
static void attributes_of_the_other_half_are_passed_over(struct pair *p)
{
	struct world w = world_open(p);
	struct ibv_qp *ini = ibv_create_qp_ex(w.e->ctx, &w.ini);
	struct ibv_qp *tgt = ibv_create_qp_ex(w.e->ctx, &w.tgt);
	struct ibv_qp_attr attr = {
		.port_num = 1, .path_mtu = IBV_MTU_1024, .timeout = 14,
		.ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1,
			     .grh = { .dgid = p->a.gid } },
	};

	expect(ini && tgt);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp *qp = i ? ini : tgt;

		attr.qp_state = IBV_QPS_INIT;
		expect_eq(ibv_modify_qp(qp, &attr, INIT), 0);
		attr.qp_state = IBV_QPS_RTR;
		expect_eq(ibv_modify_qp(qp, &attr, RTR_TGT), 0);
		attr.qp_state = IBV_QPS_RTS;
		expect_eq(ibv_modify_qp(qp, &attr, RTS), 0);
		expect_eq(ibv_destroy_qp(qp), 0);
	}
	world_close(&w);
}

/* ---- sharing ---- */

static struct ibv_qp *open_target(struct end *e, struct ibv_xrcd *xrcd,
				  uint32_t number, void *context)
{
	struct ibv_qp_open_attr a = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = number,
		.xrcd = xrcd,
		.qp_context = context,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(e->ctx, &a);
}

static void an_opened_target_is_the_same_queue_pair(struct pair *p)
{
	struct world w = world_open(p);
	struct ibv_qp *ini = ibv_create_qp_ex(w.e->ctx, &w.ini);
	struct ibv_qp *tgt = ibv_create_qp_ex(w.e->ctx, &w.tgt), *second;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init;
	uint32_t number;

	expect(ini && tgt);
	number = tgt->qp_num;
	REFUSED(EINVAL, open_target(w.e, w.other, number, NULL));
	REFUSED(EINVAL, open_target(w.e, w.xrcd, ini->qp_num, NULL));
	REFUSED(EINVAL, open_target(w.e, w.xrcd, number + 100, NULL));
	second = open_target(w.e, w.xrcd, number, &w);
	expect(second && second != tgt);
	expect_eq(second->qp_num, number);
	expect(second->qp_context == &w);
	/* One changes it, the other sees it; it outlives the first. */
	expect_eq(ibv_modify_qp(second, &attr, INIT), 0);
	expect_eq(ibv_query_qp(tgt, &attr, IBV_QP_STATE, &init), 0);
	expect_eq(attr.qp_state, IBV_QPS_INIT);
	expect_eq(ibv_destroy_qp(tgt), 0);
	expect_eq(ibv_close_xrcd(w.xrcd), EBUSY);
	expect_eq(ibv_query_qp(second, &attr, IBV_QP_STATE, &init), 0);
	expect_eq(attr.qp_state, IBV_QPS_INIT);
	expect_eq(ibv_destroy_qp(second), 0);
	REFUSED(EINVAL, open_target(w.e, w.xrcd, number, NULL));
	expect_eq(ibv_destroy_qp(ini), 0);
	world_close(&w);
}

struct sharing {
	char path[64];
	uint32_t number;
	int error;
};

static int at_open_foreign(struct end *e, void *arg)
{
	struct sharing *s = arg;
	int fd = open(s->path, O_RDONLY | O_CLOEXEC);
	struct ibv_xrcd_init_attr x = { .comp_mask = 3, .fd = fd };
	struct ibv_xrcd *xrcd = ibv_open_xrcd(e->ctx, &x);
	struct ibv_qp *qp;

	close(fd);
	if (!xrcd)
		return -1;
	qp = open_target(e, xrcd, s->number, NULL);
	s->error = qp ? 0 : errno;
	if (qp)
		ibv_destroy_qp(qp);
	return ibv_close_xrcd(xrcd);
}

static void a_target_of_another_process_is_not_opened(struct pair *p)
{
	struct x_file f;
	struct sharing s = { .error = 0 };
	struct x a;

	x_file_make(&f);
	pair_open(p, NULL);
	x_open(p, &p->a, &a, f.path);
	memcpy(s.path, f.path, sizeof(s.path));
	s.number = a.tgt;
	expect_eq(side_run(&p->b, at_open_foreign, &s, sizeof(s)), 0);
	expect_eq(s.error, p->two_processes ? EOPNOTSUPP : 0);
	x_close(&a);
	x_file_end(&f);
}

static struct ibv_qp *next_event_of(struct end *e, enum ibv_event_type type)
{
	struct pollfd f = { .fd = e->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	expect_eq(poll(&f, 1, WAIT_MS), 1);
	expect_eq(ibv_get_async_event(e->ctx, &event), 0);
	expect_eq(event.event_type, type);
	ibv_ack_async_event(&event);
	return event.element.qp;
}

static void events_of_a_target_come_to_all_who_have_it_open(struct pair *p)
{
	struct x a, b;
	struct end *e = p->b.end;
	struct ibv_qp *second, *seen[2];

	x_start(p, &a, &b);
	second = open_target(e, x_domain(&b), b.tgt, NULL);
	expect(second);
	x_send(&a, a.srqn[0], 1, 0, 8); /* not of the target's domain */
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_ACCESS_ERR);
	for (int i = 0; i < 2; i++)
		seen[i] = next_event_of(e, IBV_EVENT_QP_ACCESS_ERR);
	expect(seen[0] != seen[1]);
	expect(seen[0] == second || seen[1] == second);
	expect_eq(seen[0]->qp_num, seen[1]->qp_num);
	expect_eq(ibv_destroy_qp(second), 0);
	x_end(&a, &b);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		RULE_IN(ONLY_ONE_PROCESS, "ibv_create_srq_ex(3)",
			incomplete_descriptions_are_refused),
		RULE_IN(ONLY_ONE_PROCESS, "ibv_open_xrcd(3)",
			what_is_in_use_stays),
		RULE_IN(ONLY_ONE_PROCESS, "ibv_get_srq_num(3)",
			only_xrc_queues_have_numbers),
		RULE_IN(ONLY_ONE_PROCESS, "IBTA A14",
			halves_refuse_what_the_other_does),
		RULE_IN(ONLY_ONE_PROCESS, "ibv_modify_qp(3)",
			each_half_needs_its_own_attributes),
		RULE_IN(ONLY_ONE_PROCESS, "ibv_modify_qp(3)",
			attributes_of_the_other_half_are_passed_over),
		RULE_IN(ONLY_ONE_PROCESS, "ibv_open_qp(3)",
			an_opened_target_is_the_same_queue_pair),
		RULE("ibv_open_qp(3)", a_target_of_another_process_is_not_opened),
		RULE_IN(ONLY_ONE_PROCESS, "ibv_open_qp(3)",
			events_of_a_target_come_to_all_who_have_it_open),
	};

	return RUN_CASES(argc, argv, cases);
}
