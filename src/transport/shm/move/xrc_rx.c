/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving side of extended reliable connections, in the process of the SRQ. The
 * target QP may be in another process, so the state for receiving is kept here for each
 * initiator (the responder): the next expected sequence number, and the receive claimed
 * for a message of which only a part has come. It is a struct hca_qp, so that rx.c
 * can execute the messages, but it is not visible to any program.
 *
 * `first` (SHM_XRC_FIRST) says that all earlier messages of the initiator were
 * acknowledged, here or by another process: the sequence starts anew with this one.
 */
#define LOG_ROOM "shm"
#include <stdlib.h>
#include <string.h>

#include "hca/limits.h"
#include "hca/object/pd.h"
#include "hca/object/public.h"
#include "hca/object/rq.h"
#include "hca/object/srq.h"
#include "hca/queue/flush.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "transport/shm/link/state.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/ring/ring.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"

#define BUCKETS 256u
/* Limit of initiators per link. The peer chooses their numbers, so without a limit it
 * could make this process allocate any amount of memory. */
#define RESPONDERS 16384u
#define CLAIM_BYTES \
	(sizeof(struct hca_rwqe) + HCA_MAX_SGE * sizeof(struct ibv_sge))

struct shm_responder {
	struct hca_qp qp; /* first: aligned */
	struct shm_responder *next;
	struct hca_qp_public pub;
	_Alignas(struct hca_rwqe) uint8_t claim[CLAIM_BYTES];
};

/* Once per initiator, with its first message. */
static struct shm_responder *responder_new(uint32_t src_qpn)
{
	struct shm_responder *r =
		aligned_alloc(CACHE_LINE, (sizeof(*r) + CACHE_LINE - 1) &
						  ~(size_t)(CACHE_LINE - 1));
	struct hca_qp *qp;

	if (!r) {
		log_error("no memory for an XRC initiator");
		return NULL;
	}
	memset(r, 0, sizeof(*r));
	qp = &r->qp;
	qp->ibv.qp_type = IBV_QPT_XRC_RECV;
	list_init(&qp->handles); /* no handle gets its events */
	qp->claim = (struct hca_rwqe *)(void *)r->claim;
	qp->pub = &r->pub;
	qp->recv = &qp->rq;
	atomic_store(&r->pub.dest_qpn, src_qpn);
	/* The initiator has checked the rights of the target QP. */
	atomic_store(&r->pub.access, IBV_ACCESS_REMOTE_ATOMIC |
					     IBV_ACCESS_REMOTE_WRITE |
					     IBV_ACCESS_REMOTE_READ);
	return r;
}

static struct shm_responder *responder_get(struct shm_link *l, uint32_t src_qpn, bool create)
{
	struct shm_responder **at, *r;

	if (!l->responders) {
		if (!create)
			return NULL;
		l->responders = calloc(BUCKETS, sizeof(struct shm_responder *));
		if (!l->responders)
			return NULL;
	}
	at = &l->responders[src_qpn % BUCKETS];
	for (r = *at; r; r = r->next)
		if (atomic_load_explicit(&r->pub.dest_qpn, memory_order_relaxed) == src_qpn)
			return r;
	if (!create || l->responder_count >= RESPONDERS)
		return NULL;
	r = responder_new(src_qpn);
	if (r) {
		l->responder_count++;
		r->qp.rx_peer = l->rx_peer;
		r->next = *at;
		*at = r;
	}
	return r;
}

/* A target QP of this process is checked, and *counters set to its own; false: it does not
 * accept the message. The initiator has checked a target QP of another process. */
static bool target_accepts(const struct shm_xrc_header *h,
			   const struct hca_srq *srq,
			   struct hca_qp_counters **counters)
{
	uint32_t block = h->target_qpn >> HCA_QPN_BLOCK_BITS;
	const struct hca_qp *qp;
	enum ibv_qp_state state;

