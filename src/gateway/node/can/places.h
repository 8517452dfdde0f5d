/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals in frames of a CAN bus: values to bits and back, and which bits belong to which
 * signal. Places are those of DBC files. Pure functions; they know nothing of sockets.
 */
#ifndef GATEWAY_NODE_CAN_PLACES_H
#define GATEWAY_NODE_CAN_PLACES_H

#include <linux/can.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/sample/sample.h"

#define CAN_VALUE_BITS 64

enum can_kind {
	CAN_INTEGER,  /* of an integer signal */
	CAN_SCALED,   /* an integer times `factor` plus `offset`, of a float signal */
	CAN_REAL,     /* a float of 32 or 64 bits (IEEE 754) times `factor` plus `offset` */
	CAN_BOOLEAN,  /* one bit or more: not zero */
	CAN_COMPLEX,  /* two floats of 32 bits, the real part first */
};

/* A multiplexor, whose value says which signals a frame has. */
struct can_switch {
	unsigned start, length; /* as in can_map; length 0: there is none */
	bool big;
	uint64_t value;         /* with which the signals are there */
};

/* Where a signal is. */
struct can_map {
	unsigned signal;        /* index of the value in a sample */
	uint32_t id;            /* of the frame; with CAN_EFF_FLAG if it is an extended one */
	enum can_kind kind;
	/* Bit 7 of a byte is its most significant one, and bit 8 is bit 0 of the second byte.
	 * `start` is the least significant bit of the value; if it is big endian, the most
	 * significant one. */
	unsigned start, length;
	bool big;
	bool is_signed;         /* integers in two's complement */
	double factor, offset;
	double min, max;        /* of the signal; -INFINITY, INFINITY: no limit */
	unsigned frame_length;  /* the frame has so many bytes at least */
	struct can_switch mux;
};

/* All signals of one identifier; with a multiplexor, those of each of its values are a message of their
 * own, and so are those that are always there. */
struct can_message {
	uint32_t id;            /* as in can_map */
	struct can_switch mux;
	unsigned first, count;  /* maps[first], maps[first + 1] ... */
	unsigned reach;         /* bytes that have a signal, or the multiplexor */
	unsigned length;        /* bytes of a frame that is sent */
	/* Signals that are always there: a frame that is sent has them, too. */
	unsigned always_first, always_count;
	bool has_values;        /* they are the always_* of others; no frame of its own is sent */
};

/* The bits of a value. They have to be in `data`. */
uint64_t can_bits_get(const uint8_t data[], unsigned start, unsigned length, bool big);
void can_bits_set(uint8_t data[], unsigned start, unsigned length, bool big, uint64_t bits);
/* How many bytes a frame has at least that holds these bits. */
unsigned can_bits_reach(unsigned start, unsigned length, bool big);

/* The value of a signal; false: it is beyond min or max. `out` is of the signal's type. */
bool can_value_read(const struct can_map *m, const uint8_t data[], union signal_data *out);

enum can_written { CAN_WRITTEN, CAN_CLIPPED, CAN_NO_NUMBER };

/* Puts a value of `type` into its bits. CAN_CLIPPED: the nearest value that is possible stands
 * there; CAN_NO_NUMBER: nothing was put. */
enum can_written can_value_write(const struct can_map *m, enum signal_type type,
				 const union signal_data *v, uint8_t data[]);

/*
 * Sorts maps[] by identifier and makes a message of each; out[] has room for `count`. Returns
 * their number. `fd`: frames have up to 64 bytes, in the steps of CAN FD, else up to 8.
 */
unsigned can_messages_make(struct can_map maps[], unsigned count, bool fd,
			   struct can_message out[]);
/* Two signals of one identifier that share a bit: the one that stands later; NULL: none do. */
const struct can_map *can_find_overlap(const struct can_map maps[], unsigned count);
/* The first one of this identifier; others follow it. NULL: there is none. `messages` as
 * can_messages_make() leaves them. */
const struct can_message *can_message_find(const struct can_message messages[], unsigned count,
					   uint32_t id);

/* A frame that a socket has received. */
struct can_received {
	uint32_t id;            /* with CAN_EFF_FLAG, without the other flags */
	bool error, remote;     /* not a frame with data */
	unsigned len;
	const uint8_t *data;    /* in the buffer of the caller */
};

/* Takes apart what a raw socket gave. NULL, or what is wrong with it. */
const char *can_frame_decode(const void *bytes, size_t size, struct can_received *r);

/* Whether a frame that has msg->reach bytes or more has the multiplexor's value. */
bool can_message_is_there(const struct can_message *msg, const uint8_t data[]);

/* The values of a received message that has msg->reach bytes or more, into values[] by the index of
 * their signals. How many of them are beyond min or max. */
unsigned can_message_read(const struct can_message *msg, const struct can_map maps[],
			  const struct can_received *r, union signal_data values[]);

#endif
