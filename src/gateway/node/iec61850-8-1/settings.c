/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of a node of type `iec61850-8-1`. */
#define LOG_ROOM "gateway/iec61850-8-1"
#include "gateway/node/iec61850-8-1/goose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/signals.h"
#include "util/clock.h"

#define NODE(field) offsetof(struct goose_node, field)

/* Forms for the schema; the functions below check the same. */
#define TEXT_OR_NULL "{'type': ['string', 'null'], 'minLength': 1, 'maxLength': 129}"
#define NUMBER(max) "{'type': ['integer', 'string'], 'minimum': 0, 'maximum': " max "}"
#define NUMBER_OR_NULL(max) "{'type': ['integer', 'string', 'null'], 'minimum': 0, 'maximum': " max "}"
#define ONE_OF(keys) "'anyOf': [{'required': ['scl']}, {'required': [" keys "]}], "
#define SUBSCRIBER \
	"{'type': 'object', " ONE_OF("'go_cb_ref'") "'additionalProperties': false, 'properties': {" \
	"'scl': " SCL_READ_FORM ", 'go_cb_ref': " TEXT_OR_NULL ", 'dst_address': " TEXT_OR_NULL ", 'app_id': " \
	NUMBER_OR_NULL("65535") ", 'conf_rev': " NUMBER_OR_NULL("4294967295") ", " \
	"'trigger': {'enum': ['always', 'change', null]}}}"
#define ENTRY \
	"{'type': 'object', 'required': ['mms_type'], 'additionalProperties': false, 'properties': {" \
	"'mms_type': {'type': 'string'}, 'signal': {'type': ['string', 'null']}, " \
	"'value': {'type': ['boolean', 'number', 'string', 'null']}, " \
	"'members': {'type': ['array', 'null'], 'minItems': 1, 'items': {'type': 'object'}}, " \
	"'mms_bitstring_size': " NUMBER_OR_NULL("64") "}}"
#define SECONDS "{'type': ['number', 'string', 'null'], 'minimum': 0.0001, 'maximum': 3600}"
#define VLAN_FORM \
	"{'type': ['object', 'null'], 'additionalProperties': false, 'properties': {" \
	"'enabled': {'type': ['boolean', 'string', 'null']}, 'id': " NUMBER_OR_NULL("4094") ", " \
	"'priority': " NUMBER_OR_NULL("7") "}}"
#define RETRANSMISSION_FORM \
	"{'type': ['object', 'null'], 'additionalProperties': false, 'properties': {" \
	"'min': " SECONDS ", 'max': " SECONDS ", " \
	"'factor': {'type': ['number', 'string', 'null'], 'minimum': 1, 'maximum': 1000}}}"
#define PUBLISHER \
	"{'type': 'object', 'additionalProperties': false, " ONE_OF("'go_cb_ref', 'data_set_ref', " \
	"'dst_address', 'app_id', 'conf_rev', 'time_allowed_to_live', 'data'") "'properties': {" \
	"'scl': " SCL_WRITE_FORM ", 'vlan': " VLAN_FORM ", 'retransmission': " RETRANSMISSION_FORM ", " \
	"'go_id': " TEXT_OR_NULL ", 'go_cb_ref': " TEXT_OR_NULL ", 'data_set_ref': " TEXT_OR_NULL ", " \
	"'dst_address': " TEXT_OR_NULL ", 'app_id': " NUMBER_OR_NULL("65535") ", " \
	"'burst': " NUMBER_OR_NULL("100") ", 'conf_rev': " NUMBER_OR_NULL("4294967295") ", " \
	"'time_allowed_to_live': " NUMBER_OR_NULL("4294967295") ", " \
	"'data': {'type': ['array', 'null'], 'minItems': 1, 'items': " ENTRY "}}}"
#define REFUSED "'type': 'null'"

static const char *const trigger_names[] = {
	[GOOSE_ALWAYS] = "always",
	[GOOSE_ON_CHANGE] = "change",
	NULL,
};

