/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows of a side, for the tests that have any. */
#ifndef ADAPTER_WINDOW_H
#define ADAPTER_WINDOW_H

#include "pair.h"

enum bind_how {
	BIND_BY_VERB,  /* ibv_bind_mw */
	BIND_BY_POST,  /* ibv_post_send */
	BIND_BY_BUILD, /* ibv_wr_bind_mw; the QP is extended */
};

struct window {
	int index; /* -1: refused, with `error` */
	int error;
	uint32_t rkey;
};

struct binding {
	enum bind_how how;
	int qp;
	int window;
	int region; /* index of the side; -1: none */
	uint64_t wr_id;
	unsigned flags;
	uint64_t addr, length;
	unsigned access;
	uint32_t rkey; /* not for BIND_BY_VERB */
	/* Out: the key that the window says it has after posting. */
	uint32_t rkey_after;
};

static inline unsigned window_rights(void)
{
	return IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
	       IBV_ACCESS_REMOTE_ATOMIC;
}

struct window side_mw_alloc(struct side *s, enum ibv_mw_type type, int pd);
int side_mw_dealloc(struct side *s, int index);
/* What posting returned. */
int side_mw_post(struct side *s, struct binding *b);

/* All rights on [offset, offset + length) of the side's buffer, by QP 0 and with
 * wr_id 77. */
struct binding binding_of(const struct side *s, enum bind_how how,
			  const struct window *w, const struct region *mr,
			  uint64_t offset, uint64_t length);
/* Posts it and waits for its success; the new key. */
uint32_t side_mw_bind(struct side *s, struct binding *b);
/* A region with all rights that windows may be bound to. */
struct region side_reg_bindable(struct side *s, uint64_t offset, uint64_t length);
/* LOCAL_INV on a QP, waited for. */
struct ibv_wc side_invalidate(struct side *s, int qp, uint32_t rkey);

/* The completion of a signaled request for memory of `to`. Of a WRITE over a stream, which is complete
 * before it has arrived (RFC 5040, 5.3), that of a READ of nothing behind it, if it fails: it is
 * answered when the WRITE was carried out. */
struct ibv_wc result_of(struct side *s, const struct side *to, int qp, const struct send_req *r);
/* One operation of 64 bytes (8, if atomic) with a key of `to`, waited for. */
struct ibv_wc access_with(struct side *s, const struct side *to,
			  enum ibv_wr_opcode opcode, int qp, uint32_t rkey,
			  uint64_t remote_addr);

/* ---- side b has them, side a uses them ---- */

enum { AT = 8192, LENGTH = 4096 }; /* of a usual window */

enum { MW_ACCESSES = 5 };
extern const enum ibv_wr_opcode mw_accesses[MW_ACCESSES];

struct bound_window {
	struct region mr;
	struct window w;
	struct binding bind;
};

/* A connection with all rights, of which a peer in error is given up soon. */
void mw_start(struct pair *p, const struct side_options *opt);
void mw_reconnect(struct pair *p, int qp);
/* QP 1 of both sides. */
void mw_second_qp(struct pair *p);

/* Every kind of access succeeds. */
void mw_works(struct pair *p, int qp, uint32_t rkey, uint64_t addr);
/* One kind, or every kind, of access fails: by completion at the initiator, and by an
 * asynchronous event at the target. */
void mw_refused(struct pair *p, int qp, uint32_t rkey, uint64_t addr,
		enum ibv_wr_opcode opcode);
void mw_all_refused(struct pair *p, int qp, uint32_t rkey, uint64_t addr);

/* A window that is bound by the verb (type 1) or by posting (type 2). */
struct bound_window mw_bound(struct pair *p, enum bind_how how);
/* The bind fails with a local error, and its QP goes to the error state. */
void mw_bind_fails(struct pair *p, struct binding *b);

/* Both types, by each way of posting; the QP is extended, nothing is bound yet. */
typedef void window_fn(struct pair *p, struct region *mr, struct window *w,
		       struct binding *bind);
void mw_each(struct pair *p, window_fn *fn);

#endif
