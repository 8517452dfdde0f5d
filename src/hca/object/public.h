/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs and keys as other processes of this host see them in shared memory. */
#ifndef HCA_PUBLIC_H
#define HCA_PUBLIC_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Identity of an XRC domain on this host: that of an inode, or random. A target QP delivers
 * to SRQs of its own domain only. */
struct hca_xrcd_id {
	uint64_t hi, lo; /* hi is never 0 */
};

/* A QP or XRC SRQ as peers see it, in hca_segment. */
struct hca_qp_public {
	_Atomic uint32_t qpn;     /* 0: no such QP */
	_Atomic uint32_t state;   /* enum ibv_qp_state */
	_Atomic uint32_t dest_qpn;
	_Atomic uint32_t access;  /* enum ibv_access_flags */
	_Atomic uint32_t pd_id;
	_Atomic uint32_t type;    /* enum ibv_qp_type */
	_Atomic uint32_t device;  /* index */
	_Atomic uint32_t transport; /* index into hca_segment.transports */
	_Atomic uint32_t min_rnr_timer;
	_Atomic uint32_t rq_psn;     /* the attribute rq_psn of the change to RTR */
	_Atomic uint32_t connection; /* counts settings of rq_psn */
	/* Number of an XRC SRQ; then qpn is 0 and pd_id is that of the SRQ. */
	_Atomic uint32_t srqn;
	/* Domain of a target QP or XRC SRQ; written before qpn and srqn. */
	struct hca_xrcd_id xrcd;
};

enum hca_key_flags {
	HCA_KEY_WINDOW = 1 << 0,
	HCA_KEY_ON_DEMAND = 1 << 1, /* registered on demand: pages may be missing */
	HCA_KEY_NULL = 1 << 2,      /* null region: reads give zeros, writes are discarded */
};

/* An entry of the table of keys (MR or MW), a file that peers map. */
struct hca_key {
	_Atomic uint32_t key;     /* 0: free; written last, cleared first */
	uint32_t access;
	uint64_t iova;
	uint64_t length;
	uint64_t addr;            /* in the owner's address space */
	uint32_t pd_id;
	/* pd_id if hca_sge_resolve() may resolve the key, else 0. So one comparison
	 * excludes windows and the keys that need the functions of sge.h. */
	uint32_t local_pd;
	uint32_t qpn;             /* window of type 2: the only QP that may use it; else 0 */
	uint32_t flags;           /* enum hca_key_flags */
	uint32_t serial;          /* counts how often the entry was published */
	uint32_t region_id;       /* region that peers may map (region.h), 0: none */
	uint64_t region_offset;   /* of `addr` in that region */
};

/* A remote access to be checked by hca_key_check(), and the result. */
struct hca_key_use {
	uint32_t rkey;
	uint32_t pd_id;  /* of the responder's QP */
	uint32_t qpn;    /* the responder's QP */
	unsigned access; /* enum ibv_access_flags */
	uint64_t iova;
	uint64_t length;
	/* Out: the address in the owner's address space, enum hca_key_flags, and the region
	 * that peers may map with the offset in it (region_id 0: none). */
	uint64_t addr;
	uint32_t flags;
	uint32_t region_id;
	uint64_t region_offset;
};

_Static_assert(sizeof(struct hca_qp_public) == 64, "one line per QP");
_Static_assert(sizeof(struct hca_key) == 64, "one line per key");

static inline bool hca_xrcd_same(const struct hca_xrcd_id *a,
				 const struct hca_xrcd_id *b)
{
	return a->hi == b->hi && a->lo == b->lo;
}

#endif
