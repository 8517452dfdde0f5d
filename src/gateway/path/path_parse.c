/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths from the configuration. */
#define LOG_ROOM "gateway/path"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/config/keys.h"
#include "gateway/plugin/services.h"
#include "gateway/path/path.h"
#include "gateway/sample/signals.h"
#include "gateway/config/uuid.h"
#include "util/log.h"

struct path_config {
	json_t *in, *out, *mask, *hooks, *original, *poll;
	bool enabled, reverse, builtin;
	int mode, end, full;
	double rate;
	int64_t queuelen, affinity, priority;
	const char *uuid;
};

static const char *const mode_names[] = { "any", "all", NULL };
static const char *const end_names[] = { "first", "all", NULL };
static const char *const full_names[] = { "auto", "block", "drop_newest",
					  "drop_oldest", NULL };

#define KEY(field) offsetof(struct path_config, field)

static const struct config_key path_keys[] = {
	{ "in", CONFIG_JSON, KEY(in), .required = true,
	  .help = "the node that is read, or a list of nodes and mappings" },
	{ "out", CONFIG_JSON, KEY(out),
	  .help = "the node that is written, or a list of nodes" },
	{ "enabled", CONFIG_BOOL, KEY(enabled), "true",
	  .help = "Use this path" },
	{ "reverse", CONFIG_BOOL, KEY(reverse), "false",
	  .help = "Add a path in the other direction" },
	{ "mode", CONFIG_ENUM, KEY(mode), "any", .names = mode_names,
	  .help = "Forward when any source has come, or all of them" },
	{ "end", CONFIG_ENUM, KEY(end), "first", .names = end_names,
	  .help = "Of several sources: the path ends with the first one that ends, or when all have" },
	{ "mask", CONFIG_JSON, KEY(mask),
	  .help = "Sources that count for mode; default all" },
	{ "rate", CONFIG_REAL, KEY(rate), "0", .min = 0, .max = 1e6,
	  .help = "Send the last sample again this often, in Hz; 0 never" },
	{ "poll", CONFIG_JSON, KEY(poll),
	  .help = "Wait for the descriptors of the sources" },
	{ "original_sequence_no", CONFIG_JSON, KEY(original),
	  .help = "Keep sequence numbers; default with one source" },
	{ "queuelen", CONFIG_INT, KEY(queuelen), "1024", .min = 1,
	  .max = 1 << 24,
	  .help = "Samples in each queue of the path, rounded up to a power of two" },
	{ "queue_full", CONFIG_ENUM, KEY(full), "auto", .names = full_names,
	  .help = "block: the reader waits; drop_newest, drop_oldest: counted; auto: block, but drop_newest where another path reads the node" },
	{ "hooks", CONFIG_JSON, KEY(hooks), .help = "List of hooks" },
	{ "builtin", CONFIG_BOOL, KEY(builtin), "true",
	  .help = "Add the built-in hooks" },
	{ "affinity", CONFIG_INT, KEY(affinity), "0", .min = 0,
	  .max = (double)INT64_MAX, .help = "CPU mask of its threads" },
	{ "priority", CONFIG_INT, KEY(priority), "0", .min = 0, .max = 99,
	  .help = "SCHED_FIFO priority of its threads, 0 for none" },
	{ "uuid", CONFIG_STRING, KEY(uuid), .help = "Identifier" },
};

const struct key_table keys_path = { path_keys, ARRAY_SIZE(path_keys) };

/* Zeroed memory on a cache line: what it holds is shared between threads. */
static void *zalloc_lines(size_t size)
{
	size_t bytes = (size + CACHE_LINE) & ~(size_t)(CACHE_LINE - 1);
	void *p = aligned_alloc(CACHE_LINE, bytes);

	return p ? memset(p, 0, bytes) : NULL;
}

static struct path_source *find_source(struct path *p, const struct node *n)
{
	for (unsigned i = 0; i < p->source_count; i++)
		if (p->sources[i].node == n)
			return &p->sources[i];
	return NULL;
}

static void add_source(struct path *p, struct node *n)
{
	struct path_source *s = &p->sources[p->source_count++];

	s->path = p;
	s->node = n;
	s->vectorize = n->in.vectorize;
	s->triggers = true;
}

