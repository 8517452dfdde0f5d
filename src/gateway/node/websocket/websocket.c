/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `websocket`: samples to and from the clients that connect to "/NODE" of the
 * gateway's HTTP server, and to and from other gateways, to which it connects itself. What
 * is written goes to all of them, what comes from any of them is read.
 */
#define LOG_ROOM "gateway/websocket"
#include "gateway/node/websocket/websocket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/base/ending.h"
#include "gateway/base/thread.h"
#include "gateway/plugin/web.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/nearest.h"
#include "util/wakeup.h"

#define LINKS_MAX 64
/* Until the super-node has started the node its state cannot be told. */
#define TELL_NS UINT64_C(20000000)
/* The HTTP server starts after the nodes. */
#define SERVER_NS (2 * NSEC_PER_SEC)

extern const struct node_type node_websocket;

#define OFFSET(field) offsetof(struct ws_node, field)

static const struct config_key websocket_keys[] = {
	{ "destinations", CONFIG_JSON, OFFSET(destinations),
	  .help = "URLs of nodes of other gateways to connect to: ws://HOST:PORT/NODE.FORMAT" },
	{ "format", CONFIG_STRING, OFFSET(format), "villas.web",
	  .help = "Format of those whose URL names none" },
	{ "wait_connected", CONFIG_BOOL, OFFSET(wait_connected), "false",
	  .help = "The node starts when all destinations are connected" },
	{ "connect_timeout", CONFIG_REAL, OFFSET(connect_timeout_s), "5.0", .min = 0,
	  .max = 60, .help = "Seconds that wait_connected waits at most" },
	{ "reconnect_interval", CONFIG_INT, OFFSET(reconnect_ms), "1000", .min = 10,
	  .max = 86400000, .help = "Milliseconds between attempts to connect, at most" },
	{ "ping_interval", CONFIG_REAL, OFFSET(ping_s), "10.0", .min = 0, .max = 86400,
	  .help = "Seconds of silence after which a peer is asked whether it is there; 0: never" },
	{ "ping_timeout", CONFIG_REAL, OFFSET(timeout_s), "10.0", .min = 0.1, .max = 86400,
	  .help = "Seconds behind that after which a silent peer is given up" },
	{ "max_clients", CONFIG_INT, OFFSET(clients_max), "1000", .min = 0, .max = 100000,
	  .help = "Clients of the endpoint at a time" },
	{ "max_message", CONFIG_INT, OFFSET(message_max), "1048576", .min = 1024,
	  .max = 1 << 28, .help = "Bytes of a message that a peer may send" },
	{ "ssl_ca", CONFIG_STRING, OFFSET(ssl_ca),
	  .help = "File of authorities whose servers are trusted (wss://); those of the system without" },
	{ "ssl_cert", CONFIG_STRING, OFFSET(ssl_cert),
	  .help = "File with a certificate of the node, for destinations that ask for one" },
	{ "ssl_private_key", CONFIG_STRING, OFFSET(ssl_private_key),
	  .help = "File with the key of ssl_cert" },
	{ "token_file", CONFIG_STRING, OFFSET(token_file),
	  .help = "File whose first line is the token for the destinations" },
};

static const struct config_key websocket_in_keys[] = {
	{ "queuelen", CONFIG_INT, OFFSET(queuelen), "1024", .min = 2, .max = 1 << 20,
	  .help = "Samples that wait to be read, of all clients, and of each destination" },
};

static const struct config_key websocket_out_keys[] = {
	{ "backlog", CONFIG_INT, OFFSET(backlog), "1048576", .min = 4096, .max = 1 << 30,
	  .help = "Bytes of frames that are kept for slow peers: of each format, and of each destination" },
};

/* ---- settings ---- */

static int websocket_init(struct node *n)
{
	struct ws_node *s = n->private_data;

	s->node = n;
	s->inbox.event_fd = -1;
	s->faults.node = n;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	return 0;
}

