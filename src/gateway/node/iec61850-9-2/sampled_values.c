/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `iec61850-9-2`: its settings and callbacks; see sampled_values.h. */
#define LOG_ROOM "gateway/iec61850-9-2"
#include "gateway/node/iec61850-9-2/sampled_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

extern const struct node_type node_iec61850_9_2;

#define OFFSET(field) offsetof(struct sv_node, field)
#define APP_ID_DEFAULT "0x4000"
#define DST_DEFAULT "01:0c:cd:01:00:01"

static const char *const mode_names[] = {
	[SV_PER_PERIOD] = "per_nominal_period",
	[SV_PER_SECOND] = "samples_per_second",
	[SV_SECONDS_PER_SAMPLE] = "seconds_per_sample",
	NULL,
};

static const char *const synch_names[] = {
	[SV_SYNCH_NONE] = "not_synchronized",
	[SV_SYNCH_LOCAL] = "local_clock",
	[SV_SYNCH_GLOBAL] = "global_clock",
	NULL,
};

static const struct config_key sv_keys[] = {
	{ "interface", CONFIG_STRING, OFFSET(interface), .help = "Name of the network interface" },
	{ "capture", CONFIG_STRING, OFFSET(capture),
	  .help = "In place of an interface: a capture file (pcap, pcapng) that is read" },
	{ "app_id", CONFIG_INT, OFFSET(app_id), APP_ID_DEFAULT, .min = 0, .max = 65535,
	  .help = "APPID of messages; others are not read" },
	{ "dst_address", CONFIG_STRING, OFFSET(dst_text), DST_DEFAULT,
	  .help = "Destination of frames, an address of Ethernet" },
};

static const struct config_key sv_in_keys[] = {
	{ "scl", CONFIG_JSON, OFFSET(in.scl_cfg), .group = scl_read_keys, .group_count = SCL_KEYS,
	  .help = "The control block in an engineering file" },
	{ "check_dst_address", CONFIG_BOOL, OFFSET(in.check_dst_address), "false",
	  .help = "Read only frames to dst_address" },
	{ "sv_id", CONFIG_STRING, OFFSET(in.sv_id),
	  .help = "Read only this stream; by default the first one that comes" },
	{ "app_id", CONFIG_INT, OFFSET(in.app_id), .min = 0, .max = 65535,
	  .help = "APPID of what is read, if it is another one than app_id of the node" },
	{ "conf_rev", CONFIG_INT, OFFSET(in.conf_rev), .min = 0, .max = 4294967295.0,
	  .help = "Read only this revision of the configuration" },
	{ "smp_rate", CONFIG_INT, OFFSET(in.smp_rate), .min = 0, .max = COUNTING_MAX,
	  .help = "Samples a second, at which smpCnt begins at 0 again; by default learned" },
	{ "simulation", CONFIG_BOOL, OFFSET(in.simulation), "false",
	  .help = "Read simulated messages, too, and only them once they have come" },
	ROUTING_KEYS_IN(OFFSET(in.routing)),
};

#define VLAN(field) offsetof(struct sv_vlan, field)

static const struct config_key vlan_keys[] = {
	{ "enabled", CONFIG_BOOL, VLAN(enabled), "true", .help = "Frames have a tag" },
	{ "id", CONFIG_INT, VLAN(id), "0", .min = 0, .max = 4094,
	  .help = "VLAN; 0: none, for the priority alone" },
	{ "priority", CONFIG_INT, VLAN(priority), "4", .min = 0, .max = 7,
	  .help = "7 is the highest" },
};

