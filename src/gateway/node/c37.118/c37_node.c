/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `c37.118`: its settings and callbacks; see c37_node.h. */
#define LOG_ROOM "gateway/c37.118"
#include "gateway/node/c37.118/c37_node.h"
#include "gateway/node/c37.118/c37_align.h"
#include "gateway/node/c37.118/c37_udp.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/part/socket_address.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/log.h"

extern const struct node_type node_c37_118;

static const char *const transport_names[] = { "tcp", "udp", "both", NULL };
static const char *const slow_names[] = { "disconnect", "skip", NULL };

#define IN(field) offsetof(struct c37_node, in.field)
#define OUT(field) offsetof(struct c37_node, out.field)

#define STREAMS_FORM "'type': 'array', 'minItems': 2, 'maxItems': 32, 'items': {'type': 'object', " \
	"'required': ['address', 'values'], 'additionalProperties': false, 'properties': {" \
	"'address': {'type': 'string'}, 'idcode': {'type': ['integer', 'string', 'null'], 'minimum': 0, 'maximum': 65535}, " \
	"'transport': {'enum': ['tcp', 'udp', 'both', null]}, 'data_address': {'type': ['string', 'null']}, " \
	"'values': {'type': ['integer', 'string'], 'minimum': 1}}}"

static const struct config_key c37_in_keys[] = {
	{ "address", CONFIG_STRING, IN(address),
	  .help = "Host and port of the device; the port is 4712 without it" },
	{ "idcode", CONFIG_INT, IN(idcode), "1", .min = 0, .max = 65535,
	  .help = "IDCODE of the stream, for commands" },
	{ "transport", CONFIG_ENUM, IN(transport), "tcp", .names = transport_names,
	  .help = "tcp, udp, or both: commands over TCP and data over UDP" },
	{ "data_address", CONFIG_STRING, IN(data_address),
	  .help = "With transport both: host and port here at which data arrive" },
	{ "cfg3", CONFIG_BOOL, IN(cfg3), "false",
	  .help = "Ask for CFG-3, and for CFG-2 if the device does not answer" },
	{ "header", CONFIG_BOOL, IN(header), "false",
	  .help = "Ask for the header and log its text" },
	{ "status", CONFIG_BOOL, IN(status), "false",
	  .help = "Have signals for the time quality and for STAT of each station" },
	{ "drop_invalid", CONFIG_BOOL, IN(drop_invalid), "false",
	  .help = "Leave out frames in which a station says that its data are wrong" },
	{ "values", CONFIG_INT, IN(values), "64", .min = 1, .max = SIGNALS_MAX,
	  .help = "Room of a sample where in.signals is not given" },
	{ "timeout", CONFIG_REAL, IN(timeout_s), "5", .min = 0.01, .max = 3600,
	  .help = "Seconds that the device may take for an answer or be silent" },
	{ "reconnect_interval", CONFIG_INT, IN(reconnect_ms), "1000", .min = 10, .max = 3600000,
	  .help = "Milliseconds between attempts to connect, at most" },
	{ "queuelen", CONFIG_INT, IN(queuelen), "1024", .min = 2, .max = 1 << 20,
	  .help = "Samples that wait to be read" },
	{ "streams", CONFIG_JSON, IN(streams), .form = STREAMS_FORM,
	  .help = "Several devices, whose data frames of the same time become one sample" },
	{ "wait", CONFIG_REAL, IN(wait_s), "0.2", .min = 0.001, .max = 60,
	  .help = "With streams: seconds after the first frame of a time that those of other devices may take" },
	{ "tolerance", CONFIG_REAL, IN(tolerance_s), "0.001", .min = 0, .max = 0.5,
	  .help = "With streams: seconds by which times that are the same may differ" },
};

#define STREAM(field) offsetof(struct c37_config_in, field)

