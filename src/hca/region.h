/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of this process that peers may map: regions, each a memory file of a
 * fixed size. Device memory and application memory that was moved into a file
 * (BUSBAR_MAP_MEMORY) lie in regions. A key whose memory does names the region
 * and the offset in the shared key table; a peer then asks for the descriptor.
 *
 * Not here: who may ask, and the peer's side (the transport's).
 */
#ifndef HCA_REGION_H
#define HCA_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The lower bits of an identifier are its place in tables of this size. */
#define HCA_REGIONS 1024u

struct hca_region {
	uint32_t id;      /* never 0, not used again */
	int fd;
	uint64_t length;  /* of the file, for good */
	uint8_t *addr;    /* of its first byte in this process */
	_Atomic bool lent;
};

/* A region of `length` bytes (whole pages), sealed against any other size and
 * not mapped yet. 0, -ENOSPC (too many) or another negative errno. */
int hca_region_create(uint64_t length, struct hca_region **out);
/* Peers are told to drop it. No key may name it any more; the caller unmaps. */
void hca_region_destroy(struct hca_region *r);
/* A descriptor of the region for a peer, to be closed by the caller: read-only
 * unless `writable`. -ENOENT: there is no such region. */
int hca_region_lend(uint32_t id, bool writable, uint64_t *length);
/* In a forked child: the parent's regions are not its. */
void hca_regions_forked(void);

#endif