static int parse_destination(struct ws_node *s, struct config *c, json_t *cfg, json_t *entry)
{
	struct ws_link *l = &s->links[s->link_count];
	const char *text = json_string_value(entry), *why;

	if (!text) {
		config_fail(c, cfg, "destinations", "expected a list of URLs");
		return -EINVAL;
	}
	if (ws_url_parse(&l->url, text, &why)) {
		config_fail(c, cfg, "destinations", "'%.200s': %s", text, why);
		return -EINVAL;
	}
	l->owner = s;
	l->text = text;
	l->wake_fd = -1;
	stream_init(&l->socket, -1);
	l->ring = 1 + s->link_count++;
	return 0;
}

static int parse_destinations(struct ws_node *s, struct config *c, json_t *cfg)
{
	json_t *list = s->destinations;
	size_t count = json_is_array(list) ? json_array_size(list) : list ? 1 : 0;
	int ret = 0;

	if (count > LINKS_MAX) {
		config_fail(c, cfg, "destinations", "more than %d", LINKS_MAX);
		return -EINVAL;
	}
	s->links = count ? calloc(count, sizeof(*s->links)) : NULL;
	if (count && !s->links)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (parse_destination(s, c, cfg, json_is_array(list) ?
				      json_array_get(list, i) : list))
			ret = -EINVAL;
	return ret;
}

static int websocket_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct ws_node *s = n->private_data;
	int ret = parse_destinations(s, c, cfg);

	if (!ret && s->wait_connected && !s->link_count) {
		config_fail(c, cfg, "wait_connected", "there are no `destinations` to wait for");
		ret = -EINVAL;
	}
	if (!s->ssl_cert != !s->ssl_private_key) {
		config_fail(c, cfg, s->ssl_cert ? "ssl_cert" : "ssl_private_key",
			    "ssl_cert and ssl_private_key are given together");
		ret = -EINVAL;
	}
	return ret;
}

/* That the format is there and can be read and written. */
static int check_format(struct node *n, struct config *c, json_t *cfg, const char *key,
			const char *name)
{
	struct nearest near = NEAREST(name);
	struct format *f = NULL;
	const char *why = NULL;
	char hint[100];
	int ret;

	for (const struct plugin *p = format_plugins; p->name; p++)
		nearest_try(&near, p->name);
	if (!plugin_is_there(format_plugins, name)) {
		config_fail(c, cfg, key, "no format '%.60s'%s", name,
			    nearest_hint(&near, hint, sizeof(hint)));
		return -EINVAL;
	}
	ret = format_new(&f, NULL, NULL, name, NULL);
	if (ret)
		why = "cannot be made ready";
	else if (n->is_destination && !f->type->print)
		why = "cannot be written";
	else if (n->is_source && !f->type->scan)
		why = "cannot be read";
	if (why) {
		config_fail(c, cfg, key, "the format '%.60s' %s", name, why);
		ret = -EINVAL;
	}
	format_destroy(f);
	return ret;
}

static int websocket_check(struct node *n, struct config *c, json_t *cfg)
{
	struct ws_node *s = n->private_data;
	int ret = check_format(n, c, cfg, "format", s->format);

	for (unsigned i = 0; i < s->link_count; i++)
		if (*s->links[i].url.format &&
		    check_format(n, c, cfg, "destinations", s->links[i].url.format))
			ret = -EINVAL;
	return ret;
}

static int websocket_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct ws_node *s = n->private_data;
	int ret = 0;

	/* Clients of the endpoint may ask for others; who is refused is told. */
	for (unsigned i = 0; i < s->link_count; i++) {
		const char *name = *s->links[i].url.format ? s->links[i].url.format : s->format;
		struct format *f;

		if (format_new(&f, NULL, NULL, name, NULL))
			return -EINVAL;
		if (format_check_signals(f, c, cfg, n->out.hooked))
			ret = -EINVAL;
		format_destroy(f);
	}
	return ret;
}

/* ---- the state ---- */

/* With the lock. */
static void tell_state(struct ws_node *s)
{
	bool connected = s->links_up || s->client_count;

	pthread_cond_broadcast(&s->changed);
	if (s->stopping || !node_is_running(s->node) || (s->shown && s->connected == connected))
		return;
	s->shown = true;
	s->connected = connected;
	node_set_state(s->node, connected ? NODE_CONNECTED : NODE_PENDING_CONNECT);
}

