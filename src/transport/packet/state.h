/* SPDX-License-Identifier: BSD-2-Clause */
/* Of a queue pair that sends packets; only for the files of this folder. */
#ifndef TRANSPORT_PACKET_STATE_H
#define TRANSPORT_PACKET_STATE_H

#include "engine/rc/requester.h"
#include "engine/rc/responder.h"
#include "hca/share/process.h"
#include "transport/carrier/carrier.h"
#include "transport/packet/packet.h"
#include "util/clock.h"

/* A posted entry, as the engine sees it, and where it is in the send queue: operations
 * that send nothing are in that alone. */
struct packet_entry {
	struct rc_wqe rc;
	uint32_t sq_index;
};

struct packet_qp {
	struct hca_qp *qp;
	struct packet_port *port;
	unsigned generation;    /* of the port, when it was opened */
	struct packet_route route; /* of connected ones; from RTR on */
	uint8_t service;        /* enum packet_service */

	/* Under sq_lock. */
	struct rc_requester requester;
	struct packet_entry *entries;
	bool ready;             /* RTS was entered */
	uint16_t epoch;         /* hca_qp.tx_epoch, as `requester` knows it */
	uint32_t completed;     /* of its entries */
	uint64_t gone_back;     /* as it was counted */
	uint64_t armed_ns;      /* hca_qp.retry; 0: not armed */
	uint64_t look_ns;       /* a local operation waits until then, 0: none does */
	uint64_t look_since_ns;
	bool polled;            /* a poll sends what waits */
	/* Under wait_lock of the port. */
	bool waiting;
	struct list wait_entry;

	_Atomic uint64_t timeout_ns; /* the requester's; read under the other lock, too */

	/* Under receive_lock of the port. */
	struct rc_responder responder;
	bool connected;         /* RTR was entered */
	bool answering;
	/* Also written under sq_lock alone: a lost count costs a packet at most. */
	atomic_uint told_turn;  /* of the port, when an acknowledgement left by itself */
	atomic_uint replies;    /* how often in succession a request was posted before
				 * the next poll */
	struct list answer_entry;
	/* Whose receive queue, domain and completion queue messages use: `qp`, or for an
	 * XRC target what stands for it at the SRQ (xrc.c). */
	struct hca_qp *as;
	struct packet_xrc *xrc;
	/* The protection domains of what responder.resources reads. */
	uint32_t read_pd[RC_RESOURCES_MAX];
};

/* In hca_qp.path_part. */
struct packet_part {
	/* Changes under receive_lock of the port and sq_lock. NULL: closed. */
	struct packet_qp *state;
	struct packet_port *port;
	/* packet_posted() reads it without a lock. */
	_Atomic uint32_t unfinished;
};
_Static_assert(sizeof(struct packet_part) <= HCA_PATH_PART_BYTES, "it lies there");

/* The time of the engines, which is read for each message. */
static inline uint64_t packet_now_ns(void)
{
	return clock_now_ns();
}

static inline struct packet_part *packet_part(struct hca_qp *qp)
{
	return (struct packet_part *)(void *)qp->path_part;
}

/* The states in which requests are taken. */
static inline bool packet_receives(const struct hca_qp *qp)
{
	enum ibv_qp_state state = hca_qp_state(qp);

	return state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
	       state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}

struct packet_train;

/* ---- train.c ---- */
/* Where a packet of a train is: its header, and its trailer behind that, in `text`; its payload in
 * `iov`. */
struct packet_part_of_train {
	uint16_t header;
	uint8_t header_bytes, payload, pieces;
};

/* Packets for one destination that leave together. All but the last one have the length of
 * the first one. Pieces of `iov` are, in turns, text and payload: the trailer of a packet and
 * the header of the next one are one piece. */
struct packet_train {
	struct packet_port *port;
	struct packet_route *route;
	bool fragments;   /* as the route had it when the train began */
	unsigned packets, pieces;
	uint32_t segment; /* length of the first packet */
	uint32_t bytes, text_bytes;
	bool ended;       /* no packet may follow */
	uint32_t length;  /* of the header of the packet that is being added */
	struct icrc_series series;
	struct packet_part_of_train packet[PACKET_TRAIN_MAX];
	struct iovec iov[CARRIER_IOV_MAX];
	uint8_t text[PACKET_TRAIN_MAX * (PACKET_HEADER_BYTES + PACKET_TRAILER_BYTES)];
};
_Static_assert(CARRIER_IOV_MAX <= UINT8_MAX + 1 && PACKET_HEADER_BYTES <= UINT8_MAX, "it fits");

