/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the adapter keeps once per process: the shared segment that peers on
 * this host map read-only (QPs, keys, attention), the QPN blocks, the list of
 * transports, and the rule who moves messages.
 *
 * Who moves messages: while the application polls, it does ("attended"), and
 * nobody is woken. When it has not polled for some milliseconds, or while a CQ
 * is armed, the process is unattended: `wants_kick` is set in the shared
 * segment, peers then write our eventfd after each message, and the progress
 * thread moves messages. A program that polls all the same while its CQs are armed
 * for solicited completions only (UCX over datagrams) is woken for those.
 *
 * A peer stores its message and then loads wants_kick; we store wants_kick and
 * then look for messages. That needs a full fence on both sides; ours is a
 * system-wide membarrier(2), so that theirs costs nothing. Where the kernel has
 * no membarrier the segment says so and peers use a fence instruction.
 */
#ifndef HCA_PROCESS_H
#define HCA_PROCESS_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "hca/context.h"
#include "hca/counters.h"
#include "hca/cq.h"
#include "hca/limits.h"
#include "hca/path.h"
#include "hca/pd.h"
#include "hca/peers.h"
#include "hca/promise.h"
#include "hca/public.h"
#include "hca/qp.h"
#include "hca/srq.h"
#include "util/container_of.h"
#include "util/list.h"

#define HCA_QPN_BLOCK_BITS 10
#define HCA_QPN_BLOCK_SIZE (1u << HCA_QPN_BLOCK_BITS)
#define HCA_QPN_BLOCKS (1u << (24 - HCA_QPN_BLOCK_BITS))
#define HCA_BLOCKS_PER_PROCESS 64
#define HCA_KEYS (1u << 20)
#define HCA_HAZARDS 32
#define HCA_LINKS 1024
#define HCA_TRANSPORTS 4
#define HCA_DIED 0x40000000u /* FUTEX_OWNER_DIED */
#define HCA_SEGMENT_MAGIC UINT64_C(0x31306261627375)
/* Grows with each change of what follows or of what is counted. */
#define HCA_SEGMENT_VERSION 6

/* A process that we exchange messages with. */
struct hca_link_public {
	_Atomic uint32_t pid;   /* 0: free place */
	_Atomic uint32_t flags; /* enum hca_link_flags */
};

enum hca_link_flags {
	HCA_LINK_PULLS = 1 << 0,    /* it reads large messages from us */
	HCA_LINK_ACCESSES = 1 << 1, /* we read and write its memory */
	HCA_LINK_PROCMEM = 1 << 2,  /* by the descriptor that it passed */
};

/*
 * Layout of the shared segment. Peers map it read-only and trust nothing. It is a
 * file of this size with nothing in it but what is in use, and of its mappings only
 * that may be touched: the head, and the parts of the blocks that are claimed
 * (segment.c). So programs may lock all of their memory.
 */
#define HCA_PART_BYTES 65536 /* whole pages, however large they are */
struct hca_segment {
	union {
	struct {
		uint64_t magic;
		uint8_t uuid[16];
		uint32_t pid;
		uint32_t version;
		uint64_t bytes;
		/* Of the table of keys, so many may be looked at; it grows. */
		_Atomic uint32_t key_count;
		uint32_t reserved0[5];
		cache_aligned _Atomic uint32_t wants_kick;
		/* Our sleeper's side is a membarrier. */
		_Atomic uint32_t membarrier;
		/* The progress thread's identifier. The kernel marks it when the
		 * process ends, in whatever way: HCA_DIED. */
		_Atomic uint32_t alive;
		/* A bit for each multicast group that a QP of ours is attached to;
		 * another group may have the same (hca_mcast_bit). */
		cache_aligned _Atomic uint64_t mcast_filter[HCA_MCAST_BITS / 64];
		/* Keys that we are copying with right now, seen by their owners. */
		cache_aligned _Atomic uint64_t hazards[HCA_HAZARDS];
		/* How often each of them was given back: tells two copies with one
		 * key apart. */
		_Atomic uint32_t hazard_turns[HCA_HAZARDS];
		cache_aligned _Atomic uint32_t blocks[HCA_BLOCKS_PER_PROCESS];
		/* For inspection only: by hca_qp_public.transport. */
		cache_aligned char transports[HCA_TRANSPORTS][16];
		struct hca_process_counters counters;
		struct hca_qp_counters past; /* sums of the QPs that are gone */
		struct hca_link_public links[HCA_LINKS];
	};
	uint8_t head[HCA_PART_BYTES];
	};

