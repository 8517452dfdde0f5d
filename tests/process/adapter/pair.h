/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two sides of a conversation for the adapter's tests, and the runner.
 *
 * A test is one function that drives both sides, `p->a` and `p->b`, through
 * the calls below. It runs twice: with both sides in one process, and with `b`
 * in a process of its own that was forked before any device was opened. Each
 * call is a request that is carried out by the side's process; `b` therefore
 * touches the verbs only when it is told to, so a side that "does nothing" does
 * nothing. With ADAPTER_NETNS, the file of a network namespace, it and all other processes
 * of the test are in that one: on another host, for the adapter.
 *
 * Every test runs in a fresh process with a time limit, and fails when objects,
 * descriptors or (under the address sanitizer) memory are left behind.
 */
#ifndef ADAPTER_PAIR_H
#define ADAPTER_PAIR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

enum {
	SIDE_QPS = 40,
	SIDE_MRS = 16,
	MAX_WRS = 8,
	MAX_WCS = 64,
	MAX_SGES = 32,
	NOTE_BYTES = 2048,
	WAIT_MS = 8000, /* "must happen", on a loaded machine */
	QUIET_MS = 30,  /* "must not happen" */
};

enum side_cq { SEND_CQ, RECV_CQ };

/* Zero fields mean the defaults of pair.c. */
struct side_options {
	enum ibv_qp_type type;
	uint32_t send_wr, recv_wr, sges, inline_bytes, cqe;
	uint64_t bytes;      /* of the buffer */
	int mr_access;       /* of its region; -1: none */
	bool sig_all;        /* else only what is IBV_SEND_SIGNALED */
	bool events;         /* CQs with a channel */
	bool extended;       /* ibv_wr_* */
	bool no_send_sges;   /* max_send_sge is 0 */
	bool one_cq;         /* send and receive queue share one */
};

struct send_req {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	unsigned flags;
	uint32_t imm; /* network order, or the key to be invalidated */
	int num_sge;
	struct ibv_sge sge[MAX_SGES];
	uint64_t remote_addr;
	uint64_t compare_add, swap;
	uint32_t rkey;
	int ah;
	uint32_t remote_qpn, qkey;
};

struct recv_req {
	uint64_t wr_id;
	int num_sge;
	struct ibv_sge sge[MAX_SGES];
};

struct posted {
	int ret;
	int bad; /* index of *bad_wr, -1 when it was not set */
};

struct polled {
	int count; /* or -1 as ibv_poll_cq said */
	struct ibv_wc wc[MAX_WCS];
};

struct region {
	int index; /* -1: refused, with `error` */
	int error;
	uint32_t lkey, rkey;
	uint64_t addr;
};

/* What a side's process holds; only for functions given to side_start(). */
struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd, *other_pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[2];
	struct ibv_qp *qp[SIDE_QPS];
	struct ibv_mr *mr[SIDE_MRS];
	struct ibv_mw *mw[SIDE_MRS]; /* window.h */
	struct ibv_ah *ah[SIDE_MRS];
	uint8_t *buffer;
	uint64_t bytes;
	struct side_options opt;
};

struct side {
	struct end *end; /* in this process, or NULL */
	int socket;      /* else */
	pid_t pid;       /* of its process, when that is not ours */
	bool open;
	/* Of the opened side. */
	uint64_t addr, bytes;
	uint32_t lkey, rkey;
	uint32_t qpn[SIDE_QPS];
	union ibv_gid gid;
	void *thread;
};

struct connection {
	uint32_t psn_a, psn_b; /* of the first message of each side */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	unsigned access_a, access_b; /* UD: the Q_Key */
	bool by_lid_a, by_lid_b;     /* by an address vector without a GRH */
};

struct pair {
	bool two_processes;
	struct side a, b;
	struct connection conn; /* change before pair_connect() */
	const char *name;
	/* Processes for pair_respawn(): forked, too, before any device is open. */
	struct side spare[4];
	int spares;
};

/* ---- runner ---- */
enum where { BOTH, ONLY_ONE_PROCESS, ONLY_TWO_PROCESSES };

