/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions on demand are brought before they are used; see shield.h. */
#include "shield/shield.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "preload/real.h"

/* verbs.h has macros or inline functions of these names over the exported functions. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

SHIELD_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
SHIELD_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
					     uint64_t iova, int access);
SHIELD_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
					      uint64_t iova, unsigned int access);
SHIELD_EXPORT int ibv_dereg_mr(struct ibv_mr *mr);

#define PAGE_SHIFT 12
#define PIECE_BYTES (UINT64_C(1) << 30) /* of one call; an entry has 32 bits */
#define SEEN 4096u

/* A region that was not brought as a whole. */
struct late {
	struct late *next;
	const struct ibv_mr *mr;
	uint32_t lkey;
	bool writable;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct late *late; /* under `lock` */
static atomic_bool has_late, has_any;
/* Pages that were brought, with the key, in any order: an entry that another one has replaced is
 * brought once more. 0: none. */
static _Atomic uint64_t seen[SEEN];

/* Another thread of the parent may have had the lock. */
static void forked(void)
{
	pthread_rwlock_init(&lock, NULL);
}

__attribute__((constructor)) static void at_load(void)
{
	pthread_atfork(NULL, NULL, forked);
}

bool shield_has_regions(void)
{
	return atomic_load(&has_any);
}

/* Adapters that cannot prefetch are left as they are. */
static bool bring(struct ibv_pd *pd, uint32_t lkey, uint64_t addr, uint64_t length, bool writable)
{
	enum ibv_advise_mr_advice advice = writable ? IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE :
						      IBV_ADVISE_MR_ADVICE_PREFETCH;
	bool good = true;

	while (length && good) {
		uint64_t part = length < PIECE_BYTES ? length : PIECE_BYTES;
		struct ibv_sge sge = { addr, (uint32_t)part, lkey };

		good = !ibv_advise_mr(pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
		atomic_fetch_add(&shield_counts.bytes, good ? part : 0);
		addr += part;
		length -= part;
	}
	return good;
}

static void add_late(const struct ibv_mr *mr, bool writable)
{
	struct late *l = malloc(sizeof(*l));

	if (!l)
		return;
	*l = (struct late){ .mr = mr, .lkey = mr->lkey, .writable = writable };
	pthread_rwlock_wrlock(&lock);
	l->next = late;
	late = l;
	atomic_store(&has_late, true);
	pthread_rwlock_unlock(&lock);
}

static struct ibv_mr *registered(struct ibv_mr *mr, uint64_t iova, size_t length, unsigned access)
{
	bool writable = access & IBV_ACCESS_LOCAL_WRITE;

	if (!mr || !(access & IBV_ACCESS_ON_DEMAND))
		return mr;
	atomic_store(&has_any, true);
	if (!(shield_parts() & SHIELD_PREFETCH))
		return mr;
	if (length > SHIELD_PREFETCH_BYTES)
		add_late(mr, writable);
	else if (bring(mr->pd, mr->lkey, iova, length, writable))
		atomic_fetch_add(&shield_counts.regions, 1);
	return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *(*real)(struct ibv_pd *, void *, size_t, int) =
		real_find("ibv_reg_mr", "IBVERBS_1.1");

	return registered(real(pd, addr, length, access), (uintptr_t)addr, length,
			  (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	struct ibv_mr *(*real)(struct ibv_pd *, void *, size_t, uint64_t, int) =
		real_find("ibv_reg_mr_iova", "IBVERBS_1.7");

	return registered(real(pd, addr, length, iova, access), iova, length, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct ibv_mr *(*real)(struct ibv_pd *, void *, size_t, uint64_t, unsigned) =
		real_find("ibv_reg_mr_iova2", "IBVERBS_1.8");

	return registered(real(pd, addr, length, iova, access), iova, length, access);
}

static void forget(const struct ibv_mr *mr)
{
	struct late **at = &late, *l;

	pthread_rwlock_wrlock(&lock);
	while (*at && (*at)->mr != mr)
		at = &(*at)->next;
	l = *at;
	if (l)
		*at = l->next;
	pthread_rwlock_unlock(&lock);
	free(l);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int (*real)(struct ibv_mr *) = real_find("ibv_dereg_mr", "IBVERBS_1.1");

	if (atomic_load_explicit(&has_late, memory_order_relaxed))
		forget(mr);
	return real(mr);
}

/* The page was not brought lately. It is from now on. */
static bool is_new(uint32_t lkey, uint64_t page)
{
	uint64_t key = (page << 20 | lkey >> 8) | UINT64_C(1) << 63;
	_Atomic uint64_t *slot = &seen[(page ^ lkey >> 8) % SEEN];

	return atomic_exchange_explicit(slot, key, memory_order_relaxed) != key;
}

static void bring_entry(struct ibv_qp *qp, const struct ibv_sge *sge)
{
	uint64_t last = (sge->addr + sge->length - 1) >> PAGE_SHIFT;
	const struct late *l;
	bool any = false;

	pthread_rwlock_rdlock(&lock);
	for (l = late; l && l->lkey != sge->lkey; l = l->next)
		;
	for (uint64_t page = sge->addr >> PAGE_SHIFT; l && page <= last; page++)
		any |= is_new(sge->lkey, page);
	if (any)
		bring(qp->pd, sge->lkey, sge->addr, sge->length, l->writable);
	pthread_rwlock_unlock(&lock);
}

void shield_before_post(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	if (!atomic_load_explicit(&has_late, memory_order_relaxed))
		return;
	for (; wr; wr = wr->next)
		for (int i = 0; i < wr->num_sge && !(wr->send_flags & IBV_SEND_INLINE); i++)
			if (wr->sg_list[i].length)
				bring_entry(qp, &wr->sg_list[i]);
}