void ws_node_links_changed(struct ws_node *s, int by)
{
	pthread_mutex_lock(&s->lock);
	s->links_up += (unsigned)by;
	node_figure_set(s->node, WS_LINKS, s->links_up);
	tell_state(s);
	pthread_mutex_unlock(&s->lock);
}

static void clients_changed(void *arg, unsigned clients)
{
	struct ws_node *s = arg;

	pthread_mutex_lock(&s->lock);
	s->client_count = clients;
	node_figure_set(s->node, WS_CLIENTS, clients);
	tell_state(s);
	pthread_mutex_unlock(&s->lock);
}

/* With the lock, which is given up meanwhile. */
static void wait_for_change(struct ws_node *s, uint64_t ns)
{
	struct timespec until = timespec_from_ns(clock_monotonic_ns_slow() + ns);

	pthread_cond_clockwait(&s->changed, &s->lock, CLOCK_MONOTONIC, &until);
}

/* Tells the first state, and, a little later, that nobody can come. */
static void *tell(void *arg)
{
	struct ws_node *s = arg;
	uint64_t since_ns;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping && !node_is_running(s->node))
		wait_for_change(s, TELL_NS);
	tell_state(s);
	since_ns = clock_monotonic_ns_slow();
	while (!s->stopping && !s->link_count && !web_is_served() &&
	       clock_monotonic_ns_slow() - since_ns < SERVER_NS)
		wait_for_change(s, TELL_NS);
	if (!s->stopping && !s->link_count && !web_is_served())
		log_warn("node %s: nobody can connect: no HTTP server runs (group `http` of the configuration), and the node has no destinations",
			 s->node->name);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void wait_connected(struct ws_node *s)
{
	uint64_t end_ns = clock_monotonic_ns_slow() +
			  (uint64_t)(s->connect_timeout_s * 1e9);

	pthread_mutex_lock(&s->lock);
	while (s->links_up < s->link_count && !ending_has_begun() &&
	       clock_monotonic_ns_slow() < end_ns)
		wait_for_change(s, TELL_NS);
	if (s->links_up < s->link_count)
		log_warn("node %s: %u of %u destinations are connected after %g s (connect_timeout); it starts now",
			 s->node->name, s->links_up, s->link_count, s->connect_timeout_s);
	pthread_mutex_unlock(&s->lock);
}

/* ---- life cycle ---- */

void ws_node_received(struct ws_node *s, unsigned ring, struct sample *const smps[],
		      unsigned count)
{
	inbox_put(&s->inbox, ring, smps, count);
	inbox_wake(&s->inbox);
}

static void clients_received(void *arg, struct sample *const smps[], unsigned count)
{
	ws_node_received(arg, 0, smps, count);
}

static void clients_lost(void *arg, enum ws_clients_loss kind, uint64_t n)
{
	static const unsigned figures[] = {
		[WS_LOSS_BEHIND] = WS_CLIENTS_BEHIND,
		[WS_LOSS_FORMAT] = WS_CLIENTS_REFUSED,
		[WS_LOSS_MALFORMED] = FAULT_MALFORMED,
		[WS_LOSS_SILENT] = WS_SILENT,
	};
	struct ws_node *s = arg;

	node_figure_add(s->node, figures[kind], n);
	atomic_fetch_add_explicit(&s->client_losses[kind], n, memory_order_relaxed);
}

static int start_clients(struct ws_node *s)
{
	struct node *n = s->node;
	char path[128];
	const struct ws_clients_settings settings = {
		.path = path,
		.name = n->name,
		.signals = n->out.hooked ? n->out.hooked : n->out.signals,
		.format = s->format,
		.listens = n->is_source,
		.in_signals = n->in.signals,
		.message_max = (size_t)s->message_max,
		.backlog = (size_t)s->backlog,
		.clients_max = (unsigned)s->clients_max,
		.ping_s = s->ping_s,
		.timeout_s = s->timeout_s,
		.received = clients_received,
		.changed = clients_changed,
		.lost = clients_lost,
		.arg = s,
	};

	snprintf(path, sizeof(path), "/%s", n->name);
	return ws_clients_new(&s->clients, &settings);
}