	struct hca_qp_public qps[HCA_BLOCKS_PER_PROCESS * HCA_QPN_BLOCK_SIZE];
	struct hca_promise promises[HCA_BLOCKS_PER_PROCESS * HCA_QPN_BLOCK_SIZE];
	/* For inspection only, at the index of `qps`. */
	struct hca_qp_counters qp_counters[HCA_BLOCKS_PER_PROCESS *
					   HCA_QPN_BLOCK_SIZE];
};

/* hca_segment.wants_kick: what wakes us. */
enum hca_wake {
	HCA_WAKE_NOTHING,   /* the application polls */
	HCA_WAKE_ALL,
	HCA_WAKE_SOLICITED, /* it polls, and may be about to sleep until one comes */
};
/* The table of keys is a file of its own, for peers that may reach our memory. */
#define HCA_KEY_TABLE_BYTES (HCA_KEYS * sizeof(struct hca_key))

struct hca_process {
	pthread_mutex_t lock;
	pthread_mutex_t tick_lock;    /* the thread's tick against the end */
	unsigned users;               /* open contexts */
	unsigned forks;               /* between the first process and this one */

	struct hca_segment *segment;
	struct hca_key *keys;
	/* Of the keys that may be looked at, a power of two, less one. */
	_Atomic uint32_t key_mask;
	int segment_fd, keys_fd;      /* read-only, for peers */
	int kick_fd;                  /* eventfd that peers write */
	uint8_t uuid[16];
	bool membarrier;

	struct hca_qp **_Atomic blocks[HCA_QPN_BLOCKS]; /* ours, by block number */
	uint32_t own_blocks[HCA_BLOCKS_PER_PROCESS];
	int block_fds[HCA_BLOCKS_PER_PROCESS];
	unsigned own_block_count;
	unsigned qpn_hint;

	struct list contexts;         /* that are open; under the lock */

	/* Attention. */
	_Atomic uint64_t polls;       /* grows with each poll */
	_Atomic uint32_t streak;      /* polls since the last arming */
	atomic_int armed;             /* CQs whose event somebody waits for */
	atomic_int armed_next;        /* of them, for any completion */
	_Atomic bool ticking;         /* the thread watches for our absence */
	_Atomic bool kicked;          /* by a peer, since the last tick */
};

extern struct hca_process hca_process;

int hca_process_open(void);
void hca_process_close(void);

/* A free QP number, entered in the tables with `qp`; 0 or -ENOMEM. */
int hca_qpn_alloc(struct hca_qp *qp, uint32_t *qpn);
/* The same for an XRC SRQ: QPs and SRQs share the numbers, so that a number
 * names its process. hca_qp_find() of it gives a QP that accepts nothing. */
int hca_srqn_alloc(struct hca_srq *srq);
/* From here on hca_srq_find() does not find it; the number is not free yet. */
void hca_srqn_hide(uint32_t number);
void hca_number_free(uint32_t number);
/* Calls fn(qp, arg) for the QPs that have a number, also those that are just being made
 * or destroyed (qp->pub->qpn is 0). process.lock is held: none is freed meanwhile. */
void hca_qps_each(void (*fn)(struct hca_qp *qp, void *arg), void *arg);

/* ---- segment.c: what peers map ---- */
/* Ours: hca_process.segment with its head, and its descriptor. 0 or a negative
 * errno. The end gives both files back. */
int hca_segment_create(void);
void hca_segment_destroy(void);
/* The parts of the block in place `place` of `blocks`, to be used. */
int hca_segment_add_block(unsigned place);
/* A file that peers may map, whole but of no access; read-only descriptor in *fd. */
void *hca_shared_file(const char *name, size_t bytes, int *fd);
/*
 * A peer's segment and table of keys, the latter NULL for -1, from files that were
 * looked at. Both of their whole size, of which the head can be read, and the parts
 * behind it when they have been opened: NULL or -errno when there is no memory.
 */
