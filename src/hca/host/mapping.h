/* SPDX-License-Identifier: BSD-2-Clause */
/* Which memory of the process is mapped, and how. */
#ifndef HCA_MAPPING_H
#define HCA_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

/* Is the whole range mapped readable, and with `write` writable? */
bool hca_range_mapped(const void *addr, size_t length, bool write);
/* Closes the descriptors that it keeps; at the adapter's end and in a forked child. */
void hca_mapping_stop(void);
/* May the program read, or write, the 4 bytes at this aligned address? */
bool hca_page_usable(void *addr, bool write);

#endif
