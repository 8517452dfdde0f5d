/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending long messages. Items go by RDMA WRITE into return buffers of the receiver that are
 * long enough; behind them on the same connection goes a message that tells of all items;
 * the receiver fetches the others and confirms.
 *
 * Until then everything needed to announce the message again is kept: when the connection
 * breaks and the same instance can be reached again, it is; the receiver knows by the
 * number which it has. If the instance has gone, nobody knows, and the sender is told.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ripc/instance/instance.h"

/* One WR; queue pairs take 2 GiB at most. */
#define CHUNK_BYTES (UINT64_C(1) << 30)
/* Connections that may end before a message is confirmed: a peer that takes connections and
 * ends each again would keep it for ever. */
#define BREAKS_MAX 8

static void outstanding_free(struct outstanding *o)
{
	struct ripc *r = o->s->r;

	for (unsigned i = 0; i < o->count; i++) {
		if (o->refs[i].region)
			pool_put(r->pool, &o->refs[i]);
		if (o->copies[i])
			pool_free(r->pool, o->copies[i]);
		o->refs[i].region = NULL;
		o->copies[i] = NULL;
	}
}

/* peer->lock. Its end: it leaves the peer's list, and stays with its service. */
static void end(struct peer *p, struct outstanding *o, int state)
{
	list_remove(&o->entry);
	outstanding_free(o);
	if (state)
		COUNT(p->r, long_failed, 1);
	/* With -ECONNRESET a message may lie in one of them already. */
	if (state && state != -ECONNRESET && o->returns_count)
		offers_undo(o->s, p, o->offer);
	atomic_store_explicit(&o->state, state, memory_order_release);
	event_signal(&p->event);
}

/* ---- making one ---- */

static int take_item(struct outstanding *o, unsigned i, const struct ripc_item *item)
{
	struct ripc *r = o->s->r;
	const void *at = item->data;
	int ret;

	o->items[i] = (struct packet_memory){ .bytes = item->bytes };
	if (!item->bytes)
		return 0;
	ret = pool_get(r->pool, at, item->bytes, POOL_SOURCE, &o->refs[i]);
	if (ret == -ENOENT) {
		o->copies[i] = pool_alloc(r->pool, item->bytes);
		if (!o->copies[i])
			return -ENOBUFS;
		memcpy(o->copies[i], item->data, item->bytes);
		COUNT(r, copies, 1);
		at = o->copies[i];
		ret = pool_get(r->pool, at, item->bytes, POOL_SOURCE, &o->refs[i]);
	}
	if (ret) {
		o->refs[i].region = NULL;
		return -ENOBUFS;
	}
	o->items[i].address = (uintptr_t)at;
	o->items[i].key = o->refs[i].rkey;
	return 0;
}

static struct outstanding *make(struct ripc_service *s, uint32_t to,
				const struct ripc_item *items, unsigned count)
{
	struct outstanding *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->s = s;
	o->from = s->id;
	o->to = to;
	atomic_init(&o->state, 1);
	list_init(&o->entry);
	list_init(&o->sent_entry);
	for (; o->count < count; o->count++)
		if (take_item(o, o->count, &items[o->count])) {
			o->count++;
			outstanding_free(o);
			free(o);
			return NULL;
		}
	return o;
}

/* ---- announcing; peer->lock ---- */

static unsigned chunks_of(uint64_t bytes)
{
	return (unsigned)((bytes + CHUNK_BYTES - 1) / CHUNK_BYTES);
}

static int write_item(struct outstanding *o, struct conn *c, unsigned i,
		      const struct packet_memory *to)
{
	for (uint64_t at = 0; at < o->items[i].bytes; at += CHUNK_BYTES) {
		uint64_t rest = o->items[i].bytes - at;
		struct ibv_sge sge = {
			.addr = o->items[i].address + at,
			.length = (uint32_t)(rest < CHUNK_BYTES ? rest : CHUNK_BYTES),
			.lkey = o->refs[i].lkey,
		};
		struct ibv_send_wr wr = {
			.wr_id = work_id(c, WORK_SEND), .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = { .remote_addr = to->address + at, .rkey = to->key },
		};
		int ret = conn_post(c, &wr, 0, false);

		if (ret)
			return ret;
	}
	COUNT(c->r, bytes_pushed, o->items[i].bytes);
	return 0;
}

/* How many WRs writing all of it would take; too many are left to be fetched. */
static bool may_write(const struct outstanding *o, const struct conn *c)
{
	unsigned wrs = 1;

	for (unsigned i = 0; i < o->count; i++)
		wrs += chunks_of(o->items[i].bytes);
	return conn_has_room(c, wrs);
}

