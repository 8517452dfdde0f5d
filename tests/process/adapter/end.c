/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs calls of one side, in its own process; see wire.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire.h"

enum {
	DEFAULT_WR = 64,
	DEFAULT_SGES = 4,
	DEFAULT_CQE = 256,
	DEFAULT_BYTES = 1 << 16,
	FREE_ABOVE = 64 << 20,
	LARGE_BUFFER = 64 << 20,
};

static const int all_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_WRITE;

uint8_t pattern(uint64_t seed, uint64_t at)
{
	uint64_t x = (at + 1) * UINT64_C(0x9e3779b97f4a7c15) + seed * 0x1000193;

	return (uint8_t)(x >> 29 ^ x >> 51);
}

static struct ibv_qp *create_qp(struct end *e, const struct side_options *o)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = e->cq[SEND_CQ],
		.recv_cq = e->cq[RECV_CQ],
		.cap = {
			.max_send_wr = o->send_wr ? o->send_wr : DEFAULT_WR,
			.max_recv_wr = o->recv_wr ? o->recv_wr : DEFAULT_WR,
			.max_send_sge = o->no_send_sges ? 0 :
					o->sges ? o->sges : DEFAULT_SGES,
			.max_recv_sge = o->sges ? o->sges : DEFAULT_SGES,
			.max_inline_data = o->inline_bytes,
		},
		.qp_type = o->type ? o->type : IBV_QPT_RC,
		.sq_sig_all = o->sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = e->pd,
	};

	if (!o->extended)
		return ibv_create_qp(e->pd, &(struct ibv_qp_init_attr){
			.send_cq = attr.send_cq, .recv_cq = attr.recv_cq,
			.cap = attr.cap, .qp_type = attr.qp_type,
			.sq_sig_all = attr.sq_sig_all,
		});
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	if (transport_under_test()->streams) {
		attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV |
				      IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
				      IBV_QP_EX_WITH_LOCAL_INV;
		if (offers(IBV_WR_ATOMIC_FETCH_AND_ADD)) /* with its extensions */
			attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
					       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
					       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
		return ibv_create_qp_ex(e->ctx, &attr);
	}
	if (attr.qp_type != IBV_QPT_UD)
		attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE |
				       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				       IBV_QP_EX_WITH_BIND_MW |
				       IBV_QP_EX_WITH_LOCAL_INV |
				       IBV_QP_EX_WITH_SEND_WITH_INV;
	if (attr.qp_type == IBV_QPT_RC)
		attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ |
				       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				       IBV_QP_EX_WITH_ATOMIC_WRITE;
	return ibv_create_qp_ex(e->ctx, &attr);
}

static struct ibv_context *open_device(void)
{
	const char *name = transport_under_test()->device;
	struct ibv_context *ctx = NULL;
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);

	for (int i = 0; list && i < count; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

/* Pages of its own, so that a test may take them away. A mapping that the process makes meanwhile must
 * not come there. The kernel places it as high as it can, so free addresses are left above. */
static void *map_buffer(uint64_t bytes)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t own = (bytes + page - 1) / page * page;
	uint8_t *at = mmap(NULL, own + FREE_ABOVE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at != MAP_FAILED && munmap(at + own, FREE_ABOVE))
		return MAP_FAILED;
	/* Page by page, the kernel takes longer to map a large one than the adapter to copy it. */
	if (at != MAP_FAILED && own >= LARGE_BUFFER)
		madvise(at, own, MADV_HUGEPAGE);
	return at;
}

