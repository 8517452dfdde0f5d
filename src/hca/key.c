/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key table: allocation, publication, and the checks of every access.
 *
 * Peers read the published part without a lock. They announce the key that they
 * copy with (hca_hazard_enter), then look; an owner withdraws the key, then waits
 * for announcements (transport's key_fence, key_busy). An entry is used again
 * only after that, and `serial` tells two uses with one key apart.
 */
#include "hca/key.h"

#include <errno.h>

#include "hca/paging.h"

struct spin hca_key_lock;

/* The owner's side of an entry: `used` under process.lock, `object` and `window`
 * under hca_key_lock, `tag` of whoever has taken it. */
static struct slot {
	void *object;
	bool window;
	bool used;
	uint8_t tag;
} slots[HCA_KEYS];

/* Free entries are found by a moving cursor. */
static uint32_t cursor = 1;

int hca_key_take(void *object, bool window, uint32_t *index)
{
	pthread_mutex_lock(&hca_process.lock);
	for (uint32_t i = 0; i < HCA_KEYS - 1; i++) {
		uint32_t at = 1 + (cursor - 1 + i) % (HCA_KEYS - 1);

		if (slots[at].used)
			continue;
		slots[at].used = true;
		cursor = at + 1;
		pthread_mutex_unlock(&hca_process.lock);
		spin_lock(&hca_key_lock);
		slots[at].object = object;
		slots[at].window = window;
		spin_unlock(&hca_key_lock);
		*index = at;
		return 0;
	}
	pthread_mutex_unlock(&hca_process.lock);
	return -ENOMEM;
}

void hca_key_put(uint32_t index)
{
	pthread_mutex_lock(&hca_process.lock);
	slots[index].used = false;
	pthread_mutex_unlock(&hca_process.lock);
}

uint32_t hca_key_next(uint32_t index)
{
	return index << 8 | ++slots[index].tag;
}

void hca_key_seen(uint32_t key)
{
	slots[hca_key_index(key)].tag = (uint8_t)key;
}

struct hca_mr *hca_key_mr(uint32_t index)
{
	return slots[index].window ? NULL : slots[index].object;
}

struct hca_mw *hca_key_mw(uint32_t index)
{
	return slots[index].window ? slots[index].object : NULL;
}

void hca_key_forget(uint32_t index)
{
	slots[index].object = NULL;
}

void hca_keys_forked(void)
{
	hca_null_forked();
	/* A thread that is not here any more may have held it. */
	hca_key_lock = (struct spin){ 0 };
}

/* Plain stores for the processor; a check in another thread may look. */
#define PUT(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)
#define GET(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

void hca_key_publish(uint32_t key, const struct hca_key *as)
{
	struct hca_key *k = &hca_process.segment->keys[hca_key_index(key)];

	PUT(k->serial, k->serial + 1);
	/* The new number is seen before anything that belongs to it. */
	atomic_thread_fence(memory_order_release);
	PUT(k->access, as->access);
	PUT(k->iova, as->iova);
	PUT(k->length, as->length);
	PUT(k->addr, as->addr);
	PUT(k->pd_id, as->pd_id);
	PUT(k->local_pd, as->local_pd);
	PUT(k->qpn, as->qpn);
	PUT(k->flags, as->flags);
	PUT(k->region_id, as->region_id);
	PUT(k->region_offset, as->region_offset);
	atomic_store_explicit(&k->key, key, memory_order_release);
}

void hca_key_withdraw(uint32_t key)
{
	struct hca_key *k = &hca_process.segment->keys[hca_key_index(key)];

	atomic_store_explicit(&k->key, 0, memory_order_seq_cst);
	/* Seen before the entry is filled anew, and before we look for whoever
	 * announced the key. */
	atomic_thread_fence(memory_order_seq_cst);
}

bool hca_key_look(const struct hca_key *keys, uint32_t key, struct hca_key *copy)
{
	const struct hca_key *k = &keys[hca_key_index(key)];

	if (key == 0 || key >> 8 >= HCA_KEYS)
		return false;
	copy->serial = __atomic_load_n(&k->serial, __ATOMIC_ACQUIRE);
	if (atomic_load_explicit(&k->key, memory_order_acquire) != key)
		return false;
	copy->access = GET(k->access);
	copy->iova = GET(k->iova);
	copy->length = GET(k->length);
	copy->addr = GET(k->addr);
	copy->pd_id = GET(k->pd_id);
	copy->local_pd = GET(k->local_pd);
	copy->qpn = GET(k->qpn);
	copy->flags = GET(k->flags);
	copy->region_id = GET(k->region_id);
	copy->region_offset = GET(k->region_offset);
	/* All of one use, and it has not ended meanwhile. */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&k->key, memory_order_relaxed) == key &&
	       GET(k->serial) == copy->serial;
}

enum ibv_wc_status hca_key_check(const struct hca_key *keys,
				 struct hca_key_use *use)
{
	struct hca_key k;

	if (!hca_key_look(keys, use->rkey, &k) || k.pd_id != use->pd_id ||
	    (k.access & use->access) != use->access || use->iova < k.iova ||
	    use->length > k.length ||
	    use->iova - k.iova > k.length - use->length ||
	    (k.qpn && k.qpn != use->qpn))
		return IBV_WC_REM_ACCESS_ERR;
	use->addr = k.addr + (use->iova - k.iova);
	use->flags = k.flags;
	use->region_id = k.region_id;
	use->region_offset = k.region_offset + (use->iova - k.iova);
	return IBV_WC_SUCCESS;
}
