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
#ifndef TRANSPORT_SHM_SHM_H
#define TRANSPORT_SHM_SHM_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "hca/objects.h"
#include "hca/process.h"
#include "hca/region.h"
#include "transport/shm/ring.h"

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

struct shm_responder;

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

/* ---- link.c: links as such ---- */
bool shm_uuid_is(const struct shm_link *l, const uint8_t uuid[16]);
/* From a data path: end the link soon, on the progress thread. */
void shm_link_violation(struct shm_link *l, const char *what);
int shm_links_start(void);
void shm_links_stop(void);
void shm_links_forked(void);

/* ---- handshake.c: how two processes get one ---- */
int shm_block_claimed(uint32_t block, int listen_fd);
/* Brings up links of which only we do not know yet that they are. */
void shm_links_settle(void);

/* ---- resolve.c: which one leads to whom ---- */
/*
 * The link to the owner of QPN block `block`, UP or CONNECTING; starts one when
 * there is none. NULL with *refused set when nobody owns the block (or its
 * owner may not be talked to). shm.lock is held.
 */
struct shm_link *shm_link_get(uint32_t block, bool *refused);
/* Links with the owner of a block, if it is one that we may talk to. True: the
 * link is still being made. shm.lock is held. */
bool shm_link_reach(uint32_t block);
enum shm_peer_known {
	SHM_PEER_LINKED,
	SHM_PEER_CALLED, /* it has not answered yet */
	SHM_PEER_ABSENT, /* or has refused */
};
/* Attaches the QP to the link with its peer's process; waits for that (at most a
 * second, not on the progress thread) if it is to. */
enum shm_peer_known shm_qp_resolve(struct hca_qp *qp, bool wait);
/* Takes every reference to the QP out of all links. */
void shm_qp_forget(struct hca_qp *qp);

/* ---- guard.c: what is asked of a peer before it is believed ---- */
/* May one that may not talk to us ask who we are? shm.lock is held. */
bool shm_strangers_have_room(void);
/* Or has it enough links already? shm.lock is held. */
bool shm_peer_has_room(const struct ucred *peer);
/* For that time; shm.lock is held for both. */
#define SHM_BAN_NS UINT64_C(60000000000) /* after a violation */
void shm_peer_ban(pid_t pid, uint64_t ns);
bool shm_peer_is_banned(pid_t pid);
/* Can `size` bytes of it be mapped and read for good? */
bool shm_memory_stays(int fd, size_t size);
bool shm_wakeup_is_eventfd(int fd);
bool shm_block_is_of(uint32_t block, pid_t pid);
bool shm_from_owner(struct hca_qp *qp, struct shm_link *l, uint32_t src_qpn);

/* Does a message of QP `src_qpn` that came by this link come from the peer of
 * the (connected) QP? Any process can write any numbers into its messages. */
static inline bool shm_from_peer(struct hca_qp *qp, struct shm_link *l,
				 uint32_t src_qpn)
{
	if (src_qpn != atomic_load_explicit(&qp->pub->dest_qpn,
					    memory_order_relaxed))
		return false;
	return likely(qp->rx_peer == l->rx_peer) || shm_from_owner(qp, l, src_qpn);
}

/* Copies out of memory that the peer can write, so that the compiler cannot
 * read there a second time what it has checked. */
static inline void shm_copy_once(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	__asm__ volatile("" : : "r"(to) : "memory");
}

/* ---- peer.c: what the peer shows ---- */
/* Its segment, whose head then can be read. 0 or a negative errno. */
int shm_peer_map(struct shm_link *l, int fd);
/* Its table of keys; `fd` may be -1. Before the link is up. */
int shm_peer_map_keys(struct shm_link *l, int fd);
void shm_peer_unmap(struct shm_link *l);
/* Our descriptor for the peer, with which it may look up our keys and then reach our
 * memory by itself, or -1: it may not. */
int shm_keys_for_peer(const struct shm_link *l);
/* Is it given to the peer? Of one that it is not given to, nobody copies on its own. */
static inline bool shm_keys_given(const struct shm_link *l)
{
	return l->lends & (HCA_PEER_MEMORY | HCA_PEER_REGIONS);
}
/* What it shows of a QP or XRC SRQ of its; NULL: not its number. */
const struct hca_qp_public *shm_find_remote(struct shm_link *l, uint32_t number);
/* The slow half of shm_keys_upto(). */
uint32_t shm_keys_open(struct shm_link *l, uint32_t index);
/* How many of the peer's keys may be looked at, `rkey` among them if there is one. */
static inline uint32_t shm_keys_upto(struct shm_link *l, uint32_t rkey)
{
	uint32_t count = atomic_load_explicit(&l->key_count,
					      memory_order_relaxed);

	return likely(rkey >> 8 < count) ? count : shm_keys_open(l, rkey >> 8);
}

