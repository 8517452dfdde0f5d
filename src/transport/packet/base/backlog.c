/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The backlog of a port: requesters that wait for the next poll, and responders that owe an
 * answer. packet_port.backlog counts the entries of both lists.
 */
#include "transport/packet/base/state.h"

void packet_wait(struct packet_qp *pq)
{
	struct packet_port *port = pq->port;
	bool fresh;

	spin_lock(&port->wait_lock);
	fresh = !pq->waiting;
	if (fresh)
		list_push(&port->waiting, &pq->wait_entry);
	pq->waiting = true;
	spin_unlock(&port->wait_lock);
	/* The count first, packet_look_later() behind it: a thread that ceases to rely on polls
	 * clears `relied` first and reads the count afterwards (presence.c). */
	if (fresh && (atomic_fetch_add(&port->backlog, 1) == 0 ||
		      atomic_exchange(&port->reply_until_ns, 0)))
		packet_look_later(port);
}

void packet_owes(struct packet_qp *pq)
{
	if (pq->answering)
		return;
	pq->answering = true;
	if (list_empty(&pq->port->answering))
		atomic_store_explicit(&pq->port->owes_ns, pq->port->now_ns, memory_order_relaxed);
	list_push(&pq->port->answering, &pq->answer_entry);
	atomic_fetch_add(&pq->port->backlog, 1);
}

void packet_forget(struct packet_qp *pq)
{
	struct packet_port *port = pq->port;

	if (pq->answering) {
		list_remove(&pq->answer_entry);
		atomic_fetch_sub(&port->backlog, 1);
		pq->answering = false;
	}
	spin_lock(&port->wait_lock);
	if (pq->waiting) {
		list_remove(&pq->wait_entry);
		atomic_fetch_sub(&port->backlog, 1);
		pq->waiting = false;
	}
	spin_unlock(&port->wait_lock);
}
