/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects to the broker, and handles its answer to the connection. */
#define LOG_ROOM "gateway/mqtt"
#include "gateway/node/mqtt/mqtt.h"

#include <errno.h>
#include <string.h>

#include "util/clock.h"

/* Messages of QoS 2 that are not confirmed: brokers of version 3.1.1 do not say how many they
 * take, and drop others without notice. */
#define OLD_ID_COUNT_MAX 20

/* ---- the numbers of messages ---- */

/* The broker has kept no session. */
static void forget_session(struct mqtt_node *m)
{
	memset(m->out_ids, MQTT_ID_FREE, sizeof(m->out_ids));
	memset(m->in_ids, 0, sizeof(m->in_ids));
	/* Begins at another number than the last process, whose numbers the broker may remember. */
	m->last_id = (uint16_t)clock_now_ns();
}

void mqtt_start_session(struct mqtt_node *m, bool kept)
{
	m->in_flight = 0;
	if (!kept)
		forget_session(m);
	/* The messages with these numbers are sent again. */
	for (unsigned i = 0; i <= UINT16_MAX; i++)
		if (m->out_ids[i])
			m->out_ids[i] |= MQTT_ID_OLD;
}

uint16_t mqtt_take_ids(struct mqtt_node *m, unsigned count)
{
	unsigned id = m->last_id, run = 0;

	for (unsigned i = 0; i < 2 * UINT16_MAX; i++) {
		id = id < UINT16_MAX ? id + 1 : 1;
		run = m->out_ids[id] ? 0 : id == 1 ? 1 : run + 1;
		if (run == count)
			return m->last_id = (uint16_t)id;
	}
	return 0;
}

/* ---- connecting ---- */

static int put_connect(struct mqtt_node *m)
{
	const char *user = m->username;
	bool has_password = m->password || m->password_file;
	char buf[OUTSIDE_SECRET_MAX];
	struct mqtt_connect c = {
		.v5 = m->version, .clean = m->clean_session, .expiry_s = (uint32_t)m->session_expiry_s,
		.keepalive_s = (uint16_t)m->keepalive_s, .id = m->client_id, .user = user,
		.will_topic = m->will.topic, .will = m->will.topic ? m->will.payload : NULL,
		.will_qos = (unsigned)m->will.qos, .will_retain = m->will.retain,
	};
	int ret;

	if (has_password) {
		c.password = outside_secret(m->password, m->password_file, buf, m->outside.why,
					    sizeof(m->outside.why));
		if (!c.password)
			return -EACCES;
	}
	ret = mqtt_put_connect(&m->stream.out, &c);
	explicit_bzero(buf, sizeof(buf));
	return ret;
}

int mqtt_open(struct outside *o)
{
	struct mqtt_node *m = mqtt_of(o);
	uint64_t until_ns = clock_now_ns() + (uint64_t)(o->connect_timeout_s * 1e9);
	int ret = outside_stream_open(o, &m->stream, m->host, (int)m->port, until_ns) ?:
		  outside_stream_start_tls(o, &m->stream, &m->tls, m->host, until_ns) ?:
		  put_connect(m) ?: outside_stream_flush(o, &m->stream);

	m->phase = MQTT_CONNECTING;
	m->skip = 0;
	m->keepalive_ns = (uint64_t)m->keepalive_s * NSEC_PER_SEC;
	m->in.more = false;
	m->sent_ns = m->in.heard_ns = clock_now_ns();
	m->ping_ns = 0;
	if (ret)
		stream_close(&m->stream);
	return ret ?: 1;
}

void mqtt_close(struct outside *o)
{
	struct mqtt_node *m = mqtt_of(o);

	/* Says goodbye, as far as the socket takes it at once. */
	if (m->phase != MQTT_CONNECTING && !mqtt_put_empty(&m->stream.out, MQTT_DISCONNECT))
		stream_flush(&m->stream, NULL);
	if (m->stream.tls)
		m->stream.tls_ops->shut(m->stream.tls);
	stream_close(&m->stream);
	stream_buffer_free(&m->in.b);
}

/* ---- what the broker says ---- */

int mqtt_nonsense(struct mqtt_node *m, const char *what)
{
	return outside_fail(&m->outside, -EPROTO, "the broker %s", what);
}

int mqtt_refused(struct mqtt_node *m, const char *what, uint8_t code)
{
	return outside_fail(&m->outside, -EACCES, "the broker refuses %s: %s", what,
			    mqtt_code_text(code, m->version));
}

/* Takes the limits that the broker announces. */
static int take_limits(struct mqtt_node *m, const struct mqtt_packet *p)
{
	struct outside *o = &m->outside;
	uint64_t keepalive_ns = (uint64_t)p->keepalive_s * NSEC_PER_SEC;

	m->size_max = p->size_max;
	m->in_flight_max = m->version || m->qos < 2 ? p->id_count_max :
			   MAX((unsigned)OLD_ID_COUNT_MAX, m->pub_count);
	if (keepalive_ns)
		m->keepalive_ns = MIN(m->keepalive_ns, keepalive_ns);
	if (!o->node->is_destination)
		return 0;
	if (m->qos > p->qos_max)
		return outside_fail(o, -EINVAL, "the broker takes QoS %u at most, not %d", p->qos_max,
				    (int)m->qos);
	if (m->retain && !p->may_retain)
		return outside_fail(o, -EINVAL, "the broker keeps no messages (retain)");
	if (m->qos && m->pub_count > m->in_flight_max)
		return outside_fail(o, -EINVAL, "the broker takes %u messages at a time, and there are %u topics",
				    m->in_flight_max, m->pub_count);
	return 0;
}

int mqtt_connected(struct mqtt_node *m, const struct mqtt_packet *p)
{
	int ret = p->code ? mqtt_refused(m, "the connection", p->code) : take_limits(m, p);

	if (ret)
		return ret;
	mqtt_start_session(m, p->session && !m->clean_session);
	if (!m->sub_count || !m->outside.node->is_source) {
		m->phase = MQTT_UP;
		outside_is_up(&m->outside);
		return 0;
	}
	m->phase = MQTT_SUBSCRIBING;
	m->sub_id = mqtt_take_ids(m, 1);
	return m->sub_id ? mqtt_put_subscribe(&m->stream.out, m->sub_id, m->sub, m->sub_count,
					      (unsigned)m->qos, m->version) : -EBUSY;
}

int mqtt_subscribed(struct mqtt_node *m, const struct mqtt_packet *p)
{
	if (m->phase != MQTT_SUBSCRIBING || p->id != m->sub_id || p->len != m->sub_count)
		return mqtt_nonsense(m, "confirms what nobody has subscribed");
	for (unsigned i = 0; i < m->sub_count; i++)
		if (p->data[i] >= MQTT_REFUSED)
			return mqtt_refused(m, m->sub[i], p->data[i]);
	m->phase = MQTT_UP;
	outside_is_up(&m->outside);
	return 0;
}
