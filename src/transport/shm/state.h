/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport shm: queue pairs of processes on one host.
 *
 * Two processes share one link, whatever the number of their QPs. A link is a
 * memory file with a ring of slots and a data area in each direction, plus a
 * Unix socket that carried the handshake and whose hang-up tells of the peer's
 * death. Small messages travel inside a slot, larger ones in fragments through the
 * data area, or, where a setting says so, they stay where they are and the
 * receiver pulls them (access.c). RDMA WRITE and READ are done by the initiator
 * alone (onesided.c) where it reaches the target's memory, with plain stores and
 * loads where it has that mapped (map.c); where not the target carries them out
 * (target.c). ATOMIC operations are the responder's (atomic.c), except on mapped
 * memory.
 *
 * Reliability works on messages as the InfiniBand transport does on packets:
 * each carries its sequence number (PSN); the receiver executes the expected
 * one and marks any other, and one for which no receive is posted, in the slot;
 * the sender then goes back (go-back-N) after the RNR or retry time. A slot
 * that was passed without a mark is acknowledged.
 *
 * Trust: a peer may be another user's, can err, or mean harm. Who it is says the
 * kernel (hca/peers.h); what it says of itself is not believed (guard.c). Everything
 * read from the link is copied once and checked; a peer that breaks the rules loses
 * the link and nothing else happens. Of another user's process nothing is used that
 * it could make wait: no system call on its memory, and no eventfd, which several
 * processes hold and each of them can make block.
 */
#ifndef TRANSPORT_SHM_STATE_H
#define TRANSPORT_SHM_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hca/path.h"
#include "hca/process.h"
#include "hca/progress.h"
#include "hca/promise.h"
#include "hca/public.h"
#include "hca/qp.h"
#include "hca/region.h"
#include "transport/shm/ring.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/spin.h"

struct shm_responder;

#define SHM_LINKS 1024

/* Who announces for so long that it copies has stopped in the middle of it, or
 * lies: it is not waited for any more. */
#define SHM_FENCE_LIMIT_NS UINT64_C(10000000000)
_Static_assert(SHM_LINKS <= HCA_LINKS, "all links can be shown");

enum shm_link_state {
	SHM_LINK_FREE,
	SHM_LINK_CONNECTING, /* our HELLO is on its way */
	SHM_LINK_ACCEPTING,  /* peer's HELLO came, READY not yet */
	SHM_LINK_UP,
	SHM_LINK_DEAD,       /* waits for its users to leave */
};

/* How we reach a peer's memory that is not mapped. */
enum shm_path {
	SHM_PATH_TARGET,     /* not at all: the peer carries operations out */
	SHM_PATH_PROCMEM,    /* by its /proc/self/mem, whose descriptor we have */
	SHM_PATH_PROCESS_VM, /* by process_vm_readv and process_vm_writev */
};

/* A region of the peer; by the lower bits of its identifier. */
struct shm_mapping {
	_Atomic uint32_t id;    /* 0: none; written last, cleared first */
	_Atomic uint32_t asked; /* the region last asked for */
	_Atomic bool asked_to_write;
	bool writable;
	uint8_t *base;
	uint64_t length;
};

/* A transmitted slot of ours. */
struct shm_inflight {
	struct hca_qp *qp; /* NULL: nobody waits for it */
	uint32_t index;    /* of the send queue entry */
	uint32_t data_end; /* data area is free up to here behind this slot */
	uint32_t psn;
	uint16_t epoch;    /* of the QP when it was transmitted */
	uint8_t kind;      /* enum shm_inflight_kind */
};

/* A slot that is none of these says how the message ended, and no more. */
enum shm_inflight_kind {
	SHM_PART = 1 << 0,   /* more slots of the same entry follow */
	SHM_RESULT = 1 << 1, /* it comes back with the result of an atomic */
	SHM_DATA = 1 << 2,   /* with data of a READ, or they are in the data area */
	SHM_PLAIN = 1 << 3,  /* a SEND in its slot, which may be promised */
	SHM_TAKEN = 1 << 4,  /* it is complete, by a promise */
};

struct shm_link {
	_Atomic int state; /* enum shm_link_state; changes under shm.lock */
	unsigned place;    /* in shm.links */
	int fd;
	uint32_t target_block;  /* CONNECTING: whom we called */
	_Atomic int path;       /* enum shm_path */
	int mem_fd;             /* the peer's memory, SHM_PATH_PROCMEM */
	bool kin;               /* of our user */
	bool asked_memory;      /* for its descriptor, and not answered yet */
	uint8_t lends;          /* enum hca_peer_lends: what of ours it may use */
	uint8_t borrows;        /* and we of its, as it says */
	uid_t uid;              /* by the kernel's word, as is: */
	struct shm_mapping *maps; /* HCA_REGIONS */
	uint64_t mapped_bytes;
	_Atomic bool lent;      /* the peer was given a region of ours */
	uint64_t segment_addr;  /* of the peer's segment in its own space */
	bool fence;             /* a full fence before looking whether to kick */
	pid_t pid;
	uint64_t deadline_ns;   /* of the handshake; 0: none */
	bool stranger;          /* it may not talk to us */
	uint8_t uuid[16];
	int kick_fd;            /* -1: it is woken through the socket */
	/* Of the peer, read-only; NULL: it did not give them, so it carries
	 * operations out itself. `key_count` may be looked at. */
	const struct hca_key *keys;
	const struct hca_segment *peer; /* read-only; behind its head ... */
	_Atomic uint32_t key_count;
	uint32_t peer_tag;              /* for hazards */
	_Atomic uint64_t peer_blocks;   /* ... blocks in these places are open */
	struct shm_area *area;
	struct list qps;                /* shm_qp.link_entry; shm.lock */

