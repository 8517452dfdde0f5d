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

/* One operation of 64 bytes (8, if atomic) with a key of `to`, waited for. */
struct ibv_wc access_with(struct side *s, const struct side *to,
			  enum ibv_wr_opcode opcode, int qp, uint32_t rkey,
			  uint64_t remote_addr);

#endif
