/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport iwarp: connections of iWARP over TCP sockets, for the queue pairs of an RNIC. The
 * engine (engine/iwarp/connection.h) says what is sent and what a segment of the peer needs; here are
 * the socket, the program's memory and its queues. A connection manager has made the connection and
 * agreed on the terms (hca/path/stream.h).
 *
 * Locks, in the order in which they are taken: receive_lock of the port (the list of streams, what
 * arrives), sq_lock of the queue pair (all else of its stream), then those of receive and completion
 * queues.
 */
#ifndef TRANSPORT_IWARP_STREAM_H
#define TRANSPORT_IWARP_STREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/iwarp/connection.h"
#include "hca/object/qp.h"
#include "hca/path/stream.h"
#include "hca/run/copies.h"
#include "hca/run/progress.h"
#include "transport/packet/frame/show.h"
#include "util/list.h"
#include "util/spin.h"

/* Read from a socket at a time. */
#define IWARP_READ_BYTES (256u << 10)
/* Handed to a socket at a time: about so much, and one FPDU at least. */
#define IWARP_WRITE_BYTES (128u << 10)
/* A peer that is silent for so long, although it was asked, is dead. */
#define IWARP_SILENT_NS (10 * UINT64_C(1000000000))

/* A posted entry as the engine sees it, and its place in the send queue, which also holds operations
 * that send nothing. */
struct iwarp_entry_of_sq {
	struct iwarp_wqe wqe;
	uint32_t sq_index;
};

typedef void iwarp_tell_fn(void *arg, enum hca_stream_event event);

struct iwarp_middlebox;

struct iwarp_stream {
	struct hca_qp *qp;     /* NULL: it is gone, and the socket only waits for the peer's end */
	_Atomic int fd;        /* -1: closed */
	atomic_bool reading;   /* a thread that closes it waits for one that reads without sq_lock */
	bool listed;           /* in the port's list; receive_lock */
	struct list entry;
	/* That matter. EPOLLIN: the peer has not ended its direction, which changes under receive_lock,
	 * too. EPOLLOUT: more is to be sent. 0 also before it begins. Changes under sq_lock. */
	_Atomic uint32_t events;
	bool watched;          /* by the port's epoll instance, for them */

	/* Under sq_lock. */
	struct iwarp_connection c;
	struct iwarp_receiver receiver;
	uint8_t *segment;      /* the receiver's buffer */
	struct iwarp_entry_of_sq *entries;
	uint32_t completed;    /* entries of the engine that are complete */
	uint8_t *bounce;       /* payload that is copied before it is sent; made when needed */
	/* Framed bytes that TCP has not taken: [rest_at, rest_bytes) of `rest`. */
	uint8_t *rest;
	size_t rest_at, rest_bytes, rest_room;
	bool sends_on;         /* more may leave, when other connections have been looked at */
	bool unsendable;       /* TCP takes nothing any more: the rest is read, and then it is lost */
	uint64_t armed_ns;     /* when hca_qp.retry is due; 0: not armed */
	bool told;             /* the log has a line about its end */

	struct {
		bool on;
		struct packet_ends ends;     /* from here to the peer */
		uint32_t sent, received;     /* sequence numbers */
	} show;

	/* hca_stream.tell. */
	iwarp_tell_fn *_Atomic tell; /* NULL: nobody is told */
	void *arg;
	atomic_uint untold;    /* bits: 1 << enum hca_stream_event */
	bool ended;            /* HCA_STREAM_ENDED was told */
	bool responder, begun; /* sq_lock */
	struct progress_timer tell_timer;
	struct progress_timer linger; /* ends the wait for the peer's end, and frees it */
	struct iwarp_middlebox *middlebox; /* with faults: `fd` leads there; NULL: to the peer */
};

/* The place where all streams of the process are looked at. */
struct iwarp_port {
	const struct hca_transport_ops *ops;
	pthread_mutex_t lock;      /* held while it opens */
	atomic_bool open;
	int epoll_fd;              /* all sockets; -1: none */
	struct spin receive_lock;
	struct list streams;
	atomic_uint count;         /* of `streams`; changes under receive_lock */
	unsigned lingering;        /* open sockets of those without a queue pair; receive_lock */
	uint8_t *bytes;            /* IWARP_READ_BYTES; receive_lock */
	struct hca_copies copies;  /* threads that look at keys and copy by them */

	/* Which thread looks (poll.c). */
	_Atomic uint64_t polled_ns, since_ns; /* the last poll of the program, and the first of those
					       * that followed each other without a gap */
	atomic_uint polls;         /* of the program; a lost count does no harm */
	atomic_bool relied;        /* the progress thread leaves the sockets to polls */
	/* Then few sockets are not in the epoll instance, where each segment that comes would cost
	 * its sender time. Changes under receive_lock. */
	atomic_bool unwatched;
	pthread_mutex_t rely_lock; /* held while that changes */
	struct progress_timer look;
};
extern struct iwarp_port iwarp_port;

static inline struct iwarp_stream *iwarp_stream_of(struct hca_qp *qp)
{
	return *(struct iwarp_stream **)(void *)qp->path_part;
}

static inline struct iwarp_entry_of_sq *iwarp_entry_at(const struct iwarp_stream *s, uint32_t index)
{
	return &s->entries[index & s->c.rq.p.ring.mask];
}