	*counters = srq->counters;
	if (!atomic_load_explicit(&hca_process.blocks[block], memory_order_acquire))
		return true;
	qp = hca_qp_find(h->target_qpn);
	if (!qp || qp->ibv.qp_type != IBV_QPT_XRC_RECV)
		return false;
	*counters = qp->counters;
	state = hca_qp_state(qp);
	return (state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
		state == IBV_QPS_SQD) &&
	       atomic_load_explicit(&qp->pub->dest_qpn, memory_order_relaxed) ==
		       h->src_qpn &&
	       hca_xrcd_same(&qp->pub->xrcd, &srq->xrcd->id);
}

/* Takes the responder off its SRQ. A receive claimed for an unfinished message completes
 * flushed. */
static void detach(struct hca_qp *qp)
{
	if (qp->srq)
		hca_rq_flush(qp);
	qp->srq = NULL;
	qp->recv = &qp->rq;
	qp->recv_cq = NULL;
	qp->recv_pd = qp->pd = NULL;
	qp->rx_offset = 0;
}

static void attach(struct hca_qp *qp, struct hca_srq *srq)
{
	qp->ibv.context = srq->ibv.context;
	qp->srq = srq;
	qp->recv = &srq->rq;
	qp->recv_cq = srq->cq;
	qp->pd = hca_pd(srq->ibv.pd);
	qp->recv_pd = qp->pd;
}

struct hca_qp *shm_xrc_responder(struct shm_link *l,
				 const struct shm_xrc_header *h, bool first,
				 uint8_t rnr_timer)
{
	struct hca_srq *srq = hca_srq_find(h->srqn);
	struct hca_qp_counters *counters;
	struct shm_responder *r;
	struct hca_qp *qp;

	/* Dropped: before it repeats the message the initiator checks target and SRQ
	 * again, and reports the error. */
	if (!srq || !srq->xrcd || !target_accepts(h, srq, &counters))
		return NULL;
	r = responder_get(l, h->src_qpn, first);
	if (!r)
		return NULL;
	qp = &r->qp;
	if (first) {
		/* The claimed receive is kept if the same message is repeated. */
		if (qp->claimed &&
		    (h->psn != atomic_load_explicit(&qp->rx_psn,
						    memory_order_relaxed) ||
		     h->target_qpn != qp->ibv.qp_num))
			detach(qp);
		qp->rx_offset = 0;
		atomic_store_explicit(&qp->rx_psn, h->psn, memory_order_relaxed);
		qp->ibv.qp_num = h->target_qpn;
		qp->attr.min_rnr_timer = rnr_timer & 31;
		hca_qp_set_state(qp, IBV_QPS_RTS);
	} else if (hca_qp_state(qp) != IBV_QPS_RTS || h->target_qpn != qp->ibv.qp_num) {
		return NULL;
	}
	if (qp->srq != srq) {
		detach(qp);
		attach(qp, srq);
	}
	qp->counters = counters;
	return qp;
}

static void srq_detach(struct shm_link *l, const struct hca_srq *srq)
{
	for (unsigned b = 0; l->responders && b < BUCKETS; b++) {
		for (struct shm_responder *r = l->responders[b]; r; r = r->next)
			if (r->qp.srq == srq)
				detach(&r->qp);
	}
}

void shm_srq_forget(struct hca_srq *srq)
{
	pthread_mutex_lock(&shm.lock);
	shm_each_link(l) {
		hca_lock(&l->rx_lock);
		srq_detach(l, srq);
		hca_unlock(&l->rx_lock);
	}
	pthread_mutex_unlock(&shm.lock);
}

void shm_responders_free(struct shm_link *l)
{
	struct shm_responder *r;

	for (unsigned b = 0; l->responders && b < BUCKETS; b++) {
		while ((r = l->responders[b])) {
			l->responders[b] = r->next;
			detach(&r->qp);
			free(r);
		}
	}
	free(l->responders);
	l->responders = NULL;
	l->responder_count = 0;
}
