/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `zeromq`: samples in messages of ZeroMQ, published and subscribed without a server,
 * by libzmq. Connecting, waiting and accounting are those of gateway/outside.
 */
#define LOG_ROOM "gateway/zeromq"
#include "gateway/node/zeromq/zeromq.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

extern const struct node_type node_zeromq;

/* A group's name may be this long. */
#define GROUP_MAX 15

static const char *const patterns[] = { "pubsub", "radiodish", NULL };

#define OFFSET(field) offsetof(struct zeromq_node, field)

#define URL "{'type': ['string', 'null'], 'pattern': '^(tcp|ipc|udp)://.'}"
#define URLS "'anyOf': [" URL ", {'type': 'array', 'items': " URL "}]"

static const struct config_key zeromq_keys[] = {
	{ "pattern", CONFIG_ENUM, OFFSET(pattern), "pubsub", .names = patterns,
	  .help = "pubsub, or radiodish where libzmq has it" },
	{ "ipv6", CONFIG_BOOL, OFFSET(ipv6), "false", .help = "Addresses may be of IPv6" },
	{ "heartbeat", CONFIG_REAL, OFFSET(heartbeat_s), "5.0", .min = 0, .max = 3600,
	  .help = "Seconds of silence after which a connection is given up; 0: never" },
	{ "curve", CONFIG_JSON, OFFSET(curve_cfg), .group = zeromq_curve_keys,
	  .group_count = ZEROMQ_CURVE_KEYS,
	  .help = "Encryption: { enabled, public_key, secret_key, secret_key_file, server_key, role, allow }" },
	OUTSIDE_KEYS("villas.binary"),
};

static const struct config_key zeromq_in_keys[] = {
	{ "subscribe", CONFIG_JSON, OFFSET(in.given), .form = URLS,
	  .help = "Address, or list of addresses, of publishers: tcp://HOST:PORT or ipc://PATH" },
	{ "filter", CONFIG_STRING, OFFSET(in.filter),
	  .help = "Only messages whose first frame begins so; without it all" },
	{ "bind", CONFIG_BOOL, OFFSET(in.bind), "false",
	  .help = "Publishers connect to this node, and not the other way round" },
	{ "hwm", CONFIG_INT, OFFSET(in.hwm), "1000", .min = 1, .max = 1000000,
	  .help = "Messages that libzmq keeps of each publisher" },
	{ "max_message", CONFIG_INT, OFFSET(in_message_max), "262144", .min = 64,
	  .max = 1 << 28, .help = "Bytes of a message, at most; a longer one ends its connection" },
	OUTSIDE_IN_KEYS,
};

static const struct config_key zeromq_out_keys[] = {
	{ "publish", CONFIG_JSON, OFFSET(out.given), .form = URLS,
	  .help = "Address, or list of addresses, to publish at: tcp://HOST:PORT or ipc://PATH" },
	{ "filter", CONFIG_STRING, OFFSET(out.filter),
	  .help = "First frame of each message; without it there is none" },
	{ "bind", CONFIG_BOOL, OFFSET(out.bind), "true",
	  .help = "Subscribers connect to this node, and not the other way round" },
	{ "hwm", CONFIG_INT, OFFSET(out.hwm), "1000", .min = 1, .max = 1000000,
	  .help = "Messages that libzmq keeps for each subscriber" },
	{ "drop_slow", CONFIG_BOOL, OFFSET(drop_slow), "false",
	  .help = "A slow subscriber loses messages, uncounted, and does not hold up the others" },
	OUTSIDE_OUT_KEYS,
};

/* ---- settings ---- */

static bool is_port(const char *port, bool bind)
{
	char *end;
	long value = strtol(port, &end, 10);

	if (bind && (!strcmp(port, "*") || !strcmp(port, "!")))
		return true;
	return *port >= '0' && *port <= '9' && !*end && value > 0 && value <= 65535;
}

