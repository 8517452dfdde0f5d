/* SPDX-License-Identifier: BSD-2-Clause */
/* See table.h. */
#include "engine/cm/table.h"

#include "wire/cm_answer.h"

static struct list *bucket(struct list *buckets, uint64_t peer, uint32_t id)
{
	uint64_t h = (peer ^ id) * UINT64_C(0x9e3779b97f4a7c15);

	return &buckets[h >> 40 & (CM_TABLE_BUCKETS - 1)];
}

void cm_table_init(struct cm_table *t)
{
	for (unsigned i = 0; i < CM_TABLE_BUCKETS; i++) {
		list_init(&t->by_local[i]);
		list_init(&t->by_remote[i]);
		list_init(&t->by_qpn[i]);
	}
}

void cm_entry_init(struct cm_entry *e)
{
	*e = (struct cm_entry){ .peer = 0 };
	list_init(&e->by_local);
	list_init(&e->by_remote);
	list_init(&e->by_qpn);
}

void cm_table_remove(struct cm_entry *e)
{
	list_remove(&e->by_local);
	list_remove(&e->by_remote);
	list_remove(&e->by_qpn);
}

void cm_table_update(struct cm_table *t, struct cm_entry *e, uint64_t peer,
		     const struct cm_machine *m)
{
	uint32_t qpn = cm_machine_holds_qp(m) ? m->remote_qpn : 0;
	uint64_t calls = m->peer_to_peer && m->state == CM_REQ_SENT ?
				 m->service_id : 0;

	if (!list_empty(&e->by_local) && e->peer == peer &&
	    e->remote_comm_id == m->remote_comm_id && e->remote_qpn == qpn &&
	    e->calls_service == calls)
		return;
	cm_table_remove(e);
	e->peer = peer;
	e->local_comm_id = m->local_comm_id;
	e->remote_comm_id = m->remote_comm_id;
	e->remote_qpn = qpn;
	e->calls_service = calls;
	list_push(bucket(t->by_local, 0, e->local_comm_id), &e->by_local);
	if (e->remote_comm_id)
		list_push(bucket(t->by_remote, peer, e->remote_comm_id),
			  &e->by_remote);
	/* Peer to peer: the peer's identifier is unknown until its REQ comes. */
	else if (calls)
		list_push(bucket(t->by_remote, peer, 0), &e->by_remote);
	if (qpn)
		list_push(bucket(t->by_qpn, peer, qpn), &e->by_qpn);
}

static struct cm_entry *find_remote(struct cm_table *t, uint64_t peer,
				    uint32_t remote_comm_id)
{
	list_for_each(e, bucket(t->by_remote, peer, remote_comm_id),
		      struct cm_entry, by_remote)
		if (e->peer == peer && e->remote_comm_id == remote_comm_id)
			return e;
	return NULL;
}

static struct cm_entry *find_caller(struct cm_table *t, uint64_t peer,
				    uint64_t service_id)
{
	list_for_each(e, bucket(t->by_remote, peer, 0), struct cm_entry,
		      by_remote)
		if (e->peer == peer && e->calls_service &&
		    e->calls_service == service_id)
			return e;
	return NULL;
}

struct cm_entry *cm_table_find(struct cm_table *t, uint64_t peer,
			       const struct cm_mad *mad)
{
	struct cm_entry *e;
	uint32_t to, from;

	if (mad->type == CM_REQ) {
		e = find_remote(t, peer, mad->req.local_comm_id);
		return e ? e : find_caller(t, peer, mad->req.service_id);
	}
	if (mad->type == CM_SIDR_REQ)
		return find_remote(t, peer, mad->sidr_req.request_id);
	if (mad->type == CM_SIDR_REP)
		to = mad->sidr_rep.request_id;
	else
		wire_cm_parties(mad, &to, &from);
	if (mad->type == CM_REJ && !to)
		return find_remote(t, peer, from);
	list_for_each(entry, bucket(t->by_local, 0, to), struct cm_entry, by_local)
		if (entry->local_comm_id == to && entry->peer == peer)
			return entry;
	return NULL;
}

struct cm_entry *cm_table_find_stale(struct cm_table *t, uint64_t peer,
				     const struct cm_mad *mad)
{
	uint32_t qpn = mad->req.local_qpn;

	list_for_each(e, bucket(t->by_qpn, peer, qpn), struct cm_entry, by_qpn)
		if (qpn && e->peer == peer && e->remote_qpn == qpn)
			return e;
	return NULL;
}
