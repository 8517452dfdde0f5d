/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thread domains and parent domains (ibv_alloc_td(3),
 * ibv_alloc_parent_domain(3)): which object keeps which alive, that a parent
 * domain can be used as its protection domain, and allocators for the memory of queues.
 */
#include <errno.h>
#include <string.h>

#include "pair.h"

static struct ibv_td *make_td(struct end *e)
{
	struct ibv_td_init_attr attr = { .comp_mask = 0 };
	struct ibv_td *td = ibv_alloc_td(e->ctx, &attr);

	expect(td);
	expect(td->context == e->ctx);
	return td;
}

static struct ibv_pd *make_parent(struct end *e, struct ibv_pd *pd,
				  struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };

	return ibv_alloc_parent_domain(e->ctx, &attr);
}

/* ---- life ---- */

static void domains_in_use_cannot_be_deallocated(struct pair *p)
{
	struct end *e = p->a.end;
	struct ibv_td *td;
	struct ibv_pd *pd, *parent;

	side_open(&p->a, NULL);
	pd = ibv_alloc_pd(e->ctx);
	td = make_td(e);
	parent = make_parent(e, pd, td);
	expect(parent && parent != pd);
	expect(parent->context == e->ctx);
	expect_eq(ibv_dealloc_td(td), EBUSY);
	expect_eq(ibv_dealloc_pd(pd), EBUSY);
	expect_eq(ibv_dealloc_pd(parent), 0);
	expect_eq(ibv_dealloc_td(td), 0);
	expect_eq(ibv_dealloc_pd(pd), 0);
	/* Without a thread domain. */
	parent = make_parent(e, e->pd, NULL);
	expect(parent);
	expect_eq(ibv_dealloc_pd(parent), 0);
}

static struct ibv_qp *make_qp(struct end *e, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = e->cq[SEND_CQ],
		.recv_cq = e->cq[RECV_CQ],
		.cap = { .max_send_wr = 64, .max_recv_wr = 64,
			 .max_send_sge = 2, .max_recv_sge = 2 },
	};

	return ibv_create_qp(pd, &init);
}

static struct ibv_srq *make_srq(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 64,
						    .max_sge = 2 } };

	return ibv_create_srq(pd, &init);
}

static struct ibv_cq_ex *make_cq(struct end *e, struct ibv_pd *parent)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent,
	};

	return ibv_create_cq_ex(e->ctx, &attr);
}

static void everything_that_takes_a_domain_takes_a_parent_domain(struct pair *p)
{
	struct ibv_ah_attr ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1 };
	struct end *e = p->a.end;
	struct ibv_pd *parent;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	struct ibv_td *td;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mr;

	side_open(&p->a, NULL);
	td = make_td(e);
	parent = make_parent(e, e->pd, td);
#define HOLDS(create, destroy)                             \
	do {                                               \
		expect(create);                            \
		expect_eq(ibv_dealloc_pd(parent), EBUSY);  \
		expect_eq(destroy, 0);                     \
	} while (0)
	HOLDS(mr = ibv_reg_mr(parent, e->buffer, 100, 0), ibv_dereg_mr(mr));
	HOLDS(qp = make_qp(e, parent), ibv_destroy_qp(qp));
	HOLDS(srq = make_srq(parent), ibv_destroy_srq(srq));
	HOLDS(cq = make_cq(e, parent), ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	ah_attr.grh.dgid = p->a.gid;
	if (!transport_under_test()->streams)
		HOLDS(ah = ibv_create_ah(parent, &ah_attr), ibv_destroy_ah(ah));
	expect_eq(ibv_dealloc_pd(parent), 0);
	expect_eq(ibv_dealloc_td(td), 0);
}

static void nonsense_is_refused(struct pair *p)
{
	struct ibv_td_init_attr td_attr = { .comp_mask = 1 };
	struct ibv_parent_domain_init_attr a;
	struct end *e = p->a.end;

	side_open(&p->a, NULL);
	errno = 0;
	expect(!ibv_alloc_td(e->ctx, &td_attr));
	expect_eq(errno, EINVAL);
#define REFUSED(...)                                              \
	do {                                                      \
		a = (struct ibv_parent_domain_init_attr){         \
			.pd = e->pd };                            \
		__VA_ARGS__;                                      \
		errno = 0;                                        \
		expect(!ibv_alloc_parent_domain(e->ctx, &a));     \
		expect_eq(errno, EINVAL);                         \
	} while (0)
	REFUSED(a.pd = NULL);
	REFUSED(a.comp_mask = 1 << 9);
	REFUSED(a.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS);
}

