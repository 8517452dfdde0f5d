/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of act.h: requests to the process of a side. */
#include <string.h>

#include "act_note.h"

static int ask(struct side *s, struct act_note *n)
{
	if (s->end) /* a thread for each would take longer than the work */
		return act_on_side(s->end, n);
	return side_run(s, act_on_side, n, sizeof(*n));
}

void act_open(struct side *s, uint32_t qpn[PAIRS])
{
	struct act_note n = { .kind = ACT_OPEN };

	expect_eq(ask(s, &n), 0);
	memcpy(qpn, n.qpn, sizeof(n.qpn));
}

void act_close(struct side *s)
{
	expect_eq(ask(s, &(struct act_note){ .kind = ACT_CLOSE }), 0);
}

uint64_t act_hash(struct side *s, uint64_t offset, uint64_t length)
{
	struct act_note n = { .kind = ACT_HASH, .offset = offset, .length = length };

	ask(s, &n);
	return n.hash;
}

void act_fill(struct side *s, uint64_t offset, uint64_t length, uint64_t seed)
{
	ask(s, &(struct act_note){ .kind = ACT_FILL, .offset = offset,
			       .length = length, .seed = seed });
}

void act_read(struct side *s, uint64_t offset, void *to, uint32_t length)
{
	struct act_note n = { .kind = ACT_READ, .offset = offset, .length = length };

	if (length > sizeof(n.bytes))
		fail("test error: %u bytes are too many", length);
	ask(s, &n);
	memcpy(to, n.bytes, length);
}

struct region act_register(struct side *s, int q, enum act_mr which,
			   uint64_t offset, uint64_t length, uint64_t iova,
			   int access)
{
	struct act_note n = { .kind = ACT_REGISTER, .q = q, .which = (int)which,
			  .offset = offset, .length = length, .iova = iova,
			  .access = access };

	expect_eq(ask(s, &n), 0);
	return n.region;
}

struct region act_reregister(struct side *s, int q, enum act_mr which, int flags,
			     int access)
{
	struct act_note n = { .kind = ACT_REREGISTER, .q = q, .which = (int)which,
			  .flags = flags, .access = access };

	expect_eq(ask(s, &n), 0);
	return n.region;
}

void act_connect(struct side *s, int q, const struct act_address *to)
{
	struct act_note n = { .kind = ACT_CONNECT, .q = q, .to = *to };

	expect_eq(ask(s, &n), 0);
}

int act_state(struct side *s, int q, enum ibv_qp_state state)
{
	return ask(s, &(struct act_note){ .kind = ACT_STATE, .q = q,
				      .value = (int)state });
}

enum ibv_qp_state act_query(struct side *s, int q)
{
	struct act_note n = { .kind = ACT_QUERY, .q = q };

	expect_eq(ask(s, &n), 0);
	return (enum ibv_qp_state)n.value;
}

int act_access(struct side *s, int q, int flags)
{
	return ask(s, &(struct act_note){ .kind = ACT_ACCESS, .q = q,
					  .access = flags });
}

uint32_t act_recreate(struct side *s, int q)
{
	struct act_note n = { .kind = ACT_RECREATE, .q = q };

	expect_eq(ask(s, &n), 0);
	return n.qpn[0];
}

int act_drain(struct side *s, int q)
{
	return ask(s, &(struct act_note){ .kind = ACT_DRAIN, .q = q });
}

int act_send(struct side *s, int q, const struct send_req *r, bool building)
{
	struct act_note n = {
		.kind = ACT_SEND, .q = q, .flags = building,
		.wr = { .wr_id = r->wr_id, .num_sge = r->num_sge,
			.opcode = r->opcode, .send_flags = r->flags,
			.imm_data = r->imm },
	};

	memcpy(n.sge, r->sge, sizeof(n.sge));
	if (pair_kind(q)->type == IBV_QPT_UD) {
		n.to_ah = 1;
		n.wr.wr.ud.remote_qpn = r->remote_qpn;
		n.wr.wr.ud.remote_qkey = r->qkey;
	} else if (r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		   r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		n.wr.wr.atomic.remote_addr = r->remote_addr;
		n.wr.wr.atomic.rkey = r->rkey;
		n.wr.wr.atomic.compare_add = r->compare_add;
		n.wr.wr.atomic.swap = r->swap;
	} else {
		n.wr.wr.rdma.remote_addr = r->remote_addr;
		n.wr.wr.rdma.rkey = r->rkey;
	}
	return ask(s, &n);
}

int act_recv(struct side *s, int q, const struct recv_req *r)
{
	struct act_note n = { .kind = ACT_RECV, .q = q, .seed = r->wr_id,
			  .value = r->num_sge };

	memcpy(n.sge, r->sge, sizeof(n.sge));
	return ask(s, &n);
}

int act_srq_limit(struct side *s, uint32_t limit)
{
	return ask(s, &(struct act_note){ .kind = ACT_SRQ_LIMIT,
				      .value = (int)limit });
}

int act_poll(struct side *s, int cq, struct ibv_wc *wc, int most)
{
	struct act_note n = { .kind = ACT_POLL, .which = cq, .value = most };

	ask(s, &n);
	if (n.count > 0)
		memcpy(wc, n.wc, (size_t)n.count * sizeof(*wc));
	return n.count;
}

int act_resize(struct side *s, int cq, int cqe)
{
	return ask(s, &(struct act_note){ .kind = ACT_RESIZE, .which = cq,
				      .value = cqe });
}

int act_arm(struct side *s, int cq, bool solicited_only)
{
	return ask(s, &(struct act_note){ .kind = ACT_ARM, .which = cq,
				      .value = solicited_only });
}

int act_event(struct side *s, int timeout_ms)
{
	struct act_note n = { .kind = ACT_EVENT, .value = timeout_ms };

	expect_eq(ask(s, &n), 0);
	return n.which;
}

int act_async(struct side *s, int timeout_ms, int *q)
{
	struct act_note n = { .kind = ACT_ASYNC, .value = timeout_ms };

	ask(s, &n);
	*q = n.q;
	return n.value;
}