/* ---- control.c: messages of the link's socket ---- */
#define SHM_CONTROL_MAGIC 0x6d687362u
#define SHM_CONTROL_VERSION 6 /* also when struct hca_segment changes */

enum shm_control_kind {
	SHM_HELLO = 1, /* descriptors: segment, kick, area; kick: the segment again
			* for who does not get it */
	SHM_WELCOME,   /* descriptors: segment, kick, and keys or none */
	SHM_REDIRECT,  /* use the link that we have with you already */
	SHM_READY,     /* descriptor: keys or none */
	SHM_REFUSED,   /* instead of WELCOME: you may not talk to us */
	/* On a link that is up. A request that is refused has no answer. */
	SHM_ASK_MEMORY,
	SHM_MEMORY,      /* descriptor: /proc/self/mem */
	SHM_ASK_REGION,  /* `id`, `key`: one that lies in the region */
	SHM_REGION,      /* `id`, `length`, `writable`, `touch_*`; descriptor */
	SHM_REGION_GONE, /* `id` */
	/* One byte instead of a message: wakes who has no eventfd for that. */
	SHM_KICK,
};

struct shm_control {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	uint32_t area_bytes;
	uint32_t block_count;
	uint32_t id, key;
	uint64_t length;
	uint64_t touch_at, touch_length; /* will be used soon */
	uint32_t writable;
	uint32_t lends;        /* HELLO, WELCOME: enum hca_peer_lends */
	uint64_t segment_addr; /* of the sender's segment in its own space, for
				* those who may look there */
	uint8_t uuid[16];
	uint32_t blocks[HCA_BLOCKS_PER_PROCESS];
};

/* Sends `*msg`, whose identity it fills in. 0 or a negative errno; never waits. */
int shm_control_send(int fd, struct shm_control *msg, const int *fds,
		     int fd_count);
/* A message of a kind alone. */
int shm_control_tell(int fd, enum shm_control_kind kind, const int *fds,
		     int fd_count);
/* What comes next, left where it is: 1; 0: nothing yet; -EPROTO: nothing of ours, or
 * the end. */
int shm_control_peek(int fd, struct shm_control *msg);
/* 1 with *msg and fds filled (missing ones -1), 0 nothing there, or a negative
 * errno (-ECONNRESET at the end). `take`: with its descriptors; else they never
 * become ours. */
int shm_control_recv(int fd, struct shm_control *msg, bool take, int fds[3]);
/* Descriptors that were of no use. */
void shm_control_drop(int fds[3]);
/* A SHM_KICK. */
void shm_control_kick(int fd);

/* ---- tx.c ---- */
void shm_transmit(struct hca_qp *qp);
/* Of a UC QP without a peer: what is sent is lost. sq_lock is held. */
void shm_lose_unreliable(struct hca_qp *qp);

/* The QP tries again when the link has moved on, or is up. sq_lock is held. */
void shm_backlog_wait(struct shm_link *l, struct hca_qp *qp);
void shm_wake(struct shm_link *l);
/* What the peer wants to be woken for. */
static inline uint32_t shm_wanted(const struct shm_link *l)
{
	/* Our slot must be visible before we look whether the peer sleeps: the
	 * peer's membarrier does that for us, unless it has none. */
	if (l->fence)
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(&l->peer->wants_kick, memory_order_relaxed);
}

/* Wakes the peer if it sleeps. tx_lock or rx_lock is held. */
static inline void shm_kick(struct shm_link *l)
{
	if (unlikely(shm_wanted(l) != HCA_WAKE_NOTHING))
		shm_wake(l);
}

/* Likewise behind a datagram, whose sender waits for nothing. */
static inline void shm_kick_datagram(struct shm_link *l, const struct hca_swqe *e)
{
	uint32_t wanted = shm_wanted(l);

	if (unlikely(wanted != HCA_WAKE_NOTHING) &&
	    (wanted != HCA_WAKE_SOLICITED || e->flags & HCA_SWQE_SOLICITED))
		shm_wake(l);
}
/* Behind a request that the peer has to carry out: wakes it if nobody else would. */
void shm_wake_target(struct shm_link *l);
/* Tells the peer that our one-sided access broke its rules, and which. */
void shm_send_fault(struct hca_qp *qp, struct shm_link *l,
		    enum ibv_wc_status status);