const struct config_key goose_keys[GOOSE_KEYS] = {
	{ "keys", CONFIG_JSON, NODE(session_keys), .form = REFUSED,
	  .help = "Refused: of signed or encrypted messages" },
};

const struct config_key goose_in_keys[GOOSE_IN_KEYS] = {
	{ "interface", CONFIG_STRING, NODE(in.interface), "lo",
	  .help = "Name of the network interface" },
	{ "subscribers", CONFIG_JSON, NODE(in.subscribers),
	  .form = "'type': 'object', 'minProperties': 1, 'additionalProperties': " SUBSCRIBER,
	  .help = "The control blocks that are read, by names for the signals" },
	{ "with_timestamp", CONFIG_BOOL, NODE(in.with_timestamp), "true",
	  .help = "The time of the change, t, is the origin of a sample" },
	{ "simulation", CONFIG_BOOL, NODE(in.simulation), "false",
	  .help = "Use simulated messages, and while they come only these" },
	ROUTING_KEYS_IN(NODE(in.routing)),
};

#define VLAN(field) offsetof(struct goose_vlan, field)
#define RETRANSMISSION(field) offsetof(struct goose_retransmission, field)

const struct config_key goose_vlan_keys[GOOSE_VLAN_KEYS] = {
	{ "enabled", CONFIG_BOOL, VLAN(enabled), "true", .help = "Frames have a tag" },
	{ "id", CONFIG_INT, VLAN(id), "0", .min = 0, .max = 4094,
	  .help = "VLAN; 0: none, for the priority alone" },
	{ "priority", CONFIG_INT, VLAN(priority), "4", .min = 0, .max = 7,
	  .help = "7 is the highest" },
};

const struct config_key goose_retransmission_keys[GOOSE_RETRANSMISSION_KEYS] = {
	{ "min", CONFIG_REAL, RETRANSMISSION(min_s), "0.002", .min = 0.0001, .max = 3600,
	  .help = "Seconds from a change to its first repetition" },
	{ "max", CONFIG_REAL, RETRANSMISSION(max_s), .min = 0.001, .max = 3600,
	  .help = "The longest interval, by default resend_interval" },
	{ "factor", CONFIG_REAL, RETRANSMISSION(factor), "2", .min = 1, .max = 1000,
	  .help = "Of an interval to the next one" },
};

const struct config_key goose_out_keys[GOOSE_OUT_KEYS] = {
	{ "interface", CONFIG_STRING, NODE(out.interface), "lo",
	  .help = "Name of the network interface" },
	{ "publishers", CONFIG_JSON, NODE(out.publishers),
	  .form = "'type': 'array', 'minItems': 1, 'items': " PUBLISHER,
	  .help = "The control blocks that are written" },
	{ "resend_interval", CONFIG_REAL, NODE(out.resend_interval_s), "1", .min = 0.001,
	  .max = 3600,
	  .help = "Seconds between messages while nothing changes" },
	{ "simulation", CONFIG_BOOL, NODE(out.simulation), "false",
	  .help = "Mark messages as simulated" },
	{ "vlan", CONFIG_JSON, NODE(out.vlan_cfg), .help = "Tag of IEEE 802.1Q; by default none",
	  .group = goose_vlan_keys, .group_count = GOOSE_VLAN_KEYS },
	{ "retransmission", CONFIG_JSON, NODE(out.retransmission_cfg),
	  .help = "How the intervals grow after a change",
	  .group = goose_retransmission_keys, .group_count = GOOSE_RETRANSMISSION_KEYS },
	ROUTING_KEYS_OUT(NODE(out.routing)),
	{ "key_id", CONFIG_JSON, NODE(key_id), .form = REFUSED,
	  .help = "Refused: of signed or encrypted messages" },
};

#define SOURCE(field) offsetof(struct goose_source, field)

