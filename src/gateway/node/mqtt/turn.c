/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends and receives packets while a connection lasts. */
#define LOG_ROOM "gateway/mqtt"
#include "gateway/node/mqtt/mqtt.h"

#include <errno.h>

#include "util/clock.h"

/* A packet without its message, at most. */
#define PACKET_MAX 262144
/* Numbers in use; a broker may confirm them in any order. */
#define IDS_MAX 8192u

/* ---- sending ---- */

/* A message has a number for each topic, and the last of them is its tag. */
static int put_one(struct mqtt_node *m, const struct mqtt_publish *p)
{
	uint8_t *state = &m->out_ids[p->id];
	bool is_released = *state == (MQTT_ID_RELEASED | MQTT_ID_OLD);

	/* The broker has confirmed this message in the last connection. */
	if (p->again && !*state)
		return 0;
	if (p->qos) {
		*state = is_released ? MQTT_ID_RELEASED : MQTT_ID_SENT;
		m->in_flight++;
	}
	return is_released ? mqtt_put_answer(&m->stream.out, MQTT_PUBREL, p->id) :
			     mqtt_put_publish(&m->stream.out, p);
}

static int check_size(struct mqtt_node *m, const struct mqtt_publish *p)
{
	uint64_t size = mqtt_publish_size(p), max = MIN(m->size_max, (uint32_t)MQTT_BODY_MAX);

	return size <= max ? 0 : outside_fail(&m->outside, -EMSGSIZE,
					      "a message of %zu bytes, the broker takes %llu", p->len,
					      (unsigned long long)max);
}

/* The number of the first topic, or 0: not now. */
static uint16_t choose_ids(struct mqtt_node *m, uint64_t tag, bool *again)
{
	uint16_t last;

	if (m->in_flight + m->pub_count > MIN(m->in_flight_max, IDS_MAX))
		return 0;
	*again = tag && tag <= UINT16_MAX && m->out_ids[tag] & MQTT_ID_OLD;
	last = *again ? (uint16_t)tag : mqtt_take_ids(m, m->pub_count);
	return last ? (uint16_t)(last - m->pub_count + 1) : 0;
}

int mqtt_send(struct outside *o, struct outbox_message *msg)
{
	struct mqtt_node *m = mqtt_of(o);
	struct mqtt_publish p = { .v5 = m->version, .retain = m->retain, .qos = (unsigned)m->qos,
				  .data = msg->data, .len = msg->len };
	int ret = 0;

	if (stream_buffer_filled(&m->stream.out))
		return -EAGAIN;
	for (unsigned i = 0; i < m->pub_count && !ret; i++) {
		p.topic = m->pub[i];
		ret = check_size(m, &p);
	}
	if (!ret && m->qos) {
		p.id = choose_ids(m, msg->tag, &p.again);
		ret = p.id ? 0 : -EAGAIN;
	}
	for (unsigned i = 0; i < m->pub_count && !ret; i++) {
		p.topic = m->pub[i];
		msg->tag = p.id;
		ret = put_one(m, &p);
		p.id++;
	}
	ret = ret ?: outside_stream_flush(o, &m->stream);
	if (ret)
		return ret;
	m->sent_ns = clock_now_ns();
	if (stream_buffer_filled(&m->stream.out))
		outside_wake(o);
	return m->qos ? OUTSIDE_UNCONFIRMED : OUTSIDE_SENT;
}

/* ---- confirmations ---- */

/* A message to several topics is lost if one refuses it. */
static void settle(struct mqtt_node *m, const struct mqtt_packet *p)
{
	uint8_t *state = &m->out_ids[p->id];

	if (!*state)
		return;
	m->in_flight -= !(*state & MQTT_ID_OLD);
	*state = MQTT_ID_FREE;
	if (p->code < MQTT_REFUSED)
		outside_confirm(&m->outside, p->id, false);
	else
		for (unsigned i = 0; i < m->pub_count; i++)
			outside_reject(&m->outside, p->id + i, mqtt_code_text(p->code, m->version));
}

static int confirmed(struct mqtt_node *m, const struct mqtt_packet *p)
{
	if (p->code == MQTT_NO_READER)
		node_figure_add(m->outside.node, MQTT_UNHEARD, 1);
	if (p->type != MQTT_PUBREC || p->code >= MQTT_REFUSED) {
		settle(m, p);
		return 0;
	}
	if (m->out_ids[p->id])
		m->out_ids[p->id] = MQTT_ID_RELEASED | (m->out_ids[p->id] & MQTT_ID_OLD);
	return mqtt_put_answer(&m->stream.out, MQTT_PUBREL, p->id);
}

/* ---- receiving ---- */

/* False: the same message has come before. */
static bool note_id(struct mqtt_node *m, const struct mqtt_packet *p)
{
	uint8_t bit = (uint8_t)(1 << p->id % 8), *byte = &m->in_ids[p->id / 8];
	bool is_new = p->qos < 2 || !(*byte & bit);

	if (p->qos == 2)
		*byte |= bit;
	return is_new;
}

static int answer(struct mqtt_node *m, unsigned qos, uint16_t id)
{
	return qos ? mqtt_put_answer(&m->stream.out, qos == 1 ? MQTT_PUBACK : MQTT_PUBREC, id) : 0;
}

static void note_too_long(struct mqtt_node *m, size_t len)
{
	fault_note(&m->outside.faults, FAULT_TRUNCATED, 1,
		   "a message has %zu bytes, in.max_message is %lld; it is not read", len,
		   (long long)m->in_message_max);
}