/* The parts of transmission that the other kinds of it need, too. */
/* Is `remote`, which a peer shows, connected to this QP and in service? */
static inline bool shm_answers(const struct hca_qp *qp, const struct hca_qp_public *r)
{
	uint32_t state;

	if (!r || atomic_load_explicit(&r->qpn, memory_order_relaxed) !=
			  qp->attr.dest_qp_num)
		return false;
	state = atomic_load_explicit(&r->state, memory_order_acquire);
	return (state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
		state == IBV_QPS_SQD || state == IBV_QPS_SQE) &&
	       atomic_load_explicit(&r->dest_qpn, memory_order_relaxed) ==
		       qp->ibv.qp_num &&
	       (atomic_load_explicit(&r->type, memory_order_relaxed) ==
		IBV_QPT_UC) == !shm_is_reliable(qp);
}
static inline bool shm_remote_ready(const struct hca_qp *qp)
{
	return shm_answers(qp, shm_qp(qp)->remote);
}
/* A QP that waits for room. False: it waits for another link already. sq_lock and
 * tx_lock are held. */
bool shm_backlog_add(struct shm_link *l, struct hca_qp *qp);
/* One slot: 0, -EAGAIN (no room), -EFAULT (a key), -EPERM (the QP may not do
 * it). tx_lock is held. */
int shm_put_xrc(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e,
		bool by_target);

/* ---- datagram.c ---- */
/* To the link that its address handle and number say: as hca_transport_ops.datagram. */
int shm_send_datagram(struct hca_qp *qp, const struct hca_swqe *e);
/* As shm_put_xrc(). */
int shm_put_datagram(struct hca_qp *qp, struct shm_link *l,
		     const struct hca_swqe *e);

/* ---- ack.c ---- */
/* After posting: keeps a ring from filling up while nobody polls. */
void shm_posted(struct hca_qp *qp);
/* Works off acknowledgements; true if there were any. `look`: in the peer's
 * line too, which costs a cache miss when the peer has just written it.
 * ack_lock is held. */
bool shm_harvest(struct shm_link *l, bool look);
/* Completes what the peer will receive for certain; true if there was any.
 * ack_lock is held. */
bool shm_take_promises(struct shm_link *l);
/* Works off what a peer that has ended acknowledged. */
void shm_harvest_rest(struct shm_link *l);
/* Lets the QPs of a list that was taken from a link try again. The caller sees
 * to it that none of them is forgotten meanwhile. */
void shm_backlog_run(struct list *waiting);
/* The same for a link that has come up. shm.lock is held. */
void shm_backlog_open(struct shm_link *l);

/* ---- xrc_tx.c ---- */
void shm_transmit_xrc(struct hca_qp *qp);
/*
 * The link to the owner of an SRQ. It is not taken down as long as it is
 * borrowed. NULL: there is none (yet).
 */
struct shm_link *shm_link_borrow(uint32_t srqn);
static inline void shm_link_return(struct shm_link *l)
{
	atomic_fetch_sub(&l->borrowed, 1);
}
/* The addresses of an XRC message; tx_lock is held. */
void shm_xrc_address(const struct hca_qp *qp, const struct hca_swqe *e,
		     const struct shm_slot *slot, struct shm_header *h);
/* Has `srq`, which somebody shows, the number and the domain of a message's? */
bool shm_xrc_serves(const struct hca_qp_public *srq, uint32_t srqn,
		    const struct hca_qp_public *target);
/* The SRQ's side refused a message: tells the target QP's. sq_lock is held. */
void shm_xrc_refused(struct hca_qp *qp, const struct hca_swqe *e,
		     enum ibv_wc_status status);
/* The retry timer's part: looks for the owner of the next message's SRQ. */
void shm_xrc_resolve(struct hca_qp *qp);
/* A link has ended: what was on the way through it is lost. shm.lock is held,
 * and nobody transmits through the link any more. */
void shm_xrc_link_lost(struct shm_link *l);

/* ---- xrc_rx.c ---- */
/* A QP that takes the message in, on behalf of the target; NULL: it is dropped.
 * rx_lock is held. */
struct hca_qp *shm_xrc_responder(struct shm_link *l,
				 const struct shm_xrc_header *h, bool first,
				 uint8_t rnr_timer);
