/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory that a program unmaps: where the kernel copies, which is where
 * RDMA reaches a peer's memory and where large messages are pulled, it is an error of
 * the side whose memory is missing, also when only a page in the middle is.
 */
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "look.h"
#include "pair.h"

enum {
	PAGE = 4096,
	LENGTH = 16 * PAGE,
	AT = 64 * PAGE,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
	      IBV_ACCESS_REMOTE_READ,
};

static const struct side_options big = { .bytes = 256 * PAGE, .mr_access = ALL };

struct hole {
	uint64_t offset, length;
};

static int unmap(struct end *e, void *arg)
{
	const struct hole *h = arg;

	return munmap(e->buffer + h->offset, h->length);
}

/* Pages [from, to) of the piece of memory that a case uses. */
static void punch(struct side *s, unsigned from, unsigned to)
{
	struct hole h = { AT + from * (uint64_t)PAGE,
			  (to - from) * (uint64_t)PAGE };

	expect_eq(side_run(s, unmap, &h, sizeof(h)), 0);
}

/* Until then the other side copies by itself, and would be ended. */
static void wait_until_the_kernel_copies(const struct side *s)
{
	uint64_t end = now_ms() + WAIT_MS;
	bool all = false;

	while (!all) {
		struct hca_view *v = look();
		const struct hca_process_view *of = look_find(v, side_pid(s));

		all = of && of->link_count > 0;
		for (size_t i = 0; all && i < of->link_count; i++)
			all = of->links[i].accesses;
		look_free(v);
		expect(now_ms() < end);
		if (!all)
			poll(NULL, 0, 1);
	}
}

static void start(struct pair *p)
{
	p->conn.access_a = p->conn.access_b = ALL;
	pair_start(p, &big);
	wait_until_the_kernel_copies(&p->a);
	wait_until_the_kernel_copies(&p->b);
	side_fill(&p->a, 0, LENGTH, 1);
	side_fill(&p->b, 0, LENGTH, 2);
}

/* By `a`, between AT of its memory or 0, and the same of `b`. */
static void rdma(struct pair *p, enum ibv_wr_opcode opcode, uint64_t near,
		 uint64_t far, enum ibv_wc_status want)
{
	struct send_req r = rdma_req(&p->a, &p->b, opcode, 1, near + 100, far + 200,
				     LENGTH - 300);
	struct ibv_wc wc;

	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	wc = side_wait(&p->a, SEND_CQ);
	expect_status(wc, want);
}

/* They grow: pages of 16. */
static const struct {
	unsigned from, to;
} holes[] = { { 15, 16 }, { 7, 8 }, { 0, 1 }, { 0, 16 } };
enum { HOLES = sizeof(holes) / sizeof(holes[0]) };

static void missing(struct pair *p, struct side *whose, enum ibv_wc_status want)
{
	bool ours = whose == &p->a;

	start(p);
	for (int i = 0; i < 2 * HOLES; i++) {
		if (i % 2 == 0)
			punch(whose, holes[i / 2].from, holes[i / 2].to);
		rdma(p, i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
		     ours ? AT : 0, ours ? 0 : AT, want);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
	/* All else goes on. */
	rdma(p, IBV_WR_RDMA_WRITE, 0, 32 * PAGE, IBV_WC_SUCCESS);
}

static void missing_memory_of_the_initiator_is_its_own_fault(struct pair *p)
{
	missing(p, &p->a, IBV_WC_LOC_PROT_ERR);
}

static void missing_memory_of_the_target_is_refused_access(struct pair *p)
{
	missing(p, &p->b, IBV_WC_REM_ACCESS_ERR);
}

static void pulled(struct pair *p, struct side *whose)
{
	bool sender = whose == &p->a;
	struct ibv_wc wc;

	start(p);
	for (int i = 0; i < HOLES; i++) {
		punch(whose, holes[i].from, holes[i].to);
		side_recv(&p->b, 2, sender ? 0 : AT, LENGTH);
		side_send(&p->a, 1, sender ? AT : 0, LENGTH);
		wc = side_wait(&p->a, SEND_CQ);
		expect_status(wc, IBV_WC_REM_OP_ERR);
		if (!sender) {
			wc = side_wait(&p->b, RECV_CQ);
			expect_status(wc, IBV_WC_LOC_PROT_ERR);
		}
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
	side_recv(&p->b, 4, 0, LENGTH);
	side_send(&p->a, 3, 0, LENGTH);
	side_wait_ok(&p->a, SEND_CQ, 3);
	side_wait_ok(&p->b, RECV_CQ, 4);
	side_check(&p->b, 0, LENGTH, 1);
}

static void missing_memory_of_a_sender_fails_its_message(struct pair *p)
{
	pulled(p, &p->a);
}

static void missing_memory_of_a_receiver_fails_its_receive(struct pair *p)
{
	pulled(p, &p->b);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(missing_memory_of_the_initiator_is_its_own_fault),
		CASE(missing_memory_of_the_target_is_refused_access),
		CASE_IN(ONLY_TWO_PROCESSES,
			missing_memory_of_a_sender_fails_its_message),
		CASE_IN(ONLY_TWO_PROCESSES,
			missing_memory_of_a_receiver_fails_its_receive),
	};

	return RUN_CASES(argc, argv, cases);
}