static const struct config_key sv_out_keys[] = {
	{ "scl", CONFIG_JSON, OFFSET(out.scl_cfg), .group = scl_file_keys, .group_count = SCL_FILE_KEYS,
	  .help = "The control block in an engineering file" },
	{ "sv_id", CONFIG_STRING, OFFSET(out.sv_id), .help = "svID, the name of the stream" },
	{ "svid", CONFIG_STRING, OFFSET(out.svid), .help = "Older name of sv_id" },
	{ "datset", CONFIG_STRING, OFFSET(out.datset),
	  .help = "Reference of the data set; by default none is sent" },
	{ "conf_rev", CONFIG_INT, OFFSET(out.conf_rev), "1", .min = 0, .max = 4294967295.0,
	  .help = "Revision of the configuration" },
	{ "confrev", CONFIG_INT, OFFSET(out.confrev), .min = 0, .max = 4294967295.0,
	  .help = "Older name of conf_rev" },
	{ "smp_mod", CONFIG_ENUM, OFFSET(out.smp_mod), .names = mode_names,
	  .help = "What smp_rate counts; by default not said, which means per_nominal_period" },
	{ "smpmod", CONFIG_ENUM, OFFSET(out.smpmod), .names = mode_names,
	  .help = "Older name of smp_mod" },
	{ "smp_rate", CONFIG_INT, OFFSET(out.smp_rate), .min = 0, .max = 65535,
	  .help = "Rate of the samples; by default not said, and smpCnt counts to 65535" },
	{ "smprate", CONFIG_INT, OFFSET(out.smprate), .min = 0, .max = 65535,
	  .help = "Older name of smp_rate" },
	{ "frequency", CONFIG_REAL, OFFSET(out.frequency), "50", .min = 1, .max = 1000,
	  .help = "Nominal frequency in Hz, for per_nominal_period" },
	{ "announce", CONFIG_BOOL, OFFSET(out.announce), "true",
	  .help = "smp_rate and smp_mod stand in messages; not in those of 9-2LE" },
	{ "smp_synch", CONFIG_ENUM, OFFSET(out.smp_synch), "not_synchronized",
	  .names = synch_names, .help = "To what the times of the samples are synchronised" },
	{ "refr_tm", CONFIG_BOOL, OFFSET(out.refr_tm), "true",
	  .help = "Origins of samples stand in messages, as refrTm" },
	{ "asdus", CONFIG_INT, OFFSET(out.asdus), "1", .min = 1, .max = SV_ASDUS_MAX,
	  .help = "Samples in a message" },
	{ "flush", CONFIG_BOOL, OFFSET(out.flush), "false",
	  .help = "Send messages with fewer samples at the end of each write" },
	{ "simulation", CONFIG_BOOL, OFFSET(out.simulation), "false",
	  .help = "Mark messages as simulated" },
	{ "vlan", CONFIG_JSON, OFFSET(out.vlan_cfg), .group = vlan_keys,
	  .group_count = ARRAY_SIZE(vlan_keys), .help = "Tag of IEEE 802.1Q" },
	{ "vlan_id", CONFIG_INT, OFFSET(out.vlan_id), .min = 0, .max = 4094,
	  .help = "Older name of vlan.id" },
	{ "vlan_priority", CONFIG_INT, OFFSET(out.vlan_priority), .min = 0, .max = 7,
	  .help = "Older name of vlan.priority" },
	ROUTING_KEYS_OUT(OFFSET(out.routing)),
};

static bool can_read(const struct node *n)
{
	return n->in.present && n->in.enabled;
}

static bool can_write(const struct node *n)
{
	return n->out.present && n->out.enabled;
}

static bool is_given(const struct node_direction *d, const char *key)
{
	const json_t *value = json_object_get(d->cfg, key);

	return value && !json_is_null(value);
}

/* True: the older name is used, and the newer one is not. */
static bool is_former(struct node *n, struct config *c, const char *former, const char *key,
		      int *ret)
{
	if (!is_given(&n->out, former))
		return false;
	if (is_given(&n->out, key)) {
		config_fail(c, n->out.cfg, former, "is an older name of %s, which is there, too", key);
		*ret = -EINVAL;
	}
	return true;
}

