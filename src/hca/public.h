/* SPDX-License-Identifier: BSD-2-Clause */
/* What peers on this host may know of a queue pair and of a key; in shared memory. */
#ifndef HCA_PUBLIC_H
#define HCA_PUBLIC_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Whose XRC SRQs a target QP may serve: an inode of the host, or random. */
struct hca_xrcd_id {
	uint64_t hi, lo; /* hi is never 0 */
};

/* What peers on this host may know of a QP; in the shared segment. */
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
	_Atomic uint32_t rq_psn;     /* as it was set for RTR */
	_Atomic uint32_t connection; /* grows whenever it is */
	/* Of an XRC SRQ (then qpn is 0; pd_id is that of the SRQ). */
	_Atomic uint32_t srqn;
	/* Of a target QP or an XRC SRQ; written before qpn and srqn. */
	struct hca_xrcd_id xrcd;
};

enum hca_key_flags {
	HCA_KEY_WINDOW = 1 << 0,
	HCA_KEY_ON_DEMAND = 1 << 1, /* its pages need not be there */
	HCA_KEY_NULL = 1 << 2,      /* no memory: zeros, and writes go nowhere */
};

/* What peers on this host may know of a key (MR or MW); in the shared segment. */
struct hca_key {
	_Atomic uint32_t key;     /* 0: free; written last, cleared first */
	uint32_t access;
	uint64_t iova;
	uint64_t length;
	uint64_t addr;            /* in the owner's address space */
	uint32_t pd_id;
	/* The same for what hca_sge_resolve() answers, else 0: no further test
	 * is needed there to leave out windows and what needs more care. */
	uint32_t local_pd;
	uint32_t qpn;             /* window of type 2: of this QP only; 0: any */
	uint32_t flags;           /* enum hca_key_flags */
	uint32_t serial;          /* grows with each use of the entry */
	uint32_t region_id;       /* that peers may map (region.h), 0: none */
	uint64_t region_offset;   /* of the memory in it */
};

/* A remote access, as hca_key_check() judges it. */
struct hca_key_use {
	uint32_t rkey;
	uint32_t pd_id;  /* of the responder's QP */
	uint32_t qpn;    /* the responder's QP */
	unsigned access; /* enum ibv_access_flags */
	uint64_t iova;
	uint64_t length;
	/* Out: the address in the owner's space, enum hca_key_flags, and where
	 * that is in a region that may be mapped (0: in none). */
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

/*
 * Checks an access of a peer against the owner's table of keys, of which `count` may
 * be looked at. IBV_WC_SUCCESS or IBV_WC_REM_ACCESS_ERR.
 */
enum ibv_wc_status hca_key_check(const struct hca_key *keys, uint32_t count,
				 struct hca_key_use *use);

/* The same for the table of this process. */
enum ibv_wc_status hca_key_check_own(struct hca_key_use *use);

/* May peers use this key, one of ours, or could they before it was withdrawn? */
bool hca_key_is_remote(uint32_t key);

#endif