static const struct config_key stream_keys[] = {
	{ "address", CONFIG_STRING, STREAM(address), .required = true, .help = "As in.address" },
	{ "idcode", CONFIG_INT, STREAM(idcode), "1", .min = 0, .max = 65535, .help = "As in.idcode" },
	{ "transport", CONFIG_ENUM, STREAM(transport), "tcp", .names = transport_names,
	  .help = "As in.transport" },
	{ "data_address", CONFIG_STRING, STREAM(data_address), .help = "As in.data_address" },
	{ "values", CONFIG_INT, STREAM(values), .required = true, .min = 1, .max = SIGNALS_MAX,
	  .help = "How many of in.signals are those of this device" },
};

#define DESTINATIONS_FORM "'type': 'array', 'maxItems': 64, 'items': {'type': 'string', " \
	"'pattern': '.:[0-9]{1,5}$'}"
#define CHANNEL_FORM "'name': {'type': ['string', 'null'], 'maxLength': 255}, 'signal': {'type': 'string'}"
#define FLAG "{'type': ['boolean', 'string', 'integer', 'null'], 'minimum': 0, 'maximum': 1, " \
	"'pattern': '^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$'}"
#define NUMBER_FORM "{'type': ['number', 'string', 'null']}"
#define INTEGER_FORM "{'type': ['integer', 'string', 'null'], 'minimum': 0, 'maximum': 2147483647}"
#define LIST_OF(properties) "{'type': ['array', 'null'], 'maxItems': 4096, 'items': {'type': 'object', " \
	"'required': ['signal'], 'additionalProperties': false, 'properties': {" CHANNEL_FORM ", " properties "}}}"
#define PHASORS_FORM LIST_OF("'unit': {'enum': ['volt', 'ampere', null]}, 'component': {'enum': " \
	"['zero_sequence', 'positive_sequence', 'negative_sequence', 'phase_a', 'phase_b', 'phase_c', null]}, " \
	"'scale': " NUMBER_FORM ", 'modifications': {'type': ['array', 'null'], 'items': {'type': 'string'}}")
#define ANALOGS_FORM LIST_OF("'unit': {'enum': ['point_on_wave', 'rms', 'peak', null]}, 'scale': " INTEGER_FORM)
#define DIGITALS_FORM LIST_OF("'normal': " FLAG)
#define PMUS_FORM "'type': 'array', 'minItems': 1, 'maxItems': 4096, 'items': {'type': 'object', " \
	"'required': ['name', 'frequency', 'rocof'], 'additionalProperties': false, 'properties': {" \
	"'name': {'type': 'string', 'minLength': 1, 'maxLength': 255}, 'idcode': " INTEGER_FORM ", " \
	"'guid': {'type': ['string', 'null']}, 'nominal_frequency': {'enum': [50, 60, null]}, " \
	"'latitude': " NUMBER_FORM ", 'longitude': " NUMBER_FORM ", 'elevation': " NUMBER_FORM ", " \
	"'service_class': {'enum': ['measurement', 'protection', null]}, 'window': " INTEGER_FORM ", " \
	"'group_delay': " INTEGER_FORM ", 'frequency': {'type': 'string'}, 'rocof': {'type': 'string'}, " \
	"'stat': {'type': ['string', 'null']}, 'polar': " FLAG ", 'float_phasors': " FLAG ", " \
	"'float_analogs': " FLAG ", 'float_frequency': " FLAG ", 'phasor': " PHASORS_FORM ", 'phasors': " \
	PHASORS_FORM ", 'analog': " ANALOGS_FORM ", 'analogs': " ANALOGS_FORM ", 'digital': " \
	DIGITALS_FORM ", 'digitals': " DIGITALS_FORM "}}"