/* NULL, or what is wrong. */
static const char *check_url(const struct zeromq_node *m, const char *url, bool bind)
{
	const char *colon = strrchr(url, ':');
	bool is_udp = !strncmp(url, "udp://", 6);

	if (strlen(url) >= ZEROMQ_URL_MAX)
		return "it is too long";
	if (!strncmp(url, "ipc://", 6))
		return url[6] && strlen(url + 6) < sizeof(((struct sockaddr_un *)0)->sun_path) ?
			NULL : "expected a path of 1 to 107 characters";
	if (is_udp && m->pattern != ZEROMQ_RADIODISH)
		return "udp:// is there for the pattern radiodish only";
	if (!is_udp && strncmp(url, "tcp://", 6))
		return "expected tcp://HOST:PORT or ipc://PATH";
	if (colon <= url + 6 || !is_port(colon + 1, bind))
		return "expected a host, a colon and a port";
	if (!bind && url[6] == '*')
		return "* is for a side that binds";
	return NULL;
}

static int parse_side(struct zeromq_node *m, struct zeromq_side *d, struct config *c,
		      const json_t *at, const char *key)
{
	int ret = outside_texts(c, at, key, d->given, "an address", d->url, ZEROMQ_URLS_MAX,
				&d->url_count);

	for (unsigned i = 0; i < d->url_count; i++) {
		const char *url = d->url[i], *wrong;

		/* Such an address can only be bound. */
		if (!strncmp(url, "tcp://*", 7) && !json_object_get(at, "bind"))
			d->bind = true;
		wrong = check_url(m, url, d->bind);
		if (wrong) {
			config_fail(c, at, key, "'%.100s' is no address: %s", url, wrong);
			ret = -EINVAL;
		}
		d->is_udp = d->is_udp || !strncmp(url, "udp://", 6);
	}
	if (d->filter && !*d->filter)
		d->filter = NULL;
	if (m->pattern == ZEROMQ_RADIODISH && d->filter && strlen(d->filter) > GROUP_MAX) {
		config_fail(c, at, "filter", "a group has %d characters at most", GROUP_MAX);
		ret = -EINVAL;
	}
	return ret;
}

static int parse_pattern(struct zeromq_node *m, struct config *c, json_t *cfg)
{
	if (m->pattern == ZEROMQ_PUBSUB)
		return 0;
#ifdef ZMQ_BUILD_DRAFT_API
	if (zmq_has("draft"))
		return 0;
#endif
	config_fail(c, cfg, "pattern",
		    "radiodish needs the draft API, without which the installed libzmq was built; use pubsub");
	return -EINVAL;
}

static int zeromq_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct zeromq_node *m = n->private_data;
	const json_t *in = json_object_get(cfg, "in"), *out = json_object_get(cfg, "out");
	const struct zeromq_side *d;
	int ret = outside_parse(n, c, cfg, "villas.binary");

	m->in.peers_figure = ZEROMQ_IN_PEERS;
	m->out.peers_figure = ZEROMQ_OUT_PEERS;
	ret = parse_pattern(m, c, cfg) ?: ret;
	ret = parse_side(m, &m->in, c, in, "subscribe") ?: ret;
	ret = parse_side(m, &m->out, c, out, "publish") ?: ret;
	ret = zeromq_curve_parse(m, c, cfg) ?: ret;
	d = m->out.url_count ? &m->out : &m->in;
	snprintf(m->target, sizeof(m->target), "%.200s%s", d->url_count ? d->url[0] : "no address",
		 d->url_count > 1 ? " and others" : "");
	outside_set_target(&m->outside, m->target);
	return ret;
}

static int zeromq_check(struct node *n, struct config *c, json_t *cfg)
{
	struct zeromq_node *m = n->private_data;
	int ret = 0;

	if (n->is_source && !m->in.url_count) {
		config_fail(c, cfg, NULL, "a path reads the node, but in.subscribe is missing");
		ret = -EINVAL;
	}
	if (n->is_destination && !m->out.url_count) {
		config_fail(c, cfg, NULL, "a path writes the node, but out.publish is missing");
		ret = -EINVAL;
	}
	return ret;
}

