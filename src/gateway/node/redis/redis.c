/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `redis`: samples in keys, hashes, channels and streams of a Redis server. Replies are
 * read by hiredis, which in Debian has no TLS; so the connections are our own (link.c).
 * Connecting in the background, waiting and accounting are those of gateway/outside.
 */
#define LOG_ROOM "gateway/redis"
#include "gateway/node/redis/redis.h"

#include <errno.h>
#include <stdio.h>

#include "gateway/sample/signals.h"
#include "util/log.h"

extern const struct node_type node_redis;

static const char *const modes[] = { "key", "hash", "channel", "stream", NULL };
static const char *const froms[] = { "new", "oldest", NULL };

#define OFFSET(field) offsetof(struct redis_node, field)

static const struct config_key timeout_keys[] = {
	{ "connect", CONFIG_REAL, OFFSET(connect_timeout_s), "0", .min = 0.01, .max = 3600,
	  .help = "The same as connect_timeout" },
	{ "socket", CONFIG_REAL, OFFSET(socket_timeout_s), "5.0", .min = 0, .max = 3600,
	  .help = "The connection ends when an answer takes longer; 0: never" },
};

static const struct config_key redis_keys[] = {
	{ "mode", CONFIG_ENUM, OFFSET(mode), "key", .names = modes,
	  .help = "Where the samples are: in a key, as fields of a hash, in messages of a channel, or as entries of a stream" },
	{ "uri", CONFIG_STRING, OFFSET(uri),
	  .help = "Of the server, in place of host, port, path, user, password and db: redis://, rediss:// (TLS) or unix://" },
	{ "host", CONFIG_STRING, OFFSET(host), "127.0.0.1",
	  .help = "Name or address of the server" },
	{ "port", CONFIG_INT, OFFSET(port), "6379", .min = 1, .max = 65535, .help = "TCP port" },
	{ "path", CONFIG_STRING, OFFSET(path),
	  .help = "Unix socket of the server, in place of host and port" },
	{ "user", CONFIG_STRING, OFFSET(user), .help = "Name of the user; without it the default one" },
	{ "password", CONFIG_STRING, OFFSET(password),
	  .help = "Password; better password_file or ${NAME}" },
	{ "password_file", CONFIG_STRING, OFFSET(password_file),
	  .help = "File whose first line is the password" },
	{ "db", CONFIG_INT, OFFSET(db), "0", .min = 0, .max = 1000000,
	  .help = "Number of the database; channels are the same in all of them" },
	{ "key", CONFIG_STRING, OFFSET(key),
	  .help = "Of the value, hash or stream; without it the name of the node" },
	{ "channel", CONFIG_JSON, OFFSET(channel_cfg), .form = CONFIG_TEXTS,
	  .help = "Channel, or list of channels; without it the name of the node" },
	{ "notify", CONFIG_BOOL, OFFSET(notify), "true",
	  .help = "The server tells when a key or hash changes; false: the node asks at `rate`" },
	{ "rate", CONFIG_REAL, OFFSET(rate), "1.0", .min = 0.001, .max = 100000,
	  .help = "How often in a second the node asks for a key or hash" },
	{ "keepalive", CONFIG_BOOL, OFFSET(keepalive), "false",
	  .help = "TCP itself looks whether the server is there" },
	{ "timeout", CONFIG_JSON, OFFSET(timeout_cfg), .group = timeout_keys, .group_count = ARRAY_SIZE(timeout_keys),
	  .help = "Seconds, { connect, socket }: to connect, and to wait for an answer (5.0; 0: for ever)" },
	{ "max_length", CONFIG_INT, OFFSET(max_length), "1000000", .min = 0, .max = 1e18,
	  .help = "Entries that a stream keeps, about; 0: all" },
	{ "field", CONFIG_STRING, OFFSET(field), "data",
	  .help = "Field of a stream's entries that holds the samples" },
	OUTSIDE_TLS_KEY(OFFSET(ssl)),
	OUTSIDE_KEYS("json"),
};

