/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `socket`: its settings and callbacks; see socket.h. */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/datagram.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/log.h"

extern const struct node_type node_socket;

static const char *const framing_names[] = { "auto", "none", "length", NULL };
static const char *const full_names[] = { "block", "drop", NULL };
static const char *const stamp_names[] = { "now", "kernel", NULL };
static const char *const polling_names[] = {
	[POLLING_AUTO] = "auto",
	[POLLING_EVENT] = "event",
	[POLLING_BUSY] = "busy",
	[POLLING_ADAPTIVE] = "adaptive",
	NULL,
};

#define OFFSET(field) offsetof(struct socket_node, field)

static const struct config_key socket_keys[] = {
	{ "layer", CONFIG_ENUM, OFFSET(ends.layer), "udp", .names = socket_layer_names,
	  .help = "What carries the samples; local is another name of unix" },
	{ "format", CONFIG_JSON, OFFSET(ends.format),
	  .help = "Format of both directions, " SOCKET_DEFAULT_FORMAT },
	{ "verify_source", CONFIG_BOOL, OFFSET(ends.verify_source), "false",
	  .help = "Take only what comes from out.address" },
	{ "framing", CONFIG_ENUM, OFFSET(framing), "auto",
	  .names = framing_names,
	  .help = "TCP: none: the format alone tells where samples end; "
		  "length: four bytes of length before each message; auto: "
		  "length where the format cannot tell" },
};

static const struct config_key socket_in_keys[] = {
	{ "address", CONFIG_STRING, OFFSET(ends.in.address),
	  .help = "Where to receive" },
	{ "format", CONFIG_JSON, OFFSET(ends.in.format),
	  .help = "Format of what is received" },
	{ "verify_source", CONFIG_BOOL, OFFSET(ends.in.verify_source), "false",
	  .help = "As on the node" },
	{ "multicast", CONFIG_JSON, OFFSET(ends.in.multicast_cfg),
	  .help = "Multicast group to join" },
	{ "polling", CONFIG_ENUM, OFFSET(ends.wait.polling), "auto",
	  .names = polling_names,
	  .help = "How reading waits: as seems best, asleep (event), asking all "
		  "the time (busy), or one after the other (adaptive)" },
	{ "spin", CONFIG_INT, OFFSET(in.spin_us), "50", .min = 0,
	  .max = 1000000,
	  .help = "Microseconds that an adaptive reader asks before it sleeps" },
	{ "received", CONFIG_ENUM, OFFSET(in.stamp), "now",
	  .names = stamp_names,
	  .help = "Receive time: when the gateway reads it, or when the kernel "
		  "got it" },
	{ "buffer_size", CONFIG_INT, OFFSET(ends.in.buffer_size), "4194304",
	  .min = 4096, .max = 1 << 30,
	  .help = "Bytes that may wait: in the kernel (datagrams), in a "
		  "connection's buffer (TCP)" },
	{ "max_connections", CONFIG_INT, OFFSET(in.max_connections), "16",
	  .min = 1, .max = 1024, .help = "Peers of a tcp-server at a time" },
	{ "idle_timeout", CONFIG_INT, OFFSET(in.idle_timeout_ms), "5000",
	  .min = 0, .max = 86400000,
	  .help = "tcp-server: milliseconds after which a peer that sends no "
		  "sample gives its place to another one; 0: never" },
};

static const struct config_key socket_out_keys[] = {
	{ "address", CONFIG_STRING, OFFSET(ends.out.address), .help = "Where to send" },
	{ "format", CONFIG_JSON, OFFSET(ends.out.format),
	  .help = "Format of what is sent" },
	{ "multicast", CONFIG_JSON, OFFSET(ends.out.multicast_cfg),
	  .help = "The same as in.multicast" },
	{ "netem", CONFIG_JSON, OFFSET(out.netem_cfg),
	  .help = "Emulation of a bad network" },
	{ "fwmark", CONFIG_INT, OFFSET(out.fwmark), "-1", .min = -1,
	  .max = UINT32_MAX, .help = "Mark of packets for the firewall" },
	{ "full", CONFIG_ENUM, OFFSET(out.full), "block", .names = full_names,
	  .help = "When the peer is too slow (tcp, unix): block the path, or "
		  "drop samples and count them" },
	{ "pack", CONFIG_BOOL, OFFSET(out.pack), "true",
	  .help = "Put the samples of one write into one message" },
	{ "datagram_size", CONFIG_INT, OFFSET(out.datagram_size), "0",
	  .min = 0, .max = 65536,
	  .help = "Bytes of a datagram at most; 0: as many as the layer takes" },
	{ "buffer_size", CONFIG_INT, OFFSET(ends.out.buffer_size), "1048576",
	  .min = 4096, .max = 1 << 30,
	  .help = "TCP: bytes that may wait for a peer" },
	{ "slow_timeout", CONFIG_INT, OFFSET(out.slow_timeout_ms), "2000",
	  .min = 0, .max = 86400000,
	  .help = "TCP, with full = block: milliseconds that a peer may have no "
		  "room; then a server parts with it; 0: it is waited for" },
	{ "reconnect_interval", CONFIG_INT, OFFSET(out.reconnect_interval_ms),
	  "1000", .min = 1, .max = 86400000,
	  .help = "tcp-client: milliseconds between attempts to connect" },
};

