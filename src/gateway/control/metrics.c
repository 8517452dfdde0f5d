/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What /metrics shows; see metrics.h. Counters come from the same snapshot as /stats, so
 * that both agree; histograms from their owners, under the lock of the control plane. A
 * family is printed as a whole, as the formats ask for.
 */
#include "gateway/control/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/control/metrics_print.h"
#include "gateway/path/path.h"
#include "gateway/plugin/node.h"
#include "gateway/plugin/stats.h"
#include "gateway/super_node/super_node_control.h"
#include "gateway/super_node/super_node_private.h"
#include "util/clock.h"
#include "util/container_of.h"

#define ROWS 22

/* A member of "stats" of a node or path, or of one of its groups. */
struct figure {
	const char *group, *key;
	const char *family, *help;
};

static const struct figure node_figures[] = {
	{ NULL, "received", "busbar_node_received_samples", "Samples read from the node" },
	{ NULL, "sent", "busbar_node_sent_samples", "Samples that the node accepted" },
	{ NULL, "not_sent", "busbar_node_not_sent_samples",
	  "Samples given to the node that it did not accept" },
	{ NULL, "not_stored", "busbar_node_not_stored_samples",
	  "Samples that the node accepted and lost later" },
	{ NULL, "lost", "busbar_node_lost_samples",
	  "Sequence numbers missing in what was received" },
	{ NULL, "reordered", "busbar_node_reordered_samples",
	  "Samples received with an earlier sequence number" },
	{ NULL, "missed", "busbar_node_missed_steps", "Steps that a generator of this gateway left out" },
	{ NULL, "made_up", "busbar_node_made_up_steps",
	  "Steps of a generator that were late by a period or more" },
};

static const struct figure hook_figures[] = {
	{ NULL, "dropped", "busbar_hooks_dropped_samples", "Samples that hooks left out" },
	{ NULL, "failed", "busbar_hooks_failed_samples",
	  "Samples that a hook could not process" },
	{ NULL, "starved", "busbar_hooks_starved_samples",
	  "Samples without room for a hook's copy" },
	{ NULL, "unwritten", "busbar_hooks_unwritten_samples",
	  "Samples that are not in the file of a hook" },
};

static const struct figure path_figures[] = {
	{ NULL, "samples", "busbar_path_samples", "Samples given to the destinations" },
	{ NULL, "queue_full", "busbar_path_queue_full_samples",
	  "Samples that found their queue full" },
	{ NULL, "unmade", "busbar_path_unmade_samples",
	  "Outputs that found no free sample" },
	{ NULL, "discarded", "busbar_path_discarded_samples",
	  "Samples that came while the path was paused or stopped" },
	{ NULL, "merged", "busbar_path_merged_samples",
	  "Samples that became part of a later output" },
	{ NULL, "repeated", "busbar_path_repeated_samples",
	  "Outputs of a fixed rate without a new sample" },
	{ NULL, "starved", "busbar_path_starved_reads", "Reads without a free sample" },
	{ "latency", "below_zero", "busbar_path_latencies_below_zero",
	  "Latencies below zero: clocks that differ" },
};

static json_t *(*read_adapters)(void);

