/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection to the broker, and what libmosquitto tells about it. */
#define LOG_ROOM "gateway/mqtt"
#include "gateway/node/mqtt/mqtt.h"

#include <errno.h>
#include <mqtt_protocol.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"

/* Messages that are taken before others have their turn. */
#define READS_MAX 64
/* The library looks for its keep-alive when it is called. */
#define MISC_NS (NSEC_PER_SEC / 2)

/* ---- what the library tells, from mqtt_turn() ---- */

static void on_log(struct mosquitto *client, void *arg, int level, const char *text)
{
	struct mqtt_node *m = arg;

	if (level == MOSQ_LOG_ERR || level == MOSQ_LOG_WARNING)
		snprintf(m->last_error, sizeof(m->last_error), "%s", text);
}

static int refuse(struct mqtt_node *m, int ret, const char *what, const char *why)
{
	outside_fail(&m->outside, ret, "the broker refuses %s: %s", what, why);
	m->refused = ret;
	return ret;
}

static void on_connect(struct mosquitto *client, void *arg, int code, int flags,
		       const mosquitto_property *properties)
{
	struct mqtt_node *m = arg;
	int rc;

	if (code) {
		refuse(m, -EACCES, "the connection",
		       m->version ? mosquitto_reason_string(code) : mosquitto_connack_string(code));
		return;
	}
	m->subscribed = 0;
	for (unsigned i = 0; i < m->sub_count && m->outside.node->is_source; i++) {
		rc = mosquitto_subscribe(client, NULL, m->sub[i], (int)m->qos);
		if (rc)
			refuse(m, -EIO, m->sub[i], mosquitto_strerror(rc));
	}
	if (!m->sub_count || !m->outside.node->is_source)
		outside_is_up(&m->outside);
}

static void on_subscribe(struct mosquitto *client, void *arg, int mid, int count,
			 const int *granted, const mosquitto_property *properties)
{
	struct mqtt_node *m = arg;

	for (int i = 0; i < count; i++)
		if (granted[i] >= 0x80)
			refuse(m, -EACCES, "a subscription",
			       m->version ? mosquitto_reason_string(granted[i]) : "not allowed");
	m->subscribed++;
	if (!m->refused && m->subscribed == m->sub_count)
		outside_is_up(&m->outside);
}

static void on_disconnect(struct mosquitto *client, void *arg, int code,
			  const mosquitto_property *properties)
{
	struct mqtt_node *m = arg;

	if (!code || m->refused)
		return;
	m->refused = -ECONNRESET;
	/* Of version 5: the broker's own reason. */
	if (code >= 0x80)
		outside_fail(&m->outside, 0, "the broker ends it: %s",
			     mosquitto_reason_string(code));
	else
		outside_fail(&m->outside, 0, "%s%s%s", mosquitto_strerror(code),
			     *m->last_error ? ": " : "", m->last_error);
}

/* A message to several topics has the number of the last of them, and is lost if one refuses it. */
static void reject(struct mqtt_node *m, uint64_t mid, const char *why)
{
	for (unsigned i = 0; i < m->pub_count; i++) {
		outside_reject(&m->outside, mid, why);
		mid = mid == UINT16_MAX ? 1 : mid + 1;
	}
}

static void on_publish(struct mosquitto *client, void *arg, int mid, int code,
		       const mosquitto_property *properties)
{
	struct mqtt_node *m = arg;

	if (!m->qos)
		return;
	if (code == MQTT_RC_NO_MATCHING_SUBSCRIBERS)
		node_figure_add(m->outside.node, MQTT_UNHEARD, 1);
	if (code >= 0x80)
		reject(m, (uint64_t)mid, mosquitto_reason_string(code));
	else
		outside_confirm(&m->outside, (uint64_t)mid, false);
}

static void on_message(struct mosquitto *client, void *arg, const struct mosquitto_message *msg,
		       const mosquitto_property *properties)
{
	struct mqtt_node *m = arg;

	m->received++;
	if (msg->payloadlen > m->in_message_max) {
		fault_note(&m->outside.faults, FAULT_TRUNCATED, 1,
			   "a message has %d bytes, in.max_message is %lld; it is not read",
			   msg->payloadlen, (long long)m->in_message_max);
		return;
	}
	if (msg->retain)
		node_figure_add(m->outside.node, MQTT_RETAINED, 1);
	if (msg->payloadlen > 0 && !(msg->retain && m->skip_retained))
		outside_received(&m->outside, msg->payload, (size_t)msg->payloadlen);
}

/* ---- connecting ---- */

static int set_tls(struct mqtt_node *m)
{
	const struct outside_tls *t = &m->tls;
	char version[8];
	int rc;

	if (!t->enabled)
		return 0;
	snprintf(version, sizeof(version), "tlsv%s", t->version ? t->version : "1.2");
	rc = t->ca || t->ca_path ? 0 :
	     mosquitto_int_option(m->client, MOSQ_OPT_TLS_USE_OS_CERTS, 1);
	if (!rc)
		rc = mosquitto_tls_set(m->client, t->ca, t->ca_path, t->cert, t->key, NULL);
	if (!rc)
		rc = mosquitto_tls_opts_set(m->client, t->verify, version, t->ciphers);
	if (!rc)
		rc = mosquitto_tls_insecure_set(m->client, !t->verify_host);
	return rc ? outside_fail(&m->outside, -EINVAL, "ssl: %s", mosquitto_strerror(rc)) : 0;
}

