/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory, ibv_alloc_dm(3): allocation, copies, registration, and every
 * operation on it, by offset. Peers map it, so most cases do the same thing
 * often enough for both ways of reaching it to be used.
 */
#include <errno.h>
#include <string.h>

#include "window.h"

enum {
	DM_BYTES = 3 * 4096 + 100,
	FROM = 4096, /* of the registration in the device memory */
	MR_BYTES = 2 * 4096,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
	      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
	      IBV_ACCESS_ZERO_BASED,
	ROUNDS = 40,
};

/* What a side has; two sides may live in one process. */
static struct held {
	const struct end *end;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
} held[2];

static struct held *held_by(const struct end *e)
{
	for (int i = 0; i < 2; i++)
		if (held[i].end == e)
			return &held[i];
	for (int i = 0; i < 2; i++) {
		if (held[i].end)
			continue;
		held[i].end = e;
		return &held[i];
	}
	fail("more than two sides");
}

struct dm_mr {
	int access;
	uint32_t lkey, rkey;
};

static int dm_make(struct end *e, void *arg)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_BYTES };
	struct held *h = held_by(e);
	struct dm_mr *mr = arg;
	static const uint8_t zeros[DM_BYTES];

	h->dm = ibv_alloc_dm(e->ctx, &attr);
	if (!h->dm || ibv_memcpy_to_dm(h->dm, 0, zeros, DM_BYTES))
		return -1;
	h->mr = ibv_reg_dm_mr(e->pd, h->dm, FROM, MR_BYTES,
			      (unsigned)mr->access);
	if (!h->mr)
		return -2;
	mr->lkey = h->mr->lkey;
	mr->rkey = h->mr->rkey;
	return 0;
}

static int dm_end(struct end *e, void *arg)
{
	struct held *h = held_by(e);
	int ret = ibv_free_dm(h->dm);

	/* As the manual page says, not while a region is on it. */
	if (ret != EBUSY)
		return 1000 + ret;
	ret = ibv_dereg_mr(h->mr);
	ret = ret ? ret : ibv_free_dm(h->dm);
	*h = (struct held){ 0 };
	return ret;
}

static struct dm_mr make(struct side *s, int access)
{
	struct dm_mr mr = { .access = access };

	expect_eq(side_run(s, dm_make, &mr, sizeof(mr)), 0);
	return mr;
}

static void end(struct side *s)
{
	int unused = 0;

	expect_eq(side_run(s, dm_end, &unused, sizeof(unused)), 0);
}

struct piece {
	uint64_t at;
	uint32_t length;
	uint8_t bytes[256];
};

/* By whole words, as device memory is read. */
static int dm_peek(struct end *e, void *arg)
{
	struct piece *p = arg;
	uint64_t from = p->at & ~UINT64_C(3);
	uint64_t to = (p->at + p->length + 3) & ~UINT64_C(3);
	uint8_t words[sizeof(p->bytes) + 8];
	int ret = ibv_memcpy_from_dm(words, held_by(e)->dm, FROM + from,
				     to - from);

	memcpy(p->bytes, words + (p->at - from), p->length);
	return ret;
}

static struct piece peek(struct side *s, uint64_t at, uint32_t length)
{
	struct piece p = { .at = at, .length = length };

	expect_eq(side_run(s, dm_peek, &p, sizeof(p)), 0);
	return p;
}

static uint64_t word_at(struct side *s, uint64_t at)
{
	struct piece p = peek(s, at, 8);
	uint64_t word;

	memcpy(&word, p.bytes, sizeof(word));
	return word;
}

