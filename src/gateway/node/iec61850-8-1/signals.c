/* SPDX-License-Identifier: BSD-2-Clause */
/* Which value of which message a signal of a node of type `iec61850-8-1` is. */
#define LOG_ROOM "gateway/iec61850-8-1"
#include "gateway/node/iec61850-8-1/goose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/signals.h"

struct signal_entry {
	const char *subscriber, *mms_type, *member, *attribute;
	int64_t index;
};

#define SIGNAL(field) offsetof(struct signal_entry, field)

const struct config_key goose_signal_keys[GOOSE_SIGNAL_KEYS] = {
	{ "subscriber", CONFIG_STRING, SIGNAL(subscriber),
	  .help = "Which of in.subscribers brings it; required in `in`" },
	{ "index", CONFIG_INT, SIGNAL(index), "0", .min = 0, .max = 1023,
	  .help = "Its place in the data set" },
	{ "member", CONFIG_STRING, SIGNAL(member),
	  .help = "Its place in the structure or array at `index`, such as \"0\" or, in one of its members, \"2.1\"" },
	{ "mms_type", CONFIG_STRING, SIGNAL(mms_type),
	  .help = "Its type in messages: " MMS_NAMES "; required in `in` without an engineering file" },
	{ "attribute", CONFIG_STRING, SIGNAL(attribute),
	  .help = "Its name in the engineering file of the subscriber, in place of index, member and mms_type; by default the name of the signal" },
};

static struct goose_source *find_source(const struct goose_node *g, const char *name)
{
	for (unsigned i = 0; i < g->in.source_count; i++)
		if (!strcmp(g->in.sources[i].name, name))
			return &g->in.sources[i];
	return NULL;
}

/* "2.0.1" */
static int parse_member(struct goose_mapping *m, struct config *c, const json_t *at,
			const char *text)
{
	char *end = NULL;

	for (const char *from = text; from && *from; from = *end ? end + 1 : end) {
		unsigned long n = strtoul(from, &end, 10);

		if (*from < '0' || *from > '9' || (*end && *end != '.') || (*end && !end[1]) ||
		    n >= GOOSE_ENTRIES_MAX || m->depth == GOOSE_GROUPS_MAX) {
			config_fail(c, at, "member",
				    "'%.40s' is no list of up to %d places with dots between, such as \"2.1\"",
				    text, GOOSE_GROUPS_MAX);
			return -EINVAL;
		}
		m->member[m->depth++] = (unsigned)n;
	}
	return 0;
}

/* ---- from an engineering file ---- */

struct search {
	const char *name;                /* NULL: by its place */
	struct goose_mapping *mapping;
	const struct scl_data *found;
};

static void set_place(struct goose_mapping *m, const unsigned place[], unsigned depth)
{
	m->index = place[0];
	m->depth = depth - 1;
	memcpy(m->member, place + 1, m->depth * sizeof(*place));
}

static int find_by_name(void *arg, const struct scl_data *d, const unsigned place[], unsigned depth)
{
	struct search *s = arg;

	if (strcmp(d->name, s->name))
		return 0;
	set_place(s->mapping, place, depth);
	s->found = d;
	return 1;
}

static int find_by_place(void *arg, const struct scl_data *d, const unsigned place[],
			 unsigned depth)
{
	struct search *s = arg;
	const struct goose_mapping *m = s->mapping;

	if (place[0] != m->index || depth - 1 != m->depth ||
	    memcmp(place + 1, m->member, m->depth * sizeof(*place)))
		return 0;
	s->found = d;
	return 1;
}

/* By the name in the file: `attribute`, or the signal's own. */
static int take_attribute(struct goose_source *s, struct config *c, const json_t *at,
			  const struct signal_entry *e, const char *name, struct goose_mapping *m)
{
	struct search search = { .name = e->attribute ? e->attribute : name, .mapping = m };

	if (!s->scl.control || e->mms_type || e->member || goose_is_given(at, "index")) {
		config_fail(c, at, e->attribute ? "attribute" : NULL,
			    "a name in the engineering file stands in place of `index`, `member` and `mms_type`, and the subscriber needs `scl`");
		return -EINVAL;
	}
	scl_each_value(s->scl.control, find_by_name, &search);
	if (!search.found || scl_is_text(search.found)) {
		config_fail(c, at, e->attribute ? "attribute" : NULL,
			    "the data set of %s in %s has no value '%.150s'%s",
			    s->scl.control->path, scl_name(s->scl.scl), search.name,
			    search.found ? " that a signal can hold" : "");
		return -EINVAL;
	}
	m->type = mms_type_find(search.found->basic->mms_type);
	return 0;
}

/* By its place in the data set. */
static int take_place(struct goose_source *s, struct config *c, const json_t *at,
		      const struct signal_entry *e, struct goose_mapping *m)
{
	struct search search = { .mapping = m };

	m->type = goose_type_parse(c, at, e->mms_type, "");
	if (!m->type || parse_member(m, c, at, e->member))
		return -EINVAL;
	m->index = (unsigned)e->index;
	if (!s->scl.control)
		return 0;
	scl_each_value(s->scl.control, find_by_place, &search);
	if (!search.found)
		scl_say_overruled(c, at, NULL, &s->scl, s->scl.control->line,
				  "a data set without a value at this place");
	else if (strcmp(search.found->basic->mms_type, e->mms_type))
		scl_say_overruled(c, at, "mms_type", &s->scl, search.found->line,
				  "'%.100s', of type %s,",
				  search.found->name, search.found->basic->mms_type);
	return 0;
}

