/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory on demand: registered without being there, used when it is, and an error
 * completion instead of a signal when it is not (the manual pages of ibv_reg_mr,
 * ibv_advise_mr and ibv_query_device_ex; InfiniBand specification volume 1, 11.6.2).
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "window.h"

enum {
	PAGE = 4096,
	HOLE = 1 << 20, /* of the buffer of 4 MiB; mapped again by refill() */
	TO = 2 << 20,
	REGION = 1 << 20,
};

static const struct side_options big = { .bytes = 4 << 20 };
static const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
		       IBV_ACCESS_ON_DEMAND;
/* In a slot, in the data area, pulled. */
static const uint32_t lengths[] = { 50, 5000, 100000 };

struct stretch {
	uint64_t offset, length;
	int protection; /* -1: not mapped at all */
};

static int do_map(struct end *e, void *arg)
{
	const struct stretch *s = arg;
	void *at = e->buffer + s->offset;

	if (s->protection < 0)
		return munmap(at, s->length);
	return mmap(at, s->length, s->protection,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at ? 0 : -1;
}

static void map(struct side *s, uint64_t offset, uint64_t length, int protection)
{
	struct stretch st = { offset, length, protection };

	expect_eq(side_run(s, do_map, &st, sizeof(st)), 0);
}

static void take_away(struct side *s)
{
	map(s, HOLE, REGION, -1);
}

static void give_back(struct side *s)
{
	map(s, HOLE, REGION, PROT_READ | PROT_WRITE);
}

static void start(struct pair *p)
{
	p->conn.access_a = p->conn.access_b = window_rights();
	pair_start(p, &big);
}

static void reconnect(struct pair *p)
{
	pair_reset_qp(p, 0);
	pair_connect_qp(p, 0);
	while (side_async(&p->b, 0) >= 0)
		;
}

static struct region on_demand(struct side *s)
{
	struct region mr = side_reg(s, HOLE, REGION, all, 0);

	expect(mr.index >= 0);
	return mr;
}

/* ---- registration ---- */

static void memory_that_is_not_there_is_registered_on_demand_only(struct pair *p)
{
	struct region mr;

	side_open(&p->a, &big);
	take_away(&p->a);
	mr = side_reg(&p->a, HOLE, REGION, IBV_ACCESS_LOCAL_WRITE, 0);
	expect_eq(mr.index, -1);
	expect_eq(mr.error, EFAULT);
	mr = on_demand(&p->a);
	expect_eq(mr.addr, p->a.addr + HOLE);
	expect_eq(side_dereg(&p->a, mr.index), 0);
	give_back(&p->a);
}

static void what_contradicts_itself_is_refused_on_demand_too(struct pair *p)
{
	struct ibv_pd *pd;

	side_open(&p->a, &big);
	pd = p->a.end->pd;
#define REFUSED(addr, length, access)                              \
	do {                                                       \
		errno = 0;                                         \
		expect(!ibv_reg_mr(pd, (void *)(uintptr_t)(addr),  \
				   length, access));               \
		expect_eq(errno, EINVAL);                          \
	} while (0)
	REFUSED(PAGE, SIZE_MAX, IBV_ACCESS_ON_DEMAND);
	REFUSED(UINT64_MAX - 10, 100, IBV_ACCESS_ON_DEMAND);
	REFUSED(0, PAGE, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_WRITE);
	REFUSED(0, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_ATOMIC);
	/* Huge pages are for explicit regions. */
	REFUSED(0, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB);
	/* Without on demand this is just a range that makes no sense. */
	errno = 0;
	expect(!ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	expect(errno);
#undef REFUSED
}

static void huge_pages_may_be_promised(struct pair *p)
{
	struct region mr;

	side_open(&p->a, &big);
	mr = side_reg(&p->a, HOLE, REGION, all | IBV_ACCESS_HUGETLB, 0);
	expect(mr.index >= 0);
	mr = side_reg(&p->a, HOLE, REGION, IBV_ACCESS_LOCAL_WRITE |
						   IBV_ACCESS_HUGETLB, 0);
	expect(mr.index >= 0);
}

static void the_device_says_what_works_on_demand(struct pair *p)
{
	const uint32_t both = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
			      IBV_ODP_SUPPORT_SRQ_RECV;
	const bool rnic = transport_under_test()->streams;
	struct ibv_device_attr_ex d;

	side_open(&p->a, NULL);
	expect_eq(ibv_query_device_ex(p->a.end->ctx, NULL, &d), 0);
	expect_eq(d.odp_caps.general_caps,
		  IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	expect_eq(d.odp_caps.per_transport_caps.rc_odp_caps,
		  both | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			  (offers(IBV_WR_ATOMIC_FETCH_AND_ADD) ? IBV_ODP_SUPPORT_ATOMIC : 0));
	expect_eq(d.odp_caps.per_transport_caps.uc_odp_caps,
		  rnic ? 0 : IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE);
	expect_eq(d.odp_caps.per_transport_caps.ud_odp_caps, rnic ? 0 : both);
}

/* ---- use ---- */

static struct send_req using(struct side *s, enum ibv_wr_opcode opcode,
			     uint32_t lkey, uint32_t length)
{
	struct send_req r = send_req(s, opcode, 1, HOLE + 100, length);

	r.sge[0].lkey = lkey;
	return r;
}

static void post_recv(struct side *s, uint32_t lkey, uint32_t length)
{
	struct recv_req rr = { .wr_id = 2, .num_sge = 1,
			       .sge = { side_sge(s, HOLE + 200, length) } };

	rr.sge[0].lkey = lkey;
	expect_eq(side_post_recv(s, 0, &rr, 1).ret, 0);
}

/* Messages and one-sided accesses from, into and to memory on demand of both. */
static void exchange(struct pair *p, uint32_t key_a, uint32_t key_b)
{
	for (unsigned i = 0; i < 3; i++) {
		uint32_t n = lengths[i];
		struct send_req r = using(&p->a, IBV_WR_SEND, key_a, n);

		side_fill(&p->a, HOLE + 100, n, i);
		post_recv(&p->b, key_b, n);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->b, RECV_CQ, 2);
		side_wait_ok(&p->a, SEND_CQ, 1);
		side_check(&p->b, HOLE + 200, n, i);

		r.opcode = IBV_WR_RDMA_WRITE;
		r.rkey = key_b;
		r.remote_addr = p->b.addr + HOLE + 300000;
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 1);
		side_check(&p->b, HOLE + 300000, n, i);

		side_fill(&p->b, HOLE + 300000, n, i + 10);
		r.opcode = IBV_WR_RDMA_READ;
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 1);
		side_check(&p->a, HOLE + 100, n, i + 10);
	}
}

