/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the adapter that exists once per process: the shared segment, which peers
 * on this host map read-only, the table of keys, the blocks of QP numbers, and the rule
 * that decides which thread moves messages.
 *
 * While the application polls, its polls move messages, and peers do not wake this
 * process. When the application has not polled for some milliseconds, or while a CQ is
 * armed, `wants_kick` in the shared segment is HCA_WAKE_ALL: peers write the eventfd of
 * this process after each message, and the progress thread moves messages. For a program
 * that polls while its CQs are armed for solicited completions only (UCX over datagrams),
 * peers write the eventfd after solicited messages only.
 *
 * A peer stores its message and then loads wants_kick; this process stores wants_kick and
 * then looks for messages. Each side needs a full fence in between. This process executes
 * membarrier(2) for all processes, so that peers need no fence instruction. Where the
 * kernel has no membarrier, hca_segment.membarrier is 0 and peers execute a fence.
 */
#ifndef HCA_PROCESS_H
#define HCA_PROCESS_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "hca/limits.h"
#include "hca/object/context.h"
#include "hca/object/cq.h"
#include "hca/object/pd.h"
#include "hca/object/promise.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/srq.h"
#include "hca/path/path.h"
#include "hca/run/elide.h"
#include "hca/share/counters.h"
#include "hca/share/peers.h"
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
/* To be incremented with each change of struct hca_segment or of the counters. */
#define HCA_SEGMENT_VERSION 8

/* A process that this one exchanges messages with; for inspection. */
struct hca_link_public {
	_Atomic uint32_t pid;   /* 0: free place */
	_Atomic uint32_t flags; /* enum hca_link_flags */
};

enum hca_link_flags {
	HCA_LINK_PULLS = 1 << 0,    /* it copies large messages from our memory */
	HCA_LINK_ACCESSES = 1 << 1, /* we execute RDMA operations in its memory */
	HCA_LINK_PROCMEM = 1 << 2,  /* through the descriptor of its memory that it passed */
};

/*
 * Layout of the shared segment. Peers map it read-only and check what they read. The file
 * has this size from the start. Only the head and the parts of claimed blocks are in use
 * and accessible in the mappings (segment.c), so that mlockall() does not allocate the rest.
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
		/* Number of accessible entries of the table of keys; it only grows. */
		_Atomic uint32_t key_count;
		/* The processor on which a thread last polled in vain, plus 1; 0: unknown. */
		_Atomic uint32_t polled_on;
		uint32_t reserved0[4];
		cache_aligned _Atomic uint32_t wants_kick;
		/* This process executes membarrier(2): peers need no fence. */
		_Atomic uint32_t membarrier;
		/* Thread id of the progress thread. The kernel sets HCA_DIED in it when
		 * that thread ends, also when the process is killed. */
		_Atomic uint32_t alive;
		/* The bits (hca_mcast_bit) of the multicast groups that QPs of this
		 * process are attached to; several groups may have the same bit. */
		cache_aligned _Atomic uint64_t mcast_filter[HCA_MCAST_BITS / 64];
		/* Keys of other processes that this one copies with; their owners read this. */
		cache_aligned _Atomic uint64_t hazards[HCA_HAZARDS];
		/* Counts releases of each entry of `hazards`: distinguishes successive
		 * copies with the same key. */
		_Atomic uint32_t hazard_turns[HCA_HAZARDS];
		cache_aligned _Atomic uint32_t blocks[HCA_BLOCKS_PER_PROCESS];
		/* Names, indexed by hca_qp_public.transport; for inspection only. */
		cache_aligned char transports[HCA_TRANSPORTS][16];
		struct hca_process_counters counters;
		struct hca_qp_counters past; /* sums over destroyed QPs */
		struct hca_link_public links[HCA_LINKS];
	};
	uint8_t head[HCA_PART_BYTES];
	};

	struct hca_qp_public qps[HCA_BLOCKS_PER_PROCESS * HCA_QPN_BLOCK_SIZE];
	struct hca_promise promises[HCA_BLOCKS_PER_PROCESS * HCA_QPN_BLOCK_SIZE];
	/* Indexed like `qps`; for inspection only. */
	struct hca_qp_counters qp_counters[HCA_BLOCKS_PER_PROCESS *
					   HCA_QPN_BLOCK_SIZE];
};

