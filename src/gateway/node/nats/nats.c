/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `nats`: samples in messages of a NATS server, also in streams (JetStream).
 * Connecting, waiting and accounting are those of gateway/outside.
 */
#define LOG_ROOM "gateway/nats"
#include "gateway/node/nats/nats.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern const struct node_type node_nats;

#define OFFSET(field) offsetof(struct nats_node, field)

#define URL "{'type': ['string', 'null'], 'pattern': '^(nats|tls)://[^@]+'}"
#define URLS "'anyOf': [" URL ", {'type': 'array', 'items': " URL "}]"
#define SUBJECT "{'type': ['string', 'null'], 'pattern': '^[^ ]+$'}"
#define SUBJECTS "'anyOf': [" SUBJECT ", {'type': 'array', 'items': " SUBJECT "}]"

static const struct config_key nats_keys[] = {
	{ "url", CONFIG_JSON, OFFSET(url_cfg), .form = URLS,
	  .help = "\"nats://host:port\", or a list of the servers of a cluster, in place of host "
		  "and port; tls:// protects" },
	{ "host", CONFIG_STRING, OFFSET(host), .help = "Name or address of the server" },
	{ "port", CONFIG_INT, OFFSET(port), "4222", .min = 1, .max = 65535, .help = "TCP port" },
	{ "username", CONFIG_STRING, OFFSET(username), .help = "Name of the user" },
	{ "password", CONFIG_STRING, OFFSET(password),
	  .help = "Password; better password_file or ${NAME}" },
	{ "password_file", CONFIG_STRING, OFFSET(password_file),
	  .help = "File whose first line is the password" },
	{ "token", CONFIG_STRING, OFFSET(token), .help = "Token; better token_file or ${NAME}" },
	{ "token_file", CONFIG_STRING, OFFSET(token_file),
	  .help = "File whose first line is the token" },
	{ "credentials", CONFIG_STRING, OFFSET(credentials),
	  .help = "File with the JWT and the seed of the user (.creds)" },
	{ "keepalive", CONFIG_REAL, OFFSET(keepalive_s), "5.0", .min = 0.1, .max = 3600,
	  .help = "Seconds between questions whether the server is there; it is given up when "
		  "three have no answer" },
	{ "no_echo", CONFIG_BOOL, OFFSET(no_echo), "false",
	  .help = "The node does not read what it has written" },
	{ "jetstream", CONFIG_JSON, OFFSET(jetstream_cfg), .group = nats_jetstream_keys,
	  .group_count = NATS_JETSTREAM_KEYS,
	  .help = "A stream keeps the messages: { stream, durable, create, memory, max_bytes }" },
	OUTSIDE_TLS_KEY(OFFSET(ssl)),
	OUTSIDE_KEYS("json"),
};

static const struct config_key nats_in_keys[] = {
	{ "subscribe", CONFIG_JSON, OFFSET(subscribe), .form = SUBJECTS,
	  .help = "Subject, or list of subjects, to read from; * stands for a part, > for the rest" },
	{ "queue_group", CONFIG_STRING, OFFSET(queue_group),
	  .help = "Each message goes to one of the readers of this group" },
	{ "max_message", CONFIG_INT, OFFSET(in_message_max), "1048576", .min = 64,
	  .max = NATS_MESSAGE_MAX, .help = "Bytes of a message, at most" },
	OUTSIDE_IN_KEYS,
};

static const struct config_key nats_out_keys[] = {
	{ "publish", CONFIG_JSON, OFFSET(publish), .form = SUBJECTS,
	  .help = "Subject, or list of subjects, to write to" },
	OUTSIDE_OUT_KEYS,
};

static const struct outside_ops nats_ops;

/* ---- settings ---- */

/* Parts between points, without spaces; `*` and `>` where `wildcards`. */
static bool is_subject(const char *s, bool wildcards)
{
	while (*s) {
		size_t n = strcspn(s, ".");
		bool last = !s[n];

		for (size_t i = 0; i < n; i++) {
			bool wild = s[i] == '*' || s[i] == '>';

			if (isspace((unsigned char)s[i]) || iscntrl((unsigned char)s[i]))
				return false;
			if (wild && (!wildcards || n > 1 || (s[i] == '>' && !last)))
				return false;
		}
		if (!n)
			return false;
		if (last)
			return true;
		s += n + 1;
	}
	return false;
}

static int parse_subjects(struct config *c, const json_t *at, const char *key,
			  const json_t *given, bool wildcards, const char **out, unsigned *count)
{
	int ret = outside_texts(c, at, key, given, "a subject", out, NATS_SUBJECTS_MAX, count);

	for (unsigned i = 0; i < *count; i++)
		if (!is_subject(out[i], wildcards) || strlen(out[i]) > 250) {
			config_fail(c, at, key, "'%.100s' is no subject%s", out[i],
				    wildcards ? "" : " to write to");
			ret = -EINVAL;
		}
	return ret;
}

