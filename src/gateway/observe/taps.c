/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of taps; see taps.h. All of it runs in the thread of the server. */
#define LOG_ROOM "gateway/observe"
#include "gateway/observe/taps.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/control/query.h"
#include "gateway/ws/handshake.h"
#include "gateway/ws/ws_peer.h"
#include "gateway/plugin/format.h"
#include "gateway/plugin/tap.h"
#include "gateway/plugin/web.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"

#define PREFIX "/tap"
#define PROTOCOL "live"
#define FORMAT "villas.web"

enum {
	LOOKS = 256,               /* samples of a tap at a time */
	FRAME_SAMPLES = 128,
	FRAME_BYTES = 64 << 10,
	SAID_BYTES = 4096,         /* nobody has to say much to us */
	RATE_SIZE = 32,
	STATUS_RESTART = 1012,     /* IANA's registry: Service Restart */
};

#define PING_NS (20 * NSEC_PER_SEC)
#define TIMEOUT_NS (20 * NSEC_PER_SEC)

/* A tap and those who look at it. */
struct view {
	struct list entry;
	struct tap *tap;
	struct signal_list *signals; /* that the formats of its clients know; may be NULL */
	struct list clients;
};

struct client {
	struct list entry;         /* of the view */
	struct view *view;
	struct ws_peer peer;
	struct format *format;
	bool binary;
	uint64_t step_ns, due_ns;  /* between samples that it gets; when the next one is due */
	struct sample *picked[FRAME_SAMPLES];
	unsigned count;
};

static struct list views = { &views, &views };

/* ---- sending ---- */

/* As many of smps[0..count) as a frame holds; 0: there is no room, or it is over. */
static unsigned send_some(struct client *c, struct sample *const smps[], unsigned count)
{
	static uint8_t frame[WS_HEAD_MAX + FRAME_BYTES];
	uint8_t head[WS_HEAD_MAX];
	size_t room = web_stream_room(c->peer.stream), used, len;
	int n;

	if (c->peer.closing || room <= WS_HEAD_MAX)
		return 0;
	room = MIN(room - WS_HEAD_MAX, (size_t)FRAME_BYTES);
	n = c->format->type->print(c->format, (char *)frame + WS_HEAD_MAX, room, &used, smps,
				   count);
	if (n < 0) {
		ws_peer_close(&c->peer, WS_UNSUPPORTED, format_error(c->format));
		return 0;
	}
	if (!n)
		return 0;
	len = ws_head_write(head, c->binary ? WS_BINARY : WS_TEXT, true, used, NULL);
	memcpy(frame + WS_HEAD_MAX - len, head, len);
	web_stream_send(c->peer.stream, frame + WS_HEAD_MAX - len, len + used);
	return (unsigned)n;
}

/* What finds no room is lost: the next ones are newer. */
static void flush(struct client *c)
{
	unsigned done = 0, n;

	while (done < c->count && (n = send_some(c, c->picked + done, c->count - done)))
		done += n;
	c->count = 0;
}

static bool is_due(struct client *c, uint64_t passed_ns)
{
	if (!c->step_ns)
		return true;
	if (passed_ns < c->due_ns)
		return false;
	/* Behind a pause it does not make up for it. */
	c->due_ns = passed_ns - c->due_ns > c->step_ns ? passed_ns + c->step_ns :
							  c->due_ns + c->step_ns;
	return true;
}

static void take(struct client *c, const struct tap_look looks[], unsigned n)
{
	for (unsigned i = 0; i < n && !c->peer.closing; i++) {
		if (!is_due(c, looks[i].passed_ns))
			continue;
		c->picked[c->count++] = looks[i].smp;
		if (c->count == FRAME_SAMPLES)
			flush(c);
	}
	flush(c);
}

/* The node was started with other signals, or for the first time. */
static bool has_changed(struct view *v)
{
	struct signal_list *now = tap_signals(v->tap);
	bool changed = now && now != v->signals &&
		       (!v->signals || !signal_list_equal(now, v->signals));

	signal_list_put(now);
	return changed;
}

/* All that has passed, for all who look. */
static void look(struct view *v)
{
	struct tap_look looks[LOOKS];
	unsigned n;

	if (has_changed(v)) {
		list_for_each(c, &v->clients, struct client, entry)
			ws_peer_close(&c->peer, STATUS_RESTART, "the signals have changed");
	}
	while ((n = tap_peek(v->tap, looks, LOOKS))) {
		list_for_each(c, &v->clients, struct client, entry)
			take(c, looks, n);
		tap_done(v->tap, n);
	}
}

/* ---- views ---- */

static struct view *view_of(const char *node, enum tap_direction direction, int *err)
{
	struct tap *t;
	struct view *v;

	*err = tap_open(&t, node, direction);
	if (*err)
		return NULL;
	list_for_each(old, &views, struct view, entry) {
		if (old->tap == t) {
			tap_close(t);
			if (!has_changed(old))
				return old;
			look(old); /* says goodbye to those before */
			*err = -EAGAIN;
			return NULL;
		}
	}
	v = calloc(1, sizeof(*v));
	if (!v) {
		tap_close(t);
		*err = -ENOMEM;
		return NULL;
	}
	v->tap = t;
	v->signals = tap_signals(t);
	list_init(&v->clients);
	list_push(&views, &v->entry);
	return v;
}

