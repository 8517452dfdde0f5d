/* SPDX-License-Identifier: BSD-2-Clause */
/* Short messages, over the connection or by datagram. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ripc/instance/instance.h"

static size_t total_of(const struct ripc_item *items, unsigned count)
{
	size_t total = 0;

	for (unsigned i = 0; i < count; i++)
		if (__builtin_add_overflow(total, items[i].bytes, &total))
			return SIZE_MAX;
	return total;
}

static bool by_datagram(const struct ripc *r)
{
	return r->device.ud && r->config.c.short_by == RIPC_SHORT_DATAGRAM;
}

/* Of header and items. */
static size_t datagram_max(const struct ripc *r)
{
	return r->device.mtu_bytes < SLOT_BYTES ? r->device.mtu_bytes : SLOT_BYTES;
}

size_t ripc_short_max(struct ripc *r, unsigned count)
{
	if ((!r && ripc_default(&r)) || count > RIPC_ITEMS_MAX)
		return 0;
	return SLOT_BYTES - packet_message_bytes(PACKET_SHORT, count, 0, false);
}

/* What ripc_send_short() was asked for, with its header. */
struct job {
	struct packet_message m;
	const struct ripc_item *items;
	size_t header, total;
};

static void describe(struct job *j, struct ripc_service *s, uint32_t to,
		     const struct ripc_item *items, unsigned count)
{
	j->items = items;
	j->m.type = PACKET_SHORT;
	j->m.credits = 0;
	j->m.from = s->id;
	j->m.to = to;
	j->m.error = 0;
	j->m.number = 0;
	j->m.instance = s->r->number;
	j->m.count = (uint8_t)count;
	j->m.returns_count = 0;
	for (unsigned i = 0; i < count; i++)
		j->m.sizes[i] = (uint32_t)items[i].bytes;
}

static void write_out(struct job *j, bool datagram, uint8_t *at)
{
	at += packet_message_encode(&j->m, datagram, at);
	for (unsigned i = 0; i < j->m.count; i++) {
		if (j->items[i].bytes)
			memcpy(at, j->items[i].data, j->items[i].bytes);
		at += j->items[i].bytes;
	}
}

/* ---- over the connection ---- */

static int send_connected(struct job *j, struct peer *p)
{
	uint8_t small[256];
	struct conn *c;
	size_t bytes = j->header + j->total;
	uint8_t *at;

	c = p->conn;
	at = bytes <= c->max_inline ? small : conn_send_slot(c);
	j->m.credits = conn_credits_owed(c);
	write_out(j, false, at);
	conn_spend(c);
	if (conn_send(c, at, bytes))
		return ripc_fail(-ECONNRESET, "the connection has ended");
	return 0;
}

/* ---- by datagram ---- */

/* Where datagrams for a peer go; qpn 0: it takes none. */
struct datagram_to {
	struct ibv_ah *ah;
	uint32_t qpn, qkey;
};

/* The address handle is made once. */
static struct datagram_to datagram_to(struct peer *p)
{
	struct device *d = &p->r->device;
	struct ibv_ah_attr a = {
		.is_global = 1, .port_num = d->port,
		.grh = { .sgid_index = d->gid_index, .hop_limit = 64 },
	};
	struct datagram_to to;

	pthread_mutex_lock(&p->lock);
	if (!p->ah && p->where.ud_qpn) {
		memcpy(a.grh.dgid.raw, p->where.ud_gid, sizeof(a.grh.dgid.raw));
		p->ah = ibv_create_ah(d->pd, &a);
	}
	to = (struct datagram_to){ p->ah, p->ah ? p->where.ud_qpn : 0, p->where.ud_qkey };
	pthread_mutex_unlock(&p->lock);
	return to;
}

static int post_datagram(struct job *j, struct peer *p, const struct datagram_to *to)
{
	struct device *d = &p->r->device;
	size_t bytes = j->header + j->total;
	bool fits = bytes <= d->ud_inline;
	struct ibv_sge sge = { .length = (uint32_t)bytes, .lkey = d->ud_ref.lkey };
	struct ibv_send_wr wr = {
		.wr_id = work_id(p->r, WORK_UD_SEND), .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = fits ? IBV_SEND_INLINE : 0,
		.wr.ud = { .ah = to->ah, .remote_qpn = to->qpn, .remote_qkey = to->qkey },
	}, *bad;
	uint8_t *at;
	int ret = -EAGAIN;

	spin_lock(&d->ud_lock);
	if (d->ud_posted - d->ud_done < UD_SEND_SLOTS) {
		at = d->ud_send_bytes + d->ud_posted % UD_SEND_SLOTS * (size_t)SLOT_BYTES;
		write_out(j, true, at);
		sge.addr = (uintptr_t)at;
		if (++d->ud_unsignaled == UD_SEND_SLOTS / 4) {
			d->ud_unsignaled = 0;
			wr.send_flags |= IBV_SEND_SIGNALED;
		}
		d->ud_posted++;
		ret = ibv_post_send(d->ud, &wr, &bad) ? -EIO : 0;
	}
	spin_unlock(&d->ud_lock);
	return ret;
}

