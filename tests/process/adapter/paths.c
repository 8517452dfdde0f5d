/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways into a peer's memory (BUSBAR_SHM_ACCESS): large and mixed traffic in
 * both directions, and the change from one way to the next when a sandbox closes
 * it, before a connection or in the middle of one. The sandbox is a seccomp filter
 * that fails system calls with EPERM.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pair.h"

enum { MIB = 1 << 20, ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			    IBV_ACCESS_REMOTE_READ };

static const struct side_options big = { .bytes = 16 * MIB, .send_wr = 128,
					 .recv_wr = 128, .cqe = 1024,
					 .events = true, .inline_bytes = 256 };

static void complete(struct pair *p, const struct send_req *r)
{
	expect_eq(side_post_send(&p->a, 0, r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, r->wr_id);
}

/* ---- traffic ---- */

static const uint32_t lengths[] = { 1,	   71,	  72,	 73,	  96,	   97,
				    4096,  65535, 65536, 65537, 131072, 131073,
				    999999 };

static void writes_of_all_lengths_arrive(struct pair *p)
{
	pair_start(p, &big);
	for (uint64_t i = 0; i < 13; i++) {
		struct send_req r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, i,
					     0, MIB + 3, lengths[i]);
		uint8_t edge[2];

		side_fill(&p->a, 0, lengths[i], i);
		side_set(&p->b, MIB, lengths[i] + 6, 0x77);
		complete(p, &r);
		side_check(&p->b, MIB + 3, lengths[i], i);
		side_peek(&p->b, MIB + 2, &edge[0], 1);
		side_peek(&p->b, MIB + 3 + lengths[i], &edge[1], 1);
		expect(edge[0] == 0x77 && edge[1] == 0x77);
	}
}

static void reads_of_all_lengths_arrive_in_pieces(struct pair *p)
{
	pair_start(p, &big);
	for (uint64_t i = 0; i < 13; i++) {
		struct send_req r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, i,
					     0, MIB + 5, lengths[i]);
		uint32_t half = lengths[i] / 2;

		side_fill(&p->b, MIB + 5, lengths[i], i);
		side_set(&p->a, 0, 2 * MIB, 0);
		r.num_sge = 3;
		r.sge[0] = side_sge(&p->a, 0, half);
		r.sge[1] = side_sge(&p->a, 0, 0);
		r.sge[2] = side_sge(&p->a, half, lengths[i] - half);
		complete(p, &r);
		side_check(&p->a, 0, lengths[i], i);
	}
}

static void inline_writes_arrive(struct pair *p)
{
	pair_start(p, &big);
	for (uint64_t i = 0; i < 20; i++) {
		uint32_t length = (uint32_t)(1 + 12 * i);
		struct send_req r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, i,
					     0, MIB, length);

		side_fill(&p->a, 0, length, i);
		r.flags |= IBV_SEND_INLINE;
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_set(&p->a, 0, length, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_check(&p->b, MIB, length, i);
	}
}

/* All kinds at once and without waiting; each finds what came before it. */
static void operations_take_effect_in_their_order(struct pair *p)
{
	pair_start(p, &big);
	for (uint64_t round = 0; round < 20; round++) {
		struct send_req r[5];

		side_fill(&p->a, 0, 200000, round);
		side_recv(&p->b, 1, 2 * MIB, 100);
		side_recv(&p->b, 2, 2 * MIB, 0);
		r[0] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 0, 0, MIB,
				200000);
		r[1] = send_req(&p->a, IBV_WR_SEND, 1, 0, 100);
		r[2] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 2, 3 * MIB, MIB,
				200000);
		r[3] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 0,
				4 * MIB, 150000);
		r[3].imm = htonl((uint32_t)round);
		r[4] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 4, 5 * MIB,
				4 * MIB, 150000);
		for (int i = 0; i < 5; i++)
			expect_eq(side_post_send(&p->a, 0, &r[i], 1).ret, 0);
		side_wait_ok(&p->b, RECV_CQ, 1);
		side_check(&p->b, MIB, 200000, round);
		expect_eq(ntohl(side_wait_ok(&p->b, RECV_CQ, 2).imm_data), round);
		side_check(&p->b, 4 * MIB, 150000, round);
		for (uint64_t i = 0; i < 5; i++)
			side_wait_ok(&p->a, SEND_CQ, i);
		side_check(&p->a, 3 * MIB, 200000, round);
		side_check(&p->a, 5 * MIB, 150000, round);
	}
}

