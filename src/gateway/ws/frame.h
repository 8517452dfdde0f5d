/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of WebSocket (RFC 6455, section 5) for either end of a connection, as pure
 * functions: bytes in, messages out, and the other way round. No extension is offered or
 * accepted, so the reserved bits are errors.
 */
#ifndef GATEWAY_WS_FRAME_H
#define GATEWAY_WS_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10,
};

/* Section 7.4.1. */
enum ws_status {
	WS_NORMAL = 1000,
	WS_GOING_AWAY = 1001,
	WS_PROTOCOL_ERROR = 1002,
	WS_UNSUPPORTED = 1003,
	WS_NO_STATUS = 1005,      /* never on the wire: the close frame was empty */
	WS_ABNORMAL = 1006,       /* never on the wire: the connection broke */
	WS_INVALID_DATA = 1007,   /* a text that is not UTF-8 */
	WS_POLICY = 1008,
	WS_TOO_BIG = 1009,
	WS_INTERNAL_ERROR = 1011,
	WS_TRY_LATER = 1013,
};

enum {
	WS_CONTROL_MAX = 125,     /* bytes of a ping, pong or close */
	WS_HEAD_MAX = 14,         /* with a mask */
	WS_REASON_MAX = WS_CONTROL_MAX - 2,
};

/* Who reads: a server takes masked frames only, a client unmasked ones only. */
enum ws_side { WS_SERVER, WS_CLIENT };

struct ws_message {
	enum ws_opcode opcode;    /* of the message: never WS_CONTINUATION */
	const void *data;         /* all fragments, unmasked; valid until the next call */
	size_t len;
	/* Of WS_CLOSE: the status and the reason, which is UTF-8 and lies in `data`. */
	unsigned status;
	const char *reason;
	size_t reason_len;
};

struct ws_reader;

/* `max`: the longest message, all fragments together. NULL without memory. Memory for
 * messages grows as they come, up to `max`. */
struct ws_reader *ws_reader_new(enum ws_side side, size_t max);
void ws_reader_free(struct ws_reader *r); /* NULL allowed */

/*
 * Takes bytes from data[0..len) up to the end of the next message or control frame and
 * sets *used to their number. Returns
 *   1: a message or control frame is in *m (control frames come between fragments, too);
 *   0: all bytes were taken and more are needed;
 *   a negative ws_status (-WS_PROTOCOL_ERROR, -WS_INVALID_DATA, -WS_TOO_BIG, and
 *   -WS_INTERNAL_ERROR without memory): the connection is to be closed with it; the reader
 *   is not to be used again. ws_reader_error() says what is wrong.
 * UTF-8 is checked as it comes, so that a wrong text ends before its last fragment.
 */
int ws_reader_take(struct ws_reader *r, const void *data, size_t len, size_t *used,
		   struct ws_message *m);
const char *ws_reader_error(const struct ws_reader *r);

/*
 * Writes the head of a whole frame with `len` bytes of payload; its length. `mask`: NULL
 * for a server; else four random bytes, and the payload is to be changed by ws_mask().
 */
size_t ws_head_write(uint8_t to[WS_HEAD_MAX], enum ws_opcode opcode, bool fin, uint64_t len,
		     const uint8_t mask[4]);
/* XORs the payload with the mask; `offset` is where data[0] lies in the payload. */
void ws_mask(void *data, size_t len, const uint8_t mask[4], size_t offset);

/* Writes the payload of a close frame: status and as much of `reason` as fits, cut at a
 * character. Its length. WS_NO_STATUS: none. */
size_t ws_close_write(uint8_t to[WS_CONTROL_MAX], unsigned status, const char *reason);

#endif