static int try_attributes(struct end *e, void *arg)
{
	struct ibv_device_attr_ex ex;
	struct ibv_alloc_dm_attr attr = { .length = 100 };
	uint8_t bytes[100], back[100];
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	expect_eq(ibv_query_device_ex(e->ctx, NULL, &ex), 0);
	expect(ex.max_dm_size >= 1 << 16);
	dm = ibv_alloc_dm(e->ctx, &attr);
	expect(dm != NULL);
	memset(bytes, 7, sizeof(bytes));
	expect_eq(ibv_memcpy_to_dm(dm, 0, bytes, 100), 0);
	expect_eq(ibv_memcpy_from_dm(back, dm, 0, 100), 0);
	expect(!memcmp(bytes, back, 100));
	for (int k = 1; k < 4; k++) {
		expect_eq(ibv_memcpy_to_dm(dm, (uint64_t)k, bytes, 4), EINVAL);
		expect_eq(ibv_memcpy_to_dm(dm, 4, bytes, (size_t)k), EINVAL);
		expect_eq(ibv_memcpy_from_dm(back, dm, (uint64_t)k, 4), EINVAL);
		expect_eq(ibv_memcpy_from_dm(back, dm, 4, (size_t)k), EINVAL);
	}
	expect_eq(ibv_memcpy_to_dm(dm, 4, bytes, 100), EINVAL);
	expect_eq(ibv_memcpy_to_dm(dm, 100, bytes, 4), EINVAL);
	expect_eq(ibv_memcpy_to_dm(dm, 100, bytes, 0), 0);
	expect_eq(ibv_memcpy_from_dm(back, dm, UINT64_MAX - 3, 100), EINVAL);
	mr = ibv_reg_dm_mr(e->pd, dm, 0, 0, IBV_ACCESS_ZERO_BASED |
						    IBV_ACCESS_LOCAL_WRITE);
	expect(mr && mr->length == 0);
	expect_eq(ibv_dereg_mr(mr), 0);
	expect(!ibv_reg_dm_mr(e->pd, dm, 0, 100, IBV_ACCESS_LOCAL_WRITE));
	expect_eq(errno, EINVAL); /* not zero based */
	expect(!ibv_reg_dm_mr(e->pd, dm, 1, 100, IBV_ACCESS_ZERO_BASED));
	expect_eq(errno, EINVAL);
	expect(!ibv_reg_dm_mr(e->pd, dm, 0, 100, IBV_ACCESS_ZERO_BASED |
						IBV_ACCESS_REMOTE_WRITE));
	expect_eq(errno, EINVAL); /* remote writing without local */
	expect_eq(ibv_free_dm(dm), 0);
	attr.length = ex.max_dm_size + 1;
	expect(!ibv_alloc_dm(e->ctx, &attr));
	attr.length = 0;
	expect(!ibv_alloc_dm(e->ctx, &attr));
	attr = (struct ibv_alloc_dm_attr){ .length = 8, .comp_mask = 1 };
	expect(!ibv_alloc_dm(e->ctx, &attr));
	return 0;
}

static void wrong_arguments_are_refused(struct pair *p)
{
	int unused = 0;

	pair_start(p, NULL);
	expect_eq(side_run(&p->b, try_attributes, &unused, sizeof(unused)), 0);
}

static int use_all(struct end *e, void *arg)
{
	enum { MAX = 1024 };
	struct ibv_alloc_dm_attr attr = { .length = 8 << 20 };
	struct ibv_device_attr_ex ex;
	struct ibv_dm *dm[MAX];
	int n = 0;

	expect_eq(ibv_query_device_ex(e->ctx, NULL, &ex), 0);
	while (n < MAX && (dm[n] = ibv_alloc_dm(e->ctx, &attr)))
		n++;
	expect_eq(errno, ENOMEM);
	expect_eq(n, ex.max_dm_size / attr.length);
	expect_eq(ibv_free_dm(dm[--n]), 0);
	attr = (struct ibv_alloc_dm_attr){ .length = 1 << 20,
					   .log_align_req = 21 };
	dm[n] = ibv_alloc_dm(e->ctx, &attr);
	expect(dm[n++] != NULL);
	while (n > 0)
		expect_eq(ibv_free_dm(dm[--n]), 0);
	return 0;
}

static void there_is_as_much_as_the_device_says(struct pair *p)
{
	int unused = 0;

	pair_start(p, NULL);
	expect_eq(side_run(&p->b, use_all, &unused, sizeof(unused)), 0);
}