/* "nats://TOKEN@host": would be shown as the name of a user. */
static bool has_token(const char *url)
{
	const char *host = strstr(url, "://"), *at = host ? strchr(host, '@') : NULL;

	return at && !memchr(host + 3, ':', (size_t)(at - host - 3));
}

static int parse_urls(struct nats_node *m, struct config *c, json_t *cfg)
{
	unsigned count;
	int ret = outside_texts(c, cfg, "url", m->url_cfg, "nats://HOST:PORT", m->urls,
				NATS_URLS_MAX, &count);

	/* Later checks see addresses that are good, or none. */
	for (unsigned i = 0; i < count && !ret; i++) {
		struct nats_url u;

		if (has_token(m->urls[i])) {
			config_fail(c, cfg, "url", "give the token by token or token_file");
			ret = -EINVAL;
		} else if (!nats_url_parse(&u, m->urls[i])) {
			config_fail(c, cfg, "url", "expected nats://HOST:PORT or tls://HOST:PORT");
			ret = -EINVAL;
		}
	}
	m->url_count = ret ? 0 : count;
	if (ret)
		return ret;
	if (!m->host == !m->url_count) {
		config_fail(c, cfg, m->host ? "host" : NULL, "%s",
			    m->host ? "is given by url, too" : "url or host is missing");
		return -EINVAL;
	}
	return 0;
}

static bool has_tls_url(const struct nats_node *m)
{
	for (unsigned i = 0; i < m->url_count; i++)
		if (!strncmp(m->urls[i], "tls://", 6))
			return true;
	return false;
}

static int parse_tls(struct nats_node *m, struct config *c, json_t *cfg)
{
	struct outside_tls *t = &m->tls;

	if (outside_tls_parse(t, c, cfg, has_tls_url(m)))
		return -EINVAL;
	if (!t->enabled && has_tls_url(m)) {
		config_fail(c, json_object_get(cfg, "ssl"), "enabled", "the url is tls://");
		return -EINVAL;
	}
	return outside_tls_find(t, c, cfg);
}

static void warn_plain(const struct nats_node *m, struct config *c, json_t *cfg)
{
	const char *key = m->password ? "password" : m->password_file ? "password_file" :
			  m->token ? "token" : m->token_file ? "token_file" : NULL;

	if (m->tls.enabled)
		return;
	if (key && m->host)
		outside_warn_plain(c, cfg, key, m->host);
	for (unsigned i = 0; i < m->url_count; i++) {
		struct nats_url u;

		nats_url_parse(&u, m->urls[i]);
		if (key || *u.user)
			outside_warn_plain(c, cfg, *u.user ? "url" : key, u.host);
	}
}

static int parse_access(struct nats_node *m, struct config *c, json_t *cfg)
{
	int ret = outside_secret_check(c, cfg, "password", "password_file");

	ret = outside_secret_check(c, cfg, "token", "token_file") ?: ret;
	if (!m->username && (m->password || m->password_file)) {
		config_fail(c, cfg, m->password ? "password" : "password_file",
			    "is given together with username");
		ret = -EINVAL;
	}
	if ((m->username != NULL) + (m->token || m->token_file) + (m->credentials != NULL) > 1) {
		config_fail(c, cfg, m->credentials ? "credentials" : "username",
			    "give one of username, token and credentials");
		ret = -EINVAL;
	}
	if (m->credentials && access(m->credentials, R_OK)) {
		config_fail(c, cfg, "credentials", "cannot read %s: %s", m->credentials,
			    strerror(errno));
		ret = -EINVAL;
	}
	ret = parse_tls(m, c, cfg) ?: ret;
	warn_plain(m, c, cfg);
	return ret;
}

static void set_target(struct nats_node *m)
{
	if (m->host) {
		bool v6 = strchr(m->host, ':') && *m->host != '[';

		snprintf(m->own_url, sizeof(m->own_url), "%s://%s%.250s%s:%d",
			 m->tls.enabled ? "tls" : "nats", v6 ? "[" : "", m->host, v6 ? "]" : "",
			 (int)m->port);
		m->urls[0] = m->own_url;
		m->url_count = 1;
	}
	outside_url_shown(m->url_count ? m->urls[0] : "nats://", m->target, sizeof(m->target));
	outside_set_target(&m->outside, m->target);
}