static const struct config_key source_keys[] = {
	{ "scl", CONFIG_JSON, SOURCE(scl_cfg), .form = "'type': ['object', 'null']",
	  .help = "The control block in an engineering file" },
	{ "go_cb_ref", CONFIG_STRING, SOURCE(reference),
	  .help = "Reference of the control block" },
	{ "dst_address", CONFIG_STRING, SOURCE(dst_text),
	  .help = "Use only frames to this address" },
	{ "app_id", CONFIG_INT, SOURCE(app_id), "0", .min = 0, .max = 65535,
	  .help = "Use only messages with this APPID; 0: any" },
	{ "conf_rev", CONFIG_INT, SOURCE(revision), .min = 0, .max = 4294967295.0,
	  .help = "Use only messages of this revision of the configuration" },
	{ "trigger", CONFIG_ENUM, SOURCE(trigger), "always", .names = trigger_names,
	  .help = "A sample for each message, or for each change only" },
};

#define SINK(field) offsetof(struct goose_sink, field)

static const struct config_key sink_keys[] = {
	{ "scl", CONFIG_JSON, SINK(scl_cfg), .form = "'type': ['object', 'null']",
	  .help = "The control block in an engineering file" },
	{ "go_id", CONFIG_STRING, SINK(id), .help = "goID; by default none" },
	{ "go_cb_ref", CONFIG_STRING, SINK(reference), .help = "Reference of the control block" },
	{ "data_set_ref", CONFIG_STRING, SINK(dataset), .help = "Reference of the data set" },
	{ "dst_address", CONFIG_STRING, SINK(dst_text), .help = "Destination of frames" },
	{ "app_id", CONFIG_INT, SINK(app_id), .min = 0, .max = 65535, .help = "APPID of messages" },
	{ "conf_rev", CONFIG_INT, SINK(revision), .min = 0, .max = 4294967295.0,
	  .help = "Revision of the configuration" },
	{ "time_allowed_to_live", CONFIG_INT, SINK(allowed_live_ms), .min = 1, .max = 4294967295.0,
	  .help = "Milliseconds for which a message is valid" },
	{ "burst", CONFIG_INT, SINK(burst), "1", .min = 1, .max = 100,
	  .help = "Messages that are sent at once after a change" },
	{ "vlan", CONFIG_JSON, SINK(vlan_cfg), .form = "'type': ['object', 'null']",
	  .help = "Tag of frames, if it is another one than out.vlan" },
	{ "retransmission", CONFIG_JSON, SINK(retransmission_cfg),
	  .form = "'type': ['object', 'null']",
	  .help = "How the intervals grow, if other than out.retransmission says" },
	{ "data", CONFIG_JSON, SINK(data_cfg), .form = "'type': ['array', 'null']",
	  .help = "The values of the data set" },
};

/* References are limited in length by the standard. */
static int check_text(struct config *c, const json_t *at, const char *key, const char *text)
{
	if (!text || (*text && strlen(text) <= GOOSE_REFERENCE_MAX))
		return 0;
	config_fail(c, at, key, "has 1 to %d bytes", GOOSE_REFERENCE_MAX);
	return -EINVAL;
}

static int parse_address(struct config *c, const json_t *at, const char *text,
			 uint8_t mac[ETHERNET_MAC])
{
	if (!text || ethernet_parse(text, mac))
		return 0;
	config_fail(c, at, "dst_address",
		    "'%.40s' is no address of Ethernet such as 01:0c:cd:01:00:00", text);
	return -EINVAL;
}

/* ---- reading ---- */

/* What neither the configuration says nor a file that it names. */
static int fail_without(struct config *c, const json_t *at, const char *key)
{
	config_fail(c, at, key, "is required, here or in the file that `scl` names");
	return -EINVAL;
}

static int parse_source(struct goose_node *g, struct goose_source *s, struct config *c,
			const json_t *at, const char *name)
{
	if (!json_is_object(at)) {
		config_fail(c, at, NULL, "is a group such as { go_cb_ref = \"LD0/LLN0$GO$gcb\"; }");
		return -EINVAL;
	}
	s->name = name;
	if (config_unpack(c, at, source_keys, ARRAY_SIZE(source_keys), s, NULL, 0) ||
	    goose_source_from_scl(g, s, c, at))
		return -EINVAL;
	s->has_revision |= goose_is_given(at, "conf_rev");
	if (!s->reference)
		return fail_without(c, at, "go_cb_ref");
	if (g->in.routing.enabled && s->dst_text) {
		config_fail(c, at, "dst_address",
			    "is of frames of Ethernet, and in.routed reads datagrams of UDP; in.multicast_groups says which groups");
		return -EINVAL;
	}
	return check_text(c, at, "go_cb_ref", s->reference) ?:
	       parse_address(c, at, s->dst_text, s->dst);
}

