/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: creation, state changes, query, destruction.
 * RC, UC, UD and XRC initiators; XRC targets are created in qp_xrc.c. Other
 * services are refused with EOPNOTSUPP.
 */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/event/async.h"
#include "hca/hca.h"
#include "hca/host/settings.h"
#include "hca/limits.h"
#include "hca/memory/domain.h"
#include "hca/memory/promising.h"
#include "hca/memory/window.h"
#include "hca/object/context.h"
#include "hca/object/live.h"
#include "hca/object/opcode.h"
#include "hca/object/rq.h"
#include "hca/object/sq.h"
#include "hca/object/srq.h"
#include "hca/path/path.h"
#include "hca/qp/address.h"
#include "hca/qp/route.h"
#include "hca/qp/transition.h"
#include "hca/qp/xrc.h"
#include "hca/queue/flush.h"
#include "hca/queue/hold.h"
#include "hca/queue/post.h"
#include "hca/queue/push.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/probe.h"

#define INLINE_MIN 64u

/* Extended attributes and creation flags that the interface defines; few are supported. */
#define INIT_ATTR_KNOWN                                                       \
	((uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |             \
		    IBV_QP_INIT_ATTR_CREATE_FLAGS |                           \
		    IBV_QP_INIT_ATTR_MAX_TSO_HEADER |                         \
		    IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH |   \
		    IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
#define CREATE_FLAGS_KNOWN                                                    \
	((uint32_t)(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB |                       \
		    IBV_QP_CREATE_SCATTER_FCS |                               \
		    IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SOURCE_QPN | \
		    IBV_QP_CREATE_PCI_WRITE_END_PADDING))

static void retry_expired(struct progress_timer *t)
{
	struct hca_qp *qp = container_of(t, struct hca_qp, retry);

	hca_path_ops(&qp->path)->expired(qp);
}

/* An XRC initiator receives nothing: attributes of the receive side are ignored. */
static bool receives(const struct ibv_qp_init_attr_ex *a)
{
	return a->qp_type != IBV_QPT_XRC_SEND;
}

static uint32_t create_flags_offered(const struct ibv_qp_init_attr_ex *a)
{
	return a->qp_type == IBV_QPT_UD ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0;
}

/* -EINVAL: unknown bits; -EOPNOTSUPP: defined, but not supported. */
static int check_init_extended(const struct ibv_qp_init_attr_ex *a,
			       uint64_t offered)
{
	bool flags = a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS;

	if (a->comp_mask & ~INIT_ATTR_KNOWN ||
	    (flags && (uint32_t)a->create_flags & ~CREATE_FLAGS_KNOWN))
		return -EINVAL;
	if (a->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD |
				       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
				       IBV_QP_INIT_ATTR_CREATE_FLAGS) ||
	    (flags && a->create_flags & ~create_flags_offered(a)))
		return -EOPNOTSUPP;
	if ((a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    (a->send_ops_flags & ~offered))
		return -EOPNOTSUPP;
	return 0;
}

/* -EINVAL: an unknown service; -EOPNOTSUPP: not offered. */
static int check_type(enum ibv_qp_type type, unsigned device_without)
{
	unsigned without = 0;

	switch (type) {
	case IBV_QPT_RC: break;
	case IBV_QPT_XRC_SEND: without = HCA_WITHOUT_XRC; break;
	case IBV_QPT_UC: without = HCA_WITHOUT_UC; break;
	case IBV_QPT_UD: without = HCA_WITHOUT_UD; break;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_DRIVER: return -EOPNOTSUPP;
	default: return -EINVAL;
	}
	return device_without & without ? -EOPNOTSUPP : 0;
}

static int check_init_attr(struct ibv_context *ctx,
			   const struct ibv_qp_init_attr_ex *a)
{
	const struct ibv_qp_cap *c = &a->cap;
	int ret = check_type(a->qp_type, hca_without(ctx));

	if (ret)
		return ret;
	if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !hca_live(a->pd, HCA_PD) ||
	    !hca_live(a->send_cq, HCA_CQ) || a->pd->context != ctx || a->send_cq->context != ctx)
		return -EINVAL;
	if (receives(a) &&
	    (!hca_live(a->recv_cq, HCA_CQ) ||
	     (a->srq && !hca_live(a->srq, HCA_SRQ)) || a->recv_cq->context != ctx ||
	     (a->srq && (a->srq->context != ctx || hca_srq(a->srq)->xrcd))))
		return -EINVAL;
	if (c->max_send_wr > HCA_MAX_QP_WR || c->max_send_sge > HCA_MAX_SGE ||
	    c->max_inline_data > HCA_MAX_INLINE ||
	    (!a->srq && (c->max_recv_wr > HCA_MAX_QP_WR ||
			 c->max_recv_sge > HCA_MAX_SGE)))
		return -EINVAL;
	/* ibv_create_qp(3): a shared receive queue is for RC and UD. */
	if (a->srq && a->qp_type == IBV_QPT_UC)
		return -EINVAL;
	return check_init_extended(a, hca_opcode_flags_of(a->qp_type, hca_without(ctx)));
}

static int sq_init(struct hca_qp *qp, const struct ibv_qp_cap *cap,
		   struct hca_pd *pd)
{
	struct hca_sq *sq = &qp->sq;
	uint32_t size = 1, body;
	int ret;

	while (size < cap->max_send_wr)
		size <<= 1;
	body = MAX(cap->max_send_sge * (uint32_t)sizeof(struct ibv_sge),
		   cap->max_inline_data);
	sq->limit = cap->max_send_wr;
	sq->mask = size - 1;
	sq->max_sge = cap->max_send_sge;
	sq->max_inline = cap->max_inline_data;
	sq->stride = ((uint32_t)sizeof(struct hca_swqe) + body + CACHE_LINE - 1) &
		     ~(uint32_t)(CACHE_LINE - 1);
	ret = hca_memory_alloc(pd, (size_t)size * sq->stride,
			       HCA_RESOURCE_SEND_QUEUE, &qp->sq_memory);
	sq->wqes = qp->sq_memory.at;
	return ret;
}

static void fill_public(struct hca_qp *qp, struct ibv_context *ctx,
			struct ibv_qp_init_attr_ex *a)
{
	qp->ibv.context = ctx;
	qp->ibv.qp_context = a->qp_context;
	qp->ibv.pd = a->pd;
	qp->ibv.send_cq = a->send_cq;
	qp->ibv.recv_cq = receives(a) ? a->recv_cq : NULL;
	qp->ibv.qp_type = a->qp_type;
	qp->ibv.state = IBV_QPS_RESET;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	qp->always_flags = a->sq_sig_all ? HCA_SWQE_SIGNALED : 0;
	qp->reliable = a->qp_type == IBV_QPT_RC || a->qp_type == IBV_QPT_XRC_SEND;
	qp->offered = hca_opcode_posted_of(a->qp_type, hca_without(ctx));
	qp->pd = hca_pd(a->pd);
	qp->send_cq = hca_cq(a->send_cq);
	qp->recv_cq = receives(a) ? hca_cq(a->recv_cq) : NULL;
	hca_path_none(qp);
	qp->ibv.srq = receives(a) ? a->srq : NULL;
	qp->srq = qp->ibv.srq ? hca_srq(qp->ibv.srq) : NULL;
	qp->recv = qp->srq ? &qp->srq->rq : &qp->rq;
	qp->recv_pd = qp->srq ? hca_pd(qp->ibv.srq->pd) : qp->pd;
	qp->cap = a->cap;
	qp->no_self_multicast =
		(a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
		(a->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	qp->single_threaded = hca_domain_single_threaded(qp->pd);
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		qp->extended = true;
		qp->send_ops = hca_opcode_set_of(a->send_ops_flags);
		hca_sq_builders_init(qp);
	}
}

int hca_qp_create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *a,
		  struct ibv_qp **out)
{
	struct hca_qp *qp;
	uint32_t qpn;
	int ret;

	if (a->qp_type == IBV_QPT_XRC_RECV)
		return hca_target_create(ctx, a, out);
	ret = check_init_attr(ctx, a);
	if (ret)
		return ret;
	qp = aligned_alloc(CACHE_LINE, (sizeof(*qp) + CACHE_LINE - 1) &
					       ~(size_t)(CACHE_LINE - 1));
	if (!qp)
		return -ENOMEM;
	memset(qp, 0, sizeof(*qp));
	/* Every entry has room for it, and programs expect inline sends to work. */
	a->cap.max_inline_data = MAX(a->cap.max_inline_data, INLINE_MIN);
	ret = sq_init(qp, &a->cap, hca_pd(a->pd));
	if (ret)
		goto err_qp;
	if (a->srq || !receives(a)) /* the receive part of cap is ignored */
		a->cap.max_recv_wr = a->cap.max_recv_sge = 0;
	ret = hca_rq_init(&qp->rq, a->cap.max_recv_wr, a->cap.max_recv_sge,
			  hca_pd(a->pd), HCA_RESOURCE_RECV_QUEUE,
			  &qp->rq_memory);
	if (ret)
		goto err_sq;
	fill_public(qp, ctx, a);
	ret = hca_hold_init(qp);
	if (ret)
		goto err_rq;
	ret = -ENOMEM;
	if (qp->srq) {
		qp->claim = calloc(1, qp->recv->stride);
		if (!qp->claim)
			goto err_rq;
	}
	progress_timer_init(&qp->retry, retry_expired);
	qp->retry.by_pollers = true;
	ret = hca_qpn_alloc(qp, &qpn);
	if (ret)
		goto err_rq;
	qp->ibv.qp_num = qp->ibv.handle = qpn;
	qp->rq.qpn = qpn;
	hca_promise_init(qp, hca_flush_promised);
	hca_counters_reset(qp);
	atomic_store(&qp->pub->type, (uint32_t)a->qp_type);
	atomic_store(&qp->pub->device,
		     (uint32_t)hca_context(ctx)->device->index);
	atomic_store(&qp->pub->transport, 0);
	atomic_store(&qp->pub->dest_qpn, 0);
	atomic_store(&qp->pub->pd_id, qp->pd->id);
	atomic_store(&qp->pub->state, IBV_QPS_RESET);
	atomic_store(&qp->pub->qpn, qpn);
	/* A failure of the device from here on moves the QP to ERR; one before is found now. */
	ret = hca_context_check(ctx);
	if (ret)
		goto err_qpn;
	hca_pd_get(qp->pd);
	atomic_fetch_add(&qp->send_cq->users, 1);
	atomic_store(&qp->send_cq->sends, true);
	if (qp->recv_cq)
		atomic_fetch_add(&qp->recv_cq->users, 1);
	if (qp->srq)
		atomic_fetch_add(&qp->srq->users, 1);
	hca_live_begin(&qp->ibv, HCA_QP);
	*out = &qp->ibv;
	return 0;

err_qpn:
	atomic_store(&qp->pub->qpn, 0);
	hca_number_free(qpn);
err_rq:
	free(qp->claim);
	hca_hold_fini(qp);
	hca_memory_free(&qp->rq_memory, HCA_RESOURCE_RECV_QUEUE);
err_sq:
	hca_memory_free(&qp->sq_memory, HCA_RESOURCE_SEND_QUEUE);
err_qp:
	free(qp);
	return ret;
}

struct ibv_qp_ex *hca_qp_to_ex(struct ibv_qp *ibqp)
{
	struct hca_qp *qp = hca_qp(ibqp);

	return qp->extended ? &qp->ex : NULL;
}

/* Publishes the access rights that peers check before RDMA operations. Without resources for
 * READ and ATOMIC (max_dest_rd_atomic 0) these are refused as without the right: both cases
 * are answered with NAK invalid request (9.7.4.1). */
void hca_qp_publish_access(struct hca_qp *qp)
{
	unsigned access = qp->attr.qp_access_flags;

	if (!qp->attr.max_dest_rd_atomic)
		access &= ~(unsigned)(IBV_ACCESS_REMOTE_READ |
				      IBV_ACCESS_REMOTE_ATOMIC);
	atomic_store(&qp->pub->access, access);
}

static void store_values(struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *t = &qp->attr;

	if (mask & IBV_QP_ACCESS_FLAGS)
		t->qp_access_flags = a->qp_access_flags;
	if (mask & IBV_QP_PKEY_INDEX)
		t->pkey_index = a->pkey_index;
	if (mask & IBV_QP_PORT)
		t->port_num = a->port_num;
	if (mask & IBV_QP_QKEY)
		t->qkey = a->qkey;
	if (mask & IBV_QP_AV)
		t->ah_attr = a->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		t->path_mtu = a->path_mtu;
	if (mask & IBV_QP_TIMEOUT)
		t->timeout = a->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		t->retry_cnt = a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		t->rnr_retry = a->rnr_retry;
	if (mask & IBV_QP_RQ_PSN) {
		qp->rx_psn = t->rq_psn = a->rq_psn & HCA_PSN_MASK;
		atomic_store(&qp->pub->rq_psn, t->rq_psn);
		atomic_fetch_add(&qp->pub->connection, 1);
		/* A target delivers to SRQs; no message has this PSN. */
		if (qp->ibv.qp_type == IBV_QPT_XRC_RECV)
			qp->rx_psn = UINT32_MAX;
	}
	if (mask & IBV_QP_SQ_PSN)
		qp->tx_psn = t->sq_psn = a->sq_psn & HCA_PSN_MASK;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		t->max_rd_atomic = a->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		t->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER) {
		t->min_rnr_timer = a->min_rnr_timer;
		atomic_store(&qp->pub->min_rnr_timer, t->min_rnr_timer);
	}
	if (mask & IBV_QP_PATH_MIG_STATE)
		t->path_mig_state = a->path_mig_state;
	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		t->en_sqd_async_notify = a->en_sqd_async_notify;
	if (mask & IBV_QP_DEST_QPN) {
		t->dest_qp_num = a->dest_qp_num;
		atomic_store(&qp->pub->dest_qpn, a->dest_qp_num);
	}
	if (mask & (IBV_QP_ACCESS_FLAGS | IBV_QP_MAX_DEST_RD_ATOMIC))
		hca_qp_publish_access(qp);
}