static const struct config_key c37_out_keys[] = {
	{ "address", CONFIG_STRING, OUT(address),
	  .help = "Host and port to listen at; the port is 4712 without it" },
	{ "udp_address", CONFIG_STRING, OUT(udp_address),
	  .help = "Host and port at which commands are taken by UDP, and answered; needs out.peers" },
	{ "peers", CONFIG_JSON, OUT(peers_cfg), .form = CONFIG_TEXTS,
	  .help = "Addresses or networks of the clients; over TCP all without" },
	{ "destinations", CONFIG_JSON, OUT(destinations), .form = DESTINATIONS_FORM,
	  .help = "Hosts and ports to which data are sent by UDP, unasked" },
	{ "config_interval", CONFIG_REAL, OUT(config_s), "60", .min = 0.1, .max = 86400,
	  .help = "Seconds between configurations to out.destinations" },
	{ "data_port", CONFIG_INT, OUT(data_port), "0", .min = 0, .max = 65535,
	  .help = "Clients that ask over TCP get data by UDP at this port; 0: over their connections" },
	{ "idcode", CONFIG_INT, OUT(idcode), "1", .min = 0, .max = 65535,
	  .help = "IDCODE of the stream; commands to others are not obeyed" },
	{ "testing", CONFIG_BOOL, OUT(testing), "false",
	  .help = "While no client has asked for data, wait instead of dropping samples" },
	{ "time_base", CONFIG_INT, OUT(time_base), "1000000", .min = 1, .max = C37_TIME_BASE_MAX,
	  .help = "Units of FRACSEC in a second" },
	{ "data_rate", CONFIG_REAL, OUT(data_rate), .min = 3.05175e-5, .max = 32767,
	  .help = "Data frames a second; below 1: one in a whole number of seconds" },
	{ "pmus", CONFIG_JSON, OUT(pmus), .form = PMUS_FORM, .help = "The stations and their channels" },
	{ "header", CONFIG_STRING, OUT(header), "busbar", .help = "Text of the header frame" },
	{ "time_quality", CONFIG_INT, OUT(time_quality), "0", .min = 0, .max = 15,
	  .help = "Time quality code of all frames; 0: locked to UTC, 15: no time" },
	{ "cfg3_frame", CONFIG_INT, OUT(part_size), "65535", .min = C37_PART_MIN, .max = C37_FRAME_MAX,
	  .help = "Bytes of a frame of CFG-3, at most; a longer configuration is sent in several" },
	{ "max_clients", CONFIG_INT, OUT(max_clients), "16", .min = 1, .max = 1024,
	  .help = "Clients at a time" },
	{ "queue", CONFIG_INT, OUT(queue_bytes), "262144", .min = 65536, .max = 1 << 30,
	  .help = "Bytes that wait for a slow client" },
	{ "slow", CONFIG_ENUM, OUT(slow), "disconnect", .names = slow_names,
	  .help = "What happens to a client whose queue is full: disconnect it, or skip frames" },
};

/* ---- settings ---- */

static int parse_address(struct config *c, json_t *group, const char *key, int layer,
			 const char *text, char to[C37_ADDRESS_MAX])
{
	char why[SOCKET_WHY_MAX];

	if (!socket_address_complete(text, C37_PORT, to, C37_ADDRESS_MAX)) {
		config_fail(c, group, key, "is too long");
		return -EINVAL;
	}
	if (socket_address_check(layer, to, why)) {
		config_fail(c, group, key, "%s", why);
		return -EINVAL;
	}
	return 0;
}

/* The addresses of a device, of `group`. */
static int parse_device(struct c37_config_in *in, struct config *c, json_t *group)
{
	char data[C37_ADDRESS_MAX];
	bool both = in->transport == C37_BOTH;

	if (!in->address) {
		config_fail(c, group, "address", "is missing: the device that is read, host[:port]");
		return -EINVAL;
	}
	if (parse_address(c, group, "address", LAYER_TCP_CLIENT, in->address, in->full_address))
		return -EINVAL;
	if (!in->data_address != !both) {
		config_fail(c, group, "data_address", both ?
			    "is missing: with transport \"both\" data arrive there" :
			    "is of transport \"both\" only");
		return -EINVAL;
	}
	if (both && parse_address(c, group, "data_address", LAYER_UDP, in->data_address, data))
		return -EINVAL;
	if (both && strcmp(data, in->data_address)) {
		config_fail(c, group, "data_address", "has no port: \"*:4713\"");
		return -EINVAL;
	}
	return 0;
}

