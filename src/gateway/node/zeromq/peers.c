/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peers of the node: what the monitors of its sockets tell about connections, and the
 * subscriptions that the publisher has got.
 */
#define LOG_ROOM "gateway/zeromq"
#include "gateway/node/zeromq/zeromq.h"

#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

/* Subscriptions that are taken before others have their turn. */
#define READS_MAX 64
/* A publisher tells that it has peers and no subscriptions. */
#define SILENT_NS NSEC_PER_SEC
/* Until what a publisher has sent before its end was taken. */
#define LEFT_BEHIND_NS NSEC_PER_SEC

/* ---- connections ---- */

static const char *failure_of(int event, const struct zeromq_node *m)
{
	switch (event) {
	case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
		return "the handshake failed: this node is not in the peer's list of clients";
	case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
		return m->curve.enabled ?
			"the handshake failed: wrong keys, or the peer has no CURVE" :
			"the handshake failed: the peer wants CURVE, or is none of ZeroMQ 4";
	}
	return m->curve.enabled ?
		"the handshake failed: the peer ended it (wrong keys, or it has no CURVE)" :
		"the handshake failed: the peer ended it or is none of ZeroMQ 4";
}

static const char *after_local(const char *address, size_t len)
{
	const char *semicolon = memchr(address, ';', len);

	return semicolon ? semicolon + 1 : address + MIN(len, strlen("tcp://"));
}

/* The address that an event names; NULL: none of ours. */
static struct zeromq_address *find_address(struct zeromq_side *d, zmq_msg_t *frame)
{
	const char *name = zmq_msg_data(frame), *remote;
	size_t len = zmq_msg_size(frame);

	if (d->bind)
		return NULL;
	if (d->url_count == 1)
		return &d->address[0];
	remote = after_local(name, len);
	len -= (size_t)(remote - name);
	for (unsigned i = 0; i < d->url_count; i++) {
		const char *text = d->address[i].text, *ours = after_local(text, strlen(text));

		if (strlen(ours) == len && !memcmp(ours, remote, len))
			return &d->address[i];
	}
	return NULL;
}

/* After some failures the library does not connect to an address any more, and tells it by not
 * telling that it will. With a single address the whole socket is made anew. */
void zeromq_peers_retry(struct zeromq_side *d)
{
	if (!d->retry_ns || clock_now_ns() < d->retry_ns)
		return;
	d->retry_ns = 0;
	for (unsigned i = 0; i < d->url_count; i++) {
		struct zeromq_address *a = &d->address[i];

		if (!a->given_up)
			continue;
		a->given_up = false;
		zmq_disconnect(d->socket, a->text);
		zmq_connect(d->socket, a->text);
		d->left = true;
	}
}

static void note_end(struct zeromq_node *m, struct zeromq_side *d, struct zeromq_address *a)
{
	bool was_peer = !d->failed && d->peers;

	if (d->failed)
		/* Each handshake that failed is followed by such an event of its own. */
		d->failed--;
	else
		snprintf(d->why, sizeof(d->why), was_peer ?
			 "it has ended it, or was silent for %g s" :
			 "the handshake failed: it is none of ZeroMQ 4", m->heartbeat_s);
	d->peers -= was_peer;
	d->ended_ns = clock_now_ns();
	if (!a)
		return;
	a->failed = a->failed || !was_peer;
	a->given_up = true;
	if (!d->retry_ns)
		d->retry_ns = clock_now_ns() + (uint64_t)m->outside.reconnect_ms * 1000000;
}

static void note_event(struct zeromq_node *m, struct zeromq_side *d, int event,
		       struct zeromq_address *a)
{
	bool early = clock_now_ns() - d->opened_ns < (uint64_t)(m->outside.connect_timeout_s * 9e8);