static void purge_cqs(struct hca_qp *qp)
{
	if (qp->send_cq)
		hca_cq_purge(qp->send_cq, qp->ibv.qp_num);
	if (qp->recv_cq)
		hca_cq_purge(qp->recv_cq, qp->ibv.qp_num);
}

static void reset(struct hca_qp *qp)
{
	/* First leave the states in which messages are accepted. */
	hca_qp_set_state(qp, IBV_QPS_RESET);
	progress_timer_cancel(&qp->retry);
	hca_path_close(qp);
	progress_timer_cancel(&qp->retry); /* it may have been armed meanwhile */
	hca_lock(&qp->sq_lock);
	/* Again: another thread may have moved the QP to ERR meanwhile. */
	hca_qp_set_state(qp, IBV_QPS_RESET);
	qp->sq.head = qp->sq.next = qp->sq.tail = 0;
	hca_hold_clear(qp);
	qp->tx_blocked = HCA_TX_OPEN;
	qp->tx_epoch++;
	hca_unlock(&qp->sq_lock);
	progress_timer_cancel(&qp->promising.close);
	hca_rq_reset(&qp->rq);
	hca_promise_reset(qp);
	purge_cqs(qp);
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->rx_offset = 0;
	qp->claimed = false;
}

/* Waits for copies of peers: after a change to RESET or ERR the program may reuse its memory. */
static void fence(const struct hca_qp *qp)
{
	if (qp->ibv.qp_type != IBV_QPT_UD && qp->ibv.qp_type != IBV_QPT_XRC_SEND)
		hca_fence_qp(qp);
}

