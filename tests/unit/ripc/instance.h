/* SPDX-License-Identifier: BSD-2-Clause */
/* A resolver with services that a test gives it, and what it was told. */
#ifndef TESTS_RIPC_INSTANCE_H
#define TESTS_RIPC_INSTANCE_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "ripc/find/address.h"
#include "ripc/find/resolver.h"

#define LIMIT_MS 10000 /* for what comes at once where nothing is wrong */

struct instance {
	struct resolver *resolver;
	uint64_t number;
	pthread_mutex_t lock;
	uint32_t ids[8];
	char names[8][RIPC_NAME_MAX + 1];
	unsigned count;
	unsigned moved, conflicts;
	uint32_t moved_id;
	uint64_t moved_from, conflict_with;
};

static bool instance_has(void *arg, uint32_t *id, const char *name)
{
	struct instance *i = arg;
	bool found = false;

	pthread_mutex_lock(&i->lock);
	for (unsigned k = 0; k < i->count && !found; k++) {
		found = *id ? i->ids[k] == *id : !strcmp(i->names[k], name);
		if (found)
			*id = i->ids[k];
	}
	pthread_mutex_unlock(&i->lock);
	return found;
}

static void instance_moved(void *arg, uint32_t id, uint64_t old)
{
	struct instance *i = arg;

	pthread_mutex_lock(&i->lock);
	i->moved++;
	i->moved_id = id;
	i->moved_from = old;
	pthread_mutex_unlock(&i->lock);
}

static void instance_conflict(void *arg, uint32_t id, const struct packet_where *other)
{
	struct instance *i = arg;

	pthread_mutex_lock(&i->lock);
	i->conflicts++;
	i->conflict_with = other->instance;
	pthread_mutex_unlock(&i->lock);
}

static inline void instance_open_key(struct instance *i, uint64_t number, const char *how,
				     uint16_t port, const char *secret)
{
	struct resolver_config config = { .how = how, .port = port,
		.self = { .instance = number, .port = (uint16_t)(1000 + number),
			  .ud_qpn = (uint32_t)number },
		.has = instance_has, .moved = instance_moved, .conflict = instance_conflict,
		.arg = i };
	const char *why;
	int ret;

	*i = (struct instance){ .number = number };
	pthread_mutex_init(&i->lock, NULL);
	packet_key_make(&config.key, secret, strlen(secret));
	ret = resolver_open(&i->resolver, &config, &why);
	if (ret)
		print_message("%s\n", why);
	assert_int_equal(ret, 0);
}

static inline void instance_open(struct instance *i, uint64_t number, const char *how,
				 uint16_t port)
{
	instance_open_key(i, number, how, port, "");
}

static inline void instance_close(struct instance *i)
{
	resolver_close(i->resolver);
	pthread_mutex_destroy(&i->lock);
}

static inline void instance_serve(struct instance *i, uint32_t id, const char *name)
{
	pthread_mutex_lock(&i->lock);
	i->ids[i->count] = id;
	snprintf(i->names[i->count], sizeof(i->names[0]), "%s", name);
	i->count++;
	pthread_mutex_unlock(&i->lock);
	resolver_enter(i->resolver, id, name);
}

/* The last one. */
static inline void instance_end(struct instance *i)
{
	uint32_t id;

	pthread_mutex_lock(&i->lock);
	id = i->ids[--i->count];
	pthread_mutex_unlock(&i->lock);
	resolver_leave(i->resolver, id, i->names[i->count]);
}

static inline unsigned instance_moves(struct instance *i)
{
	unsigned moved;

	pthread_mutex_lock(&i->lock);
	moved = i->moved;
	pthread_mutex_unlock(&i->lock);
	return moved;
}

static inline unsigned instance_conflicts(struct instance *i)
{
	unsigned conflicts;

	pthread_mutex_lock(&i->lock);
	conflicts = i->conflicts;
	pthread_mutex_unlock(&i->lock);
	return conflicts;
}

static inline void sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ ms / 1000, (long)(ms % 1000) * 1000000 }, NULL);
}

/* Until it holds; fails after LIMIT_MS. */
#define wait_until(condition)                                  \
	do {                                                   \
		unsigned waited = 0;                           \
		while (!(condition) && waited++ < LIMIT_MS)    \
			sleep_ms(1);                           \
		assert_true(condition);                        \
	} while (0)

static inline void expect_at(struct instance *asking, uint32_t id, const struct instance *at)
{
	struct packet_where where;

	assert_int_equal(resolver_find(asking->resolver, 0, id, LIMIT_MS, &where), 0);
	assert_int_equal(where.instance, at->number);
	assert_int_equal(where.port, 1000 + at->number);
	assert_int_equal(where.ud_qpn, at->number);
}

static inline void expect_nowhere(struct instance *asking, uint32_t id)
{
	struct packet_where where;

	assert_int_equal(resolver_find(asking->resolver, 0, id, 60, &where), -EHOSTUNREACH);
}

#endif