static int start_tls(struct ws_node *s)
{
	const struct tls_settings t = { .cert = s->ssl_cert, .key = s->ssl_private_key,
				       .ca = s->ssl_ca };
	char error[400];
	bool wanted = false;
	int ret;

	for (unsigned i = 0; i < s->link_count; i++)
		wanted |= s->links[i].url.tls;
	if (!wanted)
		return 0;
	s->tls_ops = plugin_symbol("http_tls", "http_tls");
	if (!s->tls_ops) {
		log_error("node %s: wss:// needs the module http_tls", s->node->name);
		return -ENOTSUP;
	}
	ret = s->tls_ops->context_new(&s->tls, TLS_CLIENT, &t, error, sizeof(error));
	if (ret)
		log_error("node %s: ssl_%s", s->node->name, error);
	return ret;
}

static int websocket_stop(struct node *n)
{
	struct ws_node *s = n->private_data;
	const _Atomic uint64_t *lost = s->client_losses;

	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (s->has_teller)
		pthread_join(s->teller, NULL);
	s->has_teller = false;
	atomic_store(&s->ending, true);
	for (unsigned i = 0; i < s->link_count; i++)
		if (s->links[i].has_thread)
			wakeup_post(s->links[i].wake_fd);
	ws_clients_free(s->clients);
	s->clients = NULL;
	for (unsigned i = 0; i < s->link_count; i++)
		ws_link_stop(&s->links[i]);
	if (s->tls)
		s->tls_ops->context_free(s->tls);
	s->tls = NULL;
	inbox_note_lost(&s->inbox, &s->faults);
	inbox_destroy(&s->inbox);
	fault_finish(&s->faults);
	if (lost[WS_LOSS_BEHIND] || lost[WS_LOSS_FORMAT] || lost[WS_LOSS_MALFORMED] ||
	    lost[WS_LOSS_SILENT])
		log_info("node %s: its clients lost %ju samples by slowness and %ju by their formats; %ju frames or samples of theirs were wrong, %ju did not answer",
			 n->name, (uintmax_t)lost[WS_LOSS_BEHIND],
			 (uintmax_t)lost[WS_LOSS_FORMAT], (uintmax_t)lost[WS_LOSS_MALFORMED],
			 (uintmax_t)lost[WS_LOSS_SILENT]);
	return 0;
}

static int start_parts(struct ws_node *s)
{
	struct node *n = s->node;
	const struct signal_list *in = n->in.signals;
	int ret = inbox_init(&s->inbox, 1 + s->link_count, (unsigned)s->queuelen,
				in && in->count ? in->count : SIGNALS_DEFAULT);

	s->inbox.faults = &s->faults;
	if (ret) {
		log_error("node %s: no queue of in.queuelen %lld samples: %s", n->name,
			  (long long)s->queuelen, strerror(-ret));
		return ret;
	}
	ret = start_tls(s) ?: start_clients(s);
	for (unsigned i = 0; i < s->link_count && !ret; i++)
		ret = ws_link_start(&s->links[i]);
	if (!ret)
		ret = thread_start(&s->teller, "websocket", THREAD_NORMAL, tell, s);
	s->has_teller = !ret;
	return ret;
}

static int websocket_start(struct node *n)
{
	struct ws_node *s = n->private_data;
	int ret;

	s->node = n;
	s->faults.node = n;
	s->stopping = s->shown = false;
	s->links_up = s->client_count = 0;
	for (unsigned i = 0; i < WS_LOSSES; i++)
		atomic_store(&s->client_losses[i], 0);
	atomic_store(&s->ending, false);
	ret = start_parts(s);
	if (ret)
		websocket_stop(n);
	else if (s->wait_connected)
		wait_connected(s);
	return ret;
}

static void websocket_destroy(struct node *n)
{
	struct ws_node *s = n->private_data;

	free(s->links);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
}

