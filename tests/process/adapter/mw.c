/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: binding, what they give access to and to whom, what ends them
 * (InfiniBand specification volume 1, 10.6.7.2; the manual pages of ibv_alloc_mw and
 * ibv_bind_mw). Side b has the windows, side a uses them.
 */
#include <errno.h>
#include <string.h>

#include "window.h"

enum { AT = 8192, LENGTH = 4096 };

static const enum ibv_wr_opcode accesses[] = {
	IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
};
enum { ACCESSES = sizeof(accesses) / sizeof(accesses[0]) };

static void start(struct pair *p, const struct side_options *opt)
{
	p->conn.access_a = p->conn.access_b = window_rights();
	/* A peer in error is given up soon. */
	p->conn.timeout = 10;
	p->conn.retry_cnt = 1;
	pair_start(p, opt);
}

static void reconnect(struct pair *p, int qp)
{
	pair_reset_qp(p, qp);
	pair_connect_qp(p, qp);
	while (side_async(&p->b, 0) >= 0)
		;
}

static void second_qp(struct pair *p)
{
	expect_eq(side_qp_create(&p->a, NULL), 1);
	expect_eq(side_qp_create(&p->b, NULL), 1);
	pair_connect_qp(p, 1);
}

static void works(struct pair *p, int qp, uint32_t rkey, uint64_t addr)
{
	for (unsigned i = 0; i < ACCESSES; i++) {
		struct recv_req rr = { .wr_id = 1 };

		if (accesses[i] == IBV_WR_RDMA_WRITE_WITH_IMM)
			expect_eq(side_post_recv(&p->b, qp, &rr, 1).ret, 0);
		expect_status(access_with(&p->a, &p->b, accesses[i], qp, rkey,
					  addr), IBV_WC_SUCCESS);
		if (accesses[i] == IBV_WR_RDMA_WRITE_WITH_IMM)
			side_wait_ok(&p->b, RECV_CQ, 1);
	}
}