static int take_former_keys(struct sv_node *v, struct config *c)
{
	struct sv_out_settings *o = &v->out;
	struct node *n = v->node;
	int ret = 0;

	if (is_former(n, c, "svid", "sv_id", &ret))
		o->sv_id = o->svid;
	if (is_former(n, c, "confrev", "conf_rev", &ret))
		o->conf_rev = o->confrev;
	if (is_former(n, c, "smprate", "smp_rate", &ret))
		o->smp_rate = o->smprate;
	o->has_smp_mod |= is_given(&n->out, "smp_mod");
	if (is_former(n, c, "smpmod", "smp_mod", &ret)) {
		o->smp_mod = o->smpmod;
		o->has_smp_mod = true;
	}
	if (is_former(n, c, "vlan_id", "vlan", &ret))
		v->vlan.id = o->vlan_id;
	if (is_former(n, c, "vlan_priority", "vlan", &ret))
		v->vlan.priority = o->vlan_priority;
	return ret;
}

/* The data set of a direction whose signals the configuration has. */
static int parse_signals(struct node *n, struct node_direction *d, struct config *c, bool read,
			 struct data_set **out)
{
	const json_t *at = signal_list_is_given(d->cfg, "signals") ? d->cfg : n->cfg;

	return d->signals ? data_set_new(out, c, at, d->signals, read) : 0;
}

static int sv_init(struct node *n)
{
	struct sv_node *v = n->private_data;

	v->node = n;
	v->ethernet.fd = v->in_socket.fd = v->out_socket.fd = -1;
	v->wait.wake_fd = -1;
	v->faults.node = n;
	return 0;
}

static int parse_routing(struct sv_node *v, struct config *c, const json_t *cfg)
{
	struct node *n = v->node;
	const json_t *address = json_object_get(cfg, "dst_address");
	bool frames = (n->in.present && !v->in.routing.enabled) ||
		      (n->out.present && !v->out.routing.enabled);
	int ret = routing_parse(&v->in.routing, c, n->in.cfg, false);

	ret = routing_parse(&v->out.routing, c, n->out.cfg, true) ?: ret;
	if (address && !json_is_null(address) && !frames && (n->in.present || n->out.present)) {
		config_fail(c, cfg, "dst_address", "is of frames of Ethernet, and all is `routed` over UDP");
		return -EINVAL;
	}
	if (v->in.routing.enabled && v->in.check_dst_address) {
		config_fail(c, n->in.cfg, "check_dst_address", "is of frames of Ethernet, and `routed` messages come over UDP; multicast_groups says which groups");
		return -EINVAL;
	}
	return ret;
}

/* Where routed messages are sent; a file may have said it. */
static int parse_destination(struct sv_node *v, struct config *c)
{
	struct routing *r = &v->out.routing;
	const json_t *at = v->node->out.cfg;

	if (!r->enabled)
		return 0;
	if (r->remote_address)
		return routing_parse_to(r, c, at, "remote_address", r->remote_address, &v->out.to);
	config_fail(c, at, "remote_address", "is required to send routed messages, here or in the file that `scl` names");
	return -EINVAL;
}

static int sv_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct sv_node *v = n->private_data;
	int ret = parse_routing(v, c, cfg) ?: sv_take_scl(v, c, cfg) ?: parse_destination(v, c);

	if (ret)
		return ret;
	if (!ethernet_parse(v->dst_text, v->dst)) {
		config_fail(c, cfg, "dst_address",
			    "'%.40s' is no address of Ethernet such as 01:0c:cd:04:00:01",
			    v->dst_text);
		return -EINVAL;
	}
	v->in.has_conf_rev |= is_given(&n->in, "conf_rev");
	/* Without the group, a file may have said it. */
	if (!v->vlan.enabled || json_is_object(v->out.vlan_cfg))
		ret = config_unpack(c, v->out.vlan_cfg, vlan_keys, ARRAY_SIZE(vlan_keys), &v->vlan, NULL, 0);
	ret = take_former_keys(v, c) ?: ret;
	ret = parse_signals(n, &n->in, c, true, &v->in_set) ?: ret;
	ret = parse_signals(n, &n->out, c, false, &v->out_set) ?: ret;
	return sv_take_scl_data(v, c) ?: ret;
}