/* False: no room now. */
static bool announce(struct peer *p, struct outstanding *o)
{
	struct conn *c = p->conn;
	struct packet_message m;
	bool write = may_write(o, c);
	uint8_t *at;

	if (!conn_can_send(c))
		return false;
	m.type = PACKET_LONG;
	m.from = o->from;
	m.to = o->to;
	m.error = 0;
	m.instance = 0;
	m.number = o->number;
	m.count = o->count;
	/* Return buffers went with the connection that they were given for. */
	m.returns_count = o->epoch == p->epoch && !o->returns_void ? o->returns_count : 0;
	memcpy(m.returns, o->returns, m.returns_count * sizeof(m.returns[0]));
	for (unsigned i = 0; i < o->count; i++) {
		struct packet_memory target;

		m.items[i] = o->items[i];
		if (!write || !o->items[i].bytes ||
		    !target_take(p, o->to, o->from, o->items[i].bytes, &target))
			continue;
		if (write_item(o, c, i, &target))
			return false;
		m.items[i] = (struct packet_memory){ .address = target.address,
						     .bytes = o->items[i].bytes,
						     .pushed = true };
	}
	m.credits = conn_credits_owed(c);
	at = conn_send_slot(c);
	conn_spend(c);
	o->informed = true;
	conn_send(c, at, packet_message_encode(&m, false, at));
	return true;
}

bool long_flush(struct peer *p)
{
	if (p->state != PEER_UP)
		return true;
	for (struct list *e = p->outstanding.next; e != &p->outstanding; e = e->next) {
		struct outstanding *o = list_entry(e, struct outstanding, entry);

		if (!o->informed && !announce(p, o))
			return false;
	}
	return true;
}

void long_again(struct peer *p)
{
	for (struct list *e = p->outstanding.next; e != &p->outstanding;) {
		struct outstanding *o = list_entry(e, struct outstanding, entry);

		e = e->next;
		if (o->given_up || ++o->breaks == BREAKS_MAX) {
			end(p, o, o->given_up ? -EBADF : -ECONNRESET);
			continue;
		}
		o->informed = false;
	}
}

void long_fail(struct peer *p, int err)
{
	while (!list_empty(&p->outstanding))
		end(p, list_entry(p->outstanding.next, struct outstanding, entry), err);
}

void long_offers_void(struct peer *p, const struct ripc_service *s, uint32_t to)
{
	for (struct list *e = p->outstanding.next; e != &p->outstanding; e = e->next) {
		struct outstanding *o = list_entry(e, struct outstanding, entry);

		if (o->s == s && o->to == to && !o->informed)
			o->returns_void = true;
	}
}

/* It is not at this peer any more; of others the peer can tell nothing. */
static void forget_service(struct peer *p, uint32_t id)
{
	struct peer *at = route_find(p->r, id);

	if (at == p)
		routes_forget(p->r, id, NULL);
	if (at)
		peer_put(at);
	resolver_forget(p->r->resolver, p->instance);
}

void long_ended(struct conn *c, const struct packet_message *m)
{
	struct peer *p = c->peer;

	if (m->type == PACKET_FAILED && !m->number) {
		/* A short message found nobody there. */
		forget_service(p, m->from);
		return;
	}
	pthread_mutex_lock(&p->lock);
	for (struct list *e = p->outstanding.next; e != &p->outstanding; e = e->next) {
		struct outstanding *o = list_entry(e, struct outstanding, entry);

		if (o->number != m->number || !o->informed)
			continue;
		end(p, o, m->type == PACKET_DONE ? 0 :
			  m->error && m->error < 4096 ? -(int)m->error : -EIO);
		break;
	}
	pthread_mutex_unlock(&p->lock);
	if (m->type == PACKET_FAILED && m->error == EHOSTUNREACH)
		forget_service(p, m->from);
}

/* ---- the calls ---- */

static bool has_ended(void *arg)
{
	struct outstanding *o = arg;

	return atomic_load_explicit(&o->state, memory_order_acquire) <= 0;
}

/* For calls that wait: closing the service ends them. */
static bool is_over(void *arg)
{
	struct outstanding *o = arg;

	return has_ended(o) || atomic_load_explicit(&o->s->closing, memory_order_relaxed);
}

static int explain(int err, uint32_t to)
{
	switch (err) {
	case 0: return 0;
	case -ECONNRESET:
		return ripc_fail(err, "the connection to service %#x ended; whether the message "
				 "has arrived is not known", to);
	case -EHOSTUNREACH:
		return ripc_fail(err, "service %#x is not there any more", to);
	case -EBADF:
		return ripc_fail(err, "closed while the message to service %#x was on its way", to);
	case -EAGAIN:
		return ripc_fail(err, "so many messages wait for service %#x that it takes no "
				 "more", to);
	case -EMSGSIZE:
		return ripc_fail(err, "service %#x does not take messages of that length", to);
	default:
		return ripc_fail(err, "service %#x has not taken the message: %s", to,
				 strerror(-err));
	}
}

static uint64_t give_up_at(const struct ripc_service *s)
{
	return now_ns() + s->r->config.c.connect_timeout_ms * UINT64_C(1000000);
}

/* Its service ends, if it has not ended itself. The receiver may still fetch: that is waited
 * for, and if it takes too long the connection goes, so that nobody reads memory that is
 * the program's again. */
