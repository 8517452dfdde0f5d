/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving side of extended reliable connections: a target QP has the sequence of numbers,
 * the state and the rights; receives, memory and completion queue are those of the SRQ that a
 * message names. The stand-in of the target at the SRQ looks like a queue pair, so that request.c
 * carries out requests of any service, but no program knows of it. SRQ and target are of this
 * process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/queue/post.h"
#include "transport/packet/responder/responder.h"

#define CLAIM_BYTES (sizeof(struct hca_rwqe) + HCA_MAX_SGE * sizeof(struct ibv_sge))

struct packet_xrc {
	struct hca_qp qp; /* first, so that it is aligned */
	_Alignas(struct hca_rwqe) uint8_t claim[CLAIM_BYTES];
	struct list entry; /* in packet_port.targets */
	uint32_t srqn;     /* named by the first packet of the last message */
};

int packet_xrc_new(struct packet_qp *pq)
{
	struct packet_xrc *x =
		aligned_alloc(CACHE_LINE, (sizeof(*x) + CACHE_LINE - 1) &
						  ~(size_t)(CACHE_LINE - 1));
	struct hca_qp *as;

	if (!x)
		return -ENOMEM;
	memset(x, 0, sizeof(*x));
	as = &x->qp;
	as->ibv.qp_type = IBV_QPT_XRC_RECV;
	as->ibv.qp_num = pq->qp->ibv.qp_num;
	as->counters = pq->qp->counters;
	as->pub = pq->qp->pub;
	list_init(&as->handles);
	as->claim = (struct hca_rwqe *)(void *)x->claim;
	as->recv = &as->rq;
	pq->as = as;
	pq->xrc = x;
	return 0;
}

void packet_xrc_open(struct packet_qp *pq)
{
	if (pq->xrc)
		list_push(&pq->port->targets, &pq->xrc->entry);
}

/* A receive that was taken for an unfinished message completes as flushed. */
static void detach(struct hca_qp *as)
{
	if (as->srq)
		hca_rq_flush(as);
	as->srq = NULL;
	as->recv = &as->rq;
	as->recv_cq = NULL;
	as->recv_pd = NULL;
	as->pd = NULL;
}

void packet_xrc_close(struct packet_qp *pq)
{
	if (!pq->xrc)
		return;
	detach(pq->as);
	list_remove(&pq->xrc->entry);
}

int packet_xrc_attach(struct packet_qp *pq, const struct packet_frame *f)
{
	struct hca_srq *srq = hca_srq_find(f->srqn);
	struct hca_qp *as = pq->as;

	/* All packets of a message name the same SRQ; its receive serves them all (annex A14). */
	if (f->rc.flags & RC_FIRST)
		pq->xrc->srqn = f->srqn;
	else if (pq->xrc->srqn != f->srqn)
		return -EINVAL;
	if (!srq || !srq->xrcd || !hca_xrcd_same(&pq->qp->pub->xrcd, &srq->xrcd->id))
		return -EACCES;
	if (as->srq == srq)
		return 0;
	detach(as);
	as->ibv.context = srq->ibv.context;
	as->srq = srq;
	as->recv = &srq->rq;
	as->recv_cq = srq->cq;
	as->pd = hca_pd(srq->ibv.pd);
	as->recv_pd = as->pd;
	return 0;
}

void packet_srq_forget(struct packet_port *port, struct hca_srq *srq)
{
	hca_lock(&port->receive_lock);
	list_for_each(x, &port->targets, struct packet_xrc, entry)
		if (x->qp.srq == srq)
			detach(&x->qp);
	hca_unlock(&port->receive_lock);
}
