/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_advise_mr(): faults pages of regions on demand in before they are used, in the page table of
 * the process, and in that of the adapter if it has one (demand.h). That is always done when the
 * call returns, with and without IBV_ADVISE_MR_FLAG_FLUSH.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca/hca.h"
#include "hca/host/mapping.h"
#include "hca/memory/demand.h"
#include "hca/memory/key.h"
#include "hca/memory/sge.h"
#include "hca/object/pd.h"
#include "hca/object/public.h"
#include "hca/share/process.h"
#include "util/container_of.h"
#include "util/spin.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* A range of whole pages. */
struct pages {
	uint8_t *first;
	size_t bytes;
};

static struct pages pages_of(uint64_t addr, uint64_t length)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t first = addr & ~(page - 1);

	return (struct pages){
		.first = (uint8_t *)(uintptr_t)first,
		.bytes = (size_t)(((addr - first + length) + page - 1) &
				  ~(page - 1)),
	};
}

/* The key's entry if advice may be given for this piece, with the errors that
 * ibv_advise_mr(3) lists. */
static int piece_check(const struct hca_pd *pd, const struct ibv_sge *s,
		       bool write, uint64_t *addr)
{
	uint32_t index = hca_key_index(s->lkey);
	struct hca_key k;
	bool region, window;

	if (s->lkey >> 8 != index)
		return -EFAULT;
	spin_lock(&hca_key_lock);
	region = hca_key_mr(index);
	window = hca_key_mw(index);
	spin_unlock(&hca_key_lock);
	if (window)
		return -EINVAL;
	if (!region)
		return -EFAULT;
	if (!hca_key_look_own(s->lkey, &k))
		return -ENOENT;
	if (!(k.flags & HCA_KEY_ON_DEMAND))
		return -EINVAL;
	if (k.pd_id != pd->id ||
	    (write && !(k.access & IBV_ACCESS_LOCAL_WRITE)))
		return -EPERM;
	if (s->addr < k.iova || s->length > k.length ||
	    s->addr - k.iova > k.length - s->length)
		return -EFAULT;
	*addr = k.addr + (s->addr - k.iova);
	return 0;
}

/* Accesses each page; for kernels before 5.14, which have no MADV_POPULATE_*. */
static int touch(struct pages p, bool write)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t at = 0; at < p.bytes; at += page)
		if (!hca_page_usable(p.first + at, write))
			return -EFAULT;
	return 0;
}

/* Is the range mapped, with or without pages present? 0 or a negative errno. */
static int mapped(struct pages p)
{
	unsigned char there[256];
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t at = 0; at < p.bytes; at += sizeof(there) * page)
		if (mincore(p.first + at,
			    MIN(p.bytes - at, sizeof(there) * page), there))
			return -EFAULT;
	return 0;
}

static int fetch(struct pages p, enum ibv_advise_mr_advice advice)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;

	/* The page table of the process is not to be filled. */
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return mapped(p);
	if (!madvise(p.first, p.bytes,
		     write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return 0;
	if (errno == EINVAL)
		return touch(p, write);
	/* Pages of another owner may refuse; holes are an error in any case. */
	return errno == ENOMEM || errno == EFAULT ? -EFAULT : -errno;
}

int hca_mr_advise(struct ibv_pd *ibpd, enum ibv_advise_mr_advice advice,
		  uint32_t flags, const struct ibv_sge *sge, uint32_t count)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;

	if (!write && advice != IBV_ADVISE_MR_ADVICE_PREFETCH &&
	    advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || count == 0)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t addr;
		int ret = piece_check(hca_pd(ibpd), &sge[i], write, &addr);

		if (!ret && sge[i].length)
			ret = fetch(pages_of(addr, sge[i].length), advice);
		if (!ret)
			hca_demand_prefetch(hca_key_index(sge[i].lkey), addr, sge[i].length);
		if (ret)
			return ret;
	}
	return 0;
}
