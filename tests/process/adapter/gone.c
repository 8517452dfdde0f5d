/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory that a program unmaps or protects, on every transport and by each way of
 * copying: each operation of each service ends with the status for a missing page, at the side
 * whose memory it was, and no signal ends a program. After that both sides go on.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

enum {
	PAGE = 4096,
	BYTES = 512 * PAGE,
	AT = 128 * PAGE, /* the pages that vanish, and the target's */
	GRH = 40,
	QKEY = 0x11111111,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
	      IBV_ACCESS_REMOTE_ATOMIC,
};

enum how { UNMAPPED, NO_ACCESS, READ_ONLY, RESTORED };

struct change {
	uint64_t offset, length;
	enum how how;
};

static int do_change(struct end *e, void *arg)
{
	const struct change *c = arg;
	uint8_t *at = e->buffer + c->offset;

	switch (c->how) {
	case UNMAPPED: return munmap(at, c->length);
	case NO_ACCESS: return mprotect(at, c->length, PROT_NONE);
	case READ_ONLY: return mprotect(at, c->length, PROT_READ);
	default:
		return mmap(at, c->length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at;
	}
}

static void change(struct side *s, uint64_t offset, uint64_t length, enum how how)
{
	struct change c = { offset, length, how };

	expect_eq(side_run(s, do_change, &c, sizeof(c)), 0);
}

static const struct {
	enum ibv_wr_opcode opcode;
	bool send, imm; /* takes a receive at the other side; has immediate data */
	bool fetches;   /* writes into the initiator's memory, reads the target's */
	bool uc, ud;
} ops[] = {
	{ IBV_WR_SEND, true, false, false, true, true },
	{ IBV_WR_SEND_WITH_IMM, true, true, false, true, true },
	{ IBV_WR_RDMA_WRITE, false, false, false, true, false },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, false, true, false, true, false },
	{ IBV_WR_RDMA_READ, false, false, true, false, false },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, false, false, true, false, false },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, false, false, true, false, false },
};
enum { OPS = sizeof(ops) / sizeof(ops[0]) };

/* In a slot of shared memory, in a packet, in several, in several copies. */
static const uint32_t lengths[] = { 8, 90, 3000, 9 * PAGE, 80 * PAGE };
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static bool is_atomic(int op)
{
	return ops[op].opcode >= IBV_WR_ATOMIC_CMP_AND_SWP;
}

/* Does the copy write to this side's memory? */
static bool is_written(int op, bool ours)
{
	return is_atomic(op) || ours == ops[op].fetches;
}

static void again(struct pair *p)
{
	pair_reset_qp(p, 0);
	pair_connect_qp(p, 0);
	while (side_poll(&p->a, SEND_CQ, 1, 0).count || side_poll(&p->b, RECV_CQ, 1, 0).count)
		;
}

struct use {
	enum ibv_qp_type type;
	int op, ah;
	uint32_t length;
};

static void post(struct pair *p, const struct use *u)
{
	struct send_req r = rdma_req(&p->a, &p->b, ops[u->op].opcode, 1, AT + 8, AT + 8,
				     u->length);

	r.ah = u->ah;
	r.remote_qpn = p->b.qpn[0];
	r.qkey = QKEY;
	r.imm = ops[u->op].imm ? htonl(7) : 0;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
}

static void receive(struct pair *p, const struct use *u)
{
	if (ops[u->op].send || ops[u->op].imm)
		side_recv(&p->b, 2, AT + 8, u->length + (u->type == IBV_QPT_UD ? GRH : 0));
}

static void works(struct pair *p, const struct use *u)
{
	receive(p, u);
	post(p, u);
	side_wait_ok(&p->a, SEND_CQ, 1);
	if (ops[u->op].send || ops[u->op].imm)
		side_wait_ok(&p->b, RECV_CQ, 2);
	/* Nothing tells that a WRITE has arrived, but what comes behind it. */
	else if (u->type == IBV_QPT_UC)
		works(p, &(struct use){ .type = u->type, .length = lengths[0] });
}

static void ours_is_missing(struct pair *p, const struct use *u, enum how how)
{
	struct ibv_wc wc;

	receive(p, u);
	change(&p->a, AT, BYTES - AT, how);
	post(p, u);
	wc = side_wait(&p->a, SEND_CQ);
	expect_status(wc, IBV_WC_LOC_PROT_ERR);
	change(&p->a, AT, BYTES - AT, RESTORED);
}

static void theirs_is_missing(struct pair *p, const struct use *u, enum how how)
{
	bool reliable = u->type == IBV_QPT_RC;
	enum ibv_wc_status status;
	struct ibv_wc wc;

	receive(p, u);
	change(&p->b, AT, BYTES - AT, how);
	post(p, u);
	status = side_wait(&p->a, SEND_CQ).status;
	if (!reliable)
		expect_eq(status, IBV_WC_SUCCESS);
	else if (!ops[u->op].send)
		expect_eq(status, IBV_WC_REM_ACCESS_ERR);
	else /* a small one may be complete when it is in the receiver's hands */
		expect(status == IBV_WC_REM_OP_ERR ||
		       (status == IBV_WC_SUCCESS && u->length <= 16384));
	if (ops[u->op].send) {
		wc = side_wait(&p->b, RECV_CQ);
		expect_status(wc, IBV_WC_LOC_PROT_ERR);
	}
	change(&p->b, AT, BYTES - AT, RESTORED);
}

