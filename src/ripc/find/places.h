/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a rendezvous knows: the instances that services have entered. Pure: packets and the
 * time go in, packets come out.
 *
 * A number or name belongs to the instance that entered it first, until it leaves or its
 * lifetime is over. When another one wants it, the owner is asked whether it is still there:
 * it answers, and the other one is refused; or it does not, for PLACES_DOUBT_NS and at least
 * two questions, and is forgotten. So a process that was killed can be started again at
 * once. An instance is known by its number and the socket it speaks from.
 */
#ifndef RIPC_PLACES_H
#define RIPC_PLACES_H

#include "ripc/find/address.h"
#include "ripc/wire/packet.h"
#include "util/list.h"

#define PLACES_LIFETIME_MAX_S 300
#define PLACES_DOUBT_NS UINT64_C(150000000)
#define PLACES_SURE_NS UINT64_C(1000000000) /* so long after an answer it is not asked again */
#define PLACES_OUT_MAX 1

struct places {
	uint64_t instance;     /* of the rendezvous, in its questions */
	uint8_t key[16];       /* random */
	uint64_t drawn;
	unsigned max, count;
	unsigned buckets;      /* a power of two */
	struct list *by_id, *by_name;
};

struct places_out {
	struct packet_resolve packet;
	union address to;
};

/* -ENOMEM. `seed`: 16 random bytes. */
int places_init(struct places *p, unsigned entries_max, const uint8_t seed[16]);
void places_free(struct places *p);
/* What to send because of `packet`: 0 or 1. */
unsigned places_take(struct places *p, uint64_t now_ns, const union address *from,
		     const struct packet_resolve *packet, struct places_out out[PLACES_OUT_MAX]);
/* Forgets those whose time is over. */
void places_expire(struct places *p, uint64_t now_ns);

#endif
