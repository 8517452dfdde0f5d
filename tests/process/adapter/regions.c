/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions in numbers: what registration costs depends neither on how much else
 * is mapped nor on queue pairs; and keys that outlive a change of their region. Costs
 * are processor time of this process, with a bound that is missed by a factor of ten
 * or more where all mappings or all queue pairs are visited.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "join.h"
#include "window.h"

enum {
	REGIONS = 100000,
	MAPPINGS = 16000,
	QPS = 2000,
	TIMES = 500,
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	LIMIT_MS = 10000,
#else
	LIMIT_MS = 1000,
#endif
	ACCESS = IBV_REREG_MR_CHANGE_ACCESS,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
	      IBV_ACCESS_REMOTE_WRITE,
};

static uint64_t cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static void start(struct pair *p)
{
	p->conn.access_a = p->conn.access_b = window_rights();
	pair_start(p, NULL);
}

static struct ibv_mr *reg(struct end *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buffer, 4096, ALL);

	expect(mr);
	return mr;
}

/* ---- many at once ---- */

static void a_hundred_thousand_regions_are_there_at_once(struct pair *p)
{
	struct ibv_mr **mr = calloc(REGIONS, sizeof(struct ibv_mr *));
	uint8_t *seen = calloc(1, 1u << 20);
	struct end *e = p->a.end;

	expect(mr && seen);
	start(p);
	for (int round = 0; round < 2; round++) {
		memset(seen, 0, 1u << 20);
		for (int i = 0; i < REGIONS; i++) {
			mr[i] = reg(e);
			expect_eq(mr[i]->lkey, mr[i]->rkey);
			expect(mr[i]->lkey >> 8 < 1u << 20);
			expect(!seen[mr[i]->lkey >> 8]);
			seen[mr[i]->lkey >> 8] = 1;
		}
		for (int i = 0; i < REGIONS; i += 9999)
			expect_status(access_with(&p->b, &p->a,
						  IBV_WR_RDMA_WRITE, 0,
						  mr[i]->rkey, p->a.addr + 64),
				      IBV_WC_SUCCESS);
		/* Every other one first. */
		for (int i = 0; i < 2 * REGIONS; i += 2)
			expect_eq(ibv_dereg_mr(mr[i < REGIONS ? i :
						    i - REGIONS + 1]), 0);
	}
	free(mr);
	free(seen);
}

/* A key that was taken back is not soon another's. */
static void keys_rest_before_they_are_used_again(struct pair *p)
{
	uint32_t first[512];
	struct end *e = p->a.end;

	start(p);
	for (int i = 0; i < 6000; i++) {
		struct ibv_mr *mr = reg(e);
		uint32_t key = mr->rkey;

		for (int k = 0; k < 512 && k < i; k++)
			expect(first[k] != key);
		first[i % 512] = key;
		expect_eq(ibv_dereg_mr(mr), 0);
	}
}

/* ---- what they cost ---- */

static void registration_costs_the_same_among_many_mappings(struct pair *p)
{
	static void *at[MAPPINGS];
	struct end *e = p->a.end;
	uint64_t before;

	start(p);
	/* Neighbours that do not become one. */
	for (int i = 0; i < MAPPINGS; i++) {
		at[i] = mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at[i] == MAP_FAILED)
			exit(77);
	}
	before = cpu_ms();
	for (int i = 0; i < TIMES; i++)
		expect_eq(ibv_dereg_mr(reg(e)), 0);
	expect(cpu_ms() - before < LIMIT_MS);
	for (int i = 0; i < MAPPINGS; i++)
		munmap(at[i], 4096);
}

static void deregistration_visits_no_queue_pairs(struct pair *p)
{
	enum { OFTEN = 80 * TIMES };
	static struct ibv_qp *qp[QPS];
	struct end *e = p->a.end;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	uint64_t before;

	start(p);
	init.send_cq = init.recv_cq = e->cq[SEND_CQ];
	/* Each to itself, or over a stream to its neighbour. */
	for (int i = 0; i < QPS; i++) {
		qp[i] = ibv_create_qp(e->pd, &init);
		expect(qp[i]);
		if (!transport_under_test()->streams)
			join(qp[i], qp[i]);
		else if (i % 2)
			join(qp[i - 1], qp[i]);
	}
	before = cpu_ms();
	for (int i = 0; i < OFTEN; i++)
		expect_eq(ibv_dereg_mr(reg(e)), 0);
	expect(cpu_ms() - before < LIMIT_MS);
	for (int i = 0; i < QPS; i++)
		expect_eq(ibv_destroy_qp(qp[i]), 0);
}

/* ---- re-registration ---- */

/* What was posted with the key, and what the peer knows, is good afterwards. */
static void new_rights_leave_the_key_to_those_who_have_it(struct pair *p)
{
	struct recv_req rr = { .wr_id = 2, .num_sge = 1 };
	struct region mr, now;

	start(p);
	mr = side_reg(&p->b, AT, 4096, IBV_ACCESS_LOCAL_WRITE, 0);
	rr.sge[0] = (struct ibv_sge){ p->b.addr + AT, 1000, mr.lkey };
	expect_eq(side_post_recv(&p->b, 0, &rr, 1).ret, 0);
	for (int i = 0; i < 300; i++) {
		now = side_rereg(&p->b, mr.index, ACCESS, 0, 0, 0,
				 i % 2 ? ALL : IBV_ACCESS_LOCAL_WRITE);
		expect_eq(now.error, 0);
		expect_eq(now.rkey, mr.rkey);
	}
	side_fill(&p->a, 0, 1000, 5);
	side_send(&p->a, 1, 0, 1000);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 2);
	side_check(&p->b, AT, 1000, 5);
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_WRITE, 0, mr.rkey,
				  p->b.addr + AT), IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(a_hundred_thousand_regions_are_there_at_once),
		CASE_IN(ONLY_ONE_PROCESS, keys_rest_before_they_are_used_again),
		CASE_IN(ONLY_ONE_PROCESS,
			registration_costs_the_same_among_many_mappings),
		CASE_IN(ONLY_ONE_PROCESS, deregistration_visits_no_queue_pairs),
		CASE(new_rights_leave_the_key_to_those_who_have_it),
	};

	return RUN_CASES(argc, argv, cases);
}