static bool has_room(void *arg)
{
	struct device *d = arg;
	bool room;

	spin_lock(&d->ud_lock);
	room = d->ud_posted - d->ud_done < UD_SEND_SLOTS;
	spin_unlock(&d->ud_lock);
	return room;
}

static int send_datagram(struct job *j, struct peer *p, const struct datagram_to *to)
{
	struct ripc *r = p->r;
	uint64_t until = now_ns() + r->config.c.connect_timeout_ms * UINT64_C(1000000);
	int ret;

	do {
		ret = post_datagram(j, p, to);
	} while (ret == -EAGAIN &&
		 !(ret = wait_until(r, &r->device.ud_event, has_room, &r->device, until)) &&
		 (ret = -EAGAIN));
	return ret ? ripc_fail(ret == -EAGAIN ? ret : -ECONNRESET,
			       "the datagram could not be sent") : 0;
}

/* ---- sending ---- */

/* p->lock, which is given up; there is room. */
static int send_locked(struct ripc_service *s, struct peer *p, struct job *j,
		       const struct ripc_item *returns, unsigned returns_count)
{
	uint64_t offer;
	int ret = 0;

	/* The offers are of this connection. */
	if (returns_count)
		ret = offers_make(s, p, j->m.to, returns, returns_count, j->m.returns, &offer);
	if (!ret) {
		j->m.returns_count = (uint8_t)returns_count;
		j->header = packet_message_bytes(PACKET_SHORT, j->m.count, returns_count, false);
		ret = send_connected(j, p);
		if (ret && returns_count)
			offers_undo(s, p, offer);
	}
	if (!ret)
		COUNT_LOCKED(p->short_sent);
	pthread_mutex_unlock(&p->lock);
	return ret;
}

static int send_to(struct ripc_service *s, uint32_t to, struct job *j,
		   const struct ripc_item *returns, unsigned returns_count)
{
	struct peer *p;
	struct datagram_to to_peer;
	size_t header = packet_message_bytes(PACKET_SHORT, j->m.count, 0, true);
	int ret;

	if (by_datagram(s->r) && !returns_count && header + j->total <= datagram_max(s->r)) {
		ret = peer_of_service(s->r, s->id, to, &p);
		if (ret)
			return ret;
		to_peer = datagram_to(p);
		if (to_peer.qpn) {
			j->header = header;
			ret = send_datagram(j, p, &to_peer);
			if (!ret)
				COUNT(s->r, short_sent, 1);
			peer_put(p);
			return ret;
		}
		peer_put(p);
	}
	ret = send_lock_room(s, to, 1 + returns_count, true, &p);
	if (ret)
		return ret;
	ret = send_locked(s, p, j, returns, returns_count);
	peer_put(p);
	return ret;
}

/* Also where the peer is not known or connected, or has no room. Takes the caller's reference of
 * `s`. */
static int send_anyhow(struct ripc_service *s, uint32_t to, struct job *j,
		       const struct ripc_item *returns, unsigned returns_count)
{
	struct ripc_service *local = service_get(s->r, to);
	int ret;

	if (local) {
		ret = local_send(s, local, false, j->items, j->m.count, returns, returns_count);
		if (!ret)
			COUNT(s->r, short_sent, 1);
	} else {
		ret = send_to(s, to, j, returns, returns_count);
	}
	service_put(s);
	return ret;
}

/* The usual case: the peer is known and connected, and there is room. Then `s` needs no
 * reference, because service_end() waits for p->lock. */
static int send_connected_or_not(struct ripc_service *s, struct job *j,
				 const struct ripc_item *returns, unsigned returns_count)
{
	struct peer *p;
	int ret = peer_lock_known(s, j->m.to, &p);

	if (ret)
		return ret;
	if (p && likely(send_has_room(p, 1 + returns_count, true, j->m.to)))
		return send_locked(s, p, j, returns, returns_count);
	if (p) {
		service_use(s);
		pthread_mutex_unlock(&p->lock);
	}
	return send_anyhow(s, j->m.to, j, returns, returns_count);
}