static int make_streams(struct c37_node *x, unsigned count)
{
	x->streams = calloc(count, sizeof(*x->streams));
	if (!x->streams)
		return -ENOMEM;
	x->stream_count = count;
	for (unsigned i = 0; i < count; i++) {
		x->streams[i].node = x;
		x->streams[i].number = i;
		x->streams[i].in = x->in;
	}
	return 0;
}

/* The values of the streams, and one that says which of them have come, are the signals. */
static int check_stream_signals(const struct c37_node *x, struct config *c, json_t *group,
				unsigned values)
{
	const struct signal_list *l = x->node->in.signals;

	if (l && l->count == values + 1 && l->signals[values].type == SIGNAL_INTEGER)
		return 0;
	config_fail(c, group, "signals",
		    "with in.streams there have to be %u signals for their values, and an integer one for the streams that have come",
		    values);
	return -EINVAL;
}

static int parse_streams(struct c37_node *x, struct config *c, json_t *group)
{
	size_t count = json_array_size(x->in.streams);
	unsigned values = 0;
	int ret;

	if (count < 2 || count > C37_STREAMS_MAX) {
		config_fail(c, group, "streams", "has to be a list of 2 to %d groups: ( { address = \"a\"; values = 4; }, ... )",
			    C37_STREAMS_MAX);
		return -EINVAL;
	}
	if (x->in.address || x->in.data_address) {
		config_fail(c, group, "streams", "each device has its address there; in has another one");
		return -EINVAL;
	}
	ret = make_streams(x, (unsigned)count);
	for (unsigned i = 0; i < x->stream_count; i++) {
		struct c37_stream *s = &x->streams[i];
		json_t *entry = json_array_get(x->in.streams, i);

		if (!json_is_object(entry)) {
			config_fail(c, group, "streams", "entry %u is no group", i);
			return -EINVAL;
		}
		if (config_unpack(c, entry, stream_keys, ARRAY_SIZE(stream_keys), &s->in, NULL, 0) ||
		    parse_device(&s->in, c, entry))
			return -EINVAL;
		s->first = values;
		s->values = (unsigned)s->in.values;
		values += s->values;
	}
	return ret ?: check_stream_signals(x, c, group, values);
}

static int parse_in(struct c37_node *x, struct config *c, json_t *group)
{
	struct c37_config_in *in = &x->in;
	struct node *n = x->node;

	x->typed = n->in.signals;
	if (in->streams)
		return parse_streams(x, c, group);
	if (parse_device(in, c, group))
		return -EINVAL;
	/* The path makes room by the signals of the node. */
	if (!n->in.signals && in->values != SIGNALS_DEFAULT)
		n->in.signals = signal_list_new((unsigned)in->values, SIGNAL_FLOAT);
	return make_streams(x, 1);
}

/* DATA_RATE is a number of frames or of seconds. */
static int parse_rate(struct c37_node *x, struct config *c, json_t *group)
{
	double rate = x->out.data_rate, whole = rate < 1 && rate > 0 ? 1 / rate : rate;

	if (!(rate > 0)) {
		config_fail(c, group, "data_rate", "is missing: data frames a second");
		return -EINVAL;
	}
	if (fabs(whole - round(whole)) > 1e-3 * whole || round(whole) > INT16_MAX) {
		config_fail(c, group, "data_rate",
			    "%g cannot be written into a frame, which has whole frames per second, or whole seconds per frame",
			    rate);
		return -EINVAL;
	}
	x->source.rate = (int16_t)(rate < 1 ? -lround(whole) : lround(whole));
	x->source.period_ns = rate < 1 ? 1e9 * (double)lround(whole) : 1e9 / (double)lround(whole);
	return 0;
}