/* With an access error, which both programs are told. */
static void is_refused(struct pair *p, int qp, uint32_t rkey, uint64_t addr,
		       enum ibv_wr_opcode opcode)
{
	expect_status(access_with(&p->a, &p->b, opcode, qp, rkey, addr),
		      IBV_WC_REM_ACCESS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
	reconnect(p, qp);
}

static void all_are_refused(struct pair *p, int qp, uint32_t rkey, uint64_t addr)
{
	for (unsigned i = 0; i < ACCESSES; i++)
		is_refused(p, qp, rkey, addr, accesses[i]);
}

/* ---- allocation ---- */

static void windows_of_both_types_are_allocated(struct pair *p)
{
	struct ibv_mw *one, *two;
	struct ibv_pd *pd;

	side_open(&p->a, NULL);
	pd = p->a.end->pd;
	one = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	two = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	expect(one && two);
	expect_eq(one->type, IBV_MW_TYPE_1);
	expect_eq(two->type, IBV_MW_TYPE_2);
	expect(one->pd == pd && one->context == pd->context);
	expect(one->rkey >> 8 != two->rkey >> 8);
	expect_eq(ibv_dealloc_mw(one), 0);
	expect_eq(ibv_dealloc_mw(two), 0);
	for (int type = 3; type < 6; type++) {
		errno = 0;
		expect(!ibv_alloc_mw(pd, (enum ibv_mw_type)type));
		expect_eq(errno, EINVAL);
	}
}

static void a_protection_domain_with_windows_is_busy(struct pair *p)
{
	struct ibv_pd *pd;
	struct ibv_mw *mw;

	side_open(&p->a, NULL);
	pd = ibv_alloc_pd(p->a.end->ctx);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	expect_eq(ibv_dealloc_pd(pd), EBUSY);
	expect_eq(ibv_dealloc_mw(mw), 0);
	expect_eq(ibv_dealloc_pd(pd), 0);
}

static void the_device_offers_windows_of_type_1_and_2b(struct pair *p)
{
	struct ibv_device_attr d;

	side_open(&p->a, NULL);
	expect_eq(ibv_query_device(p->a.end->ctx, &d), 0);
	expect(d.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	expect(d.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	expect(!(d.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A));
	expect(d.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	expect(d.max_mw > 0);
}

/* ---- what a bound window gives ---- */

/* Both types, by each way of posting; the QP is extended. */
static void each_window(struct pair *p, void (*fn)(struct pair *, struct region *,
						   struct window *,
						   struct binding *))
{
	const struct side_options opt = { .extended = true };

	start(p, &opt);
	for (enum bind_how how = BIND_BY_VERB; how <= BIND_BY_BUILD; how++) {
		enum ibv_mw_type type = how == BIND_BY_VERB ? IBV_MW_TYPE_1 :
							      IBV_MW_TYPE_2;
		struct region mr = side_reg_bindable(&p->b, 4096, 32768);
		struct window w = side_mw_alloc(&p->b, type, 0);
		struct binding bind = binding_of(&p->b, how, &w, &mr, AT, LENGTH);

		fn(p, &mr, &w, &bind);
		expect_eq(side_mw_dealloc(&p->b, w.index), 0);
		expect_eq(side_dereg(&p->b, mr.index), 0);
	}
}

static void inside_and_outside(struct pair *p, struct region *mr,
			       struct window *w, struct binding *bind)
{
	uint32_t rkey = side_mw_bind(&p->b, bind);

	works(p, 0, rkey, bind->addr);
	works(p, 0, rkey, bind->addr + LENGTH - 64);
	for (unsigned i = 0; i < 3; i++) {
		is_refused(p, 0, rkey, bind->addr - 1, accesses[i]);
		is_refused(p, 0, rkey, bind->addr + LENGTH - 63, accesses[i]);
		is_refused(p, 0, rkey, bind->addr + LENGTH, accesses[i]);
	}
	is_refused(p, 0, rkey, bind->addr - 8, IBV_WR_ATOMIC_FETCH_AND_ADD);
	is_refused(p, 0, rkey, bind->addr + LENGTH, IBV_WR_ATOMIC_CMP_AND_SWP);
}

static void a_window_gives_its_range_and_not_a_byte_more(struct pair *p)
{
	each_window(p, inside_and_outside);
}

static void where_data_go(struct pair *p, struct region *mr, struct window *w,
			  struct binding *bind)
{
	uint32_t rkey = side_mw_bind(&p->b, bind);
	struct send_req r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0,
				     AT + 100, 1000);

	r.rkey = rkey;
	side_fill(&p->a, 0, 1000, bind->how);
	side_set(&p->b, AT, LENGTH, 0xee);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_check(&p->b, AT + 100, 1000, bind->how);
	side_set(&p->a, 0, 1000, 0);
	r.opcode = IBV_WR_RDMA_READ;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_check(&p->a, 0, 1000, bind->how);
}

static void data_go_where_the_window_says(struct pair *p)
{
	each_window(p, where_data_go);
}

static void with_rights(struct pair *p, struct region *mr, struct window *w,
			struct binding *bind)
{
	static const unsigned rights[] = { IBV_ACCESS_REMOTE_READ,
					   IBV_ACCESS_REMOTE_WRITE,
					   IBV_ACCESS_REMOTE_ATOMIC, 0 };

	for (unsigned i = 0; i < 4; i++) {
		uint32_t rkey;

		bind->access = rights[i];
		rkey = side_mw_bind(&p->b, bind);
		for (unsigned k = 0; k < ACCESSES; k++) {
			unsigned needs = k == 1 ? IBV_ACCESS_REMOTE_READ :
					 k < 3	? IBV_ACCESS_REMOTE_WRITE :
						  IBV_ACCESS_REMOTE_ATOMIC;

			if (needs != rights[i])
				is_refused(p, 0, rkey, bind->addr, accesses[k]);
			else if (accesses[k] != IBV_WR_RDMA_WRITE_WITH_IMM)
				expect_status(access_with(&p->a, &p->b,
							  accesses[k], 0, rkey,
							  bind->addr),
					      IBV_WC_SUCCESS);
		}
		if (bind->how != BIND_BY_VERB)
			expect_status(side_invalidate(&p->b, 0, rkey),
				      IBV_WC_SUCCESS);
	}
}

static void a_window_gives_the_rights_it_was_bound_with(struct pair *p)
{
	each_window(p, with_rights);
}

static void zero_based(struct pair *p, struct region *mr, struct window *w,
		       struct binding *bind)
{
	struct send_req r;
	uint32_t rkey;

	bind->access |= IBV_ACCESS_ZERO_BASED;
	rkey = side_mw_bind(&p->b, bind);
	works(p, 0, rkey, 0);
	works(p, 0, rkey, LENGTH - 64);
	is_refused(p, 0, rkey, LENGTH - 63, IBV_WR_RDMA_WRITE);
	is_refused(p, 0, rkey, bind->addr, IBV_WR_RDMA_WRITE);
	is_refused(p, 0, rkey, LENGTH, IBV_WR_ATOMIC_FETCH_AND_ADD);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 0, 100);
	r.rkey = rkey;
	r.remote_addr = 500;
	side_fill(&p->a, 0, 100, 3);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_check(&p->b, AT + 500, 100, 3);
}

static void addresses_of_a_zero_based_window_are_offsets_from_its_start(struct pair *p)
{
	each_window(p, zero_based);
}

static void other_domain(struct pair *p, struct region *mr, struct window *w,
			 struct binding *bind)
{
	/* The accessing QP's own domain is its peer's business only. */
	struct region own = side_reg(&p->a, 0, 4096, IBV_ACCESS_LOCAL_WRITE, 1);
	uint32_t rkey = side_mw_bind(&p->b, bind);

	works(p, 0, rkey, bind->addr);
	expect_eq(side_dereg(&p->a, own.index), 0);
}

static void a_window_needs_no_remote_right_of_its_region(struct pair *p)
{
	each_window(p, other_domain);
}

static void as_local_key(struct pair *p, struct region *mr, struct window *w,
			 struct binding *bind)
{
	struct send_req r = send_req(&p->b, IBV_WR_SEND, 5, AT, 64);
	struct recv_req rr = { .wr_id = 6, .num_sge = 1 };

	r.sge[0].lkey = side_mw_bind(&p->b, bind);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->b, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	reconnect(p, 0);
	rr.sge[0] = r.sge[0];
	expect_eq(side_post_recv(&p->b, 0, &rr, 1).ret, 0);
	side_send(&p->a, 7, 0, 64);
	expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_LOC_PROT_ERR);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_OP_ERR);
	reconnect(p, 0);
}

