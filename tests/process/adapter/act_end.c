/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs of the random test, in the process of a side; see act.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "act_note.h"

/* What a side has; both may be in one process. */
static struct actor {
	struct end *end;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[CQS];
	struct ibv_srq *srq;
	struct ibv_qp *qp[PAIRS];
	struct ibv_mr *mr[PAIRS][MR_KINDS];
	struct ibv_ah *ah;
} actors[2];

static struct actor *actor_of(const struct end *e)
{
	return actors[0].end == e ? &actors[0] : &actors[1];
}

/* ---- opening ---- */

/* What queue pairs of the type do, on this device. */
static uint64_t ops_of(enum ibv_qp_type type)
{
	enum { RC = 1 << IBV_QPT_RC, CONNECTED = RC | 1 << IBV_QPT_UC,
	       ALL = CONNECTED | 1 << IBV_QPT_UD };
	static const struct {
		enum ibv_wr_opcode opcode;
		unsigned types;
		uint64_t flag;
	} ops[] = {
		{ IBV_WR_SEND, ALL, IBV_QP_EX_WITH_SEND },
		{ IBV_WR_SEND_WITH_IMM, ALL, IBV_QP_EX_WITH_SEND_WITH_IMM },
		{ IBV_WR_RDMA_WRITE, CONNECTED, IBV_QP_EX_WITH_RDMA_WRITE },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, CONNECTED, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM },
		{ IBV_WR_RDMA_READ, RC, IBV_QP_EX_WITH_RDMA_READ },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, RC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, RC, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
	};
	uint64_t flags = 0;

	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (ops[i].types >> type & 1 && offers(ops[i].opcode))
			flags |= ops[i].flag;
	return flags;
}

static struct ibv_qp *make_qp(struct actor *a, int q)
{
	const struct pair_kind *k = pair_kind(q);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = a->cq[k->cq[SEND_CQ]],
		.recv_cq = a->cq[k->cq[RECV_CQ]],
		.srq = k->srq ? a->srq : NULL,
		.cap = { .max_send_wr = k->send_wr, .max_recv_wr = SLOTS,
			 .max_send_sge = SEND_SGES, .max_recv_sge = SEND_SGES,
			 .max_inline_data = INLINE_BYTES },
		.qp_type = k->type,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (k->extended ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = a->end->pd,
		.send_ops_flags = ops_of(k->type),
	};

	return ibv_create_qp_ex(a->end->ctx, &attr);
}

static int on_open(struct actor *unused, struct act_note *n, struct end *e)
{
	struct actor *a = &actors[actors[0].end != NULL];
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = PAIRS * SLOTS,
						   .max_sge = SEND_SGES } };
	struct ibv_ah_attr ah = { .is_global = 1, .dlid = 1, .port_num = 1,
				  .grh = { .hop_limit = 64 } };

	a->end = e;
	a->channel = ibv_create_comp_channel(e->ctx);
	a->srq = ibv_create_srq(e->pd, &srq);
	if (!a->channel || !a->srq || ibv_query_gid(e->ctx, 1, 0, &ah.grh.dgid))
		return errno;
	if (model_pairs() == PAIRS)
		a->ah = ibv_create_ah(e->pd, &ah);
	for (int i = 0; i < CQS; i++) {
		a->cq[i] = ibv_create_cq(e->ctx, 1000, a, a->channel, 0);
		if (!a->cq[i])
			return errno;
	}
	for (int q = 0; q < model_pairs(); q++) {
		a->qp[q] = make_qp(a, q);
		if (!a->qp[q])
			return errno;
		n->qpn[q] = a->qp[q]->qp_num;
	}
	return a->ah || model_pairs() < PAIRS ? 0 : errno;
}