static int open_objects(struct end *e)
{
	const struct side_options *o = &e->opt;
	int cqe = o->cqe ? (int)o->cqe : DEFAULT_CQE;

	if (!(e->ctx = open_device()))
		return -1;
	fcntl(e->ctx->async_fd, F_SETFL, O_NONBLOCK);
	e->pd = ibv_alloc_pd(e->ctx);
	e->other_pd = ibv_alloc_pd(e->ctx);
	if (!e->pd || !e->other_pd)
		return -1;
	if (o->events) {
		e->channel = ibv_create_comp_channel(e->ctx);
		if (!e->channel)
			return -1;
	}
	e->cq[SEND_CQ] = ibv_create_cq(e->ctx, cqe, e, e->channel, 0);
	e->cq[RECV_CQ] = o->one_cq ? e->cq[SEND_CQ] :
				     ibv_create_cq(e->ctx, cqe, e, e->channel, 0);
	if (!e->cq[SEND_CQ] || !e->cq[RECV_CQ])
		return -1;
	e->bytes = o->bytes ? o->bytes : DEFAULT_BYTES;
	e->buffer = map_buffer(e->bytes);
	if (e->buffer == MAP_FAILED)
		return -1;
	e->mr[0] = ibv_reg_mr(e->pd, e->buffer, e->bytes,
			      o->mr_access < 0 ? 0 :
			      o->mr_access     ? o->mr_access :
						 all_access);
	e->qp[0] = create_qp(e, o);
	return e->mr[0] && e->qp[0] ? 0 : -1;
}

static void serve_open(struct end *e, const struct request *q, struct reply *r)
{
	memset(e, 0, sizeof(*e));
	e->opt = q->opt;
	r->ret = open_objects(e);
	r->error = errno;
	if (r->ret)
		return;
	r->addr = (uintptr_t)e->buffer;
	r->lkey = e->mr[0]->lkey;
	r->rkey = e->mr[0]->rkey;
	r->qpn = e->qp[0]->qp_num;
	r->ret = ibv_query_gid(e->ctx, 1, 0, &r->gid);
}

static void serve_close(struct end *e, const struct request *q, struct reply *r)
{
	int bad = 0;

	for (int i = 0; i < SIDE_QPS; i++)
		if (e->qp[i])
			bad += ibv_destroy_qp(e->qp[i]) != 0;
	for (int i = 0; i < SIDE_MRS; i++) {
		if (e->ah[i])
			bad += ibv_destroy_ah(e->ah[i]) != 0;
		if (e->mw[i])
			bad += ibv_dealloc_mw(e->mw[i]) != 0;
	}
	for (int i = 0; i < SIDE_MRS; i++) {
		if (e->mr[i])
			bad += ibv_dereg_mr(e->mr[i]) != 0;
	}
	if (e->cq[RECV_CQ] != e->cq[SEND_CQ])
		bad += ibv_destroy_cq(e->cq[RECV_CQ]) != 0;
	bad += ibv_destroy_cq(e->cq[SEND_CQ]) != 0;
	if (e->channel)
		bad += ibv_destroy_comp_channel(e->channel) != 0;
	bad += ibv_dealloc_pd(e->pd) != 0;
	bad += ibv_dealloc_pd(e->other_pd) != 0;
	bad += ibv_close_device(e->ctx) != 0;
	munmap(e->buffer, e->bytes);
	memset(e, 0, sizeof(*e));
	r->ret = bad;
}

static void serve_qp_create(struct end *e, const struct request *q,
			    struct reply *r)
{
	for (int i = 0; i < SIDE_QPS; i++) {
		if (e->qp[i])
			continue;
		errno = 0;
		e->qp[i] = create_qp(e, &q->opt);
		r->error = errno;
		r->ret = e->qp[i] ? i : -1;
		if (e->qp[i])
			r->qpn = e->qp[i]->qp_num;
		return;
	}
	r->ret = -1;
}

static void serve_qp_destroy(struct end *e, const struct request *q,
			     struct reply *r)
{
	r->ret = ibv_destroy_qp(e->qp[q->qp]);
	if (r->ret == 0)
		e->qp[q->qp] = NULL;
}

static void serve_modify(struct end *e, const struct request *q, struct reply *r)
{
	struct ibv_qp_attr attr = q->attr;

	r->ret = ibv_modify_qp(e->qp[q->qp], &attr, q->mask);
}

static void serve_query(struct end *e, const struct request *q, struct reply *r)
{
	r->ret = ibv_query_qp(e->qp[q->qp], &r->attr, 0x1fffff, &r->init);
}

static void fill_region(struct reply *r, int index, const struct ibv_mr *mr)
{
	r->region = (struct region){
		.index = index,
		.lkey = mr->lkey,
		.rkey = mr->rkey,
		.addr = (uintptr_t)mr->addr,
	};
}

