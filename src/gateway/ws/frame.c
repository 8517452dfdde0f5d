/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of WebSocket; see frame.h. */
#include "gateway/ws/frame.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/ws/utf8.h"
#include "util/container_of.h"

#define FIN 0x80
#define RESERVED 0x70
#define OPCODE 0x0f
#define MASKED 0x80
#define LENGTH 0x7f

/* A reader that waits for the next message keeps no more memory than this. */
#define KEPT 4096
#define FIRST 512

struct ws_reader {
	enum ws_side side;
	size_t max;
	const char *error;
	bool closed;          /* a close frame has come: what follows is not looked at */

	/* The frame that comes now */
	uint8_t head[WS_HEAD_MAX];
	unsigned head_len;    /* bytes of it that have come */
	bool in_payload;
	bool fin;
	enum ws_opcode opcode;
	uint8_t mask[4];
	uint64_t left;        /* bytes of the payload that have not come */
	size_t at;            /* bytes that have */

	/* The message that its fragments are put together to */
	enum ws_opcode message; /* WS_CONTINUATION: none has begun */
	bool taken;             /* the caller has had it */
	uint8_t *data;
	size_t len, size;
	struct ws_utf8 text;

	uint8_t control[WS_CONTROL_MAX];
};

struct ws_reader *ws_reader_new(enum ws_side side, size_t max)
{
	struct ws_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->side = side;
	r->max = max;
	r->error = "";
	return r;
}

void ws_reader_free(struct ws_reader *r)
{
	if (r)
		free(r->data);
	free(r);
}

const char *ws_reader_error(const struct ws_reader *r)
{
	return r->error;
}

static int fail(struct ws_reader *r, enum ws_status status, const char *why)
{
	r->error = why;
	return -(int)status;
}

static bool is_control(enum ws_opcode opcode)
{
	return opcode >= WS_CLOSE;
}

static int check_first(struct ws_reader *r, uint8_t byte)
{
	r->fin = byte & FIN;
	r->opcode = byte & OPCODE;
	if (byte & RESERVED)
		return fail(r, WS_PROTOCOL_ERROR, "a reserved bit is set");
	switch (r->opcode) {
	case WS_CONTINUATION:
		if (r->message == WS_CONTINUATION)
			return fail(r, WS_PROTOCOL_ERROR, "there is no message to continue");
		return 0;
	case WS_TEXT:
	case WS_BINARY:
		if (r->message != WS_CONTINUATION)
			return fail(r, WS_PROTOCOL_ERROR,
				    "a message begins before the one in front of it has ended");
		return 0;
	case WS_CLOSE:
	case WS_PING:
	case WS_PONG:
		if (!r->fin)
			return fail(r, WS_PROTOCOL_ERROR, "a control frame is in fragments");
		return 0;
	}
	return fail(r, WS_PROTOCOL_ERROR, "an opcode that there is not");
}

static int check_second(struct ws_reader *r, uint8_t byte)
{
	if (!!(byte & MASKED) != (r->side == WS_SERVER))
		return fail(r, WS_PROTOCOL_ERROR, r->side == WS_SERVER ?
			    "a frame of a client has no mask" : "a frame of a server has a mask");
	if (is_control(r->opcode) && (byte & LENGTH) > WS_CONTROL_MAX)
		return fail(r, WS_PROTOCOL_ERROR, "a control frame is longer than 125 bytes");
	return 0;
}

/* Bytes of the length behind the first two. */
static unsigned length_bytes(uint8_t second)
{
	return (second & LENGTH) == 126 ? 2 : (second & LENGTH) == 127 ? 8 : 0;
}

static int check_length(struct ws_reader *r)
{
	unsigned bytes = length_bytes(r->head[1]);
	uint64_t len = bytes ? 0 : r->head[1] & LENGTH;

	for (unsigned i = 0; i < bytes; i++)
		len = len << 8 | r->head[2 + i];
	if (len >> 63)
		return fail(r, WS_PROTOCOL_ERROR, "the first bit of a length is set");
	if ((bytes == 2 && len < 126) || (bytes == 8 && len < 65536))
		return fail(r, WS_PROTOCOL_ERROR, "a length takes more bytes than it needs");
	if (!is_control(r->opcode) && len > r->max - r->len)
		return fail(r, WS_TOO_BIG, "the message is too long");
	r->left = len;
	return 0;
}

/* A byte of the head of a frame. 0, or as ws_reader_take(). */
static int take_head(struct ws_reader *r, uint8_t byte)
{
	unsigned length_end, end;
	int ret = 0;

	r->head[r->head_len++] = byte;
	if (r->head_len == 1)
		return check_first(r, byte);
	if (r->head_len == 2)
		ret = check_second(r, byte);
	length_end = 2 + length_bytes(r->head[1]);
	end = length_end + (r->head[1] & MASKED ? 4 : 0);
	if (!ret && r->head_len == length_end)
		ret = check_length(r);
	if (ret || r->head_len < end)
		return ret;
	if (r->head[1] & MASKED)
		memcpy(r->mask, r->head + length_end, sizeof(r->mask));
	else
		memset(r->mask, 0, sizeof(r->mask));
	r->in_payload = true;
	r->at = 0;
	if (r->opcode == WS_TEXT || r->opcode == WS_BINARY) {
		r->message = r->opcode;
		r->text = (struct ws_utf8){ 0 };
	}
	return 0;
}