const struct hca_segment *hca_segment_map(int fd);
int hca_segment_open_block(const struct hca_segment *s, unsigned place);
const struct hca_key *hca_keys_map(int fd);
int hca_keys_open(const struct hca_key *keys, uint32_t count);

/* On the progress thread: the kernel marks the segment when the thread ends. */
void hca_last_will_make(struct hca_segment *s);

/* ---- attention.c ---- */
/* A poll while peers wake us: from enough of them on they need not. */
void hca_attention_attend(void);
/* Before sleeping (arming, thread's tick): from now on we are woken. */
void hca_attention_release(void);
/* A peer has told us, in another way than by the eventfd, that it has something. */
void hca_attention_kicked(void);
/* On the progress thread, at each wake-up; returns its timeout in ms. */
int hca_attention_tick(void);

static inline struct hca_qp *hca_qp_find(uint32_t qpn)
{
	struct hca_qp **table;

	if (unlikely(qpn >= 1u << 24))
		return NULL;
	table = atomic_load_explicit(
		&hca_process.blocks[qpn >> HCA_QPN_BLOCK_BITS],
		memory_order_acquire);
	if (unlikely(!table))
		return NULL;
	return __atomic_load_n(&table[qpn & (HCA_QPN_BLOCK_SIZE - 1)],
			       __ATOMIC_ACQUIRE);
}

/* A key is an index into the table of keys (upper 24 bits) and a tag (lower 8). An
 * index that cannot be looked at becomes another's, whose key is not this one. */
static inline uint32_t hca_key_index(uint32_t key)
{
	return (key >> 8) & atomic_load_explicit(&hca_process.key_mask,
						 memory_order_relaxed);
}

/* The address for `sge` if it may be used with `access` (enum
 * ibv_access_flags, 0 for local reading) in `pd`; NULL when not, and for keys
 * that need more care: those the functions of paging.c know. */
static inline void *hca_sge_resolve(const struct hca_pd *pd,
				    const struct ibv_sge *sge, unsigned access)
{
	const struct hca_key *k =
		&hca_process.keys[hca_key_index(sge->lkey)];

	if (unlikely(atomic_load_explicit(&k->key, memory_order_acquire) !=
			     sge->lkey ||
		     sge->lkey == 0 || k->local_pd != pd->id ||
		     (k->access & access) != access || sge->addr < k->iova ||
		     sge->length > k->length ||
		     sge->addr - k->iova > k->length - sge->length))
		return NULL;
	return (void *)(uintptr_t)(k->addr + (sge->addr - k->iova));
}

/* From each poll_cq. */
static inline void hca_attention_polled(void)
{
	atomic_store_explicit(&hca_process.polls,
			      atomic_load_explicit(&hca_process.polls,
						   memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (unlikely(atomic_load_explicit(&hca_process.segment->wants_kick,
					  memory_order_relaxed) == HCA_WAKE_ALL))
		hca_attention_attend();
}

static inline bool hca_poll_transports(struct hca_cq *cq)
{
	return hca_transports.poll(cq, false);
}

/* Before sleeping: false means that nothing is there, not that somebody else
 * is looking. A lock may be held for other reasons than moving messages. */
static inline bool hca_poll_transports_surely(void)
{
	return hca_transports.poll(NULL, true);
}

/* A transport tells who we exchange messages with; `place` below HCA_LINKS. */
void hca_link_opened(unsigned place, uint32_t pid, uint32_t flags);
void hca_link_changed(unsigned place, uint32_t flags);
void hca_link_closed(unsigned place);

/* A context of the parent, in a forked child: its objects are memory to be freed
 * and nothing else. */
static inline bool hca_context_inherited(struct ibv_context *ctx)
{
	return hca_context(ctx)->forks != hca_process.forks;
}

/* ---- hazard.c ---- */
/* Publishes that we copy with `key` of another process; returns the slot. What the
 * caller looks at afterwards is not older than that. */
int hca_hazard_enter(uint64_t key_id);
void hca_hazard_leave(int slot);

#endif