static void an_atomic(struct pair *p, uint32_t key_a, uint32_t key_b)
{
	struct send_req r = using(&p->a, IBV_WR_ATOMIC_FETCH_AND_ADD, key_a, 8);
	uint64_t was = 1, is = 0;

	side_set(&p->b, HOLE + 8, 8, 1);
	r.sge[0].addr = p->a.addr + HOLE;
	r.remote_addr = p->b.addr + HOLE + 8;
	r.rkey = key_b;
	r.compare_add = 5;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_peek(&p->a, HOLE, &was, 8);
	side_peek(&p->b, HOLE + 8, &is, 8);
	expect_eq(was, 0x0101010101010101);
	expect_eq(is, was + 5);
}

static void memory_on_demand_is_used_like_any_other(struct pair *p)
{
	struct region a, b;

	start(p);
	take_away(&p->a);
	take_away(&p->b);
	a = on_demand(&p->a);
	b = on_demand(&p->b);
	/* Pages that come after the registration, more than once. */
	for (int i = 0; i < 2; i++) {
		give_back(&p->a);
		give_back(&p->b);
		exchange(p, a.lkey, b.lkey);
		an_atomic(p, a.lkey, b.lkey);
	}
}

/* Registers all of the address space; the key in `arg`. */
static int do_implicit(struct end *e, void *arg)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, NULL, SIZE_MAX, all);

	if (!mr)
		return -1;
	for (int i = 0; i < SIDE_MRS; i++) {
		if (e->mr[i])
			continue;
		e->mr[i] = mr;
		break;
	}
	*(uint32_t *)arg = mr->lkey;
	return mr->addr == NULL && mr->length == SIZE_MAX && mr->lkey == mr->rkey ?
		       0 : -2;
}