	/* Transmit side. */
	cache_aligned struct spin tx_lock;
	struct shm_direction *tx;
	_Atomic uint32_t tx_pos;
	uint32_t data_head; /* data area in use: [tail, head), wrapping */
	_Atomic uint32_t data_tail;
	struct shm_inflight *inflight; /* SHM_SLOTS */
	_Atomic uint32_t harvested;    /* acknowledgements worked off */
	uint32_t full_pos;             /* `harvested` when a datagram found no
					* room, and since when it is that */
	uint64_t full_ns;

	/* Acknowledgement side. */
	cache_aligned struct spin ack_lock;
	_Atomic uint32_t acked_hint; /* newest piggybacked acknowledgement */
	uint32_t hint_seen;          /* the one looked at last */
	uint32_t marks_seen;         /* of the acknowledgement word */
	_Atomic uint32_t backlog;    /* QPs that wait for room or for an ack */
	struct list backlog_qps;     /* shm_qp.backlog_entry; tx_lock */
	uint32_t idle_polls;         /* with unacknowledged slots */
	uint32_t promises_pos;       /* `tx_pos` when promises were looked at */
	bool carried;                /* the last news came with a message */
	_Atomic bool broken;         /* peer broke the rules: to be ended */
	_Atomic bool greeted;        /* accepted a HELLO of an allowed peer */
	_Atomic uint32_t borrowed;   /* by senders that no list of it has, and copies */

	/* Receive side. */
	cache_aligned struct spin rx_lock;
	struct shm_direction *rx;
	_Atomic uint32_t rx_pos;     /* slots passed */
	struct shm_responder **responders; /* XRC initiators; NULL: none yet */
	unsigned responder_count;
	uint32_t rx_marks;           /* of them marked */
	uint32_t received;           /* polls that found any */
	_Atomic uint32_t rx_ack;     /* both, as an acknowledgement word */
	/* Who sends here: the link, or one thing for both ends of a link of
	 * the process with itself. */
	const void *rx_peer;
};

/* What the transport keeps in a queue pair; zero until it opens. */
struct shm_qp {
	_Atomic(struct shm_link *) link; /* to the peer; set under sq_lock */
	const struct hca_qp_public *remote; /* the peer's public part */
	const struct hca_promise *remote_promise;
	/* XRC initiator: by which link the messages on their way went. */
	struct shm_link *xrc_link;
	/* Of the peer (hca_qp_public), for which our sequence numbers are known to be
	 * right. */
	uint32_t known_connection;
	uint32_t tx_taken;            /* messages on their way that are complete */
	struct list link_entry;       /* of shm_link.qps */
	struct list backlog_entry;    /* of shm_link.backlog_qps, while waiting */
	struct shm_link *backlog_of;  /* whose; under sq_lock, like this: */
	bool backlogged;              /* it is in a list */
	/* An entry that is copied by parts (copy.c), under sq_lock except for these
	 * two and `copy_entry`, which are under the lock there. */
	bool copy_queued, copy_polled;
	bool copy_ended;
	uint8_t copy_status;          /* enum ibv_wc_status, then */
	uint16_t copy_epoch;          /* of the QP; with the next one it does not hold */
	uint32_t copy_index;          /* which entry */
	uint32_t copy_bytes;          /* done so far */
	struct list copy_entry;
};

_Static_assert(sizeof(struct shm_qp) <= HCA_PATH_PART_BYTES, "its part of a QP");

static inline struct shm_qp *shm_qp(const struct hca_qp *qp)
{
	return (struct shm_qp *)(uintptr_t)qp->path_part;
}

static inline struct hca_qp *shm_qp_whole(const struct shm_qp *part)
{
	return (struct hca_qp *)((uintptr_t)part - offsetof(struct hca_qp, path_part));
}

struct shm {
	pthread_mutex_t lock;  /* control: links, their states and QP lists */
	pthread_cond_t changed;
	_Atomic unsigned link_count;
	struct shm_link *links[SHM_LINKS];
	struct shm_link *_Atomic by_block[HCA_QPN_BLOCKS];
	struct progress_timer reap, sweep; /* see link.c */
	uint64_t sweep_ns;                 /* when; 0: not armed */
	int paused[HCA_BLOCKS_PER_PROCESS]; /* listening, but not now */
	unsigned paused_count;
};

/* Is it being made? */
static inline bool shm_link_is_made(const struct shm_link *l)
{
	int state = atomic_load_explicit(&l->state, memory_order_acquire);

	return state == SHM_LINK_CONNECTING || state == SHM_LINK_ACCEPTING;
}

/* Has it our WELCOME? To the peer it is up then, and here with the peer's READY. */
static inline bool shm_link_is_greeted(const struct shm_link *l)
{
	return atomic_load_explicit(&l->state, memory_order_acquire) ==
		       SHM_LINK_ACCEPTING &&
	       atomic_load(&l->greeted);
}

static inline bool shm_is_reliable(const struct hca_qp *qp)
{
	return qp->reliable;
}

extern struct shm shm;

static inline uint32_t shm_uuid_tag(const uint8_t uuid[16])
{
	uint32_t tag;

	memcpy(&tag, uuid, sizeof(tag));
	return tag;
}

#endif
