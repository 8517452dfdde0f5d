/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `rtp`: its settings and callbacks; see rtp.h. */
#define LOG_ROOM "gateway/rtp"
#include "gateway/node/rtp/rtp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"

extern const struct node_type node_rtp;

static const char *const throttle_names[] = {
	[RTP_THROTTLE_DISABLED] = "disabled",
	[RTP_THROTTLE_DECIMATE] = "decimate",
	[RTP_THROTTLE_LIMIT_RATE] = "limit_rate",
	NULL,
};

static const char *const mode_names[] = { "aimd", NULL };

#define OFFSET(field) offsetof(struct rtp_node, field)

#define RTCP(field) offsetof(struct rtp_config_rtcp, field)

static const struct config_key rtcp_keys[] = {
	{ "enabled", CONFIG_BOOL, RTCP(enabled), "true", .help = "Send and take reports" },
	{ "mode", CONFIG_ENUM, RTCP(mode), "aimd", .names = mode_names,
	  .help = "How reports set the sending rate" },
	{ "throttle_mode", CONFIG_ENUM, RTCP(throttle), "disabled", .names = throttle_names,
	  .help = "Another name of aimd.hook_type" },
	{ "interval", CONFIG_REAL, RTCP(interval_s), "5", .min = 0.01, .max = 3600,
	  .help = "Seconds between two reports at least, on average" },
	{ "bandwidth", CONFIG_INT, RTCP(bandwidth), "16000", .min = 100, .max = 1e9,
	  .help = "Bits a second that the reports of all members take at most" },
	{ "cname", CONFIG_STRING, RTCP(cname), .help = "Name of this end in its reports" },
};

#define AIMD(field) offsetof(struct rtp_config_aimd, field)

static const struct config_key aimd_keys[] = {
	{ "a", CONFIG_REAL, AIMD(rate.a), "10", .min = 0, .max = 1e9,
	  .help = "Added to the rate after a report without loss" },
	{ "b", CONFIG_REAL, AIMD(rate.b), "0.5", .min = 0, .max = 1,
	  .help = "The rate is multiplied by it after a report of loss" },
	{ "Kp", CONFIG_REAL, AIMD(rate.kp), "1", .help = "Proportional part of the controller" },
	{ "Ki", CONFIG_REAL, AIMD(rate.ki), "0", .help = "Integral part" },
	{ "Kd", CONFIG_REAL, AIMD(rate.kd), "0", .help = "Differential part" },
	{ "rate_min", CONFIG_REAL, AIMD(rate.min), "1", .min = 1e-3, .max = 1e9,
	  .help = "The lowest rate" },
	{ "rate_source", CONFIG_REAL, AIMD(rate.source), "2000", .min = 1e-3, .max = 1e9,
	  .help = "Samples a second that are written: at this rate all are sent" },
	{ "rate_init", CONFIG_REAL, AIMD(rate_init), "0", .min = 0, .max = 1e9,
	  .help = "The first rate; 0: rate_source" },
	{ "log", CONFIG_STRING, AIMD(log), .help = "File for the rate after each report" },
	{ "hook_type", CONFIG_ENUM, AIMD(throttle), "disabled", .names = throttle_names,
	  .help = "Which samples are held back" },
};

static const struct config_key rtp_keys[] = {
	{ "format", CONFIG_JSON, OFFSET(format),
	  .help = "Format of both directions, " RTP_DEFAULT_FORMAT },
	{ "verify_source", CONFIG_BOOL, OFFSET(verify_source), "false",
	  .help = "Take only what comes from out.address" },
	{ "payload_type", CONFIG_INT, OFFSET(payload_type), "21", .min = 0, .max = 127,
	  .help = "Of all packets; others are not read" },
	{ "clock_rate", CONFIG_INT, OFFSET(clock_rate), "90000", .min = 1, .max = 1000000000,
	  .help = "Units of the timestamp in a second; the same at both ends" },
	{ "rtcp", CONFIG_JSON, OFFSET(rtcp_cfg), .form = "'type': ['boolean', 'null']", .group = rtcp_keys, .group_count = ARRAY_SIZE(rtcp_keys),
	  .help = "Reports: true, false, or a group of settings" },
	{ "aimd", CONFIG_JSON, OFFSET(aimd_cfg), .group = aimd_keys, .group_count = ARRAY_SIZE(aimd_keys), .help = "Sending rate, by the reports" },
};