static void missing(struct pair *p, enum ibv_qp_type type, bool ours)
{
	const struct side_options opt = { .type = type, .bytes = BYTES, .mr_access = ALL };
	struct use u = { .type = type };

	p->conn.access_a = p->conn.access_b = type == IBV_QPT_UD ? QKEY :
					      type == IBV_QPT_RC ? ALL :
						   IBV_ACCESS_REMOTE_WRITE;
	pair_start(p, &opt);
	u.ah = type == IBV_QPT_UD ? side_ah_to(&p->a, &p->b.gid) : 0;
	/* What the adapter needs for a peer it has now, and not in the hole. */
	u.length = lengths[0];
	works(p, &u);
	for (int i = 0; i < OPS * LENGTHS * 3; i++) {
		enum how how = (enum how)(i % 3);

		u.op = i / 3 % OPS;
		u.length = lengths[i / 3 / OPS];
		if ((type == IBV_QPT_UC && !ops[u.op].uc) ||
		    (type == IBV_QPT_UD && (!ops[u.op].ud || u.length > 4096)) ||
		    (is_atomic(u.op) && u.length != 8) ||
		    (how == READ_ONLY && !is_written(u.op, ours)))
			continue;
		(ours ? ours_is_missing : theirs_is_missing)(p, &u, how);
		again(p);
		works(p, &u);
	}
}

#define SERVICE(service)                                                        \
	static void memory_that_a_##service##_initiator_unmaps(struct pair *p) \
	{                                                                       \
		missing(p, IBV_QPT_##service, true);                            \
	}                                                                       \
	static void memory_that_a_##service##_target_unmaps(struct pair *p)    \
	{                                                                       \
		missing(p, IBV_QPT_##service, false);                           \
	}
SERVICE(RC)
SERVICE(UC)
SERVICE(UD)

/* ---- the program's own faults and handlers ---- */

static int *volatile nowhere = (int *)8;

static void handle(int signal_number, siginfo_t *info, void *context)
{
	(void)context;
	_exit(signal_number == SIGSEGV && info->si_addr == nowhere ? 33 : 1);
}

static void return_once(int signal_number)
{
	(void)signal_number;
}

enum fault_of { BY_DEFAULT, HANDLED_BEFORE, HANDLED_LATER, HANDLED_ONCE, IGNORED, FAULTS };

/* In a process of its own, which ends: its exit status, or less than 0: the signal. */
static int own_fault(enum fault_of how)
{
	const struct sigaction mine = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
	const struct sigaction before[FAULTS] = {
		[BY_DEFAULT] = { .sa_handler = SIG_DFL },
		[HANDLED_BEFORE] = mine,
		[HANDLED_LATER] = { .sa_handler = SIG_DFL },
		[HANDLED_ONCE] = { .sa_handler = return_once, .sa_flags = (int)SA_RESETHAND },
		/* The flag means nothing to the kernel here. */
		[IGNORED] = { .sa_handler = SIG_IGN, .sa_flags = SA_SIGINFO },
	};
	struct ibv_device **list;
	int status;
	pid_t pid = fork();

	if (!pid) {
		sigaction(SIGSEGV, &before[how], NULL);
		list = ibv_get_device_list(NULL);
		if (!list || !list[0] || !ibv_open_device(list[0]))
			_exit(2);
		if (how == HANDLED_LATER)
			sigaction(SIGSEGV, &mine, NULL);
		if (how == IGNORED)
			_exit(kill(getpid(), SIGSEGV) ? 4 : 0);
		*nowhere = 1;
		_exit(3);
	}
	expect(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void the_faults_of_the_program_are_its_own(struct pair *p)
{
	(void)p;
	expect_eq(own_fault(BY_DEFAULT), -SIGSEGV);
	expect_eq(own_fault(HANDLED_BEFORE), 33);
	expect_eq(own_fault(HANDLED_LATER), 33);
	expect_eq(own_fault(HANDLED_ONCE), -SIGSEGV);
	expect_eq(own_fault(IGNORED), 0);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(memory_that_a_RC_initiator_unmaps),
		CASE(memory_that_a_RC_target_unmaps),
		CASE(memory_that_a_UC_initiator_unmaps),
		CASE(memory_that_a_UC_target_unmaps),
		CASE(memory_that_a_UD_initiator_unmaps),
		CASE(memory_that_a_UD_target_unmaps),
		CASE_IN(ONLY_ONE_PROCESS, the_faults_of_the_program_are_its_own),
	};

	return RUN_CASES(argc, argv, cases);
}
