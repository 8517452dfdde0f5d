/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection to another gateway: its thread connects, again and again, and then sends what
 * the path writes and takes what comes. Each has a backlog of its own, so that one that is
 * slow or away does not disturb the others.
 */
#define LOG_ROOM "gateway/websocket"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/base/ending.h"
#include "gateway/base/thread.h"
#include "gateway/node/websocket/websocket.h"
#include "gateway/ws/frame.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/wakeup.h"

/* What may wait for the peer; the rest waits in the ring. */
#define FILL_MAX (64u << 10)
#define SCRATCH_BYTES 16384
#define READS_MAX 16                /* in a row */
/* At the end: for what was written, then for the peer's goodbye, and for the end of its bytes. */
#define FLUSH_MS 1000
#define GOODBYE_MS 500

static const char *name_of(const struct ws_link *l)
{
	return l->owner->node->name;
}

/* Masks keep proxies from taking a payload for a request; their bytes need not be secret, but
 * must not be known to who chooses the payload (section 5.3). */
static void next_mask(struct ws_link *l, uint8_t mask[4])
{
	uint32_t word = (uint32_t)(prng_next(&l->random) >> 32);

	memcpy(mask, &word, sizeof(word));
}

/* Bytes that wait for the peer. */
static size_t waiting(const struct ws_link *l)
{
	return stream_buffer_filled(&l->socket.out);
}

/* The bytes that wait may move; so do the ends of their messages. */
static int make_room(struct ws_link *l, size_t len)
{
	struct stream_buffer *out = &l->socket.out;
	size_t start = out->start, moved;

	if (stream_buffer_reserve(out, len))
		return -ENOMEM;
	moved = start - out->start;
	for (unsigned i = 0; moved && i < l->message_count; i++)
		l->messages[i].end -= MIN(l->messages[i].end, moved);
	return 0;
}

/* Of `b` as one frame. 0 or -ENOMEM. */
static int put_frame(struct ws_link *l, enum ws_opcode opcode, const struct ws_piece *pieces,
		     unsigned count, size_t len)
{
	struct stream_buffer *out = &l->socket.out;
	uint8_t mask[4], *to, *payload;

	if (make_room(l, WS_HEAD_MAX + len))
		return -ENOMEM;
	to = (uint8_t *)out->at + out->end;
	next_mask(l, mask);
	payload = to += ws_head_write(to, opcode, true, len, mask);
	for (unsigned i = 0; i < count; i++) {
		memcpy(to, pieces[i].data, pieces[i].len);
		to += pieces[i].len;
	}
	ws_mask(payload, len, mask, 0);
	out->end = (size_t)((char *)to - out->at);
	return 0;
}

static int put_control(struct ws_link *l, enum ws_opcode opcode, const void *data, size_t len)
{
	struct ws_piece piece = { (char *)data, len };

	return put_frame(l, opcode, &piece, 1, len);
}

static void say_goodbye(struct ws_link *l, unsigned status, const char *reason)
{
	uint8_t payload[WS_CONTROL_MAX];

	if (!l->closing)
		put_control(l, WS_CLOSE, payload, ws_close_write(payload, status, reason));
	l->closing = true;
}

/* Fills what goes out from the feed, when all of it is sent. */
static int fill(struct ws_link *l)
{
	struct ws_piece pieces[WS_FRAME_SAMPLES];
	struct ws_batch b;

	if (!l->feed || l->closing || waiting(l))
		return 0;
	ws_feed_trim(l->feed);
	while (waiting(l) < FILL_MAX && l->message_count < WS_LINK_MESSAGES) {
		b = ws_feed_take(l->feed, &l->place, pieces);
		if (b.lost)
			node_lose(l->owner->node, NODE_LOSS_FULL, b.lost,
				  "%s takes them too slowly, out.backlog is %lld bytes", l->text,
				  (long long)l->owner->backlog);
		if (!b.pieces)
			break;
		if (put_frame(l, ws_feed_opcode(l->feed), pieces, b.pieces, b.len))
			return -ENOMEM;
		l->messages[l->message_count].end = l->socket.out.end;
		l->messages[l->message_count++].samples = b.samples;
	}
	return 0;
}

