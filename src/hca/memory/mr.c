/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions. Registration does not pin: one-sided accesses go through the
 * page tables, so fork and RLIMIT_MEMLOCK are no concern. An ordinary region
 * must be mapped when it is registered and as long as it is; one on demand
 * (paging.c) need not, and the null region has no memory at all.
 */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca/hca.h"
#include "hca/host/mapping.h"
#include "hca/memory/device_memory.h"
#include "hca/memory/domain.h"
#include "hca/memory/import.h"
#include "hca/memory/demand.h"
#include "hca/memory/key.h"
#include "hca/memory/paging.h"
#include "hca/memory/promising.h"
#include "hca/memory/region.h"
#include "hca/memory/remap.h"
#include "hca/object/dm.h"
#include "hca/object/live.h"
#include "hca/object/mr.h"
#include "hca/object/public.h"
#include "hca/path/path.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "util/log.h"
#include "util/probe.h"
#include "util/spin.h"

#define ACCESS_KNOWN                                                           \
	((unsigned)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |         \
		    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |        \
		    IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |               \
		    IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |                \
		    IBV_ACCESS_OPTIONAL_RANGE))

/* The attributes of a registration. */
struct range {
	void *addr;
	size_t length;
	uint64_t iova;
	unsigned access;
};

/* All of the address space, now and later. */
static bool range_implicit(const struct range *r)
{
	return (r->access & IBV_ACCESS_ON_DEMAND) && !r->addr &&
	       r->length == SIZE_MAX;
}

static int rights_check(unsigned access)
{
	if (access & ~(ACCESS_KNOWN | HCA_ACCESS_FLUSH))
		return -EINVAL;
	if (access & HCA_ACCESS_FLUSH)
		return -EOPNOTSUPP;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

static int range_check(const struct range *r)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	int ret = rights_check(r->access);

	if (ret)
		return ret;
	/* As with Linux, a region has at least one page: an empty one at the start of a page has
	 * none. */
	if (!r->length && (uintptr_t)r->addr % page == 0)
		return -EINVAL;
	if ((uintptr_t)r->addr + r->length < (uintptr_t)r->addr ||
	    r->iova + r->length < r->iova)
		return -EINVAL;
	/* Later mappings may have small pages. */
	if (range_implicit(r) && (r->access & IBV_ACCESS_HUGETLB))
		return -EINVAL;
	if (r->access & IBV_ACCESS_ON_DEMAND)
		return 0;
	return hca_range_mapped(r->addr, r->length,
				r->access & IBV_ACCESS_LOCAL_WRITE) ?
		       0 : -EFAULT;
}

static void mr_set_range(struct hca_mr *mr, const struct range *r)
{
	mr->ibv.addr = mr->base = r->addr;
	mr->ibv.length = r->length;
	mr->access = r->access;
	mr->iova = r->iova;
}

/* Bytes for the counters; an implicit registration counts as 0. */
static uint64_t counted_bytes(const struct hca_mr *mr)
{
	return mr->ibv.length == SIZE_MAX ? 0 : mr->ibv.length;
}

static void mr_publish(const struct hca_mr *mr)
{
	uint32_t pd_id = hca_pd(mr->ibv.pd)->id;
	bool paged = mr->access & IBV_ACCESS_ON_DEMAND;
	const struct hca_key as = {
		.access = mr->access,
		.iova = mr->iova,
		.length = mr->ibv.length,
		.addr = (uintptr_t)mr->base,
		.pd_id = pd_id,
		.local_pd = paged || mr->null ? 0 : pd_id,
		.flags = (paged ? HCA_KEY_ON_DEMAND : 0u) |
			 (mr->null ? HCA_KEY_NULL : 0u),
		.region_id = mr->region ? mr->region->id : 0,
		.region_offset = hca_mr_region_offset(mr),
	};

	hca_key_publish(mr->ibv.lkey, &as);
	HCA_COUNT_PROCESS(MRS, 1);
	HCA_COUNT_PROCESS(MR_BYTES, counted_bytes(mr));
	HCA_COUNT_PROCESS(MRS_REGISTERED, 1);
	PROBE(mr_reg, mr->ibv.lkey, as.addr, as.length, as.access);
}

/* Withdraws the key and waits until no peer copies with it; afterwards no window can be bound
 * to the region. 0, or -EBUSY: a window is bound. No lock is held. */