/* ---- the node ---- */

static const struct outside_ops zeromq_ops = {
	.flags = OUTSIDE_PATIENT,
	.open = zeromq_open,
	.close = zeromq_close,
	.send = zeromq_send,
	.turn = zeromq_turn,
	.wait = zeromq_wait,
};

static int zeromq_init(struct node *n)
{
	outside_init(n, &zeromq_ops);
	return 0;
}

static int zeromq_stop(struct node *n)
{
	struct zeromq_node *m = n->private_data;

	outside_stop(n);
	/* Not while its thread hangs in the library. */
	if (!m->outside.has_thread)
		zeromq_forget(m);
	node_figure_set(n, ZEROMQ_IN_PEERS, 0);
	node_figure_set(n, ZEROMQ_OUT_PEERS, 0);
	return 0;
}

/* The node becomes the peer of the one that it was: it connects where that one binds. */
static int zeromq_reverse(struct node *n)
{
	struct zeromq_node *m = n->private_data;
	struct zeromq_side in = m->in, out = m->out;

	memcpy(m->in.url, out.url, sizeof(out.url));
	m->in.url_count = out.url_count;
	m->in.filter = out.filter;
	m->in.bind = !out.bind;
	m->in.is_udp = out.is_udp;
	memcpy(m->out.url, in.url, sizeof(in.url));
	m->out.url_count = in.url_count;
	m->out.filter = in.filter;
	m->out.bind = !in.bind;
	m->out.is_udp = in.is_udp;
	return 0;
}

static void zeromq_print(struct node *n, char *buf, size_t size)
{
	struct zeromq_node *m = n->private_data;
	const struct zeromq_side *in = &m->in, *out = &m->out;

	snprintf(buf, size, "%s%s%s%s%s%s%s%s%s%s", patterns[m->pattern],
		 m->curve.enabled ? " with CURVE" : "", in->url_count ? ", from " : "",
		 in->url_count ? in->url[0] : "", in->url_count > 1 ? " and others" : "",
		 in->url_count && in->bind ? " (bound)" : "", out->url_count ? ", to " : "",
		 out->url_count ? out->url[0] : "", out->url_count > 1 ? " and others" : "",
		 out->url_count && out->bind ? " (bound)" : "");
}

static const struct node_figure zeromq_figures[] = {
	OUTSIDE_FIGURE_TABLE,
	[ZEROMQ_IN_PEERS] = { "publishers", "Peers from which the node receives", NODE_GAUGE },
	[ZEROMQ_OUT_PEERS] = { "subscribers", "Peers to which the node publishes", NODE_GAUGE },
	[ZEROMQ_HANDSHAKES_FAILED] = { "handshakes_failed",
				       "Peers with wrong keys or another protocol", NODE_COUNTER },
};

const struct node_type node_zeromq = {
	.name = "zeromq",
	.description = "Samples in messages of ZeroMQ",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_STOP_WAITS,
	.size = sizeof(struct zeromq_node),
	.keys = zeromq_keys,
	.key_count = ARRAY_SIZE(zeromq_keys),
	.in_keys = zeromq_in_keys,
	.in_key_count = ARRAY_SIZE(zeromq_in_keys),
	.out_keys = zeromq_out_keys,
	.out_key_count = ARRAY_SIZE(zeromq_out_keys),
	.figures = zeromq_figures,
	.figure_count = ARRAY_SIZE(zeromq_figures),
	OUTSIDE_CALLBACKS,
	.init = zeromq_init,
	.parse = zeromq_parse,
	.check = zeromq_check,
	.start = outside_start,
	.stop = zeromq_stop,
	.reverse = zeromq_reverse,
	.print = zeromq_print,
};