/* As much as goes. 0 or a negative errno: the connection is broken. */
static int flush(struct ws_link *l)
{
	size_t sent = 0;
	int ret = stream_flush(&l->socket, &sent);

	if (!waiting(l))
		l->message_count = 0;
	/* Who takes what he gets is there. */
	if (sent)
		l->silence.heard_ns = clock_now_ns();
	return ret;
}

static void take_samples(struct ws_link *l, const struct ws_message *m)
{
	unsigned count, wrong;

	if (!l->scan)
		return;
	wrong = ws_inlet_take(&l->inlet, l->scan, m->data, m->len, &count);
	if (wrong)
		fault_note(&l->owner->faults, FAULT_MALFORMED, wrong, "from %s: %s", l->text,
			   format_error(l->scan));
}

static void take_message(struct ws_link *l, const struct ws_message *m)
{
	switch (m->opcode) {
	case WS_TEXT:
	case WS_BINARY:
		take_samples(l, m);
		break;
	case WS_PING:
		/* Who asks and does not read gets no answer. */
		if (!l->closing && waiting(l) < 2 * FILL_MAX)
			put_control(l, WS_PONG, m->data, m->len);
		break;
	case WS_CLOSE:
		l->close_seen = true;
		if (!l->closing)
			log_info("node %s: %s says goodbye: %u%s%.*s", name_of(l), l->text,
				 m->status, m->reason_len ? " " : "", (int)m->reason_len,
				 m->reason);
		say_goodbye(l, m->status, "");
		break;
	default:
		break;
	}
}

static int take_bytes(struct ws_link *l, const void *data, size_t len)
{
	const char *bytes = data;
	struct ws_message m;
	size_t used;
	int ret;

	ws_silence_broken(&l->silence, clock_now_ns());
	while (len && !l->close_seen) {
		ret = ws_reader_take(l->reader, bytes, len, &used, &m);
		bytes += used;
		len -= used;
		if (ret < 0) {
			log_warn("node %s: %s: %s", name_of(l), l->text,
				 ws_reader_error(l->reader));
			say_goodbye(l, (unsigned)-ret, ws_reader_error(l->reader));
			l->close_seen = true;
			return 0;
		}
		if (ret > 0)
			take_message(l, &m);
	}
	return 0;
}

/* What has come. 1: there may be more; 0; or a negative errno. */
static int receive(struct ws_link *l)
{
	char scratch[SCRATCH_BYTES];

	for (unsigned i = 0; i < READS_MAX; i++) {
		ssize_t n = stream_recv(&l->socket, scratch, sizeof(scratch));

		if (n == -EAGAIN)
			return 0;
		if (n <= 0)
			return n ? (int)n : -ECONNRESET;
		take_bytes(l, scratch, (size_t)n);
	}
	return 1;
}

/* The time of the next ping or of giving up; 0: it is given up. */
static uint64_t watch(struct ws_link *l)
{
	uint64_t until_ns;
	enum ws_silence_step step =
		ws_silence_look(&l->silence, clock_now_ns(), (uint64_t)(l->owner->ping_s * 1e9),
				(uint64_t)(l->owner->timeout_s * 1e9), &until_ns);

	if (step == WS_SILENCE_ASK)
		put_control(l, WS_PING, "", 0);
	return step == WS_SILENCE_GIVE_UP ? 0 : until_ns;
}

/* Sleeps until there is something to do. */
static void sleep_until(struct ws_link *l, uint64_t until_ns)
{
	short events = stream_events(&l->socket, true, false);

	atomic_store(&l->asleep, true);
	atomic_thread_fence(memory_order_seq_cst);
	/* What was put before that is not missed. */
	if (l->feed && !l->closing && !waiting(l)) {
		ws_feed_trim(l->feed);
		if (ws_feed_behind(l->feed, &l->place))
			until_ns = 0;
	}
	ws_link_wait(l, events, until_ns);
	atomic_store(&l->asleep, false);
}