static int parse_with_port(struct config *c, json_t *group, const char *key, const char *text)
{
	char full[C37_ADDRESS_MAX];

	if (parse_address(c, group, key, LAYER_UDP, text, full))
		return -EINVAL;
	if (!strcmp(full, text))
		return 0;
	config_fail(c, group, key, "%.80s has no port", text);
	return -EINVAL;
}

static int parse_udp(struct c37_config_out *out, struct config *c, json_t *group)
{
	size_t i;
	json_t *e;

	if (peers_parse(&out->peers, c, group, out->peers_cfg))
		return -EINVAL;
	if (out->udp_address && parse_with_port(c, group, "udp_address", out->udp_address))
		return -EINVAL;
	/* Or anybody could have a stream sent to anybody. */
	if (out->udp_address && peers_are_all(&out->peers)) {
		config_fail(c, group, "peers",
			    "is missing: the addresses whose commands by UDP are obeyed, as these are easily forged");
		return -EINVAL;
	}
	if (out->destinations && (!json_is_array(out->destinations) ||
				  json_array_size(out->destinations) > C37_DESTINATIONS_MAX)) {
		config_fail(c, group, "destinations", "has to be a list of at most %d addresses, host:port",
			    C37_DESTINATIONS_MAX);
		return -EINVAL;
	}
	json_array_foreach(out->destinations, i, e) {
		if (!json_is_string(e)) {
			config_fail(c, group, "destinations", "entry %zu is no text", i);
			return -EINVAL;
		}
		if (parse_with_port(c, group, "destinations", json_string_value(e)))
			return -EINVAL;
	}
	return 0;
}

static int parse_out(struct c37_node *x, struct config *c, json_t *group)
{
	struct c37_config_out *out = &x->out;

	if (!out->address && !out->udp_address && !json_array_size(out->destinations)) {
		config_fail(c, group, "address",
			    "is missing: where to listen, host[:port]; or out.udp_address, or out.destinations");
		return -EINVAL;
	}
	if ((out->address && parse_address(c, group, "address", LAYER_TCP_SERVER, out->address,
					   out->full_address)) ||
	    parse_udp(out, c, group) || parse_rate(x, c, group))
		return -EINVAL;
	x->source.idcode = (uint16_t)out->idcode;
	x->source.time_base = (uint32_t)out->time_base;
	x->source.quality = (uint8_t)out->time_quality;
	x->source.header = out->header;
	x->source.part_size = (size_t)out->part_size;
	if (strlen(out->header) > C37_FRAME_MAX - C37_FRAME_MIN) {
		config_fail(c, group, "header", "is longer than a frame");
		return -EINVAL;
	}
	return c37_source_parse(&x->source, c, group, out->pmus, x->node->uuid);
}

static int c37_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct c37_node *x = n->private_data;
	int ret = 0;

	x->reads = n->in.present && n->in.enabled && node_group_opens(n->in.cfg);
	x->writes = n->out.present && n->out.enabled && node_group_opens(n->out.cfg);
	if (!x->reads && !x->writes) {
		config_fail(c, cfg, NULL,
			    "needs `in = { address = ... }` to read a device, or `out = { address = ...; data_rate = ...; pmus = ... }` to be one");
		return -EINVAL;
	}
	if (x->reads && parse_in(x, c, n->in.cfg))
		ret = -EINVAL;
	if (x->writes && parse_out(x, c, n->out.cfg))
		ret = -EINVAL;
	return ret;
}

static int c37_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct c37_node *x = n->private_data;
	const char *missing;

	if (!x->writes || !n->is_destination ||
	    c37_source_bind(&x->source, n->out.hooked ? n->out.hooked : n->out.signals, &missing))
		return 0;
	config_fail(c, n->out.cfg, "pmus", "no signal '%.80s' is written to the node", missing);
	return -EINVAL;
}