/* Opens the path for the change to RTR with attributes `a`. 0 or a negative errno. */
static int open_path(struct hca_qp *qp, const struct ibv_qp_attr *a)
{
	struct hca_destination to = { .qpn = HCA_QPN_UNKNOWN };
	struct ibv_ah_attr full;
	union ibv_gid source;
	int ret;

	if (qp->ibv.qp_type != IBV_QPT_UD) {
		hca_address_complete(&a->ah_attr, &full, &source);
		to = (struct hca_destination){
			.ah = &full,
			.local = hca_address_is_local(&a->ah_attr),
			.qpn = a->dest_qp_num,
		};
		if (!a->ah_attr.is_global && !hca_path_choose(&to))
			return hca_address_refuse();
	}
	ret = hca_path_open(qp, &to);
	if (!ret && qp->ibv.qp_type == IBV_QPT_UD)
		hca_path_expect(qp);
	return ret;
}

int hca_qp_modify(struct ibv_qp *ibqp, struct ibv_qp_attr *a, int mask)
{
	enum ibv_qp_state cur, next;
	struct hca_qp *qp;
	int ret = 0;

	if (!hca_live(ibqp, HCA_QP))
		return -EINVAL;
	qp = hca_qp_behind(ibqp);
	cur = hca_qp_state(qp);
	next = mask & IBV_QP_STATE ? a->qp_state : cur;
	mask = hca_qp_mask(ibqp->qp_type, mask);
	if ((mask & IBV_QP_CUR_STATE) && a->cur_qp_state != cur)
		return -EINVAL;
	if (next != IBV_QPS_RESET && next != IBV_QPS_ERR)
		ret = hca_context_check(ibqp->context);
	if (!ret && hca_is_rnic(ibqp->context))
		ret = hca_qp_rnic_check(cur, next, mask);
	else if (!ret)
		ret = hca_qp_transition_check(ibqp->qp_type, cur, next, mask);
	if (!ret)
		ret = hca_qp_values_check(a, mask);
	if (ret)
		return ret;
	if (next == IBV_QPS_RESET) {
		ibqp->state = next;
		if (hca_promise_end(qp))
			hca_take_in();
		reset(qp);
		fence(qp);
		return 0;
	}
	if (next == IBV_QPS_ERR) {
		ibqp->state = next;
		if (cur != IBV_QPS_ERR) {
			hca_promise_end(qp);
			hca_take_in();
			hca_qp_fail(qp);
		}
		fence(qp);
		return 0;
	}
	if (cur == IBV_QPS_INIT && next == IBV_QPS_RTR)
		ret = open_path(qp, a);
	if (ret)
		return ret;
	hca_lock(&qp->sq_lock);
	/* A failure of the QP or of its device moves the QP to ERR under this lock. If that
	 * has happened, the QP must not leave ERR; if not, it will happen after this change. */
	ret = hca_context_check(ibqp->context);
	if (!ret && hca_qp_state(qp) != cur)
		ret = -EINVAL;
	if (ret) {
		hca_unlock(&qp->sq_lock);
		return ret;
	}
	ibqp->state = next;
	store_values(qp, a, mask);
	if (cur == IBV_QPS_INIT && next == IBV_QPS_RTR)
		qp->established = false;
	if (cur != next)
		hca_qp_set_state(qp, next);
	if (cur == IBV_QPS_RTS && next == IBV_QPS_SQD) {
		/* Entries that are posted by now are still processed. */
		qp->sq.drain_to = qp->sq.head;
		qp->sq.draining = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) &&
				  a->en_sqd_async_notify;
		hca_sq_drained(qp);
		/* The transport has to look for the acknowledgements, which nobody polls for. */
		hca_sq_run(qp);
	}
	hca_unlock(&qp->sq_lock);
	if (cur == IBV_QPS_INIT && next == IBV_QPS_RTR)
		return hca_path_ops(&qp->path)->connect(qp);
	if (next == IBV_QPS_RTS && cur != next) {
		const struct hca_transport_ops *ops;

		hca_lock(&qp->sq_lock);
		ops = hca_path_ops(&qp->path);
		if (cur == IBV_QPS_RTR && ops->ready)
			ops->ready(qp);
		hca_sq_run(qp);
		hca_unlock(&qp->sq_lock);
	}
	return 0;
}

