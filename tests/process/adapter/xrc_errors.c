/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended reliable connections: domains and their life, shared targets, and what
 * is refused (InfiniBand specification volume 1, annex A14; ibv_open_xrcd(3),
 * ibv_create_srq_ex(3), ibv_open_qp(3), ibv_modify_qp(3)).
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "xrc_help.h"

enum { AT = 1 << 20 };

static const struct side_options options = { .bytes = 4 << 20,
					     .mr_access = X_ALL };

/* The request was refused: by the initiator's completion, and both in error. */
static void expect_refused(struct x *from, struct x *target, uint64_t wr_id,
			   enum ibv_wc_status status)
{
	struct ibv_wc wc = side_wait(from->side, SEND_CQ);

	expect_eq(wc.wr_id, wr_id);
	if (wc.status != status)
		fail("'%s', expected '%s'", ibv_wc_status_str(wc.status),
		     ibv_wc_status_str(status));
	expect_eq(x_state(from, X_INI), IBV_QPS_ERR);
	for (uint64_t end = now_ms() + WAIT_MS; now_ms() < end;)
		if (x_state(target, X_TGT) == IBV_QPS_ERR)
			return;
	fail("the target is not in error");
}

static void an_unknown_queue_is_an_access_violation(struct pair *p)
{
	struct x a, b;

	x_start(p, &a, &b);
	expect_eq(x_srq_destroy(&b, 1), 0);
	x_send(&a, b.srqn[1], 1, 0, 10);
	expect_refused(&a, &b, 1, IBV_WC_REM_ACCESS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
	/* A number of no process, and one that is none. */
	x_send(&b, 0x000400, 2, 0, 10);
	expect_refused(&b, &a, 2, IBV_WC_REM_ACCESS_ERR);
	expect_eq(side_async(&p->a, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
	x_end(&a, &b);
}

static void a_queue_pairs_number_is_no_queues(struct pair *p)
{
	struct x a, b;

	x_start(p, &a, &b);
	x_send(&a, b.tgt, 1, 0, 10);
	expect_refused(&a, &b, 1, IBV_WC_REM_ACCESS_ERR);
	x_send(&b, 0xff123456, 1, 0, 10);
	expect_refused(&b, &a, 1, IBV_WC_REM_ACCESS_ERR);
	x_end(&a, &b);
}

static void a_queue_of_another_domain_is_an_access_violation(struct pair *p)
{
	struct x a, b;

	x_start(p, &a, &b); /* with private domains */
	x_recv(&a, 0, 1, 0, 100);
	x_send(&a, a.srqn[0], 5, 0, 10); /* to b's target */
	expect_refused(&a, &b, 5, IBV_WC_REM_ACCESS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
	side_expect_none(&p->a, RECV_CQ);
	x_end(&a, &b);
}

static void a_message_that_does_not_fit_ends_the_connection(struct pair *p)
{
	struct x a, b;
	struct ibv_wc wc;

	x_start(p, &a, &b);
	x_recv(&b, 0, 9, AT, 50);
	x_send(&a, b.srqn[0], 1, 0, 51);
	wc = side_wait(&p->b, RECV_CQ);
	expect_status(wc, IBV_WC_LOC_LEN_ERR);
	expect_eq(wc.wr_id, 9);
	expect_refused(&a, &b, 1, IBV_WC_REM_INV_REQ_ERR);
	/* The queue serves others; here the same ones, connected anew. */
	expect_eq(x_to_state(&a, X_INI, IBV_QPS_RESET), 0);
	expect_eq(x_to_state(&b, X_TGT, IBV_QPS_RESET), 0);
	x_connect(p, &a, &b, X_ALL);
	x_recv(&b, 0, 10, AT, 51);
	x_send(&a, b.srqn[0], 2, 0, 51);
	side_wait_ok(&p->b, RECV_CQ, 10);
	side_wait_ok(&p->a, SEND_CQ, 2);
	x_end(&a, &b);
}

static void receives_run_out_as_often_as_allowed(struct pair *p)
{
	struct x a, b;

	p->conn.rnr_retry = 2;
	x_start(p, &a, &b);
	x_send(&a, b.srqn[0], 1, 0, 10);
	x_send(&a, b.srqn[0], 2, 0, 10);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_RNR_RETRY_EXC_ERR);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_WR_FLUSH_ERR);
	expect_eq(x_state(&a, X_INI), IBV_QPS_ERR);
	x_end(&a, &b);
}

static void other_sequence_numbers_are_not_answered(struct pair *p)
{
	const struct ibv_qp_attr psn = { .sq_psn = 0x777, .timeout = 8,
					 .retry_cnt = 1, .rnr_retry = 7,
					 .qp_state = IBV_QPS_RTS };
	const struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
					  .port_num = 1 };
	struct ibv_qp_attr rtr;
	struct x a, b;

	x_start(p, &a, &b);
	rtr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = b.tgt,
		.ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1,
			     .grh = { .dgid = p->b.gid, .hop_limit = 64 } },
	};
	expect_eq(x_to_state(&a, X_INI, IBV_QPS_RESET), 0);
	expect_eq(x_modify(&a, X_INI, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
						     IBV_QP_PORT |
						     IBV_QP_ACCESS_FLAGS), 0);
	expect_eq(x_modify(&a, X_INI, &rtr, IBV_QP_STATE | IBV_QP_AV |
						    IBV_QP_PATH_MTU |
						    IBV_QP_DEST_QPN |
						    IBV_QP_RQ_PSN), 0);
	expect_eq(x_modify(&a, X_INI, &psn, IBV_QP_STATE | IBV_QP_TIMEOUT |
						    IBV_QP_RETRY_CNT |
						    IBV_QP_RNR_RETRY |
						    IBV_QP_SQ_PSN |
						    IBV_QP_MAX_QP_RD_ATOMIC), 0);
	x_recv(&b, 0, 9, AT, 50);
	x_send(&a, b.srqn[0], 1, 0, 10);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_RETRY_EXC_ERR);
	side_expect_none(&p->b, RECV_CQ);
	x_end(&a, &b);
}

