/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `stats`: sends figures of other nodes at a fixed rate. Those nodes
 * need the hook `stats`, which records the figures; this one only reads them
 * (gateway/stats.h), from its own thread.
 */
#define LOG_ROOM "gateway/stats"
#include "gateway/plugin/stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/node.h"
#include "gateway/part/timer.h"
#include "gateway/sample/sequence.h"
#include "gateway/sample/signals.h"
#include "gateway/plugin/services.h"
#include "util/clock.h"
#include "util/nearest.h"

struct figure {
	const char *node;            /* its name, borrowed; not terminated */
	size_t node_len;
	enum stats_metric metric;
	enum stats_type type;
	bool integer;
	struct node_stats *source;   /* reference, from check on */
};

struct stats_node {
	double rate_hz;
	const char *node;            /* whose figures, where they do not say; or NULL */
	struct figure *figures;
	unsigned count;
	struct timer timer;
	bool timer_open;
};

struct entry {
	const char *stats, *name, *unit;
	int type;
};

static const char *const type_names[] = { "auto", "float", "integer", NULL };

static const struct config_key node_keys[] = {
	{ "rate", CONFIG_REAL, offsetof(struct stats_node, rate_hz), "1",
	  .min = 1e-6, .max = 1e6, .help = "Samples per second" },
	{ "node", CONFIG_STRING, offsetof(struct stats_node, node),
	  .help = "Node whose figures are sent where `stats` of a signal is only METRIC.TYPE" },
};

static const struct config_key entry_keys[] = {
	{ "stats", CONFIG_STRING, offsetof(struct entry, stats),
	  .required = true,
	  .help = "NODE.METRIC.TYPE, or METRIC.TYPE of the node that `node` names" },
	{ "name", CONFIG_STRING, offsetof(struct entry, name),
	  .help = "Name of the signal, default is what `stats` says" },
	{ "unit", CONFIG_STRING, offsetof(struct entry, unit),
	  .help = "Unit, default is that of the figure" },
	{ "type", CONFIG_ENUM, offsetof(struct entry, type), "auto",
	  .names = type_names,
	  .help = "float, or integer for numbers of something" },
};

/* Of every signal; signals.c has looked at them. */
static const struct config_key known_keys[] = {
	{ "enabled", CONFIG_BOOL, 0,
	  .help = "Only true: every signal has its place in every sample" },
};

/* Of the node that the key `node` names? A node may be called like a metric. */
static bool is_short(const struct stats_node *s, struct figure *f,
		     const char *text)
{
	char problem[256];

	if (!s->node ||
	    stats_parse(text, &f->metric, &f->type, problem, sizeof(problem)))
		return false;
	f->node = s->node;
	f->node_len = strlen(s->node);
	return true;
}

static int parse_long(struct figure *f, struct config *c, const json_t *at,
		      const struct entry *e)
{
	char problem[256];

	f->node = e->stats;
	f->node_len = strcspn(e->stats, ".");
	if (!f->node_len || !e->stats[f->node_len]) {
		config_fail(c, at, "stats",
			    "'%s' is no figure; write NODE.METRIC.TYPE, for example \"a.owd.mean\"",
			    e->stats);
		return -EINVAL;
	}
	if (stats_parse(e->stats + f->node_len + 1, &f->metric, &f->type,
			problem, sizeof(problem))) {
		config_fail(c, at, "stats", "%s", problem);
		return -EINVAL;
	}
	return 0;
}

static int parse_figure(const struct stats_node *s, struct figure *f,
			struct config *c, const json_t *at,
			const struct entry *e)
{
	if (!is_short(s, f, e->stats) && parse_long(f, c, at, e))
		return -EINVAL;
	f->integer = e->type == 0 ? f->type == STATS_TOTAL : e->type == 2;
	return 0;
}

static int parse_entry(struct stats_node *s, unsigned index,
		       struct signal_list *l, struct config *c, const json_t *at)
{
	struct figure *f = &s->figures[index];
	struct entry e;

	if (config_unpack(c, at, entry_keys, ARRAY_SIZE(entry_keys), &e,
			  known_keys, ARRAY_SIZE(known_keys)) ||
	    parse_figure(s, f, c, at, &e))
		return -EINVAL;
	return signal_set(&l->signals[index], e.name ? e.name : e.stats,
			  e.unit ? e.unit : stats_unit(f->metric, f->type),
			  f->integer ? SIGNAL_INTEGER : SIGNAL_FLOAT);
}

/* In `in`, or as everywhere on the node. */
static json_t *list_of(struct node *n, json_t *cfg)
{
	return json_object_get(signal_list_is_given(n->in.cfg, "signals") ?
				       n->in.cfg : cfg, "signals");
}

static int stats_parse_node(struct node *n, struct config *c, json_t *cfg)
{
	struct stats_node *s = n->private_data;
	json_t *list = list_of(n, cfg);
	struct signal_list *l;
	int ret = 0;

	if (!json_is_array(list) || !json_array_size(list)) {
		config_fail(c, n->in.cfg ? n->in.cfg : cfg,
			    n->in.cfg ? "signals" : "in",
			    "a node of type stats needs a list of figures: in = { signals = ( { name = \"delay\"; stats = \"a.owd.mean\" } ) }");
		return -EINVAL;
	}
	s->count = (unsigned)json_array_size(list);
	s->figures = calloc(s->count, sizeof(s->figures[0]));
	l = signal_list_alloc(s->count);
	if (!s->figures || !l) {
		signal_list_put(l);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < s->count; i++)
		if (parse_entry(s, i, l, c, json_array_get(list, i)))
			ret = -EINVAL;
	if (ret) {
		signal_list_put(l);
		return ret;
	}
	signal_list_put(n->in.signals);
	n->in.signals = l;
	return 0;
}