static void a_window_is_no_local_key(struct pair *p)
{
	each_window(p, as_local_key);
}

static void before_binding(struct pair *p, struct region *mr, struct window *w,
			   struct binding *bind)
{
	all_are_refused(p, 0, w->rkey, bind->addr);
	all_are_refused(p, 0, bind->rkey, bind->addr);
}

static void an_unbound_window_gives_nothing(struct pair *p)
{
	each_window(p, before_binding);
}

/* ---- type 1 ---- */

struct type_1 {
	struct region mr;
	struct window w;
	struct binding bind;
};

static struct type_1 bind_type_1(struct pair *p)
{
	struct type_1 t;

	t.mr = side_reg_bindable(&p->b, 4096, 32768);
	t.w = side_mw_alloc(&p->b, IBV_MW_TYPE_1, 0);
	t.bind = binding_of(&p->b, BIND_BY_VERB, &t.w, &t.mr, AT, LENGTH);
	side_mw_bind(&p->b, &t.bind);
	return t;
}

static void the_new_key_is_there_after_posting_and_ends_the_old_one(struct pair *p)
{
	struct type_1 t;
	uint32_t first;

	start(p, NULL);
	t = bind_type_1(p);
	first = t.bind.rkey_after;
	expect(first != t.w.rkey);
	expect_eq(first >> 8, t.w.rkey >> 8);
	t.bind.addr += LENGTH;
	side_mw_bind(&p->b, &t.bind);
	expect(t.bind.rkey_after != first);
	works(p, 0, t.bind.rkey_after, t.bind.addr);
	all_are_refused(p, 0, first, t.bind.addr);
	all_are_refused(p, 0, t.bind.rkey_after, t.bind.addr - LENGTH);
}

static void binding_nothing_unbinds_a_window_of_type_1(struct pair *p)
{
	struct type_1 t;
	uint32_t first;

	start(p, NULL);
	t = bind_type_1(p);
	first = t.bind.rkey_after;
	works(p, 0, first, t.bind.addr);
	t.bind.length = 0;
	side_mw_bind(&p->b, &t.bind);
	all_are_refused(p, 0, first, t.bind.addr);
	all_are_refused(p, 0, t.bind.rkey_after, t.bind.addr);
	/* Without a region, too. */
	t.bind.length = LENGTH;
	side_mw_bind(&p->b, &t.bind);
	works(p, 0, t.bind.rkey_after, t.bind.addr);
	t.bind.region = -1;
	t.bind.addr = t.bind.length = 0;
	side_mw_bind(&p->b, &t.bind);
	expect_eq(side_dereg(&p->b, t.mr.index), 0);
}

static void a_window_of_type_1_is_good_for_every_qp_of_its_domain(struct pair *p)
{
	struct type_1 t;

	start(p, NULL);
	second_qp(p);
	t = bind_type_1(p);
	works(p, 0, t.bind.rkey_after, t.bind.addr);
	works(p, 1, t.bind.rkey_after, t.bind.addr);
	/* And is bound anew by another one. */
	t.bind.qp = 1;
	side_mw_bind(&p->b, &t.bind);
	works(p, 0, t.bind.rkey_after, t.bind.addr);
}