void shm_srq_forget(struct hca_srq *srq);
/* The link's end; rx_lock is held. */
void shm_responders_free(struct shm_link *l);

/* ---- mcast.c ---- */
/* A datagram to all processes that have members. sq_lock is held. 0, -EFAULT, or
 * -EAGAIN: it waits for the links. */
int shm_multicast(struct hca_qp *qp, const struct hca_swqe *e);
/* The retry timer's part. */
void shm_multicast_resolve(struct hca_qp *qp);
void shm_mcast_enter(bool joined);
/* The adapter's end, also in a forked child. */
void shm_mcast_stop(void);

/* ---- local.c ---- */
/* The next entry, which sends nothing (BIND_MW, LOCAL_INV). True when it is done
 * and transmission may go on. sq_lock is held. */
bool shm_local(struct hca_qp *qp);

/* ---- retry.c ---- */
/* The oldest entry was lost (or could not be sent): go back to it and try
 * again later, or give up when the retry time is over. sq_lock is held. */
void shm_retry_lost(struct hca_qp *qp);
void shm_retry_rnr(struct hca_qp *qp, uint8_t timer_code);
/* The retry timer's work, on the progress thread. */
void shm_retry_expired(struct hca_qp *qp);

/* Of a UC or UD QP without a link: sends when it is there. sq_lock is held. */
void shm_wait_for_link(struct hca_qp *qp);
/* Between two looks whether a link stands that a message needs, at first. */
#define SHM_LINK_WAIT_NS 20000

/* ---- plain.c: the usual message ---- */
/* An entry of the send queue, if it is one; false: nothing was done. The caller
 * kicks. sq_lock is held. */
bool shm_transmit_plain(struct hca_qp *qp, struct shm_link *l,
			const struct hca_swqe *e);
/* Likewise a request that is not in the queue yet (qp_post of the transport's
 * table): its slot is filled first, the entry of the queue behind that. */
bool shm_post_plain(struct hca_qp *qp, const struct ibv_send_wr *wr);
#define SHM_RECEIVE_BUDGET 32 /* slots per call, so that others get their turn */

/* ---- scatter.c ---- */
/* Bytes that a posted receive can take. */
uint64_t shm_room_of(const struct hca_rwqe *e);
/*
 * The pieces of the buffers that [at, at + length) of a message falls into. Returns
 * their number, or -EFAULT when a key does not allow it. `kernel`, unless it is NULL:
 * they need not be there where only the kernel copies; set when that is so.
 */
int shm_sge_iov(const struct hca_pd *pd, const struct ibv_sge *sge, unsigned count,
		uint32_t at, uint32_t length, unsigned access, struct iovec *iov,
		bool *kernel);
/* A part of a message into them; 0 or -EFAULT. */
int shm_copy_in(const struct hca_qp *qp, const struct hca_rwqe *e, uint32_t at,
		const uint8_t *from, uint32_t length);

/* ---- rx.c ---- */
/* Any message, in full; true if the sender has to act. rx_lock is held. */
bool shm_receive_other(struct shm_link *l, struct shm_slot *slot,
		       struct shm_header h);
/* Takes messages in; true if there were any. rx_lock is held. */
bool shm_receive(struct shm_link *l);
/* Takes in all that is on its way now. */
void shm_receive_rest(struct shm_link *l);

/* The next slot, if it is filled; rx_lock is held and the link is up. */
static inline struct shm_slot *shm_slot_ready(struct shm_link *l, uint32_t pos)
{
	struct shm_slot *s = &l->rx->slots[pos % SHM_SLOTS];

	return atomic_load_explicit(&s->tag, memory_order_acquire) ==
			       pos / SHM_SLOTS + 1 ?
		       s : NULL;
}

/* ---- atomic.c ---- */
/* `word`: the data of an ATOMIC WRITE. */
void shm_atomic_request(const struct hca_swqe *e, uint64_t word,
			struct shm_slot *slot);
/* The operation itself, SHM_COMPARE_SWAP and the like; the original value. */
uint64_t shm_atomic_apply(uint64_t *at, enum shm_op op, uint64_t compare_add,
			  uint64_t swap);
/* At the responder; rx_lock is held. */
enum ibv_wc_status shm_atomic_execute(struct hca_qp *qp, struct shm_slot *slot,
				      enum shm_op op);
/* The original value into the initiator's buffers; sq_lock is held. */
enum ibv_wc_status shm_atomic_result(const struct hca_qp *qp,
				     const struct hca_swqe *e, uint64_t result);

