/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `nanomsg`: samples in messages of the scalability protocols (SP), by nng, which
 * speaks with nanomsg and with other nng programs. Waiting and accounting are those of
 * gateway/outside; in place of a server there are peers.
 */
#define LOG_ROOM "gateway/nanomsg"
#include "gateway/node/nanomsg/nanomsg.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

extern const struct node_type node_nanomsg;

static const char *const patterns[] = { "pubsub", "pipeline", "pair", NULL };

#define OFFSET(field) offsetof(struct nanomsg_node, field)

#define URL "{'type': ['string', 'null'], 'pattern': '^(tcp[46]?|ipc|unix|abstract|inproc)://.'}"
#define URLS "'anyOf': [" URL ", {'type': 'array', 'items': " URL "}]"

static const struct config_key nanomsg_keys[] = {
	{ "pattern", CONFIG_ENUM, OFFSET(pattern), "pubsub", .names = patterns,
	  .help = "pubsub: to all peers, a slow one misses some; pipeline: each message to one "
		  "of the peers, waiting for it; pair: one peer, both directions" },
	OUTSIDE_KEYS("json"),
};

static const struct config_key nanomsg_in_keys[] = {
	{ "endpoints", CONFIG_JSON, OFFSET(in.endpoints), .form = URLS,
	  .help = "Address, or list of addresses, to read from, as tcp://HOST:PORT or ipc://PATH" },
	{ "subscribe", CONFIG_JSON, OFFSET(in.alias), .form = URLS, .help = "The same as endpoints" },
	{ "bind", CONFIG_BOOL, OFFSET(in.bind), "false",
	  .help = "The node listens at in.endpoints; false: it dials them" },
	{ "max_message", CONFIG_INT, OFFSET(in_message_max), "1048576", .min = 64,
	  .max = 1 << 28, .help = "Bytes of a message; the connection of a peer that sends a "
				  "longer one is ended" },
	OUTSIDE_IN_KEYS,
};

static const struct config_key nanomsg_out_keys[] = {
	{ "endpoints", CONFIG_JSON, OFFSET(out.endpoints), .form = URLS,
	  .help = "Address, or list of addresses, to write to" },
	{ "publish", CONFIG_JSON, OFFSET(out.alias), .form = URLS, .help = "The same as endpoints" },
	{ "bind", CONFIG_BOOL, OFFSET(out.bind), "true",
	  .help = "The node listens at out.endpoints; false: it dials them" },
	OUTSIDE_OUT_KEYS,
};

/* ---- settings ---- */

static bool is_known(const char *url)
{
	static const char *const schemes[] = { "tcp", "tcp4", "tcp6", "ipc", "unix", "abstract",
					       "inproc" };
	const char *end = strstr(url, "://");

	for (size_t i = 0; end && i < ARRAY_SIZE(schemes); i++)
		if (strlen(schemes[i]) == (size_t)(end - url) &&
		    !strncmp(url, schemes[i], (size_t)(end - url)))
			return true;
	return false;
}

static int check_url(struct config *c, const json_t *at, const char *key, const char *url)
{
	nng_url *parsed;

	if (!strncmp(url, "tls", 3) || !strncmp(url, "wss", 3)) {
		config_fail(c, at, key, "TLS is not offered, because nng hangs when a peer of it "
			    "leaves; use a tunnel");
		return -EINVAL;
	}
	if (!is_known(url)) {
		config_fail(c, at, key, "'%.100s' is none of tcp://, ipc://, abstract://, inproc://", url);
		return -EINVAL;
	}
	if (strchr(url, '@')) {
		config_fail(c, at, key, "an address of the protocol has no user and password");
		return -EINVAL;
	}
	if (nng_url_parse(&parsed, url)) {
		config_fail(c, at, key, "'%.100s' is no address", url);
		return -EINVAL;
	}
	nng_url_free(parsed);
	return 0;
}

static int parse_side(struct nanomsg_side *side, struct config *c, const json_t *at,
		      const char *alias)
{
	const json_t *given = side->endpoints ? side->endpoints : side->alias;
	const char *key = side->endpoints ? "endpoints" : alias;
	int ret;

	if (side->endpoints && side->alias) {
		config_fail(c, at, alias, "is the same as endpoints, which is given, too");
		return -EINVAL;
	}
	ret = outside_texts(c, at, key, given, "an address", side->urls, NANOMSG_ENDPOINTS_MAX,
			    &side->count);
	for (unsigned i = 0; i < side->count; i++)
		ret = check_url(c, at, key, side->urls[i]) ?: ret;
	return ret;
}

static void describe(struct nanomsg_node *m)
{
	const struct nanomsg_side *sides[] = { &m->in, &m->out };
	int len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sides); i++)
		if (sides[i]->count && len < (int)sizeof(m->target))
			len += snprintf(m->target + len, sizeof(m->target) - (size_t)len,
					"%s%.120s%s", len ? " and " : "", sides[i]->urls[0],
					sides[i]->count > 1 ? " ..." : "");
	outside_set_target(&m->outside, m->target);
}