/* More than all rings and data areas hold, both ways, before anybody polls. */
static void both_sides_read_and_write_all_they_can(struct pair *p)
{
	struct side *s[] = { &p->a, &p->b };

	pair_start(p, &big);
	side_fill(&p->a, 0, 4 * MIB, 1);
	side_fill(&p->b, 0, 4 * MIB, 2);
	for (uint64_t i = 0; i < 32; i++) {
		for (int k = 0; k < 2; k++) {
			struct send_req r = rdma_req(
				s[k], s[!k],
				i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, i,
				i % 2 ? 4 * MIB : 0, i % 2 ? 0 : 8 * MIB,
				4 * MIB);

			expect_eq(side_post_send(s[k], 0, &r, 1).ret, 0);
		}
	}
	for (uint64_t i = 0; i < 32; i++) {
		side_wait_ok(&p->a, SEND_CQ, i);
		side_wait_ok(&p->b, SEND_CQ, i);
	}
	side_check(&p->a, 4 * MIB, 4 * MIB, 2);
	side_check(&p->b, 8 * MIB, 4 * MIB, 1);
	side_check(&p->b, 4 * MIB, 4 * MIB, 1);
	side_check(&p->a, 8 * MIB, 4 * MIB, 2);
}

static void a_late_receive_gets_the_immediate_of_a_long_write(struct pair *p)
{
	struct send_req r;

	p->conn.rnr_retry = 7;
	pair_start(p, &big);
	side_fill(&p->a, 0, 300000, 4);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, MIB, 300000);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_expect_none(&p->a, SEND_CQ);
	side_recv(&p->b, 3, 0, 0);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 3).byte_len, 300000);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_check(&p->b, MIB, 300000, 4);
}

static void who_sleeps_is_woken_by_the_end_of_a_read(struct pair *p)
{
	struct send_req r;

	pair_start(p, &big);
	side_fill(&p->b, 0, MIB, 6);
	for (uint64_t i = 0; i < 5; i++) {
		expect_eq(side_arm(&p->a, SEND_CQ, false), 0);
		r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, i, MIB, 0, MIB);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		expect_eq(side_event(&p->a, WAIT_MS), SEND_CQ);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_check(&p->a, MIB, MIB, 6);
	}
}

/* Refused: nothing is written, whatever part would have been allowed. */
static void a_long_write_over_the_end_writes_nothing(struct pair *p)
{
	struct send_req r;
	struct region mr;
	uint8_t seen;

	pair_start(p, &big);
	mr = side_reg(&p->b, MIB, 200000, ALL, 0);
	side_set(&p->b, MIB, 200001, 0x33);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, MIB, 200001);
	r.rkey = mr.rkey;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_ACCESS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
	side_peek(&p->b, MIB, &seen, 1);
	expect_eq(seen, 0x33);
	expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
}

static void a_read_into_memory_that_is_gone_fails_here(struct pair *p)
{
	struct region mr;
	struct send_req r;

	pair_start(p, &big);
	mr = side_reg(&p->a, 0, 200000, ALL, 0);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 1, 0, 0, 200000);
	r.sge[0].lkey = mr.lkey;
	complete(p, &r);
	expect_eq(side_dereg(&p->a, mr.index), 0);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
}

/* ---- sandboxes ---- */

struct sandbox {
	bool automatic;         /* forget what the environment says */
	bool process_vm, files; /* what fails from now on */
};

#define FAIL_IF(number)                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),      \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static int close_sandbox(struct end *e, void *arg)
{
	const struct sandbox *s = arg;
	const struct sock_filter no_process_vm[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		FAIL_IF(SYS_process_vm_readv),
		FAIL_IF(SYS_process_vm_writev),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_filter no_files[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		FAIL_IF(SYS_preadv),
		FAIL_IF(SYS_pwritev),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog a = { 6, (struct sock_filter *)no_process_vm };
	const struct sock_fprog b = { 6, (struct sock_filter *)no_files };
	long ret = 0;

	if (s->automatic)
		setenv("BUSBAR_SHM_ACCESS", "auto", 1);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (s->process_vm)
		ret |= syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			       SECCOMP_FILTER_FLAG_TSYNC, &a);
	if (s->files)
		ret |= syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			       SECCOMP_FILTER_FLAG_TSYNC, &b);
	return ret ? 77 : 0;
}