static int on_close(struct actor *a, struct act_note *n, struct end *e)
{
	int bad = 0;

	for (int q = 0; q < model_pairs(); q++) {
		bad += ibv_destroy_qp(a->qp[q]) != 0;
		for (int i = 0; i < MR_KINDS; i++)
			if (a->mr[q][i])
				bad += ibv_dereg_mr(a->mr[q][i]) != 0;
	}
	for (int i = 0; i < CQS; i++)
		bad += ibv_destroy_cq(a->cq[i]) != 0;
	bad += ibv_destroy_srq(a->srq) != 0;
	bad += a->ah && ibv_destroy_ah(a->ah) != 0;
	bad += ibv_destroy_comp_channel(a->channel) != 0;
	memset(a, 0, sizeof(*a));
	return bad;
}

/* ---- memory ---- */

/* Words that the adapter's thread may change by an atomic operation, of which
 * this side gets no completion: they are read and written as atomics, too. */
static uint64_t load_word(const uint8_t *at)
{
	uint64_t word;

	if ((uintptr_t)at % sizeof(word) == 0)
		return __atomic_load_n((const uint64_t *)(const void *)at,
				       __ATOMIC_RELAXED);
	memcpy(&word, at, sizeof(word));
	return word;
}

static void store_word(uint8_t *at, uint64_t word)
{
	if ((uintptr_t)at % sizeof(word) == 0)
		__atomic_store_n((uint64_t *)(void *)at, word,
				 __ATOMIC_RELAXED);
	else
		memcpy(at, &word, sizeof(word));
}

uint64_t act_hash_of(const uint8_t *bytes, uint64_t length)
{
	uint64_t h = length;

	for (; length >= sizeof(h); bytes += sizeof(h)) {
		h = (h ^ load_word(bytes)) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
		length -= sizeof(h);
	}
	for (; length; bytes++, length--)
		h = (h ^ *bytes) * UINT64_C(0x100000001b3);
	return h;
}

void act_pattern(uint8_t *bytes, uint64_t length, uint64_t seed)
{
	uint64_t word;

	for (uint64_t i = 0; i < length; i += sizeof(word)) {
		word = (seed + i) * UINT64_C(0x9e3779b97f4a7c15);
		word ^= word >> 31;
		if (length - i < sizeof(word))
			memcpy(bytes + i, &word, length - i);
		else
			store_word(bytes + i, word);
	}
}

static int on_hash(struct actor *a, struct act_note *n, struct end *e)
{
	n->hash = act_hash_of(e->buffer + n->offset, n->length);
	return 0;
}

static int on_fill(struct actor *a, struct act_note *n, struct end *e)
{
	act_pattern(e->buffer + n->offset, n->length, n->seed);
	return 0;
}

static int on_read(struct actor *a, struct act_note *n, struct end *e)
{
	const uint8_t *from = e->buffer + n->offset;

	if (n->length != sizeof(uint64_t)) {
		memcpy(n->bytes, from, n->length);
		return 0;
	}
	n->hash = load_word(from); /* in its place the same bytes */
	return 0;
}

static int region_of(struct act_note *n, const struct ibv_mr *mr)
{
	if (!mr)
		return errno;
	n->region = (struct region){ .lkey = mr->lkey, .rkey = mr->rkey,
				     .addr = (uintptr_t)mr->addr };
	return 0;
}

static int on_register(struct actor *a, struct act_note *n, struct end *e)
{
	struct ibv_mr **mr = &a->mr[n->q][n->which];

	if (*mr && ibv_dereg_mr(*mr))
		return errno;
	*mr = ibv_reg_mr_iova(e->pd, e->buffer + n->offset, n->length, n->iova,
			      n->access);
	return region_of(n, *mr);
}

static int on_reregister(struct actor *a, struct act_note *n, struct end *e)
{
	struct ibv_mr *mr = a->mr[n->q][n->which];
	int ret;

	/* To the other domain and back: nothing may be left of the first. */
	if (n->flags & IBV_REREG_MR_CHANGE_PD) {
		ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, e->other_pd, NULL,
				   0, 0);
		if (ret)
			return ret;
	}
	ret = ibv_rereg_mr(mr, n->flags, e->pd, mr->addr, mr->length, n->access);
	return ret ? ret : region_of(n, mr);
}

/* ---- queue pairs ---- */