/* Rights are the target's, the protection domain is the queue's. */
static void rights_and_protection_domain_are_looked_at(struct pair *p)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		unsigned right;
	} ops[] = {
		{ IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
		{ IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC },
	};
	struct x a, b;

	x_start(p, &a, &b);
	for (int i = 0; i < 6; i++) {
		bool right = i >= 3;
		struct region other = side_reg(&p->b, 0, 4096, X_ALL, 1);
		struct x_send s = { .opcode = ops[i % 3].opcode, .wr_id = 1,
				    .length = 8, .srqn = b.srqn[0],
				    .remote_addr = other.addr,
				    .rkey = right ? other.rkey : p->b.rkey };

		expect_eq(x_to_state(&a, X_INI, IBV_QPS_RESET), 0);
		expect_eq(x_to_state(&b, X_TGT, IBV_QPS_RESET), 0);
		x_connect(p, &a, &b,
			  right ? (unsigned)X_ALL :
				  (unsigned)X_ALL & ~ops[i % 3].right);
		expect_eq(x_post(&a, &s), 0);
		expect_refused(&a, &b, 1, right ? IBV_WC_REM_ACCESS_ERR :
						  IBV_WC_REM_INV_REQ_ERR);
		expect_eq(side_async(&p->b, WAIT_MS),
			  right ? IBV_EVENT_QP_ACCESS_ERR :
				  IBV_EVENT_QP_REQ_ERR);
		expect_eq(side_dereg(&p->b, other.index), 0);
	}
	x_end(&a, &b);
}

static void a_queue_that_goes_takes_its_messages_along(struct pair *p)
{
	struct x a, b;

	x_start(p, &a, &b);
	x_send(&a, b.srqn[0], 1, 0, 10); /* waits for a receive */
	side_expect_none(&p->a, SEND_CQ);
	expect_eq(x_srq_destroy(&b, 0), 0);
	expect_refused(&a, &b, 1, IBV_WC_REM_ACCESS_ERR);
	x_end(&a, &b);
}

static void a_queue_dies_with_its_process(struct pair *p)
{
	struct x_file f;
	struct x a, b;

	x_file_make(&f);
	pair_open(p, &options);
	x_open(p, &p->a, &a, f.path);
	x_open(p, &p->b, &b, f.path);
	x_connect(p, &a, &a, X_ALL);
	x_recv(&b, 0, 1, AT, 100);
	x_send(&a, b.srqn[0], 1, 0, 100);
	side_wait_ok(&p->a, SEND_CQ, 1);
	x_send(&a, b.srqn[0], 2, 0, 100); /* finds no receive */
	x_send(&a, a.srqn[0], 3, 0, 100);
	side_expect_none(&p->a, SEND_CQ);
	side_kill(&p->b);
	expect_refused(&a, &a, 2, IBV_WC_REM_ACCESS_ERR);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_WR_FLUSH_ERR);
	expect_eq(side_async(&p->a, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
	x_close(&a);
	x_file_end(&f);
}

static void a_target_dies_with_its_process(struct pair *p)
{
	struct x a, b;

	pair_end_soon(p, 10, 2);
	x_start(p, &a, &b);
	side_kill(&p->b);
	x_send(&a, b.srqn[0], 1, 0, 100);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_RETRY_EXC_ERR);
	x_close(&a);
}

