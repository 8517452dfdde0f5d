/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key table from its owner's side: which entries are taken, by which object,
 * and what is published of them in the shared segment. For the hca only.
 *
 * The tag of a region's key (process.h) changes with each use of the entry; that of
 * a window is the program's choice.
 */
#ifndef HCA_KEY_H
#define HCA_KEY_H

#include <stdint.h>
#include <stdbool.h>

#include "hca/mr.h"
#include "hca/mw.h"
#include "hca/process.h"
#include "hca/public.h"
#include "hca/region.h"
#include "util/spin.h"

/* A free entry for `object` (struct hca_mw if `window`, else struct hca_mr);
 * -ENOMEM when there is none. */
int hca_key_take(void *object, bool window, uint32_t *index);
void hca_key_put(uint32_t index);
/* A key for the entry that it did not have lately. */
uint32_t hca_key_next(uint32_t index);
/* So that hca_key_next() passes over a tag that a program chose. */
void hca_key_seen(uint32_t key);

/* The objects of keys and their states are looked at and change under this. */
extern struct spin hca_key_lock;
/* The object whose entry `index` is, NULL when it is of the other kind. The lock
 * is held. */
struct hca_mr *hca_key_mr(uint32_t index);
struct hca_mw *hca_key_mw(uint32_t index);
/* Nobody finds the object any more. The lock is held. */
void hca_key_forget(uint32_t index);

/* Where the memory lies in its region, 0 when in none. */
static inline uint64_t hca_mr_region_offset(const struct hca_mr *mr)
{
	return mr->region ? (uint64_t)(mr->base - mr->region->addr) : 0;
}

/* Fields of `as` but key and serial. */
void hca_key_publish(uint32_t key, const struct hca_key *as);
/* No access starts with the key any more; those that have started go on. */
void hca_key_withdraw(uint32_t key);
/* What is published with this key, if it is; a snapshot. Of the table `count` may be
 * looked at. */
bool hca_key_look(const struct hca_key *keys, uint32_t count, uint32_t key,
		  struct hca_key *copy);
bool hca_key_look_own(uint32_t key, struct hca_key *copy);

/* The table of this process and its descriptor, with the adapter's start; and its end.
 * 0 or a negative errno. process.lock is held. */
int hca_keys_create(void);
void hca_keys_destroy(void);

/* In a forked child. */
void hca_keys_forked(void);

#endif