static int parse_sources(struct goose_node *g, struct config *c)
{
	json_t *value;
	const char *name;
	int ret = 0;

	if (!g->in.subscribers || json_is_null(g->in.subscribers))
		return 0;
	if (!json_is_object(g->in.subscribers) || !json_object_size(g->in.subscribers)) {
		config_fail(c, g->node->in.cfg, "subscribers",
			    "is a group of control blocks, { NAME = { go_cb_ref = ... } }");
		return -EINVAL;
	}
	g->in.sources = calloc(json_object_size(g->in.subscribers), sizeof(*g->in.sources));
	if (!g->in.sources)
		return -ENOMEM;
	json_object_foreach(g->in.subscribers, name, value)
		ret = parse_source(g, &g->in.sources[g->in.source_count++], c, value, name) ?: ret;
	return ret;
}

/* ---- writing ---- */

static int check_needed(const struct goose_node *g, const struct goose_sink *s, struct config *c,
			const json_t *at)
{
	bool from_file = s->scl.control;
	const struct {
		const char *key;
		bool there;
	} needed[] = {
		{ "go_cb_ref", s->reference },
		{ "data_set_ref", s->dataset },
		{ "dst_address", s->dst_text ||
		 (g->out.routing.enabled && g->out.routing.remote_address) },
		{ "app_id", goose_is_given(at, "app_id") ||
		 (from_file && s->scl.control->has_appid) },
		{ "conf_rev", goose_is_given(at, "conf_rev") ||
		 (from_file && s->scl.control->has_revision) },
		{ "time_allowed_to_live", goose_is_given(at, "time_allowed_to_live") || from_file },
		{ "data", goose_is_given(at, "data") || from_file },
	};
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!needed[i].there)
			ret = fail_without(c, at, needed[i].key);
	return ret;
}

/* Of one control block: its own groups come before the file, and that before those of `out`. */
static int parse_sending(struct goose_node *g, struct goose_sink *s, struct config *c,
			 const json_t *at)
{
	struct goose_retransmission own = { 0 };
	struct goose_retransmission *r = &s->retransmission;

	s->vlan = g->out.vlan;
	*r = g->out.retransmission;
	goose_sending_from_scl(s);
	if (config_unpack(c, s->vlan_cfg, goose_vlan_keys,
			  goose_is_given(at, "vlan") ? GOOSE_VLAN_KEYS : 0, &s->vlan, NULL, 0) ||
	    config_unpack(c, s->retransmission_cfg, goose_retransmission_keys,
			  GOOSE_RETRANSMISSION_KEYS, &own, NULL, 0))
		return -EINVAL;
	if (goose_is_given(s->retransmission_cfg, "min"))
		r->min_s = own.min_s;
	if (goose_is_given(s->retransmission_cfg, "max"))
		r->max_s = own.max_s;
	if (goose_is_given(s->retransmission_cfg, "factor"))
		r->factor = own.factor;
	if (r->min_s > r->max_s) {
		config_fail(c, at, "retransmission",
			    "begins with %g s, more than the longest interval, %g s",
			    r->min_s, r->max_s);
		return -EINVAL;
	}
	/* One message may be lost. */
	if (!s->allowed_live_ms)
		s->allowed_live_ms = MAX((int64_t)(r->max_s * 2e3), INT64_C(1));
	return 0;
}

