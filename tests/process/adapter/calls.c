/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that connect to each other at once, and handshake messages that come before
 * they are processed. In most cases the peer implements the handshake itself (evil.h), so
 * that each step comes at the worst moment; the last case has many pairs of processes
 * that begin at the same time.
 *
 * This program has the adapter's insides linked into it, not the library.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "evil.h"
#include "hca/share/inspect_message.h"
#include "pair.h"
#include "util/clock.h"

#define BLOCK_OF(qpn) ((qpn) >> HCA_QPN_BLOCK_BITS)
#define EVIL_BLOCK 14000u
enum { QKEY = 0x1111, EVIL_QP = 5, PAIRS = 48 };

static const struct side_options rc = { .type = IBV_QPT_RC };
static const struct side_options ud = { .type = IBV_QPT_UD };

/* Shared by the processes of a case. */
struct shared {
	atomic_bool answer_now; /* the peer may send what the victim has not seen */
};

static struct shared *shared;

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

/* ---- a message that comes between looking and taking ---- */

static atomic_bool between;

/*
 * The adapter looks at what comes next, and there is nothing. Before it does anything
 * else the peer's message is there.
 */
ssize_t recv(int fd, void *to, size_t size, int flags)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	long n = syscall(SYS_recvfrom, (long)fd, to, size, (long)flags, NULL, NULL);
	int error = errno;

	if (n < 0 && error == EAGAIN && flags & MSG_PEEK &&
	    atomic_exchange(&between, false)) {
		atomic_store(&shared->answer_now, true);
		poll(&p, 1, WAIT_MS);
	}
	errno = error;
	return n;
}

/* ---- the peer that speaks for itself, in a process of its own ---- */

struct note {
	uint32_t block; /* of the victim */
	uint32_t qpn;
	bool ok;
};

static struct evil evil;

static struct note told(struct pair *p, side_fn *fn)
{
	struct note n = { .block = BLOCK_OF(p->a.qpn[0]) };

	side_run(&p->spare[0], fn, &n, sizeof(n));
	return n;
}

static int evil_starts(struct end *e, void *arg)
{
	struct note *n = arg;

	n->ok = !evil_open(&evil, EVIL_BLOCK);
	n->qpn = evil.block << HCA_QPN_BLOCK_BITS | EVIL_QP;
	evil.segment->qps[EVIL_QP].qpn = n->qpn;
	evil.segment->qps[EVIL_QP].state = IBV_QPS_RTS;
	return 0;
}

static int evil_says_hello(struct end *e, void *arg)
{
	struct note *n = arg;

	n->ok = !evil_hello(&evil, n->block);
	return 0;
}

static int evil_says_ready(struct end *e, void *arg)
{
	struct note *n = arg;

	n->ok = !evil_ready(&evil);
	return 0;
}

/* No link was begun: a connection that only asked for the owner of the QP number has been
 * closed without a message. */
static int evil_was_not_called(struct end *e, void *arg)
{
	struct note *n = arg;
	struct pollfd p = { .fd = evil.listen_fd, .events = POLLIN };

	n->ok = true;
	while (n->ok && poll(&p, 1, 0) == 1) {
		int fd = accept(evil.listen_fd, NULL, NULL), fds[3];
		struct shm_control msg;
		int got = evil_recv(fd, &msg, fds, WAIT_MS);

		/* `busbar devices` of anybody on this host asks all owners of QP
		 * numbers. */
		n->ok = got == 0 || got == sizeof(struct hca_inspect_message);
		close(fd);
	}
	return 0;
}

/* The first message, of whatever kind, is in the link. */
static int evil_receives(struct end *e, void *arg)
{
	struct note *n = arg;
	uint64_t end = now_ms() + WAIT_MS;

	while (atomic_load(&evil.rx->slots[0].tag) != 1 && now_ms() < end)
		pause_a_little();
	n->ok = atomic_load(&evil.rx->slots[0].tag) == 1;
	return 0;
}

static int evil_answers_between(struct end *e, void *arg)
{
	struct note *n = arg;
	uint64_t end = now_ms() + 2 * WAIT_MS;

	n->ok = !evil_hear(&evil, WAIT_MS);
	while (!atomic_load(&shared->answer_now) && now_ms() < end)
		pause_a_little();
	n->ok = n->ok && atomic_load(&shared->answer_now) &&
		!evil_welcome(&evil, WAIT_MS);
	return 0;
}

static int evil_ends(struct end *e, void *arg)
{
	evil_close(&evil);
	return 0;
}

static uint32_t start(struct pair *p, const struct side_options *opt)
{
	struct note n;

	p->conn.access_a = p->conn.access_b =
		opt->type == IBV_QPT_UD ? QKEY : IBV_ACCESS_REMOTE_WRITE;
	pair_open(p, opt);
	n = told(p, evil_starts);
	expect(n.ok);
	return n.qpn;
}