static const struct config_key redis_in_keys[] = {
	{ "pattern", CONFIG_JSON, OFFSET(pattern_cfg), .form = CONFIG_TEXTS,
	  .help = "Pattern of channels, or list of patterns, to read from: *, ? and [...] stand for any" },
	{ "from", CONFIG_ENUM, OFFSET(from), "new", .names = froms,
	  .help = "Where reading of a stream begins: behind what it holds, or with the oldest entry" },
	{ "group", CONFIG_STRING, OFFSET(group),
	  .help = "Group of consumers, for which the stream keeps what it has not acknowledged" },
	{ "consumer", CONFIG_STRING, OFFSET(consumer),
	  .help = "Name in the group, of this node alone; without it the name of the node" },
	{ "max_reply", CONFIG_INT, OFFSET(max_reply), "1048576", .min = 4096, .max = 1 << 29,
	  .help = "Bytes of an answer, at most" },
	OUTSIDE_IN_KEYS,
};

static const struct config_key redis_out_keys[] = { OUTSIDE_OUT_KEYS };

/* ---- settings ---- */

static int parse_names(struct config *c, const json_t *at, const char *key, const json_t *given,
		       const char **out, unsigned *count)
{
	int ret = outside_texts(c, at, key, given, "a name", out, REDIS_CHANNELS_MAX, count);

	for (unsigned i = 0; i < *count; i++)
		if (!*out[i]) {
			config_fail(c, at, key, "a name is empty");
			ret = -EINVAL;
		}
	return ret;
}

static int parse_timeout(struct redis_node *m, struct config *c, json_t *cfg)
{
	m->socket_timeout_s = 5;
	if (!m->timeout_cfg || json_is_null(m->timeout_cfg))
		return 0;
	if (!json_is_object(m->timeout_cfg)) {
		config_fail(c, cfg, "timeout", "expected a group with connect and socket");
		return -EINVAL;
	}
	if (config_unpack(c, m->timeout_cfg, timeout_keys, ARRAY_SIZE(timeout_keys), m, NULL, 0))
		return -EINVAL;
	if (!json_object_get(m->timeout_cfg, "connect"))
		return 0;
	if (json_object_get(cfg, "connect_timeout")) {
		config_fail(c, m->timeout_cfg, "connect", "connect_timeout is the same, and is given");
		return -EINVAL;
	}
	m->outside.connect_timeout_s = m->connect_timeout_s;
	return 0;
}

/* Keys that are not given together with `key`. */
static int exclude(struct config *c, const json_t *cfg, const char *key, const char *const others[])
{
	int ret = 0;

	for (; *others && json_object_get(cfg, key); others++)
		if (json_object_get(cfg, *others)) {
			config_fail(c, cfg, *others, "is not given together with %s", key);
			ret = -EINVAL;
		}
	return ret;
}

static int parse_address(struct redis_node *m, struct config *c, json_t *cfg)
{
	static const char *const with_uri[] = { "host", "port", "path", "user", "db", NULL };
	static const char *const with_path[] = { "host", "port", NULL };
	struct redis_address *a = &m->address;
	const char *why;
	int ret = exclude(c, cfg, "uri", with_uri) ?: exclude(c, cfg, "path", with_path);

	if (ret)
		return ret;
	if (m->uri) {
		if (redis_uri_parse(a, m->uri, &why)) {
			config_fail(c, cfg, "uri", "%s", why);
			return -EINVAL;
		}
		if (*a->password && (m->password || m->password_file)) {
			config_fail(c, cfg, m->password ? "password" : "password_file",
				    "uri has a password, too");
			return -EINVAL;
		}
		return 0;
	}
	if (strlen(m->host) >= sizeof(a->host) || (m->path && strlen(m->path) >= sizeof(a->path))) {
		config_fail(c, cfg, m->path ? "path" : "host", "is too long");
		return -EINVAL;
	}
	snprintf(a->host, sizeof(a->host), "%s", m->host);
	snprintf(a->path, sizeof(a->path), "%s", m->path ? m->path : "");
	snprintf(a->port, sizeof(a->port), "%d", (int)m->port);
	a->db = m->db;
	return 0;
}