/* Of routed messages. */
static int parse_destination(struct goose_node *g, struct goose_sink *s, struct config *c,
			     const json_t *at)
{
	const struct routing *r = &g->out.routing;

	if (goose_is_given(at, "vlan")) {
		config_fail(c, at, "vlan",
			    "is of frames of Ethernet, and `routed` messages are sent over UDP");
		return -EINVAL;
	}
	return s->dst_text ? routing_parse_to(r, c, at, "dst_address", s->dst_text, &s->to) :
			     routing_parse_to(r, c, g->node->out.cfg, "remote_address",
					      r->remote_address, &s->to);
}

static int parse_sink(struct goose_node *g, struct goose_sink *s, struct config *c,
		      const json_t *at)
{
	if (!json_is_object(at)) {
		config_fail(c, at, NULL, "is a group: a control block");
		return -EINVAL;
	}
	if (config_unpack(c, at, sink_keys, ARRAY_SIZE(sink_keys), s, NULL, 0) ||
	    goose_sink_from_scl(g, s, c, at) || check_needed(g, s, c, at) ||
	    (g->out.routing.enabled ? parse_destination(g, s, c, at) :
				      parse_address(c, at, s->dst_text, s->dst)) ||
	    check_text(c, at, "go_id", s->id) ||
	    check_text(c, at, "go_cb_ref", s->reference) ||
	    check_text(c, at, "data_set_ref", s->dataset) || parse_sending(g, s, c, at))
		return -EINVAL;
	if (goose_is_given(at, "data") ? goose_data_parse(s, c, at) : goose_data_from_scl(s, c, at))
		return -EINVAL;
	if ((double)s->allowed_live_ms <= s->retransmission.max_s * 1e3)
		config_warn(c, at, "time_allowed_to_live",
			    "%jd ms end before the next message comes, %g ms after the last one",
			    (intmax_t)s->allowed_live_ms, s->retransmission.max_s * 1e3);
	return 0;
}

static int parse_sinks(struct goose_node *g, struct config *c)
{
	json_t *value;
	size_t i;
	int ret = 0;

	if (!g->out.publishers || json_is_null(g->out.publishers))
		return 0;
	if (!json_is_array(g->out.publishers) || !json_array_size(g->out.publishers)) {
		config_fail(c, g->node->out.cfg, "publishers",
			    "is a list of control blocks, ( { go_cb_ref = ...; } )");
		return -EINVAL;
	}
	g->out.sinks = calloc(json_array_size(g->out.publishers), sizeof(*g->out.sinks));
	if (!g->out.sinks)
		return -ENOMEM;
	json_array_foreach(g->out.publishers, i, value)
		ret = parse_sink(g, &g->out.sinks[g->out.sink_count++], c, value) ?: ret;
	return ret;
}

static int parse_retransmission(struct goose_node *g, struct config *c)
{
	struct goose_retransmission *r = &g->out.retransmission;
	const json_t *at = g->out.retransmission_cfg;

	if (config_unpack(c, at, goose_retransmission_keys, GOOSE_RETRANSMISSION_KEYS, r, NULL, 0))
		return -EINVAL;
	if (!goose_is_given(at, "max")) {
		r->max_s = g->out.resend_interval_s;
	} else if (goose_is_given(g->node->out.cfg, "resend_interval") &&
		   r->max_s != g->out.resend_interval_s) {
		config_fail(c, at, "max",
			    "says nothing with another out.resend_interval, which is the same");
		return -EINVAL;
	}
	if (!goose_is_given(at, "min"))
		r->min_s = MIN(r->min_s, r->max_s);
	if (r->min_s <= r->max_s)
		return 0;
	config_fail(c, at, "min", "%g s are more than the longest interval, %g s", r->min_s,
		    r->max_s);
	return -EINVAL;
}

static int refuse_security(struct config *c, const json_t *at, const char *key)
{
	if (!goose_is_given(at, key))
		return 0;
	config_fail(c, at, key,
		    "is of signed or encrypted messages of R-GOOSE, which are not supported; without it they have neither");
	return -EINVAL;
}