static int nats_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct nats_node *m = n->private_data;
	const json_t *in = json_object_get(cfg, "in"), *out = json_object_get(cfg, "out");
	int ret = outside_parse(n, c, cfg, "json");

	ret = parse_subjects(c, in, "subscribe", m->subscribe, true, m->sub, &m->sub_count) ?: ret;
	ret = parse_subjects(c, out, "publish", m->publish, false, m->pub, &m->pub_count) ?: ret;
	ret = parse_urls(m, c, cfg) ?: ret;
	ret = parse_access(m, c, cfg) ?: ret;
	ret = nats_jetstream_parse(m, c, cfg) ?: ret;
	if (m->queue_group && !is_subject(m->queue_group, false)) {
		config_fail(c, in, "queue_group", "is a name without spaces, '*' and '>'");
		ret = -EINVAL;
	}
	set_target(m);
	return ret;
}

static int nats_check(struct node *n, struct config *c, json_t *cfg)
{
	struct nats_node *m = n->private_data;
	int ret = 0;

	if (n->is_source && !m->sub_count) {
		config_fail(c, cfg, NULL, "a path reads the node, but in.subscribe is missing");
		ret = -EINVAL;
	}
	if (n->is_destination && !m->pub_count) {
		config_fail(c, cfg, NULL, "a path writes the node, but out.publish is missing");
		ret = -EINVAL;
	}
	if (n->is_source && m->js.enabled && !m->js.durable) {
		config_fail(c, cfg, "jetstream",
			    "a path reads the node, but jetstream.durable is missing");
		ret = -EINVAL;
	}
	return ret;
}

/* ---- the life of a node ---- */

static void nats_close(struct outside *o)
{
	struct nats_node *m = nats_of(o);

	if (m->js.enabled)
		nats_jetstream_close(m);
	nats_drop(m);
}

static const struct outside_ops nats_ops = {
	.open = nats_open,
	.close = nats_close,
	.send = nats_send,
	.turn = nats_turn,
	.wait = nats_wait,
};

static int nats_init(struct node *n)
{
	struct nats_node *m = n->private_data;

	outside_init(n, &nats_ops);
	m->stream.fd = -1;
	return 0;
}

static int nats_stop(struct node *n)
{
	struct nats_node *m = n->private_data;

	outside_stop(n);
	/* A thread that has not ended in time still uses the data of the stream. */
	if (!m->outside.has_thread)
		nats_jetstream_stop(m);
	return 0;
}

static int nats_start(struct node *n)
{
	struct nats_node *m = n->private_data;

	return nats_jetstream_start(m) ?: outside_start(n);
}

static int nats_reverse(struct node *n)
{
	struct nats_node *m = n->private_data;
	const char *subjects[NATS_SUBJECTS_MAX];
	unsigned count = m->sub_count;

	memcpy(subjects, m->sub, sizeof(subjects));
	memcpy(m->sub, m->pub, sizeof(subjects));
	memcpy(m->pub, subjects, sizeof(subjects));
	m->sub_count = m->pub_count;
	m->pub_count = count;
	return 0;
}

static void nats_print(struct node *n, char *buf, size_t size)
{
	struct nats_node *m = n->private_data;

	snprintf(buf, size, "%s%s%s%s%s%s%s", m->target, m->js.enabled ? ", stream " : "",
		 m->js.enabled ? m->js.stream : "", m->sub_count ? ", from " : "",
		 m->sub_count ? m->sub[0] : "", m->pub_count ? ", to " : "",
		 m->pub_count ? m->pub[0] : "");
}

static const struct node_figure nats_figures[] = {
	OUTSIDE_FIGURE_TABLE,
	[FAULT_TRUNCATED] = { "oversized", "Messages longer than in.max_message", NODE_COUNTER },
	[NATS_DUPLICATES] = { "duplicates", "Messages of a stream that came again and were not read",
			      NODE_COUNTER },
};

const struct node_type node_nats = {
	.name = "nats",
	.description = "Samples in messages of a NATS server",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_STOP_WAITS,
	.size = sizeof(struct nats_node),
	.keys = nats_keys,
	.key_count = ARRAY_SIZE(nats_keys),
	.in_keys = nats_in_keys,
	.in_key_count = ARRAY_SIZE(nats_in_keys),
	.out_keys = nats_out_keys,
	.out_key_count = ARRAY_SIZE(nats_out_keys),
	.figures = nats_figures,
	.figure_count = ARRAY_SIZE(nats_figures),
	OUTSIDE_CALLBACKS,
	.init = nats_init,
	.parse = nats_parse,
	.check = nats_check,
	.start = nats_start,
	.stop = nats_stop,
	.reverse = nats_reverse,
	.print = nats_print,
};