static int received(struct mqtt_node *m, const struct mqtt_packet *p)
{
	if (!note_id(m, p))
		return answer(m, p->qos, p->id);
	if (p->len > (size_t)m->in_message_max) {
		note_too_long(m, p->len);
		return answer(m, p->qos, p->id);
	}
	if (p->retain)
		node_figure_add(m->outside.node, MQTT_RETAINED, 1);
	if (p->len && !(p->retain && m->skip_retained))
		outside_received(&m->outside, p->data, p->len);
	return answer(m, p->qos, p->id);
}

static int handle(struct mqtt_node *m, const struct mqtt_packet *p)
{
	if ((m->phase == MQTT_CONNECTING) != (p->type == MQTT_CONNACK))
		return mqtt_nonsense(m, "begins without an answer to the connection, or gives it twice");
	switch (p->type) {
	case MQTT_CONNACK:
		return mqtt_connected(m, p);
	case MQTT_PUBLISH:
		return received(m, p);
	case MQTT_PUBREL:
		m->in_ids[p->id / 8] &= (uint8_t)~(1 << p->id % 8);
		return mqtt_put_answer(&m->stream.out, MQTT_PUBCOMP, p->id);
	case MQTT_PUBACK:
	case MQTT_PUBREC:
	case MQTT_PUBCOMP:
		return confirmed(m, p);
	case MQTT_SUBACK:
		return mqtt_subscribed(m, p);
	case MQTT_PINGRESP:
		m->ping_ns = 0;
		return 0;
	default: /* MQTT_DISCONNECT: others are not read */
		return outside_fail(&m->outside, -ECONNRESET, "the broker ends it: %s",
				    mqtt_code_text(p->code, true));
	}
}

/* A packet that is too long: its message is confirmed and not read. 1, 0 or a negative errno. */
static int skip_packet(struct mqtt_node *m, const struct mqtt_head *h, const uint8_t *body,
		       size_t len)
{
	struct mqtt_packet p = { .qos = h->first >> 1 & 3 };
	int ret;

	if (mqtt_type_of(h) != MQTT_PUBLISH || m->phase == MQTT_CONNECTING)
		return mqtt_nonsense(m, "sends a packet that is too long");
	ret = mqtt_publish_id(h, body, len, &p.id);
	if (ret <= 0)
		return ret ? mqtt_nonsense(m, "sends a message without sense") : 0;
	if (note_id(m, &p))
		note_too_long(m, h->body);
	m->skip = h->size + (size_t)h->body;
	return answer(m, p.qos, p.id) ?: 1;
}

/* The next packet: 1: it is taken; 0: it has not come completely; or a negative errno. */
static int take_packet(struct outside *o)
{
	struct mqtt_node *m = mqtt_of(o);
	struct stream_buffer *in = &m->in.b;
	const uint8_t *at = (const uint8_t *)in->at + in->start;
	size_t filled = stream_buffer_filled(in), skipped = MIN(m->skip, filled);
	struct mqtt_head h;
	struct mqtt_packet p;
	int ret;

	if (skipped) {
		in->start += skipped;
		m->skip -= skipped;
		return 1;
	}
	ret = filled && !m->skip ? mqtt_head_read(&h, at, filled) : 0;
	if (ret <= 0)
		return ret ? mqtt_nonsense(m, "sends no packets of MQTT") : 0;
	if (h.body > PACKET_MAX && h.body - PACKET_MAX > (uint64_t)m->in_message_max)
		return skip_packet(m, &h, at + h.size, filled - h.size);
	if (mqtt_type_of(&h) != MQTT_PUBLISH && h.body > PACKET_MAX)
		return mqtt_nonsense(m, "sends a packet that is too long");
	if (filled - h.size < h.body)
		return 0;
	if (mqtt_packet_read(&p, &h, at + h.size, m->version))
		return mqtt_nonsense(m, "sends a packet without sense");
	in->start += h.size + h.body;
	return handle(m, &p) ?: 1;
}

/* ---- the turn ---- */

/* When the broker is to be asked whether it is there, or is given up. */
static uint64_t due_ns(const struct mqtt_node *m)
{
	return m->keepalive_ns + (m->ping_ns ? MAX(m->ping_ns, m->in.heard_ns) :
					       MIN(m->sent_ns, m->in.heard_ns));
}

static int keep_alive(struct mqtt_node *m)
{
	uint64_t now = clock_now_ns();

	if (now < due_ns(m) || m->phase == MQTT_CONNECTING)
		return 0;
	if (m->ping_ns)
		return outside_fail(&m->outside, -ETIMEDOUT,
				    "it does not answer within %g s (keepalive)",
				    (double)m->keepalive_ns / 1e9);
	m->ping_ns = m->sent_ns = now;
	return mqtt_put_empty(&m->stream.out, MQTT_PINGREQ);
}

int mqtt_turn(struct outside *o)
{
	struct mqtt_node *m = mqtt_of(o);
	int ret = outside_stream_flush(o, &m->stream) ?:
		  outside_stream_read(o, &m->stream, &m->in, take_packet) ?: keep_alive(m);

	if (!ret && stream_buffer_filled(&m->stream.out)) {
		m->sent_ns = clock_now_ns();
		ret = outside_stream_flush(o, &m->stream);
	}
	return ret;
}

unsigned mqtt_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct mqtt_node *m = mqtt_of(o);

	/* Until the broker has answered the connection, connect_timeout is the limit. */
	*until_ns = m->phase == MQTT_CONNECTING ? UINT64_MAX : due_ns(m);
	return outside_stream_wait(&m->stream, &m->in, fds, until_ns);
}
