/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of services elsewhere: a table with a bound, from which the one that was
 * not used for the longest time goes. Not thread safe, takes the time from who calls.
 */
#ifndef RIPC_KNOWN_H
#define RIPC_KNOWN_H

#include "ripc/wire/packet.h"
#include "util/list.h"

#define KNOWN_MAX 4096
#define KNOWN_BUCKETS 1024
/* So long after an answer nothing but another answer says that a service has moved: what
 * the old instance still had on its way comes late. */
#define KNOWN_FRESH_NS UINT64_C(500000000)

enum known_how {
	KNOWN_ANSWERED,  /* it was asked for, and this is the answer */
	KNOWN_ASKED,     /* it has asked something itself */
	KNOWN_ANNOUNCED, /* it says where it is; not remembered if nobody here cared so far */
};

struct known_service {
	struct list bucket, age; /* oldest first */
	uint32_t id;
	char name[RIPC_NAME_MAX + 1]; /* "": not asked for by name */
	struct packet_where where;
	bool left;            /* it is not there any more, and where it will be is not known */
	uint64_t answered_ns; /* 0: never */
};

struct known {
	struct list buckets[KNOWN_BUCKETS], age;
	unsigned count;
};

void known_init(struct known *k);
void known_free(struct known *k);
struct known_service *known_find(struct known *k, uint32_t id);
struct known_service *known_find_name(struct known *k, const char *name);
/* Remembers; the instance where it was known before, if it is another one, else 0. `name`
 * "": not told. Without memory nothing is remembered. */
uint64_t known_learn(struct known *k, enum known_how how, uint32_t id, const char *name,
		     const struct packet_where *where, uint64_t now_ns);
/* The service has left the instance. It is not found any more, but when it comes up
 * elsewhere, it has moved. */
void known_leave(struct known *k, uint64_t instance, uint32_t id);
/* All services of an instance, as if they had never been known. */
void known_forget(struct known *k, uint64_t instance);

#endif
