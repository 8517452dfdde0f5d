/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internal declarations of the rsockets (rsocket(7)): sockets over queue pairs. They
 * use <rdma/rdma_cma.h> and <infiniband/verbs.h> alone, so they run on every adapter
 * that these reach. wire.h describes the protocol.
 *
 * The number of an rsocket is the descriptor of its event channel, so no other file of
 * the process can have the same number; table.c finds the socket by it.
 *
 * Threads. One mutex per socket guards all its fields. It is held for one step (take
 * completions, copy one message, post) and never while a thread sleeps. A thread that
 * has to wait links a struct rs_waiter, arms the completion queue, checks the socket
 * again, and sleeps in poll(2) on the socket's channels and a descriptor of its own.
 * A thread that takes an event out of a channel wakes the other waiters by their
 * descriptors. rpoll() and the blocking calls wait in the same way, and no wake-up is
 * lost.
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

#define RS_RESOLVE_MS 2000
#define RS_EXPORT __attribute__((visibility("default")))
#define RS_NSEC_PER_MSEC UINT64_C(1000000)

/* Converts a negative errno to the public convention: -1 and errno. */
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
	RS_ACCEPTING, /* accepted; the RTU has not come yet */
	RS_CONNECTED,
	RS_GONE,      /* the connection has ended, or the attempt has failed */
};

/* Received bytes that have not been read: part of a receive slot. */
struct rs_ready {
	uint32_t slot, at, len;
};

/* Of a posted message: the ring's tail becomes ring_end when it is completed. */
struct rs_sent {
	uint64_t ring_end;
};

/* Messages that are only a header have places of their own behind the send ring; at
 * most three can be under way: two RS_CREDIT and one RS_END. */
#define RS_CONTROL_PLACES 4
#define RS_CONTROL_SIZE 64
/* Entries of the send queue for these messages. */
#define RS_SQ_SPARE 4
#define RS_WR_RECV (UINT64_C(1) << 63)

/* A buffer of riomap(): of this side, or of the peer (from its RS_MAP). */
struct rs_mapping {
	bool used, remote;
	uint64_t offset, addr, length;
	uint32_t rkey;
	uint32_t index;     /* in the peer's table */
	struct ibv_mr *mr;  /* of this side's buffer */
};

struct rs_tx {
	uint8_t *ring;             /* send_size bytes */
	struct ibv_mr *mr;
	uint64_t ring_head, ring_tail;
	uint64_t ring_signaled;    /* ring_head at the last signaled message */
	uint64_t posted, done;     /* number of messages */
	uint64_t signaled;         /* value of `posted` after the last signaled one */
	uint64_t end;              /* value of `posted` after RS_END; credits may follow */
	struct rs_sent *sent;      /* by message number, modulo the queue's length */
	uint32_t sq_entries;
	uint32_t sent_credits;     /* messages that needed a credit, mod 2^32 */
	uint32_t granted;          /* what the peer granted, mod 2^32 */
	uint32_t peer_slots, payload_max;
	uint32_t inline_max, inline_cap; /* the option's value; what the QP allows */
	bool shut;                 /* no more bytes: shut down or closed */
	bool end_sent;
	uint32_t control;          /* number of messages placed behind the ring */
};

struct rs_rx {
	uint8_t *slots;
	struct ibv_mr *mr;
	uint32_t slot_size, slot_stride, slot_count;
	struct rs_ready *ready;    /* ring of slot_count entries */
	uint64_t ready_head, ready_tail;
	uint64_t ready_bytes;
	uint32_t *unposted;        /* slots that were read and are to be posted again */
	uint32_t unposted_count;
	uint32_t granted, told;    /* slots granted; last value sent; mod 2^32 */
	bool shut;                 /* SHUT_RD: received bytes are dropped */
	bool ended;                /* RS_END came */
	bool broken;               /* the peer broke the protocol */
};

/* A peer of a datagram socket (dgram.c). */
struct rs_peer {
	struct sockaddr_storage addr, local;
	struct ibv_ah *ah;
	uint32_t qpn, qkey;
	uint64_t fresh_ns;  /* time of its last datagram, or of the lookup */
	uint64_t failed_ns; /* when the lookup failed */
	int failure;
};

/* The cache has buckets; a new entry replaces the oldest of a full bucket. */
#define RS_PEERS 64
#define RS_PEERS_BUCKET 4

