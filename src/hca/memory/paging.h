/* SPDX-License-Identifier: BSD-2-Clause */
/* Of paging.c: the null region. For src/hca only. */
#ifndef HCA_PAGING_H
#define HCA_PAGING_H

/* The null region's memory: made for the first null region, freed with the last. */
int hca_null_hold(void);
void hca_null_release(void);
/* In a forked child, which does not inherit that memory. */
void hca_paging_forked(void);

#endif