static void posting_refuses_what_is_no_binding(struct pair *p)
{
	struct region mr, zero;
	struct window one, two;
	struct binding b;

	start(p, NULL);
	mr = side_reg_bindable(&p->b, 0, 32768);
	zero = side_reg(&p->b, 0, 32768, IBV_ACCESS_LOCAL_WRITE |
						 IBV_ACCESS_MW_BIND |
						 IBV_ACCESS_ZERO_BASED, 0);
	expect(zero.index >= 0);
	one = side_mw_alloc(&p->b, IBV_MW_TYPE_1, 0);
	two = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	b = binding_of(&p->b, BIND_BY_VERB, &two, &mr, AT, LENGTH);
	expect_eq(side_mw_post(&p->b, &b), EINVAL);
	b = binding_of(&p->b, BIND_BY_POST, &one, &mr, AT, LENGTH);
	expect_eq(side_mw_post(&p->b, &b), EINVAL);
	b = binding_of(&p->b, BIND_BY_VERB, &one, NULL, AT, LENGTH);
	expect_eq(side_mw_post(&p->b, &b), EINVAL);
	b = binding_of(&p->b, BIND_BY_VERB, &one, &mr, AT, LENGTH);
	b.access = IBV_ACCESS_LOCAL_WRITE;
	expect_eq(side_mw_post(&p->b, &b), EINVAL);
	b = binding_of(&p->b, BIND_BY_VERB, &one, &zero, AT, LENGTH);
	expect_eq(side_mw_post(&p->b, &b), EINVAL);
	mr = side_reg(&p->b, 0, 32768, IBV_ACCESS_LOCAL_WRITE |
					       IBV_ACCESS_MW_BIND, 1);
	b = binding_of(&p->b, BIND_BY_VERB, &one, &mr, AT, LENGTH);
	expect_eq(side_mw_post(&p->b, &b), EPERM);
	expect_eq(b.rkey_after, one.rkey);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
	side_expect_none(&p->b, SEND_CQ);
}

static void datagram_qps_bind_no_windows(struct pair *p)
{
	const struct side_options ud = { .type = IBV_QPT_UD };
	struct region mr;
	struct window w;
	struct binding b;
	int ret;

	p->conn.access_a = p->conn.access_b = 1;
	pair_start(p, &ud);
	mr = side_reg_bindable(&p->b, 0, 32768);
	w = side_mw_alloc(&p->b, IBV_MW_TYPE_1, 0);
	b = binding_of(&p->b, BIND_BY_VERB, &w, &mr, AT, LENGTH);
	ret = side_mw_post(&p->b, &b);
	expect(ret == EINVAL || ret == EOPNOTSUPP);
	w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	b = binding_of(&p->b, BIND_BY_POST, &w, &mr, AT, LENGTH);
	ret = side_mw_post(&p->b, &b);
	expect(ret == EINVAL || ret == EOPNOTSUPP);
}

/* ---- type 2 ---- */

struct type_2 {
	struct region mr;
	struct window w;
	struct binding bind;
};

static struct type_2 bind_type_2(struct pair *p)
{
	struct type_2 t;

	t.mr = side_reg_bindable(&p->b, 4096, 32768);
	t.w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	t.bind = binding_of(&p->b, BIND_BY_POST, &t.w, &t.mr, AT, LENGTH);
	side_mw_bind(&p->b, &t.bind);
	return t;
}

static void a_window_of_type_2_is_good_for_the_qp_that_bound_it(struct pair *p)
{
	struct type_2 t;

	start(p, NULL);
	second_qp(p);
	t = bind_type_2(p);
	works(p, 0, t.bind.rkey_after, t.bind.addr);
	all_are_refused(p, 1, t.bind.rkey_after, t.bind.addr);
	works(p, 0, t.bind.rkey_after, t.bind.addr);
}

static void the_tag_of_the_key_is_the_programs_choice(struct pair *p)
{
	static const uint32_t tags[] = { 0, 0xff, 0x12345678, 7 };
	struct type_2 t;

	start(p, NULL);
	t = bind_type_2(p);
	for (unsigned i = 0; i < 4; i++) {
		expect_status(side_invalidate(&p->b, 0, t.bind.rkey_after),
			      IBV_WC_SUCCESS);
		t.bind.rkey = tags[i];
		side_mw_bind(&p->b, &t.bind);
		works(p, 0, (t.w.rkey & ~0xffu) | (tags[i] & 0xff), t.bind.addr);
		is_refused(p, 0, (t.w.rkey & ~0xffu) | ((tags[i] + 1) & 0xff),
			   t.bind.addr, IBV_WR_RDMA_WRITE);
	}
}

/* The bind fails at its own side, and the connection is of no use any more. */
static void bind_fails(struct pair *p, struct binding *b)
{
	struct send_req next = send_req(&p->b, IBV_WR_SEND, 2, 0, 8);
	struct ibv_wc wc;

	b->flags = 0; /* errors are always told */
	expect_eq(side_mw_post(&p->b, b), 0);
	expect_eq(side_post_send(&p->b, b->qp, &next, 1).ret, 0);
	wc = side_wait(&p->b, SEND_CQ);
	expect_status(wc, IBV_WC_MW_BIND_ERR);
	expect_eq(wc.wr_id, b->wr_id);
	expect_eq(wc.qp_num, p->b.qpn[b->qp]);
	wc = side_wait(&p->b, SEND_CQ);
	expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	expect_eq(wc.wr_id, 2);
	expect_eq(side_state(&p->b, b->qp), IBV_QPS_ERR);
	expect_eq(side_state(&p->a, b->qp), IBV_QPS_RTS);
	reconnect(p, b->qp);
}

