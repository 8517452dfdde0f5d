/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of this process that peers may map: regions, each a memory file of a fixed size.
 * Device memory and application memory that was moved into a file (BUSBAR_MAP_MEMORY) or
 * registered by its file (ibv_reg_dmabuf_mr) are in regions. A key for such memory has the
 * region's number and the offset in the shared key table; a peer then asks for the descriptor.
 *
 * Not here: which peers may ask (peers.h), and the peer's side (in the transport).
 */
#ifndef HCA_REGION_H
#define HCA_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The lower bits of an identifier are its index in tables of this size. */
#define HCA_REGIONS 1024u

struct hca_region {
	uint32_t id;      /* never 0, never used again */
	int fd;
	uint64_t length;  /* of the file; never changes */
	uint8_t *addr;    /* of its first byte in this process */
	_Atomic bool lent;
};

/* A region of `length` bytes (whole pages), sealed against any other size and
 * not mapped yet. 0, -ENOSPC (too many) or another negative errno. */
int hca_region_create(uint64_t length, struct hca_region **out);
/* A region of a memory file of the program's, which is sealed against shrinking, mapped readable
 * and, if `writable`, writable; it has a descriptor of its own. 0, -EBADF, -EOPNOTSUPP (no such
 * file), -EACCES (it may not be mapped so), -ENOSPC (too many) or another negative errno. */
int hca_region_adopt(int fd, bool writable, struct hca_region **out);
/* Peers are told to unmap it. No key may name it any more; the caller unmaps it here. */
void hca_region_destroy(struct hca_region *r);
/* A descriptor of the region for a peer, to be closed by the caller: read-only
 * unless `writable`. -ENOENT: there is no such region. */
int hca_region_lend(uint32_t id, bool writable, uint64_t *length);
/* In a forked child: forgets the parent's regions. */
void hca_regions_forked(void);

#endif
