/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two sides of a connection say of themselves, and requests of others: which are
 * accepted. */
#include <stdlib.h>

#include "ripc/instance/connect.h"

/* ---- private data ---- */

struct rdma_conn_param connect_param(struct conn *c, uint8_t data[PACKET_CONNECT_BYTES])
{
	const struct packet_connect p = {
		.instance = c->r->number, .to = c->peer->instance,
		.credits = CONN_CREDITS, .message_bytes = SLOT_BYTES, .nonce = c->nonce,
	};

	packet_connect_encode(&p, &c->r->key, c->active ? 0 : c->peer_nonce, data);
	return (struct rdma_conn_param){
		.private_data = data, .private_data_len = PACKET_CONNECT_BYTES,
		.responder_resources = c->r->device.reads_max,
		.initiator_depth = c->r->device.reads_max,
		.retry_count = 7, .rnr_retry_count = 7,
	};
}

bool connect_may_speak(const struct packet_connect *p)
{
	return p->credits && p->message_bytes >= SLOT_BYTES;
}

void connect_take_param(struct conn *c, const struct packet_connect *p)
{
	c->granted = p->credits < CONN_CREDITS ? p->credits : CONN_CREDITS;
	c->peer_nonce = p->nonce;
}

/* ---- requests of others ---- */

unsigned connect_half_open(const struct ripc *r, const struct peer *p)
{
	unsigned n = 0;

	for (const struct list *e = r->conns.next; e != &r->conns; e = e->next) {
		const struct conn *c = list_entry(e, struct conn, entry);

		n += !c->active && !c->ending && !atomic_load(&c->established) &&
		     (!p || c->peer == p);
	}
	return n;
}

/* 0, or why it is rejected. */
static int judge(struct ripc *r, struct peer *p)
{
	int reason = 0;

	pthread_mutex_lock(&p->lock);
	/* Where the peer had begun the one that is up, it has given that up. */
	if (p->state == PEER_UP && p->conn->active && !atomic_load(&p->conn->dead) &&
	    now_ns() - p->conn->since_ns < CROSSING_NS)
		reason = REJECT_CROSSING;
	else if (p->state == PEER_CONNECTING && r->number > p->instance)
		reason = REJECT_CROSSING;
	pthread_mutex_unlock(&p->lock);
	if (!reason && atomic_load(&r->live_conns) + connect_half_open(r, NULL) >=
			       r->config.c.connections_max)
		reason = REJECT_FULL;
	return reason;
}

static void reject(struct ripc *r, struct rdma_cm_id *id, int reason)
{
	uint8_t why = (uint8_t)reason;

	if (reason != REJECT_CROSSING)
		COUNT(r, refused, 1);
	rdma_reject(id, &why, 1);
	rdma_destroy_id(id);
}

static void accept_now(struct ripc *r, struct rdma_cm_id *id, struct peer *p,
		       const struct packet_connect *request)
{
	uint8_t data[PACKET_CONNECT_BYTES];
	struct conn *c = conn_make(r, p, id, false);
	struct rdma_conn_param param;

	if (!c)
		return;
	connect_take_param(c, request);
	param = connect_param(c, data);
	if (conn_open(c) || rdma_accept(id, &param))
		conn_end(c);
}

void connect_requested(struct ripc *r, struct rdma_cm_id *id, const uint8_t *data,
		      size_t length)
{
	struct packet_connect request;
	struct peer *p;
	int ret = id->verbs == r->device.verbs ?
			  packet_connect_decode(&request, &r->key, 0, data, length) : -EBADMSG;
	int reason = 0;

	if (ret == -EKEYREJECTED)
		COUNT(r, unauthentic, 1);
	else if (ret || !connect_may_speak(&request))
		COUNT(r, bad_packets, 1);
	if (ret || !connect_may_speak(&request))
		reason = REJECT_STRANGER;
	else if (request.to != r->number || !request.instance ||
		 request.instance == r->number)
		reason = REJECT_OTHER_INSTANCE;
	else if (atomic_load(&r->closing))
		reason = REJECT_FULL;
	if (reason) {
		reject(r, id, reason);
		return;
	}
	p = peer_get(r, request.instance, true);
	reason = p ? judge(r, p) : REJECT_FULL;
	if (reason)
		reject(r, id, reason);
	else
		accept_now(r, id, p, &request);
	if (p)
		peer_put(p);
}