static inline void packet_train_open(struct packet_train *t, struct packet_port *port,
				     struct packet_route *route)
{
	t->port = port;
	t->route = route;
	t->fragments = atomic_load_explicit(&route->fragments, memory_order_relaxed);
	t->packets = t->pieces = 0;
	t->bytes = t->text_bytes = 0;
	t->ended = false;
	t->series = (struct icrc_series){ 0 };
}

/* Begins one more packet. Returns room for up to HCA_MAX_SGE pieces of its payload, or NULL:
 * the train has to leave first; an empty one takes any packet. */
struct iovec *packet_train_begin(struct packet_train *t, const struct packet_frame *f);
/* The packet has `n` pieces of payload there. */
void packet_train_end(struct packet_train *t, unsigned n);
/* How many packets with the header that was begun last, and a payload of so many bytes in one
 * piece, the train takes. */
uint32_t packet_train_room(const struct packet_train *t, uint32_t payload);
/* Adds packets like the last one, which is `like`: up to like->more, whose payloads are one behind
 * the other from `payload` on. How many. */
uint32_t packet_train_more(struct packet_train *t, const struct rc_packet *like, uint8_t *payload);
/* All of them leave: 0, or why the carrier took none. Packets that are too long leave in
 * fragments, where the medium allows it, and so do later ones of the route. */
int packet_train_emit(struct packet_train *t);

/* ---- faults.c ---- */
/* The faults that are wanted begin; the port has its carrier. 0 or -ENOMEM. receive_lock is
 * held. */
int packet_faults_apply(struct packet_port *port);
/* Sees whether the filter still holds anything back, now that it has been told to let all
 * pass. receive_lock is held. */
void packet_faults_settle(struct packet_port *port);

/* ---- presence.c ---- */
/* `look` polls in place of the program (poll.c). */
void packet_presence_open(struct packet_port *port, void (*look)(struct progress_timer *t));
/* No lock is held. */
void packet_presence_close(struct packet_port *port);
/* In a forked child. */
void packet_presence_forked(struct packet_port *port, void (*look)(struct progress_timer *t));
/* Polls without a gap have to last twice as long before they are relied on. */
void packet_presence_doubt(struct packet_presence *p);

/* ---- backlog.c ---- */
/* Its turn comes with the next poll, as the carrier has no room or more is to leave with it.
 * sq_lock is held. */
void packet_wait(struct packet_qp *pq);
/* It owes an answer. receive_lock is held. */
void packet_owes(struct packet_qp *pq);
/* Out of both lists. receive_lock is held. */
void packet_forget(struct packet_qp *pq);

/* ---- poll.c ---- */
/* The timer packet_presence.look. */
void packet_on_look(struct progress_timer *t);

/* ---- requester.c; sq_lock is held ---- */
/* The longest payload of a connection. */
uint32_t packet_mtu(const struct packet_qp *pq);
void packet_requester_open(struct packet_qp *pq, uint32_t psn);
/* The requester's state is that of the send queue, which may have been flushed. */
void packet_settle(struct packet_qp *pq);
/* Completes what the engine has decided. False: the queue pair has failed. */
bool packet_finish(struct packet_qp *pq, struct rc_done done);
void packet_arm(struct packet_qp *pq);
/* Counts a going back, if there was one since the last time; the next entry to be sent
 * was `next_before`. `rnr`: the receiver was not ready. */
void packet_count_repeated(struct packet_qp *pq, uint32_t next_before, bool rnr);

/* ---- receive.c, request.c, respond.c, requester.c; receive_lock is held ---- */
/* For the carrier; `arg` is the port. */
void packet_deliver(void *arg, const struct carrier_unit *unit);
void packet_receive(struct packet_port *port, const struct carrier_unit *unit,
		    struct packet_frame *f, const uint8_t *payload);
/* Return how many packets of the run were taken, as far as one look at them was enough: 1 at
 * least. */
