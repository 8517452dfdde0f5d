/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software adapter's objects, as hca and the transports see them.
 *
 * Each structure embeds the public one of <infiniband/verbs.h>; the named
 * inline functions below are the only casts between them.
 *
 * Locks, in the order in which they are taken:
 *   process.lock   control plane (create, destroy, tables); sleeps
 *   transport locks of the receiving and acknowledging side
 *   qp.sq_lock     send queue, state changes of the QP
 *   transport locks of the transmitting side
 *   rq locks       receive queue: posting, consuming
 *   cq.lock        completion queue
 *   key table      who owns which key, windows; nothing is taken inside
 * No lock is held over a system call on the data path except the QP's own
 * sq_lock over one-sided copies that are not large and a link's receive lock over
 * pulled messages.
 */
#ifndef HCA_OBJECTS_H
#define HCA_OBJECTS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "hca/counters.h"
#include "hca/elide.h"
#include "hca/importable.h"
#include "hca/progress.h"
#include "hca/promise.h"
#include "hca/opcode.h"
#include "hca/path.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/probe.h"
#include "util/spin.h"

#define HCA_MAX_SGE 32
#define HCA_MAX_INLINE 1024
#define HCA_MAX_QP_WR 32768
#define HCA_MAX_CQE (1 << 22)
#define HCA_MAX_MSG_BYTES (UINT32_C(1) << 30)
#define HCA_MAX_DM_BYTES (UINT64_C(64) << 20)
#define HCA_MAX_GIDS 128
#define HCA_MAX_RD_ATOM 128
#define HCA_PORT_LID 1
#define HCA_UD_MTU 4096
#define HCA_GRH_BYTES 40
#define HCA_PSN_MASK 0xffffffu
/* The QP number of a datagram to a multicast group; no QP has it. */
#define HCA_QPN_MULTICAST 0xffffffu
#define HCA_MCAST_GROUPS 256   /* of a process */
#define HCA_MCAST_MEMBERS 4096 /* QPs attached, over all groups */
#define HCA_MCAST_BITS 256     /* of the filter that peers look at */

struct hca_qp;
struct hca_domain;
struct hca_region;
struct hca_dm;
struct hca_hold;

struct hca_device {
	struct ibv_device ibv;
	int index;
	__be64 guid;
};

/* A completion or asynchronous event waiting behind a pollable descriptor. */
struct hca_channel {
	struct ibv_comp_channel ibv;
	struct spin lock;
	struct list ready; /* hca_cq.event_entry, one per event */
};

struct hca_async_event {
	struct list entry;
	struct ibv_async_event event;
};

struct hca_context {
	struct hca_device *device;
	struct list entry;    /* of hca_process.contexts */
	_Atomic bool failed;  /* its device did (fail.h), for good */
	bool failure_told;    /* under process.lock */
	/* Itself, until closed, and its PDs, CQs and channels: programs close
	 * the device first and leave the rest to the end of the process. */
	atomic_int references;
	unsigned forks; /* of hca_process when opened: a child's close of its
			 * parent's device must not end one of its own */
	struct spin async_lock;
	struct list async_events;
	struct verbs_context verbs; /* last: it grows upwards */
};

struct hca_pd {
	struct ibv_pd ibv;
	/* Never 0; unique in the process, but that a parent domain has that of
	 * its protection domain: keys and queues of both belong together. */
	uint32_t id;
	struct hca_domain *domain; /* of a parent domain, else NULL */
	struct hca_importable shared;
	/* ibv_import_pd(); the program, too, is then a user. NULL: not imported. */
	struct hca_pd *imported_from;
};

/* Thread domain: one thread at a time uses what is created on it. */
struct hca_td {
	struct ibv_td ibv;
	atomic_int users; /* parent domains */
};

/* Memory of a queue, and whose allocator gave it. */
struct hca_memory {
	void *at;
	void *base;          /* what is given back */
	struct hca_pd *from; /* NULL: the heap */
};

/* As the allocators of a parent domain are told. */
enum hca_resource {
	HCA_RESOURCE_SEND_QUEUE,
	HCA_RESOURCE_RECV_QUEUE,
	HCA_RESOURCE_SHARED_RECV_QUEUE,
	HCA_RESOURCE_COMPLETION_QUEUE,
};