	switch (event) {
	case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
		d->peers++;
		d->why[0] = 0;
		break;
	case ZMQ_EVENT_DISCONNECTED:
		note_end(m, d, a);
		break;
	case ZMQ_EVENT_CONNECT_RETRIED:
		if (a) {
			a->failed = true;
			a->given_up = false;
		}
		if (!*d->why)
			snprintf(d->why, sizeof(d->why), early ?
				 "the connection was refused, or there is no way to it" :
				 "it does not answer within connect_timeout");
		break;
	default:
		d->failed++;
		node_figure_add(m->outside.node, ZEROMQ_HANDSHAKES_FAILED, 1);
		snprintf(d->why, sizeof(d->why), "%s", failure_of(event, m));
	}
	node_figure_set(m->outside.node, d->peers_figure, d->peers);
}

void zeromq_peers_take(struct zeromq_node *m, struct zeromq_side *d)
{
	zmq_msg_t frames[2];
	uint16_t event;

	for (;;) {
		int count = zeromq_frames_take(d->monitor, frames, 2);

		if (count <= 0)
			return;
		if (count == 2 && zmq_msg_size(&frames[0]) >= sizeof(event)) {
			memcpy(&event, zmq_msg_data(&frames[0]), sizeof(event));
			note_event(m, d, event, find_address(d, &frames[1]));
		}
		zeromq_frames_close(frames, count, 2);
	}
}

/* ---- subscriptions ---- */

/* A subscription to `topic` wants messages with this filter. Without a filter, messages have no
 * topic, and the library compares their first bytes. */
static bool is_wanted(const char *filter, const char *topic, size_t len)
{
	return !filter || (len <= strlen(filter) && !memcmp(filter, topic, len));
}

/* 0 or a negative errno. */
int zeromq_subscriptions_take(struct zeromq_node *m)
{
	struct zeromq_side *d = &m->out;
	zmq_msg_t frame;

	for (unsigned i = 0; i < READS_MAX; i++) {
		int count = zeromq_frames_take(d->socket, &frame, 1);
		const char *data;
		size_t len;

		if (!count)
			d->looked_ns = clock_now_ns();
		if (count <= 0)
			return count;
		data = zmq_msg_data(&frame);
		len = zmq_msg_size(&frame);
		if (count != 1 || !len || (unsigned char)data[0] > 1)
			fault_note(&m->outside.faults, FAULT_MALFORMED, 1,
				   "a subscriber sent something else than a subscription");
		else if (is_wanted(d->filter, data + 1, len - 1))
			d->topics = data[0] ? d->topics + 1 : d->topics - (d->topics > 0);
		zmq_msg_close(&frame);
	}
	d->left = true;
	return 0;
}

/* ---- who is there ---- */

/* Whether somebody takes messages of this side, or sends some. */
bool zeromq_is_alive(const struct zeromq_node *m, const struct zeromq_side *d)
{
	if (d->is_udp)
		return true;
	return d == &m->out && m->pattern == ZEROMQ_PUBSUB ? d->topics > 0 : d->peers > 0;
}

bool zeromq_have_all_failed(const struct zeromq_side *d)
{
	for (unsigned i = 0; i < d->url_count; i++)
		if (!d->address[i].failed)
			return false;
	return true;
}

/* Some peers that are refused look to the monitor like one that has gone. A message proves that
 * another one is there, if it is none of those that the one that has gone left behind. */
void zeromq_peers_correct(struct zeromq_side *d)
{
	if (d->bind && !d->peers && clock_now_ns() - d->ended_ns > LEFT_BEHIND_NS)
		d->peers = 1;
}

/* Peers, but no subscriptions: of a forwarder that has no reader, or with another filter. */
void zeromq_silence_say(struct zeromq_node *m, struct zeromq_side *d)
{
	uint64_t now = clock_now_ns();

	if (zeromq_is_alive(m, d) || !d->peers) {
		d->silent_since_ns = 0;
	} else if (!d->silent_since_ns) {
		d->silent_since_ns = now;
	} else if (d->silent_since_ns != UINT64_MAX && now - d->silent_since_ns > SILENT_NS) {
		log_info("node %s: %s is there, but nobody subscribes to %s; messages wait",
			 m->outside.node->name, m->outside.target,
			 d->filter ? d->filter : "them");
		d->silent_since_ns = UINT64_MAX;
	}
}