/* ---- the same domain ---- */

struct move {
	int parent_of_qp, parent_of_mr; /* else the plain domain */
	uint32_t qpn, lkey, rkey;
};

static struct {
	struct end *end;
	struct ibv_td *td;
	struct ibv_pd *parent;
} moved[2]; /* of this process */

static int slot_of(const struct end *e)
{
	return moved[0].end && moved[0].end != e;
}

/* The QP and the region anew, on one of the two domains each. */
static int move(struct end *e, void *arg)
{
	struct move *m = arg;
	struct ibv_td_init_attr td_attr = { .comp_mask = 0 };
	struct ibv_td *td = ibv_alloc_td(e->ctx, &td_attr);
	struct ibv_pd *parent = td ? make_parent(e, e->pd, td) : NULL;
	int slot = slot_of(e);

	if (!parent || ibv_destroy_qp(e->qp[0]) || ibv_dereg_mr(e->mr[0]))
		return -1;
	moved[slot].end = e;
	moved[slot].td = td;
	moved[slot].parent = parent;
	e->qp[0] = make_qp(e, m->parent_of_qp ? parent : e->pd);
	e->mr[0] = ibv_reg_mr(m->parent_of_mr ? parent : e->pd, e->buffer,
			      e->bytes,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				      IBV_ACCESS_REMOTE_WRITE);
	if (!e->qp[0] || !e->mr[0])
		return -1;
	m->qpn = e->qp[0]->qp_num;
	m->lkey = e->mr[0]->lkey;
	m->rkey = e->mr[0]->rkey;
	return 0;
}

static int move_back(struct end *e, void *arg)
{
	int slot = slot_of(e);
	int bad = ibv_destroy_qp(e->qp[0]) + ibv_dereg_mr(e->mr[0]);

	e->qp[0] = NULL;
	e->mr[0] = NULL;
	return bad + ibv_dealloc_pd(moved[slot].parent) +
	       ibv_dealloc_td(moved[slot].td);
}

static void move_side(struct side *s, int parent_of_qp, int parent_of_mr)
{
	struct move m = { parent_of_qp, parent_of_mr, 0, 0, 0 };

	expect_eq(side_run(s, move, &m, sizeof(m)), 0);
	s->qpn[0] = m.qpn;
	s->lkey = m.lkey;
	s->rkey = m.rkey;
}

static void use_both(struct pair *p, int parent_of_qp, int parent_of_mr)
{
	struct send_req r;

	pair_open(p, NULL);
	move_side(&p->a, parent_of_qp, parent_of_mr);
	move_side(&p->b, parent_of_qp, parent_of_mr);
	pair_connect_qp(p, 0);
	side_fill(&p->a, 0, 1000, 5);
	side_recv(&p->b, 1, 0, 1000);
	side_send(&p->a, 2, 0, 1000);
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 2);
	side_check(&p->b, 0, 1000, 5);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 3, 0, 4000, 1000);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 3);
	side_check(&p->b, 4000, 1000, 5);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 4, 8000, 4000, 1000);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 4);
	side_check(&p->a, 8000, 1000, 5);
	expect_eq(side_run(&p->a, move_back, NULL, 0), 0);
	expect_eq(side_run(&p->b, move_back, NULL, 0), 0);
}

static void regions_of_the_domain_serve_queue_pairs_of_its_parent(struct pair *p)
{
	use_both(p, 1, 0);
}

static void regions_of_the_parent_serve_queue_pairs_of_its_domain(struct pair *p)
{
	use_both(p, 0, 1);
}

static void a_parent_domain_of_another_domain_is_another_one(struct pair *p)
{
	struct end *e = p->a.end;
	struct ibv_pd *parent;
	struct send_req r;
	struct ibv_mr *mr;

	pair_start(p, NULL);
	parent = make_parent(e, e->other_pd, NULL);
	mr = ibv_reg_mr(parent, e->buffer, 100, 0);
	expect(mr);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 10);
	r.sge[0].lkey = mr->lkey;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	expect_eq(ibv_dereg_mr(mr), 0);
	expect_eq(ibv_dealloc_pd(parent), 0);
}

/* ---- allocators ---- */

static struct {
	struct ibv_pd *pd; /* what the calls are told */
	void *given[16];
	int count, freed;
	void *answer; /* instead of memory, if `answers` */
	bool answers;
	size_t bytes;
} pool;
static int pool_context;