struct hca_mr {
	struct ibv_mr ibv;
	uint32_t index; /* in the key table */
	uint32_t access;
	uint64_t iova;
	uint8_t *base;             /* of the memory; ibv.addr is the program's */
	struct hca_region *region; /* that the memory lies in, NULL: none */
	struct hca_dm *dm;         /* that was registered, NULL: none */
	struct list remap_entry;   /* of remap.c */
	bool remap_plain;
	bool null;        /* by ibv_alloc_null_mr */
	bool imported;    /* another name of a region, without memory of its own */
	uint32_t windows; /* bound to it; under the key table's lock */
};

enum hca_mw_state {
	HCA_MW_FREE,     /* not bound */
	HCA_MW_BOUND,
	HCA_MW_ORPHAN,   /* type 2, and its QP was destroyed: of no use */
};

/* All but `ibv` under the key table's lock. */
struct hca_mw {
	struct ibv_mw ibv;
	uint32_t index;    /* in the key table */
	uint32_t rkey;     /* published now or last */
	enum hca_mw_state state;
	bool fencing;      /* `rkey` was withdrawn, a peer may still copy with it */
	struct hca_mr *mr; /* that counts this window, or NULL */
	struct hca_qp *qp; /* type 2: that bound it, or NULL */
	struct list entry; /* of all windows */
};

struct hca_cq {
	struct ibv_cq_ex ex;
	struct hca_context *ctx;
	cache_aligned struct spin lock;
	atomic_uint head; /* next to write */
	atomic_uint tail; /* next to read */
	uint32_t mask;
	uint32_t limit; /* cqe granted */
	uint8_t special; /* enum hca_cq_special, 0: plain pushes */
	_Atomic bool overrun; /* for good */
	bool single_threaded; /* the application says so */
	struct ibv_wc *ring;
	/* While the owner of the data path (elide.h) polls the empty queue: where
	 * it wants the next completion, which then saves the way by the ring. */
	struct ibv_wc *direct;
	/* Work of a transport that a poll in vain carries on, outside of hca_enter();
	 * NULL: there is none. */
	void (*_Atomic carry_on)(struct hca_cq *cq);
	unsigned carried; /* how many queue pairs have such work; the transport's */
	/* Under channel->lock. */
	unsigned events_queued;
	struct list event_entry;
	uint32_t events_taken; /* by get_event; to be acknowledged */
	uint32_t async_taken;  /* likewise; under the context's async_lock */
	atomic_int users;      /* QPs */
	_Atomic bool sends;    /* a send queue completes here */

	bool ignore_overrun;
	struct hca_memory memory;
	struct hca_pd *parent_domain;
	/* When an entry of the ring was pushed, in clock ticks; NULL: unwanted. */
	uint64_t *stamps;

	/* From ibv_start_poll to ibv_end_poll; cq_ex.c. */
	struct spin poll_lock;
	struct ibv_wc current;
	uint64_t current_stamp;

	/* Moderation, cq_event.c; under the lock. */
	uint16_t event_count, event_period_us;
	uint32_t events_held;  /* completions since the arming */
	struct progress_timer event_timer;
	struct progress_timer overrun_timer;
};

/* What a push has to see to besides the ring. */
enum hca_cq_special {
	HCA_CQ_ARMED_SOLICITED = 1 << 0,
	HCA_CQ_ARMED_NEXT = 1 << 1,
	HCA_CQ_ARMED = HCA_CQ_ARMED_SOLICITED | HCA_CQ_ARMED_NEXT,
	HCA_CQ_STAMPED = 1 << 2,
};

/* What it then has to do behind the lock. */
enum hca_cq_action {
	HCA_CQ_NOTHING,
	HCA_CQ_NOTIFY,
	HCA_CQ_NOTIFY_LATER,
};

/* One posted receive; `sge` has the queue's max_sge entries. */
struct hca_rwqe {
	uint64_t wr_id;
	uint32_t num_sge;
	struct ibv_sge sge[];
};

struct hca_rq {
	struct spin post_lock;
	struct spin consume_lock;
	_Atomic uint32_t head, tail; /* free running; posted and consumed */
	uint32_t limit;      /* entries granted, exactly what was asked for */
	uint32_t mask;
	uint32_t max_sge;
	uint32_t stride;
	uint8_t *wqes;
	uint32_t qpn;        /* for the probe; 0 when shared */
};

/* Whose XRC SRQs a target QP may serve: an inode of the host, or random. */
struct hca_xrcd_id {
	uint64_t hi, lo; /* hi is never 0 */
};

struct hca_xrcd {
	struct ibv_xrcd ibv;
	struct hca_xrcd_id id;
	int name_fd;       /* says to the host that the inode's domain is open */
	atomic_int users;  /* target QPs and XRC SRQs */
	struct list entry;
};

