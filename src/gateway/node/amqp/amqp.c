/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `amqp`: samples in messages of an AMQP 0-9-1 server (RabbitMQ), by librabbitmq.
 * Connecting, waiting and accounting are those of gateway/outside.
 */
#define LOG_ROOM "gateway/amqp"
#include "gateway/node/amqp/amqp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

extern const struct node_type node_amqp;

#define PREFETCH_MAX 65535
/* When in.prefetch is not given. */
#define PREFETCH_DEFAULT 256

static const char *const exchange_types[] = { "direct", "fanout", "topic", "passive", NULL };

#define OFFSET(field) offsetof(struct amqp_node, field)

static const struct config_key amqp_keys[] = {
	{ "uri", CONFIG_STRING, OFFSET(uri),
	  .help = "amqp://user:password@host:port/vhost, in place of the keys for these; amqps: with TLS" },
	{ "host", CONFIG_STRING, OFFSET(host), .help = "Name or address of the server; localhost" },
	{ "port", CONFIG_INT, OFFSET(port), "0", .min = 0, .max = 65535,
	  .help = "TCP port; 0: 5672, or 5671 with ssl" },
	{ "vhost", CONFIG_STRING, OFFSET(vhost), .help = "Virtual host; /" },
	{ "username", CONFIG_STRING, OFFSET(username), .help = "Name of the user; guest" },
	{ "password", CONFIG_STRING, OFFSET(password),
	  .help = "Password; guest; better password_file or ${NAME}" },
	{ "password_file", CONFIG_STRING, OFFSET(password_file),
	  .help = "File whose first line is the password" },
	{ "heartbeat", CONFIG_INT, OFFSET(heartbeat_s), "10", .min = 1, .max = 3600,
	  .help = "After twice as many seconds of silence the connection is lost" },
	{ "exchange", CONFIG_STRING, OFFSET(exchange), .required = true,
	  .help = "Exchange to read from and write to; \"\": the one that leads to the queue of the routing key's name" },
	{ "exchange_type", CONFIG_ENUM, OFFSET(exchange_type), "direct", .names = exchange_types,
	  .help = "direct, fanout, topic: it is made if it is not there; passive: it has to be there" },
	{ "durable", CONFIG_BOOL, OFFSET(durable), "false",
	  .help = "The exchange outlasts a restart of the server" },
	{ "routing_key", CONFIG_STRING, OFFSET(routing_key), .help = "For both directions" },
	OUTSIDE_TLS_KEY(OFFSET(ssl)),
	OUTSIDE_KEYS("json"),
};

static const struct config_key amqp_in_keys[] = {
	{ "routing_key", CONFIG_JSON, OFFSET(in_keys), .form = CONFIG_TEXTS,
	  .help = "Routing key, or list of them, to read by; * and # stand for any words (topic)" },
	{ "queue", CONFIG_STRING, OFFSET(queue),
	  .help = "Durable queue that keeps messages while the node is away; without it one for the time of the connection" },
	{ "declare", CONFIG_BOOL, OFFSET(declare), "true",
	  .help = "The queue is made and bound; false: it has to be there" },
	{ "prefetch", CONFIG_INT, OFFSET(prefetch), "0", .min = 0, .max = PREFETCH_MAX,
	  .help = "Messages that the server sends before the first is read; 0: a quarter of in.queuelen, 256 at most" },
	{ "max_message", CONFIG_INT, OFFSET(in_message_max), "1048576", .min = 64,
	  .max = 1 << 28, .help = "Bytes of a message that is read, at most" },
	OUTSIDE_IN_KEYS,
};

static const struct config_key amqp_out_keys[] = {
	{ "routing_key", CONFIG_STRING, OFFSET(out_key), .help = "Routing key to write by" },
	{ "persistent", CONFIG_BOOL, OFFSET(persistent), "true",
	  .help = "Durable queues keep the messages on disk" },
	{ "mandatory", CONFIG_BOOL, OFFSET(mandatory), "false",
	  .help = "Messages that no queue takes come back, and are counted as lost" },
	OUTSIDE_OUT_KEYS,
};

static const struct outside_ops amqp_ops = {
	.open = amqp_node_open,
	.close = amqp_node_close,
	.send = amqp_node_send,
	.turn = amqp_node_turn,
	.wait = amqp_node_wait,
};

/* ---- settings ---- */

static int check_name(struct config *c, const json_t *at, const char *key, const char *name)
{
	if (!name || strlen(name) <= AMQP_NODE_NAME_MAX)
		return 0;
	config_fail(c, at, key, "it has %d bytes at most", AMQP_NODE_NAME_MAX);
	return -EINVAL;
}

