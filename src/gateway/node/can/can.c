/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `can`: its settings and callbacks; see can.h. */
#define LOG_ROOM "gateway/can"
#include "gateway/node/can/can.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/signals.h"

extern const struct node_type node_can;

#define OFFSET(field) offsetof(struct can_node, field)

static const char *const triggers[] = {
	[CAN_TRIGGER_ALL] = "all", [CAN_TRIGGER_ANY] = "any", [CAN_TRIGGER_ID] = "id", NULL,
};

static const struct config_key can_keys[] = {
	{ "interface_name", CONFIG_STRING, OFFSET(bus.interface), .required = true,
	  .help = "Name of the network interface, such as can0" },
	{ "dbc", CONFIG_STRING, OFFSET(dbc),
	  .help = "DBC file with the signals that dbc_signal names" },
	{ "sample_rate", CONFIG_REAL, OFFSET(sample_rate), .min = 0, .max = 1e12,
	  .help = "Has no effect, as in VILLASnode: samples come when frames do" },
	{ "fd", CONFIG_BOOL, OFFSET(bus.fd), "false",
	  .help = "Frames are sent as those of CAN FD, and such ones are received, too" },
	{ "bitrate_switch", CONFIG_BOOL, OFFSET(bitrate_switch), "true",
	  .help = "fd: the data of frames have the faster bit rate" },
	{ "loopback", CONFIG_BOOL, OFFSET(bus.loopback), "true",
	  .help = "Other programs of this host receive what the node sends" },
	{ "receive_own", CONFIG_BOOL, OFFSET(bus.receive_own), "false",
	  .help = "The node receives what it sends itself" },
	{ "reconnect_interval", CONFIG_INT, OFFSET(reconnect_ms), "1000", .min = 10, .max = 3600000,
	  .help = "Milliseconds between looks at an interface that is away, at most" },
};

static const struct config_key can_in_keys[] = {
	{ "trigger", CONFIG_ENUM, OFFSET(trigger), "all", .names = triggers,
	  .help = "What makes a sample: all identifiers came, any frame, or one identifier (id)" },
	{ "trigger_id", CONFIG_INT, OFFSET(trigger_id), "-1", .min = 0, .max = 4294967295.0,
	  .help = "trigger = \"id\": the identifier whose frames make samples" },
};

static const struct config_key can_out_keys[] = {
	{ "send_timeout", CONFIG_REAL, OFFSET(send_timeout_s), "0.1", .min = 0, .max = 60,
	  .help = "Seconds that a frame waits for room in the queue of the interface" },
};

static int fail(struct config *c, const json_t *at, const char *key, const char *what)
{
	config_fail(c, at, key, "%s", what);
	return -EINVAL;
}

static int node_init(struct node *n)
{
	struct can_node *c = n->private_data;

	c->node = n;
	c->ops = &can_bus_socket;
	c->fd = -1;
	c->wait.wake_fd = -1;
	c->faults.node = n;
	pthread_mutex_init(&c->lock, NULL);
	return 0;
}

static void node_destroy(struct node *n)
{
	struct can_node *c = n->private_data;

	can_side_free(&c->in);
	can_side_free(&c->out);
	pthread_mutex_destroy(&c->lock);
}

/* ---- settings ---- */

/* Where the signals of a direction stand. */
static const json_t *signals_of(const struct node_direction *d, const json_t *cfg)
{
	return signal_list_is_given(d->cfg, "signals") ? d->cfg : cfg;
}