struct hca_srq {
	struct ibv_srq ibv;
	struct hca_rq rq;
	_Atomic uint32_t event_below; /* entries left; 0: no event wanted */
	uint32_t async_taken;
	atomic_int users;
	/* Of an XRC SRQ; else NULL and 0. */
	struct hca_xrcd *xrcd;
	struct hca_cq *cq;
	uint32_t number;
	struct hca_qp_public *pub;
	struct hca_qp_counters *counters; /* for targets of other processes */
	struct hca_memory memory;
};

/* The first four are those of enum ibv_send_flags. */
enum hca_swqe_flags {
	HCA_SWQE_FENCE = IBV_SEND_FENCE,
	HCA_SWQE_SIGNALED = IBV_SEND_SIGNALED,
	HCA_SWQE_SOLICITED = IBV_SEND_SOLICITED,
	HCA_SWQE_INLINE = IBV_SEND_INLINE,
	HCA_SWQE_LOCAL = 1 << 4,   /* no message: BIND_MW, LOCAL_INV */
	HCA_SWQE_STARTED = 1 << 5, /* LOCAL_INV: withdrawn, peers may still copy */
	HCA_SWQE_HELD = 1 << 6,    /* a datagram that waits: see hold.h */
};

struct hca_ah {
	struct ibv_ah ibv;
	struct ibv_ah_attr attr;
	const struct hca_transport_ops *route; /* NULL: nothing leads there */
	bool local;                   /* destination is an address of this host */
	bool ipv4;
	bool multicast;               /* ... a group; then not local */
	unsigned mcast_bit;
	uint32_t pd_id;
	uint32_t checksum;            /* of the IPv4 header without its length */
	uint8_t grh[HCA_GRH_BYTES];   /* as the receiver finds it, less lengths */
};

/* IPv4: its header fills the second half, the first is empty. */
static inline bool hca_ah_is_ipv4(const struct hca_ah *ah)
{
	return !ah->grh[0];
}

/* One posted send; `sge` has room for max_sge entries or max_inline bytes. */
struct hca_swqe {
	uint64_t wr_id;
	uint8_t opcode; /* enum ibv_wr_opcode, or HCA_WR_ATOMIC_WRITE */
	uint8_t flags;  /* enum hca_swqe_flags */
	uint8_t num_sge;
	uint8_t reserved;
	uint32_t length; /* bytes in all */
	uint32_t imm;    /* __be32, or the rkey to invalidate */
	uint32_t rkey;
	uint64_t remote_addr;
	union {
		struct {
			uint64_t compare_add, swap;
		} atomic;
		struct {
			struct hca_ah *ah;
			uint32_t qpn, qkey;
		} ud;
		uint32_t srqn; /* see hca_swqe_srqn() */
		/* BIND_MW: also remote_addr, rkey (the new one), imm (the
		 * region's lkey). */
		struct {
			uint64_t length;
			uint32_t window; /* index in the key table */
			uint32_t access;
		} bind;
	};
	union {
		struct ibv_sge sge[0];
		uint8_t inline_data[0];
	};
};

/*
 * Send queue. tail <= next <= head (free running):
 * [tail, next) transmitted and not yet completed, [next, head) waiting.
 */
struct hca_sq {
	uint32_t head, next, tail;
	uint32_t limit;
	uint32_t mask;
	uint32_t max_sge, max_inline;
	uint32_t stride;
	uint8_t *wqes;
	/* SQD: entries before `drain_to` are still processed; `draining`: an
	 * event is owed when they are done. */
	uint32_t drain_to;
	bool draining;
	/* Extended posting: the entry being built and what went wrong. */
	uint32_t build_head;
	int build_error;
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

struct hca_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	bool extended;
	bool single_threaded;         /* the application says so */
	uint32_t send_ops;            /* those that builders offer, a bit an opcode */
	struct hca_pd *pd;
	struct hca_cq *send_cq, *recv_cq;
	struct hca_qp_public *pub;
	struct hca_qp_counters *counters; /* in the segment, like pub */
	struct ibv_qp_attr attr;      /* what modify set */
	struct ibv_qp_cap cap;
	struct hca_memory sq_memory, rq_memory;

