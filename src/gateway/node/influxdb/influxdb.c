/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `influxdb`: samples become points of an InfluxDB database, in its line protocol
 * over UDP or HTTP. It does not read.
 */
#define LOG_ROOM "gateway/influxdb"
#include "gateway/node/influxdb/influxdb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct node_type node_influxdb;

static const char *const transports[] = { "udp", "http", NULL };
static const char *const versions[] = { "1", "2", NULL };
static const char *const precisions[] = { "ns", "us", "ms", "s", NULL };

#define OFFSET(field) offsetof(struct influx_node, field)

static const struct config_key influx_keys[] = {
	{ "key", CONFIG_STRING, OFFSET(key), .required = true,
	  .help = "Measurement, with tags behind commas, as the line protocol spells them" },
	{ "tags", CONFIG_JSON, OFFSET(tags), .form = CONFIG_TEXT_GROUP, .help = "More tags: a group of texts" },
	{ "transport", CONFIG_ENUM, OFFSET(transport), "udp", .names = transports,
	  .help = "udp, which nobody confirms, or http" },
	{ "server", CONFIG_STRING, OFFSET(server), .help = "Of udp: \"host:port\", port 8089" },
	{ "url", CONFIG_STRING, OFFSET(url), .help = "Of http: \"http://host:8086\" or https" },
	{ "version", CONFIG_ENUM, OFFSET(version), "1", .names = versions,
	  .help = "Of the requests: 1 (/write) or 2 (/api/v2/write)" },
	{ "database", CONFIG_STRING, OFFSET(database), .help = "Of version 1: the database" },
	{ "retention", CONFIG_STRING, OFFSET(retention),
	  .help = "Of version 1: the retention policy, default is the database's" },
	{ "username", CONFIG_STRING, OFFSET(username), .help = "Of version 1: name of the user" },
	{ "password", CONFIG_STRING, OFFSET(password),
	  .help = "Password; better password_file or ${NAME}" },
	{ "password_file", CONFIG_STRING, OFFSET(password_file),
	  .help = "File whose first line is the password" },
	{ "bucket", CONFIG_STRING, OFFSET(bucket), .help = "Of version 2: the bucket" },
	{ "org", CONFIG_STRING, OFFSET(org), .help = "Of version 2: the organisation" },
	{ "token", CONFIG_STRING, OFFSET(token),
	  .help = "Of version 2: the token; better token_file or ${NAME}" },
	{ "token_file", CONFIG_STRING, OFFSET(token_file),
	  .help = "File whose first line is the token" },
	{ "precision", CONFIG_ENUM, OFFSET(precision), "ns", .names = precisions,
	  .help = "Unit of the times" },
	{ "sequence", CONFIG_STRING, OFFSET(sequence),
	  .help = "Name of a field with the sequence number; without it none is written" },
	{ "timeout", CONFIG_REAL, OFFSET(timeout_s), "10.0", .min = 0.01, .max = 3600,
	  .help = "Of http: seconds of a request with its answer, at most" },
	OUTSIDE_TLS_KEY(OFFSET(ssl)),
	OUTSIDE_CONNECT_KEYS,
};

static const struct config_key influx_out_keys[] = {
	{ "batch", CONFIG_INT, OFFSET(batch_max), "5000", .min = 1, .max = INFLUX_BATCH_MAX,
	  .help = "Of http: samples of a request, at most" },
	OUTSIDE_OUT_KEYS,
};

/* ---- settings ---- */

/* Keys that have no meaning with other settings. */
static int refuse_keys(struct config *c, json_t *cfg, const char *const keys[], const char *why)
{
	int ret = 0;

	for (; *keys; keys++) {
		if (!json_object_get(cfg, *keys))
			continue;
		config_fail(c, cfg, *keys, "%s", why);
		ret = -EINVAL;
	}
	return ret;
}

static int require(struct config *c, json_t *cfg, const char *key, const char *value,
		   const char *with)
{
	if (value && *value)
		return 0;
	config_fail(c, cfg, key, "is required with %s", with);
	return -EINVAL;
}

static int parse_udp(struct influx_node *x, struct config *c, json_t *cfg)
{
	static const char *const of_http[] = { "url", "version", "database", "retention", "username",
					       "password", "password_file", "bucket", "org", "token",
					       "token_file", "timeout", "ssl", NULL };
	static const char *const of_requests[] = { "batch", NULL };
	int ret = refuse_keys(c, cfg, of_http, "is of transport = \"http\"");

	ret = refuse_keys(c, json_object_get(cfg, "out"), of_requests,
			  "is of transport = \"http\"") ?: ret;
	ret = require(c, cfg, "server", x->server, "transport = \"udp\"") ?: ret;
	snprintf(x->target, sizeof(x->target), "udp:%.250s", x->server ? x->server : "");
	return ret;
}

static int parse_version(struct influx_node *x, struct config *c, json_t *cfg)
{
	static const char *const of_1[] = { "database", "retention", "username", "password",
					    "password_file", NULL };
	static const char *const of_2[] = { "bucket", "org", "token", "token_file", NULL };
	int ret;

	if (x->version)
		return refuse_keys(c, cfg, of_1, "is of version = \"1\"") ?:
		       require(c, cfg, "bucket", x->bucket, "version = \"2\"") ?:
		       outside_secret_check(c, cfg, "token", "token_file");
	ret = refuse_keys(c, cfg, of_2, "is of version = \"2\"") ?:
	      require(c, cfg, "database", x->database, "version = \"1\"") ?:
	      outside_secret_check(c, cfg, "password", "password_file");
	if (!ret && !x->username && (x->password || x->password_file)) {
		config_fail(c, cfg, x->password ? "password" : "password_file",
			    "is given together with username");
		ret = -EINVAL;
	}
	return ret;
}