/* An address handle that a send under way may still use. */
struct rs_retired {
	struct rs_retired *next;
	struct ibv_ah *ah;
	uint64_t posted; /* destroyed when so many datagrams are done */
};

/* Changes that an edge-triggered watch (epoll.h) reports. IN: bytes or a request came. OUT: there
 * is room after there was none. STATE: the connection was made, has failed or has ended. */
enum rs_edge { RS_EDGE_IN, RS_EDGE_OUT, RS_EDGE_STATE, RS_EDGES };

struct rs_options {
	uint32_t recv_size, send_size, sq_size, rq_size, inline_size, map_count;
	int reuse_addr, keep_alive, oob_inline, no_delay, v6_only;
	int keep_idle, keep_interval, keep_count;
	struct linger linger;
	int recv_timeout_ms, send_timeout_ms; /* 0: no limit */
	struct ibv_path_data *route;
	uint32_t route_count;
};

struct rs {
	pthread_mutex_t lock;
	atomic_uint refs;
	atomic_bool dead;           /* closed: freed with the last reference */
	int fd;                     /* the channel's descriptor, the socket's number */
	int domain, type;
	int flags;                  /* O_NONBLOCK */
	enum rs_state state;
	int error;                  /* positive errno, reported once (SO_ERROR) */
	bool closing;
	struct rs_options opt;

	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct rdma_cm_id *pending; /* listener: the request for the next raccept() */
	struct rs_hello pending_hello;

	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	bool armed;
	bool over;                  /* DISCONNECTED came: lost after queued messages */
	bool lost;                  /* the connection has ended: rs_gone() is called next */
	unsigned idle;              /* polls in a row without a completion */
	struct list waiters;
	uint32_t edges[RS_EDGES];   /* number of such changes, for EPOLLET */
	bool out_full;              /* a poll or a send has found no room */

	struct rs_tx tx;
	struct rs_rx rx;
	struct rs_mapping *ours, *theirs; /* riomap */
	uint32_t ours_count, theirs_count; /* limits: the peer's and ours */

