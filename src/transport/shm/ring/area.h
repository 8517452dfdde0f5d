/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory file of a link, and the place of data in a data area. */
#ifndef TRANSPORT_SHM_RING_AREA_H
#define TRANSPORT_SHM_RING_AREA_H

#include <stdbool.h>

#include "transport/shm/ring/ring.h"

/* A memory file for a struct shm_area, which cannot become shorter. A descriptor or a negative
 * errno. */
int shm_area_create(void);

/* NULL: it cannot be mapped; errno is set. */
struct shm_area *shm_area_map(int fd);

/* The place of `bytes` contiguous bytes in a data area that is used as a ring and of which
 * [tail, head) is in use; *end: the new head. False: there is no room. */
bool shm_area_place(uint32_t head, uint32_t tail, uint32_t bytes, uint32_t *offset,
		    uint32_t *end);

/* True if the file has `size` bytes and cannot become shorter, so that a mapping of it
 * never faults. */
bool shm_memory_stays(int fd, size_t size);

#endif