static int parse_http(struct influx_node *x, struct config *c, json_t *cfg)
{
	static const char *const of_udp[] = { "server", NULL };
	static const char *const secrets[] = { "password", "password_file", "token", "token_file",
					       NULL };
	int ret = refuse_keys(c, cfg, of_udp, "is of transport = \"udp\"");

	ret = parse_version(x, c, cfg) ?: ret;
	if (require(c, cfg, "url", x->url, "transport = \"http\"") ||
	    outside_http_parse(&x->tls, c, cfg, "url", x->url, secrets))
		return -EINVAL;
	outside_url_shown(x->url, x->target, sizeof(x->target));
	return ret;
}

static int influx_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct influx_node *x = n->private_data;
	int ret = x->transport == INFLUX_HTTP ? parse_http(x, c, cfg) : parse_udp(x, c, cfg);

	ret = influx_series_make(x, c, cfg) ?: ret;
	if (x->sequence && !influx_name_is_good(x->sequence)) {
		config_fail(c, cfg, "sequence", "the line protocol cannot hold this name");
		ret = -EINVAL;
	}
	/* The longest datagram of IPv4. */
	if (x->transport == INFLUX_UDP)
		x->outside.message_max = MIN(x->outside.message_max, INT64_C(65507));
	outside_set_target(&x->outside, x->target);
	x->outside.ops = x->transport == INFLUX_HTTP ? &influx_http_ops : &influx_udp_ops;
	return ret;
}

/* Whether the fields of two signals have one name. */
static bool is_same_field(const struct signal *a, const struct signal *b)
{
	size_t na = strlen(a->name), nb = strlen(b->name);
	const struct signal *longer = na > nb ? a : b, *shorter = na > nb ? b : a;

	if (a->type == SIGNAL_COMPLEX && b->type == SIGNAL_COMPLEX)
		return !strcmp(a->name, b->name);
	if (shorter->type != SIGNAL_COMPLEX)
		return longer->type != SIGNAL_COMPLEX && !strcmp(a->name, b->name);
	na = strlen(shorter->name);
	return !strncmp(longer->name, shorter->name, na) &&
	       (!strcmp(longer->name + na, "_re") || !strcmp(longer->name + na, "_im"));
}

static int influx_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	const struct signal_list *l = n->out.hooked;
	struct influx_node *x = n->private_data;
	int ret = 0;

	for (unsigned i = 0; l && i < l->count; i++) {
		const char *name = l->signals[i].name;
		bool twice = x->sequence && !strcmp(name, x->sequence);

		for (unsigned k = 0; k < i && !twice && l->count <= 4096; k++)
			twice = is_same_field(&l->signals[i], &l->signals[k]);
		if (influx_name_is_good(name) && !twice)
			continue;
		config_fail(c, cfg, "out", "the signal '%.60s' cannot be a field: %s", name,
			    twice ? "another one has this name" :
				    "the line protocol cannot hold this name");
		ret = -EINVAL;
	}
	return ret;
}

static int influx_init(struct node *n)
{
	struct influx_node *x = n->private_data;

	outside_init(n, &influx_udp_ops);
	/* Nothing is read; the queue has a least size. */
	x->outside.queuelen = 2;
	return 0;
}

static void influx_destroy(struct node *n)
{
	struct influx_node *x = n->private_data;

	if (!x->outside.has_thread)
		free(x->series);
	outside_destroy(n);
}

static void influx_print_node(struct node *n, char *buf, size_t size)
{
	struct influx_node *x = n->private_data;

	snprintf(buf, size, "%s%s%s, key %s", x->target, x->database || x->bucket ? ", to " : "",
		 x->database ? x->database : x->bucket ? x->bucket : "", x->series);
}

static const struct node_figure influx_figures[] = {
	OUTSIDE_FIGURE_TABLE,
	[INFLUX_REQUESTS] = { "requests", "Requests or datagrams that were sent", NODE_COUNTER },
	[INFLUX_LATER] = { "postponed", "Requests that the server asked to repeat later",
			   NODE_COUNTER },
	[INFLUX_LEFT_OUT] = { "left_out", "Values that are no number, or infinite, and were left out",
			      NODE_COUNTER },
};

const struct node_type node_influxdb = {
	.name = "influxdb",
	.description = "Samples become points of an InfluxDB database",
	.flags = NODE_CAN_WRITE | NODE_STOP_WAITS,
	.size = sizeof(struct influx_node),
	.keys = influx_keys,
	.key_count = ARRAY_SIZE(influx_keys),
	.out_keys = influx_out_keys,
	.out_key_count = ARRAY_SIZE(influx_out_keys),
	.figures = influx_figures,
	.figure_count = ARRAY_SIZE(influx_figures),
	.type_start = outside_http_type_start,
	.type_stop = outside_http_type_stop,
	.init = influx_init,
	.destroy = influx_destroy,
	.parse = influx_parse,
	.check_signals = influx_check_signals,
	.start = outside_start,
	.stop = outside_stop,
	.write = outside_write,
	.may_wait = outside_may_wait,
	.interrupt = outside_interrupt,
	.rearm = outside_rearm,
	.print = influx_print_node,
};