static int mr_withdraw(struct hca_mr *mr)
{
	if (hca_context_inherited(mr->ibv.context))
		return 0;
	hca_promise_hold(mr->ibv.lkey);
	spin_lock(&hca_key_lock);
	if (mr->windows) {
		spin_unlock(&hca_key_lock);
		hca_promise_release();
		return -EBUSY;
	}
	hca_key_withdraw(mr->ibv.lkey);
	spin_unlock(&hca_key_lock);
	hca_promise_release();
	hca_fence_key(mr->ibv.lkey);
	hca_demand_forget(hca_key_index(mr->ibv.lkey));
	HCA_COUNT_PROCESS(MRS, (uint64_t)-1);
	HCA_COUNT_PROCESS(MR_BYTES, -counted_bytes(mr));
	PROBE(mr_dereg, mr->ibv.lkey, mr->ibv.length);
	return 0;
}

static int mr_new(struct ibv_pd *ibpd, struct hca_mr **out)
{
	struct hca_mr *mr;
	int ret;

	if (!hca_live(ibpd, HCA_PD))
		return -EINVAL;
	if (hca_context_inherited(ibpd->context))
		return -ENODEV;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	ret = hca_key_take(mr, false, &mr->index);
	if (ret) {
		log_error("no memory key: %u are in use", HCA_KEYS - 1);
		free(mr);
		return ret;
	}
	mr->ibv.context = ibpd->context;
	mr->ibv.pd = ibpd;
	mr->ibv.handle = mr->index;
	mr->ibv.lkey = hca_key_next(mr->index);
	hca_pd_get(hca_pd(ibpd));
	*out = mr;
	return 0;
}

int hca_mr_register(struct ibv_pd *ibpd, void *addr, size_t length,
		    uint64_t iova, unsigned access, struct ibv_mr **out)
{
	const struct range r = {
		.addr = addr,
		.length = length,
		.iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
		.access = access,
	};
	struct hca_mr *mr;
	int ret = range_check(&r);

	if (!ret)
		ret = mr_new(ibpd, &mr);
	if (ret)
		return ret;
	mr_set_range(mr, &r);
	mr->ibv.rkey = mr->ibv.lkey;
	hca_remap_attach(mr);
	mr_publish(mr);
	hca_live_begin(&mr->ibv, HCA_MR);
	*out = &mr->ibv;
	return 0;
}

/* The rights were checked. */
static int register_in_region(struct ibv_pd *pd, struct hca_region *region, uint64_t offset,
			      const struct range *r, struct hca_mr **out)
{
	struct hca_mr *mr;
	int ret = mr_new(pd, &mr);

	if (ret)
		return ret;
	mr_set_range(mr, r);
	mr->ibv.rkey = mr->ibv.lkey;
	mr->base = region->addr + offset;
	mr->region = region;
	mr_publish(mr);
	hca_live_begin(&mr->ibv, HCA_MR);
	*out = mr;
	return 0;
}

int hca_mr_register_region(struct ibv_pd *pd, struct hca_region *region,
			   uint64_t offset, size_t length, unsigned access,
			   struct ibv_mr **out)
{
	const struct range r = { .length = length, .access = access };
	struct hca_mr *mr;
	int ret = rights_check(access);

	if (!ret)
		ret = register_in_region(pd, region, offset, &r, &mr);
	if (!ret)
		*out = &mr->ibv;
	return ret;
}

static void region_drop(struct hca_region *region, bool mapped)
{
	if (mapped)
		munmap(region->addr, region->length);
	hca_region_destroy(region);
}

int hca_mr_register_file(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			 int fd, unsigned access, struct ibv_mr **out)
{
	const struct range r = {
		/* As with other adapters. */
		.addr = (void *)(uintptr_t)offset,
		.length = length,
		.iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
		.access = access,
	};
	struct hca_region *region;
	struct hca_mr *mr;
	int ret = rights_check(access);

	if (ret)
		return ret;
	if (access & IBV_ACCESS_ON_DEMAND)
		return -EOPNOTSUPP;
	if (!length || r.iova + length < r.iova)
		return -EINVAL;
	ret = hca_region_adopt(fd, access & IBV_ACCESS_LOCAL_WRITE, &region);
	if (ret)
		return ret == -ENOSPC ? -ENOMEM : ret;
	ret = length > region->length || offset > region->length - length ? -EINVAL : 0;
	if (!ret)
		ret = register_in_region(pd, region, offset, &r, &mr);
	if (ret) {
		region_drop(region, true);
		return ret;
	}
	mr->by_file = true;
	*out = &mr->ibv;
	return 0;
}

