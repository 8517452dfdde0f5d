/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data path of the infiniband node-type: one queue pair, its two completion
 * queues and the samples that they hold.
 *
 * A channel knows nothing of addresses, events or the connection manager; it is
 * given a queue pair when there is one and has it taken away again. A test can
 * set one up by hand.
 *
 * Three threads meet here: the reader, the writer (one of each) and the owner,
 * the thread that opens and closes the channel. `control` says what is open. A
 * data thread first marks its direction as in use and then looks at `control`;
 * the owner first clears its bit in `control` and then waits until the
 * direction is out of use. So the data path pays one uncontended atomic
 * exchange and takes no lock, and everything else in a direction belongs to
 * whoever is inside.
 *
 * A reader that may sleep waits for two descriptors, its completion channel's and
 * wake_fd. So whoever clears or sets a bit in `control` that the reader must
 * take note of writes wake_fd afterwards.
 *
 * Ownership: a sample that was passed to read or write and is not handed back
 * belongs to the channel, in exactly one of these places: a table of open work
 * requests, the spares, the pending ones.
 */
#ifndef GATEWAY_NODE_INFINIBAND_CHANNEL_H
#define GATEWAY_NODE_INFINIBAND_CHANNEL_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/node/infiniband/budget.h"
#include "gateway/node/infiniband/registered.h"
#include "gateway/plugin/node.h"
#include "gateway/sample/sample.h"
#include "util/container_of.h"

/* Work requests in one chain, completions in one poll. */
#define IB_BATCH 64
/* The global routing header in front of every received UD message. */
#define IB_GRH_SIZE 40
/* Work request that carries no sample: inline, or the flush of the owner. */
#define IB_WR_ID_NONE 0
#define IB_WR_ID_FLUSH UINT64_MAX

enum ib_control {
	IB_RX_OPEN = 1 << 0,    /* the queue pair takes receive requests */
	IB_RX_PENDING = 1 << 1, /* samples that a gone queue pair received */
	IB_TX_OPEN = 1 << 2,    /* connected: the queue pair can send */
	IB_INTERRUPT = 1 << 3,  /* one read shall return soon */
};

/* Samples of the open work requests. wr_id is the index plus one. */
struct ib_table {
	struct sample **samples;
	uint32_t *free;
	unsigned depth;
	unsigned free_count;
};

/* The figures of the node-type; those of the data path come first. */
enum ib_figure {
	IB_COUNT_MALFORMED,  /* dropped: size is not 24 + 8 n */
	IB_COUNT_FAILED,     /* posted, but completed with an error */
	IB_COUNT_QUEUE_FULL, /* calls that the send queue cut short */
	IB_COUNT_UNSENDABLE, /* not registered, or larger than the MTU */
	IB_COUNT_FAULTS,     /* the number of those above */
	IB_COUNT_CONNECTIONS = IB_COUNT_FAULTS,
	IB_COUNT_CONNECTED_TIMES,
	IB_COUNT_LOST,
	IB_COUNT_UNREACHABLE,
	IB_COUNT_REJECTED,
	IB_FIGURES,
};

/* What both ends of a direction count; one writer, any reader. */
struct ib_counters {
	_Atomic uint64_t received;    /* samples handed to the path */
	_Atomic uint64_t sent;        /* samples posted */
	_Atomic uint64_t faults[IB_COUNT_FAULTS]; /* by enum ib_figure */
};

struct ib_rx {
	bool armed;                   /* the next completion gives an event */
	bool ud;
	unsigned unacked;             /* events taken */
	unsigned threshold;           /* fill up to here before polling */
	struct ib_table table;
	struct ib_keys keys;
	/* Empty samples that are to be posted before any other. */
	struct sample **spares;
	unsigned spare_count;
	/* Received ones that are to be handed out before any other. */
	struct sample **pending;
	unsigned pending_first, pending_count;
	struct ibv_wc wc[IB_BATCH];
	struct ibv_recv_wr wr[IB_BATCH];
	struct ibv_sge sge[2 * IB_BATCH];
};

