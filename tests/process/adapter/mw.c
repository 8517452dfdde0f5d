/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: binding, what they give access to and to whom, what ends them
 * (InfiniBand specification volume 1, 10.6.7.2; the manual pages of ibv_alloc_mw and
 * ibv_bind_mw). Side b has the windows, side a uses them.
 */
#include <errno.h>
#include <string.h>

#include "window.h"

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

static void inside_and_outside(struct pair *p, struct region *mr,
			       struct window *w, struct binding *bind)
{
	uint32_t rkey = side_mw_bind(&p->b, bind);

	mw_works(p, 0, rkey, bind->addr);
	mw_works(p, 0, rkey, bind->addr + LENGTH - 64);
	for (unsigned i = 0; i < 3; i++) {
		mw_refused(p, 0, rkey, bind->addr - 1, mw_accesses[i]);
		mw_refused(p, 0, rkey, bind->addr + LENGTH - 63, mw_accesses[i]);
		mw_refused(p, 0, rkey, bind->addr + LENGTH, mw_accesses[i]);
	}
	mw_refused(p, 0, rkey, bind->addr - 8, IBV_WR_ATOMIC_FETCH_AND_ADD);
	mw_refused(p, 0, rkey, bind->addr + LENGTH, IBV_WR_ATOMIC_CMP_AND_SWP);
}

