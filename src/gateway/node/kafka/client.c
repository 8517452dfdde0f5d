/* SPDX-License-Identifier: BSD-2-Clause */
/* The clients of librdkafka: their properties, their start and their end. */
#define LOG_ROOM "gateway/kafka"
#include "gateway/node/kafka/kafka.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/ending.h"
#include "gateway/base/thread.h"
#include "gateway/config/secret.h"
#include "util/clock.h"
#include "util/log.h"

/* What consumers keep before the node takes it. */
#define PREFETCH_KBYTES "16384"
/* For leaving a group, while the node stops. */
#define LEAVE_NS (300 * UINT64_C(1000000))
/* For the end of a client. */
#define END_MS 500
#define MARGIN_MS 50
#define NAME_MAX_LEN 128

const char *const kafka_protocols[] = { "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", NULL };
const char *const kafka_acks[] = { "all", "1", "0", NULL };
const char *const kafka_resets[] = { "latest", "earliest", NULL };

/* ---- properties that the user gives ---- */

/* Properties that have a key of the node, or that the node needs as they are. */
static const struct {
	const char *property, *instead;
} own[] = {
	{ "bootstrap.servers", "server" },
	{ "metadata.broker.list", "server" },
	{ "client.id", "client_id" },
	{ "security.protocol", "protocol" },
	{ "ssl.ca.location", "ssl.ca" },
	{ "ssl.certificate.location", "ssl.cert" },
	{ "ssl.key.location", "ssl.key" },
	{ "ssl.cipher.suites", "ssl.ciphers" },
	{ "enable.ssl.certificate.verification", "ssl.verify" },
	{ "ssl.endpoint.identification.algorithm", "ssl.verify_host" },
	{ "sasl.mechanisms", "sasl.mechanisms" },
	{ "sasl.mechanism", "sasl.mechanisms" },
	{ "sasl.username", "sasl.username" },
	{ "sasl.password", "sasl.password" },
	{ "group.id", "in.group_id" },
	{ "auto.offset.reset", "in.auto_offset_reset" },
	{ "acks", "out.acks" },
	{ "request.required.acks", "out.acks" },
	{ "enable.idempotence", "out.idempotence" },
	{ "reconnect.backoff.max.ms", "reconnect_interval" },
	{ "enable.auto.commit", NULL },
	{ "auto.commit.enable", NULL },
	{ "enable.auto.offset.store", NULL },
	{ "enable.partition.eof", NULL },
	{ "transactional.id", NULL },
	{ "statistics.interval.ms", NULL },
	{ "log.queue", NULL },
	{ "enabled_events", NULL },
};

