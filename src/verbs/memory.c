/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, memory regions, and what the interface has about fork().
 * Memory windows, device memory and advice go through the context's tables.
 */
#include <infiniband/verbs.h>

#include <errno.h>

#include "hca/hca.h"
#include "verbs/abi.h"

/* verbs.h covers these names by macros that look at the flags first. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* Not in the installed headers, but exported. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd;
	int ret = context ? hca_pd_alloc(context, &pd) : -EINVAL;

	return ret ? verbs_null(ret) : pd;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
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
	/* Permissions to be lax, which an adapter is free not to use. */
	access &= ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
	ret = hca_mr_register(pd, addr, length, iova, access, &mr);
	return ret ? verbs_null(ret) : mr;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
				 int access)
{
	return verbs_mr_register(pd, addr, length, (uintptr_t)addr,
				 (unsigned int)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr,
				      size_t length, uint64_t iova, int access)
{
	return verbs_mr_register(pd, addr, length, iova, (unsigned int)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
				       size_t length, uint64_t iova,
				       unsigned int access)
{
	return verbs_mr_register(pd, addr, length, iova, access);
}

/* A dma-buf has no address in this process before somebody maps it. */
EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
					size_t length, uint64_t iova, int fd,
					int access)
{
	return verbs_null(pd ? -EOPNOTSUPP : -EINVAL);
}

/* The adapter changes all or nothing, so the old region is valid after any
 * failure; that is what ERR_INPUT says, whatever errno says. */
EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
			void *addr, size_t length, int access)
{
	int ret = -EINVAL;

	if (!mr || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) ||
	    ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!addr || !length)) ||
	    (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS)) ||
	    ((flags & IBV_REREG_MR_CHANGE_PD) && !pd))
		goto err;
	ret = hca_mr_reregister(mr, flags, pd, addr, length,
				access & ~IBV_ACCESS_OPTIONAL_RANGE);
	if (ret == 0)
		return 0;
err:
	errno = -ret;
	return IBV_REREG_MR_ERR_INPUT;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	return verbs_errno(mr ? hca_mr_deregister(mr) : -EINVAL);
}

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context,
				    uint32_t pd_handle)
{
	return verbs_null(-EOPNOTSUPP);
}

EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
}

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	return verbs_null(-EOPNOTSUPP);
}

EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
}

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context,
				    uint32_t dm_handle)
{
	return verbs_null(-EOPNOTSUPP);
}

EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
}

/*
 * Registration pins nothing: a peer reaches the pages that the process has at
 * that moment. So a fork() can move no page away from under the adapter, and
 * these functions succeed because there is nothing left to do.
 */
EXPORT int ibv_fork_init(void)
{
	return 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

EXPORT int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
