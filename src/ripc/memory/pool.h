/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory of an instance: buffers that are kept and used again, and memory of the
 * program's own. Registering costs far more than a message, so in steady state there is
 * none: classes of sizes by powers of two and the halves between them, kept up to
 * bytes_max, the longest unused go first.
 *
 * A source can be read by peers and not written, a sink written and not read: two
 * registrations of the same memory, each made when it is first needed, and a third one
 * without remote rights if the memory is used locally before. On iWARP the sink
 * of a READ needs remote write access too, so local sinks of READs use the sink's.
 *
 * From 64 KiB on a buffer is registered by itself, below that in slabs; where they lie is in
 * pool_map.c. All functions: any thread. Allocating and freeing the same size again: no system call, no registration.
 */
#ifndef RIPC_POOL_H
#define RIPC_POOL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;

enum pool_access {
	POOL_LOCAL,  /* lkey for sending and receiving */
	POOL_SOURCE, /* rkey with which peers read */
	POOL_SINK,   /* rkey with which peers write; its lkey for READs into it */
	POOL_WINDOW, /* mr to bind windows to with which peers write */
};

/* The keys of a range; valid until pool_put(). */
struct pool_ref {
	struct pool_region *region;
	uint32_t lkey, rkey;
	struct ibv_mr *mr; /* they are of. Buffers below 64 KiB share it with others: a
			    * peer that has the rkey reaches these, too. Of POOL_WINDOW:
			    * keep the reference as long as a window is bound to it */
};

struct pool_counters {
	uint64_t registrations, registered_bytes, kept_bytes;
};

int pool_open(struct pool **out, struct ibv_pd *pd, size_t kept_bytes_max);
/* All memory goes; nothing of it may be in use. */
void pool_close(struct pool *p);

/* At most 1.5 times the size is used, below 8 KiB at most twice. 0 bytes are allowed and
 * make a buffer. NULL with errno: ENOMEM. */
void *pool_alloc(struct pool *p, size_t bytes);
/* -EINVAL: not a buffer of pool_alloc() or not any more. While references are held it is
 * kept back, and joins the pool with the last pool_put(). */
int pool_free(struct pool *p, void *any);
/* -EEXIST: it overlaps a registration or a buffer; -EINVAL: no bytes or no memory can lie
 * there; -ENOMEM. Whether the memory exists the adapter finds out at the first use. */
int pool_register(struct pool *p, void *memory, size_t bytes);
/* `memory` as it was registered, else -EINVAL. -EBUSY: references are held, or a window is
 * bound to it. */
int pool_unregister(struct pool *p, void *memory);
/* The longest unused go first; slabs only as a whole. */
void pool_trim(struct pool *p, size_t keep_bytes);
/* Why the calling thread got ENOMEM the last time: a sentence without a full stop, that
 * names the limit of locked memory where there is one. Never NULL. */
const char *pool_why(void);

/* A reference to [at, at + bytes) when all of it lies in one buffer or registration, with
 * the key for `access`; `at` of 0 bytes inside of one, too. -ENOENT: it does not; -ENOMEM (registering failed). A short search,
 * no system call but for the first use of `access` of a region. */
int pool_get(struct pool *p, const void *at, size_t bytes, enum pool_access access,
	     struct pool_ref *out);
void pool_put(struct pool *p, const struct pool_ref *ref);

void pool_counters(struct pool *p, struct pool_counters *out);

#endif