int hca_qp_query(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct hca_qp *qp;

	if (!hca_live(ibqp, HCA_QP))
		return -EINVAL;
	qp = hca_qp_behind(ibqp);
	hca_lock(&qp->sq_lock);
	*attr = qp->attr;
	/* Programs also read ibv_qp.state, which errors do not update. */
	ibqp->state = attr->qp_state = attr->cur_qp_state =
		hca_qp_state_shown(qp);
	attr->sq_draining = attr->qp_state == IBV_QPS_SQD &&
			    qp->sq.tail != qp->sq.drain_to;
	attr->cap = qp->cap;
	if (qp->ibv.qp_type != IBV_QPT_UD &&
	    qp->ibv.qp_type != IBV_QPT_XRC_RECV && attr->qp_state >= IBV_QPS_RTR)
		attr->rq_psn = qp->rx_psn;
	if (attr->qp_state >= IBV_QPS_RTS)
		attr->sq_psn = qp->tx_psn;
	hca_unlock(&qp->sq_lock);
	*init = (struct ibv_qp_init_attr){
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.cap = qp->cap,
		.qp_type = ibqp->qp_type,
		.sq_sig_all = qp->always_flags & HCA_SWQE_SIGNALED ? 1 : 0,
	};
	return 0;
}

bool hca_qp_exists(const struct ibv_qp *ibqp, uint32_t qpn)
{
	const struct hca_qp *qp = hca_qp_find(qpn);

	return qp && &qp->ibv == ibqp;
}

