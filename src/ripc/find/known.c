/* SPDX-License-Identifier: BSD-2-Clause */
#include "ripc/find/known.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct list *bucket_of(struct known *k, uint32_t id)
{
	return &k->buckets[(id * UINT32_C(2654435769)) >> 22];
}

static_assert(KNOWN_BUCKETS == 1 << (32 - 22), "the upper bits number the buckets");

void known_init(struct known *k)
{
	for (unsigned i = 0; i < KNOWN_BUCKETS; i++)
		list_init(&k->buckets[i]);
	list_init(&k->age);
	k->count = 0;
}

static void drop(struct known *k, struct known_service *s)
{
	list_remove(&s->bucket);
	list_remove(&s->age);
	k->count--;
	free(s);
}

void known_free(struct known *k)
{
	list_for_each_safe(s, &k->age, struct known_service, age)
		drop(k, s);
}

static void touch(struct known *k, struct known_service *s)
{
	list_remove(&s->age);
	list_push(&k->age, &s->age);
}

/* Also one that has left. */
static struct known_service *entry(struct known *k, uint32_t id)
{
	list_for_each(s, bucket_of(k, id), struct known_service, bucket)
		if (s->id == id) {
			touch(k, s);
			return s;
		}
	return NULL;
}

struct known_service *known_find(struct known *k, uint32_t id)
{
	struct known_service *s = entry(k, id);

	return s && !s->left ? s : NULL;
}

struct known_service *known_find_name(struct known *k, const char *name)
{
	list_for_each(s, &k->age, struct known_service, age)
		if (!s->left && !strcmp(s->name, name)) {
			touch(k, s);
			return s;
		}
	return NULL;
}

static struct known_service *add(struct known *k, uint32_t id)
{
	struct known_service *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	if (k->count >= KNOWN_MAX)
		drop(k, list_entry(k->age.next, struct known_service, age));
	s->id = id;
	list_push(bucket_of(k, id), &s->bucket);
	list_push(&k->age, &s->age);
	k->count++;
	return s;
}

/* A name is of one service: another one that had it has it no more. */
static void name_set(struct known *k, struct known_service *s, const char *name)
{
	struct known_service *other = known_find_name(k, name);

	if (other)
		other->name[0] = 0;
	memcpy(s->name, name, strlen(name) + 1);
}

uint64_t known_learn(struct known *k, enum known_how how, uint32_t id, const char *name,
		     const struct packet_where *where, uint64_t now_ns)
{
	struct known_service *s = entry(k, id);
	uint64_t old = 0;

	if (!s) {
		if (how != KNOWN_ANNOUNCED)
			s = add(k, id);
		if (!s)
			return 0;
	} else if (s->where.instance != where->instance) {
		if (how != KNOWN_ANSWERED && !s->left && s->answered_ns &&
		    now_ns - s->answered_ns < KNOWN_FRESH_NS)
			return 0;
		old = s->where.instance;
		s->answered_ns = 0;
	}
	s->where = *where;
	s->left = false;
	if (how == KNOWN_ANSWERED)
		s->answered_ns = now_ns;
	if (name[0])
		name_set(k, s, name);
	return old;
}

void known_leave(struct known *k, uint64_t instance, uint32_t id)
{
	struct known_service *s = entry(k, id);

	if (s && s->where.instance == instance)
		s->left = true;
}

void known_forget(struct known *k, uint64_t instance)
{
	list_for_each_safe(s, &k->age, struct known_service, age)
		if (s->where.instance == instance)
			drop(k, s);
}