static int check_text(struct config *c, const json_t *at, const char *key, const char *text,
		      size_t max)
{
	if (!text || (*text && strlen(text) <= max))
		return 0;
	config_fail(c, at, key, "has 1 to %zu bytes", max);
	return -EINVAL;
}

static int check_out(struct sv_node *v, struct config *c)
{
	const json_t *at = v->node->out.cfg;

	if (!v->out.sv_id) {
		config_fail(c, at, "sv_id", "is required: the name of the stream that is sent");
		return -EINVAL;
	}
	if (sv_out_wrap(&v->out))
		return 0;
	config_fail(c, at, is_given(&v->node->out, "smprate") ? "smprate" : "smp_rate",
		    "%jd in a period of %g Hz are more than %u samples a second; with smp_mod = \"samples_per_second\" it is a rate per second",
		    (intmax_t)v->out.smp_rate, v->out.frequency, COUNTING_MAX);
	return -EINVAL;
}

static int check_source(struct sv_node *v, struct config *c, json_t *cfg)
{
	if (!v->interface == !v->capture) {
		config_fail(c, cfg, v->capture ? "capture" : NULL,
			    v->capture ? "cannot be together with `interface`" :
					 "needs `interface`, or `capture` to read a file");
		return -EINVAL;
	}
	if (v->capture && v->in.routing.enabled) {
		config_fail(c, v->node->in.cfg, "routed",
			    "cannot be together with `capture`, of which frames of Ethernet are read");
		return -EINVAL;
	}
	if (v->capture && can_write(v->node)) {
		config_fail(c, v->node->out.cfg, NULL,
			    "cannot be together with `capture`, which is only read");
		return -EINVAL;
	}
	return 0;
}

static int sv_check(struct node *n, struct config *c, json_t *cfg)
{
	struct sv_node *v = n->private_data;

	if (!can_read(n) && !can_write(n)) {
		config_fail(c, cfg, NULL,
			    "needs `in = { signals = ... }` to receive, or `out = { sv_id = ... }` to send");
		return -EINVAL;
	}
	if (can_read(n) && !v->in_set) {
		config_fail(c, n->in.cfg, "signals",
			    "are required: messages do not say what they hold");
		return -EINVAL;
	}
	if (check_text(c, n->in.cfg, "sv_id", v->in.sv_id, SV_ID_MAX) ||
	    check_text(c, n->out.cfg, "sv_id", v->out.sv_id, SV_ID_MAX) ||
	    check_text(c, n->out.cfg, "datset", v->out.datset, SV_ID_MAX))
		return -EINVAL;
	return check_source(v, c, cfg) ?: can_write(n) ? check_out(v, c) : 0;
}

/* What the path writes is known now. */
static int sv_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct sv_node *v = n->private_data;
	const struct signal_list *l = n->out.hooked;
	const json_t *at = n->out.cfg ? n->out.cfg : cfg;

	if (!can_write(n))
		return 0;
	for (unsigned i = 0; l && i < l->count; i++)
		if (l->signals[i].type == SIGNAL_COMPLEX) {
			config_fail(c, at, NULL,
				    "the signal '%s' is complex, which sampled values cannot hold",
				    l->signals[i].name);
			return -EINVAL;
		}
	if (!v->out_set && n->out.signals) {
		int ret = data_set_new(&v->out_set, c, NULL, n->out.signals, false);

		if (ret)
			return ret;
	}
	if (!v->out_set) {
		config_fail(c, at, "signals", "are required: those of the samples are not known");
		return -EINVAL;
	}
	if (l && n->is_destination && l->count > v->out_set->count)
		config_warn(c, at, "signals",
			    "the data set has %u values, and samples have %u: the last ones are not sent",
			    v->out_set->count, l->count);
	return 0;
}