static int node_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct can_node *p = n->private_data;
	size_t len = strlen(p->bus.interface);
	struct dbc dbc = { 0 };
	char *text = NULL;
	int ret = 0;

	if (!len || len >= IFNAMSIZ)
		ret = fail(c, cfg, "interface_name", "has 1 to 15 bytes");
	if (p->sample_rate != 0)
		config_warn(c, cfg, "sample_rate", "says nothing: samples come when frames do");
	if (!p->bus.fd && json_object_get(cfg, "bitrate_switch"))
		config_warn(c, cfg, "bitrate_switch", "says nothing without `fd`");
	if (p->bus.receive_own && !p->bus.loopback)
		config_warn(c, cfg, "receive_own", "says nothing without `loopback`");
	if (p->dbc && can_dbc_load(&dbc, &text, c, cfg, p->dbc))
		return -EINVAL;
	ret = can_side_parse(&p->in, c, signals_of(&n->in, cfg), n->in.signals,
			     p->dbc ? &dbc : NULL, p->bus.fd, false) ?: ret;
	ret = can_side_parse(&p->out, c, signals_of(&n->out, cfg), n->out.signals,
			     p->dbc ? &dbc : NULL, p->bus.fd, true) ?: ret;
	dbc_free(&dbc);
	free(text);
	return ret;
}

static int find_trigger(struct can_node *p, struct config *c)
{
	const json_t *at = p->node->in.cfg;
	uint32_t id;

	if (p->trigger != CAN_TRIGGER_ID) {
		if (p->trigger_id >= 0)
			config_warn(c, at, "trigger_id", "says nothing without trigger = \"id\"");
		return 0;
	}
	if (p->trigger_id < 0)
		return fail(c, at, "trigger_id", "is required with trigger = \"id\"");
	id = can_id_parse(c, at, "trigger_id", p->trigger_id);
	if (id == UINT32_MAX)
		return -EINVAL;
	p->trigger_message = can_message_find(p->in.messages, p->in.message_count, id);
	return p->trigger_message ? 0 :
		fail(c, at, "trigger_id", "no signal of `in` has this can_id");
}

static int node_check(struct node *n, struct config *c, json_t *cfg)
{
	struct can_node *p = n->private_data;

	if (!p->in.count && !p->out.count)
		return fail(c, cfg, NULL,
			    "needs `in = { signals = ... }` to receive, or `out = { signals = ... }` to send, each signal with its can_id");
	if (n->is_source && !p->in.count)
		return fail(c, cfg, NULL, "a path reads the node, but in.signals is missing");
	if (n->is_destination && !p->out.count)
		return fail(c, cfg, NULL, "a path writes the node, but out.signals is missing");
	return p->in.count ? find_trigger(p, c) : 0;
}

/* Called when the signals that the path writes are known. */
static int node_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct can_node *p = n->private_data;
	const struct signal_list *l = n->out.hooked;
	const json_t *at = n->out.cfg ? n->out.cfg : cfg;

	for (unsigned i = 0; l && i < p->out.count; i++) {
		const struct can_map *m = &p->out.maps[i];

		if (m->signal < l->count && l->signals[m->signal].type == SIGNAL_COMPLEX &&
		    m->kind != CAN_COMPLEX) {
			config_fail(c, at, NULL, "the signal '%.60s' is complex, and out.signals say otherwise",
				    l->signals[m->signal].name);
			return -EINVAL;
		}
	}
	if (l && n->is_destination && l->count > p->out.count)
		config_warn(c, at, "signals", "are %u, and samples have %u values: the last ones are not sent",
			    p->out.count, l->count);
	return 0;
}

/* ---- the node ---- */

static int node_stop(struct node *n)
{
	can_close(n->private_data);
	return 0;
}

static int node_start(struct node *n)
{
	int ret = can_open(n->private_data);

	if (ret)
		node_stop(n);
	return ret;
}

static bool node_may_wait(struct node *n)
{
	const struct can_node *c = n->private_data;

	return c->send_timeout_s > 0;
}

static void node_interrupt(struct node *n)
{
	struct can_node *c = n->private_data;

	socket_wait_interrupt(&c->wait);
}

static void node_print(struct node *n, char *buf, size_t size)
{
	const struct can_node *c = n->private_data;

	snprintf(buf, size, "interface %s%s, in: %u signals of %u identifiers, out: %u of %u",
		 c->bus.interface, c->bus.fd ? ", CAN FD" : "", c->in.count, c->in.message_count,
		 c->out.count, c->out.message_count);
}