struct ib_tx {
	struct ib_table table;
	struct ib_keys keys;
	unsigned unsignaled;          /* since the last signaled one */
	struct ibv_ah *ah;            /* UD: the peer */
	uint32_t remote_qpn, remote_qkey;
	bool flushing;                /* the owner's request is posted */
	bool flushed;                 /* it is back */
	struct ibv_wc wc[IB_BATCH];
	struct ibv_send_wr wr[IB_BATCH];
	struct ibv_sge sge[IB_BATCH];
};

struct ib_channel_config {
	const char *name;                /* for messages */
	struct node *node;               /* whose figures count too; NULL in tests */
	struct ib_registrar *registrar;
	struct signal_list *signals;     /* borrowed; may be NULL */
	unsigned rx_depth, rx_threshold;
	unsigned tx_depth;
	unsigned signal_every;           /* the n-th unsignaled one is signaled */
	bool ud;
	int notify_fd;                   /* eventfd of the owner, -1: none */
	/* Of a reader that may sleep; borrowed, non-blocking. NULL: it polls for ever. */
	struct ibv_comp_channel *events;
	uint64_t spin_ns;                /* without data, before it sleeps */
};

/* What a queue pair that was just made brings along. */
struct ib_channel_qp {
	struct ibv_qp *qp;
	struct ibv_cq *recv_cq, *send_cq;
	size_t inline_limit;             /* bytes; 0: never inline */
	size_t size_max;                 /* largest message, 0: any */
	struct ibv_sge grh;              /* where UD puts the routing header */
};

struct ib_channel {
	struct ib_channel_config cfg;
	struct ib_channel_qp q;       /* those of the present queue pair */
	int wake_fd;                  /* eventfd: the reader waits here */
	int notify_fd;                /* eventfd of the owner, -1: none */
	atomic_bool polled;           /* somebody waits for the descriptors, and
				       * read must not */
	bool awaited;                 /* of the reader: read must not wait, it
				       * uses ib_channel_sleep() */
	struct ib_counters counters;
	atomic_int error;             /* first enum ibv_wc_status, or -errno */
	atomic_bool filled;           /* the receive queue was full enough */
	struct ib_budget *budget;     /* borrowed; used by stamped functions only */

	cache_aligned atomic_uint control; /* enum ib_control */
	cache_aligned atomic_uint reading;
	struct ib_rx rx;
	cache_aligned atomic_uint writing;
	struct ib_tx tx;
};

/* channel.c: by the owner only */
int ib_channel_init(struct ib_channel *ch, const struct ib_channel_config *cfg);
/* Closed, and ib_channel_release_all() was called. */
void ib_channel_destroy(struct ib_channel *ch);
/* The queue pair takes receive requests from now on. */
void ib_channel_open_rx(struct ib_channel *ch, const struct ib_channel_qp *q);
/* It can send too. `ah` is NULL unless the queue pair is UD. */
void ib_channel_open_tx(struct ib_channel *ch, struct ibv_ah *ah, uint32_t qpn,
			uint32_t qkey);
/* No data thread is inside that direction when these return. */
void ib_channel_close_rx(struct ib_channel *ch);
void ib_channel_close_tx(struct ib_channel *ch);
/*
 * Closed, queue pair in the error state: harvests both completion queues until
 * no work request is open or `timeout_ns` has passed. Samples that arrived in
 * time are kept for the reader.
 */
void ib_channel_drain(struct ib_channel *ch, uint64_t timeout_ns);
/*
 * Closed for writing, queue pair still connected: waits until everything posted
 * has left. False when that took longer than `timeout_ns`.
 */
bool ib_channel_flush(struct ib_channel *ch, uint64_t timeout_ns);
/*
 * Of a channel that nobody writes to: asks the peer's adapter for a sign of
 * life, without the peer's noticing. 1 it lives, 0 no answer yet (call again),
 * -EIO it does not answer.
 */
int ib_channel_probe(struct ib_channel *ch);
/* The queue pair is gone: releases what it still held, and the spares. */
void ib_channel_detach(struct ib_channel *ch);
/* Closed and detached: releases the pending samples too. */
void ib_channel_release_all(struct ib_channel *ch);
/* Samples that the channel owns now; exact only while nobody is inside. */
unsigned ib_channel_held(const struct ib_channel *ch);