static void sv_destroy(struct node *n)
{
	struct sv_node *v = n->private_data;

	free(v->in_set);
	free(v->out_set);
	scl_files_free(&v->files);
	routing_free(&v->in.routing);
}

static int sv_stop(struct node *n)
{
	struct sv_node *v = n->private_data;

	sv_publisher_close(v);
	sv_subscriber_close(v);
	ethernet_close(&v->ethernet);
	routed_close(&v->in_socket);
	routed_close(&v->out_socket);
	socket_wait_close(&v->wait);
	fault_finish(&v->faults);
	return 0;
}

/* The sockets of both directions. 0 or a negative errno after a message in the log. */
static int open_sockets(struct sv_node *v)
{
	struct node *n = v->node;
	bool in_routed = can_read(n) && v->in.routing.enabled;
	bool out_routed = can_write(n) && v->out.routing.enabled;
	bool in_frames = can_read(n) && !in_routed, out_frames = can_write(n) && !out_routed;
	char why[MAX(ETHERNET_WHY_MAX, SOCKET_WHY_MAX)];
	int ret = 0;

	if (v->capture)
		ret = ethernet_open_capture(&v->ethernet, v->capture, ETHERTYPE_SV, why);
	else if (in_frames || out_frames)
		ret = ethernet_open(&v->ethernet, v->interface, ETHERTYPE_SV, in_frames, why);
	if (!ret && in_routed)
		ret = routing_open(&v->in.routing, v->interface, false, &v->in_socket, why);
	if (!ret && out_routed)
		ret = routing_open(&v->out.routing, v->interface, true, &v->out_socket, why);
	if (ret)
		log_error("%s: %s", n->name, why);
	return ret;
}

static int sv_start(struct node *n)
{
	struct sv_node *v = n->private_data;
	int ret = socket_wait_open(&v->wait);

	if (ret)
		log_error("%s: no event descriptor: %s", n->name, strerror(-ret));
	else
		ret = open_sockets(v);
	if (!ret && can_read(n))
		ret = sv_subscriber_open(v);
	if (!ret && can_write(n) && v->out_set)
		ret = sv_publisher_open(v);
	if (ret)
		sv_stop(n);
	return ret;
}

static void sv_sleep(struct node *n, uint64_t until_ns)
{
	struct sv_node *v = n->private_data;

	if (v->subscriber && until_ns > clock_now_ns())
		socket_wait_sleep(&v->wait, sv_in_fd(v), until_ns);
}

static void sv_interrupt(struct node *n)
{
	struct sv_node *v = n->private_data;

	socket_wait_interrupt(&v->wait);
}

static void sv_print(struct node *n, char *buf, size_t size)
{
	const struct sv_node *v = n->private_data;
	bool out = can_write(n);

	snprintf(buf, size, "%s %.100s, APPID 0x%04x, %s%s%s%.60s",
		 v->capture ? "capture" : "interface", v->capture ? v->capture : v->interface,
		 (unsigned)v->app_id, v->dst_text, can_read(n) ? ", in" : "",
		 out ? ", out " : "", out ? v->out.sv_id : "");
}