static int find_source(struct node *n, struct figure *f, struct config *c,
		       const json_t *at)
{
	char *name = strndup(f->node, f->node_len);
	struct node *other = name ? services_find_node(n->services, name) : NULL;
	int ret = -EINVAL;

	if (!name)
		return -ENOMEM;
	if (other && node_has_stats(other)) {
		f->source = node_stats_get(other->stats);
		ret = 0;
	} else if (other) {
		config_fail(c, at, "stats",
			    "node '%s' has no hook `stats`, which makes these figures; add hooks = ( \"stats\" ) to its `in`",
			    name);
	} else {
		services_fail_no_node(n->services, c, at, "stats", name);
	}
	free(name);
	return ret;
}

/* By now all nodes of the configuration are there. */
static int stats_check(struct node *n, struct config *c, json_t *cfg)
{
	struct stats_node *s = n->private_data;
	json_t *list = list_of(n, cfg);
	int ret = 0;

	/* Also where every figure names its own. */
	if (s->node && !services_find_node(n->services, s->node)) {
		services_fail_no_node(n->services, c, cfg, "node", s->node);
		return -EINVAL;
	}

	for (unsigned i = 0; i < s->count; i++)
		if (!s->figures[i].source &&
		    find_source(n, &s->figures[i], c, json_array_get(list, i)))
			ret = -EINVAL;
	return ret;
}

/* Their figures are other ones now; the reload has checked that they are there. */
static void stats_relink(struct node *n)
{
	struct stats_node *s = n->private_data;

	for (unsigned i = 0; i < s->count; i++) {
		struct figure *f = &s->figures[i];

		list_for_each(o, n->services->nodes, struct node, entry) {
			if (strlen(o->name) != f->node_len ||
			    memcmp(o->name, f->node, f->node_len) || !o->stats)
				continue;
			node_stats_put(f->source);
			f->source = node_stats_get(o->stats);
		}
	}
}

static void stats_destroy(struct node *n)
{
	struct stats_node *s = n->private_data;

	for (unsigned i = 0; s->figures && i < s->count; i++)
		node_stats_put(s->figures[i].source);
	free(s->figures);
}

static int stats_start(struct node *n)
{
	struct stats_node *s = n->private_data;
	int ret = timer_open(&s->timer, TIMER_TIMERFD, s->rate_hz);

	if (ret)
		return ret;
	s->timer_open = true;
	timer_start(&s->timer, s->rate_hz);
	return 0;
}

static int stats_stop(struct node *n)
{
	struct stats_node *s = n->private_data;

	if (s->timer_open)
		timer_close(&s->timer);
	s->timer_open = false;
	return 0;
}

static int stats_read(struct node *n, struct sample *smps[], unsigned cnt,
		      unsigned *release)
{
	struct stats_node *s = n->private_data;
	struct sample *smp = smps[0];
	uint64_t late_ns;
	int64_t steps = timer_wait_step(&s->timer, &late_ns);

	if (steps < 0)
		return (int)steps;
	if (unlikely(steps > 1)) {
		n->sequence += (uint64_t)steps - 1;
		atomic_fetch_add_explicit(&n->counters.missed,
					  (uint64_t)steps - 1,
					  memory_order_relaxed);
	}
	smp->length = MIN(s->count, smp->capacity);
	for (unsigned i = 0; i < smp->length; i++) {
		const struct figure *f = &s->figures[i];
		double value = node_stats_figure(f->source, f->metric, f->type);

		if (!f->integer)
			smp->data[i].f = value;
		else /* not a number, while nothing is recorded: 0 */
			smp->data[i].i = value >= -9e18 && value <= 9e18 ?
						 (int64_t)value : 0;
	}
	smp->origin = clock_realtime();
	if (unlikely(steps > 1))
		sequence_note_left_out(n->sequence - (uint64_t)steps + 1,
				       (uint64_t)steps - 1, smp->origin);
	smp->sequence = n->sequence++;
	smp->signals = n->in.signals;
	smp->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	return 1;
}

static void stats_interrupt(struct node *n)
{
	struct stats_node *s = n->private_data;

	if (s->timer_open)
		timer_interrupt(&s->timer);
}

static void stats_rearm(struct node *n)
{
	struct stats_node *s = n->private_data;

	if (s->timer_open)
		timer_rearm(&s->timer);
}

static int stats_poll_fds(struct node *n, int fds[], int max)
{
	struct stats_node *s = n->private_data;

	if (!s->timer_open || max < 1)
		return 0;
	fds[0] = timer_poll_fd(&s->timer, false);
	return 1;
}

static void stats_print(struct node *n, char *buf, size_t size)
{
	const struct stats_node *s = n->private_data;

	snprintf(buf, size, "figures %u rate %g", s->count, s->rate_hz);
}

extern const struct node_type node_stats;

const struct node_type node_stats = {
	.name = "stats",
	.description = "Sends figures of what other nodes receive",
	.vectorize_max = 1,
	.flags = NODE_CAN_READ | NODE_READ_BLOCKS | NODE_GENERATES,
	.size = sizeof(struct stats_node),
	.keys = node_keys,
	.key_count = ARRAY_SIZE(node_keys),
	.signal_keys = entry_keys,
	.signal_key_count = ARRAY_SIZE(entry_keys),
	.parse = stats_parse_node,
	.check = stats_check,
	.start = stats_start,
	.stop = stats_stop,
	.destroy = stats_destroy,
	.read = stats_read,
	.interrupt = stats_interrupt,
	.rearm = stats_rearm,
	.relink = stats_relink,
	.poll_fds = stats_poll_fds,
	.print = stats_print,
};