/* QP 0 of `a` may send to the peer. For RC the adapter looks for it here. */
static void gets_ready(struct pair *p, uint32_t qpn)
{
	expect_eq(side_to_init(&p->a, 0, p->conn.access_a), 0);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->a.gid, qpn, 100), 0);
	expect_eq(side_to_rts(&p->a, 0, &p->conn, 200), 0);
}

static int posts(struct pair *p, uint32_t qpn, const struct side_options *opt)
{
	struct send_req r = send_req(&p->a, IBV_WR_SEND, 1, 0, 100);

	if (opt->type == IBV_QPT_UD) {
		r.ah = side_ah_to(&p->a, &p->a.gid);
		r.remote_qpn = qpn;
		r.qkey = QKEY;
	}
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	return r.ah;
}

static void does_not_call_whom_it_answers(struct pair *p,
					  const struct side_options *opt)
{
	uint32_t qpn = start(p, opt);
	int ah;

	expect(told(p, evil_says_hello).ok);
	gets_ready(p, qpn);
	ah = posts(p, qpn, opt);
	expect(told(p, evil_was_not_called).ok);
	expect(told(p, evil_says_ready).ok);
	expect(told(p, evil_receives).ok);
	if (opt->type == IBV_QPT_UD)
		side_ah_destroy(&p->a, ah);
	told(p, evil_ends);
}

static void a_connection_does_not_call_whose_call_it_answers(struct pair *p)
{
	does_not_call_whom_it_answers(p, &rc);
}

static void a_datagram_does_not_call_whose_call_it_answers(struct pair *p)
{
	does_not_call_whom_it_answers(p, &ud);
}

static void an_answer_that_comes_between_looking_and_taking_is_taken_whole(struct pair *p)
{
	uint32_t qpn = start(p, &ud);
	struct note n = { 0 };
	int ah;

	gets_ready(p, qpn);
	side_start(&p->spare[0], evil_answers_between, &n, sizeof(n));
	atomic_store(&between, true);
	ah = posts(p, qpn, &ud);
	side_join(&p->spare[0], &n, sizeof(n));
	/* READY followed: by the same call, so the answer had its descriptors. */
	expect(n.ok);
	expect(!atomic_load(&between));
	expect(told(p, evil_receives).ok);
	side_ah_destroy(&p->a, ah);
	told(p, evil_ends);
}

/* ---- many pairs of processes that begin at once ---- */

/* What a process begins with; the other follows. */
enum beginning { BY_RC, BY_UD, BEGINNINGS };

struct meeting {
	atomic_uint at_start, at_end;
	_Atomic uint32_t qpn[2][2]; /* of the two processes: RC, UD; 0: not yet */
};

struct one {
	struct meeting *meeting;
	unsigned who;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	struct ibv_ah *ah;
	/* Not complete yet. */
	unsigned sent, received;
	uint8_t buffer[4096];
};

/* For its end: alarm() bounds it. */
static void all_come(atomic_uint *count, unsigned want)
{
	atomic_fetch_add(count, 1);
	while (atomic_load(count) < want)
		sched_yield();
}

static struct ibv_qp *one_qp(struct one *o, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = o->cq, .recv_cq = o->cq, .qp_type = type,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qkey = QKEY };
	struct ibv_sge sge = { (uintptr_t)o->buffer, 1000, o->mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_qp *qp = ibv_create_qp(o->pd, &init);

	expect(qp);
	expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT |
				IBV_QP_PKEY_INDEX | (type == IBV_QPT_UD ?
					IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)), 0);
	expect_eq(ibv_post_recv(qp, &recv, &bad), 0);
	return qp;
}

static void one_moves(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask), 0);
}

static void one_opens(struct one *o)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_ah_attr to = { .port_num = 1, .is_global = 1, .dlid = 1 };

	expect(list);
	for (int i = 0; list[i] && !o->ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]),
			    transport_under_test()->device))
			o->ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	expect(o->ctx);
	o->pd = ibv_alloc_pd(o->ctx);
	o->mr = ibv_reg_mr(o->pd, o->buffer, sizeof(o->buffer),
			   IBV_ACCESS_LOCAL_WRITE);
	o->cq = ibv_create_cq(o->ctx, 16, NULL, NULL, 0);
	expect(o->pd && o->mr && o->cq);
	expect_eq(ibv_query_gid(o->ctx, 1, 0, &to.grh.dgid), 0);
	o->ah = ibv_create_ah(o->pd, &to);
	expect(o->ah);
	o->qp[BY_RC] = one_qp(o, IBV_QPT_RC);
	o->qp[BY_UD] = one_qp(o, IBV_QPT_UD);
	/* A datagram may come at once. */
	one_moves(o->qp[BY_UD], IBV_QPS_RTR, 0);
	one_moves(o->qp[BY_UD], IBV_QPS_RTS, IBV_QP_SQ_PSN);
	for (int i = 0; i < 2; i++)
		atomic_store(&o->meeting->qpn[o->who][i], o->qp[i]->qp_num);
}

