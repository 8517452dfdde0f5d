/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `opendss`: a distribution network that OpenDSS solves. Each sample that a path writes
 * sets loads, generators and sources, and the network is solved; what its monitors have recorded
 * is the sample that a path reads. As in VILLASnode the group `in` says what goes into OpenDSS and
 * `out` what comes out of it.
 */
#define LOG_ROOM "gateway/opendss"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/format/part/text.h"
#include "gateway/node/opendss/engine.h"
#include "gateway/part/inbox.h"
#include "gateway/plugin/node.h"
#include "util/container_of.h"
#include "util/log.h"

#define FILE_MAX 4095
#define ELEMENTS_MAX 4096

enum { NOT_SOLVED = FAULT_KINDS, FIGURES };

struct element {
	const char *name;
	enum engine_class class;
	unsigned first, count;      /* of its values in `properties` */
};

struct monitor {
	const char *name;
	unsigned channels;          /* from start to stop */
};

struct opendss_node {
	struct inbox inbox; /* first */
	const char *file, *library;
	json_t *in_list, *out_list;
	int64_t queuelen;
	struct element *elements;
	struct monitor *monitors;
	unsigned element_count, monitor_count;
	enum engine_property *properties;
	unsigned value_count;       /* of a sample that is written */

	/* From start to stop */
	bool open;
	double *record;
	unsigned record_count;      /* values of a sample that is read */
	struct fault_counters faults;
};

extern const struct node_type node_opendss;

#define OFFSET(field) offsetof(struct opendss_node, field)

static const struct config_key opendss_keys[] = {
	{ "file_path", CONFIG_STRING, OFFSET(file), .required = true,
	  .help = "The network, a file of the language of OpenDSS" },
	{ "library", CONFIG_STRING, OFFSET(library), "libdss_capi.so",
	  .help = "Library of DSS C-API; a name without a folder is looked for as the system does" },
};

#define IN_FORM \
	"'type': ['array', 'null'], 'maxItems': 4096, 'items': {'type': 'object', 'additionalProperties': false, " \
	"'required': ['name', 'type', 'data'], 'properties': {'name': {'type': 'string', 'minLength': 1}, " \
	"'type': {'enum': ['load', 'generator', 'isource']}, 'data': {'type': 'array', 'minItems': 1, 'items': " \
	"{'enum': ['kV', 'kW', 'kVar', 'Pf', 'Amps', 'AngleDeg', 'Frequency']}}}}"
#define OUT_FORM "'type': ['array', 'null'], 'maxItems': 4096, 'items': {'type': 'string', 'minLength': 1}"

static const struct config_key opendss_in_keys[] = {
	{ "list", CONFIG_JSON, OFFSET(in_list), .form = IN_FORM,
	  .help = "Elements that samples set: ( { name = \"l1\"; type = \"load\"; data = ( \"kW\" ) } )" },
	{ "queuelen", CONFIG_INT, OFFSET(queuelen), "1024", .min = 2, .max = 65536,
	  .help = "Results that may wait for the path that reads" },
};

static const struct config_key opendss_out_keys[] = {
	{ "list", CONFIG_JSON, OFFSET(out_list), .form = OUT_FORM,
	  .help = "Names of the monitors whose records are samples" },
};

/* ---- settings ---- */

static int fail(struct config *c, const json_t *at, const char *key, const char *what)
{
	config_fail(c, at, key, "%s", what);
	return -EINVAL;
}

static int index_of(const char *name, const char *const names[])
{
	for (int i = 0; name && names[i]; i++)
		if (!strcmp(name, names[i]))
			return i;
	return -1;
}

struct entry {
	const char *name;
	int type;
	json_t *data;
};

static const struct config_key entry_keys[] = {
	{ "name", CONFIG_STRING, offsetof(struct entry, name), .required = true,
	  .help = "Name of the element in the file" },
	{ "type", CONFIG_ENUM, offsetof(struct entry, type), .required = true,
	  .names = engine_class_names, .help = "load, generator or isource" },
	{ "data", CONFIG_JSON, offsetof(struct entry, data), .required = true,
	  .form = "'type': 'array'",
	  .help = "What the values are, in their order: kV, kW, kVar, Pf; of an isource Amps, AngleDeg, Frequency" },
};

