/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An end of the measurement: its adapter, queue pair, buffers, and the loops. Everything here
 * is called by the end's own thread, except hca_queue_serve(). Functions return 0 or a
 * negative errno, logged, unless they say otherwise.
 *
 * Messages have a sequence number from 0, the warm-up first, which travels as immediate data,
 * where there are such.
 */
#ifndef BENCH_HCA_END_H
#define BENCH_HCA_END_H

#include <endian.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "bench/hca/case.h"
#include "util/clock.h"
#include "util/log.h"

#define HCA_GRH_BYTES 40 /* in front of a received datagram */
#define HCA_QKEY 0x11111111u

/* A completion queue and how it is watched. */
struct hca_watched_cq {
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel; /* NULL: polling = busy */
	enum hca_polling polling;
	bool armed;
	uint64_t idle_since_ns;           /* mixed; 0: not idle */
	unsigned taken;                   /* events to acknowledge */
	uint64_t events;
};

/* A thread beside that of the end. */
struct hca_thread {
	pthread_t id;
	bool runs;
	atomic_bool stop;
};

/* What the ends tell each other before they begin; little-endian. */
struct hca_hello {
	uint32_t magic, qpn, psn, rkey;
	uint64_t address;      /* of the first buffer */
	uint32_t buffers, stride;
	uint32_t qkey;
	uint16_t lid, port;    /* port: of the listener of connection management */
	uint8_t gid[16];
	uint32_t mtu;          /* bytes */
	char ip[52];          /* where the receiver listens; "": where the socket leads */
};
_Static_assert(sizeof(struct hca_hello) == 112, "the same on every machine");

struct hca_end {
	const struct hca_case *c;
	struct hca_shared *s;
	struct hca_report *report;
	enum hca_side side;
	int fd;                /* to the other end */
	uint64_t control_ns;   /* when it was looked at last */
	bool peer_done;        /* remote: has sent its burst */

	struct ibv_context *verbs;
	bool verbs_own;        /* else the connection manager's */
	uint8_t port;
	int gid_index;
	union ibv_gid gid;
	struct ibv_port_attr port_attr;
	struct ibv_pd *pd;
	struct hca_watched_cq send, recv;
	struct ibv_qp *qp;
	struct ibv_ah *ah;     /* UD */
	uint32_t remote_qpn, remote_qkey;
	struct rdma_event_channel *cm_events;
	struct rdma_cm_id *cm_id, *cm_listener;
	struct hca_hello mine, theirs;

	/* Memory of messages, `buffers` of `stride` bytes each for sending and for receiving. */
	char *memory;
	size_t memory_bytes;
	struct ibv_mr *mr, *stamped_mr;
	uint32_t buffers, stride, send_depth, recv_depth;
	char *out, *in;
	struct ibv_send_wr *send_wr; /* `buffers` of them, in lists of `batch` */
	struct ibv_recv_wr *recv_wr; /* `buffers` of them, a ring */
	struct ibv_sge *sge;

	/* Of the send queue: requests posted, and completed. */
	uint64_t posted;
	_Atomic uint64_t completed;
	uint64_t limit;        /* of both's difference */
	uint64_t signal_every; /* requests between two completions, 1: each */
	uint64_t unsignaled_run;
	/* Of the receive queue. */
	uint64_t recv_posted, recv_taken;

	struct hca_thread completions; /* serves the send queue; poll_send = event or mixed */
	struct hca_thread stamper;
	atomic_int failed;     /* negative errno of the completion thread */
	uint32_t highest_seq;
};

static inline uint64_t hca_end_now(const struct hca_end *e)
{
	struct timespec t;

	if (e->c->clock == HCA_CLOCK_TICKS)
		return clock_now_ns();
	clock_gettime(CLOCK_MONOTONIC, &t);
	return timespec_to_ns(t);
}

