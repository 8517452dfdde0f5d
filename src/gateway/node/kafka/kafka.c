/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `kafka`: samples in messages of topics of Apache Kafka, by librdkafka. Connecting,
 * waiting and accounting are those of gateway/outside.
 */
#define LOG_ROOM "gateway/kafka"
#include "gateway/node/kafka/kafka.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/log.h"

extern const struct node_type node_kafka;

#define TOPIC_LEN_MAX 249


#define OFFSET(field) offsetof(struct kafka_node, field)

#define TOPIC "{'type': 'string', 'pattern': '^[A-Za-z0-9._^-]'}"
#define TOPICS "'anyOf': [{'type': 'null'}, " TOPIC ", {'type': 'array', 'items': {'type': 'string', " \
	"'pattern': '^([A-Za-z0-9._-]+|[$^].*)$'}}]"
#define PROPERTIES "'type': ['object', 'null'], 'additionalProperties': {'type': " \
	"['string', 'integer', 'boolean', 'object']}"

static const struct config_key sasl_keys[] = {
	{ "mechanisms", CONFIG_STRING, OFFSET(sasl.mechanisms), .required = true,
	  .help = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI or OAUTHBEARER" },
	{ "username", CONFIG_STRING, OFFSET(sasl.username), .help = "Name of the user" },
	{ "password", CONFIG_STRING, OFFSET(sasl.password),
	  .help = "Password; better password_file or ${NAME}" },
	{ "password_file", CONFIG_STRING, OFFSET(sasl.password_file),
	  .help = "File whose first line is the password" },
};

static const struct config_key kafka_keys[] = {
	{ "server", CONFIG_STRING, OFFSET(server), .required = true,
	  .help = "Brokers to begin with: host:port, or several with commas" },
	{ "protocol", CONFIG_ENUM, OFFSET(protocol), "PLAINTEXT", .names = kafka_protocols,
	  .help = "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; without it, ssl and sasl decide" },
	{ "client_id", CONFIG_STRING, OFFSET(client_id), "busbar",
	  .help = "Name of the client, which brokers show and apply quotas to" },
	{ "timeout", CONFIG_REAL, OFFSET(timeout_s), .min = 0.01, .max = 3600,
	  .help = "The same as connect_timeout" },
	{ "sasl", CONFIG_JSON, OFFSET(sasl_cfg), .group = sasl_keys, .group_count = ARRAY_SIZE(sasl_keys),
	  .help = "Who the node is: { mechanisms, username, password, password_file }" },
	{ "properties", CONFIG_JSON, OFFSET(properties), .form = PROPERTIES,
	  .help = "Other properties of librdkafka, with _ or groups in place of dots" },
	OUTSIDE_TLS_KEY(OFFSET(ssl)),
	OUTSIDE_KEYS("json"),
};

static const struct config_key kafka_in_keys[] = {
	{ "consume", CONFIG_JSON, OFFSET(consume), .form = TOPICS,
	  .help = "Topic, or list of topics, to read from; with group_id also ^patterns" },
	{ "group_id", CONFIG_STRING, OFFSET(group_id),
	  .help = "Group whose members share the partitions, and go on where it stopped" },
	{ "auto_offset_reset", CONFIG_ENUM, OFFSET(reset), "latest", .names = kafka_resets,
	  .help = "Where to begin without a committed offset: latest or earliest" },
	{ "properties", CONFIG_JSON, OFFSET(in_properties), .form = PROPERTIES,
	  .help = "Properties of librdkafka for the consumer alone" },
	OUTSIDE_IN_KEYS,
};

static const struct config_key kafka_out_keys[] = {
	{ "produce", CONFIG_STRING, OFFSET(produce), .help = "Topic to write to" },
	{ "key", CONFIG_STRING, OFFSET(key),
	  .help = "Key of the messages; those with the same one go to the same partition" },
	{ "partition", CONFIG_INT, OFFSET(partition), "-1", .min = -1, .max = INT32_MAX,
	  .help = "Number of the partition; -1: the library chooses, by the key or at random" },
	{ "acks", CONFIG_ENUM, OFFSET(acks), "all", .names = kafka_acks,
	  .help = "Who has a message when it counts as confirmed: all replicas, 1: the leader, 0: the socket" },
	{ "idempotence", CONFIG_BOOL, OFFSET(idempotence), "false",
	  .help = "The broker leaves out repeated messages and keeps the order" },
	{ "properties", CONFIG_JSON, OFFSET(out_properties), .form = PROPERTIES,
	  .help = "Properties of librdkafka for the producer alone" },
	OUTSIDE_OUT_KEYS,
};

/* ---- settings ---- */

static bool is_topic(const char *name)
{
	size_t len = strlen(name);

	if (!len || len > TOPIC_LEN_MAX || !strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("._-", *name))
			return false;
	return true;
}

static int parse_topics(struct kafka_node *m, struct config *c, const json_t *in)
{
	int ret = outside_texts(c, in, "consume", m->consume, "a topic", m->topics,
				KAFKA_TOPICS_MAX, &m->topic_count);

	for (unsigned i = 0; i < m->topic_count; i++) {
		const char *topic = m->topics[i];

		if (*topic == '^' && !m->group_id) {
			config_fail(c, in, "consume", "a pattern needs a group_id");
			ret = -EINVAL;
		} else if (*topic != '^' && !is_topic(topic)) {
			config_fail(c, in, "consume", "'%.100s' is no topic", topic);
			ret = -EINVAL;
		}
	}
	return ret;
}

static int check_out(struct kafka_node *m, struct config *c, const json_t *out)
{
	int ret = 0;

	if (m->produce && !is_topic(m->produce)) {
		config_fail(c, out, "produce", "'%.100s' is no topic", m->produce);
		ret = -EINVAL;
	}
	if (m->idempotence && m->acks) {
		config_fail(c, out, "idempotence", "needs acks = \"all\"");
		ret = -EINVAL;
	}
	if (m->key && m->partition >= 0) {
		config_fail(c, out, "key", "the partition is given by its number");
		ret = -EINVAL;
	}
	return ret;
}

static int parse_sasl(struct kafka_node *m, struct config *c, json_t *cfg)
{
	if (!m->sasl_cfg || json_is_null(m->sasl_cfg))
		return 0;
	if (!json_is_object(m->sasl_cfg)) {
		config_fail(c, cfg, "sasl", "expected a group");
		return -EINVAL;
	}
	if (config_unpack(c, m->sasl_cfg, sasl_keys, ARRAY_SIZE(sasl_keys), m, NULL, 0))
		return -EINVAL;
	if ((!strcmp(m->sasl.mechanisms, "PLAIN") || !strncmp(m->sasl.mechanisms, "SCRAM", 5)) &&
	    (!m->sasl.username || !(m->sasl.password || m->sasl.password_file))) {
		config_fail(c, m->sasl_cfg, "mechanisms", "%s needs username and password",
			    m->sasl.mechanisms);
		return -EINVAL;
	}
	if (!m->sasl.username && (m->sasl.password || m->sasl.password_file)) {
		config_fail(c, m->sasl_cfg, m->sasl.password ? "password" : "password_file",
			    "is given together with username");
		return -EINVAL;
	}
	return outside_secret_check(c, m->sasl_cfg, "password", "password_file");
}

/* What the library has no property for. */
static int check_tls(struct kafka_node *m, struct config *c, json_t *cfg)
{
	const struct outside_tls *t = &m->tls;
	const json_t *ssl = json_object_get(cfg, "ssl");
	int ret = 0;

	if (t->server_name) {
		config_fail(c, ssl, "server_name",
			    "librdkafka compares a certificate with the address of its broker only");
		ret = -EINVAL;
	}
	if (t->version) {
		config_fail(c, ssl, "version",
			    "librdkafka leaves the version to OpenSSL (MinProtocol in openssl.cnf)");
		ret = -EINVAL;
	}
	if (t->ca && t->ca_path) {
		config_fail(c, ssl, "ca_path", "librdkafka takes either ca or ca_path");
		ret = -EINVAL;
	}
	return ret;
}

/* PLAIN alone sends the password itself. The first broker stands for all. */
static void warn_plain(const struct kafka_node *m, struct config *c)
{
	const char *from = strstr(m->server, "://");
	char host[256];

	if (m->protocol != KAFKA_SASL_PLAINTEXT || strcmp(m->sasl.mechanisms, "PLAIN"))
		return;
	from = from ? from + 3 : m->server;
	snprintf(host, sizeof(host), "%.*s",
		 (int)(*from == '[' ? strcspn(from, "]") + 1 : strcspn(from, ":,")), from);
	outside_warn_plain(c, m->sasl_cfg, m->sasl.password ? "password" : "password_file", host);
}

/* `protocol` and the groups have to say the same. */
static int parse_protocol(struct kafka_node *m, struct config *c, json_t *cfg)
{
	bool given = json_object_get(cfg, "protocol");

	if (outside_tls_parse(&m->tls, c, cfg, given && kafka_has_tls(m)) | parse_sasl(m, c, cfg))
		return -EINVAL;
	if (!given)
		m->protocol = m->sasl.mechanisms ?
				      (m->tls.enabled ? KAFKA_SASL_SSL : KAFKA_SASL_PLAINTEXT) :
				      (m->tls.enabled ? KAFKA_SSL : KAFKA_PLAINTEXT);
	if (kafka_has_tls(m) != m->tls.enabled) {
		config_fail(c, cfg, "protocol", "%s, but ssl is %s",
			    kafka_protocols[m->protocol], m->tls.enabled ? "given" : "not enabled");
		return -EINVAL;
	}
	if (kafka_has_sasl(m) != (m->sasl.mechanisms != NULL)) {
		config_fail(c, cfg, "protocol", "%s, but sasl is %s",
			    kafka_protocols[m->protocol], m->sasl.mechanisms ? "given" : "missing");
		return -EINVAL;
	}
	warn_plain(m, c);
	return check_tls(m, c, cfg);
}

static int parse_properties(struct kafka_node *m, struct config *c, json_t *cfg)
{
	const json_t *in = json_object_get(cfg, "in"), *out = json_object_get(cfg, "out");
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	int ret = kafka_properties(conf, c, cfg, "properties", m->properties);

	ret = kafka_properties(conf, c, in, "properties", m->in_properties) ?: ret;
	ret = kafka_properties(conf, c, out, "properties", m->out_properties) ?: ret;
	rd_kafka_conf_destroy(conf);
	return ret;
}

static int kafka_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct kafka_node *m = n->private_data;
	int ret = outside_parse(n, c, cfg, "json");

	ret = parse_topics(m, c, json_object_get(cfg, "in")) ?: ret;
	ret = check_out(m, c, json_object_get(cfg, "out")) ?: ret;
	ret = parse_protocol(m, c, cfg) ?: ret;
	ret = parse_properties(m, c, cfg) ?: ret;
	if (m->group_id && !*m->group_id) {
		config_fail(c, json_object_get(cfg, "in"), "group_id", "expected a name");
		ret = -EINVAL;
	}
	if (m->timeout_s && json_object_get(cfg, "connect_timeout")) {
		config_fail(c, cfg, "timeout", "is another name of connect_timeout");
		ret = -EINVAL;
	}
	if (m->timeout_s)
		m->outside.connect_timeout_s = m->timeout_s;
	snprintf(m->target, sizeof(m->target), "kafka%s://%.250s", kafka_has_tls(m) ? "s" : "",
		 m->server);
	outside_set_target(&m->outside, m->target);
	return ret;
}

