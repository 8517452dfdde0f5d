/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the engines of connections (rc/, iwarp/) have in common: the operations of a send queue and
 * their flags, the ring of work entries, what a call completes, and what the caller has to do for a
 * request that has arrived.
 */
#ifndef ENGINE_WORK_H
#define ENGINE_WORK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum work_op {
	WORK_SEND,
	WORK_WRITE,
	WORK_READ,
	WORK_COMPARE_SWAP,
	WORK_FETCH_ADD,
	WORK_FLUSH,       /* annex A19 of the InfiniBand specification */
	WORK_OPS,
};

/* Flags of entries. The bits below are free for flags of packets. */
enum work_flags {
	WORK_IMM = 1 << 3,
	WORK_INVALIDATE = 1 << 4,
	WORK_SOLICITED = 1 << 5,
	WORK_FENCE = 1 << 6,
	WORK_WORD = 1 << 7, /* a WRITE of 8 bytes at once (ATOMIC WRITE, annex A19) */
};

/* The ring of work entries: entry i is at `entries` + `stride` * (i & `mask`) bytes. */
struct work_ring {
	void *entries;
	uint32_t stride, mask;
};

static inline void *work_entry(const struct work_ring *ring, uint32_t index)
{
	return (char *)ring->entries + (uint64_t)(index & ring->mask) * ring->stride;
}

/* The result of a call for the work entries: those below `upto` are complete. If `status`
 * is not IBV_WC_SUCCESS, the entry at `upto` has failed with it, and the queue pair
 * has to go to the error state. */
struct work_done {
	uint32_t upto;
	enum ibv_wc_status status;
};

/* What the caller has to do for a request that has arrived; bits. The engine says where. */
enum work_need {
	WORK_NEED_RECEIVE = 1 << 0, /* take a receive; the length of a SEND is unknown */
	WORK_NEED_PLACE = 1 << 1,   /* copy the payload into the receive (SEND), or check the
				     * key and copy to memory (WRITE) */
	WORK_NEED_READ = 1 << 2,    /* check the key for reading */
	WORK_NEED_ATOMIC = 1 << 3,  /* carry it out, on 8 bytes */
	WORK_NEED_INVALIDATE = 1 << 4, /* a key, after the copy */
	WORK_NEED_COMPLETE = 1 << 5,   /* complete the receive */
	WORK_NEED_FLUSH = 1 << 6,      /* check the key, make earlier WRITEs visible */
};

#endif