static const struct config_key rtp_in_keys[] = {
	{ "address", CONFIG_STRING, OFFSET(in.address), .help = "Where to receive" },
	{ "format", CONFIG_JSON, OFFSET(in.format), .help = "Format of what is received" },
	{ "verify_source", CONFIG_BOOL, OFFSET(in.verify_source), "false",
	  .help = "As on the node" },
	{ "multicast", CONFIG_JSON, OFFSET(in.multicast_cfg),
	  .help = "Multicast group to join" },
	{ "buffer_size", CONFIG_INT, OFFSET(in.buffer_size), "4194304", .min = 4096,
	  .max = 1 << 30, .help = "Bytes that may wait in the kernel" },
};

static const struct config_key rtp_out_keys[] = {
	{ "address", CONFIG_STRING, OFFSET(out.address), .help = "Where to send" },
	{ "format", CONFIG_JSON, OFFSET(out.format), .help = "Format of what is sent" },
	{ "multicast", CONFIG_JSON, OFFSET(out.multicast_cfg),
	  .help = "The same as in.multicast" },
	{ "packet_size", CONFIG_INT, OFFSET(out.packet_size), "1400", .min = 64, .max = 65507,
	  .help = "Samples of one write are put together into packets of this many bytes" },
	{ "netem", CONFIG_JSON, OFFSET(out.netem), .help = "Refused: of node-type socket" },
	{ "fwmark", CONFIG_JSON, OFFSET(out.fwmark), .help = "Refused: of node-type socket" },
};

static bool can_read(const struct node *n)
{
	return n->in.present && n->in.enabled;
}

static bool can_write(const struct node *n)
{
	return n->out.present && n->out.enabled;
}

static int parse_rtcp(struct rtp_node *r, struct config *c, json_t *cfg)
{
	struct rtp_config_rtcp *s = &r->rtcp_settings;
	bool plain = !r->rtcp_cfg || json_is_boolean(r->rtcp_cfg);

	if (!plain && !json_is_object(r->rtcp_cfg)) {
		config_fail(c, cfg, "rtcp", "has to be true, false or a group");
		return -EINVAL;
	}
	if (config_unpack(c, plain ? NULL : r->rtcp_cfg, rtcp_keys, ARRAY_SIZE(rtcp_keys), s,
			  NULL, 0))
		return -EINVAL;
	if (plain)
		s->enabled = json_is_true(r->rtcp_cfg);
	if (s->cname && (!*s->cname || strlen(s->cname) > RTCP_CNAME_MAX)) {
		config_fail(c, r->rtcp_cfg, "cname", "has 1 to %d bytes", RTCP_CNAME_MAX);
		return -EINVAL;
	}
	return 0;
}

static int parse_aimd(struct rtp_node *r, struct config *c, json_t *cfg)
{
	struct rtp_config_aimd *a = &r->aimd;
	int other = r->rtcp_settings.throttle;

	if (config_unpack(c, r->aimd_cfg, aimd_keys, ARRAY_SIZE(aimd_keys), a, NULL, 0))
		return -EINVAL;
	if (a->throttle && other && a->throttle != other) {
		config_fail(c, r->aimd_cfg, "hook_type", "is another one than rtcp.throttle_mode");
		return -EINVAL;
	}
	if (!a->throttle)
		a->throttle = other;
	if ((r->aimd_cfg || a->throttle) && !r->rtcp_settings.enabled)
		config_warn(c, cfg, r->aimd_cfg ? "aimd" : "rtcp",
			    "all samples are sent, because the sending rate needs the peer's reports: rtcp = true");
	if (!a->rate_init)
		a->rate_init = a->rate.source;
	if (a->rate.min > a->rate.source || a->rate_init > a->rate.source ||
	    a->rate_init < a->rate.min) {
		config_fail(c, r->aimd_cfg, NULL,
			    "rate_min, rate_init and rate_source have to rise in this order");
		return -EINVAL;
	}
	return 0;
}

