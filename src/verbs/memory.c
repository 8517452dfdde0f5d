/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, memory regions, and the functions for fork(). Memory windows,
 * device memory and advice go through the context's tables of functions.
 */
#include <infiniband/verbs.h>

#include <errno.h>

#include "hca/hca.h"
#include "verbs/abi.h"
#include "verbs/system.h"

/* Macros in verbs.h of these names check the flags first. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* Not in the installed headers, but exported. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	VERBS_FORWARD(context, verbs_null, ibv_alloc_pd, context);

	struct ibv_pd *pd;
	int ret = context ? hca_pd_alloc(context, &pd) : -EINVAL;

	return ret ? verbs_null(ret) : pd;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	VERBS_FORWARD(OWNER(pd), verbs_errno, ibv_dealloc_pd, pd);
	return verbs_errno(pd ? hca_pd_dealloc(pd) : -EINVAL);
}

static struct ibv_mr *verbs_mr_register(struct ibv_pd *pd, void *addr,
					size_t length, uint64_t iova,
					unsigned int access)
{
	struct ibv_mr *mr;
	int ret;

	if (!pd)
		return verbs_null(-EINVAL);
	/* Optional flags permit optimisations, which an adapter need not use. */
	access &= ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
	ret = hca_mr_register(pd, addr, length, iova, access, &mr);
	return ret ? verbs_null(ret) : mr;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
				 int access)
{
	VERBS_FORWARD(OWNER(pd), verbs_null, ibv_reg_mr, pd, addr, length,
		      access);
	return verbs_mr_register(pd, addr, length, (uintptr_t)addr,
				 (unsigned int)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr,
				      size_t length, uint64_t iova, int access)
{
	VERBS_FORWARD(OWNER(pd), verbs_null, ibv_reg_mr_iova, pd, addr, length,
		      iova, access);
	return verbs_mr_register(pd, addr, length, iova, (unsigned int)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
				       size_t length, uint64_t iova,
				       unsigned int access)
{
	VERBS_FORWARD(OWNER(pd), verbs_null, ibv_reg_mr_iova2, pd, addr, length,
		      iova, access);
	return verbs_mr_register(pd, addr, length, iova, access);
}

/* Of files the adapter takes those that it can lend to peers: memory files (memfd_create(2))
 * that are sealed against shrinking. */
EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
					size_t length, uint64_t iova, int fd,
					int access)
{
	VERBS_FORWARD(OWNER(pd), verbs_null, ibv_reg_dmabuf_mr, pd, offset,
		      length, iova, fd, access);

	struct ibv_mr *mr;
	int ret = pd ? hca_mr_register_file(pd, offset, length, iova, fd,
					    (unsigned int)access &
						    ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE,
					    &mr) :
		       -EINVAL;

	return ret ? verbs_null(ret) : mr;
}

/* As in rdma-core, IBV_REREG_MR_ERR_INPUT is for what the library refuses, and
 * IBV_REREG_MR_ERR_CMD for what the device refuses; errno has the cause. The old region is
 * valid after either, as the adapter changes all or nothing. */
EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
			void *addr, size_t length, int access)
{
	VERBS_FORWARD(OWNER(mr), verbs_raw, ibv_rereg_mr, mr, flags, pd, addr,
		      length, access);

	int ret;

	if (!mr || !hca_mr_may_change(mr) || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) ||
	    ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!addr || !length)) ||
	    (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS)) ||
	    ((flags & IBV_REREG_MR_CHANGE_PD) && !pd)) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	ret = hca_mr_reregister(mr, flags, pd, addr, length,
				access & ~IBV_ACCESS_OPTIONAL_RANGE);
	if (ret == 0)
		return 0;
	errno = -ret;
	return IBV_REREG_MR_ERR_CMD;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	VERBS_FORWARD(OWNER(mr), verbs_errno, ibv_dereg_mr, mr);
	return verbs_errno(mr ? hca_mr_deregister(mr) : -EINVAL);
}

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context,
				    uint32_t pd_handle)
{
	VERBS_FORWARD(context, verbs_null, ibv_import_pd, context, pd_handle);

	struct ibv_pd *pd;
	int ret = context ? hca_pd_import(context, pd_handle, &pd) : -EINVAL;

	return ret ? verbs_null(ret) : pd;
}

EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	VERBS_FORWARD_VOID(OWNER(pd), ibv_unimport_pd, pd);
	if (pd)
		hca_pd_unimport(pd);
}

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	VERBS_FORWARD(OWNER(pd), verbs_null, ibv_import_mr, pd, mr_handle);

	struct ibv_mr *mr;
	int ret = pd ? hca_mr_import(pd, mr_handle, &mr) : -EINVAL;

	return ret ? verbs_null(ret) : mr;
}

EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	VERBS_FORWARD_VOID(OWNER(mr), ibv_unimport_mr, mr);
	if (mr)
		hca_mr_unimport(mr);
}

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context,
				    uint32_t dm_handle)
{
	VERBS_FORWARD(context, verbs_null, ibv_import_dm, context, dm_handle);

	struct ibv_dm *dm;
	int ret = context ? hca_dm_import(context, dm_handle, &dm) : -EINVAL;

	return ret ? verbs_null(ret) : dm;
}

EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	VERBS_FORWARD_VOID(OWNER(dm), ibv_unimport_dm, dm);
	if (dm)
		hca_dm_unimport(dm);
}

/*
 * The functions for fork(). soft0 pins no pages: a peer reaches the pages that the process
 * has at that moment, so fork() does no harm and there is nothing to do. The system's
 * library has something to do if there may be a real device; its providers call the
 * last two functions for their own memory.
 */
EXPORT int ibv_fork_init(void)
{
	return verbs_system_open() ? VERBS_SYSTEM(ibv_fork_init)() : 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	if (verbs_system_open() && VERBS_SYSTEM(ibv_is_fork_initialized))
		return VERBS_SYSTEM(ibv_is_fork_initialized)();
	return IBV_FORK_UNNEEDED;
}

EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	return verbs_system_opened() ?
		       VERBS_SYSTEM(ibv_dontfork_range)(base, size) :
		       0;
}

EXPORT int ibv_dofork_range(void *base, size_t size)
{
	return verbs_system_opened() ?
		       VERBS_SYSTEM(ibv_dofork_range)(base, size) :
		       0;
}