/* Less where the process ends. */
static uint64_t end_of_wait_ns(int limit_ms)
{
	return clock_now_ns() + (uint64_t)ending_left_ms(ENDING_JOIN_MS, limit_ms) * 1000000;
}

/* The node stops: what was written goes first, then the goodbye. True: it is over; also when the
 * peer does not take what comes before the goodbye. */
static bool part(struct ws_link *l, uint64_t *end_ns)
{
	bool empty = !waiting(l) &&
		     (!l->feed || !ws_feed_behind(l->feed, &l->place));

	if (!*end_ns)
		*end_ns = end_of_wait_ns(FLUSH_MS);
	if (!l->closing && empty) {
		say_goodbye(l, WS_GOING_AWAY, "the node stops");
		*end_ns = end_of_wait_ns(GOODBYE_MS);
	}
	return clock_now_ns() >= *end_ns;
}

/* Until the connection ends; why it did. */
static const char *serve(struct ws_link *l)
{
	uint64_t end_ns = 0, until_ns;
	int ret = 0;

	if (l->early_len)
		take_bytes(l, l->early, l->early_len);
	for (;;) {
		bool more;

		ret = fill(l) ?: flush(l);
		if (ret)
			break;
		if (l->close_seen && !waiting(l))
			return NULL;
		ret = receive(l);
		more = ret > 0;
		if (ret < 0)
			break;
		if (atomic_load(&l->owner->ending) && part(l, &end_ns))
			return NULL;
		until_ns = watch(l);
		if (!until_ns) {
			node_figure_add(l->owner->node, WS_SILENT, 1);
			return "it does not answer a ping";
		}
		if (!more)
			sleep_until(l, end_ns ? MIN(until_ns, clock_now_ns() + 10000000) :
						until_ns);
	}
	return l->closing ? NULL : ret == -ECONNRESET ? "it has closed the connection" :
				   strerror(-ret);
}

/* A close with unread bytes is a reset, which may destroy our goodbye. */
static void linger(struct ws_link *l)
{
	uint64_t end_ns = end_of_wait_ns(GOODBYE_MS);
	char scratch[SCRATCH_BYTES];
	ssize_t n = l->closing ? -EAGAIN : 0;

	if (!l->socket.tls)
		stream_shut(&l->socket);
	while ((n > 0 || n == -EAGAIN) && clock_now_ns() < end_ns) {
		n = stream_recv(&l->socket, scratch, sizeof(scratch));
		if (n == -EAGAIN)
			ws_link_wait(l, POLLIN, end_ns);
	}
}

/* ---- the thread ---- */

/* What was taken for the peer and not sent to it. The path may have put some after the end of the
 * connection, so this is asked for once more before the next one, and at the end. */
static void count_unsent(struct ws_link *l)
{
	uint64_t lost;

	if (!l->feed)
		return;
	lost = ws_feed_left(l->feed, &l->place);
	for (unsigned i = 0; i < l->message_count; i++)
		lost += l->messages[i].end > l->socket.out.start ? l->messages[i].samples : 0;
	if (lost)
		node_lose(l->owner->node, NODE_LOSS_ABSENT, lost,
			  "the connection to %s has ended before they were sent", l->text);
	l->message_count = 0;
	ws_place_init(l->feed, &l->place);
}

static void come_up(struct ws_link *l)
{
	ws_silence_broken(&l->silence, clock_now_ns());
	l->closing = l->close_seen = false;
	l->said_unreachable = false;
	count_unsent(l);
	atomic_store(&l->up, true);
	log_info("node %s: connected to %s", name_of(l), l->text);
	node_figure_add(l->owner->node, WS_LINKS_MADE, 1);
	ws_node_links_changed(l->owner, 1);
}

static void go_down(struct ws_link *l, const char *why)
{
	atomic_store(&l->up, false);
	count_unsent(l);
	ws_node_links_changed(l->owner, -1);
	if (why || l->close_seen)
		node_figure_add(l->owner->node, WS_LINKS_LOST, !atomic_load(&l->owner->ending));
	if (why)
		log_warn("node %s: connection to %s lost: %s", name_of(l), l->text, why);
}