static void sandbox(struct side *side, bool automatic, bool process_vm,
		    bool files)
{
	struct sandbox s = { automatic, process_vm, files };
	int ret = side_run(side, close_sandbox, &s, sizeof(s));

	if (ret == 77) {
		printf("    no seccomp here\n");
		exit(77);
	}
	expect_eq(ret, 0);
}

static void use_everything(struct pair *p, uint64_t seed)
{
	struct send_req r;

	side_fill(&p->a, 0, MIB, seed);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, MIB, MIB);
	complete(p, &r);
	side_check(&p->b, MIB, MIB, seed);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 2, 2 * MIB, MIB, MIB);
	complete(p, &r);
	side_check(&p->a, 2 * MIB, MIB, seed);
	side_recv(&p->b, 3, 3 * MIB, MIB);
	side_send(&p->a, 3, 0, MIB);
	side_wait_ok(&p->b, RECV_CQ, 3);
	side_wait_ok(&p->a, SEND_CQ, 3);
	side_check(&p->b, 3 * MIB, MIB, seed);
	side_recv(&p->a, 4, 4 * MIB, MIB);
	side_send(&p->b, 4, 3 * MIB, MIB);
	side_wait_ok(&p->a, RECV_CQ, 4);
	side_wait_ok(&p->b, SEND_CQ, 4);
	side_check(&p->a, 4 * MIB, MIB, seed);
}

static void a_sandbox_without_process_vm_is_no_hindrance(struct pair *p)
{
	sandbox(&p->a, true, true, false);
	sandbox(&p->b, true, true, false);
	pair_start(p, &big);
	for (uint64_t i = 0; i < 5; i++)
		use_everything(p, i);
}

static void a_sandbox_with_nothing_at_all_is_no_hindrance(struct pair *p)
{
	sandbox(&p->a, true, true, true);
	sandbox(&p->b, true, true, true);
	pair_start(p, &big);
	for (uint64_t i = 0; i < 5; i++)
		use_everything(p, i);
}

static void one_side_in_a_sandbox_is_reached_and_reaches(struct pair *p)
{
	sandbox(&p->a, true, true, true);
	sandbox(&p->b, true, false, false);
	pair_start(p, &big);
	for (uint64_t i = 0; i < 3; i++)
		use_everything(p, i);
}

static void a_sandbox_may_close_while_connected(struct pair *p)
{
	sandbox(&p->a, true, false, false);
	sandbox(&p->b, true, false, false);
	pair_start(p, &big);
	use_everything(p, 1);
	sandbox(&p->a, true, true, false);
	sandbox(&p->b, true, true, false);
	for (uint64_t i = 2; i < 5; i++)
		use_everything(p, i);
	sandbox(&p->a, true, false, true);
	sandbox(&p->b, true, false, true);
	for (uint64_t i = 5; i < 8; i++)
		use_everything(p, i);
}

static const struct test_case cases[] = {
	CASE(writes_of_all_lengths_arrive),
	CASE(reads_of_all_lengths_arrive_in_pieces),
	CASE(inline_writes_arrive),
	RULE("IBTA 9.4.5", operations_take_effect_in_their_order),
	CASE(both_sides_read_and_write_all_they_can),
	RULE("IBTA 9.7.5.2.8",
	     a_late_receive_gets_the_immediate_of_a_long_write),
	CASE(who_sleeps_is_woken_by_the_end_of_a_read),
	CASE(a_long_write_over_the_end_writes_nothing),
	CASE(a_read_into_memory_that_is_gone_fails_here),
	CASE(a_sandbox_without_process_vm_is_no_hindrance),
	CASE(a_sandbox_with_nothing_at_all_is_no_hindrance),
	CASE(one_side_in_a_sandbox_is_reached_and_reaches),
	CASE(a_sandbox_may_close_while_connected),
};

int main(int argc, char **argv)
{
	/* So that large messages are pulled, which is another use of a way. */
	setenv("BUSBAR_SHM_EAGER", "16k", 1);
	return RUN_CASES(argc, argv, cases);
}
