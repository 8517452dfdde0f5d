/* SPDX-License-Identifier: BSD-2-Clause */
/* Access to the memory of scatter/gather entries that hca_sge_resolve() (process.h) does not
 * resolve: memory whose pages may be missing, and null regions. */
#ifndef HCA_SGE_H
#define HCA_SGE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/pd.h"

/* Copies `length` bytes from or to offset `at` of `sge`, for keys of every kind. 0, or
 * -EFAULT: the key does not permit it, or a page is missing. May make system calls. */
int hca_sge_read(const struct hca_pd *pd, const struct ibv_sge *sge,
		 uint32_t at, void *to, uint32_t length);

int hca_sge_write(const struct hca_pd *pd, const struct ibv_sge *sge,
		  uint32_t at, const void *from, uint32_t length);

/* The address to give to process_vm_readv() and the like, or NULL: the key does not permit
 * the access. Must not be dereferenced, because pages may be missing. */
void *hca_sge_for_kernel(const struct hca_pd *pd, const struct ibv_sge *sge,
			 unsigned access);

/* memcpy() that returns -EFAULT where a page is missing, else 0. Makes a system call. */
int hca_copy_careful(void *to, const void *from, size_t length);

#endif