/* One source for each node that entries of `in` name; entries of disabled ones
 * are taken out. */
static int set_sources(struct path *p, struct config *c, const char *key)
{
	const struct node *disabled = NULL;
	unsigned kept = 0;
	int ret = 0;

	p->sources = zalloc_lines(p->map_count * sizeof(*p->sources));
	if (!p->sources)
		return -ENOMEM;
	for (unsigned i = 0; i < p->map_count; i++) {
		struct node *n = p->maps[i].node;

		if (!(n->type->flags & NODE_CAN_READ)) {
			config_fail(c, p->cfg, key,
				    "node '%s' of type %s cannot be read",
				    n->name, n->type->name);
			ret = -EINVAL;
		} else if (!node_side_is_open(n->type, n->cfg, "in")) {
			config_fail(c, p->cfg, key,
				    "node '%s' cannot be read: it has only the group `out`",
				    n->name);
			ret = -EINVAL;
		}
		if (!n->enabled || !n->in.enabled) {
			if (n != disabled)
				log_warn("path %s: source %s is disabled and left out",
					 p->name, n->name);
			disabled = n;
			continue;
		}
		if (!find_source(p, n))
			add_source(p, n);
		p->maps[kept] = p->maps[i];
		p->maps[kept++].source = find_source(p, n);
	}
	p->map_count = kept;
	/* The one that is left passes through, as if it had stood alone. */
	p->mapped = kept != 1 || p->maps[0].mapping.kind != MAPPING_NODE;
	return ret;
}

static int set_destinations(struct path *p, struct config *c, const char *key,
			    struct node **nodes, unsigned n)
{
	int ret = 0;

	p->destinations = calloc(n ? n : 1, sizeof(*p->destinations));
	if (!p->destinations)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		struct path_destination *d =
			&p->destinations[p->destination_count];

		if (!(nodes[i]->type->flags & NODE_CAN_WRITE)) {
			config_fail(c, p->cfg, key,
				    "node '%s' of type %s cannot be written",
				    nodes[i]->name, nodes[i]->type->name);
			ret = -EINVAL;
		} else if (!node_side_is_open(nodes[i]->type, nodes[i]->cfg, "out")) {
			config_fail(c, p->cfg, key,
				    "node '%s' cannot be written: it has only the group `in`",
				    nodes[i]->name);
			ret = -EINVAL;
		}
		if (!nodes[i]->enabled || !nodes[i]->out.enabled) {
			log_warn("path %s: destination %s is disabled and left out",
				 p->name, nodes[i]->name);
			continue;
		}
		d->node = nodes[i];
		d->vectorize = nodes[i]->out.vectorize;
		p->destination_count++;
	}
	return ret;
}

static int parse_mask(struct path *p, const struct path_host *host, struct config *c)
{
	struct node **nodes;
	int n, ret = 0;

	/* The way back has one source, and it is not the one that is meant. */
	if (json_is_null(json_object_get(p->cfg, "mask") ?: json_null()) || p->reversed)
		return 0;
	n = path_find_nodes(host->services, c, p->cfg, "mask", &nodes);
	if (n < 0)
		return n;
	for (unsigned i = 0; i < p->source_count; i++)
		p->sources[i].triggers = false;
	for (int k = 0; k < n; k++) {
		struct path_source *source = find_source(p, nodes[k]);

		if (source) {
			source->triggers = true;
		} else if (nodes[k]->enabled && nodes[k]->in.enabled) {
			config_fail(c, p->cfg, "mask",
				    "node '%s' is no source of this path",
				    nodes[k]->name);
			ret = -EINVAL;
		}
	}
	free(nodes);
	return ret;
}

/* A boolean whose absence means "decide yourself" (-1). */
static int parse_maybe(struct config *c, json_t *cfg, const char *key,
		       const json_t *value)
{
	bool v;
	const struct config_key k = { .name = key, .type = CONFIG_BOOL };

	if (!value || json_is_null(value))
		return -1;
	if (config_unpack_part(c, cfg, &k, 1, &v))
		return -1;
	return v;
}