static int c37_init(struct node *n)
{
	struct c37_node *x = n->private_data;

	x->node = n;
	x->inbox.event_fd = -1;
	return 0;
}

static void c37_destroy(struct node *n)
{
	struct c37_node *x = n->private_data;

	c37_source_destroy(&x->source);
	free(x->streams);
	peers_free(&x->out.peers);
}

/* ---- life ---- */

static int c37_stop(struct node *n)
{
	struct c37_node *x = n->private_data;

	for (unsigned i = 0; i < x->stream_count; i++)
		c37_client_stop(&x->streams[i]);
	c37_join_stop(x);
	c37_server_stop(x);
	inbox_note_lost(&x->inbox, &x->faults);
	inbox_destroy(&x->inbox);
	fault_finish(&x->faults);
	node_figure_set(n, C37_CLIENTS, 0);
	node_figure_set(n, C37_UDP_CLIENTS, 0);
	return 0;
}

static int start_clients(struct c37_node *x)
{
	int ret = x->in.streams ? c37_join_start(x) : 0;

	for (unsigned i = 0; i < x->stream_count && !ret; i++)
		ret = c37_client_start(&x->streams[i]);
	return ret;
}

static int c37_start(struct node *n)
{
	struct c37_node *x = n->private_data;
	unsigned values = n->in.signals ? n->in.signals->count : SIGNALS_DEFAULT;
	int ret = inbox_init(&x->inbox, 1, (unsigned)x->in.queuelen, values);

	x->node = n;
	x->faults.node = n;
	x->inbox.faults = &x->faults;
	if (ret)
		log_error("node %s: no queue of in.queuelen %lld samples: %s", n->name,
			  (long long)x->in.queuelen, strerror(-ret));
	if (!ret && x->writes && n->is_destination)
		ret = c37_server_start(x);
	if (!ret && x->reads && n->is_source)
		ret = start_clients(x);
	if (ret)
		c37_stop(n);
	return ret;
}

/* ---- samples ---- */

static int c37_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct c37_node *x = n->private_data;

	if (unlikely(!x->stream_count))
		return -ENODATA;
	return inbox_read(&x->inbox, n, &x->faults, smps, cnt);
}

static int c37_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct c37_node *x = n->private_data;

	return x->server ? c37_server_write(x, smps, cnt) : -EBADF;
}

static bool c37_may_wait(struct node *n)
{
	const struct c37_node *x = n->private_data;

	return x->out.testing;
}

static void c37_interrupt(struct node *n)
{
	struct c37_node *x = n->private_data;

	inbox_interrupt(&x->inbox, true);
	c37_server_interrupt(x);
}

static void c37_print(struct node *n, char *buf, size_t size)
{
	const struct c37_node *x = n->private_data;

	snprintf(buf, size, "%s%.80s%s%s%s%.80s", x->reads ? "in " : "",
		 !x->reads ? "" : x->in.streams ? "several devices" : x->in.full_address, x->reads ? " over " : "",
		 x->reads ? transport_names[x->in.transport] : "",
		 !x->writes ? "" : x->reads ? ", out " : "out ",
		 !x->writes ? "" : x->out.address ? x->out.full_address : "by UDP");
}