/* sleep.c: from any thread; async-signal-safe */
void ib_channel_interrupt(struct ib_channel *ch);
/* From a data thread: something broke; closes `bits` and tells the owner. */
void ib_channel_break(struct ib_channel *ch, unsigned bits, int error);
/* channel.c: the reader, outside of a call, waits for data to become possible. */
void ib_channel_wait(struct ib_channel *ch, int timeout_ms);

/* read.c, write.c: the algorithms; see node.h for smps, cnt and release */
int ib_channel_read(struct ib_channel *ch, struct sample *smps[], unsigned cnt,
		    unsigned *release);
int ib_channel_write(struct ib_channel *ch, struct sample *smps[], unsigned cnt,
		     unsigned *release);
/* sleep.c. Between two reads, by the reader: sleeps until there may be something or
 * `until_ns` (clock_now_ns()) has come; for nothing at the first call in a row. */
void ib_channel_sleep(struct ib_channel *ch, uint64_t until_ns);
/* read.c: fills in what the adapter does not. False: not a sample. */
bool ib_rx_accept(struct ib_channel *ch, struct sample *s,
		  const struct ibv_wc *wc, struct timespec now);

/* write.c: takes completions, and releases their samples. By whoever is inside, or by the
 * owner of a closed channel. */
void ib_tx_collect(struct ib_channel *ch);

/* sleep.c: the reader that may sleep; inside a direction only */
/* Since when the reader has found nothing. */
struct ib_idle {
	unsigned polls;
	uint64_t since_ns;            /* 0: not measured yet */
};

/* Between two empty polls, the second of which has to follow in any case. */
void ib_rx_rest(struct ib_channel *ch, struct ib_idle *idle);
/* Ahead of the only poll of a read that must not wait: what comes behind that
 * poll makes a descriptor readable. */
void ib_rx_arm(struct ib_channel *ch);
/* The completion queue may be destroyed after this. */
void ib_rx_acknowledge(struct ib_channel *ch);
/* From the reader's thread, see poll_fds in node.h. */
int ib_channel_poll_fds(struct ib_channel *ch, int fds[], int max);

static inline bool ib_enter(atomic_uint *busy, atomic_uint *control,
			    unsigned bits)
{
	if (atomic_exchange(busy, 1))
		return false; /* a second thread: not supported */
	if (likely(atomic_load(control) & bits))
		return true;
	atomic_store_explicit(busy, 0, memory_order_release);
	return false;
}

static inline void ib_leave(atomic_uint *busy)
{
	atomic_store_explicit(busy, 0, memory_order_release);
}

/* For pthread_cleanup_push(): a cancelled thread leaves the direction. */
static inline void ib_leave_cancelled(void *busy)
{
	ib_leave(busy);
}

static inline unsigned ib_table_used(const struct ib_table *t)
{
	return t->depth - t->free_count;
}

/* The wr_id, IB_WR_ID_NONE when the table is full. */
static inline uint64_t ib_table_add(struct ib_table *t, struct sample *s)
{
	uint32_t index;

	if (unlikely(t->free_count == 0))
		return IB_WR_ID_NONE;
	index = t->free[--t->free_count];
	t->samples[index] = s;
	return (uint64_t)index + 1;
}

/* NULL when no sample belongs to `wr_id`. */
static inline struct sample *ib_table_take(struct ib_table *t, uint64_t wr_id)
{
	uint64_t index = wr_id - 1;
	struct sample *s;

	if (unlikely(index >= t->depth || !t->samples[index]))
		return NULL;
	s = t->samples[index];
	t->samples[index] = NULL;
	t->free[t->free_count++] = (uint32_t)index;
	return s;
}

/* Only one thread at a time counts, so no locked instruction is needed. */
static inline uint64_t ib_count(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, before + n, memory_order_relaxed);
	return before;
}

/* The number before. */
static inline uint64_t ib_count_fault(struct ib_channel *ch, enum ib_figure fault)
{
	if (ch->cfg.node)
		node_figure_add(ch->cfg.node, fault, 1);
	return ib_count(&ch->counters.faults[fault], 1);
}

#endif