/* Values that must not be shown. Where the key itself is called so, they are not. */
static bool shows_secret(const char *property, const char *key)
{
	static const char *const secrets[] = {
		"password", "secret", ".pem", "oauthbearer.config",
	};

	if (!strcmp(key, "password") || !strcmp(key, "secret"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
		if (strstr(property, secrets[i]))
			return true;
	return false;
}

static int check_property(struct config *c, const json_t *at, const char *key,
			  const char *property)
{
	for (size_t i = 0; c && i < ARRAY_SIZE(own); i++) {
		if (strcmp(own[i].property, property))
			continue;
		if (own[i].instead)
			config_fail(c, at, key, "%s is set by the key %s", property,
				    own[i].instead);
		else
			config_fail(c, at, key, "%s is the node's own affair", property);
		return -EINVAL;
	}
	if (c && shows_secret(property, key)) {
		config_fail(c, at, key, "the value would be shown; give %s as groups, so that the last key is password or secret",
			    property);
		return -EINVAL;
	}
	return 0;
}

static bool is_known(const char *name)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char value[512];
	size_t size = sizeof(value);
	bool known = rd_kafka_conf_get(conf, name, value, &size) != RD_KAFKA_CONF_UNKNOWN;

	if (!known) {
		rd_kafka_topic_conf_t *topic = rd_kafka_topic_conf_new();

		known = rd_kafka_topic_conf_get(topic, name, value, &size) !=
			RD_KAFKA_CONF_UNKNOWN;
		rd_kafka_topic_conf_destroy(topic);
	}
	rd_kafka_conf_destroy(conf);
	return known;
}

/* Writes the value as the library wants it: NULL, it is none. */
static const char *text_of(const json_t *v, char buf[32])
{
	if (json_is_string(v))
		return json_string_value(v);
	if (json_is_boolean(v))
		return json_is_true(v) ? "true" : "false";
	if (!json_is_integer(v))
		return NULL;
	snprintf(buf, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	return buf;
}

static int set_property(rd_kafka_conf_t *conf, struct config *c, const json_t *at,
			const char *key, const char *name, const json_t *given)
{
	char buf[32], property[NAME_MAX_LEN], error[300];
	const char *value = text_of(given, buf);

	snprintf(property, sizeof(property), "%s", name);
	/* Groups of the configuration have no dots in their names. */
	if (!is_known(property))
		for (char *p = property; *p; p++)
			*p = *p == '_' ? '.' : *p;
	if (!value) {
		if (c)
			config_fail(c, at, key, "expected a text, a number, true or false");
		return -EINVAL;
	}
	if (check_property(c, at, key, property))
		return -EINVAL;
	if (c && !strcmp(value, SECRET_HIDDEN)) {
		config_fail(c, at, key, "the gateway that printed this configuration has hidden it; name a ${VARIABLE} that holds it");
		return -EINVAL;
	}
	if (rd_kafka_conf_set(conf, property, value, error, sizeof(error)) == RD_KAFKA_CONF_OK)
		return 0;
	if (c)
		config_fail(c, at, key, "%s", error);
	return -EINVAL;
}

static int set_group(rd_kafka_conf_t *conf, struct config *c, json_t *group, const char *prefix)
{
	char name[NAME_MAX_LEN];
	json_t *value;
	const char *key;
	int ret = 0;

	json_object_foreach(group, key, value) {
		int n = snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", key);

		if (n >= (int)sizeof(name)) {
			if (c)
				config_fail(c, group, key, "no property has such a long name");
			ret = -EINVAL;
		} else if (json_is_object(value)) {
			ret = set_group(conf, c, value, name) ?: ret;
		} else {
			ret = set_property(conf, c, group, key, name, value) ?: ret;
		}
	}
	return ret;
}

int kafka_properties(rd_kafka_conf_t *conf, struct config *c, const json_t *at, const char *key,
		     const json_t *given)
{
	if (!given || json_is_null(given))
		return 0;
	if (json_is_object(given))
		return set_group(conf, c, (json_t *)given, "");
	if (c)
		config_fail(c, at, key, "expected a group of properties of librdkafka");
	return -EINVAL;
}

/* ---- properties that follow from the keys ---- */

struct settings {
	struct kafka_node *m;
	rd_kafka_conf_t *conf;
	int ret;
};

static void set(struct settings *s, const char *property, const char *value)
{
	char error[300];

	if (!value || s->ret)
		return;
	if (rd_kafka_conf_set(s->conf, property, value, error, sizeof(error)) != RD_KAFKA_CONF_OK)
		s->ret = outside_fail(&s->m->outside, -EINVAL, "%s", error);
}

static void set_number(struct settings *s, const char *property, int64_t value)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%lld", (long long)value);
	set(s, property, buf);
}

static void set_bool(struct settings *s, const char *property, bool value)
{
	set(s, property, value ? "true" : "false");
}

/* librdkafka has no property for the lowest version of TLS. It is 1.2 because the others have no
 * cipher. */
static void set_ciphers(struct settings *s, const char *ciphers)
{
	char buf[1000];

	if (snprintf(buf, sizeof(buf), "%s:!SSLv3:!TLSv1.0", ciphers ? ciphers : "DEFAULT") >=
	    (int)sizeof(buf))
		s->ret = outside_fail(&s->m->outside, -EINVAL, "ssl.ciphers: too long");
	set(s, "ssl.cipher.suites", buf);
}

static void set_tls(struct settings *s)
{
	const struct outside_tls *t = &s->m->tls;

	if (!kafka_has_tls(s->m))
		return;
	set(s, "ssl.ca.location", t->ca ? t->ca : t->ca_path);
	set(s, "ssl.certificate.location", t->cert);
	set(s, "ssl.key.location", t->key);
	set_ciphers(s, t->ciphers);
	if (t->verify)
		rd_kafka_conf_set_ssl_cert_verify_cb(s->conf, kafka_on_certificate);
	set_bool(s, "enable.ssl.certificate.verification", t->verify);
	set(s, "ssl.endpoint.identification.algorithm", t->verify_host ? "https" : "none");
}

/* The password is set anew at each attempt: set_password(). */
static void set_sasl(struct settings *s)
{
	char buf[OUTSIDE_SECRET_MAX];
	struct kafka_node *m = s->m;
	const char *password;

	if (!kafka_has_sasl(m))
		return;
	set(s, "sasl.mechanisms", m->sasl.mechanisms);
	set(s, "sasl.username", m->sasl.username);
	if (!m->sasl.username)
		return;
	password = outside_secret(m->sasl.password, m->sasl.password_file, buf, m->outside.why,
				  sizeof(m->outside.why));
	if (password)
		set(s, "sasl.password", password);
	else
		s->ret = -EACCES;
	explicit_bzero(buf, sizeof(buf));
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	const struct kafka_node *m = rd_kafka_opaque(rk);

	/* Errors come by kafka_on_error(), too. */
	if (!strcmp(facility, "CONFWARN"))
		log_warn("node %s: librdkafka: %s", m->outside.node->name, text);
	else
		log_debug("node %s: librdkafka: %s: %s", m->outside.node->name, facility, text);
}

static void set_common(struct settings *s)
{
	struct kafka_node *m = s->m;
	int64_t setup_ms = (int64_t)(m->outside.connect_timeout_s * 1e3);

	rd_kafka_conf_set_opaque(s->conf, m);
	rd_kafka_conf_set_log_cb(s->conf, on_log);
	rd_kafka_conf_set_error_cb(s->conf, kafka_on_error);
	set(s, "bootstrap.servers", m->server);
	set(s, "client.id", m->client_id);
	set(s, "security.protocol", kafka_protocols[m->protocol]);
	set(s, "socket.nagle.disable", "true");
	set_number(s, "reconnect.backoff.ms", MIN(m->outside.reconnect_ms, 100));
	set_number(s, "reconnect.backoff.max.ms", MIN(m->outside.reconnect_ms, 3600000));
	set_number(s, "socket.connection.setup.timeout.ms", MAX(setup_ms, 1000));
	set_tls(s);
	set_sasl(s);
}

static void set_producer(struct settings *s)
{
	const struct outside *o = &s->m->outside;
	int64_t backlog = MAX(o->backlog, 2 * o->message_max);

	rd_kafka_conf_set_dr_msg_cb(s->conf, kafka_on_report);
	set(s, "acks", kafka_acks[s->m->acks]);
	set_bool(s, "enable.idempotence", s->m->idempotence);
	set(s, "linger.ms", "0");
	/* out.full decides what is lost. */
	set(s, "message.timeout.ms", "0");
	set_number(s, "message.max.bytes", MIN(MAX(o->message_max + 1024, 1000000), 1000000000));
	set_number(s, "queue.buffering.max.kbytes", backlog / 1024 + 1);
}

static void set_consumer(struct settings *s)
{
	struct kafka_node *m = s->m;

	/* Without a group, the library does without asking the brokers for one. */
	set(s, "group.id", m->group_id ? m->group_id : "busbar");
	set(s, "auto.offset.reset", kafka_resets[m->reset]);
	/* What is stored is committed: what the node has taken. */
	set_bool(s, "enable.auto.commit", m->group_id);
	set(s, "auto.commit.interval.ms", "1000");
	set(s, "enable.auto.offset.store", "false");
	set(s, "queued.max.messages.kbytes", PREFETCH_KBYTES);
	set(s, "fetch.error.backoff.ms", "100");
	if (m->group_id)
		rd_kafka_conf_set_rebalance_cb(s->conf, kafka_on_rebalance);
}

/* ---- start and end ---- */

static int make_client(struct kafka_node *m, struct kafka_client *client, rd_kafka_type_t type)
{
	bool produces = type == RD_KAFKA_PRODUCER;
	struct settings s = { m, rd_kafka_conf_new(), 0 };
	const uint64_t one = 1;
	char error[300];

	set_common(&s);
	if (produces)
		set_producer(&s);
	else
		set_consumer(&s);
	if (s.ret || kafka_properties(s.conf, NULL, NULL, NULL, m->properties) ||
	    kafka_properties(s.conf, NULL, NULL, NULL,
			     produces ? m->out_properties : m->in_properties)) {
		rd_kafka_conf_destroy(s.conf);
		return s.ret ?: outside_fail(&m->outside, -EINVAL, "properties");
	}
	client->rk = rd_kafka_new(type, s.conf, error, sizeof(error));
	if (!client->rk) {
		rd_kafka_conf_destroy(s.conf);
		return outside_fail(&m->outside, -EINVAL, "%s", error);
	}
	client->down = false;
	if (!produces)
		rd_kafka_poll_set_consumer(client->rk);
	client->queue = produces ? rd_kafka_queue_get_main(client->rk) :
				   rd_kafka_queue_get_consumer(client->rk);
	rd_kafka_queue_io_event_enable(client->queue, m->event_fd, &one, sizeof(one));
	return 0;
}

static int make_producer(struct kafka_node *m)
{
	int ret = make_client(m, &m->producer, RD_KAFKA_PRODUCER);

	if (ret)
		return ret;
	m->fatal = m->silent = false;
	if (!m->produce)
		return 0;
	m->topic = rd_kafka_topic_new(m->producer.rk, m->produce, NULL);
	if (m->topic)
		return 0;
	outside_fail(&m->outside, 0, "out.produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
	kafka_end_producer(m);
	return -EINVAL;
}

static int set_password(struct kafka_node *m, struct kafka_client *client)
{
	char buf[OUTSIDE_SECRET_MAX];
	rd_kafka_error_t *error;
	const char *password;
	int ret = 0;

	if (!client->rk || !kafka_has_sasl(m) || !m->sasl.username)
		return 0;
	password = outside_secret(m->sasl.password, m->sasl.password_file, buf, m->outside.why,
				  sizeof(m->outside.why));
	if (!password)
		return -EACCES;
	error = rd_kafka_sasl_set_credentials(client->rk, m->sasl.username, password);
	explicit_bzero(buf, sizeof(buf));
	if (error)
		ret = outside_fail(&m->outside, -EINVAL, "%s", rd_kafka_error_string(error));
	rd_kafka_error_destroy(error);
	return ret;
}

int kafka_make_clients(struct kafka_node *m)
{
	const struct node *n = m->outside.node;
	int ret = 0;

	if (!m->producer.rk && (n->is_destination || !n->is_source))
		ret = make_producer(m);
	if (!ret && !m->consumer.rk && n->is_source)
		ret = make_client(m, &m->consumer, RD_KAFKA_CONSUMER);
	return ret ?: set_password(m, &m->producer) ?: set_password(m, &m->consumer);
}

static void *destroy(void *rk)
{
	/* It would wait for the brokers. */
	rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	return NULL;
}

/* The library may wait for the answer of a broker that has gone, or for the name of a host. Then it
 * ends on its own, and uses the node no more: nobody calls its callbacks. */
static void end_client(struct kafka_client *client)
{
	int wait_ms = MAX(ending_left_ms(ENDING_JOIN_MS, END_MS + MARGIN_MS) - MARGIN_MS, 0);
	struct timespec until;
	pthread_t thread;

	if (!client->rk)
		return;
	if (client->queue) {
		rd_kafka_queue_io_event_enable(client->queue, -1, NULL, 0);
		rd_kafka_queue_destroy(client->queue);
	}
	rd_kafka_set_log_level(client->rk, 0);
	until = timespec_from_ns(clock_monotonic_ns_slow() + (uint64_t)wait_ms * 1000000);
	if (thread_start(&thread, "kafka-end", THREAD_AS_CALLER, destroy, client->rk))
		destroy(client->rk);
	else if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until))
		pthread_detach(thread);
	*client = (struct kafka_client){ 0 };
}

