/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures of a running or ended super-node, for people and programs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/hook.h"
#include "gateway/plugin/node.h"
#include "gateway/path/path.h"
#include "gateway/super_node/super_node.h"
#include "gateway/super_node/super_node_private.h"
#include "util/clock.h"

#define COUNTERS(X) \
	X(received) X(sent) X(not_sent) X(not_stored) X(lost) X(reordered) \
	X(made_up)

static uint64_t get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static double run_seconds(const struct super_node *sn)
{
	uint64_t end = sn->stopped_ns ? sn->stopped_ns : clock_now_ns();

	return (double)(end - sn->started_ns) / 1e9;
}

static double us(const struct hist *h, double percent)
{
	return (double)hist_percentile(h, percent) / 1e3;
}

static double max_us(const struct hist *h)
{
	return (double)get(&h->max) / 1e3;
}

static void print_queues(const struct path *p, FILE *out)
{
	for (unsigned i = 0; i < p->source_count; i++)
		if (get(&p->sources[i].overruns))
			fprintf(out, "  %" PRIu64 " of node %s found their queue full\n",
				get(&p->sources[i].overruns),
				p->sources[i].node->name);
	if (path_unmade(p))
		fprintf(out, "  %" PRIu64 " outputs found no free sample\n",
			path_unmade(p));
}

static bool has_steps(const struct node *n)
{
	return n->step_late_ns && get(&n->step_late_ns->count) &&
	       !atomic_load(&n->step_late_reset);
}

/* Of generators: latencies that are counted from the time at which a late step was
 * made say nothing of its lateness. */
static void print_steps(struct super_node *sn, FILE *out)
{
	list_for_each(n, &sn->nodes, struct node, entry) {
		const struct hist *h = n->step_late_ns;

		if (!has_steps(n))
			continue;
		fprintf(out,
			"%-16s steps late p50 %.3f us p99 %.3f us p99.9 %.3f us max %.3f us, %s the latencies of its samples\n",
			n->name, us(h, 50), us(h, 99), us(h, 99.9), max_us(h),
			n->origin_planned ? "part of" : "not part of");
	}
}

/* Prints the losses by cause, and the figure `malformed` of node-types that have it. */
static void print_losses(const struct node *n, FILE *out)
{
	for (size_t i = 0; n->figures && i < n->type->figure_count; i++)
		if (n->type->figures[i].name && get(&n->figures[i]) &&
		    !strcmp(n->type->figures[i].name, "malformed"))
			fprintf(out, "  %" PRIu64 " malformed\n", get(&n->figures[i]));
	for (int c = 0; c < NODE_LOSSES; c++)
		if (get(&n->counters.losses[c]))
			fprintf(out, "  %" PRIu64 " lost: %s\n",
				get(&n->counters.losses[c]),
				node_loss_text((enum node_loss)c));
}

static void print_hooks(const struct hook_list *l, FILE *out)
{
	if (!l)
		return;
	list_for_each(h, &l->hooks, struct hook, entry) {
		if (get(&h->dropped))
			fprintf(out, "  %" PRIu64 " left out by hook %s of %s\n",
				get(&h->dropped), h->type->name, h->owner);
		if (get(&h->errors))
			fprintf(out, "  %" PRIu64 " could not be processed by hook %s of %s\n",
				get(&h->errors), h->type->name, h->owner);
		if (get(&h->unwritten))
			fprintf(out, "  %" PRIu64 " are not in the file of hook %s of %s\n",
				get(&h->unwritten), h->type->name, h->owner);
	}
}

void super_node_print_summary(struct super_node *sn, FILE *out)
{
	double seconds = run_seconds(sn);

	fprintf(out, "ran %.3f s\n\n%-32s %10s %11s %9s %9s %9s %9s %8s\n",
		seconds, "path", "samples", "samples/s", "p50 us", "p99 us",
		"p99.9 us", "max us", "dropped");
	list_for_each(p, &sn->paths, struct path, entry) {
		uint64_t n = get(&p->forwarded);

		if (!p->enabled)
			continue;
		fprintf(out, "%-32s %10" PRIu64 " %11.1f", p->name, n,
			seconds > 0 ? (double)n / seconds : 0.0);
		if (get(&p->latency.count))
			fprintf(out, " %9.3f %9.3f %9.3f %9.3f",
				us(&p->latency, 50), us(&p->latency, 99),
				us(&p->latency, 99.9), max_us(&p->latency));
		else
			fprintf(out, " %9s %9s %9s %9s", "-", "-", "-", "-");
		fprintf(out, " %8" PRIu64 "\n", path_dropped(p));
		print_queues(p, out);
		print_hooks(p->hooks, out);
	}
	fprintf(out, "\n%-16s %-12s %-10s %10s %10s %9s %8s %9s %8s %8s\n",
		"node", "type", "state", "received", "sent", "not sent", "lost",
		"reordered", "missed", "made up");
	list_for_each(n, &sn->nodes, struct node, entry) {
		const struct node_counters *k = &n->counters;

		fprintf(out,
			"%-16s %-12s %-10s %10" PRIu64 " %10" PRIu64
			" %9" PRIu64 " %8" PRIu64 " %9" PRIu64 " %8" PRIu64
			" %8" PRIu64 "\n",
			n->name, n->type->name, node_state_name(node_state(n)),
			get(&k->received), get(&k->sent) - get(&k->not_stored),
			get(&k->not_sent) + get(&k->not_stored),
			get(&k->lost), get(&k->reordered), node_missed_steps(n),
			get(&k->made_up));
		print_losses(n, out);
		print_hooks(n->in.hooks, out);
		print_hooks(n->out.hooks, out);
	}
	fputs("\nlatency: from the origin timestamp of a sample to its receive timestamp\n",
	      out);
	print_steps(sn, out);
	if (super_node_losses(sn))
		fprintf(out,
			"\n%" PRIu64 " samples were lost that the configuration does not allow to be lost\n",
			super_node_losses(sn));
}