static void serve_reg(struct end *e, const struct request *q, struct reply *r)
{
	for (int i = 0; i < SIDE_MRS; i++) {
		if (e->mr[i])
			continue;
		errno = 0;
		e->mr[i] = ibv_reg_mr(q->pd ? e->other_pd : e->pd,
				      e->buffer + q->offset, q->length,
				      q->access);
		if (e->mr[i])
			fill_region(r, i, e->mr[i]);
		else
			r->region = (struct region){ .index = -1, .error = errno };
		return;
	}
	r->region = (struct region){ .index = -1, .error = ENOSPC };
}

static void serve_dereg(struct end *e, const struct request *q, struct reply *r)
{
	r->ret = ibv_dereg_mr(e->mr[q->index]);
	if (r->ret == 0)
		e->mr[q->index] = NULL;
}

static void serve_rereg(struct end *e, const struct request *q, struct reply *r)
{
	r->ret = ibv_rereg_mr(e->mr[q->index], q->mask,
			      q->pd ? e->other_pd : e->pd,
			      e->buffer + q->offset, q->length, q->access);
	r->error = errno;
	fill_region(r, q->index, e->mr[q->index]);
	r->region.error = r->ret;
}

static void serve_post_send(struct end *e, const struct request *q,
			    struct reply *r)
{
	struct ibv_send_wr wr[MAX_WRS], *bad = NULL;
	struct ibv_sge sge[MAX_WRS][MAX_SGES];

	memset(wr, 0, sizeof(wr));
	for (int i = 0; i < q->count; i++) {
		const struct send_req *s = &q->send[i];

		memcpy(sge[i], s->sge, sizeof(sge[i]));
		wr[i].wr_id = s->wr_id;
		wr[i].next = i + 1 < q->count ? &wr[i + 1] : NULL;
		wr[i].sg_list = sge[i];
		wr[i].num_sge = s->num_sge;
		wr[i].opcode = s->opcode;
		wr[i].send_flags = s->flags;
		wr[i].imm_data = s->imm;
		if (e->qp[q->qp]->qp_type == IBV_QPT_UD) {
			wr[i].wr.ud.ah = e->ah[s->ah];
			wr[i].wr.ud.remote_qpn = s->remote_qpn;
			wr[i].wr.ud.remote_qkey = s->qkey;
		} else if (s->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
			   s->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr[i].wr.atomic.remote_addr = s->remote_addr;
			wr[i].wr.atomic.rkey = s->rkey;
			wr[i].wr.atomic.compare_add = s->compare_add;
			wr[i].wr.atomic.swap = s->swap;
		} else {
			wr[i].wr.rdma.remote_addr = s->remote_addr;
			wr[i].wr.rdma.rkey = s->rkey;
		}
	}
	r->posted.ret = ibv_post_send(e->qp[q->qp], wr, &bad);
	r->posted.bad = bad ? (int)(bad - wr) : -1;
}

static void build_one(struct ibv_qp_ex *qp, const struct end *e,
		      const struct send_req *s)
{
	struct ibv_data_buf bufs[MAX_SGES];

	qp->wr_id = s->wr_id;
	qp->wr_flags = s->flags & ~(unsigned)IBV_SEND_INLINE;
	switch (s->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, s->imm);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qp, s->imm);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(qp, s->imm);
		return;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, s->rkey, s->remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, s->rkey, s->remote_addr, s->imm);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, s->rkey, s->remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, s->rkey, s->remote_addr,
				      s->compare_add, s->swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, s->rkey, s->remote_addr,
					s->compare_add);
		break;
	case IBV_WR_ATOMIC_WRITE: /* its data are given here */
		ibv_wr_atomic_write(qp, s->rkey, s->remote_addr,
				    (void *)(uintptr_t)s->sge[0].addr);
		return;
	default:
		break;
	}
	if (qp->qp_base.qp_type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(qp, e->ah[s->ah], s->remote_qpn, s->qkey);
	for (int i = 0; i < s->num_sge; i++)
		bufs[i] = (struct ibv_data_buf){
			.addr = (void *)(uintptr_t)s->sge[i].addr,
			.length = s->sge[i].length,
		};
	if (s->flags & IBV_SEND_INLINE && s->num_sge == 1)
		ibv_wr_set_inline_data(qp, bufs[0].addr, bufs[0].length);
	else if (s->flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data_list(qp, (size_t)s->num_sge, bufs);
	else if (s->num_sge == 1)
		ibv_wr_set_sge(qp, s->sge[0].lkey, s->sge[0].addr,
			       s->sge[0].length);
	else
		ibv_wr_set_sge_list(qp, (size_t)s->num_sge, s->sge);
}

static void serve_build_send(struct end *e, const struct request *q,
			     struct reply *r)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp[q->qp]);

	r->posted.bad = -1;
	ibv_wr_start(qp);
	for (int i = 0; i < q->count; i++)
		build_one(qp, e, &q->send[i]);
	r->posted.ret = ibv_wr_complete(qp);
}

