/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, memory regions and their keys.
 *
 * A key is an index into the shared key table (upper 24 bits) and a counter
 * (lower 8 bits) that changes with each use of the entry. Registration does
 * not pin: one-sided accesses go through the page tables, so fork and
 * RLIMIT_MEMLOCK are no concern.
 */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca/hca.h"
#include "hca/objects.h"
#include "hca/process.h"
#include "util/log.h"

#define KEY_INDEX_MASK (HCA_KEYS - 1)
#define ACCESS_KNOWN                                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                 \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |                \
	 IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)

/* Free entries are found by a moving cursor; under process.lock. */
static uint32_t key_cursor = 1;
static uint8_t key_salt[HCA_KEYS];
static bool key_used[HCA_KEYS];

int hca_pd_alloc(struct ibv_context *ibctx, struct ibv_pd **out)
{
	static _Atomic uint32_t next_id = 1;
	struct hca_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return -ENOMEM;
	pd->ibv.context = ibctx;
	pd->id = atomic_fetch_add(&next_id, 1);
	pd->ibv.handle = pd->id;
	hca_context_get(hca_context(ibctx));
	*out = &pd->ibv;
	return 0;
}

int hca_pd_dealloc(struct ibv_pd *ibpd)
{
	struct hca_pd *pd = hca_pd(ibpd);

	if (atomic_load(&pd->users) > 0)
		return -EBUSY;
	hca_domain_release(pd);
	hca_context_put(hca_context(ibpd->context));
	free(pd);
	return 0;
}

static int key_take(uint32_t *index)
{
	pthread_mutex_lock(&hca_process.lock);
	for (uint32_t i = 0; i < HCA_KEYS - 1; i++) {
		uint32_t at = 1 + (key_cursor - 1 + i) % (HCA_KEYS - 1);

		if (key_used[at])
			continue;
		key_used[at] = true;
		key_cursor = at + 1;
		pthread_mutex_unlock(&hca_process.lock);
		*index = at;
		return 0;
	}
	pthread_mutex_unlock(&hca_process.lock);
	return -ENOMEM;
}

static void key_put(uint32_t index)
{
	pthread_mutex_lock(&hca_process.lock);
	key_used[index] = false;
	pthread_mutex_unlock(&hca_process.lock);
}

/* Is the whole range mapped? A registration of a hole fails, as a pinning
 * adapter's would. */
static bool range_mapped(void *addr, size_t length)
{
	static const size_t page = 4096;
	unsigned char vec[4096];
	uintptr_t at = (uintptr_t)addr & ~(page - 1);
	uintptr_t end = (uintptr_t)addr + length;

	while (at < end) {
		size_t part = MIN(end - at, sizeof(vec) * page);

		if (mincore((void *)at, part, vec) && errno == ENOMEM)
			return false;
		at += part;
	}
	return true;
}

static int check_access(void *addr, size_t length, uint64_t iova,
			unsigned access)
{
	if (access & ~(unsigned)ACCESS_KNOWN)
		return -EOPNOTSUPP;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if ((uintptr_t)addr + length < (uintptr_t)addr || iova + length < iova)
		return -EINVAL;
	return range_mapped(addr, length) ? 0 : -EFAULT;
}

static void key_publish(struct hca_mr *mr)
{
	struct hca_key *k = &hca_process.segment->keys[mr->index];

	k->access = mr->access;
	k->iova = mr->iova;
	k->length = mr->ibv.length;
	k->addr = (uintptr_t)mr->ibv.addr;
	k->pd_id = hca_pd(mr->ibv.pd)->id;
	atomic_store_explicit(&k->key, mr->ibv.rkey, memory_order_release);
}

/* After return nobody copies with the key any more. */
static void key_withdraw(struct hca_mr *mr)
{
	struct hca_key *k = &hca_process.segment->keys[mr->index];

	atomic_store_explicit(&k->key, 0, memory_order_seq_cst);
	hca_process.transport->key_fence(mr->ibv.rkey);
}