static void a_window_gives_its_range_and_not_a_byte_more(struct pair *p)
{
	mw_each(p, inside_and_outside);
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
	mw_each(p, where_data_go);
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
		for (unsigned k = 0; k < MW_ACCESSES; k++) {
			unsigned needs = k == 1 ? IBV_ACCESS_REMOTE_READ :
					 k < 3	? IBV_ACCESS_REMOTE_WRITE :
						  IBV_ACCESS_REMOTE_ATOMIC;

			if (needs != rights[i])
				mw_refused(p, 0, rkey, bind->addr, mw_accesses[k]);
			else if (mw_accesses[k] != IBV_WR_RDMA_WRITE_WITH_IMM)
				expect_status(access_with(&p->a, &p->b,
							  mw_accesses[k], 0, rkey,
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
	mw_each(p, with_rights);
}

static void zero_based(struct pair *p, struct region *mr, struct window *w,
		       struct binding *bind)
{
	struct send_req r;
	uint32_t rkey;

	bind->access |= IBV_ACCESS_ZERO_BASED;
	rkey = side_mw_bind(&p->b, bind);
	mw_works(p, 0, rkey, 0);
	mw_works(p, 0, rkey, LENGTH - 64);
	mw_refused(p, 0, rkey, LENGTH - 63, IBV_WR_RDMA_WRITE);
	mw_refused(p, 0, rkey, bind->addr, IBV_WR_RDMA_WRITE);
	mw_refused(p, 0, rkey, LENGTH, IBV_WR_ATOMIC_FETCH_AND_ADD);
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
	mw_each(p, zero_based);
}

static void other_domain(struct pair *p, struct region *mr, struct window *w,
			 struct binding *bind)
{
	/* The accessing QP's own domain is its peer's business only. */
	struct region own = side_reg(&p->a, 0, 4096, IBV_ACCESS_LOCAL_WRITE, 1);
	uint32_t rkey = side_mw_bind(&p->b, bind);

	mw_works(p, 0, rkey, bind->addr);
	expect_eq(side_dereg(&p->a, own.index), 0);
}

static void a_window_needs_no_remote_right_of_its_region(struct pair *p)
{
	mw_each(p, other_domain);
}

static void as_local_key(struct pair *p, struct region *mr, struct window *w,
			 struct binding *bind)
{
	struct send_req r = send_req(&p->b, IBV_WR_SEND, 5, AT, 64);
	struct recv_req rr = { .wr_id = 6, .num_sge = 1 };

	r.sge[0].lkey = side_mw_bind(&p->b, bind);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->b, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	mw_reconnect(p, 0);
	rr.sge[0] = r.sge[0];
	expect_eq(side_post_recv(&p->b, 0, &rr, 1).ret, 0);
	side_send(&p->a, 7, 0, 64);
	expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_LOC_PROT_ERR);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_OP_ERR);
	mw_reconnect(p, 0);
}

static void a_window_is_no_local_key(struct pair *p)
{
	mw_each(p, as_local_key);
}

static void before_binding(struct pair *p, struct region *mr, struct window *w,
			   struct binding *bind)
{
	mw_all_refused(p, 0, w->rkey, bind->addr);
	mw_all_refused(p, 0, bind->rkey, bind->addr);
}

static void an_unbound_window_gives_nothing(struct pair *p)
{
	mw_each(p, before_binding);
}

/* ---- type 1 ---- */

static void the_new_key_is_there_after_posting_and_ends_the_old_one(struct pair *p)
{
	struct bound_window t;
	uint32_t first;

	mw_start(p, NULL);
	t = mw_bound(p, BIND_BY_VERB);
	first = t.bind.rkey_after;
	expect(first != t.w.rkey);
	expect_eq(first >> 8, t.w.rkey >> 8);
	t.bind.addr += LENGTH;
	side_mw_bind(&p->b, &t.bind);
	expect(t.bind.rkey_after != first);
	mw_works(p, 0, t.bind.rkey_after, t.bind.addr);
	mw_all_refused(p, 0, first, t.bind.addr);
	mw_all_refused(p, 0, t.bind.rkey_after, t.bind.addr - LENGTH);
}

static void binding_nothing_unbinds_a_window_of_type_1(struct pair *p)
{
	struct bound_window t;
	uint32_t first;

	mw_start(p, NULL);
	t = mw_bound(p, BIND_BY_VERB);
	first = t.bind.rkey_after;
	mw_works(p, 0, first, t.bind.addr);
	t.bind.length = 0;
	side_mw_bind(&p->b, &t.bind);
	mw_all_refused(p, 0, first, t.bind.addr);
	mw_all_refused(p, 0, t.bind.rkey_after, t.bind.addr);
	/* Without a region, too. */
	t.bind.length = LENGTH;
	side_mw_bind(&p->b, &t.bind);
	mw_works(p, 0, t.bind.rkey_after, t.bind.addr);
	t.bind.region = -1;
	t.bind.addr = t.bind.length = 0;
	side_mw_bind(&p->b, &t.bind);
	expect_eq(side_dereg(&p->b, t.mr.index), 0);
}

static void a_window_of_type_1_is_good_for_every_qp_of_its_domain(struct pair *p)
{
	struct bound_window t;

	mw_start(p, NULL);
	mw_second_qp(p);
	t = mw_bound(p, BIND_BY_VERB);
	mw_works(p, 0, t.bind.rkey_after, t.bind.addr);
	mw_works(p, 1, t.bind.rkey_after, t.bind.addr);
	/* And is bound anew by another one. */
	t.bind.qp = 1;
	side_mw_bind(&p->b, &t.bind);
	mw_works(p, 0, t.bind.rkey_after, t.bind.addr);
}

static void posting_refuses_what_is_no_binding(struct pair *p)
{
	struct region mr, zero;
	struct window one, two;
	struct binding b;

	mw_start(p, NULL);
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
	b.access = IBV_ACCESS_MW_BIND;
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

static void a_window_of_type_2_is_good_for_the_qp_that_bound_it(struct pair *p)
{
	struct bound_window t;

	mw_start(p, NULL);
	mw_second_qp(p);
	t = mw_bound(p, BIND_BY_POST);
	mw_works(p, 0, t.bind.rkey_after, t.bind.addr);
	mw_all_refused(p, 1, t.bind.rkey_after, t.bind.addr);
	mw_works(p, 0, t.bind.rkey_after, t.bind.addr);
}

static void the_tag_of_the_key_is_the_programs_choice(struct pair *p)
{
	static const uint32_t tags[] = { 0, 0xff, 0x12345678, 7 };
	struct bound_window t;

	mw_start(p, NULL);
	t = mw_bound(p, BIND_BY_POST);
	for (unsigned i = 0; i < 4; i++) {
		expect_status(side_invalidate(&p->b, 0, t.bind.rkey_after),
			      IBV_WC_SUCCESS);
		t.bind.rkey = tags[i];
		side_mw_bind(&p->b, &t.bind);
		mw_works(p, 0, (t.w.rkey & ~0xffu) | (tags[i] & 0xff), t.bind.addr);
		mw_refused(p, 0, (t.w.rkey & ~0xffu) | ((tags[i] + 1) & 0xff),
			   t.bind.addr, IBV_WR_RDMA_WRITE);
	}
}

static void a_bound_window_of_type_2_is_not_bound_again(struct pair *p)
{
	struct bound_window t;
	uint32_t rkey;

	mw_start(p, NULL);
	mw_second_qp(p);
	t = mw_bound(p, BIND_BY_POST);
	rkey = t.bind.rkey_after;
	t.bind.rkey++;
	mw_bind_fails(p, &t.bind);
	t.bind.qp = 1;
	mw_bind_fails(p, &t.bind);
	/* It is what it was. */
	mw_works(p, 0, rkey, t.bind.addr);
}

static void what_a_window_may_not_be_bound_to_fails(struct pair *p)
{
	enum { LOCAL = IBV_ACCESS_LOCAL_WRITE, BIND = IBV_ACCESS_MW_BIND };
	struct region all, no_bind, no_write, other, zero;
	struct window w[2], other_w;

	mw_start(p, NULL);
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
			mw_bind_fails(p, &b);                                   \
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
	mw_bind_fails(p, &b);
	b = binding_of(&p->b, BIND_BY_POST, &w[1], &zero, AT, LENGTH);
	mw_bind_fails(p, &b);
	b = binding_of(&p->b, BIND_BY_POST, &w[1], NULL, AT, LENGTH);
	mw_bind_fails(p, &b);
	b = binding_of(&p->b, BIND_BY_POST, &w[1], &all, AT, LENGTH);
	b.access = IBV_ACCESS_MW_BIND;
	mw_bind_fails(p, &b);
	/* Length 0 does not unbind type 2. */
	b = binding_of(&p->b, BIND_BY_POST, &w[1], &all, AT, 0);
	mw_bind_fails(p, &b);
	/* The window's domain is not the QP's. */
	b = binding_of(&p->b, BIND_BY_POST, &other_w, &other, AT, LENGTH);
	mw_bind_fails(p, &b);
	/* Reading needs nothing but the right to bind. */
	b = binding_of(&p->b, BIND_BY_POST, &w[1], &no_write, AT, LENGTH);
	b.access = IBV_ACCESS_REMOTE_READ;
	side_mw_bind(&p->b, &b);
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_READ, 0,
				  b.rkey_after, b.addr), IBV_WC_SUCCESS);
}

static void with_local_writing(struct pair *p, struct region *mr,
			       struct window *w, struct binding *bind)
{
	uint32_t rkey;

	bind->access |= IBV_ACCESS_LOCAL_WRITE;
	rkey = side_mw_bind(&p->b, bind);
	mw_works(p, 0, rkey, bind->addr);
	/* Of itself it is no right of a peer. */
	if (bind->how != BIND_BY_VERB)
		expect_status(side_invalidate(&p->b, 0, rkey), IBV_WC_SUCCESS);
	bind->access = IBV_ACCESS_LOCAL_WRITE;
	rkey = side_mw_bind(&p->b, bind);
	for (unsigned i = 0; i < MW_ACCESSES; i++)
		mw_refused(p, 0, rkey, bind->addr, mw_accesses[i]);
}

static void the_right_of_local_writing_is_no_matter_of_a_window(struct pair *p)
{
	mw_each(p, with_local_writing);
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
	     the_right_of_local_writing_is_no_matter_of_a_window),
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
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