/* "a, b -> c" */
static char *make_name(const struct path *p, struct node **out,
		       unsigned out_count)
{
	char *name = NULL;
	size_t len;
	FILE *f = open_memstream(&name, &len);

	if (!f)
		return NULL;
	for (unsigned i = 0; i < p->map_count; i++) {
		bool again = false;

		for (unsigned k = 0; k < i; k++)
			again |= p->maps[k].node == p->maps[i].node;
		if (!again)
			fprintf(f, "%s%s", i ? ", " : "",
				p->maps[i].node->name);
	}
	fputs(" ->", f);
	for (unsigned i = 0; i < out_count; i++)
		fprintf(f, "%s%s", i ? ", " : " ", out[i]->name);
	fclose(f);
	return name;
}

/* Signals of a source: what its node reads, and what the hooks make of it. */
static int set_source_signals(struct path_source *s)
{
	struct node_direction *in = &s->node->in;
	int ret = in->unknown ? -EINVAL : 0;

	if (!ret && !in->resolved) {
		ret = hook_list_signals(in->hooks, in->signals, &in->hooked,
					&in->capacity);
		in->hooked = signal_list_intern(in->hooked);
		in->resolved = true;
		in->unknown = ret != 0;
	}
	s->count = in->hooked ? in->hooked->count : SIGNALS_DEFAULT;
	s->capacity = MAX(s->count, in->capacity);
	/* Said when the first path asked. */
	return ret;
}

/* What goes to the destinations, and how much room it needs on the way. */
static int set_destination_signals(struct path *p)
{
	int ret = hook_list_signals(p->hooks, p->signals, &p->out_signals,
				    &p->capacity);

	p->out_signals = signal_list_intern(p->out_signals);
	for (unsigned d = 0; d < p->destination_count && !ret; d++) {
		struct node *n = p->destinations[d].node;
		struct signal_list *written;

		ret = hook_list_signals(n->out.hooks, p->out_signals, &written,
					&n->out.capacity);
		if (ret)
			break;
		p->capacity = MAX(p->capacity, n->out.capacity);
		signal_list_put(n->out.hooked);
		n->out.hooked = signal_list_intern(written);
		if (!n->out.signals && n->out.hooked)
			n->out.signals = signal_list_get(n->out.hooked);
		if (n->type->flags & NODE_LOOPS && !n->in.signals &&
		    n->out.signals)
			n->in.signals = signal_list_get(n->out.signals);
	}
	return ret;
}

/* What is wrong here has been told: it is not told again of what would come out
 * of the nodes behind. */
static void leave_unknown(struct path *p)
{
	for (unsigned d = 0; d < p->destination_count; d++) {
		struct node *n = p->destinations[d].node;

		if (n->type->flags & NODE_LOOPS && !n->in.signals)
			n->in.unknown = true;
	}
}

int path_set_signals(struct path *p)
{
	int ret = 0;

	for (unsigned i = 0; i < p->source_count; i++)
		ret = set_source_signals(&p->sources[i]) ?: ret;
	ret = ret ?: path_map_resolve(p);
	if (!ret) {
		/* Samples point at it, and may outlive the path. */
		p->signals = signal_list_intern(p->signals);
		ret = set_destination_signals(p);
	}
	if (ret)
		leave_unknown(p);
	p->resolved = true;
	return ret;
}

/* Paths of the same nodes are told apart by their order; the way back of a path
 * with a given identifier needs one of its own. */
static int set_uuid(struct path *p, const struct path_host *host, struct config *c,
		    const char *given)
{
	char text[512];
	unsigned same = 0;

	list_for_each(q, host->paths, struct path, entry)
		same += !strcmp(q->name, p->name);
	snprintf(text, sizeof(text), "%u %.400s %s", same, p->name,
		 given && p->reversed ? given : "");
	return uuid_set(p->uuid, c, p->cfg, p->reversed ? NULL : given, "path",
			text);
}

static int64_t round_up(const struct path *p, int64_t queuelen)
{
	int64_t rounded = 1;

	while (rounded < queuelen)
		rounded *= 2;
	if (rounded != queuelen)
		log_info("path %s: queuelen %lld is rounded up to %lld, a power of two",
			 p->name, (long long)queuelen, (long long)rounded);
	return rounded;
}

