/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving long messages: what does not lie in return buffers is fetched by RDMA READ, at
 * once, whoever waits for it. Messages of a peer go to their services in the order of their
 * numbers, and none twice.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ripc/instance/instance.h"

#define CHUNK_BYTES (UINT64_C(1) << 30)

void fetch_free(struct fetch *f)
{
	offers_restore(f, NULL);
	for (unsigned i = 0; i < f->message.count; i++) {
		if (f->refs[i].region)
			pool_put(f->r->pool, &f->refs[i]);
		if (!(f->message.returned & (1u << i)) && f->message.items[i].data)
			pool_free(f->r->pool, f->message.items[i].data);
	}
	if (f->conn)
		conn_put(f->conn);
	free(f);
}

static void fetching_add(struct peer *p, struct fetch *f, int by);

/* peer->lock */
static void answer(struct conn *c, const struct fetch *f, int err)
{
	const struct packet_message m = {
		.type = err ? PACKET_FAILED : PACKET_DONE, .from = f->to,
		.to = f->message.from, .number = f->number, .error = (uint32_t)-err,
	};

	if (c->peer->conn == c)
		conn_control(c->peer, &m);
}

/* ---- what was announced ---- */

static uint64_t total_of(const struct packet_message *m)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < m->count; i++)
		if (__builtin_add_overflow(total, m->items[i].bytes, &total))
			return UINT64_MAX;
	return total;
}

/* Memory for what is to be fetched. -EBADMSG: it was not written where the peer says. */
static int place(struct fetch *f, struct ripc_service *s, const struct peer *p,
		 const struct packet_message *m)
{
	for (unsigned i = 0; i < m->count; i++) {
		struct ripc_item *item = &f->message.items[i];

		f->source[i] = m->items[i];
		item->bytes = m->items[i].bytes;
		item->data = NULL;
		f->message.count++;
		if (m->items[i].pushed) {
			if (!offers_take(s, p, m->from, &m->items[i], f))
				return -EBADMSG;
			item->data = (void *)(uintptr_t)m->items[i].address;
			f->message.returned |= 1u << i;
			continue;
		}
		if (!item->bytes)
			continue;
		item->data = pool_alloc(f->r->pool, item->bytes);
		if (!item->data ||
		    pool_get(f->r->pool, item->data, item->bytes, f->r->device.read_into,
			     &f->refs[i])) {
			f->refs[i].region = NULL;
			return -ENOBUFS;
		}
	}
	return 0;
}

static struct fetch *make(struct conn *c, const struct packet_message *m)
{
	struct fetch *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->r = c->r;
	f->to = m->to;
	f->number = m->number;
	f->conn = c;
	conn_get(c);
	list_init(&f->offers);
	f->message.fetch = f;
	f->message.from = m->from;
	f->message.is_long = true;
	return f;
}

/* ---- fetching; peer->lock ---- */

/* False: no room now. */
static bool post_reads(struct fetch *f)
{
	struct conn *c = f->conn;

	if (!offers_close(f))
		return false;
	for (; f->next_item < f->message.count; f->next_item++, f->next_at = 0) {
		const struct packet_memory *from = &f->source[f->next_item];

		if (from->pushed)
			continue;
		while (f->next_at < from->bytes) {
			uint64_t rest = from->bytes - f->next_at;
			struct ibv_sge sge = {
				.addr = (uintptr_t)f->message.items[f->next_item].data +
					f->next_at,
				.length = (uint32_t)(rest < CHUNK_BYTES ? rest : CHUNK_BYTES),
				.lkey = f->refs[f->next_item].lkey,
			};
			struct ibv_send_wr wr = {
				.wr_id = work_id(f, WORK_FETCH), .sg_list = &sge,
				.num_sge = 1, .opcode = IBV_WR_RDMA_READ,
				.wr.rdma = { .remote_addr = from->address + f->next_at,
					     .rkey = from->key },
			};

			if (!conn_has_room(c, FETCH_ROOM))
				return false;
			f->reads++;
			if (conn_post(c, &wr, 0, true)) {
				f->reads--;
				f->failed = true;
				return false;
			}
			f->next_at += sge.length;
		}
	}
	return true;
}

static bool is_whole(const struct fetch *f)
{
	return !f->reads && !f->failed && f->closed && f->next_item == f->message.count;
}

/* peer->lock. For answer_again(). */
static void remember(struct peer *p, uint64_t number, int err)
{
	struct refusal *at;

	if (!p->refused)
		p->refused = calloc(PEER_REFUSALS, sizeof(*p->refused));
	if (!p->refused) {
		p->refusals_lost = number;
		return;
	}
	at = &p->refused[p->refusals++ % PEER_REFUSALS];
	if (at->number > p->refusals_lost)
		p->refusals_lost = at->number;
	*at = (struct refusal){ number, (uint32_t)-err };
}