	cache_aligned struct spin sq_lock;
	_Atomic uint32_t state;       /* enum ibv_qp_state */
	/* Properties of the QP, where who posts has them at hand. */
	bool reliable;                /* RC, XRC initiator */
	bool event_sends;             /* somebody may sleep until it completes */
	uint8_t always_flags;         /* enum hca_swqe_flags of each request */
	struct hca_path path;
	struct hca_sq sq;
	uint32_t tx_psn;              /* of the next message to transmit */
	uint16_t tx_epoch;            /* grows with each go-back */
	uint8_t tx_blocked;           /* enum hca_tx_blocked */
	uint8_t rnr_left;
	uint32_t tx_offset;           /* bytes sent of a fragmented message */
	uint64_t lost_since_ns;       /* first loss of the oldest entry, 0 none */
	uint32_t lost_tries;
	struct progress_timer retry;
	_Atomic bool calls;           /* UD: who posts may look for the peer */
	/* What the transport keeps here, beside what posting uses anyway: a structure
	 * of its own (path.h). */
	_Alignas(8) uint8_t path_part[HCA_PATH_PART_BYTES];

	cache_aligned struct hca_rq rq;
	struct hca_promising promising;
	struct hca_rq *recv;          /* own, or of the shared receive queue */
	struct hca_srq *srq;          /* NULL: none */
	const struct hca_pd *recv_pd; /* of the receive buffers */
	/* An entry taken from a shared queue for a message of which only a part
	 * is here; under the shared queue's consume_lock. */
	struct hca_rwqe *claim;
	bool claimed;
	bool established;             /* COMM_EST was raised since RTR */
	_Atomic uint32_t rx_psn;      /* expected next; under the rx lock */
	uint32_t rx_offset;           /* bytes of a fragmented message so far */
	/* Whose messages are taken, to be compared only: set by a transport that lets
	 * receives be promised to its peer; NULL: none are. */
	_Atomic(const void *) rx_peer;

	uint32_t async_taken;         /* events to be acknowledged */
	uint32_t windows;             /* bound to it; the key table's lock */
	bool no_self_multicast;
	atomic_int mcast_groups;      /* it is attached to */

	/* XRC target: programs hold handles, which have no state of their own.
	 * `target` is a handle's QP, `handles` the QP's handles. */
	struct hca_qp *target;
	struct hca_xrcd *xrcd;
	struct spin handles_lock;
	struct list handles;
	struct list handle_entry;

	struct hca_hold *hold;        /* UD; under sq_lock */
};

enum hca_tx_blocked {
	HCA_TX_OPEN,
	HCA_TX_RETRY_WAIT, /* the retry timer will open it */
	/* The transport carries the oldest entry out by parts and opens it behind the
	 * last one. */
	HCA_TX_COPY_WAITS, /* for somebody to carry out the next part */
	HCA_TX_COPYING,    /* a part is under way, without sq_lock: the entry must not
			    * complete before it is done, not by a flush either */
};

static inline struct hca_context *hca_context(struct ibv_context *ctx)
{
	return container_of(ctx, struct hca_context, verbs.context);
}

static inline struct hca_device *hca_device(struct ibv_device *dev)
{
	return container_of(dev, struct hca_device, ibv);
}

static inline struct hca_pd *hca_pd(struct ibv_pd *pd)
{
	return container_of(pd, struct hca_pd, ibv);
}

static inline struct hca_td *hca_td(struct ibv_td *td)
{
	return container_of(td, struct hca_td, ibv);
}

static inline struct hca_mr *hca_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct hca_mr, ibv);
}

static inline struct hca_mw *hca_mw(struct ibv_mw *mw)
{
	return container_of(mw, struct hca_mw, ibv);
}

/* struct ibv_cq_ex starts with the fields of struct ibv_cq. */
static inline struct hca_cq *hca_cq(struct ibv_cq *cq)
{
	return (struct hca_cq *)((char *)cq - offsetof(struct hca_cq, ex));
}

static inline struct ibv_cq *hca_cq_public(struct hca_cq *cq)
{
	return ibv_cq_ex_to_cq(&cq->ex);
}

static inline struct hca_qp *hca_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct hca_qp, ibv);
}

static inline struct hca_qp *hca_qp_of_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct hca_qp, ex);
}

static inline struct hca_srq *hca_srq(struct ibv_srq *srq)
{
	return container_of(srq, struct hca_srq, ibv);
}

static inline struct hca_xrcd *hca_xrcd(struct ibv_xrcd *xrcd)
{
	return container_of(xrcd, struct hca_xrcd, ibv);
}

static inline struct hca_ah *hca_ah(struct ibv_ah *ah)
{
	return container_of(ah, struct hca_ah, ibv);
}