static int parse_access(struct redis_node *m, struct config *c, json_t *cfg)
{
	int ret = outside_secret_check(c, cfg, "password", "password_file");

	if (m->user && !m->password && !m->password_file) {
		config_fail(c, cfg, "user", "is given together with password or password_file");
		ret = -EINVAL;
	}
	if (outside_tls_parse(&m->tls, c, cfg, m->address.tls))
		return -EINVAL;
	if (!m->tls.enabled && !*m->address.path &&
	    (m->password || m->password_file || *m->address.password))
		outside_warn_plain(c, cfg, m->password	    ? "password" :
					   m->password_file ? "password_file" : "uri",
				   m->address.host);
	if (m->address.tls && !m->tls.enabled) {
		config_fail(c, json_object_get(cfg, "ssl"), "enabled",
			    "uri says rediss://, which is with TLS");
		ret = -EINVAL;
	}
	if (m->tls.enabled && *m->address.path) {
		config_fail(c, cfg, "ssl", "there is no TLS over a Unix socket");
		ret = -EINVAL;
	}
	return outside_tls_find(&m->tls, c, cfg) ?: ret;
}

/* Keys of one mode are refused in the others. */
static int check_mode(const struct redis_node *m, struct config *c, const json_t *cfg)
{
	static const struct {
		const char *group, *key;
		unsigned modes;
		bool also_there; /* VILLASnode has it, and passes it over */
	} rows[] = {
		{ NULL, "channel", 1 << REDIS_CHANNEL, true },
		{ "in", "pattern", 1 << REDIS_CHANNEL, false },
		{ NULL, "key", 1 << REDIS_KEY | 1 << REDIS_HASH | 1 << REDIS_STREAM, true },
		{ NULL, "notify", 1 << REDIS_KEY | 1 << REDIS_HASH, true },
		{ NULL, "rate", 1 << REDIS_KEY | 1 << REDIS_HASH, true },
		{ NULL, "format", 1 << REDIS_KEY | 1 << REDIS_CHANNEL | 1 << REDIS_STREAM, true },
		{ NULL, "max_length", 1 << REDIS_STREAM, false },
		{ NULL, "field", 1 << REDIS_STREAM, false },
		{ "in", "from", 1 << REDIS_STREAM, false },
		{ "in", "group", 1 << REDIS_STREAM, false },
		{ "in", "consumer", 1 << REDIS_STREAM, false },
	};
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const json_t *at = rows[i].group ? json_object_get(cfg, rows[i].group) : cfg;

		if (rows[i].modes & 1u << m->mode || !json_object_get(at, rows[i].key))
			continue;
		if (rows[i].also_there) {
			config_warn(c, at, rows[i].key, "says nothing with mode = \"%s\"",
				    modes[m->mode]);
			continue;
		}
		config_fail(c, at, rows[i].key, "says nothing with mode = \"%s\"", modes[m->mode]);
		ret = -EINVAL;
	}
	if (m->consumer && !m->group) {
		config_fail(c, json_object_get(cfg, "in"), "consumer",
			    "is given together with group");
		ret = -EINVAL;
	}
	return ret;
}

static void name_target(struct redis_node *m)
{
	const struct redis_address *a = &m->address;
	bool is_number = strchr(a->host, ':');

	if (*a->path)
		snprintf(m->target, sizeof(m->target), "unix://%s", a->path);
	else
		snprintf(m->target, sizeof(m->target), "redis%s://%s%s%s:%s",
			 m->tls.enabled ? "s" : "", is_number ? "[" : "", a->host,
			 is_number ? "]" : "", a->port);
	if (a->db)
		snprintf(m->target + strlen(m->target), sizeof(m->target) - strlen(m->target),
			 "/%lld", (long long)a->db);
	outside_set_target(&m->outside, m->target);
}

static const struct outside_ops hash_ops;

static int redis_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct redis_node *m = n->private_data;
	const json_t *in = json_object_get(cfg, "in");
	int ret = check_mode(m, c, cfg);

	if (m->mode == REDIS_HASH)
		m->outside.ops = &hash_ops;
	else
		ret = outside_parse(n, c, cfg, "json") ?: ret;
	ret = parse_timeout(m, c, cfg) ?: ret;
	ret = parse_names(c, cfg, "channel", m->channel_cfg, m->channels, &m->channel_count) ?: ret;
	ret = parse_names(c, in, "pattern", m->pattern_cfg, m->patterns, &m->pattern_count) ?: ret;
	ret = parse_address(m, c, cfg) ?: ret;
	ret = parse_access(m, c, cfg) ?: ret;
	if (!m->key)
		m->key = n->name;
	if (!m->consumer)
		m->consumer = n->name;
	if (!m->channel_count && !m->pattern_count)
		m->channels[m->channel_count++] = n->name;
	if (!*m->key || strlen(m->key) > 1000) {
		config_fail(c, cfg, "key", "has from 1 to 1000 bytes");
		ret = -EINVAL;
	}
	name_target(m);
	return ret;
}