	/* datagrams */
	struct rs_peer *peers;
	struct sockaddr_storage connected;
	struct rs_retired *retired; /* address handles to be destroyed */
	uint32_t mtu;
	uint8_t port_num;
	bool served;                /* in the list of the thread of dgram_serve.c */
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

/* A new socket with one reference for the caller, not yet in the table; or NULL. */
struct rs *rs_new(int domain, int type);
int rs_publish(struct rs *rs);
void rs_withdraw(struct rs *rs);
/* The socket of `fd` with a reference, or NULL. */
struct rs *rs_get(int fd);
void rs_put(struct rs *rs);
/* As a call of a program begins: the socket of `fd` with a reference and its lock held;
 * or NULL, and errno is EBADF. */
struct rs *rs_enter(int fd);
/* As it ends: unlocks, gives the reference back; the call's result for `ret`, a count or
 * a negative errno. */
ssize_t rs_leave(struct rs *rs, ssize_t ret);

/* ---- queue pairs and buffers (qp.c) ---- */

int rs_stream_qp_create(struct rs *rs);
void rs_stream_hello(const struct rs *rs, struct rs_hello *hello);
/* Sets the limits that follow from the peer's hello. */
void rs_stream_meet(struct rs *rs, const struct rs_hello *peer);
int rs_dgram_qp_create(struct rs *rs, struct rdma_cm_id *id);
void rs_qp_destroy(struct rs *rs);
int rs_post_recv(struct rs *rs, const uint32_t *slots, uint32_t count);

/* ---- progress (progress.c); the socket's lock is held ---- */

/* Takes completions; connection events only where the state or IDLE_LOOKS demands. */
void rs_progress(struct rs *rs);
/* Takes completions and connection events. */
void rs_progress_all(struct rs *rs);
/* What rpoll() reports: of POLLIN, POLLOUT, POLLRDHUP, POLLERR, POLLHUP, POLLNVAL. */
short rs_events(struct rs *rs);
/* The same for programs that expect TCP: a peer that has closed in order makes no POLLHUP
 * while this side may still send. */
short rs_events_tcp(struct rs *rs);

/* ---- connection events (cm.c) ---- */

/* Takes the connection events. True: the connection has ended; rs_progress() is to be called once
 * more. The lock is held. */
bool rs_cm_progress(struct rs *rs);
/* What rdma_connect() and rdma_accept() are given. */
void rs_conn_params(struct rs *rs, struct rs_hello *hello, struct rdma_conn_param *param);

/* ---- streams (stream.c); the socket's lock is held ---- */

struct rs_iter;

void rs_stream_received(struct rs *rs, uint32_t slot, uint32_t bytes);
/* Can a message of `len` bytes and a header be posted now? */
bool rs_stream_room(const struct rs *rs, enum rs_type type, uint32_t len);
/* Posts a message with `len` bytes of `it`; rs_stream_room() must hold. 0 or a
 * negative errno. */
int rs_stream_message(struct rs *rs, enum rs_type type, struct rs_iter *it,
		      uint32_t len);
/* Takes `len` contiguous bytes of the send ring (for riowrite()); NULL: no room. */
uint8_t *rs_stream_ring(struct rs *rs, uint32_t len);
bool rs_stream_has_ring(const struct rs *rs, uint32_t len);
/* Posts `wr`, of which the caller sets operation, scatter/gather list and flags. */
int rs_stream_post(struct rs *rs, struct ibv_send_wr *wr, uint32_t len);
void rs_stream_sent(struct rs *rs, uint64_t number);
/* Sends RS_CREDIT if half of the slots are free, and an RS_END that is due. */
void rs_stream_credit(struct rs *rs);
/* Sends RS_END, once, if it can be posted now. */
void rs_stream_end(struct rs *rs);
/* Drops the received bytes that were not read. */
void rs_stream_discard(struct rs *rs);
/* Copies received bytes to `it`, and with `peek` leaves them unread. */
size_t rs_stream_take(struct rs *rs, struct rs_iter *it, bool peek);

/* Waits for the connection, unless `flags` forbid it. 0 or a negative errno.
 * (connect.c) */
int rs_connected(struct rs *rs, int flags);
/* Waits until sent bytes are delivered, then disconnects (socket.c). */
void rs_stream_close(struct rs *rs);
/* Makes the event channel, whose descriptor is the socket's number (socket.c). */
int rs_open_channel(struct rs *rs);

/* ---- buffers of riomap() (mapping.c) ---- */

/* Number of mappings with PROT_NONE; they have no entry in the peer's table. */
#define RS_MAPS_LOCAL 64

/* Makes both tables, once. 0 or -ENOMEM. */
int rs_maps_make(struct rs *rs);
bool rs_map_received(struct rs *rs, enum rs_type type, const void *payload,
		     uint32_t len);
void rs_maps_free(struct rs *rs);

/* ---- peers of datagram sockets (peer.c); the lock is held ---- */

#define RS_GRH_SIZE 40
#define RS_DGRAM_HEADER ((uint32_t)sizeof(struct rs_datagram))

static inline const struct sockaddr *rs_sa(const struct sockaddr_storage *s)
{
	return (const struct sockaddr *)s;
}

/* Destroys `ah` when all posted datagrams are done, which may use it. A peer that does
 * not send is looked up every second and gets a new handle each time. */
void rs_ah_retire(struct rs *rs, struct ibv_ah *ah);
/* The entry of the address in the cache, or NULL. */
struct rs_peer *rs_peer_find(struct rs *rs, const struct sockaddr *addr);
/* Enters `from`, replacing the entry of its address or the oldest of its bucket. */
struct rs_peer *rs_peer_put(struct rs *rs, const struct rs_peer *from);
/* Makes the cache, once. 0 or -ENOMEM. */
int rs_peers_make(struct rs *rs);
/* Frees the cache, after the queue pair. */
void rs_peers_free(struct rs *rs);
/* Posts a receive slot again. */
void rs_dgram_return(struct rs *rs, uint32_t slot);
bool rs_dgram_room(const struct rs *rs);
void rs_dgram_failed(struct rs *rs, const struct ibv_wc *wc);
void rs_dgram_received(struct rs *rs, const struct ibv_wc *wc, uint32_t slot);
/* Makes the queue pair on the device of `id`, if there is none. -EHOSTUNREACH: there
 * is one, on another device. */
int rs_dgram_open(struct rs *rs, struct rdma_cm_id *id);

/* ---- datagrams (dgram.c, dgram_serve.c) ---- */

int rs_dgram_bind(struct rs *rs, const struct sockaddr *addr, socklen_t len);
int rs_dgram_connect(struct rs *rs, const struct sockaddr *addr, socklen_t len);
ssize_t rs_dgram_send(struct rs *rs, const struct iovec *iov, size_t count,
		      int flags, const struct sockaddr *to, socklen_t len);
ssize_t rs_dgram_recv(struct rs *rs, const struct iovec *iov, size_t count,
		      int flags, struct sockaddr *from, socklen_t *len,
		      int *msg_flags);
void rs_dgram_close(struct rs *rs);
int rs_serve(struct rs *rs);    /* lookups are answered from now on; with the lock */
void rs_unserve(struct rs *rs); /* waits for the thread; without the lock */
/* Looks `addr` up (SIDR) and fills in `peer`; 0 or a negative errno. Without the
 * lock. */
int rs_lookup(struct rs *rs, const struct sockaddr *addr, struct rs_peer *peer);

/* ---- waiting (wake.c, wait.c) ---- */

/* A thread, or a watch of an epoll set (epoll_set.h). */
struct rs_waiter {
	struct list entry;
	int wake_fd;
	/* Of a watch: the socket may be ready. The socket's lock is held. NULL: a thread */
	void (*wake)(struct rs_waiter *w);
};

/* Wakes the threads that wait for the socket, except the one with the wake-up
 * descriptor `except_fd`, and its watches. The lock is held. */
void rs_wake(struct rs *rs, int except_fd);
/* Removes the socket from all epoll sets. Without the lock. (epoll.c) */
void rs_watches_end(struct rs *rs);

/*
 * Waits until `ready` returns > 0 (result 0) or < 0 (its result), or `timeout_ms` is
 * over (-EAGAIN; 0: no limit). The lock is held at the call and at the return, and
 * released meanwhile. A cancellation point: on cancellation one reference to the
 * socket is dropped; the caller must hold exactly that and nothing else.
 */
int rs_wait(struct rs *rs, int (*ready)(struct rs *rs, uint32_t arg),
	    uint32_t arg, int timeout_ms);
/* The thread's own wake-up descriptor (util/wakeup.h), or a negative errno. */
int rs_wake_fd(void);
/* The connection has failed. The lock is held. */
void rs_fail(struct rs *rs, int error);
void rs_gone(struct rs *rs); /* it has ended, in order or not */
/* Arms the completion queue. The lock is held. */
void rs_arm(struct rs *rs);
/* Takes the events out of the completion channel and wakes other waiters. The lock is
 * held. */
void rs_drain(struct rs *rs, int except_fd);

/* ---- messages of several parts (iter.h) ---- */

struct rs_iter {
	const struct iovec *iov;
	size_t count, at; /* remaining entries; offset in the first one */
	size_t left;
};

int rs_iter_init(struct rs_iter *it, const struct iovec *iov, size_t count);
void rs_iter_read(struct rs_iter *it, void *to, size_t len);
void rs_iter_write(struct rs_iter *it, const void *from, size_t len);

/* Options that the queue pair limits (qp.c). */
int rs_inline_set(struct rs *rs, uint32_t size);

/* ---- options (option.c) ---- */

/* Sets the options on the new identifier, before it is bound. */
void rs_id_options(struct rs *rs);

/* ---- addresses (addr.c) ---- */

/* Copies; an IPv4 address mapped into IPv6 becomes IPv4. */
void rs_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from);
uint16_t rs_addr_port(const struct sockaddr *addr);
void rs_addr_set_port(struct sockaddr *addr, uint16_t port);
bool rs_addr_is_any(const struct sockaddr *addr);
/* To and from the form in a datagram's header. */
void rs_addr_to_wire(const struct sockaddr *addr, uint8_t ip[16]);
void rs_addr_from_wire(struct sockaddr_storage *addr, int version,
		       const uint8_t ip[16], uint16_t port);

/* Checks family and length; 0 or a negative errno. */
int rs_addr_check(const struct rs *rs, const struct sockaddr *addr,
		  socklen_t len);
/* Returns an address as accept(2) does, in the form of the socket's family. */
void rs_addr_give(int domain, const struct sockaddr *from, struct sockaddr *to,
		  socklen_t *len);
bool rs_addr_equal(const struct sockaddr *a, const struct sockaddr *b);

#endif
