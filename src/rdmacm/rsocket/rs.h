/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the rsockets (rsocket(7)): sockets over queue pairs, written against
 * <rdma/rdma_cma.h> and <infiniband/verbs.h> alone, so that they run on whatever
 * adapter those reach. wire.h says what goes over the wire.
 *
 * The number of an rsocket is the descriptor of its event channel: a real one, so
 * nothing else in the process can have it, and rs_table.c finds the socket by it.
 *
 * Threads. One mutex per socket guards all of it and is held for one step: take in
 * completions, copy one message's worth, post. Nobody sleeps with it. Who has to
 * wait links a struct rs_waiter, arms the completion queue, looks again, and sleeps
 * in poll(2) on the socket's channels and a descriptor of its own thread; whoever
 * takes an event out of a channel wakes the other waiters by theirs. So rpoll() and
 * the blocking calls are the same thing, and no wake-up can be lost.
 */
#ifndef RDMACM_RSOCKET_RS_H
#define RDMACM_RSOCKET_RS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rdmacm/rsocket/wire.h"
#include "util/container_of.h"
#include "util/list.h"

#define RS_EXPORT __attribute__((visibility("default")))
#define RS_NSEC_PER_MSEC UINT64_C(1000000)

/* The public rule: -1 with errno, from 0 or a negative errno. */
static inline ssize_t rs_result(ssize_t ret)
{
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

/* ---- /etc/rdma/rsocket (config.c) ---- */

struct rs_config {
	uint32_t recv_size, send_size;   /* bytes */
	uint32_t sq_size, rq_size;       /* messages */
	uint32_t inline_size;            /* bytes */
	uint32_t map_count;
	uint32_t polling_us;
	uint32_t wake_up_ms;
};

const struct rs_config *rs_config_get(void);

/* ---- sockets ---- */

enum rs_state {
	RS_OPEN,
	RS_BOUND,
	RS_LISTENING,
	RS_RESOLVING_ADDR,
	RS_RESOLVING_ROUTE,
	RS_CONNECTING,
	RS_ACCEPTING, /* waits for the caller's ready-to-use */
	RS_CONNECTED,
	RS_GONE,      /* was connected, or could not be */
};

/* Received bytes that have not been read: part of a receive slot. */
struct rs_ready {
	uint32_t slot, at, len;
};

/* What must be free before the end of a posted message is given back. */
struct rs_sent {
	uint64_t ring_end;
};

/* Messages that are a header only have their places behind the send ring. As many
 * as can be under way: two RS_CREDIT and RS_END. */
#define RS_CONTROL_PLACES 4
#define RS_CONTROL_SIZE 64
/* The send queue's entries for them. */
#define RS_SQ_SPARE 4
#define RS_WR_RECV (UINT64_C(1) << 63)

/* One buffer of riomap(): ours, or the peer's as RS_MAP told. */
struct rs_mapping {
	bool used, remote;
	uint64_t offset, addr, length;
	uint32_t rkey;
	uint32_t index;     /* in the peer's table */
	struct ibv_mr *mr;  /* ours */
};

struct rs_tx {
	uint8_t *ring;             /* send_size bytes */
	struct ibv_mr *mr;
	uint64_t ring_head, ring_tail;
	uint64_t ring_signaled;    /* ring_head at the last signaled message */
	uint64_t posted, done;     /* messages */
	uint64_t signaled;         /* messages when the last was signaled */
	struct rs_sent *sent;      /* by message number modulo sq_entries */
	uint32_t sq_entries;
	uint32_t sent_credits;     /* messages that needed a credit, mod 2^32 */
	uint32_t granted;          /* what the peer granted, mod 2^32 */
	uint32_t peer_slots, payload_max;
	uint32_t inline_max, inline_cap; /* wanted, and what the QP takes */
	bool shut;                 /* no more bytes: shutdown or closed */
	bool end_sent;
	uint32_t control;          /* places taken behind the ring */
};

struct rs_rx {
	uint8_t *slots;
	struct ibv_mr *mr;
	uint32_t slot_size, slot_stride, slot_count;
	struct rs_ready *ready;    /* ring of slot_count entries */
	uint64_t ready_head, ready_tail;
	uint64_t ready_bytes;
	uint32_t *unposted;        /* slots that are read and not posted yet */
	uint32_t unposted_count;
	uint32_t granted, told;    /* mod 2^32 */
	bool shut;                 /* SHUT_RD: bytes are thrown away */
	bool ended;                /* RS_END came */
	bool broken;               /* the peer broke the protocol */
};

/* A datagram peer (dgram.c). */
struct rs_peer {
	struct sockaddr_storage addr, local;
	struct ibv_ah *ah;
	uint32_t qpn, qkey;
	uint64_t fresh_ns;  /* when it was last heard of */
	uint64_t failed_ns; /* when the lookup failed */
	int failure;
};

/* In buckets; the oldest of a full one goes. */
#define RS_PEERS 64
#define RS_PEERS_BUCKET 4

/* An address handle that a send under way may still use. */
struct rs_retired {
	struct rs_retired *next;
	struct ibv_ah *ah;
	uint64_t posted; /* free when so many datagrams are done */
};

struct rs_options {
	uint32_t recv_size, send_size, sq_size, rq_size, inline_size, map_count;
	int reuse_addr, keep_alive, oob_inline, no_delay, v6_only;
	int keep_idle, keep_interval, keep_count;
	struct linger linger;
	int recv_timeout_ms, send_timeout_ms; /* 0: for ever */
	struct ibv_path_data *route;
	uint32_t route_count;
};

struct rs {
	pthread_mutex_t lock;
	atomic_uint refs;
	atomic_bool dead;           /* goes with its last reference */
	int fd;                     /* of the channel; the number */
	int domain, type;
	int flags;                  /* O_NONBLOCK */
	enum rs_state state;
	int error;                  /* positive, told once (SO_ERROR) */
	bool closing;
	struct rs_options opt;

	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct rdma_cm_id *pending; /* listener: the next to be accepted */
	struct rs_hello pending_hello;

	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	bool armed;
	bool over;                  /* an event says so: after what came before */
	bool lost;                  /* a completion says that the connection is over */
	unsigned idle;              /* looks that found nothing */
	struct list waiters;

	struct rs_tx tx;
	struct rs_rx rx;
	struct rs_mapping *ours, *theirs; /* riomap */
	uint32_t ours_count, theirs_count; /* as many as each side allows */

	/* datagrams */
	struct rs_peer *peers;
	struct sockaddr_storage connected;
	struct rs_retired *retired; /* address handles */
	uint32_t mtu;
	uint8_t port_num;
	bool served;                /* known to the thread of dgram_serve.c */
	struct list serve_entry;

	struct rs *next_free;
};

static inline bool rs_is_stream(const struct rs *rs)
{
	return rs->type == SOCK_STREAM;
}

static inline uint8_t *rs_slot(const struct rs *rs, uint32_t slot)
{
	return rs->rx.slots + (size_t)slot * rs->rx.slot_stride;
}

/* ---- table of sockets (table.c) ---- */

/* A fresh one with one reference of the caller's, not yet to be found. */
struct rs *rs_new(int domain, int type);
int rs_publish(struct rs *rs);
void rs_withdraw(struct rs *rs);
/* The socket of `fd` with a reference, or NULL. */
struct rs *rs_get(int fd);
void rs_put(struct rs *rs);

/* ---- queue pairs and buffers (qp.c) ---- */

int rs_stream_qp_create(struct rs *rs);
void rs_stream_hello(const struct rs *rs, struct rs_hello *hello);
/* What the peer's hello allows. */
void rs_stream_meet(struct rs *rs, const struct rs_hello *peer);
int rs_dgram_qp_create(struct rs *rs, struct rdma_cm_id *id);
void rs_qp_destroy(struct rs *rs);
int rs_post_recv(struct rs *rs, const uint32_t *slots, uint32_t count);

/* ---- taking in what happened (progress.c); the lock is held ---- */

/* Completions, and connection events where they may be due. */
void rs_progress(struct rs *rs);
/* Connection events too, whatever the state. */
void rs_progress_all(struct rs *rs);
void rs_fail(struct rs *rs, int error);
void rs_gone(struct rs *rs); /* the connection is over, for better or worse */
/* rpoll's answer, of POLLIN, POLLOUT, POLLRDHUP, POLLERR, POLLHUP. */
short rs_events(struct rs *rs);
void rs_cm_progress(struct rs *rs);         /* connect.c */

/* ---- streams (stream.c); the lock is held ---- */

struct rs_iter;

void rs_stream_received(struct rs *rs, uint32_t slot, uint32_t bytes);
/* May a message with `len` bytes behind its header go out now? */
bool rs_stream_room(const struct rs *rs, enum rs_type type, uint32_t len);
/* There must be room. Takes `len` bytes from `it`; 0 or a negative errno. */
int rs_stream_message(struct rs *rs, enum rs_type type, struct rs_iter *it,
		      uint32_t len);
/* Contiguous bytes of the send ring for something else than a message. */
uint8_t *rs_stream_ring(struct rs *rs, uint32_t len);
bool rs_stream_has_ring(const struct rs *rs, uint32_t len);
/* Posts and counts; `wr` needs its operation and list only. */
int rs_stream_post(struct rs *rs, struct ibv_send_wr *wr, uint32_t len);
void rs_stream_sent(struct rs *rs, uint64_t number);
/* Tells the peer of free slots where that is due. */
void rs_stream_credit(struct rs *rs);
/* Says that no bytes follow, once. */
void rs_stream_end(struct rs *rs);
/* Gives back all that was received and not read. */
void rs_stream_discard(struct rs *rs);
/* Copies what was received; `peek` leaves it there. */
size_t rs_stream_take(struct rs *rs, struct rs_iter *it, bool peek);

/* 0 when connected, or why it is not; waits unless `flags` forbid. connect.c */
int rs_connected(struct rs *rs, int flags);
/* Sends what is left and ends the connection (socket.c). */
void rs_stream_close(struct rs *rs);
/* The channel, and with it the number (socket.c). */
int rs_open_channel(struct rs *rs);

/* ---- riomap (iomap.c) ---- */

bool rs_map_received(struct rs *rs, enum rs_type type, const void *payload,
		     uint32_t len);
void rs_maps_free(struct rs *rs);

/* ---- datagrams (dgram.c, dgram_serve.c) ---- */

bool rs_dgram_room(const struct rs *rs);
void rs_dgram_failed(struct rs *rs, const struct ibv_wc *wc);
void rs_dgram_received(struct rs *rs, const struct ibv_wc *wc, uint32_t slot);
int rs_dgram_bind(struct rs *rs, const struct sockaddr *addr, socklen_t len);
int rs_dgram_connect(struct rs *rs, const struct sockaddr *addr, socklen_t len);
ssize_t rs_dgram_send(struct rs *rs, const struct iovec *iov, size_t count,
		      int flags, const struct sockaddr *to, socklen_t len);
ssize_t rs_dgram_recv(struct rs *rs, const struct iovec *iov, size_t count,
		      int flags, struct sockaddr *from, socklen_t *len,
		      int *msg_flags);
void rs_dgram_close(struct rs *rs);
/* A queue pair on the device of `id`, if there is none; -EHOSTUNREACH when it is on
 * another one. */
int rs_dgram_open(struct rs *rs, struct rdma_cm_id *id);
int rs_serve(struct rs *rs);    /* answers lookups from now on; the lock is held */
void rs_unserve(struct rs *rs); /* without the lock */
/* Asks who has `addr`, without the lock. `peer` is filled, or its failure. */
int rs_lookup(struct rs *rs, const struct sockaddr *addr, struct rs_peer *peer);

/* ---- waiting (wait.c) ---- */

struct rs_waiter {
	struct list entry;
	int wake_fd;
};

/* Wakes who waits for the socket, except the thread with that descriptor; the
 * lock is held. */
void rs_wake(struct rs *rs, int except_fd);

/*
 * Until `ready` says so, an error comes (its result < 0), or `timeout_ms` (0: for
 * ever) passes (-EAGAIN). Called and left with the lock; it is free meanwhile. A
 * cancellation point: the caller holds one reference to the socket, which is given
 * back then, and nothing else.
 */
int rs_wait(struct rs *rs, int (*ready)(struct rs *rs, uint32_t arg),
	    uint32_t arg, int timeout_ms);
/* The thread's own signal (util/wakeup.h), or a negative errno. */
int rs_wake_fd(void);
/* Makes the next completion an event. The lock is held. */
void rs_arm(struct rs *rs);
/* Takes events out of the completion channel. The lock is held. */
void rs_drain(struct rs *rs, int except_fd);

/* ---- messages of several parts (iter.h) ---- */

struct rs_iter {
	const struct iovec *iov;
	size_t count, at; /* `at` of the first */
	size_t left;
};

int rs_iter_init(struct rs_iter *it, const struct iovec *iov, size_t count);
void rs_iter_read(struct rs_iter *it, void *to, size_t len);
void rs_iter_write(struct rs_iter *it, const void *from, size_t len);

/* Options that the queue pair limits (qp.c). */
int rs_inline_set(struct rs *rs, uint32_t size);

/* ---- options (option.c) ---- */

/* What was set before there was an identifier, before it is bound. */
void rs_id_options(struct rs *rs);

/* ---- addresses (addr.c) ---- */

/* Copies; an IPv4 address mapped into IPv6 becomes IPv4. */
void rs_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from);
uint16_t rs_addr_port(const struct sockaddr *addr);
void rs_addr_set_port(struct sockaddr *addr, uint16_t port);
bool rs_addr_is_any(const struct sockaddr *addr);
/* As a datagram's header has them. */
void rs_addr_to_wire(const struct sockaddr *addr, uint8_t ip[16]);
void rs_addr_from_wire(struct sockaddr_storage *addr, int version,
		       const uint8_t ip[16], uint16_t port);

/* Checks family and length; 0 or a negative errno. */
int rs_addr_check(const struct rs *rs, const struct sockaddr *addr,
		  socklen_t len);
/* As accept(2) and its like give addresses back: of the socket's family. */
void rs_addr_give(int domain, const struct sockaddr *from, struct sockaddr *to,
		  socklen_t *len);
bool rs_addr_equal(const struct sockaddr *a, const struct sockaddr *b);

#endif