/* A head may promise much and nothing may follow: room is made for what has come. */
static int make_room(struct ws_reader *r, size_t more)
{
	size_t size = r->size ? r->size : MIN((size_t)FIRST, r->max);
	uint8_t *data;

	if (r->len + more <= r->size)
		return 0;
	while (size < r->len + more)
		size = size > r->max / 2 ? r->max : 2 * size;
	data = realloc(r->data, size);
	if (!data)
		return fail(r, WS_INTERNAL_ERROR, "no memory for the message");
	r->data = data;
	r->size = size;
	return 0;
}

static int take_payload(struct ws_reader *r, const uint8_t *data, size_t len)
{
	uint8_t *to;
	int ret;

	if (!len)
		return 0;
	if (is_control(r->opcode)) {
		to = r->control + r->at;
	} else {
		ret = make_room(r, len);
		if (ret)
			return ret;
		to = r->data + r->len;
		r->len += len;
	}
	memcpy(to, data, len);
	if (r->side == WS_SERVER)
		ws_mask(to, len, r->mask, r->at);
	r->at += len;
	r->left -= len;
	if (!is_control(r->opcode) && r->message == WS_TEXT && !ws_utf8_take(&r->text, to, len))
		return fail(r, WS_INVALID_DATA, "a text is not UTF-8");
	return 0;
}

/* Those that a program may send (section 7.4). */
static bool is_status(unsigned status)
{
	return (status >= 1000 && status <= 1003) || (status >= 1007 && status <= 1014) ||
	       (status >= 3000 && status <= 4999);
}

static int take_close(struct ws_reader *r, struct ws_message *m)
{
	struct ws_utf8 text = { 0 };

	r->closed = true;
	m->status = WS_NO_STATUS;
	m->reason = "";
	if (!m->len)
		return 1;
	if (m->len == 1)
		return fail(r, WS_PROTOCOL_ERROR, "a close frame with half a status");
	m->status = (unsigned)r->control[0] << 8 | r->control[1];
	m->reason = (const char *)r->control + 2;
	m->reason_len = m->len - 2;
	if (!is_status(m->status))
		return fail(r, WS_PROTOCOL_ERROR, "a close frame with a status that there is not");
	if (!ws_utf8_take(&text, m->reason, m->reason_len) || !ws_utf8_is_whole(&text))
		return fail(r, WS_INVALID_DATA, "the reason of a close frame is not UTF-8");
	return 1;
}

/* The whole payload of a frame has come. */
static int end_frame(struct ws_reader *r, struct ws_message *m)
{
	r->in_payload = false;
	r->head_len = 0;
	*m = (struct ws_message){ .opcode = r->opcode, .data = r->control, .len = r->at };
	if (r->opcode == WS_CLOSE)
		return take_close(r, m);
	if (is_control(r->opcode))
		return 1;
	if (!r->fin)
		return 0;
	if (r->message == WS_TEXT && !ws_utf8_is_whole(&r->text))
		return fail(r, WS_INVALID_DATA, "a text ends within a character");
	m->opcode = r->message;
	m->data = r->data ? r->data : r->control;
	m->len = r->len;
	r->taken = true;
	return 1;
}

/* The caller has had the last message. */
static void begin_message(struct ws_reader *r)
{
	r->taken = false;
	r->message = WS_CONTINUATION;
	r->len = 0;
	if (r->size <= KEPT)
		return;
	free(r->data);
	r->data = NULL;
	r->size = 0;
}

int ws_reader_take(struct ws_reader *r, const void *data, size_t len, size_t *used,
		   struct ws_message *m)
{
	const uint8_t *bytes = data;
	size_t n;
	int ret = 0;

	if (r->taken)
		begin_message(r);
	*used = r->closed ? len : 0;
	while (!ret && *used < len) {
		if (!r->in_payload) {
			ret = take_head(r, bytes[(*used)++]);
		} else {
			n = (size_t)MIN(r->left, (uint64_t)(len - *used));
			ret = take_payload(r, bytes + *used, n);
			*used += n;
		}
		if (!ret && r->in_payload && !r->left)
			ret = end_frame(r, m);
	}
	return ret;
}

size_t ws_head_write(uint8_t to[WS_HEAD_MAX], enum ws_opcode opcode, bool fin, uint64_t len,
		     const uint8_t mask[4])
{
	unsigned bytes = len < 126 ? 0 : len < 65536 ? 2 : 8;
	uint8_t masked = mask ? MASKED : 0;
	size_t at = 2;

	to[0] = (uint8_t)((fin ? FIN : 0) | opcode);
	to[1] = masked | (uint8_t)(bytes == 0 ? len : bytes == 2 ? 126 : 127);
	for (unsigned i = bytes; i-- > 0;)
		to[at++] = (uint8_t)(len >> (8 * i));
	if (mask) {
		memcpy(to + at, mask, 4);
		at += 4;
	}
	return at;
}

void ws_mask(void *data, size_t len, const uint8_t mask[4], size_t offset)
{
	uint8_t *p = data, turned[8];
	uint64_t word, key;

	for (unsigned i = 0; i < sizeof(turned); i++)
		turned[i] = mask[(offset + i) & 3];
	memcpy(&key, turned, sizeof(key));
	for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		word ^= key;
		memcpy(p, &word, sizeof(word));
	}
	for (size_t i = 0; i < len; i++)
		p[i] ^= turned[i];
}

size_t ws_close_write(uint8_t to[WS_CONTROL_MAX], unsigned status, const char *reason)
{
	size_t len = strlen(reason);

	if (status == WS_NO_STATUS)
		return 0;
	if (len > WS_REASON_MAX) {
		len = WS_REASON_MAX;
		while (len && ((uint8_t)reason[len] & 0xc0) == 0x80)
			len--;
	}
	to[0] = (uint8_t)(status >> 8);
	to[1] = (uint8_t)status;
	memcpy(to + 2, reason, len);
	return 2 + len;
}