static int parse_data(struct opendss_node *d, struct element *e, struct config *c, const json_t *at,
		      const json_t *list)
{
	enum engine_property *more;
	size_t i, count = json_array_size(list);
	json_t *v;

	if (!count)
		return fail(c, at, "data", "is a list such as ( \"kW\", \"Pf\" )");
	more = reallocarray(d->properties, d->value_count + count, sizeof(*more));
	if (!more)
		return -ENOMEM;
	d->properties = more;
	e->first = d->value_count;
	e->count = (unsigned)count;
	d->value_count += e->count;
	json_array_foreach(list, i, v) {
		int p = index_of(json_string_value(v), engine_property_names);

		if (p < 0 || !engine_property_is_of((enum engine_property)p, e->class))
			return fail(c, at, "data", e->class == ENGINE_ISOURCE ?
					    "an isource has Amps, AngleDeg and Frequency" :
					    "a load or generator has kV, kW, kVar and Pf");
		d->properties[e->first + i] = (enum engine_property)p;
	}
	return 0;
}

static int parse_elements(struct opendss_node *d, struct config *c, const json_t *at)
{
	size_t i, count = json_array_size(d->in_list);
	int ret = 0;
	json_t *o;

	if (!d->in_list || json_is_null(d->in_list))
		return 0;
	if (!json_is_array(d->in_list) || count > ELEMENTS_MAX)
		return fail(c, at, "list", "is a list of up to 4096 elements, { name = \"l1\"; type = \"load\"; data = ( \"kW\" ) }");
	d->elements = calloc(count + 1, sizeof(*d->elements));
	if (!d->elements)
		return -ENOMEM;
	json_array_foreach(d->in_list, i, o) {
		struct element *e = &d->elements[d->element_count++];
		struct entry v = { 0 };

		if (config_unpack(c, o, entry_keys, ARRAY_SIZE(entry_keys), &v, NULL, 0)) {
			ret = -EINVAL;
			continue;
		}
		e->name = v.name;
		e->class = (enum engine_class)v.type;
		if (!*v.name)
			ret = fail(c, o, "name", "is empty");
		ret = parse_data(d, e, c, o, v.data) ?: ret;
	}
	return ret;
}

static int parse_monitors(struct opendss_node *d, struct config *c, const json_t *at)
{
	size_t i, count = json_array_size(d->out_list);
	json_t *name;

	if (!d->out_list || json_is_null(d->out_list))
		return 0;
	if (!json_is_array(d->out_list) || count > ELEMENTS_MAX)
		return fail(c, at, "list", "is a list of up to 4096 names of monitors");
	d->monitors = calloc(count + 1, sizeof(*d->monitors));
	if (!d->monitors)
		return -ENOMEM;
	json_array_foreach(d->out_list, i, name) {
		if (!json_string_length(name))
			return fail(c, at, "list", "is a list of names of monitors");
		d->monitors[d->monitor_count++].name = json_string_value(name);
	}
	return 0;
}

static int opendss_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct opendss_node *d = n->private_data;
	int ret = parse_elements(d, c, n->in.cfg);

	ret = parse_monitors(d, c, n->out.cfg) ?: ret;
	if (!*d->file || strlen(d->file) > FILE_MAX || strpbrk(d->file, "\"\n"))
		ret = fail(c, cfg, "file_path", "is the name of a file, without quotation marks");
	if (!*d->library)
		ret = fail(c, cfg, "library", "is the name of a library");
	return ret;
}

static int opendss_check(struct node *n, struct config *c, json_t *cfg)
{
	struct opendss_node *d = n->private_data;
	int ret = 0;

	if (n->is_destination && !d->element_count)
		ret = fail(c, cfg, NULL, "a path writes the node, but in.list names no elements");
	if (n->is_source && !d->monitor_count)
		ret = fail(c, cfg, NULL, "a path reads the node, but out.list names no monitors");
	if (n->is_source && !n->is_destination)
		ret = fail(c, cfg, NULL, "a path reads the node, but none writes it: each sample that is written is a step");
	return ret;
}

/* ---- the node ---- */

static void opendss_destroy(struct node *n)
{
	struct opendss_node *d = n->private_data;

	free(d->elements);
	free(d->monitors);
	free(d->properties);
}

/* Adds the element or monitor to the reason. Returns `ret`. */
static int say_which(int ret, char why[ENGINE_WHY], const char *kind, const char *name)
{
	size_t used = strlen(why);

	snprintf(why + used, ENGINE_WHY - used, " (%s '%.60s')", kind, name);
	return ret;
}