static void a_bound_window_of_type_2_is_not_bound_again(struct pair *p)
{
	struct type_2 t;
	uint32_t rkey;

	start(p, NULL);
	second_qp(p);
	t = bind_type_2(p);
	rkey = t.bind.rkey_after;
	t.bind.rkey++;
	bind_fails(p, &t.bind);
	t.bind.qp = 1;
	bind_fails(p, &t.bind);
	/* It is what it was. */
	works(p, 0, rkey, t.bind.addr);
}

static void what_a_window_may_not_be_bound_to_fails(struct pair *p)
{
	enum { LOCAL = IBV_ACCESS_LOCAL_WRITE, BIND = IBV_ACCESS_MW_BIND };
	struct region all, no_bind, no_write, other, zero;
	struct window w[2], other_w;

	start(p, NULL);
	all = side_reg_bindable(&p->b, 4096, 32768);
	no_bind = side_reg(&p->b, 4096, 32768, LOCAL, 0);
	no_write = side_reg(&p->b, 4096, 32768, BIND, 0);
	other = side_reg(&p->b, 4096, 32768, LOCAL | BIND, 1);
	zero = side_reg(&p->b, 4096, 32768, LOCAL | BIND |
						    IBV_ACCESS_ZERO_BASED, 0);
	w[0] = side_mw_alloc(&p->b, IBV_MW_TYPE_1, 0);
	w[1] = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	other_w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 1);
#define FAILS(mr_, change)                                                   \
	do {                                                                 \
		for (int k = 0; k < 2; k++) {                                \
			struct binding b = binding_of(&p->b,                 \
				k ? BIND_BY_POST : BIND_BY_VERB, &w[k],      \
				mr_, AT, LENGTH);                            \
			change;                                              \
			bind_fails(p, &b);                                   \
		}                                                            \
	} while (0)
	FAILS(&no_bind, );
	FAILS(&no_bind, b.access = 0);
	FAILS(&no_write, b.access = IBV_ACCESS_REMOTE_WRITE);
	FAILS(&no_write, b.access = IBV_ACCESS_REMOTE_ATOMIC);
	FAILS(&all, b.addr = p->b.addr + 4095);
	FAILS(&all, b.addr = p->b.addr + 4096 + 32768 - LENGTH + 1);
	FAILS(&all, b.addr = p->b.addr + 4096 + 32768);
	FAILS(&all, b.addr = UINT64_MAX - 100);
	FAILS(&all, b.length = UINT64_MAX);
#undef FAILS
	/* What ibv_bind_mw refuses at once for type 1. */
	struct binding b = binding_of(&p->b, BIND_BY_POST, &w[1], &other, AT,
				      LENGTH);
	bind_fails(p, &b);
	b = binding_of(&p->b, BIND_BY_POST, &w[1], &zero, AT, LENGTH);
	bind_fails(p, &b);
	b = binding_of(&p->b, BIND_BY_POST, &w[1], NULL, AT, LENGTH);
	bind_fails(p, &b);
	b = binding_of(&p->b, BIND_BY_POST, &w[1], &all, AT, LENGTH);
	b.access = IBV_ACCESS_LOCAL_WRITE;
	bind_fails(p, &b);
	/* Length 0 does not unbind type 2. */
	b = binding_of(&p->b, BIND_BY_POST, &w[1], &all, AT, 0);
	bind_fails(p, &b);
	/* The window's domain is not the QP's. */
	b = binding_of(&p->b, BIND_BY_POST, &other_w, &other, AT, LENGTH);
	bind_fails(p, &b);
	/* Reading needs nothing but the right to bind. */
	b = binding_of(&p->b, BIND_BY_POST, &w[1], &no_write, AT, LENGTH);
	b.access = IBV_ACCESS_REMOTE_READ;
	side_mw_bind(&p->b, &b);
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_READ, 0,
				  b.rkey_after, b.addr), IBV_WC_SUCCESS);
}

static void a_bind_to_a_region_that_is_gone_fails(struct pair *p)
{
	struct binding b;
	struct region mr;
	struct window w;
	struct send_req r;

	/* The bind waits behind a send for which there is no receive. */
	p->conn.min_rnr_timer = 20;
	start(p, NULL);
	mr = side_reg_bindable(&p->b, 4096, 32768);
	w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	r = send_req(&p->b, IBV_WR_SEND, 1, 0, 8);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	b = binding_of(&p->b, BIND_BY_POST, &w, &mr, AT, LENGTH);
	expect_eq(side_mw_post(&p->b, &b), 0);
	side_expect_none(&p->b, SEND_CQ);
	expect_eq(side_dereg(&p->b, mr.index), 0);
	side_recv(&p->a, 1, 0, 8);
	side_wait_ok(&p->b, SEND_CQ, 1);
	expect_status(side_wait(&p->b, SEND_CQ), IBV_WC_MW_BIND_ERR);
	side_wait_ok(&p->a, RECV_CQ, 1);
}

