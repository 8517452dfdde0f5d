/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory: ibv_alloc_dm(3). Here it is ordinary memory in a region (region.h), which
 * peers on this host can map and write by plain stores. A forked child does not inherit it.
 */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hca/hca.h"
#include "hca/limits.h"
#include "hca/memory/device_memory.h"
#include "hca/memory/import.h"
#include "hca/memory/region.h"
#include "hca/object/context.h"
#include "hca/object/dm.h"
#include "hca/object/importable.h"
#include "hca/object/live.h"
#include "hca/object/mr.h"
#include "hca/run/dma.h"
#include "hca/share/process.h"
#include "util/cancel.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"

#define PAGE_BITS 12
#define PAGE (UINT64_C(1) << PAGE_BITS)
#define ALIGN_BITS_MAX 21

/* Bytes of device memory allocated by this process. */
static _Atomic uint64_t allocated;
/* Allocated device memory, which can be imported. */
static struct list memories = { &memories, &memories };

static int take(uint64_t bytes)
{
	if (atomic_fetch_add(&allocated, bytes) + bytes <= HCA_MAX_DM_BYTES)
		return 0;
	atomic_fetch_sub(&allocated, bytes);
	return -ENOMEM;
}

/* Maps the region at an address with the alignment requested. 0 or a negative errno. */
static int map_aligned(struct hca_region *r, uint64_t align)
{
	uint64_t room = r->length + align - PAGE;
	uint8_t *whole = mmap(NULL, room, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *at;
	uint64_t before;
	int ret;

	if (whole == MAP_FAILED)
		return -errno;
	at = (uint8_t *)(((uintptr_t)whole + align - 1) & ~(align - 1));
	before = (uint64_t)(at - whole);
	if (mmap(at, r->length, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | MAP_POPULATE, r->fd, 0) == MAP_FAILED) {
		ret = -errno;
		munmap(whole, room);
		return ret;
	}
	if (before)
		munmap(whole, before);
	if (room > before + r->length)
		munmap(at + r->length, room - before - r->length);
	madvise(at, r->length, MADV_DONTFORK);
	r->addr = at;
	return 0;
}

/* Device memory is read and written in whole words. Other adapters refuse anything else, and a
 * program that works here must work there. */
#define WORD 4

static bool may_copy(const struct hca_dm *dm, uint64_t offset, size_t length)
{
	return offset % WORD == 0 && length % WORD == 0 &&
	       length <= dm->length && offset <= dm->length - length;
}

static int copy_to(struct ibv_dm *ibdm, uint64_t offset, const void *from,
		   size_t length)
{
	struct hca_dm *dm = hca_dm(ibdm);

	if (!may_copy(dm, offset, length))
		return EINVAL;
	hca_dma_copy(dm->region->addr + offset, from, length);
	return 0;
}

static int copy_from(void *to, struct ibv_dm *ibdm, uint64_t offset,
		     size_t length)
{
	struct hca_dm *dm = hca_dm(ibdm);

	if (!may_copy(dm, offset, length))
		return EINVAL;
	hca_dma_copy(to, dm->region->addr + offset, length);
	return 0;
}

static int dm_alloc(struct ibv_context *ctx, const struct ibv_alloc_dm_attr *attr,
		 struct ibv_dm **out)
{
	static _Atomic uint32_t next_handle = 1;
	uint64_t bytes = (attr->length + PAGE - 1) & ~(PAGE - 1);
	struct hca_dm *dm;
	int ret;

	if (attr->comp_mask || attr->length == 0 ||
	    attr->length > HCA_MAX_DM_BYTES ||
	    attr->log_align_req > ALIGN_BITS_MAX)
		return -EINVAL;
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return -ENOMEM;
	ret = take(bytes);
	if (ret)
		goto err_free;
	ret = hca_region_create(bytes, &dm->region);
	if (ret)
		goto err_take;
	ret = map_aligned(dm->region,
			  UINT64_C(1) << MAX(attr->log_align_req, PAGE_BITS));
	if (ret)
		goto err_region;
	dm->length = attr->length;
	dm->ibv = (struct ibv_dm){
		.context = ctx,
		.memcpy_to_dm = copy_to,
		.memcpy_from_dm = copy_from,
		.handle = atomic_fetch_add(&next_handle, 1),
	};
	hca_context_get(hca_context(ctx));
	hca_importable_add(&memories, &dm->shared, ctx, dm->ibv.handle);
	hca_live_begin(&dm->ibv, HCA_DM);
	*out = &dm->ibv;
	return 0;

err_region:
	hca_region_destroy(dm->region);
err_take:
	atomic_fetch_sub(&allocated, bytes);
err_free:
	free(dm);
	return ret == -ENOSPC ? -ENOMEM : ret;
}

static void end_import(struct hca_dm *dm)
{
	hca_live_end(&dm->ibv, HCA_DM);
	atomic_fetch_sub(&dm->imported_from->shared.users, 1);
	hca_context_put(hca_context(dm->ibv.context));
	free(dm);
}

int hca_dm_import(struct ibv_context *ctx, uint32_t handle, struct ibv_dm **out)
{
	struct hca_dm *dm = calloc(1, sizeof(*dm)), *from;
	struct hca_importable *found;

	if (!dm)
		return -ENOMEM;
	found = hca_importable_get(&memories, ctx, handle);
	if (!found) {
		free(dm);
		return -EINVAL;
	}
	from = container_of(found, struct hca_dm, shared);
	dm->ibv = from->ibv;
	dm->ibv.context = ctx;
	dm->region = from->region;
	dm->length = from->length;
	dm->imported_from = from;
	hca_context_get(hca_context(ctx));
	hca_live_begin(&dm->ibv, HCA_DM);
	*out = &dm->ibv;
	return 0;
}

void hca_dm_unimport(struct ibv_dm *ibdm)
{
	if (hca_live(ibdm, HCA_DM) && hca_dm(ibdm)->imported_from)
		end_import(hca_dm(ibdm));
}

static int dm_free(struct ibv_dm *ibdm)
{
	struct hca_dm *dm = hca_dm(ibdm);
	uint64_t bytes;

	if (!hca_live(ibdm, HCA_DM))
		return -EINVAL;
	if (dm->imported_from) {
		end_import(dm);
		return 0;
	}
	if (!hca_importable_remove(&dm->shared))
		return -EBUSY;
	hca_live_end(ibdm, HCA_DM);
	bytes = dm->region->length;
	if (!hca_context_inherited(ibdm->context))
		munmap(dm->region->addr, bytes);
	hca_region_destroy(dm->region);
	atomic_fetch_sub(&allocated, bytes);
	hca_context_put(hca_context(ibdm->context));
	free(dm);
	return 0;
}

static int dm_register(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t offset,
		    size_t length, unsigned access, struct ibv_mr **out)
{
	struct hca_dm *dm = hca_dm(ibdm);
	int ret;

	/* Zero based: work requests give offsets from the registration's start. */
	if (!hca_live(ibdm, HCA_DM) || !hca_live(pd, HCA_PD) ||
	    !(access & IBV_ACCESS_ZERO_BASED) || ibdm->context != pd->context ||
	    length > dm->length || offset > dm->length - length)
		return -EINVAL;
	ret = hca_mr_register_region(pd, dm->region, offset, length,
				     access, out);
	if (ret)
		return ret;
	/* The MR refers to the original: an import may be freed before the MR. */
	dm = dm->imported_from ? dm->imported_from : dm;
	hca_mr(*out)->dm = dm;
	atomic_fetch_add(&dm->shared.users, 1);
	return 0;
}

/* ---- entries of the context's table ---- */

static struct ibv_dm *op_alloc_dm(struct ibv_context *ctx,
				  struct ibv_alloc_dm_attr *attr)
{
	CANCEL_OFF;
	struct ibv_dm *dm;
	int ret = dm_alloc(ctx, attr, &dm);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	return dm;
}

static int op_free_dm(struct ibv_dm *dm)
{
	CANCEL_OFF;
	return -dm_free(dm);
}

static struct ibv_mr *op_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
				   uint64_t offset, size_t length,
				   unsigned access)
{
	CANCEL_OFF;
	struct ibv_mr *mr;
	int ret = dm_register(pd, dm, offset, length, access, &mr);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	return mr;
}

void hca_dm_ops_init(struct verbs_context *v)
{
	v->alloc_dm = op_alloc_dm;
	v->free_dm = op_free_dm;
	v->reg_dm_mr = op_reg_dm_mr;
}
