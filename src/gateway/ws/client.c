/* SPDX-License-Identifier: BSD-2-Clause */
/* One client; see client.h. */
#define LOG_ROOM "gateway/websocket"
#include "gateway/ws/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/signals.h"
#include "util/container_of.h"
#include "util/log.h"

/* What may wait in the stream of a client; the rest waits in the ring. */
#define FILL_MAX (64u << 10)

static void note(const struct ws_client *k, enum ws_clients_loss kind, uint64_t n)
{
	k->owner->lost(k->owner->arg, kind, n);
}

struct ws_client *ws_client_new(struct ws_clients *c, struct ws_ring *r,
				struct web_stream *s, const char *address)
{
	size_t len = strlen(address) + 1;
	struct ws_client *k = calloc(1, sizeof(*k) + len);

	if (!k)
		return NULL;
	/* Without clients nobody has looked at the clock. */
	c->now_ns = clock_now_ns();
	if (ws_peer_init(&k->peer, s, c->message_max, c->now_ns)) {
		free(k);
		return NULL;
	}
	memcpy(k->address, address, len);
	k->owner = c;
	k->ring = r;
	ws_place_init(r->feed, &k->place);
	list_push(&c->clients, &k->entry);
	list_push(&r->clients, &k->in_ring);
	atomic_fetch_add(&r->count, 1);
	atomic_fetch_add(&c->count, 1);
	return k;
}

void ws_client_free(struct ws_client *k)
{
	struct ws_clients *c = k->owner;

	list_remove(&k->entry);
	list_remove(&k->in_ring);
	atomic_fetch_sub(&k->ring->count, 1);
	atomic_fetch_sub(&c->count, 1);
	ws_peer_destroy(&k->peer);
	format_destroy(k->scan);
	free(k);
}

/* ---- what it gets ---- */

/* The head stands in front of the first piece, so that a long sample goes as a whole. */
static int send_batch(struct ws_client *k, struct ws_piece *pieces, const struct ws_batch *b)
{
	uint8_t head[WS_HEAD_MAX];
	size_t len = ws_head_write(head, ws_feed_opcode(k->ring->feed), true, b->len, NULL);
	int ret = 0;

	pieces[0].data -= len;
	pieces[0].len += len;
	memcpy(pieces[0].data, head, len);
	for (unsigned i = 0; i < b->pieces && !ret; i++)
		ret = web_stream_send(k->peer.stream, pieces[i].data, pieces[i].len);
	return ret;
}

/* A message that does not fit in a stream where something waits has to wait itself: it is
 * taken again later. */
static bool fits(struct ws_client *k, size_t len)
{
	return len + WS_HEAD_MAX <= web_stream_room(k->peer.stream) ||
	       web_stream_room(k->peer.stream) == WEB_ROOM;
}

void ws_client_feed(struct ws_client *k)
{
	struct ws_piece pieces[WS_FRAME_SAMPLES];
	struct ws_batch b;

	while (!k->peer.closing) {
		if (web_stream_room(k->peer.stream) < WEB_ROOM - FILL_MAX) {
			web_stream_want(k->peer.stream);
			break;
		}
		b = ws_feed_take(k->ring->feed, &k->place, pieces);
		if (b.lost)
			note(k, WS_LOSS_BEHIND, b.lost);
		if (!b.pieces)
			break;
		if (!fits(k, b.len)) {
			k->place = b.from;
			web_stream_want(k->peer.stream);
			break;
		}
		if (send_batch(k, pieces, &b)) {
			/* A part of a message is no message. */
			k->peer.closing = true;
			web_stream_end(k->peer.stream);
		}
	}
}

void ws_client_writable(void *client)
{
	struct ws_client *k = client;

	/* Who takes what he gets is there. */
	ws_peer_heard(&k->peer, k->owner->now_ns);
	ws_client_feed(k);
}

/* Behind what was written before. */
void ws_client_goodbye(void *client)
{
	struct ws_client *k = client;

	ws_client_feed(k);
	ws_peer_close(&k->peer, WS_GOING_AWAY, "the node stops");
}

void ws_client_watch(struct ws_client *k)
{
	const struct ws_clients *c = k->owner;

	if (ws_peer_watch(&k->peer, c->now_ns, c->ping_ns, c->timeout_ns))
		return;
	note(k, WS_LOSS_SILENT, 1);
	log_info("node %s: client %s says nothing, it is given up", c->name, k->address);
	ws_peer_close(&k->peer, WS_POLICY, "no answer to a ping");
}

/* ---- what it says ---- */

static void note_malformed(struct ws_client *k, unsigned pieces, const char *why)
{
	/* One line for a client, and the counter for all that follows. */
	if (!k->ignored)
		log_warn("node %s: client %s sends what is no sample of the format %s: %s",
			 k->owner->name, k->address, ws_feed_name(k->ring->feed), why);
	k->ignored = true;
	note(k, WS_LOSS_MALFORMED, pieces);
}

static bool make_scanner(struct ws_client *k)
{
	struct ws_clients *c = k->owner;

	if (!c->has_inlet &&
	    ws_inlet_init(&c->inlet, c->in_signals && c->in_signals->count ?
				  c->in_signals->count : SIGNALS_DEFAULT,
			  c->received, c->arg))
		return false;
	c->has_inlet = true;
	if (!k->scan && format_new(&k->scan, NULL, NULL, ws_feed_name(k->ring->feed),
				   c->in_signals))
		return false;
	k->scan->message = true;
	return true;
}

static void take_samples(struct ws_client *k, const struct ws_message *m)
{
	struct ws_clients *c = k->owner;
	unsigned count, wrong;

	if (!c->listens) {
		if (!k->ignored)
			log_info("node %s: client %s sends samples, which nobody reads", c->name,
				 k->address);
		k->ignored = true;
		return;
	}
	if (!make_scanner(k) || !k->scan->type->scan) {
		note_malformed(k, 1, "it cannot be read");
		return;
	}
	wrong = ws_inlet_take(&c->inlet, k->scan, m->data, m->len, &count);
	if (unlikely(wrong))
		note_malformed(k, wrong, format_error(k->scan));
}

int ws_client_received(void *client, const void *data, size_t len)
{
	struct ws_client *k = client;
	const char *bytes = data;
	struct ws_message m;
	int ret;

	ws_peer_heard(&k->peer, k->owner->now_ns);
	while ((ret = ws_peer_next(&k->peer, &bytes, &len, &m)) > 0)
		if (m.opcode == WS_TEXT || m.opcode == WS_BINARY)
			take_samples(k, &m);
	if (ret == -EPROTO) {
		note(k, WS_LOSS_MALFORMED, 1);
		log_info("node %s: client %s: %s", k->owner->name, k->address,
			 ws_reader_error(k->peer.reader));
	}
	return ret ? -1 : 0;
}