static void one_region_may_be_all_of_the_address_space(struct pair *p)
{
	uint32_t a, b;

	start(p);
	expect_eq(side_run(&p->a, do_implicit, &a, sizeof(a)), 0);
	expect_eq(side_run(&p->b, do_implicit, &b, sizeof(b)), 0);
	take_away(&p->a);
	give_back(&p->a);
	exchange(p, a, b);
	an_atomic(p, a, b);
}

static void datagrams_come_from_and_go_to_memory_on_demand(struct pair *p)
{
	const struct side_options ud = { .type = IBV_QPT_UD, .bytes = 4 << 20 };
	struct send_req r;
	struct region a, b;

	p->conn.access_a = p->conn.access_b = 7;
	pair_start(p, &ud);
	a = on_demand(&p->a);
	b = on_demand(&p->b);
	for (uint32_t n = 20; n < 4096; n += 2000) {
		side_fill(&p->a, HOLE + 100, n, n);
		post_recv(&p->b, b.lkey, n + 40);
		r = using(&p->a, IBV_WR_SEND, a.lkey, n);
		r.ah = side_ah_to(&p->a, &p->b.gid);
		r.remote_qpn = p->b.qpn[0];
		r.qkey = 7;
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 1);
		side_wait_ok(&p->b, RECV_CQ, 2);
		side_check(&p->b, HOLE + 240, n, n);
		side_ah_destroy(&p->a, r.ah);
	}
	take_away(&p->a);
	r.ah = side_ah_to(&p->a, &p->b.gid);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	side_ah_destroy(&p->a, r.ah);
	give_back(&p->a);
}

static void unreliable_connections_use_memory_on_demand(struct pair *p)
{
	const struct side_options uc = { .type = IBV_QPT_UC, .bytes = 4 << 20 };
	struct region a, b;

	p->conn.access_a = p->conn.access_b = IBV_ACCESS_REMOTE_WRITE;
	pair_start(p, &uc);
	a = on_demand(&p->a);
	b = on_demand(&p->b);
	for (unsigned i = 0; i < 3; i++) {
		struct send_req r = using(&p->a, IBV_WR_SEND, a.lkey, lengths[i]);

		side_fill(&p->a, HOLE + 100, lengths[i], i);
		post_recv(&p->b, b.lkey, lengths[i]);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 1);
		side_wait_ok(&p->b, RECV_CQ, 2);
		side_check(&p->b, HOLE + 200, lengths[i], i);
	}
}

static void several_pieces_may_be_of_different_kinds(struct pair *p)
{
	struct region a, b;

	start(p);
	a = on_demand(&p->a);
	b = on_demand(&p->b);
	for (uint32_t n = 30; n < 200000; n *= 11) {
		struct send_req r = send_req(&p->a, IBV_WR_SEND, 1, 0, n);
		struct recv_req rr = { .wr_id = 2, .num_sge = 3 };

		side_fill(&p->a, 0, n, 1);
		side_fill(&p->a, HOLE, n, 2);
		r.num_sge = 2;
		r.sge[1] = side_sge(&p->a, HOLE, n);
		r.sge[1].lkey = a.lkey;
		rr.sge[0] = side_sge(&p->b, HOLE, n);
		rr.sge[0].lkey = b.lkey;
		rr.sge[1] = side_sge(&p->b, TO, n / 2);
		rr.sge[2] = side_sge(&p->b, HOLE + n, n);
		rr.sge[2].lkey = b.lkey;
		expect_eq(side_post_recv(&p->b, 0, &rr, 1).ret, 0);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 1);
		side_wait_ok(&p->b, RECV_CQ, 2);
		side_check(&p->b, HOLE, n, 1);
		side_check(&p->b, TO, n / 2, 2);
	}
}

static void windows_are_bound_to_memory_on_demand(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ,
						  IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct binding bind;
	struct region mr;
	struct window w;

	start(p);
	take_away(&p->b);
	mr = side_reg(&p->b, HOLE, REGION, all | IBV_ACCESS_MW_BIND, 0);
	w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	bind = binding_of(&p->b, BIND_BY_POST, &w, &mr, HOLE + PAGE, PAGE);
	side_mw_bind(&p->b, &bind);
	for (unsigned i = 0; i < 3; i++) {
		expect_status(access_with(&p->a, &p->b, ops[i], 0,
					  bind.rkey_after, bind.addr),
			      IBV_WC_REM_ACCESS_ERR);
		reconnect(p);
	}
	give_back(&p->b);
	for (unsigned i = 0; i < 3; i++)
		expect_status(access_with(&p->a, &p->b, ops[i], 0,
					  bind.rkey_after, bind.addr),
			      IBV_WC_SUCCESS);
}

