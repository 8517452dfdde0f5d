/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's side of C37.118: it asks a device for its configuration, has it send data, and reads
 * them. No socket, no clock and no thread: bytes and the time come in, commands and data frames go
 * out.
 *
 * A device may change its configuration while it sends. It says so by a bit of STAT, by an
 * unasked configuration frame, or not at all, and data frames have another length. In each case
 * the session asks again. Until the new configuration is in use, frames that only the one before it
 * fits are read by that.
 */
#ifndef GATEWAY_NODE_C37_SESSION_H
#define GATEWAY_NODE_C37_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/node/c37.118/c37_figures.h"
#include "gateway/node/c37.118/c37_layout.h"
#include "gateway/node/c37.118/c37_track.h"
#include "wire/grid/c37_parts.h"

/* Questions for a configuration until the device is given up. */
#define C37_ASKS_MAX 3
#define C37_WHY_MAX 160

struct c37_session_ops {
	void (*send)(void *arg, const uint8_t *data, size_t len);
	/* A data frame that fits `l`, with its time. Not for repeated ones. */
	void (*data)(void *arg, const struct c37_layout *l, const struct c37_frame *f,
		     uint64_t sequence, int64_t time_ns);
	/* This configuration holds from now on; `before` may be NULL. */
	void (*layout)(void *arg, const struct c37_layout *l, const struct c37_layout *before);
	/* The text of a header frame; not terminated, may hold anything. */
	void (*header)(void *arg, struct c37_bytes text);
	void (*count)(void *arg, enum c37_figure figure, uint64_t n);
	void (*fault)(void *arg, enum socket_fault kind, const char *why);
	int64_t (*wall_ns)(void *arg); /* for the time of commands */
};

enum c37_session_state { C37_IDLE, C37_ASKING, C37_RUNNING };

struct c37_session {
	/* Settings. */
	const struct c37_session_ops *ops;
	void *arg;
	uint16_t idcode;
	bool cfg3, wants_header, status;
	bool drops_invalid;      /* frames with an error in the data of a station */
	uint64_t timeout_ns;     /* for an answer, and between two data frames */

	enum c37_session_state state;
	bool asks;               /* a question is open */
	unsigned asked;          /* questions since the last answer */
	uint64_t asked_ns;
	bool fell_back;          /* the device does not answer to CFG-3 */
	uint64_t heard_ns;       /* the last data frame; or when data were asked for */
	bool change_told;        /* by the bit of STAT in the last frame */
	struct c37_parts parts;  /* of a CFG-3 */
	struct c37_layout *layout, *previous;
	struct c37_track track;
	char why[C37_WHY_MAX];   /* of giving up */
};

/* A connection was made. What is known of the stream is kept, so that a gap is seen. */
void c37_session_begin(struct c37_session *s, bool ordered, uint64_t now_ns);
/* Reads the frames in the bytes that came; how many bytes are done with. */
size_t c37_session_take(struct c37_session *s, const uint8_t *data, size_t len, uint64_t now_ns);
/* What is due. False: the connection is to be given up, because of s->why. *next_ns: when to call
 * again at the latest. */
bool c37_session_due(struct c37_session *s, uint64_t now_ns, uint64_t *next_ns);
/* The connection is over or will be; `says`: the device is told to send no more. */
void c37_session_end(struct c37_session *s, bool says);
void c37_session_destroy(struct c37_session *s);

#endif