json_t *super_node_steps_json(const struct node *n)
{
	const struct hist *h = n->step_late_ns;

	if (!has_steps(n))
		return NULL;
	return json_pack("{sI sf sf sf sf sf sb}", "count",
			 (json_int_t)get(&h->count), "mean_us",
			 hist_mean(h) / 1e3, "p50_us", us(h, 50), "p99_us",
			 us(h, 99), "p999_us", us(h, 99.9), "max_us", max_us(h),
			 "in_latency", n->origin_planned);
}

static json_t *latency_json(const struct path *p)
{
	const struct hist *h = &p->latency;

	return json_pack("{sI sf sf sf sf sf sf sI}", "count",
			 (json_int_t)get(&h->count), "min_us",
			 get(&h->count) ? (double)get(&h->min) / 1e3 : 0.0,
			 "mean_us", hist_mean(h) / 1e3, "p50_us", us(h, 50),
			 "p99_us", us(h, 99), "p999_us", us(h, 99.9), "max_us",
			 max_us(h), "below_zero",
			 (json_int_t)get(&p->negative));
}

/* What each queue of a path, and the path itself for want of a free sample,
 * dropped. */
static json_t *queues_json(const struct path *p)
{
	json_t *queues = json_array();

	for (unsigned i = 0; i < p->source_count; i++)
		json_array_append_new(
			queues, json_pack("{ss sI}", "node",
					  p->sources[i].node->name, "dropped",
					  (json_int_t)get(
						  &p->sources[i].overruns)));
	if (path_unmade(p))
		json_array_append_new(queues,
				      json_pack("{sn sI}", "node", "dropped",
						(json_int_t)path_unmade(p)));
	return queues;
}

json_t *super_node_summary(struct super_node *sn)
{
	json_t *paths = json_array(), *nodes = json_object();

	list_for_each(p, &sn->paths, struct path, entry)
		if (p->enabled)
			json_array_append_new(
				paths,
				json_pack("{ss sI sI so so so}", "path", p->name,
					  "samples",
					  (json_int_t)get(&p->forwarded),
					  "dropped", (json_int_t)path_dropped(p),
					  "queues", queues_json(p), "hooks",
					  super_node_hooks_json(p->hooks),
					  "latency", latency_json(p)));
	list_for_each(n, &sn->nodes, struct node, entry) {
		const struct node_counters *k = &n->counters;
		json_t *o = json_pack("{ss ss}", "type", n->type->name,
				      "state", node_state_name(node_state(n)));

#define ADD(name) \
	json_object_set_new(o, #name, json_integer((json_int_t)get(&k->name)));
		COUNTERS(ADD)
		json_object_set_new(o, "missed", json_integer((json_int_t)node_missed_steps(n)));
		json_object_set_new(o, "step_late", super_node_steps_json(n));
		json_object_set_new(o, "losses", super_node_losses_json(n));
		json_object_set_new(o, "in_hooks", super_node_hooks_json(n->in.hooks));
		json_object_set_new(o, "out_hooks", super_node_hooks_json(n->out.hooks));
		json_object_set_new(o, "figures", super_node_figures_json(n));
		json_object_set_new(nodes, n->name, o);
	}
	return json_pack("{sf so so sI}", "seconds", run_seconds(sn), "paths",
			 paths, "nodes", nodes, "losses_not_allowed",
			 (json_int_t)super_node_losses(sn));
}

void super_node_progress(struct super_node *sn, char *buf, size_t size)
{
	struct hist *all = malloc(sizeof(*all));
	uint64_t received = 0, lost = 0, missed = 0, now = clock_now_ns();
	double seconds = (double)(now - sn->progress_ns) / 1e9;

	pthread_mutex_lock(&sn->control);
	list_for_each(n, &sn->nodes, struct node, entry) {
		received += get(&n->counters.received);
		lost += get(&n->counters.lost) + get(&n->counters.not_sent) +
			get(&n->counters.not_stored);
		missed += get(&n->counters.missed);
	}
	if (all) {
		hist_init(all);
		list_for_each(p, &sn->paths, struct path, entry)
			if (p->enabled)
				hist_merge(all, &p->latency);
	}
	pthread_mutex_unlock(&sn->control);
	if (!all) {
		snprintf(buf, size, "%" PRIu64 " samples", received);
		return;
	}
	snprintf(buf, size,
		 "%.0f samples/s  latency p50 %.2f us p99 %.2f us max %.2f us  lost %" PRIu64
		 "  missed %" PRIu64,
		 seconds > 0 ?
			 (double)(received - sn->progress_received) / seconds :
			 0.0,
		 us(all, 50), us(all, 99), max_us(all), lost, missed);
	sn->progress_ns = now;
	sn->progress_received = received;
	free(all);
}
