/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a number or name is free. Of two instances that claim the same at the same time,
 * the one with the lower instance number gets it; who has finished is not disturbed.
 */
#include "ripc/find/resolver_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HELD_NS UINT64_C(1000000000)
#define ASKED_TIMES 3

static void claim_free(struct claim *c)
{
	list_remove(&c->link);
	pthread_cond_destroy(&c->wake);
	free(c);
}

static struct claim *claim_new(struct resolver *r, uint32_t id, const char *name)
{
	struct claim *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->nonce = resolver_draw(r);
	c->id = id;
	memcpy(c->name, name, strlen(name) + 1);
	pthread_cond_init(&c->wake, NULL);
	list_push(&r->claims, &c->link);
	return c;
}

/* Asks at the beginning, and after each third of the time. */
static int claim_wait(struct resolver *r, struct claim *c, unsigned claim_ms)
{
	struct packet_resolve p = { .type = PACKET_CLAIM, .nonce = c->nonce, .id = c->id,
				    .where = r->config.self };
	const uint64_t begin_ns = resolver_now_ns();

	memcpy(p.name, c->name, sizeof(p.name));
	for (unsigned i = 0; i < ASKED_TIMES && !c->taken && !r->closing; i++) {
		const uint64_t until_ns = begin_ns +
			(i + 1) * (uint64_t)claim_ms * RESOLVER_MS / ASKED_TIMES;

		pthread_mutex_unlock(&r->lock);
		methods_send(r, r->method_count, &p);
		pthread_mutex_lock(&r->lock);
		while (!c->taken && !r->closing && resolver_now_ns() < until_ns)
			resolver_wait(r, &c->wake, until_ns);
	}
	return c->taken ? -EADDRINUSE : r->closing ? -ESHUTDOWN : 0;
}

int resolver_claim(struct resolver *r, uint32_t id, const char *name, unsigned claim_ms)
{
	struct claim *c;
	int ret;

	if (!name)
		name = "";
	if ((!id && !name[0]) ||
	    (name[0] && !packet_name_valid(name, strnlen(name, RIPC_NAME_MAX + 1))))
		return -EINVAL;
	/* Who listens where the file says that this service is, has it. */
	ret = methods_listen(r, id, name);
	if (ret)
		return ret;
	pthread_mutex_lock(&r->lock);
	if (!resolver_begin(r)) {
		pthread_mutex_unlock(&r->lock);
		return -ESHUTDOWN;
	}
	c = claim_new(r, id, name);
	ret = c ? claim_wait(r, c, claim_ms) : -ENOBUFS;
	if (c && !ret) {
		c->held = true;
		c->until_ns = resolver_now_ns() + HELD_NS;
	} else if (c) {
		claim_free(c);
	}
	resolver_end(r);
	pthread_mutex_unlock(&r->lock);
	return ret;
}

static void drop_old(struct resolver *r)
{
	const uint64_t now_ns = resolver_now_ns();

	list_for_each_safe(c, &r->claims, struct claim, link)
		if (c->held && now_ns >= c->until_ns)
			claim_free(c);
}

bool claim_answered(struct resolver *r, const struct packet_resolve *p,
		    const union address *from)
{
	list_for_each(c, &r->claims, struct claim, link) {
		if (c->nonce != p->nonce)
			continue;
		if (!methods_sent_to(r, c->id, c->name, from))
			return false;
		if (!c->held) {
			c->taken = true;
			pthread_cond_signal(&c->wake);
		}
		return true;
	}
	return false;
}

static bool is_same(const struct claim *c, const struct packet_resolve *p)
{
	return (c->id && c->id == p->id) || (c->name[0] && !strcmp(c->name, p->name));
}

bool claim_disputed(struct resolver *r, const struct packet_resolve *p, uint32_t *id)
{
	bool ours = false;

	pthread_mutex_lock(&r->lock);
	drop_old(r);
	list_for_each(c, &r->claims, struct claim, link) {
		if (!is_same(c, p))
			continue;
		if (c->held || r->config.self.instance < p->where.instance) {
			*id = c->id ? c->id : p->id;
			ours = true;
		} else if (!c->taken) {
			c->taken = true;
			pthread_cond_signal(&c->wake);
		}
	}
	pthread_mutex_unlock(&r->lock);
	return ours;
}

/* `id` 0: all of them. */
void claim_entered(struct resolver *r, uint32_t id)
{
	list_for_each_safe(c, &r->claims, struct claim, link)
		if (c->held && (!id || c->id == id))
			claim_free(c);
}