int ripc_send_short(struct ripc_service *s, uint32_t to, const struct ripc_item *items,
		    unsigned count, const struct ripc_item *returns, unsigned returns_count)
{
	struct job j;
	size_t limit;
	int ret = send_check(s, items, count, returns, returns_count);

	if (ret)
		return ret;
	j.total = total_of(items, count);
	limit = SLOT_BYTES - packet_message_bytes(PACKET_SHORT, count, returns_count, false);
	if (j.total > limit)
		return ripc_fail(-EMSGSIZE, "%zu bytes; a short message like this has at most %zu",
				 j.total, limit);
	describe(&j, s, to, items, count);
	if (!by_datagram(s->r))
		return send_connected_or_not(s, &j, returns, returns_count);
	service_use(s);
	return send_anyhow(s, to, &j, returns, returns_count);
}

/* ---- receiving ---- */

static void drop(struct slot *slot, const struct packet_message *m)
{
	struct conn *c = slot->conn;

	COUNT(slot->r, short_dropped, 1);
	if (!c) {
		device_ud_repost(slot);
		return;
	}
	conn_repost(slot, true);
	if (m->number)
		return;
	/* It is not here any more: the sender asks anew where it is. */
	pthread_mutex_lock(&c->peer->lock);
	if (c->peer->conn == c) {
		struct packet_message answer = { .type = PACKET_FAILED, .from = m->to,
						 .to = m->from, .error = EHOSTUNREACH };

		conn_control(c->peer, &answer);
	}
	pthread_mutex_unlock(&c->peer->lock);
}

/* So many receives are with messages that the others must not become fewer: with those that wait
 * to be posted, and the credits that the peer is not told of yet, they are nearly all. */
static bool is_crowded(const struct slot *slot)
{
	const struct device *d = &slot->r->device;
	const struct conn *c = slot->conn;

	if (c)
		return c->received - atomic_load_explicit(&c->reposted, memory_order_relaxed) >
		       CONN_CREDITS / 2 - CONN_TOGETHER;
	return d->ud_received - atomic_load_explicit(&d->ud_reposted, memory_order_relaxed) >
	       UD_SLOTS / 2;
}

/* A message without its slot. */
static struct received *copy_of(const uint8_t *at, size_t bytes)
{
	struct received *got = malloc(sizeof(*got) + bytes);

	_Static_assert(sizeof(*got) % 8 == 0, "the items are aligned as in a slot");
	if (got) {
		got->slot = NULL;
		got->fetch = NULL;
		memcpy(got + 1, at, bytes);
	}
	return got;
}

static void fill_in(struct received *got, const struct packet_message *m, uint8_t *at)
{
	got->from = m->from;
	got->returned = 0;
	got->is_long = false;
	got->count = m->count;
	for (unsigned i = 0; i < m->count; i++) {
		got->items[i] = (struct ripc_item){ at, m->sizes[i] };
		at += m->sizes[i];
	}
}

static size_t bytes_of(const struct packet_message *m)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < m->count; i++)
		bytes += m->sizes[i];
	return bytes;
}

static void take_targets(struct conn *c, const struct packet_message *m)
{
	pthread_mutex_lock(&c->peer->lock);
	if (c->peer->conn == c) /* those of a connection that has ended are void */
		targets_add(c->peer, m);
	pthread_mutex_unlock(&c->peer->lock);
}

void short_received(struct slot *slot, const struct packet_message *m, size_t header)
{
	struct conn *c = slot->conn;
	struct ripc_service *s = service_pumped(slot->r, c, m->to);
	uint8_t *at = slot->bytes + (c ? 0 : GRH_BYTES) + header;
	struct received *copy = s && is_crowded(slot) ? copy_of(at, bytes_of(m)) : NULL;
	struct received *got = copy ? copy : &slot->message;

	if (!s) {
		drop(slot, m);
		return;
	}
	fill_in(got, m, copy ? (uint8_t *)(copy + 1) : at);
	if (m->returns_count)
		take_targets(c, m);
	if (service_push_pumped(s, got, c)) {
		COUNT_LOCKED(slot->r->counters.short_pumped);
		if (c && service_is_full(s, 0))
			hold_ask(c, s, m->from);
		if (copy && c)
			conn_repost(slot, true);
		else if (copy)
			device_ud_repost(slot);
	} else {
		free(copy);
		drop(slot, m);
	}
}