/* ---- access.c: the ways into a peer's memory ---- */
const char *shm_path_name(enum shm_path path);
/* Finds out how the new link's peer is reached, and tells it; not without its keys
 * (peer.c). If they follow, again when they are there. shm.lock is held. */
void shm_access_choose(struct shm_link *l, bool keys_follow);
/* For those who look from outside: enum hca_link_flags. */
uint32_t shm_access_flags(const struct shm_link *l);
/* The link is up: asks for a better path if there may be one. */
void shm_access_improve(struct shm_link *l);
/* Messages about it, on a link that is up. 0 or -EPROTO. Progress thread;
 * shm.lock is held. */
int shm_access_message(struct shm_link *l, const struct shm_control *msg,
		       int fds[3]);
/*
 * Copies `length` bytes between `far`, addresses of the peer, and `near`; both
 * are used up. 0, -ESRCH (the peer is gone), -EPERM (the path does not work any
 * more, another one is used from now on) or -EFAULT.
 */
int shm_access_copy(struct shm_link *l, bool read, struct iovec *near,
		    int near_count, struct iovec *far, int far_count,
		    uint64_t length);

/* ---- map.c: regions of peers in our address space ---- */
/*
 * Where [offset, offset + length) of the peer's region `id` is mapped; NULL when
 * it is not. A region that is not mapped is asked for by `rkey`, once; that does
 * not wait. The sq_lock of a QP of the link is held, also while it is used, or a part
 * of a copy is announced to shm_copy_fence().
 */
uint8_t *shm_map_find(struct shm_link *l, uint32_t rkey, uint32_t id,
		      uint64_t offset, uint64_t length, bool write);
int shm_map_message(struct shm_link *l, const struct shm_control *msg,
		    int fds[3]);
/* Was the peer asked for this region, and may it be mapped? */
bool shm_map_awaits(const struct shm_link *l, uint32_t id);
void shm_map_release(struct shm_link *l);
void shm_region_gone(uint32_t id);

/* Can the peer copy from or to our memory by itself? tx_lock or shm.lock is held,
 * and the link is up. */
static inline bool shm_reaches_us(const struct shm_link *l)
{
	return ((l->lends & HCA_PEER_MEMORY) &&
		atomic_load_explicit(&l->tx->ack.pulls, memory_order_relaxed)) ||
	       atomic_load_explicit(&l->lent, memory_order_relaxed);
}

/* ---- onesided.c ---- */
/* The peer has ended. Its memory would still take our stores. */
static inline bool shm_peer_died(const struct shm_link *l)
{
	return atomic_load_explicit(&l->peer->alive, memory_order_relaxed) &
	       HCA_DIED;
}

enum shm_step {
	SHM_STEP_DONE,      /* carried out; the status says how it ended */
	SHM_STEP_TO_TARGET, /* the target has to do it */
};
/* Whether the initiator may carry this entry out itself. Cheap, and may be wrong
 * a moment later. sq_lock is held. */
bool shm_onesided_reaches(struct hca_qp *qp, struct shm_link *l,
			  const struct hca_swqe *e);
/* Where the memory is, as it is while sq_lock is held, or the links are borrowed. */
struct shm_way {
	struct shm_link *link;
	const struct hca_qp_public *remote; /* that the QP is connected to */
	/* Whose protection domain the memory has to be in: the same, or an XRC SRQ. */
	const struct hca_qp_public *owner;
};
/* Of the entry's data; with a length of 0 it is found out whether it could be done, and
 * nothing is copied. */
struct shm_part {
	uint32_t at, length;
};
enum shm_step shm_onesided(struct hca_qp *qp, const struct hca_swqe *e,
			   const struct shm_way *way, const struct shm_part *part,
			   enum ibv_wc_status *status);
void shm_qp_fence(const struct hca_qp *qp); /* NULL: an XRC SRQ is gone */
void shm_key_fence(uint32_t key);
bool shm_key_busy(uint32_t key);

/* ---- target.c: WRITE and READ by messages ---- */
/* Bytes of the next part of an entry of which `at` bytes are sent, and whether
 * they travel in the data area. */
uint32_t shm_request_part(const struct hca_swqe *e, uint32_t at, bool *in_data);
/* At the responder. `part`: as it was looked at, of data in the data area; and as
 * it is. IBV_WC_GENERAL_ERR: the peer broke the rules. rx_lock is held. */