int goose_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct goose_node *g = n->private_data;
	int ret = refuse_security(c, cfg, "keys");

	ret = refuse_security(c, n->out.cfg, "key_id") ?: ret;
	ret = routing_parse(&g->in.routing, c, n->in.cfg, false) ?: ret;
	ret = routing_parse(&g->out.routing, c, n->out.cfg, true) ?: ret;
	if (ret)
		return ret;
	ret = parse_sources(g, c) ?: ret;
	ret = ret ?: goose_signals_parse(g, c);
	ret = parse_retransmission(g, c) ?: ret;
	ret = config_unpack(c, g->out.vlan_cfg, goose_vlan_keys, GOOSE_VLAN_KEYS, &g->out.vlan,
			    NULL, 0) ?: ret;
	g->out.vlan.enabled &= json_is_object(g->out.vlan_cfg);
	return parse_sinks(g, c) ?: ret;
}

int goose_check(struct node *n, struct config *c, json_t *cfg)
{
	struct goose_node *g = n->private_data;

	if (!goose_can_read(n) && !goose_can_write(n)) {
		config_fail(c, cfg, NULL,
			    "needs `in = { subscribers = ... }` to receive, or `out = { publishers = ... }` to send");
		return -EINVAL;
	}
	if (goose_can_read(n) && !g->in.sources) {
		config_fail(c, n->in.cfg, "subscribers",
			    "are required: the control blocks to read");
		return -EINVAL;
	}
	if (goose_can_read(n) && !g->in.mappings) {
		config_fail(c, n->in.cfg, "signals",
			    "are required: messages do not say what they hold");
		return -EINVAL;
	}
	if (goose_can_write(n) && !g->out.sinks) {
		config_fail(c, n->out.cfg, "publishers",
			    "are required: the control blocks to write");
		return -EINVAL;
	}
	return 0;
}

static int find_signal(const struct signal_list *l, const char *name)
{
	for (unsigned i = 0; l && i < l->count; i++)
		if (!strcmp(l->signals[i].name, name))
			return (int)i;
	return -1;
}

/* By the names of out.signals, or of those that the path writes. */
static int resolve(struct node *n, struct config *c, struct goose_sink *s, unsigned which)
{
	const struct signal_list *names = n->out.signals ? n->out.signals : n->out.hooked;
	const struct signal_list *types = n->out.hooked ? n->out.hooked : names;
	struct goose_entry *d = &s->data[which];
	const json_t *at = d->cfg;
	bool from_file = s->scl.control && !goose_is_given(at, "mms_type");
	int i = find_signal(names, d->signal);

	/* No path writes the node, so the names are not known. */
	if (!names && !n->is_destination)
		return 0;
	if (i < 0 && d->optional) {
		d->signal = NULL;
		d->stamp = d->type->tag == GOOSE_UTC_TIME;
		return 0;
	}
	if (i < 0) {
		config_fail(c, at, from_file ? "scl" : "signal",
			    "no signal '%.100s' stands in out.signals, nor do paths write one%s",
			    d->signal, from_file ? "; scl.signals may give the names of others" :
			    "");
		return -EINVAL;
	}
	d->index = (unsigned)i;
	d->from = (d->index < types->count ? types : names)->signals[i].type;
	if (d->from != SIGNAL_COMPLEX)
		return 0;
	config_fail(c, at, "signal", "'%.60s' is complex, which no type of GOOSE can hold",
		    d->signal);
	return -EINVAL;
}

int goose_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct goose_node *g = n->private_data;
	int ret = 0;

	if (!goose_can_write(n))
		return 0;
	for (unsigned i = 0; i < g->out.sink_count; i++)
		for (unsigned k = 0; k < g->out.sinks[i].total; k++)
			if (g->out.sinks[i].data[k].signal)
				ret = resolve(n, c, &g->out.sinks[i], k) ?: ret;
	return ret;
}

void goose_settings_free(struct goose_node *g)
{
	for (unsigned i = 0; i < g->out.sink_count; i++) {
		free(g->out.sinks[i].data);
		free(g->out.sinks[i].values);
		free(g->out.sinks[i].next);
	}
	free(g->out.sinks);
	scl_files_free(&g->files);
	routing_free(&g->in.routing);
	free(g->in.sources);
	free(g->in.mappings);
}
