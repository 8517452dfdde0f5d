/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes from the server, frame by frame: the library's own call for whole messages waits
 * for the rest of a message. */
#define LOG_ROOM "gateway/amqp"
#include "gateway/node/amqp/amqp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

#define MS UINT64_C(1000000)
/* Frames that are taken before others have their turn; a message has three. */
#define FRAMES_MAX 192
/* The library sends and expects heartbeats when it is called. */
#define HEARTBEAT_NS (250 * MS)
/* A message is acknowledged so long after a path has read it, with those that were read
 * meanwhile. */
#define ACKNOWLEDGE_NS (5 * MS)

/* ---- acknowledgements ---- */

static struct amqp_node_unread *unread_at(struct amqp_node *a, unsigned i)
{
	return &a->unread[(a->unread_first + i) % (unsigned)a->prefetch];
}

int amqp_node_acknowledge(struct amqp_node *a, bool all)
{
	uint64_t read = outside_samples_read(&a->outside), tag, now = clock_now_ns();
	bool is_due = all || now - a->unread_since_ns >= ACKNOWLEDGE_NS;
	unsigned many = is_due ? 1 : (unsigned)a->prefetch / 4 + 1, count = 0;
	int status;

	if (a->unread_count < many || unread_at(a, many - 1)->upto > read)
		return 0;
	while (count < a->unread_count && unread_at(a, count)->upto <= read)
		count++;
	if (!amqp_node_has_room(a, 0))
		return 0;
	tag = unread_at(a, count - 1)->tag;
	a->unread_first = (a->unread_first + count) % (unsigned)a->prefetch;
	a->unread_count -= count;
	a->unread_since_ns = now;
	status = amqp_basic_ack(a->state, AMQP_NODE_CHANNEL, tag, 1);
	return status ? amqp_node_fail(a, -EIO, "acknowledging", status) : 0;
}

static int note_unread(struct amqp_node *a, uint64_t tag)
{
	if (a->unread_count == (unsigned)a->prefetch)
		return outside_fail(&a->outside, -EPROTO,
				    "the server sends more than in.prefetch, %lld messages",
				    (long long)a->prefetch);
	if (!a->unread_count)
		a->unread_since_ns = clock_now_ns();
	*unread_at(a, a->unread_count++) = (struct amqp_node_unread){
		.tag = tag,
		.upto = outside_samples_put(&a->outside),
	};
	return 0;
}

/* ---- messages ---- */

static int end_content(struct amqp_node *a, const void *body, size_t len)
{
	struct amqp_node_content c = a->content;
	uint64_t before = outside_samples_put(&a->outside);

	a->content = (struct amqp_node_content){ 0 };
	if (c.kind == AMQP_NODE_RETURN)
		return 0;
	if (body)
		outside_received(&a->outside, body, len);
	if (c.redelivered)
		node_figure_add(a->outside.node, AMQP_NODE_REDELIVERED,
				outside_samples_put(&a->outside) - before);
	return note_unread(a, c.tag);
}

static bool is_oversized(const struct amqp_node *a)
{
	return a->content.size > (uint64_t)a->in_message_max;
}

/* Of a message that is too long only the end is awaited. */
static void note_oversized(struct amqp_node *a)
{
	fault_note(&a->outside.faults, FAULT_TRUNCATED, 1,
		   "a message has %llu bytes, in.max_message is %lld; it is not read",
		   (unsigned long long)a->content.size, (long long)a->in_message_max);
}

static int on_header(struct amqp_node *a, const amqp_frame_t *f)
{
	const amqp_basic_properties_t *p = f->payload.properties.decoded;
	struct amqp_node_content *c = &a->content;

	if (!c->kind || c->has_header || f->payload.properties.class_id != AMQP_BASIC_CLASS)
		return outside_fail(&a->outside, -EPROTO, "a header without a message");
	c->has_header = true;
	c->size = f->payload.properties.body_size;
	if (c->kind == AMQP_NODE_RETURN && p && p->_flags & AMQP_BASIC_MESSAGE_ID_FLAG)
		amqp_node_on_return(a, p->message_id);
	if (c->kind == AMQP_NODE_DELIVERY && is_oversized(a))
		note_oversized(a);
	return c->size ? 0 : end_content(a, NULL, 0);
}

/* Keeps a part of a body. */
static int keep(struct amqp_node *a, amqp_bytes_t part)
{
	const struct amqp_node_content *c = &a->content;
	char *body;

	/* It grows by what has come, not by what the header promises. */
	if (c->got + part.len > a->body_size) {
		size_t size = (size_t)MIN(c->size, 2 * (c->got + part.len));

		body = realloc(a->body, size);
		if (!body)
			return outside_fail(&a->outside, -ENOMEM, "no memory for a message of %zu bytes",
					    size);
		a->body = body;
		a->body_size = size;
	}
	memcpy(a->body + c->got, part.bytes, part.len);
	return 0;
}