static inline struct hca_channel *hca_channel(struct ibv_comp_channel *ch)
{
	return container_of(ch, struct hca_channel, ibv);
}

static inline struct hca_swqe *hca_sq_entry(struct hca_sq *sq, uint32_t index)
{
	return (struct hca_swqe *)(sq->wqes +
				   (size_t)(index & sq->mask) * sq->stride);
}

static inline struct hca_rwqe *hca_rq_entry(struct hca_rq *rq, uint32_t index)
{
	return (struct hca_rwqe *)(rq->wqes +
				   (size_t)(index & rq->mask) * rq->stride);
}

static inline enum ibv_qp_state hca_qp_state(const struct hca_qp *qp)
{
	return (enum ibv_qp_state)atomic_load_explicit(&qp->state,
						       memory_order_acquire);
}

static inline bool hca_xrcd_same(const struct hca_xrcd_id *a,
				 const struct hca_xrcd_id *b)
{
	return a->hi == b->hi && a->lo == b->lo;
}

/* ---- device.c ---- */
static inline void hca_context_get(struct hca_context *ctx)
{
	atomic_fetch_add(&ctx->references, 1);
}
/* The last reference ends the context. */
void hca_context_put(struct hca_context *ctx);
/* "softN" of N; NULL: there is no such device. */
const char *hca_device_name(uint32_t index);
/* What a context whose device failed does not do any more: 0 or -EIO. */
static inline int hca_context_check(struct ibv_context *ctx)
{
	return unlikely(atomic_load(&hca_context(ctx)->failed)) ? -EIO : 0;
}

/* ---- pd.c ---- */
/* The last user of an imported domain has gone, the program among them. */
void hca_pd_end_import(struct hca_pd *pd);
static inline void hca_pd_get(struct hca_pd *pd)
{
	atomic_fetch_add(&pd->shared.users, 1);
}
static inline void hca_pd_put(struct hca_pd *pd)
{
	if (atomic_fetch_sub(&pd->shared.users, 1) == 1 && unlikely(pd->imported_from))
		hca_pd_end_import(pd);
}

/* ---- domain.c: thread and parent domains ---- */
void hca_domain_ops_init(struct verbs_context *v);
/* What a parent domain holds; called when it is deallocated. */
void hca_domain_release(struct hca_pd *pd);
/* Is what is created on this one used by one thread at a time? */
bool hca_domain_single_threaded(const struct hca_pd *pd);
/* Zeroed memory on a cache line, by the domain's allocator if it has one. `pd`
 * may be NULL. 0 or -ENOMEM. */
int hca_memory_alloc(struct hca_pd *pd, size_t size, enum hca_resource kind,
		     struct hca_memory *out);
void hca_memory_free(struct hca_memory *m, enum hca_resource kind);

/* ---- sq.c: sending side ---- */
int hca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		  struct ibv_send_wr **bad);
/* The next free entry with its common part filled, for work that no list of
 * requests describes; the caller fills the rest and counts `head` up. 0 or a
 * negative errno. sq_lock is held. */
int hca_sq_open(struct hca_qp *qp, enum ibv_wr_opcode opcode, uint64_t wr_id,
		unsigned send_flags, struct hca_swqe **out);
void hca_sq_builders_init(struct hca_qp *qp);
/* Behind a posting call, outside of hca_enter(): a datagram has nobody to go to yet.
 * The caller finds out sooner than the progress thread wakes up. */
void hca_sq_call(struct hca_qp *qp);
static inline void hca_sq_called(struct hca_qp *qp, uint8_t tx_blocked)
{
	if (unlikely(tx_blocked != HCA_TX_OPEN))
		hca_sq_call(qp);
}
/* Where an entry of an XRC initiator keeps the number of the SRQ: atomic
 * operations need the space of the others for their operands. */
static inline uint32_t *hca_swqe_srqn(struct hca_swqe *e)
{
	return hca_op_is_atomic(e->opcode) ? &e->imm : &e->srqn;
}
/* Not IBV_SEND_IP_CSUM: it is for Ethernet packets. */
#define HCA_SEND_FLAGS_KNOWN                                            \
	((unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED |                \
		    IBV_SEND_SOLICITED | IBV_SEND_INLINE))
/* May work be posted in this state? */
static inline bool hca_sq_accepts(enum ibv_qp_state s)
{
	return s == IBV_QPS_RTS || s == IBV_QPS_SQD || s == IBV_QPS_SQE ||
	       s == IBV_QPS_ERR;
}
/* Is the caller, who entered for another call, between ibv_wr_start() and its end?
 * It then has the lock of a send queue, which moving messages needs. The progress
 * thread is always inside, and builds nothing. */