static void *pool_alloc(struct ibv_pd *pd, void *context, size_t size,
			size_t alignment, uint64_t resource_type)
{
	void *at = NULL;

	expect(pd == pool.pd);
	expect(context == &pool_context);
	expect(pool.count < 16);
	if (pool.answers)
		return pool.answer;
	expect_eq(posix_memalign(&at, alignment, size), 0);
	memset(at, 0, size);
	pool.given[pool.count++] = at;
	pool.bytes += size;
	return at;
}

static void pool_free(struct ibv_pd *pd, void *context, void *at,
		      uint64_t resource_type)
{
	expect(pd == pool.pd);
	expect(context == &pool_context);
	for (int i = 0; i < pool.count; i++) {
		if (pool.given[i] != at)
			continue;
		pool.given[i] = NULL;
		pool.freed++;
		free(at);
		return;
	}
	fail("freed what was not allocated");
}

static struct ibv_pd *pool_parent(struct end *e)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = e->pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = pool_alloc,
		.free = pool_free,
		.pd_context = &pool_context,
	};

	memset(&pool, 0, sizeof(pool));
	pool.pd = ibv_alloc_parent_domain(e->ctx, &attr);
	expect(pool.pd);
	return pool.pd;
}

static void queues_lie_in_memory_of_the_allocator(struct pair *p)
{
	struct end *e = p->a.end;
	struct ibv_pd *parent;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	side_open(&p->a, NULL);
	parent = pool_parent(e);
	qp = make_qp(e, parent);
	expect(qp);
	expect_eq(pool.count, 2); /* both its queues */
	expect(pool.bytes >= 2 * 64 * sizeof(struct ibv_sge));
	srq = make_srq(parent);
	expect(srq);
	expect_eq(pool.count, 3);
	cq = make_cq(e, parent);
	expect(cq);
	expect_eq(pool.count, 4);
	expect_eq(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 200), 0);
	expect_eq(pool.count, 5);
	expect_eq(pool.freed, 1);
	expect_eq(ibv_destroy_qp(qp), 0);
	expect_eq(pool.freed, 3);
	expect_eq(ibv_destroy_srq(srq), 0);
	expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	expect_eq(pool.freed, 5);
	expect_eq(ibv_dealloc_pd(parent), 0);
}

static void an_allocator_may_leave_it_to_the_library(struct pair *p)
{
	struct end *e = p->a.end;
	struct ibv_pd *parent;
	struct ibv_qp *qp;

	side_open(&p->a, NULL);
	parent = pool_parent(e);
	pool.answers = true;
	pool.answer = IBV_ALLOCATOR_USE_DEFAULT;
	qp = make_qp(e, parent);
	expect(qp);
	expect_eq(ibv_destroy_qp(qp), 0);
	expect_eq(pool.freed, 0);
	expect_eq(ibv_dealloc_pd(parent), 0);
}

static void an_allocator_that_fails_fails_the_creation(struct pair *p)
{
	struct end *e = p->a.end;
	struct ibv_pd *parent;

	side_open(&p->a, NULL);
	parent = pool_parent(e);
	pool.answers = true;
	errno = 0;
	expect(!make_qp(e, parent));
	expect_eq(errno, ENOMEM);
	expect(!make_srq(parent));
	expect(!make_cq(e, parent));
	/* Nothing holds it. */
	expect_eq(ibv_dealloc_pd(parent), 0);
}

#define PAGE "ibv_alloc_parent_domain(3)"
static const struct test_case cases[] = {
	RULE_IN(ONLY_ONE_PROCESS, "ibv_alloc_td(3)",
		domains_in_use_cannot_be_deallocated),
	RULE_IN(ONLY_ONE_PROCESS, PAGE,
		everything_that_takes_a_domain_takes_a_parent_domain),
	RULE_IN(ONLY_ONE_PROCESS, PAGE, nonsense_is_refused),
	RULE(PAGE, regions_of_the_domain_serve_queue_pairs_of_its_parent),
	RULE(PAGE, regions_of_the_parent_serve_queue_pairs_of_its_domain),
	RULE_IN(ONLY_ONE_PROCESS, "IBTA 10.2.3",
		a_parent_domain_of_another_domain_is_another_one),
	RULE_IN(ONLY_ONE_PROCESS, PAGE, queues_lie_in_memory_of_the_allocator),
	RULE_IN(ONLY_ONE_PROCESS, PAGE, an_allocator_may_leave_it_to_the_library),
	RULE_IN(ONLY_ONE_PROCESS, PAGE,
		an_allocator_that_fails_fails_the_creation),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