static int kafka_check(struct node *n, struct config *c, json_t *cfg)
{
	struct kafka_node *m = n->private_data;
	int ret = 0;

	if (n->is_source && !m->topic_count) {
		config_fail(c, cfg, NULL, "a path reads the node, but in.consume is missing");
		ret = -EINVAL;
	}
	if (n->is_destination && !m->produce) {
		config_fail(c, cfg, NULL, "a path writes the node, but out.produce is missing");
		ret = -EINVAL;
	}
	return ret;
}

/* ---- messages ---- */

static int refuse_message(struct kafka_node *m, rd_kafka_resp_err_t err, size_t len)
{
	const char *why = rd_kafka_err2str(err);

	switch (err) {
	case RD_KAFKA_RESP_ERR__QUEUE_FULL:
		return -EAGAIN;
	case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
		return outside_fail(&m->outside, -EMSGSIZE, "a message of %zu bytes: %s", len, why);
	case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
	case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
		return outside_fail(&m->outside, -EBADMSG, "%s: %s", m->produce, why);
	default:
		return outside_fail(&m->outside, -EIO, "%s", why);
	}
}

static int kafka_send(struct outside *o, struct outbox_message *msg)
{
	struct kafka_node *m = kafka_of(o);

	msg->tag = outside_new_tag(o);
	if (rd_kafka_produce(m->topic, (int32_t)m->partition, RD_KAFKA_MSG_F_COPY, (void *)msg->data,
			     msg->len, m->key, m->key ? strlen(m->key) : 0,
			     (void *)(uintptr_t)msg->tag))
		return refuse_message(m, rd_kafka_last_error(), msg->len);
	return OUTSIDE_UNCONFIRMED;
}