static void give_up(struct outstanding *o, uint64_t until)
{
	struct peer *p = o->peer;

	if (has_ended(o) || !wait_until(p->r, &p->event, has_ended, o, until))
		return;
	pthread_mutex_lock(&p->lock);
	o->given_up = true;
	if (p->conn)
		connect_broken(p->conn);
	else if (!has_ended(o))
		end(p, o, -EBADF);
	pthread_mutex_unlock(&p->lock);
	wait_until(p->r, &p->event, has_ended, o, UINT64_MAX);
}

/* It has ended; nobody else knows of it any more. */
static int collect(struct ripc_service *s, struct outstanding *o)
{
	int state = atomic_load(&o->state);
	uint32_t to = o->to;

	spin_lock(&s->lock);
	list_remove(&o->sent_entry);
	spin_unlock(&s->lock);
	/* Who has set its end may still hold the lock that it did so under. */
	pthread_mutex_lock(&o->peer->lock);
	pthread_mutex_unlock(&o->peer->lock);
	peer_put(o->peer);
	free(o);
	return explain(state, to);
}

static int enqueue(struct ripc_service *s, struct outstanding *o,
		   const struct ripc_item *returns, unsigned returns_count)
{
	struct peer *p;
	int ret = send_lock_room(s, o->to, returns_count, false, &p);

	if (ret)
		return ret;
	if (returns_count)
		ret = offers_make(s, p, o->to, returns, returns_count, o->returns, &o->offer);
	if (ret) {
		pthread_mutex_unlock(&p->lock);
		peer_put(p);
		return ret;
	}
	o->returns_count = (uint8_t)returns_count;
	o->epoch = p->epoch;
	o->number = p->next_number++;
	o->peer = p; /* with its reference */
	list_push(&p->outstanding, &o->entry);
	spin_lock(&s->lock);
	o->token = s->next_token++;
	list_push(&s->sends, &o->sent_entry);
	spin_unlock(&s->lock);
	conn_flush(p);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

static int send_long(struct ripc_service *s, uint32_t to, const struct ripc_item *items,
		     unsigned count, const struct ripc_item *returns, unsigned returns_count,
		     struct ripc_token *token)
{
	struct outstanding *o = make(s, to, items, count);
	int ret;

	if (!o)
		return ripc_fail(-ENOBUFS, "no registered memory for the items");
	ret = enqueue(s, o, returns, returns_count);
	if (ret) {
		outstanding_free(o);
		free(o);
		return ret;
	}
	if (token) {
		token->number = o->token;
		return 0;
	}
	wait_until(s->r, &o->peer->event, is_over, o, UINT64_MAX);
	give_up(o, give_up_at(s));
	return collect(s, o);
}

int ripc_send_long(struct ripc_service *s, uint32_t to, const struct ripc_item *items,
		   unsigned count, const struct ripc_item *returns, unsigned returns_count,
		   struct ripc_token *token)
{
	struct ripc_service *local;
	int ret = send_check(s, items, count, returns, returns_count);

	if (ret)
		return ret;
	service_use(s);
	local = service_get(s->r, to);
	if (local) {
		ret = local_send(s, local, true, items, count, returns, returns_count);
		if (token)
			token->number = 0; /* has ended */
	} else {
		ret = send_long(s, to, items, count, returns, returns_count, token);
	}
	if (!ret)
		COUNT(s->r, long_sent, 1);
	service_put(s);
	return ret;
}

int ripc_sent(struct ripc_service *s, struct ripc_token token, int timeout_ms)
{
	struct outstanding *o = NULL;
	int ret = -EINVAL;

	if (!s)
		return ripc_fail(-EINVAL, "no service");
	if (!token.number)
		return 0;
	service_use(s);
	spin_lock(&s->lock);
	for (struct list *e = s->sends.next; e != &s->sends && !o; e = e->next) {
		struct outstanding *i = list_entry(e, struct outstanding, sent_entry);

		if (i->token == token.number && !i->asked) {
			o = i;
			o->asked = true;
		}
	}
	spin_unlock(&s->lock);
	if (!o) {
		ret = ripc_fail(-EINVAL, "no such message is on its way, or another thread asks");
	} else if (!has_ended(o) &&
		   wait_until(s->r, &o->peer->event, is_over, o, deadline_of(timeout_ms))) {
		spin_lock(&s->lock);
		o->asked = false;
		spin_unlock(&s->lock);
		ret = ripc_fail(-EAGAIN, "the message is on its way");
	} else {
		give_up(o, give_up_at(s));
		ret = collect(s, o);
		/* Not "not yet": the token is used up. */
		if (ret == -EAGAIN)
			ret = -ENOBUFS;
	}
	service_put(s);
	return ret;
}

/* Of a service that ends; nobody asks any more. */
void sends_forget(struct ripc_service *s)
{
	uint64_t until = give_up_at(s);

	while (!list_empty(&s->sends)) {
		struct outstanding *o = list_entry(s->sends.next, struct outstanding,
						   sent_entry);

		give_up(o, until);
		collect(s, o);
	}
}
