/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `mqtt`: samples in messages of an MQTT broker, versions 3.1.1 and 5. Connecting,
 * waiting and accounting are those of gateway/outside.
 */
#define LOG_ROOM "gateway/mqtt"
#include "gateway/node/mqtt/mqtt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/container_of.h"

extern const struct node_type node_mqtt;

static const char *const versions[] = { "3.1.1", "5", NULL };

#define OFFSET(field) offsetof(struct mqtt_node, field)

static const struct config_key will_keys[] = {
	{ "topic", CONFIG_STRING, OFFSET(will.topic), .required = true, .help = "Where to" },
	{ "payload", CONFIG_STRING, OFFSET(will.payload), "", .help = "The message" },
	{ "qos", CONFIG_INT, OFFSET(will.qos), "0", .min = 0, .max = 2, .help = "As of the node" },
	{ "retain", CONFIG_BOOL, OFFSET(will.retain), "false", .help = "As of the node" },
};

static const struct config_key mqtt_keys[] = {
	{ "host", CONFIG_STRING, OFFSET(host), .required = true,
	  .help = "Name or address of the broker" },
	{ "port", CONFIG_INT, OFFSET(port), "0", .min = 0, .max = 65535,
	  .help = "TCP port; 0: 1883, or 8883 with ssl" },
	{ "version", CONFIG_ENUM, OFFSET(version), "3.1.1", .names = versions,
	  .help = "Of the protocol" },
	{ "qos", CONFIG_INT, OFFSET(qos), "1", .min = 0, .max = 2,
	  .help = "0: at most once, 1: at least once, 2: exactly once; for both directions" },
	{ "retain", CONFIG_BOOL, OFFSET(retain), "false",
	  .help = "The broker keeps the last message for those who subscribe later" },
	{ "keepalive", CONFIG_INT, OFFSET(keepalive_s), "5", .min = 5, .max = 65535,
	  .help = "Seconds of silence after which both sides ask whether the other one is there" },
	{ "username", CONFIG_STRING, OFFSET(username), .help = "Name of the user" },
	{ "password", CONFIG_STRING, OFFSET(password),
	  .help = "Password; better password_file or ${NAME}" },
	{ "password_file", CONFIG_STRING, OFFSET(password_file),
	  .help = "File whose first line is the password" },
	{ "client_id", CONFIG_STRING, OFFSET(client_id),
	  .help = "Name of the client, unique at the broker; without it a new one each time" },
	{ "clean_session", CONFIG_BOOL, OFFSET(clean_session), "true",
	  .help = "false: the broker keeps messages while the node is away; needs a client_id" },
	{ "session_expiry", CONFIG_INT, OFFSET(session_expiry_s), "3600", .min = 1,
	  .max = UINT32_MAX,
	  .help = "Seconds that the broker keeps the session (version 5, clean_session = false)" },
	{ "will", CONFIG_JSON, OFFSET(will_cfg), .group = will_keys, .group_count = ARRAY_SIZE(will_keys),
	  .help = "What the broker publishes when the node is lost: { topic, payload, qos, retain }" },
	OUTSIDE_TLS_KEY(OFFSET(ssl)),
	OUTSIDE_KEYS("json"),
};

static const struct config_key mqtt_in_keys[] = {
	{ "subscribe", CONFIG_JSON, OFFSET(subscribe), .form = CONFIG_TEXTS,
	  .help = "Topic, or list of topics, to read from; + and # stand for any" },
	{ "skip_retained", CONFIG_BOOL, OFFSET(skip_retained), "false",
	  .help = "Messages that the broker kept from earlier are not read" },
	{ "max_message", CONFIG_INT, OFFSET(in_message_max), "1048576", .min = 64,
	  .max = 1 << 28, .help = "Bytes of a message, at most" },
	OUTSIDE_IN_KEYS,
};

static const struct config_key mqtt_out_keys[] = {
	{ "publish", CONFIG_JSON, OFFSET(publish), .form = CONFIG_TEXTS,
	  .help = "Topic, or list of topics, to write to" },
	OUTSIDE_OUT_KEYS,
};

/* ---- settings ---- */

/* Levels between slashes; `+` for one and `#` for the rest where `wildcards`. */
static bool is_topic(const char *s, bool wildcards)
{
	if (!*s || strlen(s) > MQTT_TEXT_MAX)
		return false;
	for (const char *p = s; *p; p++) {
		bool is_level = (p == s || p[-1] == '/') && (!p[1] || p[1] == '/');

		if ((*p == '+' && !(wildcards && is_level)) ||
		    (*p == '#' && !(wildcards && is_level && !p[1])))
			return false;
	}
	return true;
}

/* MQTT has a length of 16 bits for it. */
static int check_length(struct config *c, const json_t *at, const char *key, const char *text)
{
	if (!text || strlen(text) <= MQTT_TEXT_MAX)
		return 0;
	config_fail(c, at, key, "is longer than %d bytes", MQTT_TEXT_MAX);
	return -EINVAL;
}

static int parse_topics(struct config *c, const json_t *at, const char *key, const json_t *given,
			bool wildcards, const char **out, unsigned *count)
{
	int ret = outside_texts(c, at, key, given, "a topic", out, MQTT_TOPICS_MAX, count);

	for (unsigned i = 0; i < *count; i++)
		if (!is_topic(out[i], wildcards)) {
			config_fail(c, at, key, "'%.100s' is no topic", out[i]);
			ret = -EINVAL;
		}
	return ret;
}