static void view_put(struct view *v)
{
	if (!list_empty(&v->clients))
		return;
	list_remove(&v->entry);
	signal_list_put(v->signals);
	tap_close(v->tap);
	free(v);
}

/* ---- clients ---- */

struct wish {
	char node[72];
	const char *format;
	enum tap_direction direction;
	uint64_t step_ns;
};

static int parse_rate(const char *query, uint64_t *step_ns)
{
	char text[RATE_SIZE], *end;
	double rate;
	int ret = query_value(query, "rate", text, sizeof(text));

	*step_ns = 0;
	if (ret == -ENOENT)
		return 0;
	rate = ret ? 0 : strtod(text, &end);
	if (ret || end == text || *end || !(rate >= 1e-3 && rate <= 1e9))
		return -EINVAL;
	*step_ns = (uint64_t)(1e9 / rate);
	return 0;
}

__attribute__((format(printf, 3, 4)))
static int refuse(const struct web_request *r, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why, r->why_size, fmt, ap);
	va_end(ap);
	return status;
}

/* "/tap/NODE/in.FORMAT". 0 or a status. */
static int parse_path(const struct web_request *r, struct wish *w)
{
	const char *node = r->path + strlen(PREFIX "/"), *slash = strchr(node, '/'), *dot;
	size_t len;

	if (!slash || (size_t)(slash - node) >= sizeof(w->node))
		return refuse(r, 404, "a tap is " PREFIX "/NODE/in or " PREFIX "/NODE/out");
	memcpy(w->node, node, (size_t)(slash - node));
	w->node[slash - node] = '\0';
	slash++;
	dot = strchr(slash, '.');
	len = dot ? (size_t)(dot - slash) : strlen(slash);
	if (len == 2 && !memcmp(slash, "in", len))
		w->direction = TAP_IN;
	else if (len == 3 && !memcmp(slash, "out", len))
		w->direction = TAP_OUT;
	else
		return refuse(r, 404, "a node has the taps in and out");
	w->format = dot ? dot + 1 : FORMAT;
	return format_type_find(w->format) ? 0 : refuse(r, 404, "there is no such format");
}

static void client_free(struct client *c)
{
	ws_peer_destroy(&c->peer);
	format_destroy(c->format);
	free(c);
}

static struct client *client_new(const struct wish *w, struct view *v, struct web_stream *s)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->view = v;
	c->step_ns = w->step_ns;
	if (ws_peer_init(&c->peer, s, SAID_BYTES, clock_now_ns()) ||
	    format_new(&c->format, NULL, NULL, w->format, v->signals)) {
		client_free(c);
		return NULL;
	}
	c->format->message = true;
	c->binary = c->format->type->binary;
	return c;
}

static int open_client(struct web_endpoint *e, struct web_stream *s,
		       const struct web_request *r, char *head, size_t size, void **client)
{
	int status = ws_handshake_answer(r, PROTOCOL, head, size), ret;
	struct wish w;
	struct view *v;
	struct client *c;

	if (status != 101)
		return status;
	if (parse_rate(r->query, &w.step_ns))
		return refuse(r, 400, "rate is a number of samples a second from 0.001 to 1e9");
	status = parse_path(r, &w);
	if (status)
		return status;
	v = view_of(w.node, w.direction, &ret);
	if (!v && ret == -ENOENT)
		return refuse(r, 404, "there is no node '%s'", w.node);
	c = v ? client_new(&w, v, s) : NULL;
	if (v && !c)
		view_put(v);
	if (!c)
		return refuse(r, 503, "not now");
	list_push(&v->clients, &c->entry);
	*client = c;
	return 101;
}

static void closed(void *client)
{
	struct client *c = client;
	struct view *v = c->view;

	list_remove(&c->entry);
	client_free(c);
	view_put(v);
}

static int received(void *client, const void *data, size_t len)
{
	struct client *c = client;
	const char *at = data;
	struct ws_message m;
	int ret;

	ws_peer_heard(&c->peer, clock_now_ns());
	/* Samples for a tap have nowhere to go. */
	while ((ret = ws_peer_next(&c->peer, &at, &len, &m)) > 0)
		;
	return ret ? -1 : 0;
}

static void goodbye(void *client)
{
	struct client *c = client;

	ws_peer_close(&c->peer, WS_GOING_AWAY, "the gateway ends");
}

/* Not for each client: all who look at a tap get the same looks. */
static void tick(struct web_endpoint *e)
{
	list_for_each(v, &views, struct view, entry)
		look(v);
}

static void watch_client(struct client *c, uint64_t now_ns)
{
	if (!ws_peer_watch(&c->peer, now_ns, PING_NS, TIMEOUT_NS))
		ws_peer_close(&c->peer, WS_GOING_AWAY, "no answer to a ping");
}

static void watch(struct web_endpoint *e, uint64_t now_ns)
{
	list_for_each(v, &views, struct view, entry)
		list_for_each(c, &v->clients, struct client, entry)
			watch_client(c, now_ns);
}

static const struct web_endpoint_ops ops = {
	.open = open_client,
	.received = received,
	.closed = closed,
	.tick = tick,
	.watch = watch,
	.goodbye = goodbye,
};

static struct web_endpoint endpoint = { .path = PREFIX, .match = WEB_BELOW, .ops = &ops };

int taps_offer(void)
{
	return web_endpoint_add(&endpoint);
}

void taps_withdraw(void)
{
	web_endpoint_remove(&endpoint);
}
