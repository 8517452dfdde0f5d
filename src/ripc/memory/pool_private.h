/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the pool share. */
#ifndef RIPC_POOL_PRIVATE_H
#define RIPC_POOL_PRIVATE_H

#include <pthread.h>

#include "ripc/memory/pool_span.h"
#include "util/spin.h"

#define POOL_SEEN 64

struct pool_class {
	struct list partial; /* spans with some buffers free, the latest used last */
	struct list whole;   /* with all of them free, likewise */
	unsigned slabs;
};

/*
 * `lock` is for what takes some dozen instructions: finding, taking, giving back. Calls
 * of the system and of the adapter are made without it. Who registers a span has a
 * reference to one of its buffers, so it stays; `registering` is taken before `lock`.
 */
struct pool {
	struct ibv_pd *pd;
	size_t kept_bytes_max;
	int access_always;        /* rights of all registrations */
	bool files;               /* the longest buffers lie in memory files */
	unsigned files_count;     /* `lock` */
	pthread_mutex_t registering; /* one at a time, so none is made twice */
	struct spin lock;         /* of all that follows, and of the spans */
	struct pool_span *root;
	struct pool_span *seen[POOL_SEEN]; /* found last, by address: messages often come from
					    * the same memory */
	struct list idle;         /* spans that are wholly free, the longest first */
	struct pool_class classes[POOL_CLASSES];
	struct list pages;        /* huge ones that long buffers share, the first one first */
	struct pool_counters counters;
};

/* ---- pool.c ---- */

/* Says why the calling thread gets -ENOMEM, for pool_why(). */
void pool_say(const char *what, size_t bytes, int error);

/* ---- pool_map.c; without the lock ---- */

/* For short buffers; NULL: there is no memory. */
void *pool_map_slab(size_t bytes);
/* For one long buffer. */
void *pool_map_long(struct pool *p, size_t bytes, struct pool_place *place);
/* What either has returned. */
void pool_unmap(struct pool *p, void *memory, size_t bytes, const struct pool_place *place);
/* For memory that stays. */
void pool_file_close(struct pool *p, const struct pool_place *place);
/* Does the adapter register memory files (ibv_reg_dmabuf_mr(3))? */
bool pool_files_are_taken(struct ibv_pd *pd);
/* Before the end of the pool. Pages that still have buffers, which the adapter reaches, stay
 * mapped. */
void pool_pages_forget(struct pool *p);

/* ---- pool_keys.c ---- */

/* The registration that serves `access`, or NULL; the lock is held. */
struct ibv_mr *pool_key(const struct pool_span *s, enum pool_access access);
/* Makes it. A reference to one of its buffers is held. 0 or -ENOMEM. */
int pool_key_make(struct pool *p, struct pool_span *s, enum pool_access access,
		  struct ibv_mr **out);
/* De-registers a span that nobody else finds or uses. 0, or -EBUSY: the adapter uses one,
 * as for a window that is bound; it remains. */
int pool_keys_drop(struct pool *p, struct pool_span *s);

#endif