int hca_mr_alloc_null(struct ibv_pd *ibpd, struct ibv_mr **out)
{
	const struct range all = { .length = SIZE_MAX,
				   .access = IBV_ACCESS_LOCAL_WRITE };
	struct hca_mr *mr;
	int ret = hca_null_hold();

	if (ret)
		return ret;
	ret = mr_new(ibpd, &mr);
	if (ret) {
		hca_null_release();
		return ret;
	}
	mr->null = true;
	mr_set_range(mr, &all);
	mr_publish(mr);
	hca_live_begin(&mr->ibv, HCA_MR);
	*out = &mr->ibv;
	return 0;
}

/* The attributes after ibv_rereg_mr(); those that no flag names remain. */
static struct range range_changed(const struct hca_mr *mr, int flags, void *addr,
				  size_t length, int access)
{
	struct range r = {
		.addr = mr->ibv.addr,
		.length = mr->ibv.length,
		.iova = mr->iova,
		.access = mr->access,
	};

	if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
		if ((r.access ^ (unsigned)access) & IBV_ACCESS_ZERO_BASED)
			r.iova = (uintptr_t)r.addr;
		r.access = (unsigned)access;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		r.addr = addr;
		r.length = length;
		r.iova = (uintptr_t)addr;
	}
	if (r.access & IBV_ACCESS_ZERO_BASED)
		r.iova = 0;
	return r;
}

bool hca_mr_may_change(struct ibv_mr *ibmr)
{
	const struct hca_mr *mr = hca_mr(ibmr);

	return hca_live(ibmr, HCA_MR) && !mr->null && !mr->imported && !mr->by_file;
}

int hca_mr_reregister(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd,
		      void *addr, size_t length, int access)
{
	struct hca_mr *mr = hca_mr(ibmr);
	struct range r = range_changed(mr, flags, addr, length, access);
	int ret;

	if (!flags)
		return -EINVAL;
	if ((flags & IBV_REREG_MR_CHANGE_PD) &&
	    (!hca_live(pd, HCA_PD) || pd->context != ibmr->context))
		return -EINVAL;
	if (mr->dm) /* device memory has no address in the program */
		return -EOPNOTSUPP;
	if (hca_context_inherited(ibmr->context))
		return -ENODEV;
	ret = range_check(&r);
	if (!ret)
		ret = mr_withdraw(mr);
	if (ret)
		return ret;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		hca_pd_put(hca_pd(ibmr->pd));
		hca_pd_get(hca_pd(pd));
		ibmr->pd = pd;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		hca_remap_detach(mr);
	mr_set_range(mr, &r);
	/* With other memory the region gets another key, so that the old key gives no
	 * access to it. Rights and domain are checked in each access, so the key remains
	 * when these change, as with other adapters: posted requests and peers still use it. */
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		hca_remap_attach(mr);
		ibmr->lkey = ibmr->rkey = hca_key_next(mr->index);
	}
	mr_publish(mr);
	return 0;
}

int hca_mr_deregister(struct ibv_mr *ibmr)
{
	struct hca_mr *mr = hca_mr(ibmr);
	int ret;

	if (!hca_live(ibmr, HCA_MR))
		return -EINVAL;
	if (mr->imported) {
		hca_mr_end_import(mr);
		return 0;
	}
	ret = mr_withdraw(mr);
	if (ret)
		return ret;
	hca_live_end(ibmr, HCA_MR);
	spin_lock(&hca_key_lock);
	hca_key_forget(mr->index);
	spin_unlock(&hca_key_lock);
	hca_key_put(mr->index);
	if (mr->null && !hca_context_inherited(ibmr->context))
		hca_null_release();
	if (mr->dm)
		atomic_fetch_sub(&mr->dm->shared.users, 1);
	else if (mr->by_file)
		region_drop(mr->region, !hca_context_inherited(ibmr->context));
	else if (!hca_context_inherited(ibmr->context))
		hca_remap_detach(mr);
	hca_pd_put(hca_pd(ibmr->pd));
	free(mr);
	return 0;
}