/* ---- domains ---- */

struct domain {
	char path[64];
	int oflags, error, close_error;
	bool keep;
};

static struct ibv_xrcd *kept;

static int at_domain(struct end *e, void *arg)
{
	struct domain *d = arg;
	int fd = open(d->path, O_RDONLY | O_CLOEXEC);
	struct ibv_xrcd_init_attr a = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = d->oflags,
	};
	struct ibv_xrcd *x;

	if (fd < 0)
		return -1;
	errno = 0;
	x = ibv_open_xrcd(e->ctx, &a);
	d->error = x ? 0 : errno;
	close(fd);
	if (x && d->keep)
		kept = x;
	else if (x)
		d->close_error = ibv_close_xrcd(x);
	return 0;
}

static int at_unkeep(struct end *e, void *arg)
{
	return ibv_close_xrcd(kept);
}

static int open_domain(struct side *s, const struct x_file *f, int oflags,
		       bool keep)
{
	struct domain d = { .oflags = oflags, .keep = keep };

	memcpy(d.path, f->path, sizeof(d.path));
	expect_eq(side_run(s, at_domain, &d, sizeof(d)), 0);
	expect_eq(d.close_error, 0);
	return d.error;
}

static void a_domain_is_its_inode_for_all_processes(struct pair *p)
{
	struct x_file f, other;
	int none = 0;

	pair_open(p, &options);
	x_file_make(&f);
	x_file_make(&other);
	expect_eq(open_domain(&p->a, &f, O_RDONLY, false), EAGAIN);
	expect_eq(open_domain(&p->a, &f, O_CREAT, true), 0);
	expect_eq(open_domain(&p->b, &f, O_RDONLY, false), 0);
	expect_eq(open_domain(&p->b, &f, O_CREAT, false), 0);
	expect_eq(open_domain(&p->b, &f, O_CREAT | O_EXCL, false), EINVAL);
	expect_eq(open_domain(&p->a, &f, O_CREAT | O_EXCL, false), EINVAL);
	expect_eq(open_domain(&p->b, &other, O_CREAT | O_EXCL, false), 0);
	expect_eq(open_domain(&p->b, &other, O_RDONLY, false), EAGAIN);
	/* The last one to close ends it. */
	expect_eq(side_run(&p->a, at_unkeep, &none, sizeof(none)), 0);
	expect_eq(open_domain(&p->b, &f, O_RDONLY, false), EAGAIN);
	expect_eq(open_domain(&p->b, &f, O_CREAT | O_EXCL, false), 0);
	x_file_end(&f);
	x_file_end(&other);
}

static void a_domain_ends_with_its_processes(struct pair *p)
{
	struct x_file f;

	pair_open(p, &options);
	x_file_make(&f);
	expect_eq(open_domain(&p->b, &f, O_CREAT, true), 0);
	expect_eq(open_domain(&p->a, &f, O_RDONLY, false), 0);
	side_kill(&p->b);
	expect_eq(open_domain(&p->a, &f, O_RDONLY, false), EAGAIN);
	x_file_end(&f);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		RULE("IBTA A14", an_unknown_queue_is_an_access_violation),
		RULE("IBTA A14", a_queue_pairs_number_is_no_queues),
		RULE("IBTA A14", a_queue_of_another_domain_is_an_access_violation),
		RULE("IBTA A14", a_message_that_does_not_fit_ends_the_connection),
		RULE("IBTA 9.7.5.2.8", receives_run_out_as_often_as_allowed),
		RULE("IBTA A14", other_sequence_numbers_are_not_answered),
		RULE("IBTA A14", rights_and_protection_domain_are_looked_at),
		RULE("IBTA A14", a_queue_that_goes_takes_its_messages_along),
		RULE_IN(ONLY_TWO_PROCESSES, "IBTA A14",
			a_queue_dies_with_its_process),
		RULE_IN(ONLY_TWO_PROCESSES, "IBTA A14",
			a_target_dies_with_its_process),
		RULE("ibv_open_xrcd(3)", a_domain_is_its_inode_for_all_processes),
		RULE_IN(ONLY_TWO_PROCESSES, "ibv_open_xrcd(3)",
			a_domain_ends_with_its_processes),
	};

	return RUN_CASES(argc, argv, cases);
}
