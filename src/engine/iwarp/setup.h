/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set-up of an MPA connection, both ends: one request and one reply in front of the FPDUs. RFC
 * 5044, 7.1 (revision 1), and RFC 6581 (revision 2: IRD, ORD, the first message). What RFC 6581
 * leaves open is done as by Linux's siw, the only peer that everybody has.
 *
 * Pure: bytes, the end of the stream and the time in, bytes and `state` out. The caller opens the
 * TCP connection, moves the bytes, and asks its program whether to accept. When `state` is
 * IWARP_SETUP_DONE, iwarp_connection_open() takes the terms; bytes behind the frame are its.
 *
 * The terms:
 * - Markers: each end says whether it wants to receive them; the other one sends them, or refuses
 *   the connection (siw always does).
 * - CRC: both directions have it if either end asks.
 * - IRD and ORD (14 bits): the peer's ORD is what this end should serve, so the own IRD is raised
 *   to it, up to `ird_max`; the own ORD is lowered to the peer's IRD. An initiator whose `ird_max`
 *   does not suffice for the reply ends the connection with a TERMINATE. With revision 1 both ends
 *   keep what they have.
 * - RTR ("ready to receive"): the responder must not send first, so an initiator whose program only
 *   receives sends a message without content: a WRITE of 0 bytes, a READ or a SEND. The initiator
 *   offers some; the responder takes the first of WRITE, READ, SEND that both have; WRITE if there
 *   is none, as siw does, and then the initiator ends the connection with a TERMINATE.
 */
#ifndef ENGINE_IWARP_SETUP_H
#define ENGINE_IWARP_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/iwarp/mpa.h"

enum iwarp_rtr { /* bits */
	IWARP_RTR_WRITE = 1 << 0,
	IWARP_RTR_READ = 1 << 1,
	IWARP_RTR_SEND = 1 << 2,
};

struct iwarp_setup_params {
	bool initiator;
	uint8_t revision;      /* of the initiator: 1 or 2; a responder has that of the request */
	bool markers;          /* this end wants to receive them */
	bool sends_markers;    /* and can send them */
	bool crc;              /* this end asks for it */
	bool peer_to_peer;     /* initiator, revision 2: it sends an RTR */
	uint8_t rtr;           /* enum iwarp_rtr: those that this end can send, or take */
	uint16_t ird, ord;     /* that it wants */
	/* 1 to IWARP_MPA_DEPTH_MAX; of the IRD no more than IWARP_READS_MAX (responder.h). */
	uint16_t ird_max, ord_max;
	/* How long the initiator waits for the reply, and the responder for the request. siw: 10 s
	 * and 5 s. 0: for ever. */
	uint64_t wait_ns;
	/* Of the initiator's request; copied. Linux's siw takes 252 bytes at most (revision 1: 256)
	 * and else closes the connection without a reply. */
	const uint8_t *private_data;
	uint16_t private_bytes;
};

/* What both ends have agreed on. */
struct iwarp_terms {
	bool initiator;
	bool markers_in, markers_out, crc;
	uint16_t ird, ord;
	uint8_t rtr;           /* one of enum iwarp_rtr, or 0: this message comes first */
};

enum iwarp_setup_state {
	IWARP_SETUP_REQUESTING, /* initiator: not all of the request is sent, or no reply came */
	IWARP_SETUP_LISTENING,  /* responder: no request came */
	IWARP_SETUP_DECIDING,   /* responder: `peer` is the request; accept or reject */
	IWARP_SETUP_REPLYING,   /* not all of the reply is sent */
	IWARP_SETUP_DONE,       /* `terms` are set; initiator: `peer` is the reply */
	/* `result` says why. If `terminate` is not IWARP_OK, `terms` are set: the caller opens the
	 * connection and ends it with iwarp_connection_refuse(). Otherwise it closes the stream. */
	IWARP_SETUP_FAILED,
};

struct iwarp_setup {
	struct iwarp_setup_params p;
	uint8_t state;         /* enum iwarp_setup_state */
	/* -ECONNREFUSED: the peer has rejected it (`peer` is the reply, with its private data), or
	 * this end has. -EPROTO: no MPA, or what this end does not do. -ECONNRESET: the stream has
	 * ended, or the reply is not of revision 2. -ETIMEDOUT. -ENOMEM: IRD. */
	int result;
	enum iwarp_error broken;    /* the rule of MPA that the peer broke */
	enum iwarp_error terminate;
	int reply_result;      /* when the reply is sent: 0, or `result` of a rejection */
	struct iwarp_mpa peer;  /* its private data lie in `in` */
	struct iwarp_terms terms;
	uint64_t deadline_ns;  /* 0: none */
	uint16_t in_bytes, out_bytes, out_sent;
	uint8_t in[IWARP_MPA_FRAME_MAX], out[IWARP_MPA_FRAME_MAX];
};

/* 0, or -EINVAL: a value does not fit its field. */
int iwarp_setup_open(struct iwarp_setup *s, const struct iwarp_setup_params *p, uint64_t now_ns);

/* The bytes to send; *bytes may be 0. They stay until they are sent. */
const uint8_t *iwarp_setup_output(const struct iwarp_setup *s, size_t *bytes);
/* TCP has taken the first `bytes` of them. */
void iwarp_setup_sent(struct iwarp_setup *s, size_t bytes);

/* Takes bytes of the stream, none behind the frame, and moves *data and *bytes behind them. A
 * request behind which the initiator has sent more before it has the reply fails. */
void iwarp_setup_take(struct iwarp_setup *s, const uint8_t **data, size_t *bytes);
/* The stream has ended, or was reset. */
void iwarp_setup_ended(struct iwarp_setup *s);
/* To be called at s->deadline_ns. */
void iwarp_setup_timer(struct iwarp_setup *s, uint64_t now_ns);

/* In DECIDING. `ird` and `ord`: what the program wants, at most the limits. 0, or -EINVAL: the
 * private data (512 bytes at most, 508 in an enhanced reply) do not fit; nothing has changed. */
int iwarp_setup_accept(struct iwarp_setup *s, uint16_t ird, uint16_t ord,
		       const uint8_t *private_data, uint16_t private_bytes);
int iwarp_setup_reject(struct iwarp_setup *s, const uint8_t *private_data,
		       uint16_t private_bytes);

#endif