static int parse_multicasts(struct rtp_node *r, struct config *c)
{
	if (multicast_parse(&r->in.multicast, c, r->in.multicast_cfg) ||
	    multicast_parse(&r->out.multicast, c, r->out.multicast_cfg))
		return -EINVAL;
	return multicast_merge(&r->in.multicast, r->in.multicast_cfg, &r->out.multicast,
			       r->out.multicast_cfg,
			       can_read(r->node) && !can_write(r->node), c);
}

static int make_formats(struct rtp_node *r, struct config *c)
{
	struct node *n = r->node;
	int ret = 0;

	r->in_format = r->in.format ? r->in.format : r->format;
	r->out_format = r->out.format ? r->out.format : r->format;
	if (can_read(n))
		ret = format_new(&r->reader, c, r->in_format, RTP_DEFAULT_FORMAT,
				 n->in.signals);
	if (!ret && can_write(n))
		ret = format_new(&r->writer, c, r->out_format, RTP_DEFAULT_FORMAT,
				 n->out.signals);
	if (ret)
		return ret;
	if (r->reader)
		r->reader->message = true;
	if (r->writer)
		r->writer->message = true;
	return 0;
}

static int rtp_init(struct node *n)
{
	struct rtp_node *r = n->private_data;

	r->node = n;
	r->fd = -1;
	r->wait.wake_fd = -1;
	r->faults.node = n;
	return 0;
}

static int refuse_emulation(struct rtp_node *r, struct config *c)
{
	bool off = json_is_false(json_object_get(r->out.netem, "enabled"));
	const char *key = r->out.netem && !off ? "netem" : r->out.fwmark ? "fwmark" : NULL;

	if (!key)
		return 0;
	config_fail(c, r->node->out.cfg, key,
		    "is not for this node-type: use tc(8) or nft(8), or node-type socket");
	return -EINVAL;
}

static int rtp_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct rtp_node *r = n->private_data;

	r->node = n;
	r->config = c;
	r->verify_source |= r->in.verify_source;
	if (!can_read(n) && !can_write(n)) {
		config_fail(c, cfg, NULL,
			    "needs `in = { address = ... }` to receive, or `out = { address = ... }` to send");
		return -EINVAL;
	}
	if (refuse_emulation(r, c) || parse_rtcp(r, c, cfg) || parse_aimd(r, c, cfg) ||
	    parse_multicasts(r, c))
		return -EINVAL;
	return make_formats(r, c);
}

/* An address that is there has to be right; `why_needed`: it has to be there. */
static int check_address(struct config *c, json_t *group, json_t *cfg, const char *key,
			 const char *text, const char *why_needed)
{
	char why[SOCKET_WHY_MAX];

	if (text && socket_address_check(LAYER_UDP, text, why)) {
		config_fail(c, group, "address", "%s", why);
		return -EINVAL;
	}
	if (text || !why_needed)
		return 0;
	config_fail(c, group ? group : cfg, group ? "address" : NULL, "%s is required: %s", key,
		    why_needed);
	return -EINVAL;
}

static int check_addresses(struct rtp_node *r, struct config *c, json_t *cfg)
{
	struct node *n = r->node;
	bool rtcp = r->rtcp_settings.enabled;
	int in_family, out_family;

	if (check_address(c, n->in.cfg, cfg, "in.address", r->in.address,
			  can_read(n) ? "where to receive" :
			  rtcp ? "where the peer's reports come (rtcp)" : NULL) ||
	    check_address(c, n->out.cfg, cfg, "out.address", r->out.address,
			  can_write(n) ? "where to send" :
			  rtcp ? "where the reports go (rtcp)" :
			  r->verify_source ? "whom to take packets from (verify_source)" : NULL))
		return -EINVAL;
	if (r->out.address && socket_address_is_any(r->out.address)) {
		config_fail(c, n->out.cfg, "address", "'%.60s' names no host to send to",
			    r->out.address);
		return -EINVAL;
	}
	in_family = r->in.address ? socket_address_family(r->in.address) : 0;
	out_family = r->out.address ? socket_address_family(r->out.address) : 0;
	if (in_family && out_family && in_family != out_family) {
		config_fail(c, n->out.cfg, "address",
			    "is of IPv%d, in.address of IPv%d; one node has one of them",
			    out_family == AF_INET ? 4 : 6, in_family == AF_INET ? 4 : 6);
		return -EINVAL;
	}
	return 0;
}