/* Are all elements and monitors there? */
static int look_up(struct opendss_node *d, char why[ENGINE_WHY])
{
	unsigned total = 2;

	for (unsigned i = 0; i < d->element_count; i++) {
		const struct element *e = &d->elements[i];
		int ret = engine_select(e->class, e->name, why);

		if (ret)
			return say_which(ret, why, engine_class_names[e->class], e->name);
	}
	for (unsigned i = 0; i < d->monitor_count; i++) {
		int channels = engine_monitor_channels(d->monitors[i].name, why);

		if (channels < 0)
			return say_which(channels, why, "monitor", d->monitors[i].name);
		d->monitors[i].channels = (unsigned)channels;
		total += (unsigned)channels;
	}
	d->record_count = total;
	return 0;
}

static int opendss_stop(struct node *n)
{
	struct opendss_node *d = n->private_data;

	if (d->open)
		engine_close();
	d->open = false;
	free(d->record);
	d->record = NULL;
	inbox_note_lost(&d->inbox, &d->faults);
	inbox_destroy(&d->inbox);
	fault_finish(&d->faults);
	return 0;
}

static int prepare_samples(struct node *n)
{
	struct opendss_node *d = n->private_data;

	if (n->is_source && n->in.signals && n->in.signals->count < d->record_count) {
		log_error("node %s: the monitors have %u values with hour and second, in.signals are %u",
			  n->name, d->record_count, n->in.signals->count);
		return -EINVAL;
	}
	/* Has room for one monitor at a time, whose record begins with hour and second. */
	d->record = calloc(d->record_count + 2, sizeof(*d->record));
	d->inbox.faults = &d->faults;
	return d->record ? inbox_init(&d->inbox, 1, (unsigned)d->queuelen, d->record_count) : -ENOMEM;
}

static int opendss_start(struct node *n)
{
	struct opendss_node *d = n->private_data;
	char why[ENGINE_WHY] = "";
	int ret;

	d->faults.node = n;
	ret = engine_open(n->name, d->library, d->file, why);
	d->open = !ret;
	if (!ret)
		ret = look_up(d, why);
	if (ret) {
		log_error("node %s: %s%s", n->name, why, ret == -ELIBACC ?
				  "; install DSS C-API (libdss_capi.so, which the Python package dss-python-backend has, too) and name it by `library`" : "");
		opendss_stop(n);
		return ret;
	}
	ret = prepare_samples(n);
	if (ret)
		opendss_stop(n);
	return ret;
}

/* Reads one value of a sample. NULL, or what is wrong with it. */
static const char *value_of(const struct sample *s, const struct signal_list *l, unsigned i, double *v)
{
	switch (text_type(l, i)) {
	case SIGNAL_FLOAT:
		*v = s->data[i].f;
		return isfinite(*v) ? NULL : "is not a finite number";
	case SIGNAL_INTEGER:
	case SIGNAL_BOOLEAN:
		*v = (double)s->data[i].i;
		return NULL;
	case SIGNAL_COMPLEX:
		break;
	}
	return "is complex";
}

/* Nothing is changed unless all values can be used. */
static bool check_values(struct node *n, const struct sample *s, const struct signal_list *l)
{
	struct opendss_node *d = n->private_data;
	double v;

	if (s->length < d->value_count) {
		node_refuse(n, NODE_LOSS_FORMAT, 1, "a sample has %u values, in.list has %u", s->length,
			    d->value_count);
		return false;
	}
	for (unsigned i = 0; i < d->value_count; i++) {
		const char *wrong = value_of(s, l, i, &v);

		if (!wrong)
			continue;
		node_refuse(n, NODE_LOSS_FORMAT, 1, "value %u (from 0 on) %s", i, wrong);
		return false;
	}
	return true;
}

static int set_values(struct opendss_node *d, const struct sample *s, const struct signal_list *l,
		      char why[ENGINE_WHY])
{
	int ret = 0;
	double v = 0;

	for (unsigned k = 0; k < d->element_count && !ret; k++) {
		const struct element *e = &d->elements[k];

		ret = engine_select(e->class, e->name, why);
		for (unsigned i = e->first; i < e->first + e->count && !ret; i++) {
			value_of(s, l, i, &v);
			ret = engine_set(e->class, d->properties[i], v, why);
		}
	}
	return ret;
}

