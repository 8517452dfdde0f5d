/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory: its verbs, and regions on it. */
#ifndef HCA_DEVICE_MEMORY_H
#define HCA_DEVICE_MEMORY_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

struct hca_region;

/* mr.c: makes a zero-based MR of bytes [offset, offset + length) of `region`. 0 or a negative
 * errno. */
int hca_mr_register_region(struct ibv_pd *pd, struct hca_region *region,
			   uint64_t offset, size_t length, unsigned access,
			   struct ibv_mr **out);
/* Enters the verbs of device memory in a context's table. */
void hca_dm_ops_init(struct verbs_context *v);

#endif