void metrics_set_adapters(json_t *(*read)(void))
{
	read_adapters = read;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static uint64_t figure_of(const json_t *o, const struct figure *f)
{
	const json_t *stats = json_object_get(o, "stats");

	if (f->group)
		stats = json_object_get(stats, f->group);
	return (uint64_t)json_integer_value(json_object_get(stats, f->key));
}

static struct metrics_labels node_labels(const char *name, const json_t *n)
{
	return (struct metrics_labels){ { { "node", name },
					  { "type", text_of(n, "type") } } };
}

/* The UUID tells apart paths of one name. */
static struct metrics_labels path_labels(const json_t *p)
{
	return (struct metrics_labels){ { { "path", text_of(p, "name") },
					  { "uuid", text_of(p, "uuid") } } };
}

/* The states of a node that is started, with its peer or without, and of a path that runs or waits
 * for samples. */
static bool runs(const json_t *o)
{
	static const char *const states[] = { "started", "pending-connect", "connected",
					      "running", "waiting" };

	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (!strcmp(text_of(o, "state"), states[i]))
			return true;
	return false;
}

static void print_states(struct metrics *m, const json_t *nodes, const json_t *paths)
{
	const char *name;
	json_t *o;
	size_t i;

	metrics_family(m, "busbar_node_running", METRICS_GAUGE,
		       "1 while the node is started, with its peer or without, and not paused");
	json_object_foreach((json_t *)nodes, name, o) {
		struct metrics_labels l = node_labels(name, o);

		metrics_count(m, &l, runs(o));
	}
	metrics_family(m, "busbar_path_running", METRICS_GAUGE,
		       "1 while the path forwards or waits for samples");
	json_array_foreach(paths, i, o) {
		struct metrics_labels l = path_labels(o);

		metrics_count(m, &l, runs(o));
	}
}

static void print_nodes(struct metrics *m, const json_t *nodes)
{
	const char *name, *cause;
	json_t *o, *count;

	for (size_t f = 0; f < ARRAY_SIZE(node_figures); f++) {
		metrics_family(m, node_figures[f].family, METRICS_COUNTER,
			       node_figures[f].help);
		json_object_foreach((json_t *)nodes, name, o) {
			struct metrics_labels l = node_labels(name, o);

			metrics_count(m, &l, figure_of(o, &node_figures[f]));
		}
	}
	metrics_family(m, "busbar_node_losses", METRICS_COUNTER,
		       "Samples not sent or not stored, by cause");
	json_object_foreach((json_t *)nodes, name, o) {
		json_t *losses = json_object_get(json_object_get(o, "stats"),
						 "losses");

		json_object_foreach(losses, cause, count) {
			struct metrics_labels l = node_labels(name, o);

			l.at[2] = (struct metrics_label){ "cause", cause };
			metrics_count(m, &l,
				      (uint64_t)json_integer_value(count));
		}
	}
}

/* A family for each figure of a node-type. */
static void print_type_figures(struct metrics *m, struct super_node *sn,
			       const struct node_type *type)
{
	for (size_t i = 0; i < type->figure_count; i++) {
		const struct node_figure *f = &type->figures[i];
		char family[128];

		if (!f->name)
			continue;
		snprintf(family, sizeof(family), "busbar_node_%s_%s", type->name, f->name);
		/* As in signal.v2. */
		for (char *s = family; *s; s++)
			if (*s == '.' || *s == '-')
				*s = '_';
		metrics_family(m, family, f->kind == NODE_GAUGE ? METRICS_GAUGE : METRICS_COUNTER,
			       f->help);
		list_for_each(n, &sn->nodes, struct node, entry) {
			struct metrics_labels l = { { { "node", n->name },
						      { "type", type->name } } };

			/* A type may have variants of one name (infiniband with `budget`). */
			if (n->type->figures == type->figures)
				metrics_count(m, &l, atomic_load(&n->figures[i]));
		}
	}
}

static void print_figures(struct metrics *m, struct super_node *sn)
{
	/* Each type once, also those of modules. */
	list_for_each(n, &sn->nodes, struct node, entry) {
		bool first = true;

		list_for_each(before, &sn->nodes, struct node, entry) {
			if (before == n)
				break;
			first &= before->type->figures != n->type->figures;
		}
		if (first)
			print_type_figures(m, sn, n->type);
	}
}

/* Of hooks in one place; `group` is the object of their figures. */
static void print_hook_figure(struct metrics *m, const struct figure *f,
			      struct metrics_labels l, const char *place,
			      const json_t *o, const char *group)
{
	const struct figure in_group = { group, f->key, f->family, f->help };

	l.at[2] = (struct metrics_label){ "place", place };
	metrics_count(m, &l, figure_of(o, &in_group));
}

static void print_hooks(struct metrics *m, const json_t *nodes, const json_t *paths)
{
	const char *name;
	json_t *o;
	size_t i;

	for (size_t f = 0; f < ARRAY_SIZE(hook_figures); f++) {
		const struct figure *figure = &hook_figures[f];

		metrics_family(m, figure->family, METRICS_COUNTER, figure->help);
		json_object_foreach((json_t *)nodes, name, o) {
			print_hook_figure(m, figure, node_labels(name, o), "in",
					  o, "in_hooks");
			print_hook_figure(m, figure, node_labels(name, o), "out",
					  o, "out_hooks");
		}
		json_array_foreach(paths, i, o)
			print_hook_figure(m, figure, path_labels(o), "path", o,
					  "hooks");
	}
}

static void print_paths(struct metrics *m, const json_t *paths)
{
	json_t *o;
	size_t i;

	for (size_t f = 0; f < ARRAY_SIZE(path_figures); f++) {
		metrics_family(m, path_figures[f].family, METRICS_COUNTER,
			       path_figures[f].help);
		json_array_foreach(paths, i, o) {
			struct metrics_labels l = path_labels(o);

			metrics_count(m, &l, figure_of(o, &path_figures[f]));
		}
	}
}

/* Of nanoseconds, as seconds: 1, 2 and 5 of each decade from 1 us to 10 s. */
static void print_hist(struct metrics *m, const struct metrics_labels *l,
		       const struct hist *h)
{
	uint64_t bounds[ROWS], counts[ROWS], total, ns = 1000;
	static const unsigned steps[] = { 1, 2, 5 };
	double seconds[ROWS];

	for (unsigned i = 0; i < ROWS; i++) {
		bounds[i] = ns * steps[i % 3];
		seconds[i] = (double)bounds[i] / 1e9;
		if (i % 3 == 2)
			ns *= 10;
	}
	total = hist_cumulate(h, bounds, counts, ROWS);
	metrics_histogram(m, l, seconds, counts, ROWS, total,
			  (double)atomic_load(&h->sum) / 1e9);
}

static void print_latencies(struct metrics *m, struct super_node *sn)
{
	metrics_family(m, "busbar_path_latency_seconds", METRICS_HISTOGRAM,
		       "From the origin of a sample to its reception");
	list_for_each(p, &sn->paths, struct path, entry) {
		struct metrics_labels l = { { { "path", p->name },
					      { "uuid", p->uuid } } };

		if (p->enabled)
			print_hist(m, &l, &p->latency);
	}
	metrics_family(m, "busbar_node_step_lateness_seconds", METRICS_HISTOGRAM,
		       "How late generators and replays took their steps");
	list_for_each(n, &sn->nodes, struct node, entry) {
		struct metrics_labels l = { { { "node", n->name },
					      { "type", n->type->name } } };

		if (n->step_late_ns && !atomic_load(&n->step_late_reset))
			print_hist(m, &l, n->step_late_ns);
	}
}

/* Of a hook `stats`, whose rows have equal widths. Nothing without memory. */
static void print_metric(struct metrics *m, const struct node *n,
			 enum stats_metric which)
{
	struct metrics_labels l = { { { "node", n->name },
				      { "type", n->type->name } } };
	struct stats_buckets b;
	double *bounds, sum;
	uint64_t *counts;

	if (!n->stats || !node_stats_buckets(n->stats, which, &b) ||
	    !(b.high > b.low))
		return;
	bounds = calloc(b.count + 1, sizeof(*bounds));
	counts = calloc(b.count + 1, sizeof(*counts));
	if (bounds && counts) {
		bounds[0] = b.low;
		counts[0] = b.lower;
		for (unsigned i = 0; i < b.count; i++) {
			bounds[i + 1] = b.low + (b.high - b.low) * (i + 1) / b.count;
			counts[i + 1] = counts[i] + atomic_load_explicit(
				&b.rows[i], memory_order_relaxed);
		}
		/* Values below zero let the sum fall, which no counter may. */
		sum = b.low < 0 ? NAN :
				  node_stats_figure(n->stats, which, STATS_MEAN) *
				  node_stats_figure(n->stats, which, STATS_TOTAL);
		metrics_histogram(m, &l, bounds, counts, b.count + 1,
				  counts[b.count] + b.higher, sum);
	}
	free(bounds);
	free(counts);
}

static void print_stats(struct metrics *m, struct super_node *sn)
{
	static const struct {
		enum stats_metric which;
		const char *family, *help;
	} shown[] = {
		{ STATS_OWD, "busbar_node_one_way_delay_seconds",
		  "From the origin of a sample to its reception (hook stats)" },
		{ STATS_AGE, "busbar_node_age_seconds",
		  "From the reception of a sample until it is sent on (hook stats)" },
		{ STATS_GAP_SENT, "busbar_node_gap_sent_seconds",
		  "Between the origins of two samples (hook stats)" },
		{ STATS_GAP_RECEIVED, "busbar_node_gap_received_seconds",
		  "Between the receptions of two samples (hook stats)" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		metrics_family(m, shown[i].family, METRICS_HISTOGRAM, shown[i].help);
		list_for_each(n, &sn->nodes, struct node, entry)
			print_metric(m, n, shown[i].which);
	}
}

static void print_gateway(struct metrics *m, struct super_node *sn)
{
	struct metrics_labels l = { { { "version", GATEWAY_VERSION },
				      { "uuid", sn->settings.uuid_text } } };

	metrics_family(m, "busbar_gateway", METRICS_GAUGE, "Version and identifier");
	metrics_count(m, &l, 1);
	metrics_family(m, "busbar_start_time_seconds", METRICS_GAUGE,
		       "When the gateway was started");
	metrics_real(m, NULL, (double)sn->started_at.tv_sec +
				      (double)sn->started_at.tv_nsec / 1e9);
	metrics_family(m, "busbar_restarts", METRICS_COUNTER,
		       "Restarts within the process");
	metrics_count(m, NULL, sn->restarts);
}

static void print_adapter_gauge(struct metrics *m, const json_t *all, const char *key,
				const char *family, const char *help)
{
	const char *name;
	json_t *o;

	metrics_family(m, family, METRICS_GAUGE, help);
	json_object_foreach((json_t *)all, name, o) {
		struct metrics_labels l = { { { "adapter", name } } };

		metrics_count(m, &l, (uint64_t)json_integer_value(
					     json_object_get(o, key)));
	}
}

static void print_adapters(struct metrics *m)
{
	json_t *all = read_adapters ? read_adapters() : NULL, *o, *value;
	const char *name, *key;

	if (!all)
		return;
	print_adapter_gauge(m, all, "queue_pairs", "busbar_adapter_queue_pairs",
			    "Queue pairs of the gateway on the adapter");
	print_adapter_gauge(m, all, "links", "busbar_adapter_links",
			    "Links of the gateway to other processes on the adapter");
	metrics_family(m, "busbar_adapter_events", METRICS_COUNTER,
		       "Counters of the gateway on the adapter, by name");
	json_object_foreach(all, name, o) {
		json_object_foreach(json_object_get(o, "counters"), key, value) {
			struct metrics_labels l = { { { "adapter", name },
						      { "counter", key } } };

			metrics_count(m, &l, (uint64_t)json_integer_value(value));
		}
	}
	json_decref(all);
}

char *metrics_text(struct super_node *sn, bool open, size_t *len)
{
	json_t *snapshot = super_node_snapshot(sn);
	const json_t *nodes = json_object_get(snapshot, "nodes");
	const json_t *paths = json_object_get(snapshot, "paths");
	char *text = NULL;
	struct metrics m = { .out = open_memstream(&text, len), .open = open };

	if (!m.out) {
		json_decref(snapshot);
		return NULL;
	}
	print_states(&m, nodes, paths);
	print_nodes(&m, nodes);
	print_paths(&m, paths);
	print_hooks(&m, nodes, paths);
	json_decref(snapshot);
	pthread_mutex_lock(&sn->control);
	print_gateway(&m, sn);
	print_figures(&m, sn);
	print_latencies(&m, sn);
	print_stats(&m, sn);
	pthread_mutex_unlock(&sn->control);
	print_adapters(&m);
	metrics_end(&m);
	return fclose(m.out) ? (free(text), NULL) : text;
}