/* Values of hca_segment.wants_kick: the messages after which peers wake this process. */
enum hca_wake {
	HCA_WAKE_NOTHING,   /* the application polls */
	HCA_WAKE_ALL,
	HCA_WAKE_SOLICITED, /* it polls, and a CQ is armed for solicited events */
};
/* Size of the table of keys, a separate file, which only peers get that may access the memory
 * of this process. */
#define HCA_KEY_TABLE_BYTES (HCA_KEYS * sizeof(struct hca_key))

struct hca_process {
	pthread_mutex_t lock;
	pthread_mutex_t tick_lock;    /* hca_attention_tick() against hca_process_close() */
	unsigned users;               /* open contexts */
	unsigned forks;               /* number of fork() calls since the first process */

	struct hca_segment *segment;
	struct hca_key *keys;
	/* Number of accessible entries of `keys` (a power of two), minus one. */
	_Atomic uint32_t key_mask;
	int segment_fd, keys_fd;      /* read-only, for peers */
	int kick_fd;                  /* eventfd that peers write */
	uint8_t uuid[16];
	bool membarrier;

	struct hca_qp **_Atomic blocks[HCA_QPN_BLOCKS]; /* tables of own blocks, by block number */
	uint32_t own_blocks[HCA_BLOCKS_PER_PROCESS];
	int block_fds[HCA_BLOCKS_PER_PROCESS];
	unsigned own_block_count;
	unsigned qpn_hint;

	struct list contexts;         /* open contexts; under `lock` */

	/* attention.c */
	_Atomic uint64_t polls;       /* number of polls */
	_Atomic uint32_t streak;      /* polls since the last arming */
	atomic_int armed;             /* number of armed CQs */
	atomic_int armed_next;        /* those armed for any completion, not only solicited */
	_Atomic bool ticking;         /* the progress thread checks regularly whether polls go on */
	_Atomic bool kicked;          /* a peer woke this process since the last tick */
};

extern struct hca_process hca_process;

/* Takes a free QP number, enters `qp` in the tables under it and sets qp->pub and qp->counters.
 * 0 or a negative errno. Takes process.lock. */
int hca_qpn_alloc(struct hca_qp *qp, uint32_t *qpn);
/* The same for an XRC SRQ. QPs and SRQs share the numbers, so that a number identifies the
 * process. hca_qp_find() returns for it a QP in RESET, which accepts no messages. */
int hca_srqn_alloc(struct hca_srq *srq);
/* Afterwards hca_srq_find() does not find the SRQ; the number remains taken. */
void hca_srqn_hide(uint32_t number);
void hca_number_free(uint32_t number);
/* The adapter stops: gives all numbers back. process.lock is held. */
void hca_blocks_release(void);
/* In a forked child: forgets the blocks of the parent, while `users` is still the parent's. */
void hca_blocks_forked(void);
/* The XRC SRQ of this process with that number, or NULL. */
struct hca_srq *hca_srq_find(uint32_t number);
/* Calls fn(qp, arg) for all QPs that have a number, also for those that are being created or
 * destroyed (their pub->qpn is 0). process.lock is held, so none of them is freed meanwhile. */
void hca_qps_each(void (*fn)(struct hca_qp *qp, void *arg), void *arg);

/* ---- segment.c: files that peers map ---- */
/* Creates hca_process.segment, of which the head is accessible, and its descriptor. 0 or a
 * negative errno. process.lock is held, also for hca_segment_destroy(). */
int hca_segment_create(void);
void hca_segment_destroy(void);
/* Makes the parts of the segment accessible that belong to entry `place` of `blocks`. 0 or
 * -ENOMEM. process.lock is held. */
int hca_segment_add_block(unsigned place);
/* Creates a file that peers may map, and maps it whole without access (PROT_NONE). *fd: a
 * descriptor for peers, which cannot write through it. NULL with errno. */
void *hca_shared_file(const char *name, size_t bytes, int *fd);
/*
 * Mappings of a peer's segment and table of keys, whose files the caller has checked. Both
 * are mapped whole; the head of the segment is readable, and the rest after the functions
 * *_open*() made it so. The first and third return NULL when there is no memory, and
 * hca_keys_map() also for fd -1; the others return 0 or -ENOMEM.
 */