static void deliver(struct conn *c, struct fetch *f)
{
	struct ripc_service *s = service_get(f->r, f->to);

	list_remove(&f->entry);
	fetching_add(c->peer, f, -1);
	for (unsigned i = 0; i < f->message.count; i++) {
		if (!f->source[i].pushed)
			COUNT(f->r, bytes_pulled, f->message.items[i].bytes);
		if (f->refs[i].region)
			pool_put(f->r->pool, &f->refs[i]);
		f->refs[i].region = NULL;
	}
	if (!s) {
		targets_forget(c->peer, f->number);
		remember(c->peer, f->number, -EHOSTUNREACH);
	}
	answer(c, f, s ? 0 : -EHOSTUNREACH);
	f->conn = NULL;
	offers_done(f, c);
	if (s) {
		COUNT(f->r, long_received, 1);
		service_push(s, &f->message);
		service_put(s);
	} else {
		fetch_free(f);
	}
	conn_put(c);
}

void fetch_go_on(struct peer *p)
{
	bool room = true;

	while (!list_empty(&p->fetching)) {
		struct fetch *f = list_entry(p->fetching.next, struct fetch, entry);

		room = room && post_reads(f);
		if (!is_whole(f))
			break;
		deliver(f->conn, f);
	}
	for (struct list *e = p->fetching.next; room && e != &p->fetching; e = e->next)
		room = post_reads(list_entry(e, struct fetch, entry));
}

/* What the connection's end leaves: the READs that are on their way still write. */
void fetch_abort(struct peer *p)
{
	while (!list_empty(&p->fetching)) {
		struct fetch *f = list_entry(p->fetching.prev, struct fetch, entry);

		list_remove(&f->entry);
		fetching_add(p, f, -1);
		p->taken = f->number - 1;
		f->failed = true;
		if (!f->reads)
			fetch_free(f);
	}
}

void fetch_done(struct fetch *f, bool good)
{
	struct conn *c = f->conn;
	struct peer *p = c->peer;
	bool orphan;

	if (!good)
		connect_broken(c);
	conn_get(c);
	pthread_mutex_lock(&p->lock);
	f->reads--;
	f->failed |= !good;
	orphan = f->failed && list_empty(&f->entry);
	if (good)
		conn_retire(c);
	if (!orphan && good && p->conn == c)
		conn_flush(p);
	pthread_mutex_unlock(&p->lock);
	if (orphan && !f->reads)
		fetch_free(f);
	event_signal(&p->event);
	conn_put(c);
}

/* ---- announcements ---- */

/* peer->lock. What one peer has under way is bounded, too. */
static int refusal(const struct peer *p, struct ripc_service *s,
		   const struct packet_message *m)
{
	const struct ripc_config *c = &p->r->config.c;
	uint64_t bytes = total_of(m);

	if (!s)
		return -EHOSTUNREACH;
	if (bytes > c->message_bytes_max)
		return -EMSGSIZE;
	if (p->fetching_count && (p->fetching_count >= c->queue_max ||
				  p->fetching_bytes > c->message_bytes_max - bytes))
		return -EAGAIN;
	return service_is_full(s, bytes) ? -EAGAIN : 0;
}

/* peer->lock */
static void fetching_add(struct peer *p, struct fetch *f, int by)
{
	for (unsigned i = 0; i < f->message.count; i++)
		p->fetching_bytes += by > 0 ? f->message.items[i].bytes :
					      -f->message.items[i].bytes;
	p->fetching_count += (unsigned)by;
}

/* peer->lock. What was said of a message that is announced once more. */
static void answer_again(struct conn *c, const struct packet_message *m)
{
	const struct fetch f = { .to = m->to, .number = m->number, .message.from = m->from };
	/* Among those that were forgotten it may have been taken or not. */
	int err = m->number <= c->peer->refusals_lost ? -ECONNRESET : 0;

	for (unsigned i = 0; c->peer->refused && i < PEER_REFUSALS; i++)
		if (c->peer->refused[i].number == m->number)
			err = -(int)c->peer->refused[i].error;
	answer(c, &f, err);
}

/* peer->lock. -EBADMSG: the peer does not keep to the rules; another error: refused. */
static int take(struct conn *c, struct ripc_service *s, const struct packet_message *m)
{
	struct peer *p = c->peer;
	struct fetch *f = make(c, m);
	int ret = f ? refusal(p, s, m) : -ENOBUFS;

	if (!f)
		return -EBADMSG; /* nothing can be said of it; it comes again */
	if (!ret)
		ret = place(f, s, p, m);
	if (ret)
		offers_restore(f, c);
	if (ret == -EBADMSG) {
		fetch_free(f);
		return ret;
	}
	p->taken = m->number;
	if (ret) {
		remember(p, m->number, ret);
		answer(c, f, ret);
		fetch_free(f);
		return ret;
	}
	targets_add(p, m);
	list_push(&p->fetching, &f->entry);
	fetching_add(p, f, 1);
	fetch_go_on(p);
	return 0;
}

void long_informed(struct conn *c, const struct packet_message *m)
{
	struct ripc_service *s = service_get(c->r, m->to);
	struct peer *p = c->peer;
	int ret = 0;

	pthread_mutex_lock(&p->lock);
	/* Of a connection that has ended: it comes again on the next one. */
	if (p->conn == c && m->number <= p->taken)
		answer_again(c, m);
	else if (p->conn == c)
		ret = take(c, s, m);
	pthread_mutex_unlock(&p->lock);
	if (ret == -EBADMSG) {
		COUNT(c->r, bad_packets, 1);
		connect_broken(c);
	}
	if (s)
		service_put(s);
}
