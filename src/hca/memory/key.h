/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner's side of the table of keys: allocation of entries, their objects, and what is
 * published in the table that peers map.
 *
 * The tag of a key (process.h) of a region changes with each use of the entry; the program
 * chooses that of a window.
 */
#ifndef HCA_KEY_H
#define HCA_KEY_H

#include <stdint.h>
#include <stdbool.h>

#include "hca/memory/region.h"
#include "hca/object/mr.h"
#include "hca/object/mw.h"
#include "hca/object/public.h"
#include "hca/share/process.h"
#include "util/spin.h"

/* Allocates an entry for `object` (struct hca_mw if `window`, else struct hca_mr). 0 or -ENOMEM.
 * Takes process.lock and hca_key_lock. */
int hca_key_take(void *object, bool window, uint32_t *index);
/* Frees an entry; nothing is published in it. Takes process.lock. */
void hca_key_put(uint32_t index);
/* The entry's next key, one of 256 in turn. Not thread-safe: only for the entry's object. */
uint32_t hca_key_next(uint32_t index);
/* hca_key_next() continues behind the tag of `key`, which a program chose. */
void hca_key_seen(uint32_t key);

/* Protects the objects of entries and the states of windows. */
extern struct spin hca_key_lock;
/* The object of entry `index`; NULL: there is none, or it is of the other kind. hca_key_lock is
 * held. */
struct hca_mr *hca_key_mr(uint32_t index);
struct hca_mw *hca_key_mw(uint32_t index);
/* Removes the object from the entry: the two functions above return NULL. hca_key_lock is held. */
void hca_key_forget(uint32_t index);

/* Offset of the memory in mr->region, 0 if there is none. */
static inline uint64_t hca_mr_region_offset(const struct hca_mr *mr)
{
	return mr->region ? (uint64_t)(mr->base - mr->region->addr) : 0;
}

/* Publishes the members of `as`, except key and serial, under `key`. The entry is withdrawn or was
 * never published. */
void hca_key_publish(uint32_t key, const struct hca_key *as);
/* Withdraws the key: no access starts with it any more. Accesses that have started continue; see
 * hca_fence_key(). */
void hca_key_withdraw(uint32_t key);
/* Copies what is published under `key`, as of one moment; false: nothing is. The first `count`
 * entries of the table are readable. Takes no lock. */
bool hca_key_look(const struct hca_key *keys, uint32_t count, uint32_t key,
		  struct hca_key *copy);
/* The same with the table of this process. */
bool hca_key_look_own(uint32_t key, struct hca_key *copy);

/* Checks a remote access against the owner's table of keys, of which the first `count`
 * entries are readable. IBV_WC_SUCCESS or IBV_WC_REM_ACCESS_ERR. Takes no lock. */
enum ibv_wc_status hca_key_check(const struct hca_key *keys, uint32_t count,
				 struct hca_key_use *use);

/* The same with the table of this process. */
enum ibv_wc_status hca_key_check_own(struct hca_key_use *use);

/* Does the entry of this key, one of this process's, grant a remote right? Also right after
 * the key was withdrawn, until the entry is published again. */
bool hca_key_is_remote(uint32_t key);

/* Creates the table of this process and its descriptor when the adapter starts, and removes it
 * when the adapter stops. 0 or a negative errno. process.lock is held. */
int hca_keys_create(void);
void hca_keys_destroy(void);

/* In a forked child. */
void hca_keys_forked(void);

#endif