static const struct node_figure can_figures[CAN_FIGURES] = {
	[FAULT_MALFORMED] = { "malformed", "Frames that cannot be read", NODE_COUNTER },
	[FAULT_OVERRUN] = { "overrun", "Frames lost because reading was too slow", NODE_COUNTER },
	[CAN_FRAMES_RECEIVED] = { "frames_received", "Frames with an identifier of a signal", NODE_COUNTER },
	[CAN_FRAMES_SENT] = { "frames_sent", "Frames of samples that were sent", NODE_COUNTER },
	[CAN_SHORT_FRAMES] = { "short_frames", "Frames with fewer bytes than their signals need", NODE_COUNTER },
	[CAN_OUT_OF_RANGE] = { "out_of_range", "Received values beyond min or max", NODE_COUNTER },
	[CAN_OVERWRITTEN] = { "overwritten", "Frames that came again before a sample was complete", NODE_COUNTER },
	[CAN_CLIPPED_VALUES] = { "clipped", "Values that did not fit, in whose place the nearest was sent", NODE_COUNTER },
	[CAN_WAITS] = { "waits", "Frames for which the interface had no room at once", NODE_COUNTER },
	[CAN_DOWNS] = { "downs", "How often the interface went down or away", NODE_COUNTER },
	[CAN_ERROR_FRAMES] = { "error_frames", "Error frames of the interface", NODE_COUNTER },
	[CAN_BUS_OFF] = { "bus_off", "How often the controller left the bus", NODE_COUNTER },
	[CAN_RESTARTED] = { "restarted", "How often the controller was restarted", NODE_COUNTER },
	[CAN_PASSIVE] = { "error_passive", "How often the controller became error passive", NODE_COUNTER },
	[CAN_WARNING] = { "error_warning", "How often it reached the warning level", NODE_COUNTER },
	[CAN_ACTIVE] = { "error_active", "How often it became error active again", NODE_COUNTER },
	[CAN_OVERFLOWS] = { "overflows", "Frames for which the controller had no room", NODE_COUNTER },
	[CAN_ARBITRATION_LOST] = { "arbitration_lost", "Error frames: arbitration lost", NODE_COUNTER },
	[CAN_TX_TIMEOUTS] = { "tx_timeouts", "Error frames: a frame could not be sent in time", NODE_COUNTER },
	[CAN_PROTOCOL_ERRORS] = { "protocol_errors", "Error frames: protocol errors", NODE_COUNTER },
	[CAN_NO_ACK] = { "no_ack", "Error frames: nobody acknowledges", NODE_COUNTER },
	[CAN_BUS_ERRORS] = { "bus_errors", "Error frames: bus errors", NODE_COUNTER },
	[CAN_TRANSCEIVER] = { "transceiver_errors", "Error frames: faults of the transceiver", NODE_COUNTER },
	[CAN_TX_ERRORS] = { "tx_errors", "Counter of transmit errors of the controller", NODE_GAUGE },
	[CAN_RX_ERRORS] = { "rx_errors", "Counter of receive errors of the controller", NODE_GAUGE },
};

const struct node_type node_can = {
	.name = "can",
	.description = "Samples are frames of a CAN bus (SocketCAN)",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_NEEDS_GROUP,
	.size = sizeof(struct can_node),
	.keys = can_keys,
	.key_count = ARRAY_SIZE(can_keys),
	.in_keys = can_in_keys,
	.in_key_count = ARRAY_SIZE(can_in_keys),
	.out_keys = can_out_keys,
	.out_key_count = ARRAY_SIZE(can_out_keys),
	.signal_keys = can_signal_keys,
	.signal_key_count = CAN_SIGNAL_KEYS,
	.figures = can_figures,
	.figure_count = ARRAY_SIZE(can_figures),
	.init = node_init,
	.destroy = node_destroy,
	.parse = node_parse,
	.check = node_check,
	.check_signals = node_check_signals,
	.start = node_start,
	.stop = node_stop,
	.read = can_node_read,
	.write = can_node_write,
	.sleep = can_node_sleep,
	.may_wait = node_may_wait,
	.interrupt = node_interrupt,
	.rearm = node_rearm_nothing,
	.print = node_print,
};