static inline bool hca_builds(void)
{
	return unlikely(hca_self.depth > 1) && !hca_self.elided &&
	       !progress_is_self();
}
/* Transmits or flushes what waits, as the state says. sq_lock is held. */
void hca_sq_run(struct hca_qp *qp);
/* Entries that may be transmitted: all, in SQD those of before. */
static inline uint32_t hca_sq_end(const struct hca_qp *qp)
{
	return unlikely(hca_qp_state(qp) == IBV_QPS_SQD) ? qp->sq.drain_to :
							   qp->sq.head;
}
/* Raises SQ_DRAINED if it is owed and due. sq_lock is held. */
void hca_sq_drained(struct hca_qp *qp);
/* Datagrams that are posted and will complete to the queue. Nobody else has to do
 * anything for that: to the program they are as good as complete. No lock is held. */
uint32_t hca_sq_datagrams_to(const struct hca_cq *cq);
/* Transmit again from entry `index` on. sq_lock is held. */
void hca_sq_go_back(struct hca_qp *qp, uint32_t index);
/*
 * Completes the oldest transmitted entry with `status`; entries complete in
 * posting order. On an error status the QP goes to ERR (RC, UC) or SQE (UD)
 * and the rest is flushed. sq_lock is held.
 */
void hca_sq_complete(struct hca_qp *qp, enum ibv_wc_status status);
/* Flushes all of [tail, head); while a part of a copy is under way (HCA_TX_COPYING)
 * nothing: who copies runs the queue afterwards. sq_lock is held. */
void hca_sq_flush(struct hca_qp *qp);

/* ---- rq.c: receiving side ---- */
int hca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad);
/* 0 or a positive errno, as ibv_post_recv returns it. */
int hca_rq_post(struct hca_rq *rq, struct ibv_recv_wr *wr,
		struct ibv_recv_wr **bad);
/* `memory` is the caller's to free. */
int hca_rq_init(struct hca_rq *rq, uint32_t depth, uint32_t max_sge,
		struct hca_pd *pd, enum hca_resource kind,
		struct hca_memory *memory);
void hca_rq_reset(struct hca_rq *rq);
void hca_rq_flush(struct hca_qp *qp);
/* -EINVAL when more than `depth` entries are posted, -ENOMEM. */
int hca_rq_resize(struct hca_rq *rq, uint32_t depth, struct hca_pd *pd,
		  enum hca_resource kind, struct hca_memory *memory);

/* The oldest posted entry, NULL when none. consume_lock is held. */
static inline struct hca_rwqe *hca_rq_first(struct hca_rq *rq)
{
	uint32_t tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);

	if (tail == atomic_load_explicit(&rq->head, memory_order_acquire))
		return NULL;
	return hca_rq_entry(rq, tail);
}

/* Gives the entry of hca_rq_first() back for posting. consume_lock is held. */
static inline void hca_rq_consume(struct hca_rq *rq)
{
	atomic_store_explicit(&rq->tail,
			      atomic_load_explicit(&rq->tail,
						   memory_order_relaxed) + 1,
			      memory_order_release);
}

/* After each post of receives. */
static inline void hca_promise_posted(struct hca_qp *qp)
{
	if (unlikely(atomic_load_explicit(&qp->rq.head, memory_order_relaxed) -
			     qp->promising.upto >= qp->promising.step))
		hca_promise_extend(qp);
}

/* ---- srq.c ---- */
int hca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad);
/* Raises the limit event if it is due. consume_lock is held. */
void hca_srq_check_limit(struct hca_srq *srq);
/* By the number of an XRC SRQ; NULL: none of this process. */
struct hca_srq *hca_srq_find(uint32_t number);

/* The entry for the next message of a QP, NULL when none is posted.
 * recv->consume_lock is held for this and the two below. */
static inline struct hca_rwqe *hca_recv_first(struct hca_qp *qp)
{
	return unlikely(qp->claimed) ? qp->claim : hca_rq_first(qp->recv);
}

static inline void hca_recv_done(struct hca_qp *qp)
{
	if (unlikely(qp->claimed)) {
		qp->claimed = false;
		return;
	}
	hca_rq_consume(qp->recv);
	if (unlikely(qp->srq))
		hca_srq_check_limit(qp->srq);
}