/* ---- samples ---- */

static int websocket_write(struct node *n, struct sample *smps[], unsigned cnt,
			   unsigned *release)
{
	struct ws_node *s = n->private_data;
	bool any = ws_clients_any(s->clients);

	ws_clients_send(s->clients, smps, cnt);
	for (unsigned i = 0; i < s->link_count; i++) {
		struct ws_link *l = &s->links[i];
		struct ws_feed_put put;

		if (!atomic_load_explicit(&l->up, memory_order_acquire))
			continue;
		put = ws_feed_put(l->feed, smps, cnt);
		ws_link_wake(l);
		any = true;
		if (unlikely(put.lost))
			node_lose(n, NODE_LOSS_FULL, put.lost, "%s takes them too slowly",
				  l->text);
		if (unlikely(put.refused))
			node_lose(n, NODE_LOSS_FORMAT, put.refused, "%s: %s", l->text,
				  "its format cannot hold a sample");
	}
	if (likely(any))
		return (int)cnt;
	node_refuse(n, NODE_LOSS_ABSENT, cnt, "nobody is connected");
	return 0;
}

static void websocket_print(struct node *n, char *buf, size_t size)
{
	const struct ws_node *s = n->private_data;
	int at = snprintf(buf, size, "endpoint /%s, format %s", n->name, s->format);

	for (unsigned i = 0; i < s->link_count && at >= 0 && (size_t)at < size; i++)
		at += snprintf(buf + at, size - (size_t)at, "%s%.100s",
			       i ? ", " : ", destinations ", s->links[i].text);
}

static const struct node_figure websocket_figures[] = {
	[FAULT_MALFORMED] = { "malformed", "Frames and samples of peers that cannot be read",
			      NODE_COUNTER },
	[FAULT_OVERRUN] = { "overrun", "Samples of peers that found no room to wait in",
			    NODE_COUNTER },
	[WS_CLIENTS] = { "clients", "Clients of the endpoint now", NODE_GAUGE },
	[WS_LINKS] = { "destinations", "Destinations that are connected now", NODE_GAUGE },
	[WS_LINKS_MADE] = { "destinations_made", "Connections to destinations that were made",
			    NODE_COUNTER },
	[WS_LINKS_LOST] = { "destinations_lost",
			    "Connections to destinations that ended against our will",
			    NODE_COUNTER },
	[WS_UNREACHABLE] = { "unreachable",
			     "Connections to destinations that could not be made", NODE_COUNTER },
	[WS_SILENT] = { "silent", "Peers that were given up without an answer to a ping",
			NODE_COUNTER },
	[WS_CLIENTS_BEHIND] = { "clients_behind",
				"Samples lost by clients that were too slow, of each client",
				NODE_COUNTER },
	[WS_CLIENTS_REFUSED] = { "clients_refused",
				 "Samples that the format of a client cannot hold, of each client",
				 NODE_COUNTER },
};

const struct node_type node_websocket = {
	.name = "websocket",
	.description = "Samples to and from browsers, programs and other gateways by WebSocket",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_STOP_WAITS,
	.size = sizeof(struct ws_node),
	.keys = websocket_keys,
	.key_count = ARRAY_SIZE(websocket_keys),
	.in_keys = websocket_in_keys,
	.in_key_count = ARRAY_SIZE(websocket_in_keys),
	.out_keys = websocket_out_keys,
	.out_key_count = ARRAY_SIZE(websocket_out_keys),
	.figures = websocket_figures,
	.figure_count = ARRAY_SIZE(websocket_figures),
	.init = websocket_init,
	.destroy = websocket_destroy,
	.parse = websocket_parse,
	.check = websocket_check,
	.check_signals = websocket_check_signals,
	.start = websocket_start,
	.stop = websocket_stop,
	.read = inbox_node_read,
	.write = websocket_write,
	.sleep = inbox_node_sleep,
	.interrupt = inbox_node_interrupt,
	.rearm = inbox_node_rearm,
	.poll_fds = inbox_node_poll_fds,
	.print = websocket_print,
};