_Static_assert(offsetof(struct socket_node, ends) == 0, "socket_ends.h");

static int socket_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct socket_node *s = n->private_data;
	struct socket_ends *e = &s->ends;
	int ret;

	if (e->layer == LAYER_LOCAL)
		e->layer = LAYER_UNIX;
	n->in.waits_itself = e->wait.polling != POLLING_AUTO || layer_is_stream(e->layer);
	e->wait.spin_ns = (uint64_t)s->in.spin_us * 1000;
	ret = socket_ends_parse(n, c, cfg);
	if (s->out.netem_cfg && netem_parse(&s->out.netem, c, s->out.netem_cfg))
		ret = -EINVAL;
	return ret;
}

/* Fails if a key has a value that the layer, the formats or another key do not allow. */
static int check_keys(struct socket_node *s, struct config *c, json_t *cfg)
{
	struct socket_ends *e = &s->ends;
	bool stream = layer_is_stream(e->layer);
	int ret = 0;

	if (e->layer == LAYER_IP && e->in.address && e->out.address &&
	    strcmp(strrchr(e->in.address, ':'), strrchr(e->out.address, ':'))) {
		config_fail(c, e->node->out.cfg, "address",
			    "has another protocol than in.address; one node has one of them");
		ret = -EINVAL;
	}
	if (stream && s->framing == FRAMING_AUTO && e->reader && e->writer &&
	    tcp_delimits(e->reader->type) != tcp_delimits(e->writer->type)) {
		config_fail(c, cfg, "framing",
			    "has to be said: '%s' and '%s' would take different ones",
			    e->reader->type->name, e->writer->type->name);
		ret = -EINVAL;
	}
	if (stream && s->in.stamp == STAMP_KERNEL) {
		config_fail(c, e->node->in.cfg, "received",
			    "kernel is for datagrams: the bytes of a stream have no times");
		ret = -EINVAL;
	}
	if (!stream && s->framing != FRAMING_AUTO) {
		config_fail(c, cfg, "framing", "is for TCP; a datagram is a frame already");
		ret = -EINVAL;
	}
	return ret;
}

static int socket_check(struct node *n, struct config *c, json_t *cfg)
{
	struct socket_node *s = n->private_data;
	struct socket_ends *e = &s->ends;
	bool server = e->layer == LAYER_TCP_SERVER, client = e->layer == LAYER_TCP_CLIENT;
	int ret = socket_ends_check(e, c, cfg,
				    server ? "where to listen" :
				    e->reader && !client ? "where to receive" : NULL,
				    client ? "where to connect to" :
				    e->writer && !server ? "where to send" :
				    e->verify_source ?
					    "whom to take samples from (verify_source)" : NULL);

	return ret ? ret : check_keys(s, c, cfg);
}

/* A sample has to fit into a message. */
static int check_size(struct socket_node *s, struct config *c, json_t *cfg,
		      struct signal_list *signals)
{
	const char *format = s->ends.writer->type->name;
	struct node *n = s->ends.node;
	struct format_sizes sizes;
	int64_t need;

	if (format_check_sizes(s->ends.writer, c, cfg, signals, &sizes))
		return -EINVAL;
	need = (int64_t)sizes.room_max + 4; /* with the length of a frame */
	if (layer_is_stream(s->ends.layer)) {
		if (need <= s->ends.out.buffer_size)
			return 0;
		log_info("node %s: out.buffer_size %lld is raised to %lld, for samples of %u values",
			 n->name, (long long)s->ends.out.buffer_size, (long long)need,
			 signals->count);
		s->ends.out.buffer_size = need;
		return 0;
	}
	if (sizes.bytes_min > datagram_max(s)) {
		config_fail(c, n->out.cfg ? n->out.cfg : cfg, NULL,
			    "a sample of %u values takes %zu bytes at least in the format %s, a datagram has %zu at most; use another format, layer tcp-client, or fewer signals",
			    signals->count, sizes.bytes_min, format, datagram_max(s));
		return -EINVAL;
	}
	if (sizes.room_max - sizes.room_max / 64 > datagram_max(s))
		log_warn("node %s: a sample of %u values may take %zu bytes in the format %s, a datagram has %zu at most; those that take more will be lost",
			 n->name, signals->count, sizes.room_max, format, datagram_max(s));
	return 0;
}