static int modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return ibv_modify_qp(qp, attr, IBV_QP_STATE | mask);
}

static int on_connect(struct actor *a, struct act_note *n, struct end *e)
{
	struct ibv_qp *qp = a->qp[n->q];
	bool rc = qp->qp_type == IBV_QPT_RC, ud = qp->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr t = {
		.qp_state = IBV_QPS_RESET, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_WRITE |
				   (rc && offers(IBV_WR_ATOMIC_FETCH_AND_ADD) ?
					    IBV_ACCESS_REMOTE_ATOMIC : 0),
		.qkey = 0x100 + (uint32_t)n->q, .path_mtu = IBV_MTU_4096,
		.dest_qp_num = n->to.qpn, .rq_psn = n->to.psn_receive,
		.max_dest_rd_atomic = 8, .max_rd_atomic = 8, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1,
			     .grh = { .dgid = n->to.gid, .hop_limit = 1 } },
		.sq_psn = n->to.psn_send, .timeout = n->to.timeout,
		.retry_cnt = n->to.retry_cnt, .rnr_retry = n->to.rnr_retry,
	};
	int ret = modify(qp, &t, 0);

	t.qp_state = IBV_QPS_INIT;
	if (!ret)
		ret = modify(qp, &t, IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	/* The stream does the rest. */
	if (transport_under_test()->streams)
		return ret;
	t.qp_state = IBV_QPS_RTR;
	if (!ret)
		ret = modify(qp, &t, ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     (rc ? IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER : 0));
	t.qp_state = IBV_QPS_RTS;
	if (!ret)
		ret = modify(qp, &t, IBV_QP_SQ_PSN |
				     (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC : 0));
	return ret;
}

static int on_state(struct actor *a, struct act_note *n, struct end *e)
{
	struct ibv_qp_attr t = { .qp_state = (enum ibv_qp_state)n->value };

	return modify(a->qp[n->q], &t, 0);
}

static int on_query(struct actor *a, struct act_note *n, struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr t;
	int ret = ibv_query_qp(a->qp[n->q], &t, IBV_QP_STATE, &init);

	n->value = (int)t.qp_state;
	return ret;
}

static int on_access(struct actor *a, struct act_note *n, struct end *e)
{
	struct ibv_qp_attr t = { .qp_access_flags = (unsigned)n->access };

	return ibv_modify_qp(a->qp[n->q], &t, IBV_QP_ACCESS_FLAGS);
}

static int on_recreate(struct actor *a, struct act_note *n, struct end *e)
{
	int ret = ibv_destroy_qp(a->qp[n->q]);

	if (ret)
		return ret;
	a->qp[n->q] = make_qp(a, n->q);
	if (!a->qp[n->q])
		return errno;
	n->qpn[0] = a->qp[n->q]->qp_num;
	return 0;
}

static int on_drain(struct actor *a, struct act_note *n, struct end *e)
{
	struct ibv_qp_attr t = { .qp_state = IBV_QPS_SQD,
				 .en_sqd_async_notify = 1 };

	return modify(a->qp[n->q], &t, IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

/* ---- work ---- */

static int build(struct ibv_qp *ibqp, const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(ibqp);
	struct ibv_data_buf bufs[SEND_SGES];

	ibv_wr_start(qp);
	qp->wr_id = wr->wr_id;
	qp->wr_flags = wr->send_flags & ~(unsigned)IBV_SEND_INLINE;
	switch (wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, wr->imm_data);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, wr->wr.rdma.rkey,
				      wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey,
				      wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add,
				      wr->wr.atomic.swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey,
					wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		break;
	default:
		return EINVAL;
	}
	if (ibqp->qp_type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
				   wr->wr.ud.remote_qkey);
	for (int i = 0; i < wr->num_sge; i++)
		bufs[i] = (struct ibv_data_buf){
			.addr = (void *)(uintptr_t)wr->sg_list[i].addr,
			.length = wr->sg_list[i].length };
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data_list(qp, (size_t)wr->num_sge, bufs);
	else
		ibv_wr_set_sge_list(qp, (size_t)wr->num_sge, wr->sg_list);
	return ibv_wr_complete(qp);
}

static int on_send(struct actor *a, struct act_note *n, struct end *e)
{
	struct ibv_send_wr *bad;

	n->wr.sg_list = n->sge;
	n->wr.next = NULL;
	if (n->to_ah)
		n->wr.wr.ud.ah = a->ah;
	if (n->flags)
		return build(a->qp[n->q], &n->wr);
	return ibv_post_send(a->qp[n->q], &n->wr, &bad);
}

static int on_recv(struct actor *a, struct act_note *n, struct end *e)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = n->seed, .sg_list = n->sge,
					.num_sge = n->value };

	if (pair_kind(n->q)->srq)
		return ibv_post_srq_recv(a->srq, &wr, &bad);
	return ibv_post_recv(a->qp[n->q], &wr, &bad);
}

