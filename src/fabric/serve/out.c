/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to a client; see out.h. */
#include "fabric/serve/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fabric/serve/pool.h"

#define BATCH 32
#define TEXT_PIECE (PLUG_PACKET_BYTES - 64)

static uint32_t filled(const struct serve_client *c)
{
	return c->out_head - c->out_tail;
}

void serve_out_touch(struct serve_client *c)
{
	if (list_empty(&c->in_dirty))
		list_push(&c->serve->dirty, &c->in_dirty);
}

static void push(struct serve_client *c, struct serve_buffer *b)
{
	c->out[c->out_head++ % SERVE_OUT_MESSAGES] = b;
	serve_out_touch(c);
}

void serve_out_packet(struct serve_client *c, struct serve_buffer *b)
{
	if (c->stage != SERVE_PLUGGED)
		return;
	if (filled(c) >= (c->serve->pool.used > SERVE_BUFFERS_MAX / 2 ? SERVE_OUT_SCARCE : SERVE_OUT_PACKETS)) {
		c->counts.slow++;
		return;
	}
	c->counts.delivered++;
	push(c, serve_pool_share(b));
}

void serve_out_message(struct serve_client *c, enum plug_type type, uint32_t a, uint32_t b,
		       const void *body, size_t bytes)
{
	struct serve_buffer *m;

	if (c->stage == SERVE_GONE)
		return;
	m = filled(c) < SERVE_OUT_MESSAGES ? serve_pool_take(&c->serve->pool) : NULL;
	if (!m) {
		c->overrun = true;
		serve_out_touch(c);
		return;
	}
	serve_pool_head(m, type, a, b, bytes);
	if (bytes)
		memcpy(m->body, body, bytes);
	push(c, m);
}

void serve_out_done(struct serve_client *c, int err, uint32_t b)
{
	if (b)
		serve_out_message(c, PLUG_DONE, (uint32_t)-err, b, NULL, 0);
}

void serve_out_port(struct serve_client *c)
{
	c->port_dirty = true;
	serve_out_touch(c);
}

void serve_out_text(struct serve_client *c, char *text, size_t bytes, int err, uint32_t b)
{
	free(c->text);
	c->text = NULL;
	if (err || !text) {
		const char *line = text ? text : "no memory";

		if (bytes > TEXT_PIECE)
			bytes = TEXT_PIECE;
		serve_out_message(c, PLUG_TEXT, 0, 0, line, text ? bytes : strlen(line));
		serve_out_message(c, PLUG_DONE, (uint32_t)(err ? -err : ENOMEM), b, NULL, 0);
		free(text);
		return;
	}
	c->text = text;
	c->text_bytes = bytes;
	c->text_at = 0;
	c->question = b;
	serve_out_touch(c);
}

void serve_out_refuse(struct serve_client *c, int err, const char *format, ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	if (n < 0)
		n = 0;
	if ((size_t)n >= sizeof(line))
		n = sizeof(line) - 1;
	serve_out_message(c, PLUG_REFUSED, (uint32_t)-err, 0, line, (size_t)n);
	if (c->stage != SERVE_GONE)
		c->stage = SERVE_ENDING;
}

/* What is made only when there is room for it: the port's state, pieces of a text. */
static void refill(struct serve_client *c)
{
	if (c->port_dirty && c->host && c->stage == SERVE_PLUGGED) {
		struct plug_port port = c->host->state;

		port.client_reregister = c->reregister;
		c->port_dirty = c->reregister = false;
		serve_out_message(c, PLUG_PORT, 0, 0, &port, sizeof(port));
	}
	while (c->text && filled(c) < BATCH) {
		size_t piece = c->text_bytes - c->text_at;

		if (piece > TEXT_PIECE)
			piece = TEXT_PIECE;
		serve_out_message(c, PLUG_TEXT, 0, 0, c->text + c->text_at, piece);
		c->text_at += piece;
		if (c->text_at < c->text_bytes)
			continue;
		free(c->text);
		c->text = NULL;
		serve_out_message(c, PLUG_DONE, 0, c->question, NULL, 0);
	}
}

/* How many messages the socket took; 0: none now, negative: the connection has ended. */
static int write_some(struct serve_client *c)
{
	struct mmsghdr messages[BATCH];
	struct iovec iov[BATCH];
	unsigned count = filled(c) < BATCH ? filled(c) : BATCH;
	int n;

	for (unsigned i = 0; i < count; i++) {
		struct serve_buffer *b = c->out[(c->out_tail + i) % SERVE_OUT_MESSAGES];

		iov[i] = (struct iovec){ &b->head, b->bytes };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	n = sendmmsg(c->fd, messages, count, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -errno;
	for (int i = 0; i < n; i++)
		serve_pool_give(&c->serve->pool, c->out[c->out_tail++ % SERVE_OUT_MESSAGES]);
	return n;
}

bool serve_out_flush(struct serve_client *c)
{
	int n = 1;

	list_remove(&c->in_dirty);
	for (refill(c); filled(c); refill(c)) {
		n = write_some(c);
		if (n <= 0)
			break;
	}
	list_remove(&c->in_dirty);
	c->blocked = !n;
	return n >= 0 && !c->overrun;
}

bool serve_out_waits(const struct serve_client *c)
{
	return filled(c) || c->text || c->port_dirty;
}

void serve_out_free(struct serve_client *c)
{
	while (filled(c))
		serve_pool_give(&c->serve->pool, c->out[c->out_tail++ % SERVE_OUT_MESSAGES]);
	free(c->text);
	c->text = NULL;
	list_remove(&c->in_dirty);
}