static int socket_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct socket_node *s = n->private_data;
	int ret;

	if (!s->ends.writer)
		return 0;
	ret = format_check_signals(s->ends.writer, c, cfg, n->out.hooked);
	if (ret || !n->is_destination || !n->out.hooked)
		return ret;
	return check_size(s, c, cfg, n->out.hooked);
}

static int socket_stop(struct node *n)
{
	struct socket_node *s = n->private_data;

	tcp_stop(s);
	datagram_stop(s);
	socket_ends_stop(&s->ends);
	return 0;
}

static int socket_start(struct node *n)
{
	struct socket_node *s = n->private_data;
	int ret = socket_ends_start(n);

	if (!ret)
		ret = layer_is_stream(s->ends.layer) ? tcp_start(s) : datagram_start(s);
	if (ret)
		socket_stop(n);
	return ret;
}

static int socket_read(struct node *n, struct sample *smps[], unsigned cnt,
		       unsigned *release)
{
	struct socket_node *s = n->private_data;

	if (unlikely(!s->ends.reader))
		return -ENODATA;
	return s->tcp ? tcp_read(s, smps, cnt) : datagram_read(s->datagram->reader, smps, cnt);
}

static int socket_write(struct node *n, struct sample *smps[], unsigned cnt,
			unsigned *release)
{
	struct socket_node *s = n->private_data;

	if (unlikely(!s->ends.writer))
		return -EBADF;
	return s->tcp ? tcp_write(s, smps, cnt) : datagram_write(s->datagram->writer, smps, cnt);
}

static bool socket_may_wait(struct node *n)
{
	const struct socket_node *s = n->private_data;

	return s->tcp;
}

static void socket_print(struct node *n, char *buf, size_t size)
{
	const struct socket_node *s = n->private_data;
	const struct socket_ends *e = &s->ends;
	const struct format *f = e->reader ? e->reader : e->writer;

	snprintf(buf, size, "layer %s%s%.80s%s%.80s, format %s", socket_layer_names[e->layer],
		 e->in.address ? ", in " : "", e->in.address ? e->in.address : "",
		 e->out.address ? ", out " : "", e->out.address ? e->out.address : "",
		 f ? f->type->name : "none");
}

static const struct node_figure socket_figures[] = {
	[FAULT_MALFORMED] = { "malformed", "Messages that the format cannot read", NODE_COUNTER },
	[FAULT_TRUNCATED] = { "truncated", "Messages longer than the buffer", NODE_COUNTER },
	[FAULT_FOREIGN] = { "foreign", "Messages and connections of others than the peer", NODE_COUNTER },
	[FAULT_OVERRUN] = { "overrun", "Messages lost because reading was too slow", NODE_COUNTER },
	[FAULT_DROPPED] = { "dropped", "Messages and connections that were given up", NODE_COUNTER },
	[SOCKET_CONNECTIONS] = { "connections", "TCP connections now", NODE_GAUGE },
	[SOCKET_CONNECTED] = { "connected", "TCP connections that were made", NODE_COUNTER },
	[SOCKET_UNREACHABLE] = { "unreachable", "TCP connections that could not be made", NODE_COUNTER },
};

const struct node_type node_socket = {
	.name = "socket",
	.description = "Samples over UDP, IP, Ethernet, Unix sockets and TCP",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS |
		 NODE_NEEDS_GROUP | NODE_STOP_WAITS,
	.size = sizeof(struct socket_node),
	.keys = socket_keys,
	.key_count = ARRAY_SIZE(socket_keys),
	.in_keys = socket_in_keys,
	.in_key_count = ARRAY_SIZE(socket_in_keys),
	.out_keys = socket_out_keys,
	.out_key_count = ARRAY_SIZE(socket_out_keys),
	.figures = socket_figures,
	.figure_count = ARRAY_SIZE(socket_figures),
	.init = socket_ends_init,
	.destroy = socket_ends_destroy,
	.parse = socket_parse,
	.check = socket_check,
	.check_signals = socket_check_signals,
	.start = socket_start,
	.stop = socket_stop,
	.read = socket_read,
	.write = socket_write,
	.sleep = socket_ends_sleep,
	.may_wait = socket_may_wait,
	.interrupt = socket_ends_interrupt,
	.rearm = node_rearm_nothing,
	.reverse = socket_ends_reverse,
	.poll_fds = socket_ends_poll_fds,
	.print = socket_print,
};