static void serve_post_recv(struct end *e, const struct request *q,
			    struct reply *r)
{
	struct ibv_recv_wr wr[MAX_WRS], *bad = NULL;
	struct ibv_sge sge[MAX_WRS][MAX_SGES];

	for (int i = 0; i < q->count; i++) {
		memcpy(sge[i], q->recv[i].sge, sizeof(sge[i]));
		wr[i] = (struct ibv_recv_wr){
			.wr_id = q->recv[i].wr_id,
			.next = i + 1 < q->count ? &wr[i + 1] : NULL,
			.sg_list = sge[i],
			.num_sge = q->recv[i].num_sge,
		};
	}
	r->posted.ret = ibv_post_recv(e->qp[q->qp], wr, &bad);
	r->posted.bad = bad ? (int)(bad - wr) : -1;
}

static void serve_poll(struct end *e, const struct request *q, struct reply *r)
{
	uint64_t end = now_ms() + (uint64_t)q->timeout_ms;
	int got = 0;

	for (unsigned tries = 1; got < q->count; tries++) {
		int n = ibv_poll_cq(e->cq[q->cq], q->count - got,
				    r->polled.wc + got);

		if (n < 0) {
			got = got ? got : n;
			break;
		}
		got += n;
		if (tries % 64 == 0) {
			if (now_ms() >= end)
				break;
			sched_yield();
		}
	}
	r->polled.count = got;
}

/* Words that the adapter's thread may change by an atomic operation, of which
 * this program gets no completion: they are read and written as atomics, too. */
static bool few_words(const struct request *q)
{
	return q->length <= 64 && q->length % 8 == 0 && q->offset % 8 == 0;
}

static void fill_words(uint8_t *to, uint64_t length, uint64_t seed)
{
	for (uint64_t at = 0; at < length; at += 8) {
		uint8_t bytes[8];
		uint64_t word;

		for (uint64_t k = 0; k < 8; k++)
			bytes[k] = pattern(seed, at + k);
		memcpy(&word, bytes, sizeof(word));
		__atomic_store_n((uint64_t *)(void *)(to + at), word,
				 __ATOMIC_RELAXED);
	}
}

static void serve_fill(struct end *e, const struct request *q, struct reply *r)
{
	if (few_words(q)) {
		fill_words(e->buffer + q->offset, q->length, q->seed);
		return;
	}
	for (uint64_t i = 0; i < q->length; i++)
		e->buffer[q->offset + i] = pattern(q->seed, i);
}

static void serve_set(struct end *e, const struct request *q, struct reply *r)
{
	uint64_t word;

	if (!few_words(q)) {
		memset(e->buffer + q->offset, (int)q->seed, q->length);
		return;
	}
	memset(&word, (int)q->seed, sizeof(word));
	for (uint64_t at = 0; at < q->length; at += sizeof(word))
		__atomic_store_n((uint64_t *)(void *)(e->buffer + q->offset + at),
				 word, __ATOMIC_RELAXED);
}

static void serve_check(struct end *e, const struct request *q, struct reply *r)
{
	r->bad_at = UINT64_MAX;
	for (uint64_t i = 0; i < q->length; i++) {
		if (e->buffer[q->offset + i] != pattern(q->seed, i)) {
			r->bad_at = i;
			return;
		}
	}
}