static int nanomsg_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct nanomsg_node *m = n->private_data;
	const json_t *in = json_object_get(cfg, "in"), *out = json_object_get(cfg, "out");
	int ret = outside_parse(n, c, cfg, "json");

	ret = parse_side(&m->in, c, in, "subscribe") ?: ret;
	ret = parse_side(&m->out, c, out, "publish") ?: ret;
	describe(m);
	return ret;
}

static int nanomsg_check(struct node *n, struct config *c, json_t *cfg)
{
	struct nanomsg_node *m = n->private_data;
	bool pair = m->pattern == NANOMSG_PAIR;
	int ret = 0;

	if (n->is_source && !m->in.count && !(pair && m->out.count)) {
		config_fail(c, cfg, NULL, "a path reads the node, but in.endpoints is missing");
		ret = -EINVAL;
	}
	if (n->is_destination && !m->out.count && !(pair && m->in.count)) {
		config_fail(c, cfg, NULL, "a path writes the node, but out.endpoints is missing");
		ret = -EINVAL;
	}
	return ret;
}

/* ---- the life of a node ---- */

static void init_peers(struct nanomsg_side *side, struct node *n, unsigned figure)
{
	side->peers.node = n;
	side->peers.figure = figure;
}

static int nanomsg_init(struct node *n)
{
	struct nanomsg_node *m = n->private_data;

	outside_init(n, &nanomsg_ops);
	m->event_fd = -1;
	init_peers(&m->in, n, NANOMSG_PEERS_IN);
	init_peers(&m->out, n, NANOMSG_PEERS_OUT);
	return 0;
}

static int nanomsg_stop(struct node *n)
{
	struct nanomsg_node *m = n->private_data;

	outside_stop(n);
	/* Not while its thread hangs in the library. */
	if (!m->outside.has_thread)
		nanomsg_forget(m);
	return 0;
}

static int nanomsg_start(struct node *n)
{
	struct nanomsg_node *m = n->private_data;

	m->sent_ns = 0;
	return outside_start(n);
}

static int nanomsg_reverse(struct node *n)
{
	struct nanomsg_node *m = n->private_data;
	const char *urls[NANOMSG_ENDPOINTS_MAX];
	unsigned count = m->in.count;
	bool bind = m->in.bind;

	memcpy(urls, m->in.urls, sizeof(urls));
	memcpy(m->in.urls, m->out.urls, sizeof(urls));
	memcpy(m->out.urls, urls, sizeof(urls));
	m->in.count = m->out.count;
	m->in.bind = m->out.bind;
	m->out.count = count;
	m->out.bind = bind;
	return 0;
}

static void nanomsg_print(struct node *n, char *buf, size_t size)
{
	struct nanomsg_node *m = n->private_data;
	const struct nanomsg_side *in = &m->in, *out = &m->out;

	snprintf(buf, size, "%s%s%s%s%s%s%s", patterns[m->pattern],
		 in->count ? ", from " : "", in->count ? in->urls[0] : "",
		 in->count && in->bind ? " (listening)" : "",
		 out->count ? ", to " : "", out->count ? out->urls[0] : "",
		 out->count && out->bind ? " (listening)" : "");
}

static const struct node_figure nanomsg_figures[] = {
	OUTSIDE_FIGURE_TABLE,
	[NANOMSG_PEERS_IN] = { "peers_in", "Peers that the node reads from", NODE_GAUGE },
	[NANOMSG_PEERS_OUT] = { "peers_out", "Peers that the node writes to", NODE_GAUGE },
	[NANOMSG_REFUSED] = { "peers_refused", "Connections beyond those that a node may have",
			      NODE_COUNTER },
};

const struct node_type node_nanomsg = {
	.name = "nanomsg",
	.description = "Samples in messages of nanomsg and nng",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_STOP_WAITS,
	.size = sizeof(struct nanomsg_node),
	.keys = nanomsg_keys,
	.key_count = ARRAY_SIZE(nanomsg_keys),
	.in_keys = nanomsg_in_keys,
	.in_key_count = ARRAY_SIZE(nanomsg_in_keys),
	.out_keys = nanomsg_out_keys,
	.out_key_count = ARRAY_SIZE(nanomsg_out_keys),
	.figures = nanomsg_figures,
	.figure_count = ARRAY_SIZE(nanomsg_figures),
	OUTSIDE_CALLBACKS,
	.init = nanomsg_init,
	.parse = nanomsg_parse,
	.check = nanomsg_check,
	.start = nanomsg_start,
	.stop = nanomsg_stop,
	.reverse = nanomsg_reverse,
	.print = nanomsg_print,
};
