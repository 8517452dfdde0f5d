/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC objects of a side, beside those of pair.h: a domain, two SRQs whose
 * completions come to the side's RECV_CQ, an initiator whose come to SEND_CQ, and
 * a target. The buffer and its region are those of the side.
 */
#ifndef ADAPTER_XRC_HELP_H
#define ADAPTER_XRC_HELP_H

#include <fcntl.h>

#include "pair.h"

enum { X_SRQS = 2, X_DEPTH = 16 };

enum x_access {
	X_ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

/* A side's objects, as the test sees them. */
struct x {
	struct side *side;
	int me;              /* 0: of p->a */
	uint32_t srqn[X_SRQS];
	uint32_t ini, tgt;   /* QP numbers */
};

/* One of struct x's QPs. */
enum x_qp { X_INI, X_TGT };

struct x_send {
	enum ibv_wr_opcode opcode;
	uint64_t wr_id, offset, remote_addr, compare_add, swap;
	uint32_t srqn, length, rkey, imm;
	unsigned flags;
	int pieces; /* SGEs of equal length; 0: one */
	bool build; /* by ibv_wr_start ... */
};

/* A file whose inode names a domain to both sides. */
struct x_file {
	char path[64];
};
void x_file_make(struct x_file *f);
void x_file_end(struct x_file *f);

/* `path` NULL: a private domain. */
void x_open(struct pair *p, struct side *s, struct x *x, const char *path);
void x_close(struct x *x);
/* Both sides with private domains, and connected with each other. */
void x_start(struct pair *p, struct x *a, struct x *b);
void x_end(struct x *a, struct x *b);
/* The initiator of `from` to the target of `to`. */
void x_connect(struct pair *p, struct x *from, struct x *to, unsigned access);

void x_recv(struct x *x, int srq, uint64_t wr_id, uint64_t offset,
	    uint32_t length);
/* What posting returned. */
int x_post(struct x *x, const struct x_send *s);
/* Posts a SEND of the bytes at `offset`; the test fails if posting is refused. */
void x_send(struct x *x, uint32_t srqn, uint64_t wr_id, uint64_t offset,
	    uint32_t length);
int x_modify(struct x *x, enum x_qp qp, const struct ibv_qp_attr *attr, int mask);
int x_to_state(struct x *x, enum x_qp qp, enum ibv_qp_state state);
enum ibv_qp_state x_state(struct x *x, enum x_qp qp);
int x_srq_destroy(struct x *x, int srq);
int x_srq_modify(struct x *x, int srq, const struct ibv_srq_attr *attr, int mask);
/* For sides of this process. */
struct ibv_xrcd *x_domain(struct x *x);

#endif