/* ---- pages that are not there ---- */

static void a_send_of_missing_pages_fails_at_the_sender(struct pair *p)
{
	struct region a;

	start(p);
	a = on_demand(&p->a);
	for (unsigned i = 0; i < 3; i++) {
		static const enum ibv_wr_opcode ops[] = {
			IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

		for (unsigned k = 0; k < 3; k++) {
			struct send_req r = using(&p->a, ops[k], a.lkey,
						  lengths[i]);

			r.remote_addr = p->b.addr + TO;
			r.rkey = p->b.rkey;
			side_recv(&p->b, 1, 0, 200000);
			take_away(&p->a);
			expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
			expect_status(side_wait(&p->a, SEND_CQ),
				      IBV_WC_LOC_PROT_ERR);
			expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
			if (transport_under_test()->streams) {
				/* The stream ends with a TERMINATE. */
				expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_WR_FLUSH_ERR);
			} else {
				expect_eq(side_poll(&p->b, RECV_CQ, 1, 5).count, 0);
				expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
			}
			give_back(&p->a);
			reconnect(p);
		}
	}
}

/* The sender's part of it. A SEND of a stream may be complete before it is refused. */
static void expect_refused_send(struct pair *p)
{
	struct ibv_wc wc = side_wait(&p->a, SEND_CQ);

	if (!transport_under_test()->streams)
		expect_status(wc, IBV_WC_REM_OP_ERR);
	side_wait_state(&p->a, 0, IBV_QPS_ERR);
}

static void a_receive_into_missing_pages_fails_on_both_sides(struct pair *p)
{
	struct region b;

	start(p);
	b = on_demand(&p->b);
	for (unsigned i = 0; i < 6; i++) {
		struct send_req r = send_req(&p->a, IBV_WR_SEND, 1, 0,
					     lengths[i % 3]);

		post_recv(&p->b, b.lkey, lengths[i % 3]);
		/* Memory that is there and may not be written is no better. */
		map(&p->b, HOLE, REGION, i < 3 ? -1 : PROT_READ);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_LOC_PROT_ERR);
		expect_refused_send(p);
		give_back(&p->b);
		reconnect(p);
	}
}

static void a_remote_access_to_missing_pages_is_refused(struct pair *p)
{
	struct region b;

	start(p);
	b = on_demand(&p->b);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < 3; k++) {
			struct send_req r = rdma_req(
				&p->a, &p->b,
				k == 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
				1, 0, HOLE, lengths[i]);

			r.rkey = b.rkey;
			map(&p->b, HOLE, REGION, k < 2 ? -1 : PROT_READ);
			expect_status(result_of(&p->a, &p->b, 0, &r), IBV_WC_REM_ACCESS_ERR);
			expect_eq(side_async(&p->b, WAIT_MS),
				  IBV_EVENT_QP_ACCESS_ERR);
			give_back(&p->b);
			reconnect(p);
		}
	}
}

static void an_atomic_on_missing_pages_is_refused(struct pair *p)
{
	struct region a, b;

	start(p);
	a = on_demand(&p->a);
	b = on_demand(&p->b);
	for (int i = 0; i < 2; i++) {
		map(&p->b, HOLE, REGION, i ? PROT_READ : -1);
		expect_status(access_with(&p->a, &p->b,
					  IBV_WR_ATOMIC_CMP_AND_SWP, 0, b.rkey,
					  p->b.addr + HOLE + 16),
			      IBV_WC_REM_ACCESS_ERR);
		expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
		give_back(&p->b);
		reconnect(p);
	}
	/* Here, and the place for the result there. */
	struct send_req r = using(&p->a, IBV_WR_ATOMIC_FETCH_AND_ADD, a.lkey, 8);

	r.remote_addr = p->b.addr + HOLE;
	r.rkey = b.rkey;
	take_away(&p->a);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	give_back(&p->a);
	reconnect(p);
	an_atomic(p, a.lkey, b.lkey);
}