static int parse_mapping(struct goose_node *g, struct config *c, const json_t *at,
			 struct signal *signal, struct goose_mapping *m)
{
	struct signal_entry e = { 0 };
	struct goose_source *s;

	if (config_unpack_part(c, at, goose_signal_keys, GOOSE_SIGNAL_KEYS, &e))
		return -EINVAL;
	s = e.subscriber ? find_source(g, e.subscriber) : NULL;
	if (e.subscriber && !s) {
		config_fail(c, at, "subscriber", "in.subscribers has no '%.60s'", e.subscriber);
		return -EINVAL;
	}
	if (!s || (!e.mms_type && !s->scl.control)) {
		config_fail(c, at, NULL,
			    "`%s` is required: which value of which message the signal is",
			    s ? "mms_type" : "subscriber");
		return -EINVAL;
	}
	m->source = (unsigned)(s - g->in.sources);
	if (e.attribute || !e.mms_type ? take_attribute(s, c, at, &e, signal->name, m) :
					 take_place(s, c, at, &e, m))
		return -EINVAL;
	s->needed = MAX(s->needed, m->index + 1);
	if (!goose_is_given(at, "type"))
		signal->type = m->type->signal;
	if (signal->type == m->type->signal)
		return 0;
	config_fail(c, at, "type",
		    "a signal of type %s cannot hold values of type %s, but one of type %s can",
		    signal_type_name(signal->type), m->type->name,
		    signal_type_name(m->type->signal));
	return -EINVAL;
}

/* ---- all values of engineering files ---- */

struct making {
	struct goose_node *g;
	unsigned source, count;
	struct signal_list *list; /* NULL: they are only counted */
	bool no_memory;
};

static int add_value(void *arg, const struct scl_data *d, const unsigned place[], unsigned depth)
{
	struct making *a = arg;
	struct goose_source *s = &a->g->in.sources[a->source];
	struct goose_mapping *m;
	char name[2000];

	if (scl_is_text(d))
		return 0;
	a->count++;
	if (!a->list)
		return 0;
	m = &a->g->in.mappings[a->count - 1];
	m->source = a->source;
	m->type = mms_type_find(d->basic->mms_type);
	set_place(m, place, depth);
	s->needed = MAX(s->needed, m->index + 1);
	snprintf(name, sizeof(name), "%s%s", s->scl.settings.prefix, d->name);
	a->no_memory |= signal_set(&a->list->signals[a->count - 1], name, NULL, m->type->signal);
	return 0;
}

static unsigned each_source(struct making *a)
{
	a->count = 0;
	for (a->source = 0; a->source < a->g->in.source_count; a->source++)
		scl_each_value(a->g->in.sources[a->source].scl.control, add_value, a);
	return a->count;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* There may be many thousands. */
static int check_names(const struct signal_list *l, struct config *c, const json_t *at)
{
	const char **names = calloc(l->count, sizeof(*names));
	int ret = names ? 0 : -ENOMEM;

	for (unsigned i = 0; names && i < l->count; i++)
		names[i] = l->signals[i].name;
	if (names)
		qsort(names, l->count, sizeof(*names), compare_names);
	for (unsigned i = 1; !ret && i < l->count; i++)
		if (!strcmp(names[i - 1], names[i])) {
			config_fail(c, at, "subscribers",
				    "two values have the name '%.100s'; scl.prefix of a subscriber puts something in front of its names",
				    names[i]);
			ret = -EINVAL;
		}
	free(names);
	return ret;
}

/* Without `signals` they are all values of the control blocks, if each is in a file. */
static int make_signals(struct goose_node *g, struct config *c)
{
	struct making a = { .g = g };

	for (unsigned i = 0; i < g->in.source_count; i++)
		if (!g->in.sources[i].scl.control)
			return 0;
	if (!each_source(&a)) {
		config_fail(c, g->node->in.cfg, "subscribers",
			    "the data sets have no value that a signal can hold");
		return -EINVAL;
	}
	g->in.mapping_count = a.count;
	g->in.mappings = calloc(a.count, sizeof(*g->in.mappings));
	a.list = signal_list_alloc(a.count);
	if (a.list)
		each_source(&a);
	if (!g->in.mappings || !a.list || a.no_memory) {
		signal_list_put(a.list);
		return -ENOMEM;
	}
	g->node->in.signals = a.list;
	return check_names(a.list, c, g->node->in.cfg);
}

int goose_signals_parse(struct goose_node *g, struct config *c)
{
	struct node *n = g->node;
	const json_t *at = signal_list_is_given(n->in.cfg, "signals") ? n->in.cfg : n->cfg;
	const json_t *list = json_object_get(at, "signals"), *e;
	size_t i;
	int ret = 0;

	if (!g->in.sources)
		return 0;
	if (!n->in.signals)
		return make_signals(g, c);
	if (!json_is_array(list) || json_array_size(list) != n->in.signals->count) {
		config_fail(c, at, "signals",
			    "are required as a list with an entry for each, { name, subscriber, index, mms_type }");
		return -EINVAL;
	}
	g->in.mappings = calloc(n->in.signals->count, sizeof(*g->in.mappings));
	if (!g->in.mappings)
		return -ENOMEM;
	g->in.mapping_count = n->in.signals->count;
	json_array_foreach(list, i, e)
		ret = parse_mapping(g, c, e, &n->in.signals->signals[i], &g->in.mappings[i]) ?: ret;
	return ret;
}
