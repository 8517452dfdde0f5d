/* SPDX-License-Identifier: BSD-2-Clause */
#include "ripc/find/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ripc/wire/siphash.h"

#define SECOND_NS UINT64_C(1000000000)
#define ASKED_MIN 2
#define ASK_AGAIN_NS UINT64_C(30000000)   /* between questions that count */
#define DOUBT_OLD_NS (2 * SECOND_NS)      /* a doubt that nobody has followed up */

struct place {
	struct list id_link, name_link;
	uint32_t id;
	char name[RIPC_NAME_MAX + 1];
	struct packet_where where;
	union address source;
	uint64_t expires_ns;
	uint64_t sure_ns;         /* it has answered; 0: never */
	/* Since when it is doubted, 0: not; the questions to it, and who wants to know. */
	uint64_t doubted_ns, asked_ns, nonce;
	unsigned asked;
	struct packet_resolve asker;
	union address asker_source;
};

/* Keyed, so that nobody can choose what falls together. */
static uint64_t hash(const struct places *p, const void *bytes, size_t length)
{
	uint8_t out[SIPHASH_BYTES];
	uint64_t number;

	siphash(p->key, bytes, length, out);
	memcpy(&number, out, sizeof(number));
	return number;
}

static struct list *bucket_id(struct places *p, uint32_t id)
{
	return &p->by_id[hash(p, &id, sizeof(id)) & (p->buckets - 1)];
}

static struct list *bucket_name(struct places *p, const char *name)
{
	return &p->by_name[hash(p, name, strlen(name)) & (p->buckets - 1)];
}

static uint64_t draw(struct places *p)
{
	const uint64_t words[2] = { UINT64_C(0x6e6f6e6365), p->drawn++ };

	return hash(p, words, sizeof(words)) | 1;
}

int places_init(struct places *p, unsigned entries_max, const uint8_t seed[16])
{
	*p = (struct places){ .max = entries_max, .buckets = 64 };
	memcpy(p->key, seed, sizeof(p->key));
	while (p->buckets < entries_max && p->buckets < 1U << 20)
		p->buckets *= 2;
	p->by_id = calloc(p->buckets, sizeof(*p->by_id));
	p->by_name = calloc(p->buckets, sizeof(*p->by_name));
	if (!p->by_id || !p->by_name) {
		free(p->by_id);
		free(p->by_name);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < p->buckets; i++) {
		list_init(&p->by_id[i]);
		list_init(&p->by_name[i]);
	}
	p->instance = draw(p);
	return 0;
}

static void drop(struct places *p, struct place *e)
{
	list_remove(&e->id_link);
	list_remove(&e->name_link);
	p->count--;
	free(e);
}

void places_expire(struct places *p, uint64_t now_ns)
{
	for (unsigned i = 0; i < p->buckets; i++)
		list_for_each_safe(e, &p->by_id[i], struct place, id_link)
			if (now_ns >= e->expires_ns)
				drop(p, e);
}

void places_free(struct places *p)
{
	places_expire(p, UINT64_MAX);
	free(p->by_id);
	free(p->by_name);
}

static struct place *find_id(struct places *p, uint32_t id, uint64_t now_ns)
{
	list_for_each(e, bucket_id(p, id), struct place, id_link)
		if (e->id == id && now_ns < e->expires_ns)
			return e;
	return NULL;
}

static struct place *find_name(struct places *p, const char *name, uint64_t now_ns)
{
	if (!name[0])
		return NULL;
	list_for_each(e, bucket_name(p, name), struct place, name_link)
		if (!strcmp(e->name, name) && now_ns < e->expires_ns)
			return e;
	return NULL;
}

static bool is_owner(const struct place *e, const struct packet_resolve *q,
		     const union address *from)
{
	return e->where.instance == q->where.instance &&
	       address_same(&e->source, from, true);
}

/* Who has the number or the name and is somebody else. */
static struct place *in_the_way(struct places *p, const struct packet_resolve *q,
				const union address *from, uint64_t now_ns)
{
	struct place *e = find_id(p, q->id, now_ns);

	if (e && !is_owner(e, q, from))
		return e;
	e = find_name(p, q->name, now_ns);
	/* A service of the same instance that has the name, too, loses it. */
	return e && !is_owner(e, q, from) ? e : NULL;
}

/* What is answered to a question: that somebody has it, for a CLAIM as for an ENTER. */
static unsigned refuse(const struct place *e, const struct packet_resolve *q,
		       const union address *to, struct places_out *out)
{
	out->packet = *q;
	out->packet.type = q->type == PACKET_ENTER ? PACKET_ENTERED : PACKET_TELL;
	if (!q->id)
		out->packet.id = e->id;
	out->packet.lifetime_s = 0;
	out->packet.where = e->where;
	out->to = *to;
	return 1;
}

static unsigned ask_owner(struct places *p, struct place *e, const struct packet_resolve *q,
			  const union address *from, uint64_t now_ns, struct places_out *out)
{
	if (!e->doubted_ns || now_ns - e->asked_ns > DOUBT_OLD_NS) {
		e->doubted_ns = now_ns;
		e->asked = 0;
		e->nonce = draw(p);
	}
	if (!e->asked || now_ns - e->asked_ns >= ASK_AGAIN_NS)
		e->asked++;
	e->asked_ns = now_ns;
	e->asker = *q;
	e->asker_source = *from;
	out->packet = (struct packet_resolve){ .type = PACKET_ASK, .nonce = e->nonce,
		.id = e->id, .where = { .instance = p->instance } };
	out->to = e->source;
	return 1;
}