static int rtp_check(struct node *n, struct config *c, json_t *cfg)
{
	struct rtp_node *r = n->private_data;

	if (check_addresses(r, c, cfg))
		return -EINVAL;
	if (r->reader && !r->reader->type->scan) {
		config_fail(c, cfg, "format", "'%s' cannot be read", r->reader->type->name);
		return -EINVAL;
	}
	if (r->writer && !r->writer->type->print) {
		config_fail(c, cfg, "format", "'%s' cannot be written", r->writer->type->name);
		return -EINVAL;
	}
	return 0;
}

/* A sample has to fit into a packet. */
static int rtp_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	const size_t max = 65507 - RTP_HEADER_SIZE;
	struct rtp_node *r = n->private_data;
	struct format_sizes sizes;
	int ret;

	if (!r->writer)
		return 0;
	ret = format_check_signals(r->writer, c, cfg, n->out.hooked);
	if (ret || !n->is_destination || !n->out.hooked)
		return ret;
	if (format_check_sizes(r->writer, c, cfg, n->out.hooked, &sizes))
		return -EINVAL;
	if (sizes.bytes_min > max) {
		config_fail(c, n->out.cfg ? n->out.cfg : cfg, NULL,
			    "a sample of %u values takes %zu bytes at least in the format %s, a packet has %zu at most; use another format, or fewer signals",
			    n->out.hooked->count, sizes.bytes_min, r->writer->type->name, max);
		return -EINVAL;
	}
	return 0;
}

static int rtp_reverse(struct node *n)
{
	struct rtp_node *r = n->private_data;
	const char *was = r->in.address;

	r->in.address = r->out.address;
	r->out.address = was;
	return 0;
}

static void rtp_destroy(struct node *n)
{
	struct rtp_node *r = n->private_data;

	format_destroy(r->reader);
	format_destroy(r->writer);
}

static int rtp_stop(struct node *n)
{
	struct rtp_node *r = n->private_data;

	rtcp_close(r);
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	rtp_receiver_close(r);
	rtp_sender_close(r);
	socket_wait_close(&r->wait);
	fault_finish(&r->faults);
	return 0;
}

static int rtp_start(struct node *n)
{
	struct rtp_node *r = n->private_data;
	int ret;

	r->node = n;
	r->faults.node = n;
	rtp_session_begin(&r->session, (uint32_t)r->clock_rate);
	atomic_store(&r->step, 0);
	ret = socket_wait_open(&r->wait);
	if (ret)
		log_error("%s: no event descriptor: %s", n->name, strerror(-ret));
	if (!ret)
		ret = rtp_open(r);
	if (!ret && r->reader)
		ret = rtp_receiver_open(r);
	if (!ret && r->writer)
		ret = rtp_sender_open(r);
	if (!ret && r->rtcp_settings.enabled)
		ret = rtcp_open(r);
	if (ret)
		rtp_stop(n);
	return ret;
}

static void rtp_sleep(struct node *n, uint64_t until_ns)
{
	struct rtp_node *r = n->private_data;
	uint64_t now = clock_now_ns();

	if (r->reader && until_ns > now)
		socket_wait_sleep(&r->wait, r->fd,
				  until_ns == UINT64_MAX ? until_ns : until_ns - now);
}

static void rtp_interrupt(struct node *n)
{
	struct rtp_node *r = n->private_data;

	socket_wait_interrupt(&r->wait);
}

static void rtp_print(struct node *n, char *buf, size_t size)
{
	const struct rtp_node *r = n->private_data;
	const struct format *f = r->reader ? r->reader : r->writer;

	snprintf(buf, size, "%s%.80s%s%.80s, format %s, reports %s %s",
		 r->in.address ? "in " : "", r->in.address ? r->in.address : "",
		 r->out.address ? r->in.address ? ", out " : "out " : "",
		 r->out.address ? r->out.address : "", f ? f->type->name : "none",
		 r->rtcp_settings.enabled ? mode_names[r->rtcp_settings.mode] : "off",
		 r->rtcp_settings.enabled ? throttle_names[r->aimd.throttle] : "");
}