static void start(struct pair *p)
{
	p->conn.access_a = p->conn.access_b =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		IBV_ACCESS_REMOTE_ATOMIC;
	pair_start(p, NULL);
}

/* To or from `at` of b's device memory. */
static struct send_req dm_req(struct pair *p, enum ibv_wr_opcode opcode,
			      uint64_t wr_id, const struct dm_mr *mr,
			      uint64_t offset, uint64_t at, uint32_t length)
{
	struct send_req r = rdma_req(&p->a, &p->b, opcode, wr_id, offset, 0,
				     length);

	r.remote_addr = at;
	r.rkey = mr->rkey;
	return r;
}

static void complete(struct pair *p, const struct send_req *r)
{
	expect_status(result_of(&p->a, &p->b, 0, r), IBV_WC_SUCCESS);
}

static void write_and_read_go_by_offset(struct pair *p)
{
	static const uint32_t lengths[] = { 1, 7, 8, 64, 100, 256 };
	struct dm_mr mr;

	start(p);
	mr = make(&p->b, ALL);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint32_t length = lengths[i % 6];
		uint64_t at = 3 * i;
		struct send_req r = dm_req(p, IBV_WR_RDMA_WRITE, i, &mr, 0, at,
					   length);
		struct piece seen;

		side_fill(&p->a, 0, length, i);
		complete(p, &r);
		seen = peek(&p->b, at, length);
		for (uint32_t k = 0; k < length; k++)
			expect_eq(seen.bytes[k], pattern(i, k));
		r = dm_req(p, IBV_WR_RDMA_READ, i, &mr, 1000, at, length);
		complete(p, &r);
		side_check(&p->a, 1000, length, i);
	}
	end(&p->b);
}

static void the_whole_registration_goes_at_once(struct pair *p)
{
	struct dm_mr mr;

	start(p);
	mr = make(&p->b, ALL);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct send_req r = dm_req(p, IBV_WR_RDMA_WRITE, i, &mr, 0, 0,
					   MR_BYTES);

		side_fill(&p->a, 0, MR_BYTES, i);
		complete(p, &r);
		side_set(&p->a, 0, MR_BYTES, 0);
		r.opcode = IBV_WR_RDMA_READ;
		complete(p, &r);
		side_check(&p->a, 0, MR_BYTES, i);
	}
	end(&p->b);
}

static void sends_come_from_and_go_to_device_memory(struct pair *p)
{
	struct dm_mr from, to;
	struct send_req r;
	struct recv_req recv = { .wr_id = 5, .num_sge = 1 };

	start(p);
	from = make(&p->a, ALL);
	to = make(&p->b, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
	recv.sge[0] = (struct ibv_sge){ 64, 128, to.lkey };
	expect_eq(side_post_recv(&p->b, 0, &recv, 1).ret, 0);
	/* Something of a's buffer into a's device memory first, by itself. */
	side_fill(&p->b, 0, 128, 77);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 1, 0, 0, 128);
	r.sge[0] = (struct ibv_sge){ 32, 128, from.lkey };
	complete(p, &r);
	r = send_req(&p->a, IBV_WR_SEND, 2, 0, 128);
	r.sge[0] = (struct ibv_sge){ 32, 128, from.lkey };
	complete(p, &r);
	side_wait_ok(&p->b, RECV_CQ, 5);
	for (uint32_t k = 0; k < 128; k++)
		expect_eq(peek(&p->b, 64, 128).bytes[k], pattern(77, k));
	end(&p->a);
	end(&p->b);
}

static void atomics_are_done_on_device_memory(struct pair *p)
{
	struct send_req r;
	struct dm_mr mr;

	start(p);
	mr = make(&p->b, ALL);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t found;

		r = dm_req(p, IBV_WR_ATOMIC_FETCH_AND_ADD, i, &mr, 0, 16, 8);
		r.compare_add = 3;
		complete(p, &r);
		side_peek(&p->a, 0, &found, 8);
		expect_eq(found, 3 * i);
	}
	r = dm_req(p, IBV_WR_ATOMIC_CMP_AND_SWP, 99, &mr, 0, 16, 8);
	r.compare_add = 3 * ROUNDS;
	r.swap = 1;
	complete(p, &r);
	expect_eq(word_at(&p->b, 16), 1);
	end(&p->b);
}