static bool is_gone(const struct place *e, uint64_t now_ns)
{
	return e->doubted_ns && e->asked >= ASKED_MIN &&
	       now_ns - e->asked_ns <= DOUBT_OLD_NS &&
	       now_ns - e->asked_ns >= ASK_AGAIN_NS &&
	       now_ns - e->doubted_ns >= PLACES_DOUBT_NS;
}

/* 0: `e` is out of the way. */
static unsigned dispute(struct places *p, struct place *e, const struct packet_resolve *q,
			const union address *from, uint64_t now_ns, struct places_out *out)
{
	if (e->sure_ns && now_ns - e->sure_ns < PLACES_SURE_NS)
		return refuse(e, q, from, out);
	if (!is_gone(e, now_ns))
		return ask_owner(p, e, q, from, now_ns, out);
	drop(p, e);
	return 0;
}

static struct place *entry_for(struct places *p, uint32_t id, uint64_t now_ns)
{
	struct place *e = find_id(p, id, now_ns);

	if (e)
		return e;
	if (p->count >= p->max)
		places_expire(p, now_ns);
	e = p->count < p->max ? calloc(1, sizeof(*e)) : NULL;
	if (!e)
		return NULL;
	e->id = id;
	list_init(&e->name_link);
	list_push(bucket_id(p, id), &e->id_link);
	p->count++;
	return e;
}

static void fill(struct places *p, struct place *e, const struct packet_resolve *q,
		 const union address *from, uint64_t now_ns, uint16_t lifetime_s)
{
	static const uint8_t none[16];
	struct place *namesake = find_name(p, q->name, now_ns);

	if (namesake && namesake != e) {
		namesake->name[0] = 0;
		list_remove(&namesake->name_link);
	}
	list_remove(&e->name_link);
	memcpy(e->name, q->name, sizeof(e->name));
	if (e->name[0])
		list_push(bucket_name(p, e->name), &e->name_link);
	e->where = q->where;
	if (!memcmp(e->where.address, none, sizeof(none)))
		address_to_bytes(from, e->where.address);
	e->source = *from;
	e->expires_ns = now_ns + lifetime_s * SECOND_NS;
	e->doubted_ns = 0;
}

static unsigned take_enter(struct places *p, uint64_t now_ns, const union address *from,
			   const struct packet_resolve *q, struct places_out *out)
{
	const uint16_t lifetime_s = q->lifetime_s < PLACES_LIFETIME_MAX_S ?
				    q->lifetime_s : PLACES_LIFETIME_MAX_S;
	struct place *e;

	while ((e = in_the_way(p, q, from, now_ns)))
		if (dispute(p, e, q, from, now_ns, out))
			return 1;
	/* The answer to a farewell, and when there is no room, is 0 with the sender itself. */
	*out = (struct places_out){ .packet = *q, .to = *from };
	out->packet.type = PACKET_ENTERED;
	out->packet.lifetime_s = 0;
	e = lifetime_s ? entry_for(p, q->id, now_ns) : find_id(p, q->id, now_ns);
	if (e && lifetime_s) {
		fill(p, e, q, from, now_ns, lifetime_s);
		out->packet.lifetime_s = lifetime_s;
	} else if (e) {
		drop(p, e);
	}
	return 1;
}

/* The owner is there: who wanted what it has is told so. */
static unsigned take_tell(struct places *p, uint64_t now_ns, const union address *from,
			  const struct packet_resolve *q, struct places_out *out)
{
	struct place *e = find_id(p, q->id, now_ns);

	if (!e || !e->doubted_ns || e->nonce != q->nonce || !is_owner(e, q, from))
		return 0;
	e->doubted_ns = 0;
	e->sure_ns = now_ns;
	return refuse(e, &e->asker, &e->asker_source, out);
}

static unsigned take_ask(struct places *p, uint64_t now_ns, const union address *from,
			 const struct packet_resolve *q, struct places_out *out)
{
	struct place *e = q->id ? find_id(p, q->id, now_ns) : find_name(p, q->name, now_ns);

	if (!e)
		return 0;
	*out = (struct places_out){ .packet = *q, .to = *from };
	out->packet.type = PACKET_TELL;
	out->packet.id = e->id;
	out->packet.where = e->where;
	out->packet.lifetime_s = (uint16_t)((e->expires_ns - now_ns) / SECOND_NS);
	return 1;
}

unsigned places_take(struct places *p, uint64_t now_ns, const union address *from,
		     const struct packet_resolve *packet, struct places_out out[PLACES_OUT_MAX])
{
	struct place *e;

	switch (packet->type) {
	case PACKET_ASK:
		return take_ask(p, now_ns, from, packet, out);
	case PACKET_CLAIM:
		e = in_the_way(p, packet, from, now_ns);
		return e ? dispute(p, e, packet, from, now_ns, out) : 0;
	case PACKET_ENTER:
		return take_enter(p, now_ns, from, packet, out);
	case PACKET_TELL:
		return take_tell(p, now_ns, from, packet, out);
	default:
		return 0;
	}
}
