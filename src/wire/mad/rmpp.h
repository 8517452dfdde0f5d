/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reliable multi-packet protocol (RMPP): data of more than one MAD, in segments. IBA
 * volume 1, 13.6. One structure sends, one receives, each for one transaction in one
 * direction. Both are pure: packets and the time in, packets out; the caller matches packets
 * to transactions (class, transaction, peer), sends what they give, and calls again when
 * they are due. Not here: the change of direction of a double-sided transaction (GetMulti).
 *
 * Behind the RMPP header every segment has a header of its class (subnet administration: 20
 * bytes of SM_Key, offset and mask), and then data.
 */
#ifndef WIRE_MAD_RMPP_H
#define WIRE_MAD_RMPP_H

#include <stddef.h>
#include <stdint.h>

#include "wire/mad/mad.h"

enum {
	MAD_RMPP_AT = 24,
	MAD_RMPP_CLASS_AT = 36,     /* behind it */
	MAD_RMPP_CLASS_BYTES = 220, /* of the header of the class and data */
	MAD_RMPP_VERSION = 1,
	MAD_RMPP_NO_RESP_TIME = 31,
};

enum mad_rmpp_type {
	MAD_RMPP_NONE = 0,  /* the MAD does not use RMPP */
	MAD_RMPP_DATA = 1,
	MAD_RMPP_ACK = 2,
	MAD_RMPP_STOP = 3,
	MAD_RMPP_ABORT = 4,
};

enum mad_rmpp_flag {
	MAD_RMPP_ACTIVE = 1 << 0,
	MAD_RMPP_FIRST = 1 << 1,
	MAD_RMPP_LAST = 1 << 2,
};

enum mad_rmpp_status { /* of STOP: 1; of ABORT: 118 to 127 and more */
	MAD_RMPP_OK = 0,
	MAD_RMPP_NO_RESOURCES = 1,
	MAD_RMPP_TOO_LONG = 118,          /* the whole took too much time */
	MAD_RMPP_BAD_LENGTH = 119,        /* last segment and payload length contradict */
	MAD_RMPP_BAD_FIRST = 120,         /* flag "first" and segment number contradict */
	MAD_RMPP_BAD_TYPE = 121,
	MAD_RMPP_WINDOW_TOO_SMALL = 122,  /* the window of an ACK ends before its segment */
	MAD_RMPP_SEGMENT_TOO_BIG = 123,   /* an ACK of a segment that was not sent */
	MAD_RMPP_BAD_STATUS = 124,
	MAD_RMPP_BAD_VERSION = 125,
	MAD_RMPP_TOO_MANY_RETRIES = 126,
	MAD_RMPP_UNSPECIFIED = 127,
};

/* Bytes 24 to 35. */
struct mad_rmpp {
	uint8_t version, type;  /* enum mad_rmpp_type */
	uint8_t resp_time;      /* 5 bits: 4.096 us * 2^n, 31: none */
	uint8_t flags;          /* 3 bits, enum mad_rmpp_flag */
	uint8_t status;         /* enum mad_rmpp_status */
	uint32_t segment;       /* DATA: number, from 1; ACK: the last one received */
	uint32_t length;        /* DATA: payload length; ACK: last segment of the new window */
};
WIRE_CODEC(mad_rmpp, 12)

struct mad_rmpp_config {
	uint16_t class_bytes;   /* of the header of the class: 20 for subnet administration */
	uint32_t window;        /* segments, 1 or more: what the receiver grants */
	uint64_t timeout_ns;    /* the sender waits so long for an ACK */
	uint64_t total_ns;      /* of the whole transaction */
	unsigned retries;       /* of the same segments; then ABORT */
};
#define MAD_RMPP_CONFIG_SA                                                        \
	{ .class_bytes = 20, .window = 64, .timeout_ns = UINT64_C(1000000000),    \
	  .total_ns = UINT64_C(30000000000), .retries = 4 }

enum mad_rmpp_state {
	MAD_RMPP_RUNNING,
	MAD_RMPP_DONE,
	MAD_RMPP_FAILED,        /* `status` says why */
};

/* ---- sender ---- */

struct mad_rmpp_sender {
	enum mad_rmpp_state state;
	uint8_t status;         /* enum mad_rmpp_status, of the ABORT or STOP sent or received */
	/* private */
	struct mad_rmpp_config config;
	uint8_t head[MAD_BYTES]; /* of each segment, up to its data */
	const uint8_t *data;
	size_t bytes;
	uint32_t segments;
	uint32_t acked;         /* segments up to this one are acknowledged */
	uint32_t next, sent;    /* the segment to send next; the last one that was ever sent */
	uint32_t window_last;   /* the last segment that may be sent */
	unsigned tries;
	uint64_t due_ns, end_ns;
	bool abort_pending;
};

/* `head` is a MAD whose headers all segments have; its RMPP header is overwritten. `data`
 * stays the caller's and is read until the sender is done. No bytes make one segment without
 * data. 0, or -EINVAL: the window is 0, class_bytes leave no room, or there are more than
 * 2^32 / 220 segments. */
int mad_rmpp_send_begin(struct mad_rmpp_sender *s, const struct mad_rmpp_config *config,
			const uint8_t head[MAD_BYTES], const uint8_t *data, size_t bytes,
			uint64_t now_ns);

/* The next packet to send now: true, and `out` is filled; call again until it is false. */
bool mad_rmpp_send_next(struct mad_rmpp_sender *s, uint64_t now_ns, uint8_t out[MAD_BYTES]);

/* When to call mad_rmpp_send_next() again if nothing is received before; UINT64_MAX: never. */
uint64_t mad_rmpp_send_due_ns(const struct mad_rmpp_sender *s);

/* An ACK, STOP or ABORT of the receiver has come. */
void mad_rmpp_send_receive(struct mad_rmpp_sender *s, const uint8_t packet[MAD_BYTES],
			   uint64_t now_ns);

/* ---- receiver ---- */

struct mad_rmpp_receiver {
	enum mad_rmpp_state state;
	uint8_t status;         /* enum mad_rmpp_status */
	size_t bytes;           /* of data in the buffer so far; all of them when done */
	/* private */
	struct mad_rmpp_config config;
	uint8_t *buffer;
	size_t capacity;
	uint32_t expected, window_last;
	uint64_t end_ns;
};

/* The buffer stays the caller's and is written until the receiver is done. 0, or -EINVAL as
 * above. */
int mad_rmpp_receive_begin(struct mad_rmpp_receiver *r, const struct mad_rmpp_config *config,
			   uint8_t *buffer, size_t capacity, uint64_t now_ns);

/* A packet of the transaction has come. True: `reply`, an ACK, STOP or ABORT, is to be sent.
 * Segments come in any order and more than once; those ahead of the next one are dropped,
 * the sender repeats them. Packets that come after the end are answered, so the receiver is
 * kept as long as a repeated segment may come. Data beyond the capacity: STOP. */
bool mad_rmpp_receive(struct mad_rmpp_receiver *r, const uint8_t packet[MAD_BYTES],
		      uint64_t now_ns, uint8_t reply[MAD_BYTES]);

/* The transaction fails at this time if it is not done before: call
 * mad_rmpp_receive_expire() then. UINT64_MAX: never. */
uint64_t mad_rmpp_receive_due_ns(const struct mad_rmpp_receiver *r);
void mad_rmpp_receive_expire(struct mad_rmpp_receiver *r, uint64_t now_ns);

#endif