static int on_body(struct amqp_node *a, amqp_bytes_t part)
{
	struct amqp_node_content *c = &a->content;
	bool wanted = c->kind == AMQP_NODE_DELIVERY && !is_oversized(a);
	int ret;

	if (!c->has_header || part.len > c->size - c->got)
		return outside_fail(&a->outside, -EPROTO, "more of a message than its header says");
	if (wanted && part.len == c->size)
		return end_content(a, part.bytes, part.len);
	ret = wanted ? keep(a, part) : 0;
	if (ret)
		return ret;
	c->got += part.len;
	if (c->got < c->size)
		return 0;
	return end_content(a, wanted ? a->body : NULL, (size_t)c->size);
}

/* ---- methods ---- */

static void set_blocked(struct amqp_node *a, bool on, amqp_bytes_t why)
{
	if (on && !a->blocked)
		log_warn("node %s: the server takes no messages for now: %.*s",
			 a->outside.node->name, (int)MIN(why.len, (size_t)200), (char *)why.bytes);
	else if (!on && a->blocked)
		log_info("node %s: the server takes messages again", a->outside.node->name);
	a->blocked = on;
	node_figure_set(a->outside.node, AMQP_NODE_BLOCKED, on);
}

static int begin_content(struct amqp_node *a, struct amqp_node_content c)
{
	a->content = c;
	return 0;
}

static int on_method(struct amqp_node *a, const amqp_method_t *m)
{
	const amqp_basic_deliver_t *d = m->decoded;
	const amqp_basic_ack_t *ack = m->decoded;
	const amqp_basic_nack_t *nack = m->decoded;
	const amqp_connection_blocked_t *blocked = m->decoded;

	if (a->content.kind && m->id >> 16 == AMQP_BASIC_CLASS)
		return outside_fail(&a->outside, -EPROTO, "a message ends too early");
	switch (m->id) {
	case AMQP_BASIC_DELIVER_METHOD:
		return begin_content(a, (struct amqp_node_content){
			.kind = AMQP_NODE_DELIVERY, .tag = d->delivery_tag,
			.redelivered = d->redelivered });
	case AMQP_BASIC_RETURN_METHOD:
		return begin_content(a, (struct amqp_node_content){ .kind = AMQP_NODE_RETURN });
	case AMQP_BASIC_ACK_METHOD:
		return amqp_node_on_confirm(a, ack->delivery_tag, ack->multiple, true);
	case AMQP_BASIC_NACK_METHOD:
		return amqp_node_on_confirm(a, nack->delivery_tag, nack->multiple, false);
	case AMQP_CONNECTION_BLOCKED_METHOD:
		set_blocked(a, true, blocked->reason);
		return 0;
	case AMQP_CONNECTION_UNBLOCKED_METHOD:
		set_blocked(a, false, amqp_empty_bytes);
		return 0;
	case AMQP_BASIC_CANCEL_METHOD:
		return outside_fail(&a->outside, -ECONNRESET, "the queue was deleted");
	case AMQP_CHANNEL_CLOSE_METHOD:
	case AMQP_CONNECTION_CLOSE_METHOD:
		return amqp_node_fail_closed(a, "the server ends it", m);
	default:
		return 0;
	}
}

static int on_frame(struct amqp_node *a, amqp_frame_t *f)
{
	if (f->channel > AMQP_NODE_CHANNEL)
		return outside_fail(&a->outside, -EPROTO, "a frame of channel %u", f->channel);
	switch (f->frame_type) {
	case AMQP_FRAME_METHOD:
		return on_method(a, &f->payload.method);
	case AMQP_FRAME_HEADER:
		return on_header(a, f);
	case AMQP_FRAME_BODY:
		return on_body(a, f->payload.body_fragment);
	default:
		return 0;
	}
}

/* Has the library read something that it has not given out? */
static bool has_rest(const struct amqp_node *a)
{
	return amqp_data_in_buffer(a->state) || amqp_frames_enqueued(a->state);
}

int amqp_node_turn(struct outside *o)
{
	struct amqp_node *a = amqp_node_of(o);
	int ret = 0, status = 0;

	/* Where nothing has come, the library needs two system calls to find that out: the socket
	 * is only read after a wait for it, and then once. After one in vain, too, for heartbeats. */
	for (unsigned i = 0; i < FRAMES_MAX && ((o->polled && !i) || has_rest(a)) && !ret &&
			     !outside_is_enough(o); i++) {
		struct timeval none = { 0 };
		amqp_frame_t frame;

		status = amqp_simple_wait_frame_noblock(a->state, &frame, &none);
		if (status)
			break;
		ret = on_frame(a, &frame);
		amqp_maybe_release_buffers_on_channel(a->state, frame.channel);
	}
	if (!ret && status && status != AMQP_STATUS_TIMEOUT)
		ret = amqp_node_fail(a, -ECONNRESET, "", status);
	ret = ret ?: amqp_node_acknowledge(a, false);
	a->failed = ret;
	return ret;
}

unsigned amqp_node_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct amqp_node *a = amqp_node_of(o);
	int fd = amqp_get_sockfd(a->state);
	uint64_t wait_ns = HEARTBEAT_NS;

	if (a->unread_count)
		wait_ns = ACKNOWLEDGE_NS;
	if (a->room_wait_ns)
		wait_ns = MIN(wait_ns, a->room_wait_ns);
	/* What the library has read already wakes nobody. */
	if (has_rest(a))
		wait_ns = 0;
	*until_ns = clock_now_ns() + wait_ns;
	if (fd < 0)
		return 0;
	fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return 1;
}
