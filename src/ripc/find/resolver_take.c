/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What comes from the network, of which nothing is believed that was not asked for, but
 * who asks: like in ARP, a question tells where its sender is. Without a secret everyone in
 * the network can say everything; with one only who has it, but old packets can come again,
 * so what they say is good for trying a connection and no more.
 */
#include "ripc/find/resolver_private.h"

#include <errno.h>
#include <string.h>

/* Puts the source in where no address is told. False: the address means nothing here. */
static bool where_complete(struct packet_where *w, const union address *from)
{
	static const uint8_t none[16];

	return memcmp(w->address, none, sizeof(none)) || address_to_bytes(from, w->address);
}

static void moved(struct resolver *r, uint32_t id, uint64_t old)
{
	if (old && r->config.moved)
		r->config.moved(r->config.arg, id, old);
}

/* From the service itself, which was not asked. */
static void learn(struct resolver *r, enum known_how how, uint32_t id, const char *name,
		  const struct packet_where *where)
{
	uint64_t old;

	pthread_mutex_lock(&r->lock);
	if (question_learned(r, id, name, where))
		how = KNOWN_ASKED; /* to be remembered */
	old = known_learn(&r->known, how, id, name, where, resolver_now_ns());
	pthread_mutex_unlock(&r->lock);
	moved(r, id, old);
}

static void conflict(struct resolver *r, uint32_t id, const struct packet_where *other)
{
	if (r->config.conflict)
		r->config.conflict(r->config.arg, id, other);
}

static bool has(struct resolver *r, uint32_t id)
{
	return id && r->config.has(r->config.arg, &id, NULL);
}

static bool has_name(struct resolver *r, const char *name, uint32_t *id)
{
	*id = 0;
	return name[0] && r->config.has(r->config.arg, id, name) && *id;
}

static void tell(struct resolver *r, int fd, const union address *to,
		 const struct packet_resolve *question, uint32_t id)
{
	struct packet_resolve p = *question;
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];

	if (!limit_take(&r->limit, to, resolver_now_ns())) {
		count(&r->counters.limited);
		return;
	}
	p.type = PACKET_TELL;
	p.id = id;
	p.lifetime_s = 0;
	p.where = r->config.self;
	count(&r->counters.answered);
	net_send(&r->net, net_answer_fd(&r->net, fd), to, bytes,
		 packet_resolve_encode(&p, &r->config.key, bytes));
}

static void take_ask(struct resolver *r, int fd, const union address *from,
		     struct packet_resolve *p)
{
	uint32_t id = p->id;

	if (p->from && has(r, p->from))
		conflict(r, p->from, &p->where);
	else if (p->from && where_complete(&p->where, from))
		learn(r, KNOWN_ASKED, p->from, "", &p->where);
	if (id ? has(r, id) : has_name(r, p->name, &id))
		tell(r, fd, from, p, id);
}

static void take_claim(struct resolver *r, int fd, const union address *from,
		       struct packet_resolve *p)
{
	uint32_t id = p->id;

	if (has(r, id) || has_name(r, p->name, &id)) {
		where_complete(&p->where, from);
		conflict(r, id, &p->where);
		tell(r, fd, from, p, id);
	} else if (claim_disputed(r, p, &id) && id) {
		tell(r, fd, from, p, id);
	}
}

static void take_tell(struct resolver *r, const union address *from,
		      struct packet_resolve *p)
{
	bool first = false, asked, complete = where_complete(&p->where, from);
	uint64_t old = 0;

	pthread_mutex_lock(&r->lock);
	asked = claim_answered(r, p, from);
	if (!asked && complete)
		asked = question_answered(r, p, from, &first);
	/* At once: who has asked may say next that this is not true any more. */
	if (first)
		old = known_learn(&r->known, KNOWN_ANSWERED, p->id, p->name, &p->where,
				  resolver_now_ns());
	pthread_mutex_unlock(&r->lock);
	if (!asked)
		count(&r->counters.unasked_replies);
	moved(r, p->id, old);
}

/* To everyone: a service has been opened, or closed, at another instance. */
static void take_announcement(struct resolver *r, const union address *from,
			      struct packet_resolve *p)
{
	if (!methods_have(r, METHOD_MULTICAST) && !methods_have(r, METHOD_BROADCAST)) {
		count(&r->counters.unasked_replies); /* nobody here speaks to everyone */
	} else if (!p->lifetime_s) {
		pthread_mutex_lock(&r->lock);
		known_leave(&r->known, p->where.instance, p->id);
		pthread_mutex_unlock(&r->lock);
	} else if (has(r, p->id)) {
		conflict(r, p->id, &p->where);
	} else if (where_complete(&p->where, from)) {
		learn(r, KNOWN_ANNOUNCED, p->id, p->name, &p->where);
	}
}

void resolver_take(struct resolver *r, int fd, const union address *from,
		   const uint8_t *bytes, size_t length)
{
	struct packet_resolve p;
	int ret = packet_resolve_decode(&p, &r->config.key, bytes, length);

	if (ret) {
		count(ret == -EKEYREJECTED ? &r->counters.unauthentic :
					     &r->counters.bad_packets);
		return;
	}
	if (p.type == PACKET_ENTERED) {
		own_entered(r, &p, from);
		return;
	}
	if (p.where.instance == r->config.self.instance)
		return; /* one's own question, which comes back */
	if (p.type == PACKET_TELL) {
		take_tell(r, from, &p);
		return;
	}
	if (p.type == PACKET_ASK)
		take_ask(r, fd, from, &p);
	else if (p.type == PACKET_CLAIM)
		take_claim(r, fd, from, &p);
	else
		take_announcement(r, from, &p);
}