static void one_posts(struct one *o, enum beginning way, uint32_t to)
{
	struct ibv_sge sge = { (uintptr_t)o->buffer + 2000, 900, o->mr->lkey };
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1,
				    .opcode = IBV_WR_SEND }, *bad;

	if (way == BY_UD) {
		send.wr.ud.ah = o->ah;
		send.wr.ud.remote_qpn = to;
		send.wr.ud.remote_qkey = QKEY;
	}
	expect_eq(ibv_post_send(o->qp[way], &send, &bad), 0);
	o->sent++;
}

/* The adapter looks for the peer's process here. */
static void one_connects(struct one *o, uint32_t to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = to, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 1, .ah_attr = { .port_num = 1, .is_global = 1, .dlid = 1 },
		.timeout = 18, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	expect_eq(ibv_query_gid(o->ctx, 1, 0, &attr.ah_attr.grh.dgid), 0);
	expect_eq(ibv_modify_qp(o->qp[BY_RC], &attr, IBV_QP_STATE | IBV_QP_AV |
				IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER), 0);
	attr.qp_state = IBV_QPS_RTS;
	expect_eq(ibv_modify_qp(o->qp[BY_RC], &attr, IBV_QP_STATE |
				IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static void one_begins_by(struct one *o, enum beginning way)
{
	uint32_t to = atomic_load(&o->meeting->qpn[!o->who][way]);

	if (way == BY_RC)
		one_connects(o, to);
	one_posts(o, way, to);
}

static void one_takes(struct one *o)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	while ((o->sent || o->received) && now_ms() < end) {
		if (ibv_poll_cq(o->cq, 1, &wc) != 1)
			continue;
		expect_status(wc, IBV_WC_SUCCESS);
		if (wc.opcode & IBV_WC_RECV)
			o->received--;
		else
			o->sent--;
	}
	if (o->sent || o->received)
		fail("process %u: %u sends and %u receives are not complete",
		     o->who, o->sent, o->received);
}

static void one_closes(struct one *o)
{
	for (int i = 0; i < 2; i++)
		expect_eq(ibv_destroy_qp(o->qp[i]), 0);
	expect_eq(ibv_destroy_ah(o->ah), 0);
	expect_eq(ibv_destroy_cq(o->cq), 0);
	expect_eq(ibv_dereg_mr(o->mr), 0);
	expect_eq(ibv_dealloc_pd(o->pd), 0);
	expect_eq(ibv_close_device(o->ctx), 0);
}

/* Which begins how, and how much later the second is, changes from pair to pair. */
_Noreturn static void one_main(struct meeting *m, unsigned who, unsigned number)
{
	static struct one o;
	enum beginning way = (who ? number / BEGINNINGS : number) % BEGINNINGS;
	uint64_t late_us = who ? number * 7 % 64 * 4 : 0;
	uint64_t start;

	alarm(30);
	o.meeting = m;
	o.who = who;
	o.received = 2;
	one_opens(&o);
	all_come(&m->at_start, 2);
	for (start = clock_now_ns(); clock_now_ns() - start < late_us * 1000;)
		;
	one_begins_by(&o, way);
	one_begins_by(&o, way == BY_RC ? BY_UD : BY_RC);
	one_takes(&o);
	all_come(&m->at_end, 2);
	one_closes(&o);
	exit(0);
}

static void processes_that_call_each_other_at_once_exchange_messages(struct pair *p)
{
	struct meeting *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	expect(m != MAP_FAILED);
	for (unsigned i = 0; i < PAIRS; i++) {
		pid_t pid[2];

		memset(m, 0, sizeof(*m));
		fflush(stdout);
		for (unsigned who = 0; who < 2; who++) {
			pid[who] = fork();
			if (pid[who] == 0)
				one_main(m, who, i);
			expect(pid[who] > 0);
		}
		for (unsigned who = 0; who < 2; who++) {
			int status;

			expect_eq(waitpid(pid[who], &status, 0), pid[who]);
			if (status)
				fail("pair %u: process %u ended with status 0x%x",
				     i, who, status);
		}
	}
	munmap(m, sizeof(*m));
}

#define EVIL(fn_) \
	{ .name = #fn_, .fn = fn_, .where = ONLY_ONE_PROCESS, .spares = 1 }

static const struct test_case cases[] = {
	EVIL(a_connection_does_not_call_whose_call_it_answers),
	EVIL(a_datagram_does_not_call_whose_call_it_answers),
	EVIL(an_answer_that_comes_between_looking_and_taking_is_taken_whole),
	{ .name = "processes_that_call_each_other_at_once_exchange_messages",
	  .fn = processes_that_call_each_other_at_once_exchange_messages,
	  .where = ONLY_ONE_PROCESS, .limit_s = 240 },
};

int main(int argc, char **argv)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return RUN_CASES(argc, argv, cases);
}
