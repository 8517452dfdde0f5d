/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that may not be there: what only the hca uses of mapping.c and paging.c.
 */
#ifndef HCA_PAGING_H
#define HCA_PAGING_H

#include <stdbool.h>
#include <stddef.h>

/* ---- mapping.c ---- */
/* Is all of it mapped, for reading and perhaps for writing? */
bool hca_range_mapped(const void *addr, size_t length, bool write);
/* Gives back what it keeps; at the adapter's end and in a forked child. */
void hca_mapping_stop(void);

/* ---- paging.c ---- */
/* The null region's memory: made with the first of them, ended with the last. */
int hca_null_hold(void);
void hca_null_release(void);
/* In a forked child, which has not inherited it. */
void hca_null_forked(void);

#endif
