/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `socket`: its settings and callbacks; see socket.h. */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/datagram.h"
#include "gateway/node/socket/socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

extern const struct node_type node_socket;

static const char *const layer_names[] = {
	[LAYER_UDP] = "udp",
	[LAYER_IP] = "ip",
	[LAYER_ETH] = "eth",
	[LAYER_UNIX] = "unix",
	[LAYER_LOCAL] = "local",
	[LAYER_TCP_CLIENT] = "tcp-client",
	[LAYER_TCP_SERVER] = "tcp-server",
	NULL,
};

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
	{ "layer", CONFIG_ENUM, OFFSET(layer), "udp", .names = layer_names,
	  .help = "What carries the samples; local is another name of unix" },
	{ "format", CONFIG_JSON, OFFSET(format),
	  .help = "Format of both directions, " SOCKET_DEFAULT_FORMAT },
	{ "verify_source", CONFIG_BOOL, OFFSET(verify_source), "false",
	  .help = "Take only what comes from out.address" },
	{ "framing", CONFIG_ENUM, OFFSET(framing), "auto",
	  .names = framing_names,
	  .help = "TCP: none: the format alone tells where samples end; "
		  "length: four bytes of length before each message; auto: "
		  "length where the format cannot tell" },
};

static const struct config_key socket_in_keys[] = {
	{ "address", CONFIG_STRING, OFFSET(in.address),
	  .help = "Where to receive" },
	{ "format", CONFIG_JSON, OFFSET(in.format),
	  .help = "Format of what is received" },
	{ "verify_source", CONFIG_BOOL, OFFSET(in.verify_source), "false",
	  .help = "As on the node" },
	{ "multicast", CONFIG_JSON, OFFSET(in.multicast_cfg),
	  .help = "Multicast group to join" },
	{ "polling", CONFIG_ENUM, OFFSET(in.polling), "auto",
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
	{ "buffer_size", CONFIG_INT, OFFSET(in.buffer_size), "4194304",
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
	{ "address", CONFIG_STRING, OFFSET(out.address), .help = "Where to send" },
	{ "format", CONFIG_JSON, OFFSET(out.format),
	  .help = "Format of what is sent" },
	{ "multicast", CONFIG_JSON, OFFSET(out.multicast_cfg),
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
	{ "buffer_size", CONFIG_INT, OFFSET(out.buffer_size), "1048576",
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

static bool can_read(const struct node *n)
{
	return n->in.present && n->in.enabled;
}

static bool can_write(const struct node *n)
{
	return n->out.present && n->out.enabled;
}

static int parse_multicast(struct socket_node *s, struct config *c, json_t *cfg,
			   struct multicast *m)
{
	if (multicast_parse(m, c, cfg))
		return -EINVAL;
	if (!cfg || s->layer == LAYER_UDP || s->layer == LAYER_IP)
		return 0;
	config_fail(c, cfg, NULL, "is for layer udp and ip, not %s",
		    layer_names[s->layer]);
	return -EINVAL;
}

/* A setting in one group holds for both. */
static int parse_multicasts(struct socket_node *s, struct config *c)
{
	struct multicast *in = &s->in.multicast, *out = &s->out.multicast;

	if (parse_multicast(s, c, s->in.multicast_cfg, in) ||
	    parse_multicast(s, c, s->out.multicast_cfg, out))
		return -EINVAL;
	return multicast_merge(in, s->in.multicast_cfg, out, s->out.multicast_cfg,
			       can_read(s->node) && !can_write(s->node), c);
}

static int make_formats(struct socket_node *s, struct config *c)
{
	struct node *n = s->node;
	int ret = 0;

	s->in_format = s->in.format ? s->in.format : s->format;
	s->out_format = s->out.format ? s->out.format : s->format;
	if (can_read(n))
		ret = format_new(&s->reader, c, s->in_format,
				 SOCKET_DEFAULT_FORMAT, n->in.signals);
	if (!ret && can_write(n))
		ret = format_new(&s->writer, c, s->out_format,
				 SOCKET_DEFAULT_FORMAT, n->out.signals);
	if (ret)
		return ret;
	if (s->reader)
		s->reader->message = !layer_is_stream(s->layer);
	if (s->writer)
		s->writer->message = !layer_is_stream(s->layer);
	return 0;
}

static int socket_init(struct node *n)
{
	struct socket_node *s = n->private_data;

	s->node = n;
	s->wait.wake_fd = -1;
	s->faults.node = n;
	return 0;
}

static int socket_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct socket_node *s = n->private_data;
	int ret;

	s->node = n;
	s->config = c;
	if (s->layer == LAYER_LOCAL)
		s->layer = LAYER_UNIX;
	s->verify_source |= s->in.verify_source;
	s->wait.polling = s->in.polling;
	n->in.waits_itself = s->in.polling != POLLING_AUTO ||
			     s->layer == LAYER_TCP_CLIENT ||
			     s->layer == LAYER_TCP_SERVER;
	s->wait.spin_ns = (uint64_t)s->in.spin_us * 1000;
	if (!can_read(n) && !can_write(n)) {
		config_fail(c, cfg, NULL,
			    "needs `in = { address = ... }` to receive, or `out = { address = ... }` to send");
		return -EINVAL;
	}
	ret = parse_multicasts(s, c);
	if (s->out.netem_cfg &&
	    netem_parse(&s->out.netem, c, s->out.netem_cfg))
		ret = -EINVAL;
	return ret ? ret : make_formats(s, c);
}

/* Reports what is wrong with an address; 0 when nothing is. */
static int check_address(struct socket_node *s, struct config *c, json_t *group,
			 const char *text)
{
	char why[SOCKET_WHY_MAX];

	if (!text || !socket_address_check(s->layer, text, why))
		return 0;
	config_fail(c, group, "address", "%s", why);
	return -EINVAL;
}

static int check_needed(struct socket_node *s, struct config *c, json_t *cfg)
{
	struct node *n = s->node;
	bool need_in = can_read(n) && s->layer != LAYER_TCP_CLIENT;
	bool need_out = can_write(n) && s->layer != LAYER_TCP_SERVER;

	if (s->layer == LAYER_TCP_SERVER)
		need_in = true;
	if (s->layer == LAYER_TCP_CLIENT || s->verify_source)
		need_out = true;
	if (need_in && !s->in.address) {
		config_fail(c, n->in.cfg ? n->in.cfg : cfg,
			    n->in.cfg ? "address" : NULL,
			    "in.address is required: %s",
			    s->layer == LAYER_TCP_SERVER ? "where to listen" :
							   "where to receive");
		return -EINVAL;
	}
	if (need_out && !s->out.address) {
		config_fail(c, n->out.cfg ? n->out.cfg : cfg,
			    n->out.cfg ? "address" : NULL,
			    "out.address is required: %s",
			    s->layer == LAYER_TCP_CLIENT ? "where to connect to" :
			    can_write(n) ? "where to send" :
					   "whom to take samples from (verify_source)");
		return -EINVAL;
	}
	return 0;
}

/* Both addresses belong to one socket. */
static int check_pair(struct socket_node *s, struct config *c)
{
	struct node *n = s->node;
	int in_family, out_family;

	if (!s->in.address || !s->out.address)
		return 0;
	if (layer_is_internet(s->layer)) {
		in_family = socket_address_family(s->in.address);
		out_family = socket_address_family(s->out.address);
		if (in_family && out_family && in_family != out_family) {
			config_fail(c, n->out.cfg, "address",
				    "is of IPv%d, in.address of IPv%d; one node has one of them",
				    out_family == AF_INET ? 4 : 6,
				    in_family == AF_INET ? 4 : 6);
			return -EINVAL;
		}
	}
	/* Numbers only: nothing is asked of anybody. */
	if (s->layer == LAYER_IP &&
	    strcmp(strrchr(s->in.address, ':'), strrchr(s->out.address, ':'))) {
		config_fail(c, n->out.cfg, "address",
			    "has another protocol than in.address; one node has one of them");
		return -EINVAL;
	}
	return 0;
}

static int check_formats(struct socket_node *s, struct config *c, json_t *cfg)
{
	struct format *reader = s->reader, *writer = s->writer;

	if (reader && !reader->type->scan) {
		config_fail(c, cfg, "format", "'%s' cannot be read",
			    reader->type->name);
		return -EINVAL;
	}
	if (writer && !writer->type->print) {
		config_fail(c, cfg, "format", "'%s' cannot be written",
			    writer->type->name);
		return -EINVAL;
	}
	if (layer_is_stream(s->layer) && s->framing == FRAMING_AUTO && reader &&
	    writer && tcp_delimits(reader->type) != tcp_delimits(writer->type)) {
		config_fail(c, cfg, "framing",
			    "has to be said: '%s' and '%s' would take different ones",
			    reader->type->name, writer->type->name);
		return -EINVAL;
	}
	return 0;
}

static int socket_check(struct node *n, struct config *c, json_t *cfg)
{
	struct socket_node *s = n->private_data;
	int ret = 0;

	if (check_address(s, c, n->in.cfg, s->in.address) ||
	    check_address(s, c, n->out.cfg, s->out.address))
		return -EINVAL;
	if (check_needed(s, c, cfg) || check_pair(s, c) ||
	    check_formats(s, c, cfg))
		ret = -EINVAL;
	if (s->out.address && layer_is_internet(s->layer) &&
	    (s->layer != LAYER_TCP_SERVER || s->verify_source) &&
	    socket_address_is_any(s->out.address)) {
		config_fail(c, n->out.cfg, "address",
			    "'%.60s' names no host to send to", s->out.address);
		ret = -EINVAL;
	}
	if (layer_is_stream(s->layer) && s->in.stamp == STAMP_KERNEL) {
		config_fail(c, n->in.cfg, "received",
			    "kernel is for datagrams: the bytes of a stream have no times");
		ret = -EINVAL;
	}
	if (s->framing != FRAMING_AUTO && !layer_is_stream(s->layer)) {
		config_fail(c, cfg, "framing",
			    "is for TCP; a datagram is a frame already");
		ret = -EINVAL;
	}
	return ret;
}

/* Of a datagram of its layer, as far as it is known before it is opened. */
static size_t datagram_max(const struct socket_node *s)
{
	size_t max = s->layer == LAYER_UDP ? 65527 :
		     s->layer == LAYER_IP  ? 65535 :
					     65536;

	return s->out.datagram_size ? MIN(max, (size_t)s->out.datagram_size) :
				      max;
}

/* A sample has to fit into a message. */
static int check_size(struct socket_node *s, struct config *c, json_t *cfg,
		      struct signal_list *signals)
{
	struct node *n = s->node;
	struct format_sizes sizes;
	int64_t need;

	if (format_check_sizes(s->writer, c, cfg, signals, &sizes))
		return -EINVAL;
	need = (int64_t)sizes.room_max + 4; /* with the length of a frame */
	if (layer_is_stream(s->layer) && need > s->out.buffer_size) {
		log_info("node %s: out.buffer_size %lld is raised to %lld, for samples of %u values",
			 n->name, (long long)s->out.buffer_size, (long long)need,
			 signals->count);
		s->out.buffer_size = need;
	}
	if (layer_is_stream(s->layer))
		return 0;
	if (sizes.bytes_min > datagram_max(s)) {
		config_fail(c, n->out.cfg ? n->out.cfg : cfg, NULL,
			    "a sample of %u values takes %zu bytes at least in the format %s, a datagram has %zu at most; use another format, layer tcp-client, or fewer signals",
			    signals->count, sizes.bytes_min,
			    s->writer->type->name, datagram_max(s));
		return -EINVAL;
	}
	if (sizes.room_max - sizes.room_max / 64 > datagram_max(s))
		log_warn("node %s: a sample of %u values may take %zu bytes in the format %s, a datagram has %zu at most; those that take more will be lost",
			 n->name, signals->count, sizes.room_max,
			 s->writer->type->name, datagram_max(s));
	return 0;
}

static int socket_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct socket_node *s = n->private_data;
	int ret;

	if (!s->writer)
		return 0;
	ret = format_check_signals(s->writer, c, cfg, n->out.hooked);
	if (ret || !n->is_destination || !n->out.hooked)
		return ret;
	return check_size(s, c, cfg, n->out.hooked);
}

static int socket_reverse(struct node *n)
{
	struct socket_node *s = n->private_data;
	const char *was = s->in.address;

	s->in.address = s->out.address;
	s->out.address = was;
	return 0;
}

static void socket_destroy(struct node *n)
{
	struct socket_node *s = n->private_data;

	format_destroy(s->reader);
	format_destroy(s->writer);
}

static int socket_stop(struct node *n)
{
	struct socket_node *s = n->private_data;

	tcp_stop(s);
	datagram_stop(s);
	socket_wait_close(&s->wait);
	fault_finish(&s->faults);
	return 0;
}

static int socket_start(struct node *n)
{
	struct socket_node *s = n->private_data;
	int ret;

	s->node = n;
	s->faults.node = n;
	ret = socket_wait_open(&s->wait);
	if (ret) {
		log_error("%s: no event descriptor: %s", n->name, strerror(-ret));
		return ret;
	}
	ret = layer_is_stream(s->layer) ? tcp_start(s) : datagram_start(s);
	if (ret)
		socket_stop(n);
	return ret;
}

static int socket_read(struct node *n, struct sample *smps[], unsigned cnt,
		       unsigned *release)
{
	struct socket_node *s = n->private_data;

	if (unlikely(!s->reader))
		return -ENODATA;
	return s->tcp ? tcp_read(s, smps, cnt) : datagram_read(s, smps, cnt);
}

static int socket_write(struct node *n, struct sample *smps[], unsigned cnt,
			unsigned *release)
{
	struct socket_node *s = n->private_data;

	if (unlikely(!s->writer))
		return -EBADF;
	return s->tcp ? tcp_write(s, smps, cnt) :
			   datagram_write(s, smps, cnt);
}

/* Datagrams only. */
static void socket_sleep(struct node *n, uint64_t until_ns)
{
	struct socket_node *s = n->private_data;
	uint64_t now = clock_now_ns();

	if (s->reader && until_ns > now)
		socket_wait_sleep(&s->wait, s->datagram->fd,
				  until_ns == UINT64_MAX ? until_ns :
							   until_ns - now);
}

static bool socket_may_wait(struct node *n)
{
	const struct socket_node *s = n->private_data;

	return s->tcp;
}

static void socket_interrupt(struct node *n)
{
	struct socket_node *s = n->private_data;

	atomic_fetch_add(&s->write_interrupts, 1);
	socket_wait_interrupt(&s->wait);
}

static int socket_poll_fds(struct node *n, int fds[], int max)
{
	struct socket_node *s = n->private_data;

	return s->tcp ? tcp_poll_fds(s, fds, max) :
			   datagram_poll_fds(s, fds, max);
}

static void socket_print(struct node *n, char *buf, size_t size)
{
	const struct socket_node *s = n->private_data;
	const struct format *f = s->reader ? s->reader : s->writer;

	snprintf(buf, size, "layer %s%s%.80s%s%.80s, format %s",
		 layer_names[s->layer], s->in.address ? ", in " : "",
		 s->in.address ? s->in.address : "",
		 s->out.address ? ", out " : "",
		 s->out.address ? s->out.address : "",
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
		 NODE_NEEDS_GROUP,
	.size = sizeof(struct socket_node),
	.keys = socket_keys,
	.key_count = ARRAY_SIZE(socket_keys),
	.in_keys = socket_in_keys,
	.in_key_count = ARRAY_SIZE(socket_in_keys),
	.out_keys = socket_out_keys,
	.out_key_count = ARRAY_SIZE(socket_out_keys),
	.figures = socket_figures,
	.figure_count = ARRAY_SIZE(socket_figures),
	.init = socket_init,
	.destroy = socket_destroy,
	.parse = socket_parse,
	.check = socket_check,
	.check_signals = socket_check_signals,
	.start = socket_start,
	.stop = socket_stop,
	.read = socket_read,
	.write = socket_write,
	.sleep = socket_sleep,
	.may_wait = socket_may_wait,
	.interrupt = socket_interrupt,
	.rearm = node_rearm_nothing,
	.reverse = socket_reverse,
	.poll_fds = socket_poll_fds,
	.print = socket_print,
};