/* The fields of a hash are found by the names of the signals. */
static int check_hash(struct node *n, struct config *c, json_t *cfg)
{
	const struct signal_list *l = n->in.signals;
	int ret = 0;

	if (!n->is_source)
		return 0;
	if (!signal_list_is_given(n->in.cfg, "signals") && !signal_list_is_given(cfg, "signals")) {
		config_fail(c, cfg, NULL,
			    "a path reads the hash: in.signals has to say which fields it has");
		return -EINVAL;
	}
	for (unsigned i = 0; l && i < l->count; i++)
		for (unsigned k = 0; k < i && !ret; k++)
			if (!strcmp(l->signals[i].name, l->signals[k].name)) {
				config_fail(c, cfg, NULL, "two signals have the name %s",
					    l->signals[i].name);
				ret = -EINVAL;
			}
	return ret;
}

static int redis_check(struct node *n, struct config *c, json_t *cfg)
{
	struct redis_node *m = n->private_data;

	if (m->mode == REDIS_HASH)
		return check_hash(n, c, cfg);
	if (n->is_destination && m->mode == REDIS_CHANNEL && !m->channel_count) {
		config_fail(c, cfg, "channel", "a path writes the node, and a pattern is no channel");
		return -EINVAL;
	}
	return 0;
}

/* ---- the node ---- */

static const struct outside_ops redis_ops = {
	.open = redis_open,
	.close = redis_close,
	.send = redis_send,
	.turn = redis_turn,
	.wait = redis_wait,
};

static const struct outside_ops hash_ops = {
	.open = redis_open,
	.close = redis_close,
	.send = redis_send,
	.turn = redis_turn,
	.wait = redis_wait,
	.print = redis_hash_print,
};

static int redis_init(struct node *n)
{
	struct redis_node *m = n->private_data;

	m->data.stream.fd = m->feed.stream.fd = -1;
	outside_init(n, &redis_ops);
	return 0;
}

static int redis_start(struct node *n)
{
	struct redis_node *m = n->private_data;

	m->wary = m->has_last = m->has_read = m->said_polling = false;
	m->last = (struct redis_id){ 0 };
	return outside_start(n);
}

static int redis_reverse(struct node *n)
{
	/* Both directions have the same key or channel. */
	return 0;
}

static void redis_print(struct node *n, char *buf, size_t size)
{
	struct redis_node *m = n->private_data;
	bool is_channel = m->mode == REDIS_CHANNEL;

	snprintf(buf, size, "%s, %s %s%s", m->target, modes[m->mode],
		 !is_channel ? m->key : m->channel_count ? m->channels[0] : m->patterns[0],
		 is_channel && m->channel_count + m->pattern_count > 1 ? " and others" : "");
}

static const struct node_figure redis_figures[] = {
	OUTSIDE_FIGURE_TABLE,
	[REDIS_UNHEARD] = { "unheard", "Messages that no one had subscribed to", NODE_COUNTER },
	[REDIS_UNCHANGED] = { "unchanged", "Values that were read again, and are no new samples",
			      NODE_COUNTER },
	[REDIS_OVERWRITTEN] = { "overwritten",
				"Changes that another one followed before the value was read",
				NODE_COUNTER },
	[REDIS_AGAIN] = { "again", "Entries of a stream that the server gave once more, and that were not read again",
			  NODE_COUNTER },
};

const struct node_type node_redis = {
	.name = "redis",
	.description = "Samples in keys, hashes, channels and streams of a Redis server",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_STOP_WAITS,
	.size = sizeof(struct redis_node),
	.keys = redis_keys,
	.key_count = ARRAY_SIZE(redis_keys),
	.in_keys = redis_in_keys,
	.in_key_count = ARRAY_SIZE(redis_in_keys),
	.out_keys = redis_out_keys,
	.out_key_count = ARRAY_SIZE(redis_out_keys),
	.figures = redis_figures,
	.figure_count = ARRAY_SIZE(redis_figures),
	OUTSIDE_CALLBACKS,
	.init = redis_init,
	.parse = redis_parse,
	.check = redis_check,
	.start = redis_start,
	.stop = outside_stop,
	.reverse = redis_reverse,
	.print = redis_print,
};