static const struct outside_ops kafka_ops = {
	.flags = OUTSIDE_REPEATS,
	.open = kafka_open,
	.close = kafka_close,
	.send = kafka_send,
	.turn = kafka_turn,
	.wait = kafka_wait,
};

static const struct outside_ops kafka_again_ops = {
	.open = kafka_open,
	.close = kafka_close,
	.send = kafka_send,
	.turn = kafka_turn,
	.wait = kafka_wait,
};

static int kafka_init(struct node *n)
{
	struct kafka_node *m = n->private_data;

	outside_init(n, &kafka_ops);
	m->ops = &kafka_ops;
	m->again_ops = &kafka_again_ops;
	m->event_fd = -1;
	return 0;
}

static int kafka_start(struct node *n)
{
	struct kafka_node *m = n->private_data;
	int ret;

	m->more = m->assigned = m->subscribed = m->disturbed = m->fatal = m->silent = false;
	m->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (m->event_fd < 0) {
		ret = -errno;
		log_error("node %s: %s", n->name, strerror(-ret));
		return ret;
	}
	ret = outside_start(n);
	if (ret) {
		close(m->event_fd);
		m->event_fd = -1;
	}
	return ret;
}

static int kafka_stop(struct node *n)
{
	struct kafka_node *m = n->private_data;

	outside_stop(n);
	/* Not while its thread hangs in the library. */
	if (m->outside.has_thread)
		return 0;
	/* Those of a node that was not connected. */
	kafka_end_producer(m);
	kafka_end_consumer(m, false);
	if (m->event_fd >= 0)
		close(m->event_fd);
	m->event_fd = -1;
	return 0;
}