const struct hca_segment *hca_segment_map(int fd);
int hca_segment_open_block(const struct hca_segment *s, unsigned place);
const struct hca_key *hca_keys_map(int fd);
int hca_keys_open(const struct hca_key *keys, uint32_t count);

/* On the progress thread: has the kernel set HCA_DIED in s->alive when this thread ends. */
void hca_death_mark_make(struct hca_segment *s);
/* Before the segment is unmapped: the progress thread may continue to run. */
void hca_death_mark_remove(void);

/* ---- attention.c ---- */
/* Called by each poll while wants_kick is HCA_WAKE_ALL. After enough polls it lowers wants_kick,
 * because polls move messages; not while a CQ is armed for any completion. */
void hca_attention_attend(void);
/* Sets wants_kick to HCA_WAKE_ALL: afterwards peers wake this process. A caller that is about to
 * sleep must look for messages once more after it. */
void hca_attention_release(void);
/* A peer has woken this process in another way than by the eventfd. */
void hca_attention_kicked(void);
/* The progress thread looks for messages at once, also when it counts on our polls. */
void hca_attention_hand_over(void);
/* A peer has woken a thread of the program, which slept in ibv_get_cq_event(), instead of the
 * progress thread: moves the peers' messages. Inside of hca_enter(). */
void hca_attention_serve(void);
/* Processes messages and acknowledgements that have arrived, before a QP is flushed or the program
 * learns that a connection has ended. At most process.lock and locks of librdmacm are held. */
void hca_take_in(void);
/* On the progress thread, at each wake-up: moves messages if the application does not. Returns
 * the thread's next timeout in ms, -1: none. No lock is held. */
int hca_attention_tick(void);

/* The QP of this process with that number, or NULL. Takes no lock: the caller prevents that the
 * QP is freed while it is used (close() and the fences of its transport wait for it). */
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

/* A key is an index into the table of keys (upper 24 bits) and a tag (lower 8). An index beyond
 * the accessible entries is reduced to one of them, whose key differs from `key`. */
static inline uint32_t hca_key_index(uint32_t key)
{
	return (key >> 8) & atomic_load_explicit(&hca_process.key_mask,
						 memory_order_relaxed);
}

/* The address for `sge`, if its key permits `access` (enum ibv_access_flags, 0 for local
 * reading) in `pd`. NULL: it does not, or the memory needs the functions of sge.h. */
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

/* Called by each poll of a CQ. */
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

/* Called between hca_enter() and hca_leave(): is the calling thread also between
 * ibv_wr_start() and ibv_wr_complete() or ibv_wr_abort()? It then holds a sq_lock and must not
 * move messages, which needs these locks. False when it takes no locks (elided), and on the
 * progress thread, whose depth is always higher by one. */
static inline bool hca_builds(void)
{
	return unlikely(hca_self.depth > 1) && !hca_self.elided &&
	       !progress_is_self();
}

/* Moves messages, inside of hca_enter(); see hca_transport_ops.poll. */
static inline bool hca_poll_transports(struct hca_cq *cq)
{
	return hca_transports_poll(cq, false);
}

/* The same for all CQs, for callers that are about to sleep: waits for other threads that are
 * moving messages. False: there are no messages. */
static inline bool hca_poll_transports_surely(void)
{
	return hca_transports_poll(NULL, true);
}

/* A transport records its links for inspection. `place`: less than HCA_LINKS; `pid`: the peer;
 * `flags`: enum hca_link_flags. */
void hca_link_opened(unsigned place, uint32_t pid, uint32_t flags);
void hca_link_changed(unsigned place, uint32_t flags);
void hca_link_closed(unsigned place);

/* Was the context opened by a parent process, before fork()? Its objects have no counterparts in
 * this process; destroying them only frees memory. */
static inline bool hca_context_inherited(struct ibv_context *ctx)
{
	return hca_context(ctx)->forks != hca_process.forks;
}

/* ---- hazard.c ---- */
/* Publishes in `hazards` that this process copies with a key of another process, and returns the
 * slot for hca_hazard_leave(). Full fence: the caller reads the key afterwards. Waits while all
 * slots are taken. */
int hca_hazard_enter(uint64_t key_id);
void hca_hazard_leave(int slot);

#endif
