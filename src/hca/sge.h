/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to the memory that a scatter/gather entry names, where hca_sge_resolve()
 * (process.h) has no answer.
 */
#ifndef HCA_SGE_H
#define HCA_SGE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/pd.h"

/* Copies `length` bytes from or to offset `at` of `sge`, whatever its key. 0 or
 * -EFAULT: not allowed, or a page is not there. They may call the kernel. */
int hca_sge_read(const struct hca_pd *pd, const struct ibv_sge *sge,
		 uint32_t at, void *to, uint32_t length);

int hca_sge_write(const struct hca_pd *pd, const struct ibv_sge *sge,
		  uint32_t at, const void *from, uint32_t length);

/* An address for the kernel to copy from or to (process_vm_readv), never for the
 * program: its pages may be missing. NULL: not allowed. */
void *hca_sge_for_kernel(const struct hca_pd *pd, const struct ibv_sge *sge,
			 unsigned access);

/* memcpy() that survives a missing page: 0 or -EFAULT. It calls the kernel. */
int hca_copy_careful(void *to, const void *from, size_t length);

/* May the program read, or write, the 4 bytes at this aligned address? */
bool hca_page_usable(void *addr, bool write);

#endif