int hca_mr_register(struct ibv_pd *ibpd, void *addr, size_t length,
		    uint64_t iova, unsigned access, struct ibv_mr **out)
{
	struct hca_mr *mr;
	int ret = check_access(addr, length, iova, access);

	if (ret)
		return ret;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	ret = key_take(&mr->index);
	if (ret) {
		free(mr);
		return ret;
	}
	mr->ibv.context = ibpd->context;
	mr->ibv.pd = ibpd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->ibv.handle = mr->index;
	mr->ibv.lkey = mr->ibv.rkey = mr->index << 8 | ++key_salt[mr->index];
	mr->access = access;
	mr->iova = iova;
	atomic_fetch_add(&hca_pd(ibpd)->users, 1);
	key_publish(mr);
	*out = &mr->ibv;
	return 0;
}

int hca_mr_reregister(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd,
		      void *addr, size_t length, int access)
{
	struct hca_mr *mr = hca_mr(ibmr);
	bool translate = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	unsigned new_access = flags & IBV_REREG_MR_CHANGE_ACCESS ?
				      (unsigned)access : mr->access;
	int ret;

	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return -EINVAL;
	if ((flags & IBV_REREG_MR_CHANGE_PD) && !pd)
		return -EINVAL;
	ret = check_access(translate ? addr : ibmr->addr,
			   translate ? length : ibmr->length,
			   translate ? (uintptr_t)addr : mr->iova, new_access);
	if (ret)
		return ret;
	key_withdraw(mr);
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		atomic_fetch_sub(&hca_pd(ibmr->pd)->users, 1);
		atomic_fetch_add(&hca_pd(pd)->users, 1);
		ibmr->pd = pd;
	}
	if (translate) {
		ibmr->addr = addr;
		ibmr->length = length;
		mr->iova = (uintptr_t)addr;
	}
	mr->access = new_access;
	ibmr->lkey = ibmr->rkey = mr->index << 8 | ++key_salt[mr->index];
	key_publish(mr);
	return 0;
}

int hca_mr_deregister(struct ibv_mr *ibmr)
{
	struct hca_mr *mr = hca_mr(ibmr);

	key_withdraw(mr);
	key_put(mr->index);
	atomic_fetch_sub(&hca_pd(ibmr->pd)->users, 1);
	free(mr);
	return 0;
}

void *hca_sge_resolve(const struct hca_pd *pd, const struct ibv_sge *sge,
		      unsigned access)
{
	const struct hca_key *k =
		&hca_process.segment->keys[(sge->lkey >> 8) & KEY_INDEX_MASK];

	if (atomic_load_explicit(&k->key, memory_order_acquire) != sge->lkey ||
	    sge->lkey == 0 || k->pd_id != pd->id ||
	    (k->access & access) != access || sge->addr < k->iova ||
	    sge->length > k->length ||
	    sge->addr - k->iova > k->length - sge->length)
		return NULL;
	return (void *)(uintptr_t)(k->addr + (sge->addr - k->iova));
}

enum ibv_wc_status hca_key_check(const struct hca_key *keys, uint32_t key_count,
				 uint32_t rkey, uint32_t pd_id, uint64_t iova,
				 uint64_t length, unsigned access, uint64_t *addr)
{
	const struct hca_key *k = &keys[rkey >> 8];
	struct hca_key copy;

	if (rkey == 0 || rkey >> 8 >= key_count ||
	    atomic_load_explicit(&k->key, memory_order_acquire) != rkey)
		return IBV_WC_REM_ACCESS_ERR;
	copy.access = k->access;
	copy.iova = k->iova;
	copy.length = k->length;
	copy.addr = k->addr;
	copy.pd_id = k->pd_id;
	/* A re-registration in between changes the key. */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&k->key, memory_order_relaxed) != rkey ||
	    copy.pd_id != pd_id || (copy.access & access) != access ||
	    iova < copy.iova || length > copy.length ||
	    iova - copy.iova > copy.length - length)
		return IBV_WC_REM_ACCESS_ERR;
	*addr = copy.addr + (iova - copy.iova);
	return IBV_WC_SUCCESS;
}