static void try_once(struct ws_link *l)
{
	uint64_t since_ns;
	char why[300] = "";
	int ret;

	l->reader = ws_reader_new(WS_CLIENT, (size_t)l->owner->message_max);
	ret = l->reader ? ws_link_connect(l, why, sizeof(why)) : -ENOMEM;
	if (!ret) {
		come_up(l);
		since_ns = l->silence.heard_ns;
		go_down(l, serve(l));
		linger(l);
		ws_link_close(l);
		/* One that always ends at once is not tried all the time. */
		if (clock_now_ns() - since_ns > NSEC_PER_SEC)
			backoff_reset(&l->retry);
	} else if (ret != -ECANCELED) {
		node_figure_add(l->owner->node, WS_UNREACHABLE, 1);
		if (!l->said_unreachable)
			log_info("node %s: cannot connect to %s: %s; trying again every %lld ms",
				 name_of(l), l->text, *why ? why : strerror(-ret),
				 (long long)l->owner->reconnect_ms);
		l->said_unreachable = true;
	}
	ws_reader_free(l->reader);
	l->reader = NULL;
}

static void *run(void *arg)
{
	struct ws_link *l = arg;
	struct ws_node *s = l->owner;

	while (!atomic_load(&s->ending)) {
		try_once(l);
		backoff_plan(&l->retry, (uint64_t)s->reconnect_ms * 1000000, clock_now_ns());
		while (!atomic_load(&s->ending) && !backoff_is_due(&l->retry, clock_now_ns()))
			ws_link_wait(l, 0, l->retry.at_ns);
	}
	return NULL;
}

static void received(void *arg, struct sample *const smps[], unsigned count)
{
	struct ws_link *l = arg;

	ws_node_received(l->owner, l->ring, smps, count);
}

static int open_parts(struct ws_link *l)
{
	struct node *n = l->owner->node;
	const char *format = *l->url.format ? l->url.format : l->owner->format;
	const struct signal_list *in = n->in.signals;
	char why[200] = "";
	int ret = 0;

	l->place = (struct ws_place){ 0 };
	if (n->is_destination) {
		ret = ws_feed_new(&l->feed, format, n->out.hooked ? n->out.hooked : n->out.signals,
				  (size_t)l->owner->backlog, why, sizeof(why));
		if (ret)
			log_error("node %s: %s: %s", n->name, l->text, why);
	}
	if (!ret && n->is_source) {
		ret = format_new(&l->scan, NULL, NULL, format, n->in.signals);
		if (!ret)
			l->scan->message = true;
		if (!ret)
			ret = ws_inlet_init(&l->inlet, in && in->count ? in->count : 64, received,
					    l);
		l->has_inlet = !ret;
	}
	return ret;
}

static void free_parts(struct ws_link *l)
{
	ws_feed_free(l->feed);
	format_destroy(l->scan);
	if (l->has_inlet)
		ws_inlet_destroy(&l->inlet);
	l->feed = NULL;
	l->scan = NULL;
	l->has_inlet = false;
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	l->wake_fd = -1;
}

int ws_link_start(struct ws_link *l)
{
	int ret = open_parts(l);

	stream_init(&l->socket, -1);
	if (!ret) {
		l->wake_fd = wakeup_open_signal();
		ret = l->wake_fd < 0 ? l->wake_fd : 0;
	}
	if (!ret)
		ret = thread_start(&l->thread, "websocket", THREAD_AS_CALLER, run, l);
	l->has_thread = !ret;
	if (ret)
		free_parts(l);
	return ret;
}

void ws_link_stop(struct ws_link *l)
{
	if (!l->has_thread)
		return;
	pthread_join(l->thread, NULL);
	l->has_thread = false;
	count_unsent(l);
	free_parts(l);
}

void ws_link_wake(struct ws_link *l)
{
	/* As in sleep_until(): one of both sees what the other has stored. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&l->asleep, memory_order_relaxed) &&
	    atomic_exchange(&l->asleep, false))
		wakeup_post(l->wake_fd);
}