static int make_client(struct mqtt_node *m)
{
	int rc;

	m->client = mosquitto_new(m->client_id, m->clean_session, m);
	if (!m->client)
		return outside_fail(&m->outside, -errno, "%s", strerror(errno));
	mosquitto_int_option(m->client, MOSQ_OPT_PROTOCOL_VERSION,
			     m->version ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311);
	mosquitto_int_option(m->client, MOSQ_OPT_TCP_NODELAY, 1);
	/* Else the library ends connections whose broker sends more than 20 at a time. */
	mosquitto_int_option(m->client, MOSQ_OPT_RECEIVE_MAXIMUM, UINT16_MAX);
	mosquitto_log_callback_set(m->client, on_log);
	mosquitto_connect_v5_callback_set(m->client, on_connect);
	mosquitto_disconnect_v5_callback_set(m->client, on_disconnect);
	mosquitto_subscribe_v5_callback_set(m->client, on_subscribe);
	mosquitto_publish_v5_callback_set(m->client, on_publish);
	mosquitto_message_v5_callback_set(m->client, on_message);
	if (m->will.topic) {
		rc = mosquitto_will_set(m->client, m->will.topic, (int)strlen(m->will.payload),
					m->will.payload, (int)m->will.qos, m->will.retain);
		if (rc)
			return outside_fail(&m->outside, -EINVAL, "will: %s",
					    mosquitto_strerror(rc));
	}
	return set_tls(m);
}

static int set_password(struct mqtt_node *m)
{
	char buf[OUTSIDE_SECRET_MAX];
	const char *password = NULL;
	int rc;

	if (!m->username)
		return 0;
	if (m->password || m->password_file) {
		password = outside_secret(m->password, m->password_file, buf, m->outside.why,
					  sizeof(m->outside.why));
		if (!password)
			return -EACCES;
	}
	rc = mosquitto_username_pw_set(m->client, m->username, password);
	explicit_bzero(buf, sizeof(buf));
	return rc ? outside_fail(&m->outside, -EINVAL, "%s", mosquitto_strerror(rc)) : 0;
}

/* Can the broker be reached? The library has no call that connects with the properties of a
 * session and gives up in time. */
static int probe(struct mqtt_node *m)
{
	uint64_t limit_ns = (uint64_t)(m->outside.connect_timeout_s * 1e9);
	int fd = outside_dial(&m->outside, m->host, (int)m->port, clock_now_ns() + limit_ns);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int connect_session(struct mqtt_node *m)
{
	mosquitto_property *properties = NULL;
	int rc = mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL,
					      (uint32_t)m->session_expiry_s);

	if (!rc)
		rc = mosquitto_connect_bind_v5(m->client, m->host, (int)m->port,
					       (int)m->keepalive_s, NULL, properties);
	mosquitto_property_free_all(&properties);
	return rc;
}

static int connect_client(struct mqtt_node *m)
{
	int rc, error;

	if (m->version && !m->clean_session) {
		rc = probe(m);
		if (rc)
			return rc;
		rc = connect_session(m);
	} else if (m->connected_once) {
		rc = mosquitto_reconnect_async(m->client);
	} else {
		rc = mosquitto_connect_async(m->client, m->host, (int)m->port,
					     (int)m->keepalive_s);
	}
	error = errno;
	if (!rc) {
		m->connected_once = true;
		return 1;
	}
	return outside_fail(&m->outside, -EHOSTUNREACH, "%s%s%s",
			    rc == MOSQ_ERR_ERRNO ? strerror(error) : mosquitto_strerror(rc),
			    *m->last_error ? ": " : "", m->last_error);
}

int mqtt_open(struct outside *o)
{
	struct mqtt_node *m = mqtt_of(o);
	int ret = m->client ? 0 : make_client(m);

	m->refused = 0;
	m->last_error[0] = 0;
	ret = ret ?: set_password(m) ?: connect_client(m);
	/* With the client go messages that were not confirmed: not without need. */
	if (ret < 0 && !m->connected_once)
		mqtt_forget(m);
	return ret;
}

void mqtt_close(struct outside *o)
{
	struct mqtt_node *m = mqtt_of(o);

	mosquitto_disconnect(m->client);
	/* What the socket takes at once. */
	for (int i = 0; i < READS_MAX && mosquitto_want_write(m->client); i++)
		if (mosquitto_loop_write(m->client, 1))
			break;
	/* In a new session, old states would be errors of the protocol. */
	if (m->clean_session)
		mqtt_forget(m);
}

void mqtt_forget(struct mqtt_node *m)
{
	if (m->client)
		mosquitto_destroy(m->client);
	m->client = NULL;
	m->connected_once = false;
}

/* ---- while it lasts ---- */

static int check(struct mqtt_node *m, int rc)
{
	int error = errno;

	if (m->refused)
		return m->refused;
	if (!rc)
		return 0;
	return outside_fail(&m->outside, -ECONNRESET, "%s%s%s",
			    rc == MOSQ_ERR_ERRNO ? strerror(error) : mosquitto_strerror(rc),
			    *m->last_error ? ": " : "", m->last_error);
}

int mqtt_turn(struct outside *o)
{
	struct mqtt_node *m = mqtt_of(o);
	int rc = mosquitto_loop_misc(m->client);

	for (unsigned i = 0; i < READS_MAX && !rc && !m->refused && !outside_is_enough(o); i++) {
		unsigned before = m->received;

		rc = mosquitto_loop_read(m->client, 1);
		if (m->received == before)
			break;
	}
	if (!rc && mosquitto_want_write(m->client))
		rc = mosquitto_loop_write(m->client, 1);
	return check(m, rc);
}

unsigned mqtt_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct mqtt_node *m = mqtt_of(o);
	int fd = mosquitto_socket(m->client);

	*until_ns = clock_now_ns() + MISC_NS;
	if (fd < 0)
		return 0;
	fds[0] = (struct pollfd){
		.fd = fd,
		.events = (short)(POLLIN | (mosquitto_want_write(m->client) ? POLLOUT : 0)),
	};
	return 1;
}
