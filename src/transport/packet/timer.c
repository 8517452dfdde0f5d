/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timer of a requester, hca_qp.retry (requester/requester.c). Responders need none: their
 * answers leave with the poll that brought the request.
 */
#include "hca/queue/post.h"
#include "transport/packet/packet.h"

/* The port of a requester that has waited too long for an answer, or NULL. */
static struct packet_port *overdue_port(struct hca_qp *qp)
{
	struct packet_port *port = NULL;
	const struct packet_qp *pq;

	hca_lock(&qp->sq_lock);
	pq = packet_part(qp)->state;
	if (pq && pq->ready && pq->requester.timeout_at_ns &&
	    packet_now_ns() >= pq->requester.timeout_at_ns)
		port = pq->port;
	hca_unlock(&qp->sq_lock);
	return port;
}

void packet_expired(struct hca_qp *qp)
{
	struct packet_port *port = overdue_port(qp);
	struct packet_qp *pq;
	enum ibv_qp_state state;
	struct work_done done;
	uint64_t now;
	uint32_t next;

	/* If this process had no processor for that long the answer may be here, and no thread
	 * has looked. */
	if (port)
		packet_take_in(port);
	hca_lock(&qp->sq_lock);
	pq = packet_part(qp)->state;
	state = hca_qp_state(qp);
	/* In any state: otherwise the next packet_arm() would take the timer for armed. */
	if (pq)
		pq->armed_ns = pq->look_ns = 0;
	if (pq && pq->ready && (state == IBV_QPS_RTS || state == IBV_QPS_SQD)) {
		packet_settle(pq);
		next = pq->requester.next;
		now = packet_now_ns();
		done = rc_timer(&pq->requester, now);
		packet_count_repeated(pq, next, PACKET_TIMEOUT);
		if (!packet_late_until_ns(pq))
			packet_finish(pq, done);
		hca_sq_run(qp);
	}
	hca_unlock(&qp->sq_lock);
}