/* What the sources and destinations have no part in. */
static int fill_settings(struct path *p, struct config *c,
			 const struct path_config *v)
{
	int maybe, ret;

	p->reverse = v->reverse;
	p->mode = v->mode;
	p->end = v->end;
	p->full = v->full;
	p->rate_hz = v->rate;
	p->queuelen = round_up(p, v->queuelen);
	p->affinity = v->affinity;
	p->priority = v->priority;
	p->enabled = v->enabled && p->source_count;
	maybe = parse_maybe(c, p->cfg, "poll", v->poll);
	p->poll = maybe < 0 ? PATH_POLL_AUTO :
			      maybe ? PATH_POLL_YES : PATH_POLL_NO;
	maybe = parse_maybe(c, p->cfg, "original_sequence_no", v->original);
	p->original_sequence = maybe < 0 ? p->source_count == 1 &&
						   v->rate == 0 :
					   maybe;
	ret = hook_list_parse(&p->hooks, c, v->hooks, HOOK_PATH, NULL, p->name);
	if (!ret && v->builtin)
		ret = hook_list_add_builtin(p->hooks, c, HOOK_PATH, NULL,
					    p->name);
	return ret;
}

/* The path is refused already; what else is wrong with it is said with that. */
static void report_rest(struct path *p, const struct path_host *host,
			struct config *c, const struct path_config *v)
{
	struct node **mask = NULL;

	if (p->reversed)
		return;
	hook_list_parse(&p->hooks, c, v->hooks, HOOK_PATH, NULL, "path");
	if (json_object_get(p->cfg, "mask"))
		path_find_nodes(host->services, c, p->cfg, "mask", &mask);
	free(mask);
}

static int fill(struct path *p, const struct path_host *host, struct config *c,
		const struct path_config *v)
{
	const char *from = p->reversed ? "out" : "in";
	const char *to = p->reversed ? "in" : "out";
	struct node **out = NULL;
	int out_count, ret;

	ret = path_map_parse(p, host->services, c, from);
	out_count = path_find_nodes(host->services, c, p->cfg, to, &out);
	ret = ret ?: MIN(out_count, 0);
	if (ret) {
		report_rest(p, host, c, v);
		goto out;
	}
	if (p->map_count == 0) {
		/* Without the key that has been told. */
		if (json_object_get(p->cfg, from))
			config_fail(c, p->cfg, from, "a path needs a source");
		ret = -EINVAL;
		goto out;
	}
	if (v->reverse && (p->mapped || out_count != 1)) {
		config_fail(c, p->cfg, "reverse",
			    "only a path with one whole node as source and one destination can have a reverse");
		ret = -EINVAL;
	}
	p->name = make_name(p, out, (unsigned)out_count);
	if (!p->name) {
		ret = -ENOMEM;
		goto out;
	}
	if (set_uuid(p, host, c, v->uuid))
		ret = -EINVAL;
	if (set_sources(p, c, from))
		ret = -EINVAL;
	if (set_destinations(p, c, to, out, (unsigned)out_count))
		ret = -EINVAL;
	if (parse_mask(p, host, c))
		ret = -EINVAL;
	if (fill_settings(p, c, v))
		ret = -EINVAL;
	/* Not that of the thread which starts it: a reload runs in others. */
	p->own_priority = p->priority != 0;
	p->priority = p->priority ?: host->priority;
out:
	free(out);
	return ret;
}

int path_new(struct path **out, const struct path_host *host, struct config *c,
	     json_t *cfg, bool reversed)
{
	struct path_config v;
	struct path *p;
	int ret;

	*out = NULL;
	if (config_unpack(c, cfg, path_keys, ARRAY_SIZE(path_keys), &v, NULL,
			  0) &&
	    !json_is_object(cfg))
		return 0;
	p = zalloc_lines(sizeof(*p));
	if (!p)
		return -ENOMEM;
	list_init(&p->entry);
	p->config = c;
	p->cfg = cfg;
	p->reversed = reversed;
	p->event_fd = -1;
	p->memory = host->memory;
	hist_init(&p->latency);
	ret = fill(p, host, c, &v);
	if (ret) {
		path_destroy(p);
		/* Nothing was reported: there was no memory. */
		return config_errors(c) ? 0 : -ENOMEM;
	}
	*out = p;
	return 0;
}