uint32_t packet_request(struct packet_qp *pq, const struct packet_frame *f,
			const uint8_t *payload);
uint32_t packet_reply(struct packet_qp *pq, const struct packet_frame *f,
		      const uint8_t *payload);
/* A request leaves before the poll behind that which brought the peer's; any lock or none. */
void packet_count_reply(struct packet_qp *pq);
/* Adds the acknowledgement that is owed to a train of requests to the same peer, if there is
 * one and it fits. True: when the train has left, rc_responded() is to be called for *r. */
bool packet_join_acknowledgement(struct packet_qp *pq, struct packet_train *train,
				 struct rc_response *r);
/* All responders that owe answers take their turns; those that have more to send are queued again.
 * True: some were sent. */
bool packet_run_answers(struct packet_port *port);
/* Sends a few answers. True: there are more, or no room for them. */
bool packet_respond(struct packet_qp *pq, unsigned budget, bool *moved);
/* What was carried out is acknowledged, at the end of the queue pair's service. */
void packet_acknowledge(struct packet_qp *pq);
/* May the acknowledgement of a message that is complete wait for the program's reply, though a queue
 * is armed? Only on a thread of the program that was woken by the message and so is the one that
 * takes the event, where such threads usually reply. */
bool packet_defers_acknowledgement(const struct packet_qp *pq);
/* The queue pair ends because a peer's access was refused with this status. */
void packet_refuse(struct packet_qp *pq, enum ibv_wc_status status);
void packet_receive_datagram(struct packet_port *port, struct hca_qp *qp,
			     const struct packet_frame *f, const uint8_t *payload);
/* A copy for each queue pair that is attached to the group in f->grh. */
void packet_receive_group(struct packet_port *port, const struct packet_frame *f,
			  const uint8_t *payload);

/* ---- access.c ---- */
enum packet_access { PACKET_WRITE, PACKET_READ, PACKET_WORD };
/* `bytes` at `data` and, `more` times, at `stride` behind. */
struct packet_payload {
	uint8_t *data;
	uint32_t bytes, more, stride;
};
/* A peer's access to [addr + at, ...) of [addr, + length), which is allowed as a whole:
 * IBV_WC_SUCCESS, or the status for the peer. `p` NULL: only whether it is. */
enum ibv_wc_status packet_access(const struct packet_qp *pq, uint32_t pd_id,
				 enum packet_access what, uint32_t rkey, uint64_t addr,
				 uint64_t length, uint64_t at, const struct packet_payload *p);
/* An atomic operation, or a WRITE of a word (RC_WORD, the word at `data`). */
enum ibv_wc_status packet_atomic(const struct packet_qp *pq, uint32_t pd_id,
				 const struct rc_packet *p, const void *data,
				 uint64_t *old);
/* The pieces of [at, at + length) of an entry's data; pieces whose keys need care are
 * copied into `bounce` (`length` bytes). How many pieces, up to HCA_MAX_SGE, or -EFAULT.
 * To be called, and the pieces used, between packet_copy_begin() and packet_copy_end(). */
int packet_gather(const struct hca_qp *qp, const struct hca_swqe *e, uint32_t at,
		  uint32_t length, struct iovec *iov, uint8_t *bounce);

/* The same in one piece that needs no such care; NULL: it is not. */
uint8_t *packet_whole(const struct hca_qp *qp, const struct hca_swqe *e, uint32_t at,
		      uint32_t length);

/* ---- fence.c ---- */
/* Around each look at a key and the copy that follows. In between nothing is waited for
 * but leaf locks. The returned number is for packet_copy_end(). */
unsigned packet_copy_begin(struct packet_port *port);
void packet_copy_end(struct packet_port *port, unsigned turn);

/* ---- xrc.c ---- */
/* The target's stand-in; 0 or -ENOMEM. No lock is held; for the others receive_lock is. */
int packet_xrc_new(struct packet_qp *pq);
void packet_xrc_open(struct packet_qp *pq);
void packet_xrc_close(struct packet_qp *pq);
/* The SRQ that the request names. 0; -EACCES: it is not there, or of another domain; -EINVAL: the
 * message began with another one. */
int packet_xrc_attach(struct packet_qp *pq, const struct packet_frame *f);

#endif