static int kafka_reverse(struct node *n)
{
	struct kafka_node *m = n->private_data;
	const char *produce = m->produce;

	/* It writes to one topic. */
	if (m->topic_count > 1)
		return -ENOTSUP;
	m->produce = m->topic_count ? m->topics[0] : NULL;
	m->topic_count = produce ? 1 : 0;
	m->topics[0] = produce;
	return 0;
}

static void kafka_print(struct node *n, char *buf, size_t size)
{
	struct kafka_node *m = n->private_data;

	snprintf(buf, size, "%s, %s%s%s%s%s%s%s", m->target, kafka_protocols[m->protocol],
		 m->topic_count ? ", from " : "", m->topic_count ? m->topics[0] : "",
		 m->group_id ? " as one of " : "", m->group_id ? m->group_id : "",
		 m->produce ? ", to " : "", m->produce ? m->produce : "");
}

static const struct node_figure kafka_figures[] = {
	OUTSIDE_FIGURE_TABLE,
	[KAFKA_PARTITIONS] = { "partitions", "Partitions that the node reads", NODE_GAUGE },
	[KAFKA_ASSIGNMENTS] = { "assignments", "How often the node was given partitions to read",
				NODE_COUNTER },
};

const struct node_type node_kafka = {
	.name = "kafka",
	.description = "Samples in messages of topics of Apache Kafka",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_STOP_WAITS,
	.size = sizeof(struct kafka_node),
	.keys = kafka_keys,
	.key_count = ARRAY_SIZE(kafka_keys),
	.in_keys = kafka_in_keys,
	.in_key_count = ARRAY_SIZE(kafka_in_keys),
	.out_keys = kafka_out_keys,
	.out_key_count = ARRAY_SIZE(kafka_out_keys),
	.figures = kafka_figures,
	.figure_count = ARRAY_SIZE(kafka_figures),
	OUTSIDE_CALLBACKS,
	.init = kafka_init,
	.parse = kafka_parse,
	.check = kafka_check,
	.start = kafka_start,
	.stop = kafka_stop,
	.reverse = kafka_reverse,
	.print = kafka_print,
};