/* Keeps the first entry for this QP while its message is incomplete: others
 * share the queue. */
static inline void hca_recv_keep(struct hca_qp *qp)
{
	if (!qp->srq || qp->claimed)
		return;
	memcpy(qp->claim, hca_rq_first(qp->recv), qp->recv->stride);
	hca_recv_done(qp);
	qp->claimed = true;
}

/* ---- cq.c ---- */
/* Whole words: a reader that loads more than was stored at once waits until
 * the stores have left the processor's buffer. */
static inline void hca_wc_copy(struct ibv_wc *to, const struct ibv_wc *wc)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	uint64_t *w = (uint64_t *)(void *)to;

	_Static_assert(sizeof(*wc) == 6 * sizeof(*w), "see below");
	w[0] = wc->wr_id;
	w[1] = (uint32_t)wc->status | (uint64_t)wc->opcode << 32;
	w[2] = wc->vendor_err | (uint64_t)wc->byte_len << 32;
	w[3] = wc->imm_data | (uint64_t)wc->qp_num << 32;
	w[4] = wc->src_qp | (uint64_t)wc->wc_flags << 32;
	w[5] = wc->pkey_index | (uint64_t)wc->slid << 16 |
	       (uint64_t)wc->sl << 32 | (uint64_t)wc->dlid_path_bits << 40;
#else
	*to = *wc;
#endif
}


int hca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int hca_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* Drops the completions of a QP that is reset or destroyed. */
void hca_cq_purge(struct hca_cq *cq, uint32_t qpn);
/* The oldest completion, and when it was pushed if that was asked for. */
bool hca_cq_take(struct hca_cq *cq, struct ibv_wc *wc, uint64_t *stamp);
/* Moves messages for a poller, when the queue is empty or it is time to; and
 * afterwards, outside of hca_enter(). */
void hca_cq_move(struct hca_cq *cq);
void hca_cq_moved(struct hca_cq *cq, bool found);
static inline bool hca_cq_empty(struct hca_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_acquire) ==
	       atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

/* ---- cq_ex.c: extended completion queues ---- */
void hca_cq_ex_ops_init(struct verbs_context *v);

/* ---- cq_event.c: arming, moderation, overrun ---- */
void hca_cq_event_init(struct hca_cq *cq);
void hca_cq_event_fini(struct hca_cq *cq);
/* A special queue got the entry at `head`. cq->lock is held. */
enum hca_cq_action hca_cq_pushed(struct hca_cq *cq, uint32_t head,
				 const struct ibv_wc *wc, bool solicited);
/* The same action, behind the lock. */
void hca_cq_act(struct hca_cq *cq, enum hca_cq_action action);
/* An entry was lost: the first time the application and its QPs are told. */
void hca_cq_overrun(struct hca_cq *cq);

/* ---- pushing, inline ---- */
/* No room. True: the entry may be written all the same. cq->lock is held, and
 * released if not. */
bool hca_cq_full(struct hca_cq *cq);

/* Inline so that `wc` never exists in memory but in the queue. */
static inline __attribute__((always_inline)) void
hca_cq_push(struct hca_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	enum hca_cq_action action;
	uint32_t head;

	PROBE(complete, wc->qp_num, wc->wr_id, wc->status, wc->opcode,
	      wc->byte_len);
	if (cq->direct) {
		hca_wc_copy(cq->direct, wc);
		cq->direct = NULL;
		return;
	}
	hca_lock(&cq->lock);
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	/* After an overrun the queue stays in error: nothing comes behind a gap. */
	if (unlikely(atomic_load_explicit(&cq->overrun, memory_order_relaxed) ||
		     head - atomic_load_explicit(&cq->tail,
						 memory_order_relaxed) >=
			     cq->limit) &&
	    !hca_cq_full(cq))
		return;
	hca_wc_copy(&cq->ring[head & cq->mask], wc);
	atomic_store_explicit(&cq->head, head + 1, memory_order_release);
	if (unlikely(cq->special)) {
		action = hca_cq_pushed(cq, head, &cq->ring[head & cq->mask],
				       solicited);
		hca_unlock(&cq->lock);
		if (action)
			hca_cq_act(cq, action);
		return;
	}
	hca_unlock(&cq->lock);
}

