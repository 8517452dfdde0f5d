/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that wait for a time: a heap by time, of equal times by arrival. Owns copies.
 * Not thread safe.
 */
#ifndef TRANSPORT_CARRIER_HELD_H
#define TRANSPORT_CARRIER_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/carrier/carrier.h"

struct held_packet {
	uint64_t due_ns, order;
	struct held_packet *next;  /* for lists of who took it out */
	unsigned stage;            /* the owner's; 0 at first */
	size_t bytes;
	struct iovec iov;
	struct carrier_unit unit;  /* one packet; its iov is `iov` */
	uint8_t data[];
};

struct held {
	struct held_packet **heap;
	size_t count, room;
	size_t bytes, bytes_max;   /* 128 a packet besides its own */
	uint64_t order;
};

#define HELD_OVERHEAD 128

/* A copy of `bytes` from offset `at` of the unit, packet number `k` of it; NULL: no
 * memory. Freed by free(). */
struct held_packet *held_copy(const struct carrier_unit *unit, size_t at, size_t bytes,
			      unsigned k);
/* A copy of a packet; NULL: no memory. */
struct held_packet *held_double(const struct held_packet *packet);

void held_init(struct held *h, size_t bytes_max);
/* Frees what it holds. */
void held_destroy(struct held *h);

static inline bool held_has_room(const struct held *h, size_t bytes)
{
	return h->bytes + bytes + HELD_OVERHEAD <= h->bytes_max;
}

/* Takes the packet, to be due at `due_ns`. False: there is no room, and the packet
 * remains the caller's. */
bool held_push(struct held *h, struct held_packet *packet, uint64_t due_ns);
/* One that held_pop() gave out goes back to its place. There is room for it. */
void held_push_back(struct held *h, struct held_packet *packet);
/* The first that is due at `now_ns`; it is the caller's then. NULL: none. */
struct held_packet *held_pop(struct held *h, uint64_t now_ns);

/* All are due now, in the order in which they came. */
void held_release(struct held *h);

/* When the first one is due; UINT64_MAX: none is there. */
static inline uint64_t held_next_ns(const struct held *h)
{
	return h->count ? h->heap[0]->due_ns : UINT64_MAX;
}

#endif