static void serve_peek(struct end *e, const struct request *q, struct reply *r)
{
	uint64_t word;

	if (!few_words(q)) {
		memcpy(r->note, e->buffer + q->offset, q->length);
		return;
	}
	for (uint64_t at = 0; at < q->length; at += sizeof(word)) {
		word = __atomic_load_n(
			(uint64_t *)(void *)(e->buffer + q->offset + at),
			__ATOMIC_RELAXED);
		memcpy(r->note + at, &word, sizeof(word));
	}
}

static void serve_arm(struct end *e, const struct request *q, struct reply *r)
{
	r->ret = ibv_req_notify_cq(e->cq[q->cq], q->index);
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

static void serve_event(struct end *e, const struct request *q, struct reply *r)
{
	struct ibv_cq *cq;
	void *context;

	r->ret = -1;
	if (!readable(e->channel->fd, q->timeout_ms))
		return;
	if (ibv_get_cq_event(e->channel, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	/* Both, when they are one: the first. */
	r->ret = context != e ? -2 : cq == e->cq[SEND_CQ] ? SEND_CQ : RECV_CQ;
}

static void serve_async(struct end *e, const struct request *q, struct reply *r)
{
	struct ibv_async_event event;

	r->ret = -1;
	if (!readable(e->ctx->async_fd, q->timeout_ms) ||
	    ibv_get_async_event(e->ctx, &event))
		return;
	r->ret = (int)event.event_type;
	ibv_ack_async_event(&event);
}

static void keep_ah(struct end *e, struct ibv_ah *ah, struct reply *r)
{
	r->ret = -1;
	r->error = errno;
	for (int i = 0; ah && i < SIDE_MRS; i++) {
		if (e->ah[i])
			continue;
		e->ah[i] = ah;
		r->ret = i;
		return;
	}
}

static void serve_ah_create(struct end *e, const struct request *q,
			    struct reply *r)
{
	struct ibv_ah_attr attr = q->ah;

	keep_ah(e, ibv_create_ah(e->pd, &attr), r);
}

static void serve_ah_from_wc(struct end *e, const struct request *q,
			     struct reply *r)
{
	struct ibv_wc wc = q->wc;

	keep_ah(e, ibv_create_ah_from_wc(e->pd, &wc,
					 (void *)(e->buffer + q->offset), 1), r);
}

static void serve_ah_destroy(struct end *e, const struct request *q,
			     struct reply *r)
{
	r->ret = ibv_destroy_ah(e->ah[q->index]);
	e->ah[q->index] = NULL;
}

static void serve_run(struct end *e, const struct request *q, struct reply *r)
{
	memcpy(r->note, q->note, NOTE_BYTES);
	r->ret = q->fn(e, r->note);
}

static void (*const servers[REQ_KINDS])(struct end *, const struct request *,
					struct reply *) = {
	[REQ_OPEN] = serve_open,
	[REQ_CLOSE] = serve_close,
	[REQ_QP_CREATE] = serve_qp_create,
	[REQ_QP_DESTROY] = serve_qp_destroy,
	[REQ_MODIFY] = serve_modify,
	[REQ_QUERY] = serve_query,
	[REQ_REG] = serve_reg,
	[REQ_DEREG] = serve_dereg,
	[REQ_REREG] = serve_rereg,
	[REQ_POST_SEND] = serve_post_send,
	[REQ_BUILD_SEND] = serve_build_send,
	[REQ_POST_RECV] = serve_post_recv,
	[REQ_POLL] = serve_poll,
	[REQ_FILL] = serve_fill,
	[REQ_SET] = serve_set,
	[REQ_CHECK] = serve_check,
	[REQ_PEEK] = serve_peek,
	[REQ_ARM] = serve_arm,
	[REQ_EVENT] = serve_event,
	[REQ_ASYNC] = serve_async,
	[REQ_AH_CREATE] = serve_ah_create,
	[REQ_AH_FROM_WC] = serve_ah_from_wc,
	[REQ_AH_DESTROY] = serve_ah_destroy,
	[REQ_RUN] = serve_run,
};

void end_serve(struct end *e, const struct request *q, struct reply *r)
{
	servers[q->kind](e, q, r);
}
