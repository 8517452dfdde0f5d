/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * De-registration while peers access the memory: after ibv_dereg_mr() has returned the
 * memory is not accessed any more (InfiniBand specification volume 1, 10.6.5). The same
 * when the QP of the access is taken out of service.
 */
#include <string.h>
#include <sys/mman.h>

#include "assault.h"

/* The thread sanitizer looks at each byte, and finds a race of two threads in one round. */
#ifdef __SANITIZE_THREAD__
enum { ROUNDS = 8 };
#elif defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 20 };
#else
enum { ROUNDS = 40 };
#endif
enum { PAGES = 16 * 4096, MIB = 1 << 20 };

static const struct side_options big = { .bytes = 4 * MIB, .send_wr = 256,
					 .recv_wr = 256, .cqe = 2048 };

/* Over a stream the failure comes behind WRITEs that are complete; which entry it finds, and whether
 * the reason is a TERMINATE, a reset or the end, depends on the moment. */
static void expect_end_by(int result, enum ibv_wc_status status)
{
	if (transport_under_test()->streams)
		expect(result == (int)status || result == IBV_WC_WR_FLUSH_ERR ||
		       result == IBV_WC_REM_OP_ERR);
	else
		expect_eq(result, status);
}

/* Side a is attacked in its own process; b writes. */
static void attack(struct pair *p, uint32_t length)
{
	struct end *e = p->a.end;

	pair_start(p, &big);
	side_set(&p->b, 0, length, 0xaa);
	for (int i = 0; i < ROUNDS; i++) {
		struct region mr = side_reg(&p->a, MIB, length,
					    IBV_ACCESS_LOCAL_WRITE |
						    IBV_ACCESS_REMOTE_WRITE, 0);
		struct assault as = { .opcode = IBV_WR_RDMA_WRITE,
				      .remote_addr = p->a.addr + MIB,
				      .rkey = mr.rkey, .length = length };
		uint8_t *target = e->buffer + MIB;

		memset(target, 0, length);
		side_start(&p->b, assault_until_refused, &as, sizeof(as));
		assault_wait(target + length - 1, 0xaa);
		expect_eq(side_dereg(&p->a, mr.index), 0);
		/* From here on it is ours. */
		memset(target, 0x11, length);
		expect_eq(side_join(&p->b, &as, sizeof(as)), 0);
		expect_end_by(as.result, IBV_WC_REM_ACCESS_ERR);
		for (uint32_t k = 0; k < length; k++)
			if (target[k] != 0x11)
				fail("byte %u was written after the end", k);
		expect_eq(side_async(&p->a, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
}

static void small_writes_stop_when_deregistration_returns(struct pair *p)
{
	attack(p, 64);
}

static void large_writes_stop_when_deregistration_returns(struct pair *p)
{
	attack(p, MIB);
}

/* The attacked QP is taken out of service while a long write is under way. */
static void take_out_of_service(struct pair *p, int (*how)(struct side *s))
{
	struct assault as = { .opcode = IBV_WR_RDMA_WRITE, .length = 4 * MIB };
	struct end *e = p->a.end;
	/* Each waits for all retries. */
	int rounds = transport_under_test()->waits && ROUNDS > 10 ? 10 : ROUNDS;

	pair_end_soon(p, 10, 1);
	pair_start(p, &big);
	as.remote_addr = p->a.addr;
	as.rkey = p->a.rkey;
	side_set(&p->b, 0, 4 * MIB, 0xaa);
	for (int i = 0; i < rounds; i++) {
		memset(e->buffer, 0, 4 * MIB);
		side_start(&p->b, assault_until_refused, &as, sizeof(as));
		/* The first bytes of a write are there, the last are not, mostly. */
		assault_wait(e->buffer, 0xaa);
		expect_eq(how(&p->a), 0);
		memset(e->buffer, 0x11, 4 * MIB);
		expect_eq(side_join(&p->b, &as, sizeof(as)), 0);
		expect_end_by(as.result, IBV_WC_RETRY_EXC_ERR);
		for (uint32_t k = 0; k < 4 * MIB; k++)
			if (e->buffer[k] != 0x11)
				fail("byte %u was written after the end", k);
		if (!e->qp[0])
			return;
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
}

static int to_error(struct side *s)
{
	return side_to_state(s, 0, IBV_QPS_ERR);
}

static int to_reset(struct side *s)
{
	return side_to_state(s, 0, IBV_QPS_RESET);
}

static int destroy(struct side *s)
{
	return side_qp_destroy(s, 0);
}

static void writes_stop_when_the_error_state_is_reached(struct pair *p)
{
	take_out_of_service(p, to_error);
}

static void writes_stop_when_a_reset_returns(struct pair *p)
{
	take_out_of_service(p, to_reset);
}

static void writes_stop_when_destruction_returns(struct pair *p)
{
	take_out_of_service(p, destroy);
}

struct shower {
	uint32_t length;
};

/* Sends until the connection fails. */
static int send_until_refused(struct end *e, void *arg)
{
	struct shower *s = arg;
	struct ibv_sge sge = { (uintptr_t)e->buffer, s->length, e->mr[0]->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t end = now_ms() + WAIT_MS;
	int out = 0;

	while (now_ms() < end) {
		struct ibv_wc wc[16];
		int n;

		while (out < 64 && !ibv_post_send(e->qp[0], &wr, &bad))
			out++;
		n = ibv_poll_cq(e->cq[SEND_CQ], 16, wc);
		for (int i = 0; i < n; i++, out--) {
			if (wc[i].status == IBV_WC_REM_OP_ERR)
				return 0;
			if (wc[i].status)
				return -10 - (int)wc[i].status;
		}
	}
	return -3;
}

static void post_receives(struct end *e, const struct ibv_mr *mr, int count)
{
	for (int k = 0; k < count; k++) {
		struct ibv_sge sge = { (uintptr_t)mr->addr, PAGES, mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = (uint64_t)k, .sg_list = &sge,
					  .num_sge = 1 }, *bad;

		expect_eq(ibv_post_recv(e->qp[0], &wr, &bad), 0);
	}
}

/* True when one of them was refused. */
static bool collect_receives(struct pair *p, int count)
{
	bool refused = false;

	for (int k = 0; k < count; k++) {
		struct ibv_wc wc = side_wait(&p->a, RECV_CQ);

		expect_eq(wc.wr_id, k);
		if (wc.status && !refused)
			expect_status(wc, IBV_WC_LOC_PROT_ERR);
		refused |= wc.status != IBV_WC_SUCCESS;
	}
	return refused;
}

/* Receives go into memory that gets another use right after its deregistration
 * (and in every other round is unmapped: who still copies there crashes). The
 * progress thread receives meanwhile. */
static void receive_into_vanishing_memory(struct pair *p, uint32_t length,
					  int rounds)
{
	struct shower s = { .length = length };
	struct end *e = p->a.end;
	int refused = 0;

	if (transport_under_test()->waits && rounds > 5)
		rounds = 5; /* each waits for all retries */
	pair_start(p, &big);
	side_set(&p->b, 0, length, 0xaa);
	for (int i = 0; i < rounds; i++) {
		uint8_t *at = mmap(NULL, PAGES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct ibv_mr *mr = ibv_reg_mr(e->pd, at, PAGES,
					       IBV_ACCESS_LOCAL_WRITE);

		post_receives(e, mr, 256);
		side_start(&p->b, send_until_refused, &s, sizeof(s));
		assault_wait(at + length - 1, 0xaa);
		expect_eq(ibv_dereg_mr(mr), 0);
		if (i % 2)
			munmap(at, PAGES);
		else
			memset(at, 0x11, length);
		if (collect_receives(p, 256))
			refused++;
		else /* all had been used: one more has to fail */
			expect_eq(side_to_state(&p->a, 0, IBV_QPS_ERR), 0);
		side_join(&p->b, NULL, 0);
		for (uint32_t k = 0; i % 2 == 0 && k < length; k++)
			if (at[k] != 0x11)
				fail("round %d: byte %u was written later", i, k);
		if (i % 2 == 0)
			munmap(at, PAGES);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
	if (!refused)
		printf("    no receive was outstanding at a deregistration\n");
}

static void small_receives_stop_when_deregistration_returns(struct pair *p)
{
	pair_end_soon(p, 10, 1);
	receive_into_vanishing_memory(p, 64, ROUNDS);
}

static void middle_receives_stop_when_deregistration_returns(struct pair *p)
{
	pair_end_soon(p, 10, 1);
	receive_into_vanishing_memory(p, 16000, 300);
}

static void large_receives_stop_when_deregistration_returns(struct pair *p)
{
	pair_end_soon(p, 10, 1);
	receive_into_vanishing_memory(p, PAGES, ROUNDS);
}

/* The status of the first of many sends whose memory goes away before the receiver
 * becomes ready. */
static enum ibv_wc_status send_from_vanishing_memory(struct pair *p,
						     uint32_t length)
{
	struct end *e = p->a.end;
	uint8_t *at = mmap(NULL, PAGES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, at, PAGES, 0);
	struct ibv_sge sge = { (uintptr_t)at, length, mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	for (int k = 0; k < 100; k++)
		expect_eq(ibv_post_send(e->qp[0], &wr, &bad), 0);
	side_expect_none(&p->b, RECV_CQ);
	expect_eq(ibv_dereg_mr(mr), 0);
	munmap(at, PAGES);
	for (uint64_t k = 0; k < 100; k++)
		side_recv(&p->b, k, 0, PAGES);
	wc = side_wait(&p->a, SEND_CQ);
	pair_reset_qp(p, 0);
	pair_connect_qp(p, 0);
	return wc.status;
}

static void waiting_sends_whose_memory_is_gone_fail_at_the_sender(struct pair *p)
{
	static const uint32_t lengths[] = { 50, 5000, PAGES };

	need_rnr();
	p->conn.min_rnr_timer = 0; /* 655 ms: they are not sent again before */
	pair_start(p, &big);
	for (unsigned i = 0; i < 3; i++) {
		enum ibv_wc_status status = IBV_WC_SUCCESS;

		/* On a machine that is busy they may be on their way again when
		 * the memory goes, and then arrive. */
		for (int k = 0; k < 5 && status == IBV_WC_SUCCESS; k++)
			status = send_from_vanishing_memory(p, lengths[i]);
		expect_eq(status, IBV_WC_LOC_PROT_ERR);
	}
}

static const struct test_case cases[] = {
	CASE_IN(ONLY_TWO_PROCESSES,
		small_writes_stop_when_deregistration_returns),
	CASE_IN(ONLY_TWO_PROCESSES,
		large_writes_stop_when_deregistration_returns),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 10.3.1.7",
		writes_stop_when_the_error_state_is_reached),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 10.3.1.1",
		writes_stop_when_a_reset_returns),
	RULE_IN(ONLY_TWO_PROCESSES, "ibv_destroy_qp(3)",
		writes_stop_when_destruction_returns),
	CASE_IN(ONLY_TWO_PROCESSES,
		small_receives_stop_when_deregistration_returns),
	CASE_IN(ONLY_TWO_PROCESSES,
		middle_receives_stop_when_deregistration_returns),
	CASE_IN(ONLY_TWO_PROCESSES,
		large_receives_stop_when_deregistration_returns),
	RULE("IBTA 11.6.2",
	     waiting_sends_whose_memory_is_gone_fail_at_the_sender),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
