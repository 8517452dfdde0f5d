/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a ring: attaching to an object and leaving it (end.c), and what is
 * done for each sample (here). The peer may write anything into the object at any
 * time: dimensions are those that were checked at the beginning, positions are
 * masked, and a length is looked at once.
 */
#ifndef SHMEM_END_H
#define SHMEM_END_H

#include <stdbool.h>

#include "shmem/layout.h"

#define SHMEM_NAME_MAX 240

struct shmem_end {
	int fd;                      /* -1: not attached */
	enum shmem_role role;
	char name[SHMEM_NAME_MAX + 2]; /* with the slash */
	struct shmem_header *header;
	unsigned char *slots;
	size_t map_bytes;
	uint32_t slot_bytes, mask, values;
	uint64_t position;           /* next to read, or to write */
	uint64_t tail;               /* writer: the reader's, as last seen */
	uint64_t seen;               /* shmem_end_peer(), as last looked at */
	uint64_t checked_ns;         /* when its process was last looked for */
};

struct shmem_wish {
	uint32_t slot_count, values, mode;
};

/*
 * Attaches to the object, which is created, taken over from dead processes or
 * found in use. 0 or a negative errno, see busbar_shmem_open(); `why` then has
 * the cause.
 */
int shmem_end_attach(struct shmem_end *e, const char *name,
		     enum shmem_role role, const struct shmem_wish *wish,
		     char *why, size_t why_bytes);
void shmem_end_detach(struct shmem_end *e);

/* The object has no name any more. */
bool shmem_end_is_removed(const struct shmem_end *e);

/* Of the other side: its process, or 0, and above it the generation. */
static inline uint64_t shmem_end_owner(const struct shmem_end *e)
{
	return atomic_load_explicit(&e->header->sides[!e->role].owner,
				    memory_order_acquire);
}

/* The same, 0 when nobody is attached there. */
static inline uint64_t shmem_end_peer(const struct shmem_end *e)
{
	uint64_t owner = shmem_end_owner(e);

	return likely(shmem_owner_pid(owner)) ? owner : 0;
}

/* How many were attached to this side before and with this one. */
static inline uint32_t shmem_end_generation(const struct shmem_end *e)
{
	return shmem_owner_generation(
		atomic_load(&e->header->sides[e->role].owner));
}

/* The same after a look at whether that process still holds its lock. */
uint64_t shmem_end_peer_alive(struct shmem_end *e);

/* Wakes the reader, whether or not it sleeps. Async-signal-safe. */
void shmem_end_wake(struct shmem_end *e);

static inline struct shmem_slot *shmem_end_slot(const struct shmem_end *e,
						uint64_t position)
{
	return (struct shmem_slot *)(void *)(e->slots +
					     (position & e->mask) *
						     (size_t)e->slot_bytes);
}

static inline bool shmem_slot_holds(const struct shmem_slot *s,
				    uint64_t position)
{
	return atomic_load_explicit(&s->tag, memory_order_acquire) ==
	       position + 1;
}

/* Reader: the next sample, NULL when there is none. */
static inline const struct shmem_slot *shmem_end_peek(const struct shmem_end *e)
{
	const struct shmem_slot *s = shmem_end_slot(e, e->position);

	return shmem_slot_holds(s, e->position) ? s : NULL;
}

/* Reader: gives back all slots up to e->position. */
static inline void shmem_end_release(struct shmem_end *e)
{
	atomic_store_explicit(&e->header->tail, e->position,
			      memory_order_release);
}

/* Writer: the next slot to fill, NULL when the ring is full. */
static inline struct shmem_slot *shmem_end_reserve(struct shmem_end *e)
{
	/* A tail beyond our position is no tail, and counts as full. */
	if (unlikely(e->position - e->tail > e->mask)) {
		e->tail = atomic_load_explicit(&e->header->tail,
					       memory_order_acquire);
		if (e->position - e->tail > e->mask)
			return NULL;
	}
	return shmem_end_slot(e, e->position);
}

/* Writer: makes the reserved slot visible. */
static inline void shmem_end_publish(struct shmem_end *e, struct shmem_slot *s)
{
	atomic_store_explicit(&s->tag, ++e->position, memory_order_release);
	atomic_store_explicit(&e->header->head, e->position,
			      memory_order_relaxed);
}

#endif