int hca_qp_destroy(struct ibv_qp *ibqp)
{
	struct hca_qp *qp = hca_qp(ibqp);

	if (!hca_live(ibqp, HCA_QP))
		return -EINVAL;
	if (qp->target) {
		hca_live_end(ibqp, HCA_QP);
		hca_target_put(qp);
		return 0;
	}
	if (atomic_load(&qp->mcast_groups) > 0)
		return -EBUSY;
	hca_live_end(ibqp, HCA_QP);
	if (hca_promise_end(qp))
		hca_take_in();
	hca_qp_set_state(qp, IBV_QPS_RESET);
	atomic_store(&qp->pub->qpn, 0);
	hca_counters_retire(qp);
	hca_number_free(ibqp->qp_num);
	progress_timer_cancel(&qp->retry);
	hca_path_close(qp);
	progress_timer_cancel(&qp->retry); /* it may have been armed meanwhile */
	fence(qp);
	progress_timer_cancel(&qp->promising.close);
	hca_promise_reset(qp);
	hca_mw_qp_gone(qp);
	hca_async_qp_forget(qp);
	purge_cqs(qp);
	hca_memory_free(&qp->rq_memory, HCA_RESOURCE_RECV_QUEUE);
	hca_memory_free(&qp->sq_memory, HCA_RESOURCE_SEND_QUEUE);
	hca_hold_fini(qp);
	hca_pd_put(qp->pd);
	atomic_fetch_sub(&qp->send_cq->users, 1);
	if (qp->recv_cq)
		atomic_fetch_sub(&qp->recv_cq->users, 1);
	if (qp->srq)
		atomic_fetch_sub(&qp->srq->users, 1);
	free(qp->claim);
	pthread_mutex_destroy(&ibqp->mutex);
	pthread_cond_destroy(&ibqp->cond);
	free(qp);
	return 0;
}