static void only_the_missing_page_counts(struct pair *p)
{
	struct send_req r;
	struct region a;

	start(p);
	a = on_demand(&p->a);
	map(&p->a, HOLE + 10 * PAGE, PAGE, -1);
	side_fill(&p->a, HOLE + 5 * PAGE, 5 * PAGE, 1);
	r = send_req(&p->a, IBV_WR_SEND, 1, HOLE + 5 * PAGE, 5 * PAGE);
	r.sge[0].lkey = a.lkey;
	side_recv(&p->b, 1, TO, 10 * PAGE);
	side_recv(&p->b, 2, TO, 10 * PAGE);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_check(&p->b, TO, 5 * PAGE, 1);
	r.sge[0].length++;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	give_back(&p->a);
}

static void messages_need_no_process_vm(struct pair *p)
{
	struct region a, b;

	setenv("BUSBAR_SHM_ACCESS", "target", 1);
	start(p);
	a = on_demand(&p->a);
	b = on_demand(&p->b);
	for (unsigned i = 0; i < 3; i++) {
		struct send_req r = using(&p->a, IBV_WR_SEND, a.lkey, lengths[i]);

		side_fill(&p->a, HOLE + 100, lengths[i], i);
		post_recv(&p->b, b.lkey, lengths[i]);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->b, RECV_CQ, 2);
		side_wait_ok(&p->a, SEND_CQ, 1);
		side_check(&p->b, HOLE + 200, lengths[i], i);
		post_recv(&p->b, b.lkey, lengths[i]);
		map(&p->b, HOLE, PAGE, PROT_READ);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_LOC_PROT_ERR);
		expect_refused_send(p);
		give_back(&p->b);
		reconnect(p);
	}
	an_atomic(p, a.lkey, b.lkey);
	side_run(&p->a, do_map, &(struct stretch){ HOLE, PAGE, -1 },
		 sizeof(struct stretch));
	struct send_req r = using(&p->a, IBV_WR_SEND, a.lkey, 50);

	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	give_back(&p->a);
}

/* ---- advice ---- */

static int pages_present(uint8_t *at, int count)
{
	unsigned char vec[64];
	int n = 0;

	expect_eq(mincore(at, (size_t)count * PAGE, vec), 0);
	for (int i = 0; i < count; i++)
		n += vec[i] & 1;
	return n;
}

static int advise(struct end *e, enum ibv_advise_mr_advice advice,
		  uint32_t flags, uint32_t lkey, void *at, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)at, length, lkey };

	return ibv_advise_mr(e->pd, advice, flags, &sge, 1);
}

static void prefetching_makes_pages_present(struct pair *p)
{
	struct end *e = p->a.end;
	struct region mr;
	uint8_t *at;

	side_open(&p->a, &big);
	take_away(&p->a);
	give_back(&p->a);
	/* Else a fault may bring in more than was asked for. */
	madvise(e->buffer + HOLE, REGION, MADV_NOHUGEPAGE);
	mr = on_demand(&p->a);
	at = e->buffer + HOLE;
	expect_eq(pages_present(at, 64), 0);
	expect_eq(advise(e, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0, mr.lkey,
			 at, 8 * PAGE), 0);
	expect_eq(pages_present(at, 64), 0);
	expect_eq(advise(e, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			 IBV_ADVISE_MR_FLAG_FLUSH, mr.lkey, at + 10, 8 * PAGE),
		  0);
	expect_eq(pages_present(at, 9), 9);
	expect_eq(pages_present(at + 9 * PAGE, 55), 0);
	expect_eq(advise(e, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, mr.lkey,
			 at + 20 * PAGE, PAGE), 0);
	expect_eq(pages_present(at + 20 * PAGE, 1), 1);
	/* What is there is not changed. */
	memset(at, 0x5a, PAGE);
	expect_eq(advise(e, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, mr.lkey, at,
			 PAGE), 0);
	for (int i = 0; i < PAGE; i++)
		expect_eq(at[i], 0x5a);
}