static const struct node_figure rtp_figures[RTP_FIGURES] = {
	[FAULT_MALFORMED] = { "malformed", "Packets that cannot be read", NODE_COUNTER },
	[FAULT_TRUNCATED] = { "truncated", "Packets longer than the buffer", NODE_COUNTER },
	[FAULT_FOREIGN] = { "foreign", "Packets and reports of others than the peer", NODE_COUNTER },
	[FAULT_OVERRUN] = { "overrun", "Packets lost because reading was too slow", NODE_COUNTER },
	[RTP_FIGURE_LOSS_FRACTION] = { "rtp_loss_fraction", "What the peer lost since its report before, in 256ths", NODE_GAUGE },
	[RTP_FIGURE_PKTS_LOST] = { "rtp_pkts_lost", "Packets that the peer has lost", NODE_GAUGE },
	[RTP_FIGURE_JITTER] = { "rtp_jitter", "Jitter that the peer finds, microseconds", NODE_GAUGE },
	[RTP_FIGURE_RTT] = { "rtp_rtt", "Time to the peer and back, microseconds", NODE_GAUGE },
	[RTP_FIGURE_IN_LOST] = { "in_lost", "Packets that did not arrive", NODE_GAUGE },
	[RTP_FIGURE_IN_JITTER] = { "in_jitter", "Jitter of what arrives, microseconds", NODE_GAUGE },
	[RTP_FIGURE_REPEATED] = { "repeated", "Packets that came a second time", NODE_COUNTER },
	[RTP_FIGURE_LATE] = { "late", "Packets that were overtaken", NODE_COUNTER },
	[RTP_FIGURE_STRAY] = { "stray", "Packets with numbers far from the others", NODE_COUNTER },
	[RTP_FIGURE_LOOPED] = { "looped", "Packets of this node that came back", NODE_COUNTER },
	[RTP_FIGURE_COLLISIONS] = { "collisions", "Changes of the SSRC because another end has it", NODE_COUNTER },
	[RTP_FIGURE_SOURCES] = { "sources", "Sources that are heard", NODE_GAUGE },
	[RTP_FIGURE_PACKETS_RECEIVED] = { "packets_received", "Packets received", NODE_COUNTER },
	[RTP_FIGURE_PACKETS_SENT] = { "packets_sent", "Packets sent", NODE_COUNTER },
	[RTP_FIGURE_THROTTLED] = { "throttled", "Samples that the sending rate held back", NODE_COUNTER },
	[RTP_FIGURE_RATE] = { "rate", "Sending rate, samples a second", NODE_GAUGE },
	[RTP_FIGURE_RTCP_RECEIVED] = { "rtcp_received", "RTCP packets received", NODE_COUNTER },
	[RTP_FIGURE_RTCP_IGNORED] = { "rtcp_ignored", "Reports that came too often or cannot be true", NODE_COUNTER },
	[RTP_FIGURE_RTCP_SENT] = { "rtcp_sent", "RTCP packets sent", NODE_COUNTER },
};

const struct node_type node_rtp = {
	.name = "rtp",
	.description = "Samples in RTP packets over UDP, with RTCP",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_NEEDS_GROUP,
	.size = sizeof(struct rtp_node),
	.keys = rtp_keys,
	.key_count = ARRAY_SIZE(rtp_keys),
	.in_keys = rtp_in_keys,
	.in_key_count = ARRAY_SIZE(rtp_in_keys),
	.out_keys = rtp_out_keys,
	.out_key_count = ARRAY_SIZE(rtp_out_keys),
	.figures = rtp_figures,
	.figure_count = ARRAY_SIZE(rtp_figures),
	.init = rtp_init,
	.destroy = rtp_destroy,
	.parse = rtp_parse,
	.check = rtp_check,
	.check_signals = rtp_check_signals,
	.start = rtp_start,
	.stop = rtp_stop,
	.read = rtp_read,
	.write = rtp_write,
	.sleep = rtp_sleep,
	.interrupt = rtp_interrupt,
	.rearm = node_rearm_nothing,
	.reverse = rtp_reverse,
	.poll_fds = rtp_poll_fds,
	.print = rtp_print,
};
