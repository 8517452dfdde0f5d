/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of keys: allocation, publication, and the checks of every access.
 *
 * Peers read the published part without a lock. A peer first publishes that it copies with
 * a key (hca_hazard_enter) and then reads the entry. The owner first withdraws the key and
 * then waits until no peer publishes it (hca_fence_key, hca_fence_key_busy). The entry is
 * used again only after that. `serial` distinguishes two uses of the entry with the same
 * key.
 */
#include "hca/memory/key.h"
#include "hca/object/mr.h"
#include "hca/object/mw.h"
#include "hca/object/public.h"
#include "hca/share/process.h"
#include "util/container_of.h"
#include "util/spin.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>


/* Accessible entries at first; the number doubles when they are used up. */
#define FIRST_KEYS 4096u

struct spin hca_key_lock;

/* The owner's side of an entry: `next` and the lists below are under process.lock, `object` and
 * `window` under hca_key_lock. Only the thread that uses the entry's object accesses `tag`. */
struct slot {
	void *object;
	uint32_t next; /* index of the next free entry, 0: none */
	bool window;
	uint8_t tag;
};

/* Address space for all entries, of which the first `room` are accessible. Kept when the adapter
 * stops, and in a forked child, because objects of the parent refer to entries. */
static struct slot *slots;
static uint32_t room;
/* Entries from this index on were never used. Index 0 is never used; it ends lists. */
static uint32_t fresh = 1;
/* Freed entries, the oldest first. They are used again as late as possible, so that a key which
 * a program still uses by mistake is not soon that of another object. */
static struct {
	uint32_t first, last, count;
} resting;

/* ---- memory ---- */

static int slots_open(uint32_t count)
{
	if (!slots) {
		void *all = mmap(NULL, HCA_KEYS * sizeof(*slots), PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
				 0);

		if (all == MAP_FAILED)
			return -ENOMEM;
		slots = all;
	}
	return mprotect(slots, count * sizeof(*slots), PROT_READ | PROT_WRITE) ?
		       -ENOMEM : 0;
}

/* Makes `count` entries accessible, a power of two. 0 or -ENOMEM. */
static int table_open(uint32_t count)
{
	int ret = slots_open(count);

	if (ret)
		return ret;
	if (mprotect(hca_process.keys, count * sizeof(struct hca_key),
		     PROT_READ | PROT_WRITE))
		return -ENOMEM;
	room = count;
	atomic_store(&hca_process.key_mask, count - 1);
	atomic_store(&hca_process.segment->key_count, count);
	return 0;
}

int hca_keys_create(void)
{
	int ret;

	hca_process.keys = hca_shared_file("busbar-keys", HCA_KEY_TABLE_BYTES,
					   &hca_process.keys_fd);
	if (!hca_process.keys)
		return -errno;
	ret = table_open(MAX(room, FIRST_KEYS));
	if (ret)
		hca_keys_destroy();
	return ret;
}

void hca_keys_destroy(void)
{
	atomic_store(&hca_process.key_mask, 0);
	munmap(hca_process.keys, HCA_KEY_TABLE_BYTES);
	close(hca_process.keys_fd);
	hca_process.keys = NULL;
	hca_process.keys_fd = -1;
}

/* ---- taking and giving back ---- */

/* The index of a free entry, 0: there is none. process.lock is held. */
static uint32_t slot_take(void)
{
	uint32_t at = resting.first;

	if (fresh == room && resting.count < room / 4 && room < HCA_KEYS)
		table_open(2 * room); /* on failure freed entries are used */
	if (fresh < room)
		return fresh++;
	if (!at)
		return 0;
	resting.first = slots[at].next;
	resting.count--;
	return at;
}

int hca_key_take(void *object, bool window, uint32_t *index)
{
	uint32_t at;

	pthread_mutex_lock(&hca_process.lock);
	at = slot_take();
	pthread_mutex_unlock(&hca_process.lock);
	if (!at)
		return -ENOMEM;
	spin_lock(&hca_key_lock);
	slots[at].object = object;
	slots[at].window = window;
	spin_unlock(&hca_key_lock);
	*index = at;
	return 0;
}

void hca_key_put(uint32_t index)
{
	pthread_mutex_lock(&hca_process.lock);
	slots[index].next = 0;
	if (resting.first)
		slots[resting.last].next = index;
	else
		resting.first = index;
	resting.last = index;
	resting.count++;
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

/* `index` may come from a program (ibv_import_mr()), so it is checked. */
static const struct slot *slot_find(uint32_t index)
{
	static const struct slot none;

	return index <= atomic_load(&hca_process.key_mask) ? &slots[index] : &none;
}

struct hca_mr *hca_key_mr(uint32_t index)
{
	const struct slot *s = slot_find(index);

	return s->window ? NULL : s->object;
}

struct hca_mw *hca_key_mw(uint32_t index)
{
	const struct slot *s = slot_find(index);

	return s->window ? s->object : NULL;
}

void hca_key_forget(uint32_t index)
{
	slots[index].object = NULL;
}

void hca_keys_forked(void)
{
	/* A thread of the parent may have held it. */
	hca_key_lock = (struct spin){ 0 };
}

/* Relaxed atomic accesses: other threads and processes read entries while they change. */
#define PUT(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)
#define GET(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

void hca_key_publish(uint32_t key, const struct hca_key *as)
{
	struct hca_key *k = &hca_process.keys[hca_key_index(key)];

	PUT(k->serial, k->serial + 1);
	/* The new serial is visible before the new members. */
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
	struct hca_key *k = &hca_process.keys[hca_key_index(key)];

	atomic_store_explicit(&k->key, 0, memory_order_seq_cst);
	/* Visible before the entry is published again, and before the caller looks for peers
	 * that copy with the key. */
	atomic_thread_fence(memory_order_seq_cst);
}

bool hca_key_is_remote(uint32_t key)
{
	return GET(hca_process.keys[hca_key_index(key)].access) &
	       (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		IBV_ACCESS_REMOTE_ATOMIC);
}

bool hca_key_look(const struct hca_key *keys, uint32_t count, uint32_t key,
		  struct hca_key *copy)
{
	const struct hca_key *k = &keys[key >> 8];

	if (key == 0 || key >> 8 >= count)
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
	/* All members are of one use of the entry, and the key was not withdrawn meanwhile. */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&k->key, memory_order_relaxed) == key &&
	       GET(k->serial) == copy->serial;
}

static uint32_t own_count(void)
{
	return atomic_load_explicit(&hca_process.key_mask, memory_order_relaxed) + 1;
}

bool hca_key_look_own(uint32_t key, struct hca_key *copy)
{
	return hca_key_look(hca_process.keys, own_count(), key, copy);
}

enum ibv_wc_status hca_key_check(const struct hca_key *keys, uint32_t count,
				 struct hca_key_use *use)
{
	struct hca_key k;

	if (!hca_key_look(keys, count, use->rkey, &k) || k.pd_id != use->pd_id ||
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

enum ibv_wc_status hca_key_check_own(struct hca_key_use *use)
{
	return hca_key_check(hca_process.keys, own_count(), use);
}