static void advice_that_makes_no_sense_is_refused(struct pair *p)
{
	const enum ibv_advise_mr_advice fetch = IBV_ADVISE_MR_ADVICE_PREFETCH;
	const enum ibv_advise_mr_advice write =
		IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	struct region mr, plain, other, read_only;
	struct end *e = p->a.end;
	struct ibv_sge sge;
	struct window w;
	uint8_t *at;

	side_open(&p->a, &big);
	at = e->buffer + HOLE;
	mr = on_demand(&p->a);
	plain = side_reg(&p->a, HOLE, REGION, IBV_ACCESS_LOCAL_WRITE, 0);
	other = side_reg(&p->a, HOLE, REGION, all, 1);
	read_only = side_reg(&p->a, HOLE, REGION, IBV_ACCESS_ON_DEMAND, 0);
	w = side_mw_alloc(&p->a, IBV_MW_TYPE_2, 0);
	expect_eq(advise(e, (enum ibv_advise_mr_advice)17, 0, mr.lkey, at, PAGE),
		  EOPNOTSUPP);
	expect_eq(advise(e, fetch, 0x100, mr.lkey, at, PAGE), EINVAL);
	expect_eq(ibv_advise_mr(e->pd, fetch, 0, &sge, 0), EINVAL);
	expect_eq(advise(e, fetch, 0, 0, at, PAGE), EFAULT);
	expect_eq(advise(e, fetch, 0, mr.lkey + (50 << 8), at, PAGE), EFAULT);
	expect_eq(advise(e, fetch, 0, mr.lkey ^ 1, at, PAGE), ENOENT);
	expect_eq(advise(e, fetch, 0, w.rkey, at, PAGE), EINVAL);
	expect_eq(advise(e, fetch, 0, plain.lkey, at, PAGE), EINVAL);
	expect_eq(advise(e, fetch, 0, other.lkey, at, PAGE), EPERM);
	expect_eq(advise(e, fetch, 0, read_only.lkey, at, PAGE), 0);
	expect_eq(advise(e, write, 0, read_only.lkey, at, PAGE), EPERM);
	expect_eq(advise(e, fetch, 0, mr.lkey, at - 1, PAGE), EFAULT);
	expect_eq(advise(e, fetch, 0, mr.lkey, at + REGION - PAGE, PAGE + 1),
		  EFAULT);
	take_away(&p->a);
	for (int advice = 0; advice < 3; advice++)
		expect_eq(advise(e, (enum ibv_advise_mr_advice)advice, 0, mr.lkey,
				 at, PAGE), EFAULT);
	map(&p->a, HOLE, REGION, PROT_READ);
	expect_eq(advise(e, fetch, 0, mr.lkey, at, PAGE), 0);
	expect(advise(e, write, 0, mr.lkey, at, PAGE) != 0);
	give_back(&p->a);
}

static const struct test_case cases[] = {
	RULE_IN(ONLY_ONE_PROCESS, "ibv_reg_mr(3)",
		memory_that_is_not_there_is_registered_on_demand_only),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_reg_mr(3)",
		what_contradicts_itself_is_refused_on_demand_too),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_reg_mr(3)", huge_pages_may_be_promised),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_query_device_ex(3)",
		the_device_says_what_works_on_demand),
	RULE("ibv_reg_mr(3)", memory_on_demand_is_used_like_any_other),
	RULE("ibv_reg_mr(3)", one_region_may_be_all_of_the_address_space),
	RULE("ibv_query_device_ex(3)",
	     datagrams_come_from_and_go_to_memory_on_demand),
	RULE("ibv_query_device_ex(3)",
	     unreliable_connections_use_memory_on_demand),
	RULE("ibv_post_send(3)", several_pieces_may_be_of_different_kinds),
	RULE("ibv_bind_mw(3)", windows_are_bound_to_memory_on_demand),
	RULE("IBTA 11.6.2", a_send_of_missing_pages_fails_at_the_sender),
	RULE("IBTA 11.6.2", a_receive_into_missing_pages_fails_on_both_sides),
	RULE("IBTA 11.6.2", a_remote_access_to_missing_pages_is_refused),
	RULE("IBTA 11.6.2", an_atomic_on_missing_pages_is_refused),
	CASE(only_the_missing_page_counts),
	CASE_IN(ONLY_ONE_PROCESS,
		messages_need_no_process_vm),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_advise_mr(3)",
		prefetching_makes_pages_present),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_advise_mr(3)",
		advice_that_makes_no_sense_is_refused),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
