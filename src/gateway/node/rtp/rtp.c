/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `rtp`: its settings and callbacks; see rtp.h. */
#define LOG_ROOM "gateway/rtp"
#include "gateway/node/rtp/rtp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
	{ "format", CONFIG_JSON, OFFSET(ends.format),
	  .help = "Format of both directions, " SOCKET_DEFAULT_FORMAT },
	{ "verify_source", CONFIG_BOOL, OFFSET(ends.verify_source), "false",
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
	{ "address", CONFIG_STRING, OFFSET(ends.in.address), .help = "Where to receive" },
	{ "format", CONFIG_JSON, OFFSET(ends.in.format), .help = "Format of what is received" },
	{ "verify_source", CONFIG_BOOL, OFFSET(ends.in.verify_source), "false",
	  .help = "As on the node" },
	{ "multicast", CONFIG_JSON, OFFSET(ends.in.multicast_cfg),
	  .help = "Multicast group to join" },
	{ "buffer_size", CONFIG_INT, OFFSET(ends.in.buffer_size), "4194304", .min = 4096,
	  .max = 1 << 30, .help = "Bytes that may wait in the kernel" },
};

static const struct config_key rtp_out_keys[] = {
	{ "address", CONFIG_STRING, OFFSET(ends.out.address), .help = "Where to send" },
	{ "format", CONFIG_JSON, OFFSET(ends.out.format), .help = "Format of what is sent" },
	{ "multicast", CONFIG_JSON, OFFSET(ends.out.multicast_cfg),
	  .help = "The same as in.multicast" },
	{ "packet_size", CONFIG_INT, OFFSET(packet_size), "1400", .min = 64, .max = 65507,
	  .help = "Samples of one write are put together into packets of this many bytes" },
	{ "netem", CONFIG_JSON, OFFSET(netem), .help = "Refused: of node-type socket" },
	{ "fwmark", CONFIG_JSON, OFFSET(fwmark), .help = "Refused: of node-type socket" },
};

_Static_assert(offsetof(struct rtp_node, ends) == 0, "socket_ends.h");

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

static int refuse_emulation(struct rtp_node *r, struct config *c)
{
	bool off = json_is_false(json_object_get(r->netem, "enabled"));
	const char *key = r->netem && !off ? "netem" : r->fwmark ? "fwmark" : NULL;

	if (!key)
		return 0;
	config_fail(c, r->ends.node->out.cfg, key,
		    "is not for this node-type: use tc(8) or nft(8), or node-type socket");
	return -EINVAL;
}

static int rtp_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct rtp_node *r = n->private_data;

	r->ends.node = n;
	if (refuse_emulation(r, c) || parse_rtcp(r, c, cfg) || parse_aimd(r, c, cfg))
		return -EINVAL;
	return socket_ends_parse(n, c, cfg);
}

static int rtp_check(struct node *n, struct config *c, json_t *cfg)
{
	struct rtp_node *r = n->private_data;
	bool rtcp = r->rtcp_settings.enabled;

	return socket_ends_check(&r->ends, c, cfg,
				 r->ends.reader ? "where to receive" :
				 rtcp ? "where the peer's reports come (rtcp)" : NULL,
				 r->ends.writer ? "where to send" :
				 rtcp ? "where the reports go (rtcp)" :
				 r->ends.verify_source ? "whom to take packets from (verify_source)" :
						    NULL);
}

/* A sample has to fit into a packet. */
static int rtp_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	const size_t max = 65507 - RTP_HEADER_SIZE;
	struct rtp_node *r = n->private_data;
	struct format_sizes sizes;
	int ret;

	if (!r->ends.writer)
		return 0;
	ret = format_check_signals(r->ends.writer, c, cfg, n->out.hooked);
	if (ret || !n->is_destination || !n->out.hooked)
		return ret;
	if (format_check_sizes(r->ends.writer, c, cfg, n->out.hooked, &sizes))
		return -EINVAL;
	if (sizes.bytes_min > max) {
		config_fail(c, n->out.cfg ? n->out.cfg : cfg, NULL,
			    "a sample of %u values takes %zu bytes at least in the format %s, a packet has %zu at most; use another format, or fewer signals",
			    n->out.hooked->count, sizes.bytes_min, r->ends.writer->type->name, max);
		return -EINVAL;
	}
	return 0;
}

static int rtp_stop(struct node *n)
{
	struct rtp_node *r = n->private_data;

	rtcp_close(r);
	rtp_receiver_close(r);
	rtp_sender_close(r);
	socket_ends_stop(&r->ends);
	return 0;
}

static int rtp_start(struct node *n)
{
	struct rtp_node *r = n->private_data;
	int ret = socket_ends_start(n);

	rtp_session_begin(&r->session, (uint32_t)r->clock_rate);
	atomic_store(&r->step, 0);
	if (!ret)
		ret = rtp_open(r);
	if (!ret && r->ends.reader)
		ret = rtp_receiver_open(r);
	if (!ret && r->ends.writer)
		ret = rtp_sender_open(r);
	if (!ret && r->rtcp_settings.enabled)
		ret = rtcp_open(r);
	if (ret)
		rtp_stop(n);
	return ret;
}

static int rtp_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct rtp_node *r = n->private_data;

	return likely(r->receiver) ? datagram_read(r->receiver, smps, cnt) : -ENODATA;
}

static void rtp_print(struct node *n, char *buf, size_t size)
{
	const struct rtp_node *r = n->private_data;
	const struct format *f = r->ends.reader ? r->ends.reader : r->ends.writer;

	snprintf(buf, size, "%s%.80s%s%.80s, format %s, reports %s %s",
		 r->ends.in.address ? "in " : "", r->ends.in.address ? r->ends.in.address : "",
		 r->ends.out.address ? r->ends.in.address ? ", out " : "out " : "",
		 r->ends.out.address ? r->ends.out.address : "", f ? f->type->name : "none",
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
	.init = socket_ends_init,
	.destroy = socket_ends_destroy,
	.parse = rtp_parse,
	.check = rtp_check,
	.check_signals = rtp_check_signals,
	.start = rtp_start,
	.stop = rtp_stop,
	.read = rtp_read,
	.write = rtp_write,
	.sleep = socket_ends_sleep,
	.interrupt = socket_ends_interrupt,
	.rearm = node_rearm_nothing,
	.reverse = socket_ends_reverse,
	.poll_fds = socket_ends_poll_fds,
	.print = rtp_print,
};
