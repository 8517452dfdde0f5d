/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits what one client holds of the connections and the memory that all share, so that clients
 * that take no answers do not shut out the others. A client is told from others by its token, its
 * user on this host, its address or, with IPv6, its /64 network. Clients are numbered by a hash:
 * two with the same number count as one. See service.h.
 */
#include <string.h>

#include "gateway/http/service.h"
#include "util/container_of.h"
#include "util/prng.h"

#define BUCKETS 512

uint32_t http_share_client(struct http_server *s, const struct http_peer *p)
{
	struct prng h = { s->hash_seed };
	size_t len = p->is_local || p->token ? 0 : http_peer_is_ipv4(p) ? 16 : 8;

	for (size_t i = 0; i < len; i++)
		h.state = prng_next(&h) ^ p->address[i];
	if (p->has_owner)
		h.state = prng_next(&h) ^ p->owner.uid ^ UINT64_C(1) << 32;
	if (p->token)
		h.state = prng_next(&h) ^ p->token ^ UINT64_C(1) << 33;
	return (uint32_t)(prng_next(&h) % BUCKETS);
}

/* The rank in which a connection may be ended for another one, highest first: 3, its client has
 * shown no right to anything; 2, it is idle; 1, it sends a body or takes an answer. 0: it stays. */
static unsigned expendable(const struct http_conn *c)
{
	switch (c->state) {
	case HTTP_IDLE:
	case HTTP_LEAVING:
		return c->trusted ? 2 : 3;
	case HTTP_BODY:
	case HTTP_ANSWERING:
		return c->trusted ? 1 : 3;
	default:
		return 0;
	}
}

bool http_share_make_room(struct http_server *s)
{
	struct http_conn *found = NULL;
	unsigned counts[BUCKETS] = { 0 };

	list_for_each(c, &s->conns, struct http_conn, entry)
		counts[c->client]++;
	/* In order: least recently used first. */
	list_for_each(c, &s->conns, struct http_conn, entry) {
		unsigned mine = counts[c->client], worst = found ? counts[found->client] : 0;

		if (expendable(c) && (mine > worst || (mine == worst &&
						       expendable(c) > expendable(found))))
			found = c;
	}
	if (found)
		http_conn_close(found);
	return found;
}

bool http_share_allows(const struct http_conn *c, size_t more)
{
	const struct http_server *s = c->server;
	size_t held = 0;

	if (s->bytes + more <= HTTP_BYTES_MAX / 2)
		return true;
	if (s->bytes + more > HTTP_BYTES_MAX)
		return false;
	list_for_each(other, (struct list *)&s->conns, struct http_conn, entry)
		if (other->client == c->client)
			held += other->body_size + (other->text ? other->text_len : 0);
	return held + more <= HTTP_BYTES_MAX / 2;
}