static int parse_in_keys(struct amqp_node *a, struct config *c, const json_t *in)
{
	int ret = outside_texts(c, in, "routing_key", a->in_keys, "a routing key", a->key,
				AMQP_NODE_KEYS_MAX, &a->key_count);

	for (unsigned i = 0; i < a->key_count; i++)
		ret = check_name(c, in, "routing_key", a->key[i]) ?: ret;
	if ((!a->in_keys || json_is_null(a->in_keys)) && a->routing_key)
		a->key[a->key_count++] = a->routing_key;
	return ret;
}

/* Takes the uri apart; whether it asks for TLS is put into *tls. */
static int parse_uri(struct amqp_node *a, struct config *c, json_t *cfg, bool *tls)
{
	static const char *const others[] = { "host", "port", "vhost", "username", "password" };
	struct amqp_connection_info info;
	char shown[sizeof(a->uri_parts)];

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (json_object_get(cfg, others[i]))
			config_warn(c, cfg, others[i], "is passed over, because uri is given");
	if (strlen(a->uri) >= sizeof(a->uri_parts)) {
		config_fail(c, cfg, "uri", "it has %zu bytes at most", sizeof(a->uri_parts) - 1);
		return -EINVAL;
	}
	outside_url_shown(a->uri, shown, sizeof(shown));
	if (a->password_file && strcmp(shown, a->uri)) {
		config_fail(c, cfg, "password_file", "uri has a password, too");
		return -EINVAL;
	}
	strcpy(a->uri_parts, a->uri);
	/* The library takes parameters for a part of the virtual host. */
	/* The library takes blanks and quotes, behind which a password would be shown. */
	if (strpbrk(a->uri, "? \t\r\n\"") || amqp_parse_url(a->uri_parts, &info)) {
		config_fail(c, cfg, "uri", "expected amqp://user:password@host:port/vhost, without parameters");
		return -EINVAL;
	}
	a->host = info.host;
	a->port = info.port;
	a->vhost = info.vhost;
	a->username = info.user;
	a->password = info.password;
	*tls = info.ssl;
	return 0;
}

static int parse_access(struct amqp_node *a, struct config *c, json_t *cfg)
{
	int ret = outside_secret_check(c, cfg, "password", "password_file");
	bool tls = false;

	if (a->uri)
		ret = parse_uri(a, c, cfg, &tls) ?: ret;
	if (outside_tls_parse(&a->tls, c, cfg, tls))
		return -EINVAL;
	if (a->uri && tls != a->tls.enabled) {
		config_fail(c, cfg, "ssl", tls ? "it is not enabled, but uri says amqps" :
						 "uri says amqp, which is without TLS; use amqps");
		ret = -EINVAL;
	}
	a->host = a->host ? a->host : "localhost";
	a->vhost = a->vhost ? a->vhost : "/";
	a->username = a->username ? a->username : "guest";
	if (!a->password && !a->password_file)
		a->password = "guest";
	if (!a->port)
		a->port = a->tls.enabled ? 5671 : 5672;
	return check_name(c, cfg, "vhost", a->vhost) ?: ret;
}

/* Keys that would have no effect. */
static int check_keys(struct amqp_node *a, struct config *c, json_t *cfg)
{
	const json_t *in = json_object_get(cfg, "in");
	bool unnamed = a->exchange && !*a->exchange;
	int ret = 0;

	if (a->durable && (unnamed || a->exchange_type == AMQP_NODE_PASSIVE)) {
		config_fail(c, cfg, "durable", "the node does not make this exchange");
		ret = -EINVAL;
	}
	if (unnamed && json_object_get(cfg, "exchange_type")) {
		config_fail(c, cfg, "exchange_type", "the exchange \"\" has its own");
		ret = -EINVAL;
	}
	if (a->in_keys && (unnamed || !a->declare)) {
		config_fail(c, in, "routing_key", "the node does not bind this queue");
		ret = -EINVAL;
	}
	if (!a->declare && !a->queue) {
		config_fail(c, in, "declare", "in.queue, which says what queue it is, is missing");
		ret = -EINVAL;
	}
	if (a->prefetch > a->outside.queuelen) {
		config_fail(c, in, "prefetch",
			    "so many messages have no room in in.queuelen, %lld samples",
			    (long long)a->outside.queuelen);
		ret = -EINVAL;
	}
	return ret;
}

