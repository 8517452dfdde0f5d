/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What lies in a shared memory object: a page that describes it, then the slots
 * of a ring with one writer and one reader. All in host byte order.
 *
 * A slot is published by its tag, its position in the endless sequence plus
 * one, stored last: what a killed writer left half-written has the tag of the lap
 * before and is never seen. The reader looks at the slot alone, so a sample that
 * is waited for costs the transfer of its own cache lines and no other.
 *
 * Who is attached is known by locks on bytes of the object (F_OFD_SETLK), which
 * the kernel drops with the process that held them. `owner` says the same in
 * memory, for the data path; when it names a dead process whoever notices it
 * clears it. The locks decide.
 */
#ifndef SHMEM_LAYOUT_H
#define SHMEM_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "util/container_of.h"

#define SHMEM_MAGIC UINT64_C(0x31304d4853425342) /* "BSBSHM01" */
#define SHMEM_VERSION 1
#define SHMEM_HEADER_BYTES 4096
#define SHMEM_SLOTS_DEFAULT 512
#define SHMEM_SLOTS_MAX (1u << 20)
#define SHMEM_VALUES_DEFAULT 64
#define SHMEM_VALUES_MAX 65536

enum shmem_role { SHMEM_READER, SHMEM_WRITER };

/* Locked bytes of the object. */
enum shmem_lock { SHMEM_LOCK_READER, SHMEM_LOCK_WRITER, SHMEM_LOCK_SETUP };

struct shmem_side {
	/* Process id, 0 when nobody is attached; above it a generation, which
	 * changes with every attachment. */
	_Atomic uint64_t owner;
	_Atomic uint32_t mode;   /* enum busbar_shmem_mode; the reader's counts */
};

struct shmem_header {
	/* Written once, by who creates it; the magic number last. */
	_Atomic uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint32_t slot_bytes;
	uint32_t slot_count;     /* a power of two */
	uint32_t values;         /* at most in a sample */
	cache_aligned struct shmem_side sides[2]; /* by role; seldom written */
	/* Position that the reader takes next, by the reader. */
	cache_aligned _Atomic uint64_t tail;
	/* Position that is written next, by the writer; for who attaches. */
	cache_aligned _Atomic uint64_t head;
	/* The reader sleeps on `wake` while `waiting` is set. */
	cache_aligned _Atomic uint32_t wake;
	_Atomic uint32_t waiting;
};

struct shmem_slot {
	_Atomic uint64_t tag;    /* position + 1, written last */
	uint64_t sequence;
	int64_t origin_sec, origin_nsec;
	int64_t received_sec, received_nsec;
	uint32_t flags;          /* enum busbar_shmem_flags */
	uint32_t length;
	uint64_t values[];
};

_Static_assert(sizeof(struct shmem_header) <= SHMEM_HEADER_BYTES, "one page");
_Static_assert(sizeof(struct shmem_slot) == 56, "no padding");
_Static_assert(offsetof(struct shmem_header, sides) == CACHE_LINE &&
		       offsetof(struct shmem_header, tail) == 2 * CACHE_LINE &&
		       offsetof(struct shmem_header, head) == 3 * CACHE_LINE &&
		       offsetof(struct shmem_header, wake) == 4 * CACHE_LINE,
	       "what different processes write lies in different lines");

/* Whole cache lines: neighbours do not share one. */
static inline uint32_t shmem_slot_bytes(uint32_t values)
{
	return (uint32_t)(sizeof(struct shmem_slot) + 8 * values + CACHE_LINE -
			  1) & ~(uint32_t)(CACHE_LINE - 1);
}

static inline uint64_t shmem_object_bytes(uint32_t slot_bytes, uint32_t slots)
{
	return SHMEM_HEADER_BYTES + (uint64_t)slot_bytes * slots;
}

static inline uint32_t shmem_owner_pid(uint64_t owner)
{
	return (uint32_t)owner;
}

static inline uint32_t shmem_owner_generation(uint64_t owner)
{
	return (uint32_t)(owner >> 32);
}

#endif