static int parse_will(struct mqtt_node *m, struct config *c, json_t *cfg)
{
	if (!m->will_cfg || json_is_null(m->will_cfg))
		return 0;
	if (!json_is_object(m->will_cfg)) {
		config_fail(c, cfg, "will", "expected a group");
		return -EINVAL;
	}
	if (config_unpack(c, m->will_cfg, will_keys, ARRAY_SIZE(will_keys), m, NULL, 0))
		return -EINVAL;
	if (is_topic(m->will.topic, false))
		return check_length(c, m->will_cfg, "payload", m->will.payload);
	config_fail(c, m->will_cfg, "topic", "'%.100s' is no topic", m->will.topic);
	return -EINVAL;
}

static int parse_access(struct mqtt_node *m, struct config *c, json_t *cfg)
{
	int ret = outside_secret_check(c, cfg, "password", "password_file") ?:
		  check_length(c, cfg, "username", m->username) ?:
		  check_length(c, cfg, "client_id", m->client_id);

	if (!m->username && (m->password || m->password_file)) {
		config_fail(c, cfg, m->password ? "password" : "password_file",
			    "is given together with username");
		ret = -EINVAL;
	}
	if (!m->clean_session && !m->client_id) {
		config_fail(c, cfg, "clean_session",
			    "the broker knows a session by its client_id, which is missing");
		ret = -EINVAL;
	}
	if (outside_tls_parse(&m->tls, c, cfg, false))
		return -EINVAL;
	if (!m->tls.enabled && (m->password || m->password_file))
		outside_warn_plain(c, cfg, m->password ? "password" : "password_file", m->host);
	return outside_tls_find(&m->tls, c, cfg) ?: ret;
}

static int mqtt_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct mqtt_node *m = n->private_data;
	const json_t *in = json_object_get(cfg, "in"), *out = json_object_get(cfg, "out");
	int ret = outside_parse(n, c, cfg, "json");

	ret = parse_topics(c, in, "subscribe", m->subscribe, true, m->sub, &m->sub_count) ?: ret;
	ret = parse_topics(c, out, "publish", m->publish, false, m->pub, &m->pub_count) ?: ret;
	ret = parse_will(m, c, cfg) ?: ret;
	ret = parse_access(m, c, cfg) ?: ret;
	if (!m->port)
		m->port = m->tls.enabled ? 8883 : 1883;
	snprintf(m->target, sizeof(m->target), "mqtt%s://%.250s:%d", m->tls.enabled ? "s" : "",
		 m->host, (int)m->port);
	outside_set_target(&m->outside, m->target);
	return ret;
}

static int mqtt_check(struct node *n, struct config *c, json_t *cfg)
{
	struct mqtt_node *m = n->private_data;
	int ret = 0;

	if (n->is_source && !m->sub_count) {
		config_fail(c, cfg, NULL, "a path reads the node, but in.subscribe is missing");
		ret = -EINVAL;
	}
	if (n->is_destination && !m->pub_count) {
		config_fail(c, cfg, NULL, "a path writes the node, but out.publish is missing");
		ret = -EINVAL;
	}
	return ret;
}

static const struct outside_ops mqtt_ops = {
	.open = mqtt_open,
	.close = mqtt_close,
	.send = mqtt_send,
	.turn = mqtt_turn,
	.wait = mqtt_wait,
};

static int mqtt_init(struct node *n)
{
	struct mqtt_node *m = n->private_data;

	outside_init(n, &mqtt_ops);
	m->stream.fd = -1;
	return 0;
}

static int mqtt_start(struct node *n)
{
	mqtt_start_session(n->private_data, false);
	return outside_start(n);
}

static int mqtt_reverse(struct node *n)
{
	struct mqtt_node *m = n->private_data;
	const char *topics[MQTT_TOPICS_MAX];
	unsigned count = m->sub_count;

	memcpy(topics, m->sub, sizeof(topics));
	memcpy(m->sub, m->pub, sizeof(topics));
	memcpy(m->pub, topics, sizeof(topics));
	m->sub_count = m->pub_count;
	m->pub_count = count;
	return 0;
}

static void mqtt_print(struct node *n, char *buf, size_t size)
{
	struct mqtt_node *m = n->private_data;

	snprintf(buf, size, "%s, version %s, QoS %d%s%s%s%s", m->target, versions[m->version],
		 (int)m->qos, m->sub_count ? ", from " : "", m->sub_count ? m->sub[0] : "",
		 m->pub_count ? ", to " : "", m->pub_count ? m->pub[0] : "");
}

static const struct node_figure mqtt_figures[] = {
	OUTSIDE_FIGURE_TABLE,
	[FAULT_TRUNCATED] = { "oversized", "Messages longer than in.max_message", NODE_COUNTER },
	[MQTT_RETAINED] = { "retained", "Messages that the broker had kept from earlier",
			    NODE_COUNTER },
	[MQTT_UNHEARD] = { "unheard", "Messages for which the broker had no reader (version 5)",
			   NODE_COUNTER },
};

const struct node_type node_mqtt = {
	.name = "mqtt",
	.description = "Samples in messages of an MQTT broker",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_STOP_WAITS,
	.size = sizeof(struct mqtt_node),
	.keys = mqtt_keys,
	.key_count = ARRAY_SIZE(mqtt_keys),
	.in_keys = mqtt_in_keys,
	.in_key_count = ARRAY_SIZE(mqtt_in_keys),
	.out_keys = mqtt_out_keys,
	.out_key_count = ARRAY_SIZE(mqtt_out_keys),
	.figures = mqtt_figures,
	.figure_count = ARRAY_SIZE(mqtt_figures),
	OUTSIDE_CALLBACKS,
	.init = mqtt_init,
	.parse = mqtt_parse,
	.check = mqtt_check,
	.start = mqtt_start,
	.stop = outside_stop,
	.reverse = mqtt_reverse,
	.print = mqtt_print,
};