static inline bool hca_end_is_iwarp(const struct hca_end *e)
{
	return e->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

static inline bool hca_end_stopped(const struct hca_end *e)
{
	return atomic_load_explicit(&e->s->stop, memory_order_relaxed);
}

/* Best effort: a CPU that is not to be had is a warning. */
static inline void hca_end_pin(pthread_t thread, int cpu)
{
	cpu_set_t set;
	int err;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	err = cpu < 0 ? 0 : pthread_setaffinity_np(thread, sizeof(set), &set);
	if (err)
		log_warn("cannot run on CPU %d: %s", cpu, strerror(err));
}

/* On this CPU; -1: on any that this thread may use. */
static inline int hca_thread_start(struct hca_thread *t, void *(*run)(void *end),
				   struct hca_end *e, int cpu)
{
	int err = pthread_create(&t->id, NULL, run, e);

	if (err)
		return log_fail(-err, "cannot start a thread: %s", strerror(err));
	t->runs = true;
	hca_end_pin(t->id, cpu);
	return 0;
}

/* The row of a message, or -1: it belongs to the warm-up, or to nothing. */
static inline int64_t hca_end_row(const struct hca_end *e, uint32_t seq)
{
	int64_t row = (int64_t)seq - e->c->warmup;

	return row < (int64_t)e->s->rows ? row : -1;
}

/* ---- connect.c ---- */

/* Opens the adapter that the case names, without connection management. */
int bench_hca_device_open(struct hca_end *e);
/* Port, GID; for the context that is in `verbs`. */
int bench_hca_device_query(struct hca_end *e);
/* Protection domain, buffers, completion queues; then the depth of the queues is known. */
int bench_hca_device_prepare(struct hca_end *e);
void bench_hca_device_close(struct hca_end *e);

/* ---- buffers.c ---- */

int hca_buffers_make(struct hca_end *e);
/* The requests, when both sides' buffers are known. */
int hca_buffers_requests(struct hca_end *e);
void hca_buffers_free(struct hca_end *e);
/* The time that a received message carries; `slot`: number of its buffer. */
uint64_t hca_buffers_time(const struct hca_end *e, uint64_t slot);

/* The queue pair, of the identifier `cm_id` if there is one. */
int bench_hca_qp_create(struct hca_end *e);
void bench_hca_qp_destroy(struct hca_end *e);
/* The largest MTU that is not more than `bytes`. */
enum ibv_mtu hca_mtu_of(uint32_t bytes);

int hca_plain_connect(struct hca_end *e);
int hca_cm_connect(struct hca_end *e);
void hca_cm_close(struct hca_end *e);
int hca_address_handle(struct hca_end *e, const struct ibv_ah_attr *attr);

/* ---- control.c: the other end by the socket ---- */

/* -EINTR: all are to stop; -ECONNRESET, logged: the other end is gone. */
int hca_control_send(struct hca_end *e, const void *data, size_t len);
int hca_control_receive(struct hca_end *e, void *data, size_t len);
int hca_control_hello(struct hca_end *e);
/* The receiver is ready for the next burst: one tells it, the other one waits for it. */
int hca_control_ready(struct hca_end *e);
/* The sender has sent its burst; the receiver waits for the word, if it has not come. */
int hca_control_sent(struct hca_end *e);
/* Looked at by a receiver that has nothing to do: has the burst been sent? Negative errno:
 * the other end is gone, or -EINTR. */
int hca_control_look(struct hca_end *e, unsigned burst, uint64_t now_ns);

/* ---- queue.c: posting, polling, waiting ---- */

int hca_queue_open(struct hca_end *e, struct hca_watched_cq *q, enum hca_polling polling,
		   int entries);
void hca_queue_close(struct hca_watched_cq *q);

/*
 * Nothing was to be polled: waits as the queue is watched. Busy: returns at once. Event: the
 * queue is armed first, then polled once more, and only then waited for; otherwise a completion
 * between the last poll and the arming would wake nobody. So the caller polls again after each
 * return. Events are acknowledged by hca_queue_acknowledge(), outside of measured times.
 * 0; -EINTR: woken without an event, the caller looks why; or another negative errno, logged.
 */
int hca_queue_wait(struct hca_end *e, struct hca_watched_cq *q);
void hca_queue_acknowledge(struct hca_watched_cq *q);

/* The sequence number of a received message, behind `taken` others. Where a message has no
 * immediate data, because iWARP has none, all arrive, and in their order. */
static inline uint32_t hca_queue_seq(const struct ibv_wc *wc, uint64_t taken)
{
	return wc->wc_flags & IBV_WC_WITH_IMM ? be32toh(wc->imm_data) : (uint32_t)taken;
}

/* Posts the receives that are missing, at most `most`. */
int hca_queue_fill(struct hca_end *e, uint64_t most);

/* How many of `wanted` messages the next list holds: `batch` at most, and no more than there
 * are buffers before the ring of them begins anew. */
static inline uint32_t hca_queue_batch(const struct hca_end *e, uint64_t wanted)
{
	wanted = MIN(wanted, e->buffers - e->posted % e->buffers);
	return (uint32_t)MIN(wanted, e->c->batch);
}

/* Posts `count` messages (see above) with the sequence numbers from `seq` on, whose
 * first word is `t_ns`; `last`: nothing follows, so a completion is wanted. There is room. */
int hca_queue_post(struct hca_end *e, uint32_t seq, uint32_t count, uint64_t t_ns, bool last);

/* One completion of the send queue, if there is one: 1, 0, or a negative errno, logged. */
int hca_queue_harvest(struct hca_end *e);
/* Waits until `count` more requests may be posted. */
int hca_queue_room(struct hca_end *e, uint32_t count);
/* Waits until all posted requests are completed. */
int hca_queue_flush(struct hca_end *e);

/* A received completion that is not a message: logs why, returns a negative errno. */
int hca_queue_complain(const struct hca_end *e, const struct ibv_wc *wc, const char *what);

/* The thread that watches the send queue, if it is not polled by the end itself. */
int hca_queue_serve(struct hca_end *e);
void hca_queue_serve_end(struct hca_end *e);

/* ---- loops.c: what the loops of the three modes share ---- */

/* How often a loop that finds nothing looks whether it should go on. */
#define HCA_LOOK_EVERY 1024
/* Receives that are posted together within a burst, where the queue is shorter than it. */
#define HCA_REFILL 16

/* A receiver's burst. */
struct hca_wait {
	unsigned burst;     /* its number, the warm-up's is 0 */
	unsigned idle;      /* polls without a result since the last one with */
	uint64_t since_ns;  /* since when nothing came, though all is sent; 0: not so */
};

static inline void hca_wait_over(struct hca_end *e, struct hca_wait *w)
{
	w->idle = 0;
	w->since_ns = 0;
	e->recv.idle_since_ns = 0;
}

/* Nothing was received: 0: poll again; 1: the rest is lost; or a negative errno. */
int hca_loop_idle(struct hca_end *e, struct hca_wait *w);

/* Takes one completion of the receive queue: 1 and *wc, whose time is *t_ns; 0: there is none;
 * or a negative errno. */
int hca_loop_poll(struct hca_end *e, struct ibv_wc *wc, uint64_t *t_ns);

/* The time of the next message: spins, or sleeps if there is much of it; completions are
 * polled meanwhile. */
int hca_loop_pause(struct hca_end *e, uint64_t until_ns);

/* Calls `burst` for the warm-up, if any, and for each burst with the number of its first
 * message and that of its messages; both ends keep pace. */
int hca_loop_bursts(struct hca_end *e,
		    int (*burst)(struct hca_end *e, unsigned number, uint64_t first,
				 uint32_t count));

/* One time stamp and its storage: fills own_ns of the report. */
void hca_loop_own_cost(struct hca_end *e);

/* stamp = send: who overwrites the time. */
int hca_stamper_start(struct hca_end *e);
void hca_stamper_stop(struct hca_end *e);
static inline void hca_stamp(const struct hca_end *e)
{
	atomic_store_explicit((_Atomic uint64_t *)(void *)e->s->stamped, hca_end_now(e),
			      memory_order_relaxed);
}

/* ---- modes.c ---- */

int hca_oneway(struct hca_end *e);
int hca_roundtrip(struct hca_end *e);
int hca_throughput(struct hca_end *e);

#endif