/* Hour and second, then the channels of all monitors. */
static int read_monitors(struct opendss_node *d, struct sample *out, char why[ENGINE_WHY])
{
	unsigned at = 0;

	for (unsigned k = 0; k < d->monitor_count; k++) {
		const struct monitor *m = &d->monitors[k];
		int ret = engine_monitor_read(m->name, m->channels, d->record, why);

		if (ret)
			return say_which(ret, why, "monitor", m->name);
		for (unsigned i = k ? 2 : 0; i < m->channels + 2; i++)
			out->data[at++].f = d->record[i];
	}
	out->length = at;
	return 0;
}

/* Queues the result of a step for the path that reads; without room it is lost and counted. */
static int publish(struct node *n, const struct sample *s, char why[ENGINE_WHY])
{
	struct opendss_node *d = n->private_data;
	struct sample *out = sample_alloc(&d->inbox.pool);
	int ret;

	if (!out) {
		n->sequence++;
		atomic_fetch_add_explicit(&d->inbox.lost, 1, memory_order_relaxed);
		return 0;
	}
	ret = read_monitors(d, out, why);
	if (ret) {
		sample_put(out);
		return ret;
	}
	out->signals = n->in.signals;
	out->origin = s->origin;
	out->sequence = n->sequence++;
	out->flags = SAMPLE_HAS_DATA | SAMPLE_HAS_SEQUENCE | (s->flags & SAMPLE_HAS_ORIGIN);
	inbox_push(&d->inbox, 0, out);
	inbox_wake(&d->inbox);
	return 0;
}

static bool step(struct node *n, const struct sample *s)
{
	struct opendss_node *d = n->private_data;
	const struct signal_list *l = s->signals ? s->signals : n->out.signals;
	char why[ENGINE_WHY] = "";
	int ret;

	if (!check_values(n, s, l))
		return false;
	ret = set_values(d, s, l, why) ?: engine_solve(why);
	if (!ret && n->is_source)
		ret = publish(n, s, why);
	engine_monitors_reset();
	if (!ret)
		return true;
	if (ret == -EDOM)
		node_figure_add(n, NOT_SOLVED, 1);
	node_refuse(n, NODE_LOSS_REFUSED, 1, "%s", why);
	return false;
}

static int opendss_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	int done = 0;

	(void)release;
	for (unsigned i = 0; i < cnt; i++)
		done += step(n, smps[i]);
	return done;
}

/* A write waits for the solution. */
static bool opendss_may_wait(struct node *n)
{
	return true;
}

static int opendss_init(struct node *n)
{
	struct opendss_node *d = n->private_data;

	d->inbox.event_fd = -1;
	return 0;
}

static void opendss_print(struct node *n, char *buf, size_t size)
{
	const struct opendss_node *d = n->private_data;

	snprintf(buf, size, "network %.150s, %u values of %u elements in, %u monitors out", d->file,
		 d->value_count, d->element_count, d->monitor_count);
}

static const struct node_figure opendss_figures[FIGURES] = {
	[FAULT_OVERRUN] = { "overruns", "Results that found no room, because reading was too slow",
			    NODE_COUNTER },
	[NOT_SOLVED] = { "not_converged", "Steps whose solution does not converge", NODE_COUNTER },
};

const struct node_type node_opendss = {
	.name = "opendss",
	.description = "A network that OpenDSS solves (needs libdss_capi.so when it starts)",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS,
	.size = sizeof(struct opendss_node),
	.keys = opendss_keys,
	.key_count = ARRAY_SIZE(opendss_keys),
	.in_keys = opendss_in_keys,
	.in_key_count = ARRAY_SIZE(opendss_in_keys),
	.out_keys = opendss_out_keys,
	.out_key_count = ARRAY_SIZE(opendss_out_keys),
	.figures = opendss_figures,
	.figure_count = FIGURES,
	.init = opendss_init,
	.destroy = opendss_destroy,
	.parse = opendss_parse,
	.check = opendss_check,
	.start = opendss_start,
	.stop = opendss_stop,
	.read = inbox_node_read,
	.sleep = inbox_node_sleep,
	.write = opendss_write,
	.may_wait = opendss_may_wait,
	.interrupt = inbox_node_interrupt,
	.rearm = inbox_node_rearm,
	.poll_fds = inbox_node_poll_fds,
	.print = opendss_print,
};
