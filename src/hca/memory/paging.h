/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that may be unmapped or on demand: functions of mapping.c and paging.c that only
 * hca uses.
 */
#ifndef HCA_PAGING_H
#define HCA_PAGING_H

#include <stdbool.h>
#include <stddef.h>

/* ---- mapping.c ---- */
/* Is the whole range mapped readable, and with `write` writable? */
bool hca_range_mapped(const void *addr, size_t length, bool write);
/* Closes the descriptors that it keeps; at the adapter's end and in a forked child. */
void hca_mapping_stop(void);

/* ---- paging.c ---- */
/* The null region's memory: made for the first null region, freed with the last. */
int hca_null_hold(void);
void hca_null_release(void);
/* In a forked child, which does not inherit the memory. */
void hca_null_forked(void);

#endif
