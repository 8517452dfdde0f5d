/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport shm: queue pairs of processes on one host.
 *
 * Two processes share one link, whatever the number of their QPs. A link is a
 * memory file with a ring of slots and a data area in each direction, plus a
 * Unix socket that carries the handshake and later control messages; when the
 * socket is closed, the peer has ended. Small messages travel inside a slot, larger
 * ones in fragments through the data area, or, above a size that a setting gives,
 * the receiver copies them out of the sender's memory (SHM_PULL, access.c). The
 * initiator carries out RDMA WRITE and READ itself (onesided.c) if it can access
 * the target's memory, with plain stores and loads if that memory is mapped
 * (map.c); otherwise the target carries them out (target.c). The responder executes
 * ATOMIC operations (atomic.c), except on memory that the initiator has mapped.
 *
 * Reliability works on messages as the InfiniBand transport does on packets:
 * each message carries its sequence number (PSN). The receiver executes the expected
 * message. It marks in the slot a message with any other number and one for which
 * no receive is posted; the sender then goes back (go-back-N) after the RNR or retry
 * time. A slot that the receiver passed without a mark is acknowledged.
 *
 * Trust: a peer may belong to another user, may be faulty or malicious. The kernel
 * says which process it is (hca/share/peers.h); what the peer says about itself is checked
 * (limits.c). Everything read from the link is copied once and then checked; if a peer
 * breaks the protocol its link is ended and no other is made for a minute; nothing
 * else happens. With another user's
 * process nothing is used by which that process could block this one: no system call
 * on its memory, and no eventfd, since every process that holds an eventfd can make
 * writes to it block.
 */
#ifndef TRANSPORT_SHM_LINK_STATE_H
#define TRANSPORT_SHM_LINK_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hca/object/promise.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/path/path.h"
#include "hca/queue/post.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "transport/shm/ring/ring.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/spin.h"

struct shm_faults_of;
struct shm_part_shown;
struct shm_responder;

#define SHM_LINKS 1024

/* How long a fence waits for a copy that a peer announces: a peer that announces one
 * for longer was stopped within the copy or is faulty, and its link is ended. */
#define SHM_FENCE_LIMIT_NS UINT64_C(10000000000)
_Static_assert(SHM_LINKS <= HCA_LINKS, "the segment has an entry for each link");

enum shm_link_state {
	SHM_LINK_FREE,
	SHM_LINK_CONNECTING, /* HELLO sent, WELCOME not yet received */
	SHM_LINK_ACCEPTING,  /* accepted; HELLO or READY not yet received */
	SHM_LINK_UP,
	SHM_LINK_DEAD,       /* being taken down; threads may still be inside it */
};

/* How this process accesses a peer's memory that is not mapped. */
enum shm_path {
	SHM_PATH_TARGET,     /* not at all: the peer carries operations out */
	SHM_PATH_PROCMEM,    /* by a descriptor of the peer's /proc/self/mem */
	SHM_PATH_PROCESS_VM, /* by process_vm_readv and process_vm_writev */
};

/* A region of the peer. Its place in shm_link.maps is its identifier modulo
 * HCA_REGIONS. */
struct shm_mapping {
	_Atomic uint32_t id;    /* 0: nothing mapped; written last, cleared first */
	_Atomic uint32_t asked; /* the region last requested from the peer; 0: none */
	_Atomic bool asked_to_write;
	_Atomic uint32_t missed; /* how often it was wanted since it was requested */
	bool writable;
	uint8_t *base;
	uint64_t length;
};

/* A slot that this process has transmitted. */
struct shm_inflight {
	struct hca_qp *qp; /* NULL: no QP waits for its acknowledgement */
	uint32_t index;    /* of the send queue entry */
	uint32_t data_end; /* once acknowledged, the data area is free up to here */
	uint32_t psn;
	uint16_t epoch;    /* of the QP when it was transmitted */
	uint8_t kind;      /* enum shm_inflight_kind */
};

/* With none of these flags the acknowledgement gives only the status with which the
 * message ended. */
enum shm_inflight_kind {
	SHM_PART = 1 << 0,   /* more slots of the same entry follow */
	SHM_RESULT = 1 << 1, /* the slot comes back with the result of an atomic */
	SHM_DATA = 1 << 2,   /* a READ: its data come back in the slot or data area */
	SHM_PLAIN = 1 << 3,  /* a SEND within its slot: can complete by a promise */
	SHM_SHOWN = 1 << 5,  /* it is in a capture, and so is its acknowledgement (watch.h) */
	SHM_TAKEN = 1 << 4,  /* already completed, by a promise (hca/memory/promise.h) */
};

