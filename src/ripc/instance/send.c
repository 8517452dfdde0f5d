/* SPDX-License-Identifier: BSD-2-Clause */
/* What sending of short and of long messages has in common. */
#include <errno.h>

#include "ripc/instance/instance.h"

/* Connections, one after the other, that end before there is room on them. */
#define BREAKS_MAX 8

int send_check(struct ripc_service *s, const struct ripc_item *items, unsigned count,
	       const struct ripc_item *returns, unsigned returns_count)
{
	if (!s)
		return ripc_fail(-EINVAL, "no service");
	if (count > RIPC_ITEMS_MAX || returns_count > RIPC_RETURNS_MAX)
		return ripc_fail(-EINVAL, "a message has at most %d items and %d return buffers",
				 RIPC_ITEMS_MAX, RIPC_RETURNS_MAX);
	if ((count && !items) || (returns_count && !returns))
		return ripc_fail(-EINVAL, "a count without its array");
	for (unsigned i = 0; i < count; i++)
		if (items[i].bytes && !items[i].data)
			return ripc_fail(-EINVAL, "item %u has bytes and no address", i);
	for (unsigned i = 0; i < returns_count; i++)
		if (!returns[i].data || !returns[i].bytes)
			return ripc_fail(-EINVAL, "return buffer %u has no address or no bytes",
					 i);
	return 0;
}

static int lock_peer(struct ripc_service *s, uint32_t to, struct peer **out)
{
	struct ripc *r = s->r;
	int ret = -EHOSTUNREACH;

	for (unsigned i = 0; i < 2; i++) {
		ret = peer_of_service(r, s->id, to, out);
		if (ret)
			return ret;
		ret = peer_lock_connected(*out);
		if (!ret)
			return 0;
		/* It may have moved. */
		routes_forget(r, to, NULL);
		resolver_forget(r->resolver, (*out)->instance);
		peer_put(*out);
	}
	return ret;
}

struct room {
	struct peer *peer;
	unsigned wrs;
	bool credit;
	uint32_t to;
};

bool send_has_room(const struct peer *p, unsigned wrs, bool credit, uint32_t to)
{
	const struct conn *c = p->conn;

	return (!credit || conn_can_send(c)) && conn_has_room(c, wrs) && !held_has(p, to);
}

/* p->lock */
static bool has_room(const struct room *w)
{
	return send_has_room(w->peer, w->wrs, w->credit, w->to);
}

static bool is_room_or_down(void *arg)
{
	const struct room *w = arg;
	bool may;

	pthread_mutex_lock(&w->peer->lock);
	may = w->peer->state != PEER_UP || has_room(w);
	pthread_mutex_unlock(&w->peer->lock);
	return may;
}

static int wait_room(struct peer *p, unsigned wrs, bool credit, uint32_t to)
{
	uint64_t until = now_ns() + p->r->config.c.connect_timeout_ms * UINT64_C(1000000);
	struct room w = { p, wrs, credit, to };

	while (p->state == PEER_UP && !has_room(&w)) {
		int ret;

		p->stuck++; /* so it is not idle */
		pthread_mutex_unlock(&p->lock);
		ret = wait_until(p->r, &p->event, is_room_or_down, &w, until);
		pthread_mutex_lock(&p->lock);
		p->stuck--;
		if (ret)
			return ripc_fail(-EAGAIN, "the receiver has taken no message for %u ms",
					 p->r->config.c.connect_timeout_ms);
	}
	return p->state == PEER_UP ? 0 :
		ripc_fail(-ECONNRESET, "the connection ended while a message waited for room");
}

int send_lock_room(struct ripc_service *s, uint32_t to, unsigned wrs, bool is_short,
		   struct peer **out)
{
	for (unsigned i = 0; i < BREAKS_MAX; i++) {
		int ret = lock_peer(s, to, out);

		if (ret)
			return ret == -ECONNRESET ? -ECONNREFUSED : ret;
		ret = wait_room(*out, wrs, is_short, is_short ? to : 0);
		if (!ret)
			return 0;
		pthread_mutex_unlock(&(*out)->lock);
		peer_put(*out);
		/* Nothing was sent. */
		if (ret != -ECONNRESET)
			return ret;
	}
	return ripc_fail(-ECONNREFUSED, "the peer ends the connection again and again");
}
