/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is destroyed twice, or used when it is destroyed, is refused with EINVAL and
 * nothing happens, whatever stands in the object's memory by then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

/* Allocations in between take the places of what was freed. */
static void stir(void)
{
	void *blocks[64];

	for (unsigned i = 0; i < 64; i++) {
		blocks[i] = malloc(24 + 16 * i);
		memset(blocks[i], 0xa5, 24 + 16 * i);
	}
	for (unsigned i = 0; i < 64; i++)
		free(blocks[i]);
}

#define TWICE(destroy)                     \
	do {                               \
		expect_eq(destroy, 0);     \
		expect_eq(destroy, EINVAL); \
		stir();                    \
		expect_eq(destroy, EINVAL); \
	} while (0)

static struct ibv_qp *create_qp(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = e->cq[0], .recv_cq = e->cq[1],
		.cap = { 4, 4, 1, 1, 0 },
	};

	return ibv_create_qp(e->pd, &init);
}

static void objects_are_destroyed_once(struct pair *p)
{
	struct ibv_srq_init_attr srq_init = { .attr = { 4, 1, 0 } };
	struct ibv_ah_attr ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1 };
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_xrcd_init_attr xrcd_attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
	};
	struct ibv_comp_channel *channel;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_dm *dm;
	struct ibv_td *td;
	struct end *e;

	side_open(&p->a, NULL);
	e = p->a.end;
	pd = ibv_alloc_pd(e->ctx);
	TWICE(ibv_dealloc_pd(pd));
	channel = ibv_create_comp_channel(e->ctx);
	TWICE(ibv_destroy_comp_channel(channel));
	cq = ibv_create_cq(e->ctx, 4, NULL, NULL, 0);
	TWICE(ibv_destroy_cq(cq));
	qp = create_qp(e);
	TWICE(ibv_destroy_qp(qp));
	srq = ibv_create_srq(e->pd, &srq_init);
	TWICE(ibv_destroy_srq(srq));
	mr = ibv_reg_mr(e->pd, e->buffer, 64, 0);
	TWICE(ibv_dereg_mr(mr));
	if (!transport_under_test()->streams) { /* an RNIC has neither */
		mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_1);
		TWICE(e->ctx->ops.dealloc_mw(mw));
		expect_eq(ibv_query_gid(e->ctx, 1, 0, &ah_attr.grh.dgid), 0);
		ah = ibv_create_ah(e->pd, &ah_attr);
		TWICE(ibv_destroy_ah(ah));
	}
	/* The others are called through the table of the object's own context. */
	struct verbs_context *v = verbs_get_ctx(e->ctx);

	dm = ibv_alloc_dm(e->ctx, &dm_attr);
	TWICE(v->free_dm(dm));
	td = ibv_alloc_td(e->ctx, &td_attr);
	TWICE(v->dealloc_td(td));
	if (transport_under_test()->streams)
		return;
	xrcd = ibv_open_xrcd(e->ctx, &xrcd_attr);
	TWICE(v->close_xrcd(xrcd));
}

static void a_device_is_closed_once(struct pair *p)
{
	struct ibv_context *ctx;

	side_open(&p->a, NULL);
	ctx = ibv_open_device(p->a.end->ctx->device);
	expect_eq(ibv_close_device(ctx), 0);
	expect_eq(ibv_close_device(ctx), -1);
	expect_eq(errno, EINVAL);
	/* A domain that is left keeps its memory, and does not make it open again. */
	ctx = ibv_open_device(p->a.end->ctx->device);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	expect_eq(ibv_close_device(ctx), 0);
	expect_eq(ibv_close_device(ctx), -1);
	expect_eq(ibv_dealloc_pd(pd), 0);
}

static void what_is_destroyed_is_not_built_upon(struct pair *p)
{
	struct ibv_srq_init_attr srq_init = { .attr = { 4, 1, 0 } };
	struct ibv_ah_attr ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1 };
	struct ibv_pd *pd, *good;
	struct ibv_cq *cq, *good_cq;
	struct end *e;

	side_open(&p->a, NULL);
	e = p->a.end;
	good = e->pd;
	good_cq = e->cq[1];
	pd = ibv_alloc_pd(e->ctx);
	cq = ibv_create_cq(e->ctx, 4, NULL, NULL, 0);
	expect_eq(ibv_dealloc_pd(pd), 0);
	expect_eq(ibv_destroy_cq(cq), 0);
#define REFUSED(call)                    \
	do {                             \
		errno = 0;               \
		expect(!(call));         \
		expect_eq(errno, EINVAL); \
	} while (0)
	e->cq[1] = cq;
	REFUSED(create_qp(e));
	e->cq[1] = good_cq;
	expect_eq(ibv_resize_cq(cq, 10), EINVAL);
	/* The inline functions of the header look for the context themselves. */
	struct verbs_context *v = verbs_get_ctx(e->ctx);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC, .pd = pd, .send_cq = e->cq[0],
		.recv_cq = e->cq[1], .cap = { 1, 1, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};

	REFUSED(v->create_qp_ex(e->ctx, &attr));
	REFUSED(e->ctx->ops.alloc_mw(pd, IBV_MW_TYPE_1));
	REFUSED(ibv_reg_mr_iova2(pd, e->buffer, 64, 0, 0));
	REFUSED(ibv_create_ah(pd, &ah_attr));
	REFUSED(ibv_create_srq(pd, &srq_init));
	e->pd = good;
}

static void queues_are_not_changed_when_destroyed(struct pair *p)
{
	struct ibv_srq_init_attr srq_init = { .attr = { 4, 1, 0 } };
	struct ibv_srq_attr srq_attr = { .srq_limit = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_init_attr init;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	side_open(&p->a, NULL);
	qp = create_qp(p->a.end);
	expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	expect_eq(ibv_destroy_qp(qp), 0);
	stir();
	expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	expect_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), EINVAL);
	srq = ibv_create_srq(p->a.end->pd, &srq_init);
	expect_eq(ibv_destroy_srq(srq), 0);
	stir();
	expect_eq(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_LIMIT), EINVAL);
	expect_eq(ibv_query_srq(srq, &srq_attr), EINVAL);
}

static const struct test_case cases[] = {
	CASE_IN(ONLY_ONE_PROCESS, objects_are_destroyed_once),
	CASE_IN(ONLY_ONE_PROCESS, a_device_is_closed_once),
	CASE_IN(ONLY_ONE_PROCESS, what_is_destroyed_is_not_built_upon),
	CASE_IN(ONLY_ONE_PROCESS, queues_are_not_changed_when_destroyed),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
