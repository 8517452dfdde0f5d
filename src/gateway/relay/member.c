/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of one connection: those that come go to the others of the session, those
 * that go wait while it is slow. What does not fit takes the place of what waits for
 * longest: who reads live data wants the newest. See session.h.
 */
#define LOG_ROOM "gateway/relay"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/relay/session.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

#define QUEUE_FIRST 16
/* Of a control frame that a client sends. */
#define CONTROL_HEAD 6
/* What a message that waits takes beside its bytes, so that empty ones count, too. */
#define OVERHEAD 64

static size_t cost(const struct relay_frame *f)
{
	return f->len + OVERHEAD;
}

static struct relay_frame *frame_new(const struct ws_message *message)
{
	struct relay_frame *f = malloc(sizeof(*f) + WS_HEAD_MAX + message->len);
	size_t head;

	if (!f)
		return NULL;
	head = ws_head_write(f->bytes, message->opcode, true, message->len, NULL);
	if (message->len)
		memcpy(f->bytes + head, message->data, message->len);
	f->len = head + message->len;
	f->users = 1;
	f->queued = false;
	return f;
}

static void frame_put(struct relay *r, struct relay_frame *f)
{
	if (--f->users)
		return;
	if (f->queued)
		r->held_bytes -= cost(f);
	free(f);
}

static struct relay_frame *queue_first(const struct relay_queue *q)
{
	return q->count ? q->at[q->first] : NULL;
}

static void queue_pop(struct relay_member *m)
{
	struct relay_queue *q = &m->queue;
	struct relay_frame *f = queue_first(q);

	q->first = (q->first + 1) & (q->size - 1);
	q->count--;
	q->bytes -= cost(f);
	frame_put(m->relay, f);
}

void relay_queue_clear(struct relay_member *m)
{
	while (m->queue.count)
		queue_pop(m);
}

static bool queue_grow(struct relay_queue *q)
{
	unsigned size = q->size ? 2 * q->size : QUEUE_FIRST;
	struct relay_frame **at = malloc(size * sizeof(*at));

	if (!at)
		return false;
	for (unsigned i = 0; i < q->count; i++)
		at[i] = q->at[(q->first + i) & (q->size - 1)];
	free(q->at);
	q->at = at;
	q->size = size;
	q->first = 0;
	return true;
}

static bool fits(const struct relay_member *m, const struct relay_frame *f)
{
	const struct relay_settings *s = m->relay->settings;

	return m->queue.bytes + cost(f) <= s->backlog_bytes_max &&
	       (f->queued || m->relay->held_bytes + cost(f) <= s->memory_bytes_max);
}

static void lose(struct relay_member *m, unsigned count)
{
	m->n.lost += count;
	m->session->n.lost += count;
	m->relay->sums.n.lost += count;
}

static void queue_push(struct relay_member *m, struct relay_frame *f)
{
	struct relay_queue *q = &m->queue;

	for (; q->count && !fits(m, f); lose(m, 1))
		queue_pop(m);
	if (!fits(m, f) || (q->count == q->size && !queue_grow(q))) {
		lose(m, 1);
		return;
	}
	q->at[(q->first + q->count++) & (q->size - 1)] = f;
	q->bytes += cost(f);
	f->users++;
	if (!f->queued)
		m->relay->held_bytes += cost(f);
	f->queued = true;
}

/* A message of `len` bytes with its head. */
static void count_sent(struct relay_member *m, const struct relay_frame *f)
{
	struct relay_counters *all[] = { &m->n, &m->session->n, &m->relay->sums.n };
	/* The length of the head is known from its second byte. */
	unsigned more = f->bytes[1] == 127 ? 8 : f->bytes[1] == 126 ? 2 : 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		all[i]->frames_out++;
		all[i]->bytes_out += f->len - 2 - more;
	}
}

void relay_member_send(struct relay_member *m)
{
	struct relay_frame *f;

	while (!m->peer.closing && (f = queue_first(&m->queue))) {
		if (web_stream_send(m->peer.stream, f->bytes, f->len))
			return;
		count_sent(m, f);
		queue_pop(m);
	}
}

static void give(struct relay_member *m, struct relay_frame *f)
{
	if (m->peer.closing)
		return;
	relay_member_send(m);
	if (!m->queue.count && !web_stream_send(m->peer.stream, f->bytes, f->len))
		count_sent(m, f);
	else
		queue_push(m, f);
}

void relay_member_end(struct relay_member *m, unsigned status, const char *reason)
{
	ws_peer_close(&m->peer, status, reason);
	relay_queue_clear(m);
}

static void pass_on(struct relay_member *m, const struct ws_message *message)
{
	struct relay_counters *all[] = { &m->n, &m->session->n, &m->relay->sums.n };
	bool alone = m->session->count == 1 && !m->relay->settings->loopback;
	struct relay_frame *f;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		all[i]->frames_in++;
		all[i]->bytes_in += message->len;
	}
	if (alone)
		return;
	f = frame_new(message);
	list_for_each(other, &m->session->members, struct relay_member, entry) {
		if (other == m && !m->relay->settings->loopback)
			continue;
		if (f)
			give(other, f);
		else
			lose(other, 1);
	}
	if (f)
		frame_put(m->relay, f);
}

/* Messages that have come in part take memory, too. */
static int count_partial(struct relay_member *m, size_t bytes)
{
	struct relay *r = m->relay;

	r->held_bytes += bytes - m->partial_bytes;
	m->partial_bytes = bytes;
	if (r->held_bytes <= r->settings->memory_bytes_max || !bytes)
		return 0;
	relay_member_end(m, WS_TRY_LATER, "the relay holds as much as it may");
	return -1;
}

int relay_member_take(struct relay_member *m, const void *data, size_t len)
{
	const char *at = data, *from = at;
	size_t partial = m->partial_bytes;
	struct ws_message message;
	int ret;

	ws_peer_heard(&m->peer, m->relay->now_ns);
	for (; (ret = ws_peer_next(&m->peer, &at, &len, &message)) > 0; from = at) {
		bool control = message.opcode >= WS_CLOSE;

		partial += (size_t)(at - from);
		partial -= MIN(partial, control ? message.len + CONTROL_HEAD : partial);
		if (!control)
			pass_on(m, &message);
	}
	if (ret == -EPROTO) {
		m->relay->sums.malformed++;
		log_debug("%s: %s", m->address, ws_reader_error(m->peer.reader));
	}
	if (ret) {
		relay_queue_clear(m);
		return -1;
	}
	partial += (size_t)(at - from);
	return count_partial(m, MIN(partial, m->relay->settings->message_bytes_max));
}

void relay_member_watch(struct relay_member *m)
{
	const struct relay_settings *s = m->relay->settings;
	uint64_t now_ns = m->relay->now_ns;

	/* Who takes nothing is ended by the server, and what he says is not read. */
	if (m->queue.count || web_stream_room(m->peer.stream) < WEB_ROOM)
		ws_peer_heard(&m->peer, now_ns);
	if (ws_peer_watch(&m->peer, now_ns, (uint64_t)(s->ping_s * 1e9),
			  (uint64_t)(s->timeout_s * 1e9)))
		return;
	m->relay->sums.timeouts++;
	relay_member_end(m, WS_POLICY, "no answer to a ping");
}