struct shm_link {
	_Atomic int state; /* enum shm_link_state; changes under shm.lock */
	unsigned place;    /* in shm.links */
	int fd;
	uint32_t target_block;  /* connector: the block called; acceptor: 0 */
	_Atomic int path;       /* enum shm_path */
	int mem_fd;             /* the peer's memory, SHM_PATH_PROCMEM */
	bool kin;               /* the peer runs under our user (hca_peer_is_kin) */
	bool asked_memory;      /* SHM_ASK_MEMORY sent, SHM_MEMORY not yet received */
	uint8_t lends;          /* enum hca_peer_lends: what the peer may use of ours */
	uint8_t borrows;        /* the same: what the peer says we may use of its */
	uid_t uid;              /* of the peer, from the kernel; so is `pid` */
	struct shm_mapping *maps; /* HCA_REGIONS */
	uint64_t mapped_bytes;
	_Atomic bool lent;      /* the peer was given a region of ours */
	uint64_t segment_addr;  /* of the peer's segment in its own address space */
	bool fence;             /* shm_wanted() needs a full fence */
	pid_t pid;
	uint64_t deadline_ns;   /* of the handshake; 0: none */
	bool may_not_talk;      /* the peer is not allowed a link: only inspection */
	uint8_t uuid[16];
	int kick_fd;            /* eventfd of the peer; -1: woken by the socket */
	/* The peer's table of keys, read-only, of which the first `key_count` can be
	 * read. NULL: the peer did not give it, and carries operations out itself. */
	const struct hca_key *keys;
	/* The peer's segment, read-only: its head, and the QP blocks in the places
	 * whose bits are set in `peer_blocks`, can be read. */
	const struct hca_segment *peer;
	_Atomic uint32_t key_count;
	uint32_t peer_tag;              /* of its uuid, for hazards */
	_Atomic uint64_t peer_blocks;
	struct shm_area *area;
	struct list qps;                /* shm_qp.link_entry; shm.lock */

	/* Transmit side. */
	cache_aligned struct spin tx_lock;
	struct shm_direction *tx;
	_Atomic uint32_t tx_pos;
	_Atomic uint32_t wanted_pos; /* behind the last slot that the program may wait for */
	uint32_t data_head; /* data area in use: [tail, head), wrapping */
	_Atomic uint32_t data_tail;
	struct shm_inflight *inflight; /* SHM_SLOTS */
	/* Used with a capture or faults only (watch.h, faults.h). */
	struct shm_part_shown *shown;  /* SHM_SLOTS */
	struct shm_faults_of *faults;
	_Atomic uint32_t harvested;    /* slots whose acknowledgement is processed */
	/* A datagram found no room: `harvested` then, and since when `harvested`
	 * has not changed (0: room was never missing). */
	uint32_t full_pos;
	uint64_t full_ns;

	/* Acknowledgement side. */
	cache_aligned struct spin ack_lock;
	_Atomic uint32_t acked_hint; /* newest piggybacked acknowledgement */
	uint32_t hint_seen;          /* the piggybacked one last processed */
	uint32_t marks_seen;         /* marks in the acknowledgement word last read */
	_Atomic uint32_t backlog;    /* QPs that wait for room or for an ack */
	struct list backlog_qps;     /* shm_qp.backlog_entry; tx_lock */
	uint32_t idle_polls;         /* without progress while slots are unacknowledged */
	uint32_t promises_pos;       /* `tx_pos` at the last check of promises */
	bool carried;                /* the last acknowledgement was piggybacked */
	_Atomic bool broken;         /* peer broke the protocol: link is to be ended */
	_Atomic bool greeted;        /* acceptor: the HELLO was accepted */
	_Atomic uint32_t borrowed;   /* uses by XRC senders and by copies (copy.c),
				      * which are in none of the link's lists */

	/* Receive side. */
	cache_aligned struct spin rx_lock;
	struct shm_direction *rx;
	_Atomic uint32_t rx_pos;     /* slots received */
	struct shm_responder **responders; /* XRC initiators; NULL: none yet */
	unsigned responder_count;
	uint32_t rx_marks;           /* how many of the slots received were marked */
	uint32_t received;           /* polls that received something */
	_Atomic uint32_t rx_ack;     /* rx_pos and rx_marks as acknowledgement word */
	/* Identifies the peer, for hca_qp.rx_peer: the link, or for both ends of a
	 * link of the process with itself the same pointer. */
	const void *rx_peer;
	struct shm_link *twin; /* the other end of such a link, once it was looked for; else NULL */
};

/* What the transport keeps in a queue pair; zero until it opens. Its first cache line is used
 * for every message. */