static const struct node_figure c37_figures[C37_FIGURES] = {
	[FAULT_MALFORMED] = { "malformed", "Frames that cannot be read", NODE_COUNTER },
	[FAULT_FOREIGN] = { "foreign", "Frames of other streams and hosts", NODE_COUNTER },
	[FAULT_OVERRUN] = { "overrun", "Samples lost because reading was too slow", NODE_COUNTER },
	[FAULT_DROPPED] = { "not_accepted", "Clients that could not be accepted or had no place", NODE_COUNTER },
	[C37_CONNECTIONS] = { "connections", "Connections to the device that were made", NODE_COUNTER },
	[C37_UNREACHABLE] = { "unreachable", "Connections that could not be made", NODE_COUNTER },
	[C37_SILENT] = { "silent", "Times that the device was given up without data", NODE_COUNTER },
	[C37_CONFIGURATIONS] = { "configurations", "Configurations, with the first one", NODE_COUNTER },
	[C37_MISSED] = { "frames_missing", "Data frames missing by their times", NODE_COUNTER },
	[C37_REPEATED] = { "repeated", "Data frames with the time of the one before", NODE_COUNTER },
	[C37_LATE] = { "late", "Data frames that were overtaken", NODE_COUNTER },
	[C37_TIME_STEPS] = { "time_steps", "Times that the clock of the device was set", NODE_COUNTER },
	[C37_LEAP_SECONDS] = { "leap_seconds", "Leap seconds", NODE_COUNTER },
	[C37_EARLY] = { "early", "Data frames that came before a configuration", NODE_COUNTER },
	[C37_INVALID] = { "invalid", "Data frames in which a station has an error", NODE_COUNTER },
	[C37_NOT_IN_SYNC] = { "not_in_sync", "Data frames of stations without UTC", NODE_COUNTER },
	[C37_TIME_QUALITY] = { "time_quality", "Time quality code of the last data frame", NODE_GAUGE },
	[C37_CUT] = { "cut", "Samples without room for all values", NODE_COUNTER },
	[C37_STEPS] = { "steps", "Times of which a sample was made of several streams", NODE_COUNTER },
	[C37_STEPS_INCOMPLETE] = { "steps_incomplete", "Those without the frames of all streams", NODE_COUNTER },
	[C37_FRAMES_ABSENT] = { "frames_absent", "Frames that these lack, of all streams together", NODE_COUNTER },
	[C37_TOO_LATE] = { "too_late", "Data frames that came when the sample of their time had been made", NODE_COUNTER },
	[C37_CLIENTS] = { "clients", "Clients now", NODE_GAUGE },
	[C37_CLIENTS_BEHIND] = { "clients_behind", "Frames that slow clients lost", NODE_COUNTER },
	[C37_CLIENTS_DROPPED] = { "clients_dropped", "Clients disconnected because they were slow", NODE_COUNTER },
	[C37_COMMANDS] = { "commands", "Commands of clients", NODE_COUNTER },
	[C37_FRAMES_SENT] = { "frames_sent", "Data frames to clients, of each", NODE_COUNTER },
	[C37_UDP_CLIENTS] = { "udp_clients", "Clients that get data by UDP because they asked for them", NODE_GAUGE },
	[C37_DATAGRAMS_LOST] = { "datagrams_lost", "Data frames that could not be sent by UDP, of each client", NODE_COUNTER },
	[C37_THINNED] = { "thinned", "Samples beyond the data rate", NODE_COUNTER },
};

const struct node_type node_c37_118 = {
	.name = "c37.118",
	.description = "Synchrophasors by IEEE C37.118.2, as client and server",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_NEEDS_GROUP | NODE_STOP_WAITS,
	.size = sizeof(struct c37_node),
	.in_keys = c37_in_keys,
	.in_key_count = ARRAY_SIZE(c37_in_keys),
	.out_keys = c37_out_keys,
	.out_key_count = ARRAY_SIZE(c37_out_keys),
	.figures = c37_figures,
	.figure_count = ARRAY_SIZE(c37_figures),
	.init = c37_init,
	.destroy = c37_destroy,
	.parse = c37_parse,
	.check_signals = c37_check_signals,
	.start = c37_start,
	.stop = c37_stop,
	.read = c37_read,
	.write = c37_write,
	.may_wait = c37_may_wait,
	.sleep = inbox_node_sleep,
	.interrupt = c37_interrupt,
	.rearm = inbox_node_rearm,
	.poll_fds = inbox_node_poll_fds,
	.print = c37_print,
};