static int amqp_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct amqp_node *a = n->private_data;
	const json_t *in = json_object_get(cfg, "in"), *out = json_object_get(cfg, "out");
	int ret = outside_parse(n, c, cfg, "json");

	ret = parse_access(a, c, cfg) ?: ret;
	ret = parse_in_keys(a, c, in) ?: ret;
	ret = check_name(c, cfg, "exchange", a->exchange) ?: ret;
	ret = check_name(c, cfg, "routing_key", a->routing_key) ?: ret;
	ret = check_name(c, in, "queue", a->queue) ?: ret;
	ret = check_name(c, out, "routing_key", a->out_key) ?: ret;
	if (!a->out_key)
		a->out_key = a->routing_key;
	if (!a->prefetch)
		a->prefetch = MAX(1, MIN(a->outside.queuelen / 4, PREFETCH_DEFAULT));
	ret = check_keys(a, c, cfg) ?: ret;
	snprintf(a->target, sizeof(a->target), "amqp%s://%.200s:%d/%.60s",
		 a->tls.enabled ? "s" : "", a->host ? a->host : "", (int)a->port,
		 a->vhost && strcmp(a->vhost, "/") ? a->vhost : "");
	outside_set_target(&a->outside, a->target);
	return ret;
}

static int amqp_check(struct node *n, struct config *c, json_t *cfg)
{
	struct amqp_node *a = n->private_data;
	bool by_key = a->exchange_type != AMQP_NODE_FANOUT && a->exchange && *a->exchange;
	int ret = 0;

	if (n->is_source && by_key && a->declare && !a->key_count) {
		config_fail(c, cfg, NULL, "a path reads the node, but routing_key is missing");
		ret = -EINVAL;
	}
	if (n->is_source && a->exchange && !*a->exchange && !a->queue) {
		config_fail(c, cfg, NULL, "a path reads the node, but exchange \"\" needs in.queue");
		ret = -EINVAL;
	}
	if (n->is_destination && a->exchange_type != AMQP_NODE_FANOUT && !a->out_key) {
		config_fail(c, cfg, NULL, "a path writes the node, but routing_key is missing");
		ret = -EINVAL;
	}
	/* A fanout exchange does not look at the key, but each queue is bound once. */
	if (!a->key_count && a->exchange_type == AMQP_NODE_FANOUT)
		a->key[a->key_count++] = "";
	return ret;
}

/* ---- the node ---- */

static int amqp_init(struct node *n)
{
	struct amqp_node *a = n->private_data;

	a->opening_fd = -1;
	pthread_mutex_init(&a->opening, NULL);
	outside_init(n, &amqp_ops);
	return 0;
}

static int amqp_start(struct node *n)
{
	struct amqp_node *a = n->private_data;

	a->stopping = false;
	return outside_start(n);
}

static int amqp_stop(struct node *n)
{
	amqp_node_stop_opening(n->private_data);
	return outside_stop(n);
}

static int amqp_reverse(struct node *n)
{
	struct amqp_node *a = n->private_data;
	const char *key = a->key_count ? a->key[0] : NULL;

	a->key[0] = a->out_key;
	a->key_count = a->out_key ? 1 : 0;
	a->out_key = key;
	return 0;
}

static void amqp_print(struct node *n, char *buf, size_t size)
{
	struct amqp_node *a = n->private_data;

	snprintf(buf, size, "%s, exchange %s%s%s%s%s%s%s", a->target, a->exchange,
		 a->queue ? ", queue " : "", a->queue ? a->queue : "",
		 a->key_count ? ", from " : "", a->key_count ? a->key[0] : "",
		 a->out_key ? ", to " : "", a->out_key ? a->out_key : "");
}

static const struct node_figure amqp_figures[] = {
	OUTSIDE_FIGURE_TABLE,
	[FAULT_TRUNCATED] = { "oversized", "Messages longer than in.max_message", NODE_COUNTER },
	[AMQP_NODE_REDELIVERED] = { "redelivered",
				    "Samples that the server has sent once more, and may have been read before",
				    NODE_COUNTER },
	[AMQP_NODE_RETURNED] = { "returned", "Messages that no queue took (out.mandatory)",
				 NODE_COUNTER },
	[AMQP_NODE_BLOCKED] = { "blocked", "1 while the server takes no messages (memory, disk)",
				NODE_GAUGE },
};

const struct node_type node_amqp = {
	.name = "amqp",
	.description = "Samples in messages of an AMQP 0-9-1 server, such as RabbitMQ",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_STOP_WAITS,
	.size = sizeof(struct amqp_node),
	.keys = amqp_keys,
	.key_count = ARRAY_SIZE(amqp_keys),
	.in_keys = amqp_in_keys,
	.in_key_count = ARRAY_SIZE(amqp_in_keys),
	.out_keys = amqp_out_keys,
	.out_key_count = ARRAY_SIZE(amqp_out_keys),
	.figures = amqp_figures,
	.figure_count = ARRAY_SIZE(amqp_figures),
	OUTSIDE_CALLBACKS,
	.init = amqp_init,
	.parse = amqp_parse,
	.check = amqp_check,
	.start = amqp_start,
	.stop = amqp_stop,
	.reverse = amqp_reverse,
	.print = amqp_print,
};
