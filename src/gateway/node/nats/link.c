/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection: what the node writes to the server, and the frames that it reads. */
#define LOG_ROOM "gateway/nats"
#include "gateway/node/nats/nats.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"

/* Bytes of a line that the node writes, at most. */
#define LINE_SIZE 1024
/* After so many times `keepalive` without an answer the server is given up. */
#define SILENT_MAX 3

/* ---- writing ---- */

int nats_put_line(struct nats_node *m, const char *fmt, ...)
{
	char line[LINE_SIZE];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line) - 2, fmt, ap);
	va_end(ap);
	if (len >= (int)sizeof(line) - 2)
		return outside_fail(&m->outside, -ENAMETOOLONG, "a subject is too long");
	memcpy(line + len, "\r\n", 2);
	return stream_buffer_put(&m->stream.out, line, (size_t)len + 2);
}

int nats_publish(struct nats_node *m, const char *subject, const char *reply, const char *head,
		 const void *data, size_t len)
{
	struct stream_buffer *b = &m->stream.out;
	size_t head_len = head ? strlen(head) : 0;
	int ret;

	if (head)
		ret = nats_put_line(m, "HPUB %s %s %zu %zu", subject, reply, head_len, head_len + len);
	else
		ret = nats_put_line(m, "PUB %s %s %zu", subject, reply ? reply : "", len);
	if (!ret && head)
		ret = stream_buffer_put(b, head, head_len);
	return ret ?: stream_buffer_put(b, data, len) ?: stream_buffer_put(b, "\r\n", 2);
}

/* ---- questions whether the server is there, and what it has ---- */

int nats_ping(struct nats_node *m)
{
	m->asked_ns = clock_now_ns();
	if (m->ping_count == NATS_PINGS_MAX)
		return 0;
	m->pings[m->ping_count++] = (struct nats_ping){ m->outside.next_tag, m->asked_ns };
	return nats_put_line(m, "PING");
}

static void take_pong(struct nats_node *m)
{
	uint64_t tag = m->pings[0].tag;

	if (!m->ping_count)
		return;
	memmove(m->pings, m->pings + 1, --m->ping_count * sizeof(m->pings[0]));
	/* A refusal comes before the confirmation. */
	if (!m->js.enabled && m->refused)
		outside_reject_all(&m->outside, tag, m->refusal);
	else if (!m->js.enabled)
		outside_confirm(&m->outside, tag, true);
}

/* Are there written messages that no PING has followed yet? */
static bool must_ask(const struct nats_node *m)
{
	return !m->js.enabled && !m->ping_count && m->outside.unconfirmed.messages;
}

static uint64_t keepalive_ns(const struct nats_node *m)
{
	return (uint64_t)(m->keepalive_s * 1e9);
}

uint64_t nats_due_ns(const struct nats_node *m)
{
	return m->asked_ns + (must_ask(m) ? NATS_ASK_NS : keepalive_ns(m));
}

int nats_keep(struct nats_node *m)
{
	uint64_t now = clock_now_ns();

	if (now < nats_due_ns(m))
		return 0;
	if (m->ping_count && now - m->pings[0].at_ns >= SILENT_MAX * keepalive_ns(m))
		return outside_fail(&m->outside, -ETIMEDOUT,
				    "it does not answer %d questions, one each %g s (keepalive)",
				    SILENT_MAX, m->keepalive_s);
	return nats_ping(m);
}

/* ---- reading ---- */

int nats_next(struct nats_node *m, struct nats_frame *f)
{
	struct stream_buffer *in = &m->in.b;
	int ret = in->start < in->end ?
			  nats_frame_read(f, in->at + in->start, stream_buffer_filled(in)) : 0;

	if (ret < 0)
		return outside_fail(&m->outside, ret, "it does not speak the protocol of NATS");
	if (ret)
		in->start += f->size;
	return ret;
}

int nats_await(struct nats_node *m, struct nats_frame *f)
{
	int ret;

	while (!(ret = nats_next(m, f))) {
		ret = outside_stream_await(&m->outside, &m->stream, &m->in, m->until_ns);
		if (ret)
			return ret;
	}
	return MIN(ret, 0);
}

static int take_error(struct nats_node *m, const struct nats_piece *text)
{
	static const char publish[] = "Permissions Violation for Publish";

	nats_piece_shown(text, m->refusal, sizeof(m->refusal));
	/* The server does not say which message it was; of a stream, nobody will answer to it. */
	m->refused = !m->js.enabled && !strncasecmp(m->refusal, publish, strlen(publish));
	return m->refused ? 0 : outside_fail(&m->outside, -EACCES, "%s", m->refusal);
}

/* Takes INFO, which a server may send several times. */
static int take_info(struct nats_node *m, const struct nats_piece *text)
{
	json_t *info = json_loadb(text->at, text->len, 0, NULL);
	const char *nonce = json_string_value(json_object_get(info, "nonce"));
	int64_t max_payload = json_integer_value(json_object_get(info, "max_payload"));

	m->wants_tls = json_is_true(json_object_get(info, "tls_required")) ||
		       json_is_true(json_object_get(info, "tls_available"));
	m->has_heads = json_is_true(json_object_get(info, "headers"));
	m->max_payload = max_payload > 0 ? (uint64_t)max_payload : UINT64_MAX;
	snprintf(m->nonce, sizeof(m->nonce), "%s", nonce ? nonce : "");
	json_decref(info);
	return info ? 0 : outside_fail(&m->outside, -EPROTO, "its INFO cannot be read");
}

int nats_take(struct nats_node *m, const struct nats_frame *f)
{
	switch (f->op) {
	case NATS_INFO:
		return take_info(m, &f->data);
	case NATS_PING:
		return nats_put_line(m, "PONG");
	case NATS_PONG:
		take_pong(m);
		return 0;
	case NATS_ERR:
		return take_error(m, &f->data);
	default:
		return 0;
	}
}

void nats_received(struct nats_node *m, const struct nats_frame *f)
{
	if (f->data.len > (size_t)m->in_message_max)
		fault_note(&m->outside.faults, FAULT_TRUNCATED, 1,
			   "a message has %zu bytes, in.max_message is %lld; it is not read",
			   f->data.len, (long long)m->in_message_max);
	else
		outside_received(&m->outside, f->data.at, f->data.len);
}