void kafka_end_producer(struct kafka_node *m)
{
	if (!m->producer.rk)
		return;
	m->silent = true;
	rd_kafka_purge(m->producer.rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
					       RD_KAFKA_PURGE_F_NON_BLOCKING);
	if (m->topic)
		rd_kafka_topic_destroy(m->topic);
	m->topic = NULL;
	end_client(&m->producer);
}

/* Commits what was taken and leaves the group, so that others get its partitions at once. */
static void leave_group(struct kafka_node *m)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(m->consumer.rk);
	uint64_t end_ns = clock_now_ns() + LEAVE_NS;
	rd_kafka_error_t *error;

	rd_kafka_queue_io_event_enable(m->consumer.queue, -1, NULL, 0);
	rd_kafka_queue_destroy(m->consumer.queue);
	m->consumer.queue = NULL;
	error = rd_kafka_consumer_close_queue(m->consumer.rk, queue);
	while (!error && !rd_kafka_consumer_closed(m->consumer.rk) && clock_now_ns() < end_ns) {
		/* Messages may still come, which rd_kafka_queue_poll_callback() does not expect. They are
		 * not committed. */
		rd_kafka_message_t *message = rd_kafka_consume_queue(queue, 10);

		if (message)
			rd_kafka_message_destroy(message);
	}
	rd_kafka_error_destroy(error);
	rd_kafka_queue_destroy(queue);
}

void kafka_end_consumer(struct kafka_node *m, bool leave)
{
	if (!m->consumer.rk)
		return;
	if (leave && m->subscribed)
		leave_group(m);
	end_client(&m->consumer);
	m->assigned = m->subscribed = false;
	node_figure_set(m->outside.node, KAFKA_PARTITIONS, 0);
}