/* ---- order ---- */

static void binds_are_done_in_their_turn(struct pair *p)
{
	struct type_2 t;
	struct send_req r;
	uint32_t first;

	p->conn.min_rnr_timer = 20;
	start(p, NULL);
	t = bind_type_2(p);
	first = t.bind.rkey_after;
	/* A send that waits, an invalidation, a bind, another send. */
	r = send_req(&p->b, IBV_WR_SEND, 1, 0, 8);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	r = (struct send_req){ .wr_id = 2, .opcode = IBV_WR_LOCAL_INV,
			       .flags = IBV_SEND_SIGNALED, .imm = first };
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	t.bind.wr_id = 3;
	t.bind.rkey++;
	expect_eq(side_mw_post(&p->b, &t.bind), 0);
	r = send_req(&p->b, IBV_WR_SEND, 4, 0, 8);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	side_expect_none(&p->b, SEND_CQ);
	works(p, 0, first, t.bind.addr);
	side_recv(&p->a, 1, 0, 8);
	side_recv(&p->a, 4, 0, 8);
	/* Who has received the second message may use the new key. */
	side_wait_ok(&p->a, RECV_CQ, 1);
	side_wait_ok(&p->a, RECV_CQ, 4);
	works(p, 0, t.bind.rkey_after, t.bind.addr);
	for (uint64_t i = 1; i < 5; i++)
		side_wait_ok(&p->b, SEND_CQ, i);
	all_are_refused(p, 0, first, t.bind.addr);
}

static void unsignaled_binds_complete_in_silence(struct pair *p)
{
	struct type_1 t;

	start(p, NULL);
	t = bind_type_1(p);
	t.bind.flags = 0;
	for (int i = 0; i < 200; i++)
		expect_eq(side_mw_post(&p->b, &t.bind), 0);
	side_recv(&p->a, 1, AT, 8);
	side_send(&p->b, 2, 0, 8);
	side_wait_ok(&p->b, SEND_CQ, 2);
	side_wait_ok(&p->a, RECV_CQ, 1);
	works(p, 0, t.bind.rkey_after, t.bind.addr);
}

static void a_bind_on_a_qp_in_error_is_flushed(struct pair *p)
{
	struct binding b;
	struct region mr;
	struct window w;
	struct ibv_wc wc;

	start(p, NULL);
	mr = side_reg_bindable(&p->b, 4096, 32768);
	w = side_mw_alloc(&p->b, IBV_MW_TYPE_1, 0);
	expect_eq(side_to_state(&p->b, 0, IBV_QPS_ERR), 0);
	b = binding_of(&p->b, BIND_BY_VERB, &w, &mr, AT, LENGTH);
	expect_eq(side_mw_post(&p->b, &b), 0);
	wc = side_wait(&p->b, SEND_CQ);
	expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	expect_eq(wc.wr_id, b.wr_id);
	expect_eq(side_dereg(&p->b, mr.index), 0);
}

static void a_bind_needs_no_peer(struct pair *p)
{
	const union ibv_gid nowhere = { .raw = { 0 } };
	struct binding b;
	struct region mr;
	struct window w;

	side_open(&p->b, NULL);
	mr = side_reg_bindable(&p->b, 4096, 32768);
	w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	expect_eq(side_to_init(&p->b, 0, 0), 0);
	/* Block 0 has no QPs. */
	expect_eq(side_to_rtr(&p->b, 0, &p->conn, &nowhere, 17, 1), 0);
	expect_eq(side_to_rts(&p->b, 0, &p->conn, 1), 0);
	b = binding_of(&p->b, BIND_BY_POST, &w, &mr, AT, LENGTH);
	side_mw_bind(&p->b, &b);
	expect_status(side_invalidate(&p->b, 0, b.rkey_after), IBV_WC_SUCCESS);
}

static void an_unreliable_connection_has_windows_too(struct pair *p)
{
	const struct side_options uc = { .type = IBV_QPT_UC };
	struct type_2 t;
	struct send_req r;

	p->conn.access_a = p->conn.access_b = IBV_ACCESS_REMOTE_WRITE;
	pair_start(p, &uc);
	t = bind_type_2(p);
	side_fill(&p->a, 0, 64, 4);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, AT, 64);
	r.rkey = t.bind.rkey_after;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_check(&p->b, AT, 64, 4);
	/* An error of the send queue stops it, and only it. */
	expect_eq(side_mw_post(&p->b, &t.bind), 0);
	expect_status(side_wait(&p->b, SEND_CQ), IBV_WC_MW_BIND_ERR);
	expect_eq(side_state(&p->b, 0), IBV_QPS_SQE);
	side_fill(&p->a, 0, 64, 5);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_check(&p->b, AT, 64, 5);
}