static int on_srq_limit(struct actor *a, struct act_note *n, struct end *e)
{
	struct ibv_srq_attr t = { .srq_limit = (uint32_t)n->value };

	return ibv_modify_srq(a->srq, &t, IBV_SRQ_LIMIT);
}

/* ---- completions and events ---- */

static int on_poll(struct actor *a, struct act_note *n, struct end *e)
{
	n->count = ibv_poll_cq(a->cq[n->which], n->value, n->wc);
	return 0;
}

static int on_resize(struct actor *a, struct act_note *n, struct end *e)
{
	return ibv_resize_cq(a->cq[n->which], n->value);
}

static int on_arm(struct actor *a, struct act_note *n, struct end *e)
{
	return ibv_req_notify_cq(a->cq[n->which], n->value);
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

static int on_event(struct actor *a, struct act_note *n, struct end *e)
{
	struct ibv_cq *cq;
	void *context;

	n->which = -1;
	if (!readable(a->channel->fd, n->value))
		return 0;
	if (ibv_get_cq_event(a->channel, &cq, &context) || context != a)
		return EPROTO;
	ibv_ack_cq_events(cq, 1);
	for (int i = 0; i < CQS; i++)
		if (a->cq[i] == cq)
			n->which = i;
	return n->which < 0 ? EPROTO : 0;
}

static int on_async(struct actor *a, struct act_note *n, struct end *e)
{
	struct ibv_async_event event;
	int timeout_ms = n->value;

	n->value = n->q = -1;
	if (!readable(e->ctx->async_fd, timeout_ms) ||
	    ibv_get_async_event(e->ctx, &event))
		return 0;
	n->value = (int)event.event_type;
	for (int q = 0; q < PAIRS; q++)
		if (event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED &&
		    a->qp[q] == event.element.qp)
			n->q = q;
	ibv_ack_async_event(&event);
	return 0;
}

static int (*const answers[ACT_KINDS])(struct actor *, struct act_note *,
				       struct end *) = {
	[ACT_OPEN] = on_open,
	[ACT_CLOSE] = on_close,
	[ACT_HASH] = on_hash,
	[ACT_FILL] = on_fill,
	[ACT_READ] = on_read,
	[ACT_REGISTER] = on_register,
	[ACT_REREGISTER] = on_reregister,
	[ACT_CONNECT] = on_connect,
	[ACT_STATE] = on_state,
	[ACT_QUERY] = on_query,
	[ACT_ACCESS] = on_access,
	[ACT_RECREATE] = on_recreate,
	[ACT_DRAIN] = on_drain,
	[ACT_SEND] = on_send,
	[ACT_RECV] = on_recv,
	[ACT_SRQ_LIMIT] = on_srq_limit,
	[ACT_POLL] = on_poll,
	[ACT_RESIZE] = on_resize,
	[ACT_ARM] = on_arm,
	[ACT_EVENT] = on_event,
	[ACT_ASYNC] = on_async,
};

int act_on_side(struct end *e, void *arg)
{
	struct act_note *n = arg;

	return answers[n->kind](actor_of(e), n, e);
}