enum ibv_wc_status shm_request_execute(struct shm_link *l, struct hca_qp *qp,
				       struct shm_slot *slot, uint8_t op,
				       uint8_t flags, uint32_t length,
				       struct shm_extent *part);
/* At the initiator: the data of an acknowledged READ into its buffers, before the
 * slot is used again. ack_lock is held. */
enum shm_status shm_read_arrived(struct shm_link *l,
				 const struct shm_inflight *f,
				 const struct shm_slot *slot,
				 enum shm_status status);
/* The pieces of an entry's buffers that [at, at + length) of its message falls
 * into; their number, or -EFAULT. `*kernel` is set when the program may not touch
 * some of them, as pages may be missing (hca_sge_for_kernel). */
int shm_swqe_iov(const struct hca_qp *qp, const struct hca_swqe *e, uint32_t at,
		 uint32_t length, unsigned access, struct iovec *iov,
		 bool *kernel);
/* Is a lock of a link that may be in use by who moves messages already to be
 * waited for? See hca_transport_ops.poll. */
static inline bool shm_lock_for(struct spin *lock, bool wait)
{
	if (likely(hca_trylock(lock)))
		return true;
	if (wait)
		hca_lock(lock);
	return wait;
}

/* An application that only polls for receives still has sends that must go on:
 * one whose receiver was not ready, one with an event owed. */
#define SHM_IDLE_POLLS_TO_LOOK 256
/* Where acknowledgements come with messages, the peer's line is left alone for
 * so long: whoever reads it takes it from the peer, which then has to fetch it
 * before its next message becomes visible. */
#define SHM_IDLE_POLLS_WHEN_CARRIED 64

/* Is there news of our slots, or is it time to look in the peer's line?
 * `acks`: somebody waits for them. Sets *look. ack_lock is held. */
static inline bool shm_harvest_due(struct shm_link *l, bool acks, bool *look)
{
	uint32_t idle = ++l->idle_polls;

	*look = (acks &&
		 (!l->carried || idle > SHM_IDLE_POLLS_WHEN_CARRIED)) ||
		unlikely(idle % SHM_IDLE_POLLS_TO_LOOK == 0) ||
		unlikely(atomic_load_explicit(&l->backlog,
					      memory_order_relaxed));
	return *look || atomic_load_explicit(&l->acked_hint,
					     memory_order_relaxed) !=
				l->hint_seen;
}

/* Is it time to look what is promised? Once behind the last message, when few are
 * on the way and no acknowledgement has come at once: where there are many they come
 * by themselves, keep the sender from running ahead in the ring (a third of the rate),
 * and the fence would hold up the next. And when nothing comes for long: the peer may be
 * slow. */
#define SHM_PROMISES_WHEN_BELOW 4
#define SHM_IDLE_POLLS_BEFORE_PROMISES 2
#define SHM_IDLE_POLLS_TO_PROMISES 2048
static inline bool shm_promises_due(struct shm_link *l)
{
	uint32_t pos = atomic_load_explicit(&l->tx_pos, memory_order_relaxed);

	return (l->idle_polls >= SHM_IDLE_POLLS_BEFORE_PROMISES &&
		pos != l->promises_pos &&
		pos - atomic_load_explicit(&l->harvested, memory_order_relaxed) <=
			SHM_PROMISES_WHEN_BELOW) ||
	       unlikely(l->idle_polls % SHM_IDLE_POLLS_TO_PROMISES == 0);
}

/* Is anything to be acknowledged or waiting? */
static inline bool shm_outstanding(struct shm_link *l)
{
	return atomic_load_explicit(&l->tx_pos, memory_order_relaxed) !=
		       atomic_load_explicit(&l->harvested,
					    memory_order_relaxed) ||
	       atomic_load_explicit(&l->backlog, memory_order_relaxed);
}

static inline uint32_t shm_uuid_tag(const uint8_t uuid[16])
{
	uint32_t tag;

	memcpy(&tag, uuid, sizeof(tag));
	return tag;
}

/* Drops the first `done` bytes of iov[0..n); returns the new n. */
static inline int shm_iov_advance(struct iovec *iov, int n, size_t done)
{
	int skip = 0;

	while (skip < n && done >= iov[skip].iov_len)
		done -= iov[skip++].iov_len;
	memmove(iov, iov + skip, (size_t)(n - skip) * sizeof(*iov));
	if (n > skip && done) {
		iov[0].iov_base = (char *)iov[0].iov_base + done;
		iov[0].iov_len -= done;
	}
	return n - skip;
}

#endif