/* ---- what ends windows, and what they keep alive ---- */

static void busy_while_bound(struct pair *p, struct region *mr, struct window *w,
			     struct binding *bind)
{
	struct region same;
	uint32_t rkey = side_mw_bind(&p->b, bind);
	struct window second;
	struct binding b;

	expect_eq(side_dereg(&p->b, mr->index), EBUSY);
	same = side_rereg(&p->b, mr->index, IBV_REREG_MR_CHANGE_ACCESS, 0, 0, 0,
			  IBV_ACCESS_LOCAL_WRITE);
	expect_eq(same.error, IBV_REREG_MR_ERR_INPUT);
	expect_eq(same.lkey, mr->lkey);
	works(p, 0, rkey, bind->addr);
	/* Two of them: until the last one is unbound. */
	second = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	b = binding_of(&p->b, BIND_BY_POST, &second, mr, AT, 64);
	side_mw_bind(&p->b, &b);
	if (bind->how == BIND_BY_VERB) {
		bind->length = 0;
		side_mw_bind(&p->b, bind);
	} else {
		expect_status(side_invalidate(&p->b, 0, rkey), IBV_WC_SUCCESS);
	}
	expect_eq(side_dereg(&p->b, mr->index), EBUSY);
	expect_eq(side_mw_dealloc(&p->b, second.index), 0);
	expect_eq(side_dereg(&p->b, mr->index), 0);
	*mr = side_reg_bindable(&p->b, 4096, 32768);
}

static void a_region_with_windows_is_not_deregistered(struct pair *p)
{
	each_window(p, busy_while_bound);
}

static void end_by_dealloc(struct pair *p, struct region *mr, struct window *w,
			   struct binding *bind)
{
	uint32_t rkey = side_mw_bind(&p->b, bind);

	works(p, 0, rkey, bind->addr);
	expect_eq(side_mw_dealloc(&p->b, w->index), 0);
	all_are_refused(p, 0, rkey, bind->addr);
	expect_eq(side_dereg(&p->b, mr->index), 0);
	*mr = side_reg_bindable(&p->b, 4096, 32768);
	*w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	/* The entry of the table may be used again, not the key. */
	all_are_refused(p, 0, rkey, bind->addr);
}

static void deallocation_unbinds(struct pair *p)
{
	each_window(p, end_by_dealloc);
}

static void a_qp_with_windows_may_be_destroyed(struct pair *p)
{
	struct type_2 t;
	struct binding b;

	start(p, NULL);
	second_qp(p);
	t = bind_type_2(p);
	works(p, 0, t.bind.rkey_after, t.bind.addr);
	expect_eq(side_qp_destroy(&p->b, 0), 0);
	all_are_refused(p, 1, t.bind.rkey_after, t.bind.addr);
	/* The window is of no use: neither bound anew nor invalidated. */
	b = t.bind;
	b.qp = 1;
	bind_fails(p, &b);
	expect_status(side_invalidate(&p->b, 1, t.bind.rkey_after),
		      IBV_WC_MW_BIND_ERR);
	expect_eq(side_dereg(&p->b, t.mr.index), EBUSY);
	expect_eq(side_mw_dealloc(&p->b, t.w.index), 0);
	expect_eq(side_dereg(&p->b, t.mr.index), 0);
}

/* ---- nobody writes any more when the key's end is complete ---- */

struct assault {
	uint64_t remote_addr;
	uint32_t rkey, length;
	int result;
};

static int write_until_refused(struct end *e, void *arg)
{
	struct assault *as = arg;
	struct ibv_sge sge = { (uintptr_t)e->buffer, as->length,
			       e->mr[0]->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = as->remote_addr;
	wr.wr.rdma.rkey = as->rkey;
	while (now_ms() < end) {
		if (ibv_post_send(e->qp[0], &wr, &bad))
			return -1;
		while (ibv_poll_cq(e->cq[SEND_CQ], 1, &wc) == 0)
			if (now_ms() > end)
				return -2;
		if (wc.status) {
			as->result = (int)wc.status;
			return 0;
		}
	}
	return -3;
}

/* Looks on purpose at memory that is being written. */
__attribute__((no_sanitize("thread"))) static void
wait_for_byte(const volatile uint8_t *at, uint8_t value)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (*at != value)
		if (now_ms() > end)
			fail("nothing was written");
}