struct shm_qp {
	_Atomic(struct shm_link *) link; /* to the peer; set under sq_lock */
	const struct hca_qp_public *remote; /* the peer's public part */
	const struct hca_promise *remote_promise;
	/* XRC initiator: the link through which the outstanding messages were sent. */
	struct shm_link *xrc_link;
	uint64_t lost_since_ns;       /* time of the oldest entry's first loss; 0: none */
	uint32_t lost_tries;
	uint32_t tx_offset;           /* bytes of the message at sq.next that are sent */
	uint32_t tx_taken;            /* messages completed by a promise and not yet
				       * acknowledged */
	/* hca_qp_public.connection of the peer for which our sequence numbers were
	 * found to be the expected ones; another value: to be checked again. */
	uint32_t known_connection;
	uint8_t rnr_tries;            /* how often the oldest entry met no receive */
	bool event_sends;             /* threads may sleep until sends complete */
	/* An entry that is copied by parts (reach/copy.c). `copy_queued`, `copy_polled` and
	 * `copy_entry` are protected by the lock in reach/copiers.c, the others by sq_lock. */
	bool copy_ended;
	uint8_t copy_status;          /* enum ibv_wc_status, when `copy_ended` */
	uint32_t copy_bytes;          /* copied so far */
	uint32_t copy_index;          /* of the send queue entry */
	uint16_t copy_epoch;          /* tx_epoch of the QP; void in any other one */
	bool copy_queued, copy_polled;
	struct list copy_entry;
	struct list link_entry;       /* of shm_link.qps */
	struct list backlog_entry;    /* of shm_link.backlog_qps, while waiting */
	struct shm_link *backlog_of;  /* the link waited for, or NULL; sq_lock */
};

_Static_assert(sizeof(struct shm_qp) <= HCA_PATH_PART_BYTES, "fits into hca_qp.path_part");
_Static_assert(offsetof(struct shm_qp, copy_index) == CACHE_LINE, "what follows is used rarely");

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
	struct progress_timer reap, sweep; /* join/end.c */
	uint64_t sweep_ns;                 /* when; 0: not armed */
	int paused[HCA_BLOCKS_PER_PROCESS]; /* listening sockets not watched for now */
	unsigned paused_count;
	/* Links are made with all processes whose multicast names were found; later processes
	 * find this one's (join/mcast.c). */
	_Atomic bool mcast_ready;
	/* A thread that was alone received a message before it completed the requests that the
	 * message acknowledges. Where several threads are inside, a poll of a queue with sends
	 * completes these first. */
	_Atomic bool put_off;
};

/* True while the handshake is under way. */
static inline bool shm_link_is_made(const struct shm_link *l)
{
	int state = atomic_load_explicit(&l->state, memory_order_acquire);

	return state == SHM_LINK_CONNECTING || state == SHM_LINK_ACCEPTING;
}

/* True when this process has accepted the HELLO and READY has not come. For the peer
 * the link is up with our WELCOME, for this process with the peer's READY. */
static inline bool shm_link_is_greeted(const struct shm_link *l)
{
	return atomic_load_explicit(&l->state, memory_order_acquire) ==
		       SHM_LINK_ACCEPTING &&
	       atomic_load(&l->greeted);
}

/* A link that is up while one of its locks is held keeps its memory until that lock is released. */
static inline bool shm_link_is_up(const struct shm_link *l)
{
	return atomic_load_explicit(&l->state, memory_order_acquire) == SHM_LINK_UP;
}

static inline bool shm_uuid_is(const struct shm_link *l, const uint8_t uuid[16])
{
	return !memcmp(l->uuid, uuid, sizeof(l->uuid));
}

/* How long ago the first loss of the QP's oldest entry was; it is now if there was none before.
 * sq_lock is held. */
static inline uint64_t shm_lost_for_ns(struct hca_qp *qp, uint64_t now_ns)
{
	if (!shm_qp(qp)->lost_since_ns) {
		shm_qp(qp)->lost_since_ns = now_ns;
		shm_qp(qp)->lost_tries = 0;
	}
	return now_ns - shm_qp(qp)->lost_since_ns;
}

/* hca_sq_complete(), after which no loss is known. sq_lock is held. */
static inline void shm_complete(struct hca_qp *qp, enum ibv_wc_status status)
{
	shm_qp(qp)->lost_since_ns = 0;
	hca_sq_complete(qp, status);
}

/* The same for the next entry to be transmitted, which is also the oldest one. */
static inline void shm_complete_next(struct hca_qp *qp, enum ibv_wc_status status)
{
	qp->sq.next++;
	shm_complete(qp, status);
}

/* The QP transmits again when its retry timer expires, at `when_ns`. sq_lock is held. */
static inline void shm_retry_at(struct hca_qp *qp, uint64_t when_ns)
{
	qp->tx_blocked = HCA_TX_RETRY_WAIT;
	progress_timer_arm(&qp->retry, when_ns);
}

/* Does a queue pair in this state take messages? */
static inline bool shm_receives_in(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
	       state == IBV_QPS_SQE;
}

static inline bool shm_is_reliable(const struct hca_qp *qp)
{
	return qp->reliable;
}

extern struct shm shm;

/* Every link structure of the table, also those that are free. */
#define shm_each_link(l)                                                      \
	for (struct shm_link **l##_at = shm.links, *l;                        \
	     (size_t)(l##_at - shm.links) < atomic_load(&shm.link_count) &&   \
	     ((l) = *l##_at);                                                 \
	     l##_at++)

static inline uint32_t shm_uuid_tag(const uint8_t uuid[16])
{
	uint32_t tag;

	memcpy(&tag, uuid, sizeof(tag));
	return tag;
}

#endif