static const struct node_figure sv_figures[SV_FIGURES] = {
	[FAULT_MALFORMED] = { "malformed", "Messages and samples that cannot be read", NODE_COUNTER },
	[FAULT_TRUNCATED] = { "truncated", "Frames longer than the interface allows", NODE_COUNTER },
	[FAULT_FOREIGN] = { "foreign", "Samples of another stream with the same APPID", NODE_COUNTER },
	[FAULT_OVERRUN] = { "overrun", "Frames lost because reading was too slow", NODE_COUNTER },
	[SV_FIGURE_LOST] = { "smp_lost", "Samples that did not arrive, by smpCnt", NODE_COUNTER },
	[SV_FIGURE_REPEATED] = { "repeated", "Samples that came a second time", NODE_COUNTER },
	[SV_FIGURE_REORDERED] = { "reordered", "Samples that were overtaken", NODE_COUNTER },
	[SV_FIGURE_RESTARTS] = { "restarts", "How often a publisher began its count again", NODE_COUNTER },
	[SV_FIGURE_WRONG_LENGTH] = { "wrong_length", "Data sets that are not as long as the signals", NODE_COUNTER },
	[SV_FIGURE_WRONG_CONF_REV] = { "wrong_conf_rev", "Samples of another confRev", NODE_COUNTER },
	[SV_FIGURE_WRONG_SMP_CNT] = { "wrong_smp_cnt", "Samples whose smpCnt is not below in.smp_rate", NODE_COUNTER },
	[SV_FIGURE_NOT_SYNCHRONIZED] = { "not_synchronized", "Samples whose smpSynch is 0", NODE_COUNTER },
	[SV_FIGURE_SIMULATED] = { "simulated", "Simulated messages that were not read", NODE_COUNTER },
	[SV_FIGURE_NOT_SIMULATED] = { "not_simulated", "Samples that were not read because simulated ones have come", NODE_COUNTER },
	[SV_FIGURE_OTHERS] = { "others", "Messages and samples of other streams", NODE_COUNTER },
	[SV_FIGURE_BAD_QUALITY] = { "bad_quality", "Values whose quality is not good", NODE_COUNTER },
	[SV_FIGURE_SMP_SYNCH] = { "smp_synch", "smpSynch of the last sample", NODE_GAUGE },
	[SV_FIGURE_SMP_RATE] = { "smp_rate", "Where smpCnt begins again; 0: not known", NODE_GAUGE },
	[SV_FIGURE_MESSAGES_RECEIVED] = { "messages_received", "Messages received", NODE_COUNTER },
	[SV_FIGURE_MESSAGES_SENT] = { "messages_sent", "Messages sent", NODE_COUNTER },
	[SV_FIGURE_CLIPPED] = { "clipped", "Values that did not fit into their type", NODE_COUNTER },
	[SV_FIGURE_SECURED] = { "secured", "Messages not used because they are signed or encrypted", NODE_COUNTER },
	[SV_FIGURE_UNVERIFIED] = { "unverified", "Messages used though their signature was not checked", NODE_COUNTER },
	[SV_FIGURE_ASTRAY] = { "astray", "Samples whose time does not suit smp_rate", NODE_COUNTER },
};

const struct node_type node_iec61850_9_2 = {
	.name = "iec61850-9-2",
	.description = "Samples as sampled values of IEC 61850-9-2, over Ethernet",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_NEEDS_GROUP,
	.size = sizeof(struct sv_node),
	.keys = sv_keys,
	.key_count = ARRAY_SIZE(sv_keys),
	.in_keys = sv_in_keys,
	.in_key_count = ARRAY_SIZE(sv_in_keys),
	.out_keys = sv_out_keys,
	.out_key_count = ARRAY_SIZE(sv_out_keys),
	.signal_keys = values_keys,
	.signal_key_count = VALUES_KEYS,
	.figures = sv_figures,
	.figure_count = ARRAY_SIZE(sv_figures),
	.init = sv_init,
	.destroy = sv_destroy,
	.parse = sv_parse,
	.check = sv_check,
	.check_signals = sv_check_signals,
	.start = sv_start,
	.stop = sv_stop,
	.read = sv_read,
	.write = sv_write,
	.sleep = sv_sleep,
	.interrupt = sv_interrupt,
	.rearm = node_rearm_nothing,
	.poll_fds = sv_poll_fds,
	.print = sv_print,
};