/* Here the windows are side a's, whose memory this process sees. */
static void attack(struct pair *p, enum bind_how how, uint32_t length)
{
	const struct side_options opt = { .bytes = 4 << 20 };
	uint8_t *target;

	start(p, &opt);
	target = p->a.end->buffer + (1 << 20);
	side_set(&p->b, 0, length, 0xaa);
	for (int i = 0; i < 30; i++) {
		struct region mr = side_reg_bindable(&p->a, 1 << 20, length);
		struct window w = side_mw_alloc(&p->a, how == BIND_BY_VERB ?
							       IBV_MW_TYPE_1 :
							       IBV_MW_TYPE_2, 0);
		struct binding b = binding_of(&p->a, how, &w, &mr, 1 << 20,
					      length);
		struct assault as = { .remote_addr = b.addr, .length = length,
				      .rkey = side_mw_bind(&p->a, &b) };

		memset(target, 0, length);
		side_start(&p->b, write_until_refused, &as, sizeof(as));
		wait_for_byte(target + length - 1, 0xaa);
		if (i % 3 == 0) {
			expect_eq(side_mw_dealloc(&p->a, w.index), 0);
		} else if (how == BIND_BY_VERB) {
			b.length = 0;
			expect_eq(side_mw_post(&p->a, &b), 0);
			expect_eq(side_wait(&p->a, SEND_CQ).wr_id, b.wr_id);
		} else {
			side_invalidate(&p->a, 0, as.rkey);
		}
		/* From here on it is ours. */
		memset(target, 0x11, length);
		expect_eq(side_join(&p->b, &as, sizeof(as)), 0);
		expect_eq(as.result, IBV_WC_REM_ACCESS_ERR);
		for (uint32_t k = 0; k < length; k++)
			if (target[k] != 0x11)
				fail("byte %u was written after the end", k);
		if (i % 3)
			expect_eq(side_mw_dealloc(&p->a, w.index), 0);
		expect_eq(side_dereg(&p->a, mr.index), 0);
		reconnect(p, 0);
		while (side_async(&p->a, 0) >= 0)
			;
	}
}

static void writes_stop_when_unbinding_is_complete(struct pair *p)
{
	attack(p, BIND_BY_VERB, 1 << 20);
}

static void writes_stop_when_invalidation_is_complete(struct pair *p)
{
	attack(p, BIND_BY_POST, 1 << 20);
}

static const struct test_case cases[] = {
	{ .name = "windows_of_both_types_are_allocated",
	  .fn = windows_of_both_types_are_allocated,
	  .where = ONLY_ONE_PROCESS, .rule = "ibv_alloc_mw(3)" },
	RULE_IN(ONLY_ONE_PROCESS, "ibv_alloc_pd(3)",
		a_protection_domain_with_windows_is_busy),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_query_device(3)",
		the_device_offers_windows_of_type_1_and_2b),
	RULE("ibv_alloc_mw(3)", an_unbound_window_gives_nothing),
	RULE("IBTA C10-75", a_window_gives_its_range_and_not_a_byte_more),
	RULE("ibv_bind_mw(3)", data_go_where_the_window_says),
	RULE("ibv_bind_mw(3)", a_window_gives_the_rights_it_was_bound_with),
	RULE("ibv_bind_mw(3)",
	     addresses_of_a_zero_based_window_are_offsets_from_its_start),
	RULE("IBTA C10-74", a_window_needs_no_remote_right_of_its_region),
	RULE("IBTA 10.6.7.2", a_window_is_no_local_key),
	RULE("ibv_bind_mw(3)",
	     the_new_key_is_there_after_posting_and_ends_the_old_one),
	RULE("ibv_alloc_mw(3)", binding_nothing_unbinds_a_window_of_type_1),
	RULE("IBTA 10.6.7.2",
	     a_window_of_type_1_is_good_for_every_qp_of_its_domain),
	RULE("ibv_bind_mw(3)", posting_refuses_what_is_no_binding),
	RULE("ibv_post_send(3)", datagram_qps_bind_no_windows),
	RULE("IBTA 10.6.7.2",
	     a_window_of_type_2_is_good_for_the_qp_that_bound_it),
	RULE("ibv_inc_rkey(3)", the_tag_of_the_key_is_the_programs_choice),
	RULE("IBTA o10-37.2.30", a_bound_window_of_type_2_is_not_bound_again),
	RULE("IBTA C10-72 to C10-75, o10-37.2.40",
	     what_a_window_may_not_be_bound_to_fails),
	RULE("IBTA 11.6.2", a_bind_to_a_region_that_is_gone_fails),
	RULE("IBTA 10.8.3.3", binds_are_done_in_their_turn),
	RULE("ibv_bind_mw(3)", unsignaled_binds_complete_in_silence),
	RULE("IBTA 10.3.1.7", a_bind_on_a_qp_in_error_is_flushed),
	RULE("IBTA 10.6.7.2", a_bind_needs_no_peer),
	RULE("ibv_post_send(3)", an_unreliable_connection_has_windows_too),
	RULE("ibv_dereg_mr(3)", a_region_with_windows_is_not_deregistered),
	RULE("ibv_dealloc_mw(3)", deallocation_unbinds),
	RULE("IBTA o10-2.2.5", a_qp_with_windows_may_be_destroyed),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 10.6.7.2",
		writes_stop_when_unbinding_is_complete),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 10.6.5",
		writes_stop_when_invalidation_is_complete),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