/* ---- sq.c again: what completes, in its straight form ---- */
/* The oldest entry leaves the queue, with a completion if one is due. */
static inline void hca_sq_report(struct hca_qp *qp, enum ibv_wc_status status)
{
	struct hca_sq *sq = &qp->sq;
	const struct hca_swqe *e = hca_sq_entry(sq, sq->tail++);
	struct ibv_wc wc = {
		.wr_id = e->wr_id,
		.status = status,
		.opcode = hca_opcodes[e->opcode].completion,
		.byte_len = e->length,
		.qp_num = qp->ibv.qp_num,
	};

	if (likely(status == IBV_WC_SUCCESS))
		HCA_COUNT_SENT(qp, e->opcode, e->length);
	else
		hca_count_failed(qp, status);
	if (likely(e->flags & HCA_SWQE_SIGNALED) || status != IBV_WC_SUCCESS)
		hca_cq_push(qp->send_cq, &wc, false);
}

/* hca_sq_complete() of a transmitted entry that went well. */
static inline void hca_sq_complete_ok(struct hca_qp *qp)
{
	hca_sq_report(qp, IBV_WC_SUCCESS);
	qp->lost_since_ns = 0;
	if (unlikely(qp->sq.draining))
		hca_sq_drained(qp);
}

/* ---- key.c ---- */
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

/* ---- paging.c: what hca_sge_resolve() (process.h) does not answer ---- */
/* Copies `length` bytes from or to offset `at` of `sge`, whatever its key. 0 or
 * -EFAULT: not allowed, or a page is not there. They may call the kernel. */
int hca_sge_read(const struct hca_pd *pd, const struct ibv_sge *sge,
		 uint32_t at, void *to, uint32_t length);
int hca_sge_write(const struct hca_pd *pd, const struct ibv_sge *sge,
		  uint32_t at, const void *from, uint32_t length);
/* An address for the kernel to copy from or to (process_vm_readv), never for the
 * program: its pages may be missing. NULL: not allowed. */
void *hca_sge_for_kernel(const struct hca_pd *pd, const struct ibv_sge *sge,
			 unsigned access);
/* memcpy() that survives a missing page: 0 or -EFAULT. It calls the kernel. */
int hca_copy_careful(void *to, const void *from, size_t length);
/* May the program read, or write, the 4 bytes at this aligned address? */
bool hca_page_usable(void *addr, bool write);

/* ---- mw.c ---- */
/* Carries out the local operation `e`. 0, -EAGAIN (a peer still copies with the
 * key: again in a while, never if `waited` long enough) or -EINVAL. sq_lock is
 * held. */
int hca_local_run(struct hca_qp *qp, struct hca_swqe *e, bool waited);
/* A SEND with invalidate came for `qp`: 0, or -EINVAL when it names no window
 * that is bound to the QP. */
int hca_key_invalidate(struct hca_qp *qp, uint32_t rkey);
/* The part of a BIND_MW entry that is its own. */
void hca_mw_fill_bind(struct hca_swqe *e, struct ibv_mw *mw, uint32_t rkey,
		      const struct ibv_mw_bind_info *info);
/* The QP is being destroyed: its windows are of no use any more. */
void hca_mw_qp_gone(struct hca_qp *qp);

/* ---- qp.c ---- */
/* QPs that complete to this CQ cannot report completions any more. */
void hca_qps_fail_on(struct hca_cq *cq);
/* All of a device (N of softN, or HCA_INSPECT_DEVICES); process.lock is held. */
void hca_qps_fail_of(uint32_t device);
/* Takes in what has arrived, so that it is done when a QP is flushed. No lock but
 * process.lock is held. */
void hca_take_in(void);
/* A message came in a state before RTS: tells the application, once. */
void hca_qp_established(struct hca_qp *qp);
/* Moves to ERR and flushes both queues. sq_lock is not held. */
void hca_qp_fail(struct hca_qp *qp);
/* The same with sq_lock held. */
void hca_qp_fail_locked(struct hca_qp *qp);
void hca_qp_set_state(struct hca_qp *qp, enum ibv_qp_state state);

/* ---- qp_xrc.c: target QPs ---- */
int hca_target_create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
		      struct ibv_qp **out);
/* Gives a handle back; with the last one the QP ends. */
void hca_target_put(struct hca_qp *handle);
/* The QP behind what a program holds. */
static inline struct hca_qp *hca_qp_behind(struct ibv_qp *ibqp)
{
	struct hca_qp *qp = hca_qp(ibqp);

	return unlikely(qp->target) ? qp->target : qp;
}

/* ---- xrcd.c ---- */
void hca_xrcd_forked(void);
void hca_xrc_targets_forked(void);

#include "hca/address.h"
#include "hca/async.h"
#include "hca/transition.h"

#endif