struct test_case {
	const char *name;
	void (*fn)(struct pair *p);
	enum where where;
	unsigned limit_s; /* 0: 60 */
	int spares;       /* how often pair_respawn() is called, at most 4 */
	/* Source of the rule: "IBTA 9.7.5.2.8", "ibv_bind_mw(3)"; NULL: our own rule.
	 * `--rules` prints it for the table of rules and tests. */
	const char *rule;
};
#define RULE(rule_, fn_) { .name = #fn_, .fn = fn_, .rule = rule_ }
#define RULE_IN(where_, rule_, fn_) \
	{ .name = #fn_, .fn = fn_, .where = where_, .rule = rule_ }
#define CASE(fn_) { .name = #fn_, .fn = fn_ }
#define CASE_IN(where_, fn_) { .name = #fn_, .fn = fn_, .where = where_ }

/*
 * The transport that the suite runs on: ADAPTER_TRANSPORT, by default the first of the
 * table in runner.c. A new transport needs a line there, with the settings by which the
 * adapter chooses it, and its name in meson.build; it runs the same cases.
 */
struct transport {
	const char *name;
	const char *device;
	bool one_process;           /* it connects QPs of one process only */
	bool hosts;                 /* two processes in two networks (ADAPTER_NETNS) only */
	bool loses;                 /* it loses packets, or they are late */
	bool streams;               /* its connections are made by a connection manager */
	bool waits;                 /* a busy peer is one that does not answer in time */
	const char *const *without; /* cases that it does not support, NULL at the end */
};
const struct transport *transport_under_test(void);
/* Leaves the case out on an RNIC, which does not do what it is about. The calls below do so
 * themselves: for types of queue pairs and operations that an RNIC lacks, for RTR by
 * ibv_modify_qp(), address handles and windows. */
void need_no_rnic(const char *why);
/* Two reasons that many cases have. A message waits at its sender until the peer has a receive for
 * it (RNR); over a stream it ends the connection (RFC 5041, 7.1). */
void need_rnr(void);
/* A SEND or WRITE is complete when it has arrived; over a stream it is when TCP has taken it
 * (RFC 5040, 5.3). */
void need_arrival(void);
/* Does the device under test have the operation? */
bool offers(enum ibv_wr_opcode opcode);

/* Arguments: parts of names of the cases to run, or --rules. */
int run_cases(int argc, char **argv, const struct test_case *cases,
	      size_t count);
#define RUN_CASES(argc, argv, list) \
	run_cases(argc, argv, list, sizeof(list) / sizeof((list)[0]))

/* Of a process; 0: it has none of this name. */
pid_t thread_named(pid_t pid, const char *name);

_Noreturn void fail_at(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
#define fail(...) fail_at(__FILE__, __LINE__, __VA_ARGS__)
#define expect(cond)                                           \
	do {                                                   \
		if (!(cond))                                   \
			fail("expected: %s", #cond);           \
	} while (0)
#define expect_eq(got, want)                                              \
	do {                                                              \
		long long got_ = (long long)(got);                        \
		long long want_ = (long long)(want);                      \
		if (got_ != want_)                                        \
			fail("%s is %lld (0x%llx), expected %s = %lld",   \
			     #got, got_, (unsigned long long)got_, #want, \
			     want_);                                      \
	} while (0)
#define expect_status(wc_, want_)                                           \
	do {                                                                \
		const struct ibv_wc status_of_ = (wc_);                     \
		if (status_of_.status != (want_))                           \
			fail("completion of wr_id %llu is '%s', expected %s", \
			     (unsigned long long)status_of_.wr_id,          \
			     ibv_wc_status_str(status_of_.status), #want_); \
	} while (0)

/* ---- both sides ---- */
void pair_open(struct pair *p, const struct side_options *opt);
/* QP `i` of both sides through to RTS. */
void pair_connect_qp(struct pair *p, int i);
/* pair_open() and pair_connect_qp(0); `opt` may be NULL. */
void pair_start(struct pair *p, const struct side_options *opt);
/* Timeout and retries for a peer that may be gone; longer where a busy peer could be taken
 * for one. Before pair_start(). */
void pair_end_soon(struct pair *p, uint8_t timeout, uint8_t retry_cnt);
/* After a RESET of both. */
void pair_reset_qp(struct pair *p, int i);
/* A new process for `b`, after side_kill() or side_close(). */
void pair_respawn(struct pair *p);

/* ---- one side ---- */
void side_open(struct side *s, const struct side_options *opt);
/* Destroys everything; each call has to succeed. */
void side_close(struct side *s);
void side_kill(struct side *s); /* SIGKILL and wait; two processes only */
void side_signal(struct side *s, int sig);
/* SIGSTOP; all of its threads stand still afterwards. */
void side_stop(struct side *s);

int side_qp_create(struct side *s, const struct side_options *opt); /* index */
int side_qp_destroy(struct side *s, int i);
int side_modify(struct side *s, int i, const struct ibv_qp_attr *attr, int mask);
void side_query(struct side *s, int i, struct ibv_qp_attr *attr,
		struct ibv_qp_init_attr *init);
enum ibv_qp_state side_state(struct side *s, int i);
void side_wait_state(struct side *s, int i, enum ibv_qp_state state); /* it has to come */
int side_to_state(struct side *s, int i, enum ibv_qp_state state);
/* Attributes of each step of a usual connection, and their masks. `gid` NULL: an address
 * vector without a GRH. */
int side_to_init(struct side *s, int i, unsigned access_or_qkey);
int side_to_rtr(struct side *s, int i, const struct connection *c,
		const union ibv_gid *gid, uint32_t qpn, uint32_t rq_psn);
int side_to_rts(struct side *s, int i, const struct connection *c,
		uint32_t sq_psn);

/* Over [offset, offset + length) of the buffer; `pd` 0 or 1 (another one). */
struct region side_reg(struct side *s, uint64_t offset, uint64_t length,
		       int access, int pd);
int side_dereg(struct side *s, int index);
struct region side_rereg(struct side *s, int index, int flags, int pd,
			 uint64_t offset, uint64_t length, int access);

struct ibv_sge side_sge(const struct side *s, uint64_t offset, uint32_t length);
struct posted side_post_send(struct side *s, int qp, const struct send_req *r,
			     int count);
struct posted side_post_recv(struct side *s, int qp, const struct recv_req *r,
			     int count);
/* The same by ibv_wr_start ... ibv_wr_complete. */
struct posted side_build_send(struct side *s, int qp, const struct send_req *r,
			      int count);

/* One work request with one SGE, which has to be accepted; on QP 0. */
void side_recv(struct side *s, uint64_t wr_id, uint64_t offset, uint32_t length);
void side_send(struct side *s, uint64_t wr_id, uint64_t offset, uint32_t length);
struct send_req send_req(const struct side *s, enum ibv_wr_opcode opcode,
			 uint64_t wr_id, uint64_t offset, uint32_t length);
/* RDMA to `offset_to` of `to`. */
struct send_req rdma_req(const struct side *s, const struct side *to,
			 enum ibv_wr_opcode opcode, uint64_t wr_id,
			 uint64_t offset, uint64_t offset_to, uint32_t length);

/* Until `want` completions came or `timeout_ms` is over. */
struct polled side_poll(struct side *s, enum side_cq cq, int want,
			int timeout_ms);
/* Exactly one, which has to come; and none within QUIET_MS. */
struct ibv_wc side_wait(struct side *s, enum side_cq cq);
struct ibv_wc side_wait_ok(struct side *s, enum side_cq cq, uint64_t wr_id);
void side_expect_none(struct side *s, enum side_cq cq);

/* A pattern of `seed` that differs at every offset. */
uint8_t pattern(uint64_t seed, uint64_t at);
void side_fill(struct side *s, uint64_t offset, uint64_t length, uint64_t seed);
void side_set(struct side *s, uint64_t offset, uint64_t length, uint8_t value);
/* Fails the test when the bytes are not those of side_fill(). A WRITE over a stream is complete when TCP
 * has taken it (RFC 5040, 5.3): behind one, the bytes may come within WAIT_MS. */
#define side_check(s, offset, length, seed) \
	side_check_at(__FILE__, __LINE__, s, offset, length, seed)
void side_check_at(const char *file, int line, struct side *s, uint64_t offset,
		   uint64_t length, uint64_t seed);
bool side_holds(struct side *s, uint64_t offset, uint64_t length, uint64_t seed);
void side_peek(struct side *s, uint64_t offset, void *to, uint32_t length);

int side_arm(struct side *s, enum side_cq cq, bool solicited_only);
/* A completion event within the time, acknowledged; which CQ, or -1. */
int side_event(struct side *s, int timeout_ms);
/* An asynchronous event, acknowledged; its type, or -1. */
int side_async(struct side *s, int timeout_ms);

int side_ah_create(struct side *s, const struct ibv_ah_attr *attr);
/* `gid` NULL: without a GRH. */
int side_ah_to(struct side *s, const union ibv_gid *gid);
/* By ibv_create_ah_from_wc(), the header being at `offset`. */
int side_ah_from_wc(struct side *s, const struct ibv_wc *wc, uint64_t offset);
void side_ah_destroy(struct side *s, int ah);

/*
 * Runs fn(end, arg) in the side's process, in a thread of its own when that is
 * ours; `arg` (at most NOTE_BYTES) is copied there and, at the join, back.
 */
typedef int side_fn(struct end *e, void *arg);
void side_start(struct side *s, side_fn *fn, const void *arg, size_t size);
int side_join(struct side *s, void *arg, size_t size);
/* Both. */
int side_run(struct side *s, side_fn *fn, void *arg, size_t size);

uint64_t now_ms(void);

#endif