/* Does the queue pair take messages, and complete entries? */
static inline bool iwarp_is_up(const struct iwarp_stream *s)
{
	enum ibv_qp_state state = hca_qp_state(s->qp);

	return state == IBV_QPS_RTS || state == IBV_QPS_SQD;
}

/* The files, from the ground up. */

/* ---- socket.c ---- */
/* Options that connections of RDMA need. 0 or a negative errno. */
int iwarp_socket_prepare(int fd);
/* The maximum segment size now. */
uint32_t iwarp_socket_mss(int fd);
/* Takes `n` pieces of `bytes` in all: how many bytes, 0: none now, or a negative errno. */
ssize_t iwarp_socket_send(int fd, const struct iovec *iov, unsigned n);
/* Ends the connection with a reset. */
void iwarp_socket_reset(int fd);

/* ---- access.c ---- */
/* Carries out a part of the peer's WRITE (`data`: what it brought), or checks (NULL) or carries out
 * a part of its READ (`data`: where it goes). */
enum iwarp_answer iwarp_access(const struct iwarp_stream *s, bool read, uint32_t stag, uint64_t to,
			       uint32_t bytes, void *data);
/* The memory of a part of the peer's READ, to be used between hca_copy_begin() and hca_copy_end().
 * *piece is NULL: it has to be copied by iwarp_access(). */
enum iwarp_answer iwarp_memory(const struct iwarp_stream *s, uint32_t stag, uint64_t to,
			       uint32_t bytes, uint8_t **piece);

/* Carries out an atomic of the peer. IWARP_DONE: *original is the value before. */
enum iwarp_answer iwarp_atomic(const struct iwarp_stream *s, const struct iwarp_look *l,
			       uint64_t *original);

/* ---- outcome.c; sq_lock is held ---- */
/* Carries out what a call of the engine has changed, but for a receive. */
void iwarp_outcome(struct iwarp_stream *s, const struct iwarp_outcome *o);
/* The connection manager will be told. */
void iwarp_tell(struct iwarp_stream *s, enum hca_stream_event event);

/* ---- show.c: the stream in a capture, if one is wanted; sq_lock is held ---- */
/* What the set-up said. */
void iwarp_show_begin(struct iwarp_stream *s, const struct hca_stream *from);
void iwarp_show_bytes(struct iwarp_stream *s, bool out, const uint8_t *data, size_t bytes);
/* The first `bytes` of the pieces leave. */
void iwarp_show_pieces(struct iwarp_stream *s, const struct iovec *iov, unsigned n, size_t bytes);
void iwarp_show_end(struct iwarp_stream *s, bool out, bool reset);

/* ---- end.c; sq_lock is held ---- */
/* Does what the engine wants of the socket, and arms the timer. */
void iwarp_act(struct iwarp_stream *s);
/* These events of the socket matter: the port's epoll instance watches them, or polls do. */
void iwarp_watch(struct iwarp_stream *s, uint32_t events);
/* The socket leaves the epoll instance; iwarp_watch_again() or its end follows. */
void iwarp_unwatch(struct iwarp_stream *s);
/* The same events, when iwarp_port.unwatched has changed, or the queue pair has gone (then under
 * receive_lock). False: they cannot be watched. */
bool iwarp_watch_again(struct iwarp_stream *s);
/* Closes it, if it is open; `reset`: the peer gets a reset. */
void iwarp_end_socket(struct iwarp_stream *s, bool reset);

/* ---- faults.c ---- */
/* Reads BUSBAR_FAULTS, unless other faults were set. */
void iwarp_faults_read(void);
/* hca_transport_ops.faults. */
int iwarp_faults_set(const char *text, char *note, size_t note_bytes);
/* A stream begins, or goes on with faults: it gets a middlebox if there are faults. receive_lock and
 * sq_lock are held. */
void iwarp_faults_meet(struct iwarp_stream *s);

/* ---- send.c; sq_lock is held ---- */
/* Sends what may leave, or some of it, and the rest when the socket is looked at again. */
void iwarp_send(struct iwarp_stream *s);

/* ---- receive.c ---- */
/* Carries out bytes of the stream. sq_lock is held. */
void iwarp_receive_bytes(struct iwarp_stream *s, const uint8_t *data, size_t bytes);
/* Reads from the socket what is there. receive_lock is held, sq_lock is not. True: something was. */
bool iwarp_receive(struct iwarp_stream *s);

/* ---- life.c ---- */
int iwarp_attach(struct hca_qp *qp, const struct hca_stream *stream);
void iwarp_begin(struct hca_qp *qp, const struct hca_stream *stream);
void iwarp_close_stream(struct hca_qp *qp, const void *arg);
void iwarp_forget(struct hca_qp *qp, const void *arg);
void iwarp_failed(struct hca_qp *qp);
void iwarp_expired(struct hca_qp *qp);
/* The queue pair goes. */
void iwarp_close_qp(struct hca_qp *qp);
/* Nobody waits for the peer's end any more: of all streams. No lock is held. */
void iwarp_end_lingering(void);
/* In a forked child. */
void iwarp_streams_forked(void);

/* ---- poll.c ---- */
bool iwarp_poll(struct hca_cq *cq, bool wait);
/* The program is about to sleep. */
bool iwarp_announces(void);
int iwarp_polls_start(void);
void iwarp_polls_stop(void);
void iwarp_polls_forked(void);

#endif