static void refused(struct pair *p, enum ibv_wr_opcode opcode, uint64_t at,
		    uint32_t length, const struct dm_mr *mr)
{
	struct send_req r = dm_req(p, opcode, 1, mr, 0, at, length);
	enum ibv_wc_status want = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD &&
						  at % 8 ?
					  IBV_WC_REM_INV_REQ_ERR :
					  IBV_WC_REM_ACCESS_ERR;

	if (!offers(opcode))
		return;
	expect_status(result_of(&p->a, &p->b, 0, &r), want);
	expect_eq(side_async(&p->b, WAIT_MS), want == IBV_WC_REM_ACCESS_ERR ?
						      IBV_EVENT_QP_ACCESS_ERR :
						      IBV_EVENT_QP_REQ_ERR);
	pair_reset_qp(p, 0);
	pair_connect_qp(p, 0);
}

static void ranges_and_rights_hold_before_and_after_it_is_mapped(struct pair *p)
{
	struct dm_mr mr;

	start(p);
	mr = make(&p->b, ALL);
	for (int i = 0; i < 2; i++) {
		refused(p, IBV_WR_RDMA_WRITE, MR_BYTES - 7, 8, &mr);
		refused(p, IBV_WR_RDMA_READ, MR_BYTES, 1, &mr);
		refused(p, IBV_WR_RDMA_WRITE, UINT64_MAX - 3, 8, &mr);
		refused(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 8, &mr);
		refused(p, IBV_WR_RDMA_WRITE, 0, 8,
			&(struct dm_mr){ .rkey = mr.rkey ^ 0x1000 });
		for (uint64_t k = 0; k < ROUNDS; k++) { /* until it is mapped */
			struct send_req r = dm_req(p, IBV_WR_RDMA_WRITE, k, &mr,
						   0, 0, 8);

			complete(p, &r);
		}
	}
	end(&p->b);
}

static void readable_memory_is_not_written(struct pair *p)
{
	struct dm_mr mr;

	start(p);
	mr = make(&p->b, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED);
	for (uint64_t k = 0; k < ROUNDS; k++) {
		struct send_req r = dm_req(p, IBV_WR_RDMA_READ, k, &mr, 0, 0, 8);

		complete(p, &r);
	}
	refused(p, IBV_WR_RDMA_WRITE, 0, 8, &mr);
	refused(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, &mr);
	expect_eq(word_at(&p->b, 0), 0);
	end(&p->b);
}

static void memory_comes_and_goes(struct pair *p)
{
	start(p);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct dm_mr mr = make(&p->b, ALL);

		for (uint64_t k = 0; k < 8; k++) {
			struct send_req r = dm_req(p, IBV_WR_RDMA_WRITE, k, &mr,
						   0, 8 * k, 8);

			side_fill(&p->a, 0, 8, i + k);
			complete(p, &r);
			for (uint32_t b = 0; b < 8; b++)
				expect_eq(peek(&p->b, 8 * k, 8).bytes[b],
					  pattern(i + k, b));
		}
		end(&p->b);
	}
}

static const struct test_case cases[] = {
	RULE("ibv_alloc_dm(3)", wrong_arguments_are_refused),
	RULE("ibv_query_device_ex(3)", there_is_as_much_as_the_device_says),
	RULE("ibv_alloc_dm(3)", write_and_read_go_by_offset),
	RULE("ibv_alloc_dm(3)", the_whole_registration_goes_at_once),
	RULE("ibv_alloc_dm(3)", sends_come_from_and_go_to_device_memory),
	RULE("ibv_alloc_dm(3)", atomics_are_done_on_device_memory),
	RULE("IBTA 9.7.4.1.5", ranges_and_rights_hold_before_and_after_it_is_mapped),
	RULE("IBTA 9.7.4.1.5", readable_memory_is_not_written),
	RULE("ibv_alloc_dm(3)", memory_comes_and_goes),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
