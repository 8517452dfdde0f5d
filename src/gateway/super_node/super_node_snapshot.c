/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings, state and statistics of a running super-node as JSON. Counters and
 * histograms are read while their writers go on, so figures of one object may be
 * some samples apart.
 */
#include <string.h>

#include "gateway/config/secret.h"
#include "gateway/plugin/hook.h"
#include "gateway/plugin/stats.h"
#include "gateway/path/path.h"
#include "gateway/super_node/super_node_control.h"
#include "gateway/super_node/super_node_private.h"
#include "util/clock.h"

static json_int_t get(const _Atomic uint64_t *counter)
{
	return (json_int_t)atomic_load_explicit(counter, memory_order_relaxed);
}

static const char *node_state_text(struct node *n)
{
	if (!n->enabled)
		return "disabled";
	if (node_is_running(n) && gate_reasons(&n->in.gate) & GATE_PAUSED)
		return "paused";
	return node_state_name(node_state(n));
}

static const char *path_state_text(struct super_node *sn, struct path *p)
{
	unsigned why = gate_reasons(&p->gate);

	if (!p->enabled)
		return "disabled";
	if (why & GATE_STOPPED || sn->state != SUPER_NODE_STARTED)
		return "stopped";
	if (why & GATE_PAUSED)
		return "paused";
	if (atomic_load(&p->ended))
		return "ended";
	for (unsigned i = 0; i < p->source_count; i++)
		if (node_is_running(p->sources[i].node) &&
		    !gate_reasons(&p->sources[i].node->in.gate))
			return "running";
	return "waiting";
}

static json_t *signals_json(const struct signal_list *l)
{
	json_t *list = json_array();

	for (unsigned i = 0; l && i < l->count; i++) {
		const struct signal *s = &l->signals[i];
		json_t *o = json_pack("{ss ss}", "name", s->name, "type",
				      signal_type_name(s->type));

		if (s->unit)
			json_object_set_new(o, "unit", json_string(s->unit));
		json_array_append_new(list, o);
	}
	return list;
}

/* A hook with its settings as they are in the configuration. Lists of hooks hold enabled ones only. */
static json_t *hook_json(const struct hook *h)
{
	json_t *o = json_is_object(h->cfg) ? secret_copy(h->cfg) : json_object();

	json_object_set_new(o, "type", json_string(h->type->name));
	json_object_set_new(o, "priority", json_integer(h->priority));
	return o;
}

static json_t *hooks_json(const struct hook_list *hooks)
{
	json_t *list = json_array();

	if (hooks)
		list_for_each(h, &hooks->hooks, struct hook, entry)
			json_array_append_new(list, hook_json(h));
	return list;
}

json_t *super_node_hooks_json(const struct hook_list *l)
{
	struct hook_figures f = hook_list_figures(l);

	return json_pack("{sI sI sI sI sI}", "dropped", (json_int_t)f.dropped,
			 "failed", (json_int_t)f.failed, "starved",
			 (json_int_t)f.starved, "held", (json_int_t)f.held,
			 "unwritten", (json_int_t)f.unwritten);
}

json_t *super_node_losses_json(const struct node *n)
{
	json_t *o = json_object();

	for (int c = 0; c < NODE_LOSSES; c++)
		json_object_set_new(o, node_loss_name((enum node_loss)c),
				    json_integer(get(&n->counters.losses[c])));
	return o;
}

json_t *super_node_figures_json(const struct node *n)
{
	json_t *o = json_object();

	for (size_t i = 0; i < n->type->figure_count; i++)
		if (n->type->figures[i].name)
			json_object_set_new(o, n->type->figures[i].name,
					    json_integer(get(&n->figures[i])));
	return o;
}

static json_t *node_stats(struct node *n)
{
	const struct node_counters *k = &n->counters;
	json_t *o;

	o = json_pack("{sI sI sI sI sI sI sI sI so so so so}", "received",
			 get(&k->received), "sent", get(&k->sent), "not_sent",
			 get(&k->not_sent), "not_stored", get(&k->not_stored),
			 "missed", node_missed_steps(n), "made_up", get(&k->made_up),
			 "lost", get(&k->lost), "reordered", get(&k->reordered),
			 "losses", super_node_losses_json(n), "in_hooks",
			 super_node_hooks_json(n->in.hooks), "out_hooks",
			 super_node_hooks_json(n->out.hooks), "figures", super_node_figures_json(n));
	/* Without steps there is none. */
	json_object_set_new(o, "step_late", super_node_steps_json(n));
	return o;
}

static json_t *latency_json(const struct path *p)
{
	const struct hist *h = &p->latency;
	json_int_t n = get(&h->count);
	double us = n ? 1e-3 : 0;

	return json_pack("{sI sf sf sf sf sf sf sf sI}", "count", n, "min_us",
			 (double)get(&h->min) * us, "mean_us", hist_mean(h) * us,
			 "p50_us", (double)hist_percentile(h, 50) * us, "p90_us",
			 (double)hist_percentile(h, 90) * us, "p99_us",
			 (double)hist_percentile(h, 99) * us, "p999_us",
			 (double)hist_percentile(h, 99.9) * us, "max_us",
			 (double)get(&h->max) * us, "below_zero",
			 get(&p->negative));
}

static json_t *path_stats(struct path *p)
{
	json_int_t queues = 0, starved = 0;

	for (unsigned i = 0; i < p->source_count; i++) {
		queues += get(&p->sources[i].overruns);
		starved += get(&p->sources[i].starved);
	}
	return json_pack("{sI sI sI sI sI sI sI sI so so}", "samples",
			 get(&p->forwarded), "dropped",
			 (json_int_t)path_dropped(p), "queue_full", queues,
			 "unmade", get(&p->unmade), "discarded",
			 get(&p->discarded), "merged", get(&p->merged),
			 "repeated", get(&p->repeated), "starved", starved,
			 "hooks", super_node_hooks_json(p->hooks), "latency",
			 latency_json(p));
}

static json_t *direction_json(const struct node_direction *d)
{
	json_t *o = json_is_object(d->cfg) ? secret_copy(d->cfg) :
					  json_object();

	json_object_set_new(o, "enabled", json_boolean(d->enabled));
	json_object_set_new(o, "vectorize", json_integer(d->vectorize));
	json_object_set_new(o, "signals", signals_json(d->signals));
	json_object_set_new(o, "hooks", hooks_json(d->hooks));
	return o;
}

static json_t *node_json(struct node *n, bool brief)
{
	char text[256] = "";
	json_t *o = brief ? json_object() : secret_copy(n->cfg);

	json_object_set_new(o, "name", json_string(n->name));
	json_object_set_new(o, "uuid", json_string(n->uuid));
	json_object_set_new(o, "type", json_string(n->type->name));
	json_object_set_new(o, "state", json_string(node_state_text(n)));
	json_object_set_new(o, "stats", node_stats(n));
	if (brief)
		return o;
	json_object_set_new(o, "enabled", json_boolean(n->enabled));
	json_object_set_new(o, "affinity", json_integer(n->affinity));
	json_object_set_new(o, "in", direction_json(&n->in));
	json_object_set_new(o, "out", direction_json(&n->out));
	if (n->type->print)
		n->type->print(n, text, sizeof(text));
	json_object_set_new(o, "status", json_string(text));
	return o;
}

static json_t *path_json(struct super_node *sn, struct path *p, bool brief)
{
	json_t *o = json_pack("{ss ss ss so}", "name", p->name, "uuid", p->uuid,
			      "state", path_state_text(sn, p), "stats",
			      path_stats(p));
	json_t *in, *out;

	if (brief)
		return o;
	in = json_array();
	out = json_array();
	for (unsigned i = 0; i < p->source_count; i++)
		json_array_append_new(in,
				      json_string(p->sources[i].node->name));
	for (unsigned d = 0; d < p->destination_count; d++)
		json_array_append_new(
			out, json_string(p->destinations[d].node->name));
	json_object_set_new(o, "in", in);
	json_object_set_new(o, "out", out);
	json_object_set_new(o, "mode", json_string(p->mode == PATH_ALL ? "all" :
									 "any"));
	json_object_set_new(o, "enabled", json_boolean(p->enabled));
	json_object_set_new(o, "reversed", json_boolean(p->reversed));
	json_object_set_new(o, "poll", json_boolean(p->polled));
	json_object_set_new(o, "direct", json_boolean(p->direct));
	json_object_set_new(o, "queuelen", json_integer(p->queuelen));
	json_object_set_new(o, "rate", json_real(p->rate_hz));
	json_object_set_new(o, "original_sequence_no",
			    json_boolean(p->original_sequence));
	json_object_set_new(o, "signals", signals_json(p->out_signals));
	json_object_set_new(o, "hooks", hooks_json(p->hooks));
	return o;
}

json_t *super_node_nodes_json(struct super_node *sn)
{
	json_t *list = json_array();

	pthread_mutex_lock(&sn->control);
	list_for_each(n, &sn->nodes, struct node, entry)
		json_array_append_new(list, node_json(n, false));
	pthread_mutex_unlock(&sn->control);
	return list;
}

json_t *super_node_node_json(struct super_node *sn, const char *id, bool brief)
{
	json_t *o = NULL;
	struct node *n;

	pthread_mutex_lock(&sn->control);
	n = super_node_node_by_id(sn, id);
	if (n)
		o = node_json(n, brief);
	pthread_mutex_unlock(&sn->control);
	return o;
}

/* The metrics of a node's hook `stats`, and its counters. */
json_t *super_node_node_stats_json(struct super_node *sn, const char *id)
{
	json_t *o = NULL, *metrics;
	struct node *n;

	pthread_mutex_lock(&sn->control);
	n = super_node_node_by_id(sn, id);
	if (n) {
		o = node_json(n, true);
		metrics = n->stats ? node_stats_json(n->stats) : NULL;
		json_object_update(o, metrics);
		json_decref(metrics);
	}
	pthread_mutex_unlock(&sn->control);
	return o;
}

json_t *super_node_paths_json(struct super_node *sn)
{
	json_t *list = json_array();

	pthread_mutex_lock(&sn->control);
	list_for_each(p, &sn->paths, struct path, entry)
		json_array_append_new(list, path_json(sn, p, false));
	pthread_mutex_unlock(&sn->control);
	return list;
}

json_t *super_node_path_json(struct super_node *sn, const char *id, bool brief)
{
	json_t *o = NULL;
	struct path *p;

	pthread_mutex_lock(&sn->control);
	p = super_node_path_by_id(sn, id);
	if (p)
		o = path_json(sn, p, brief);
	pthread_mutex_unlock(&sn->control);
	return o;
}

json_t *super_node_snapshot(struct super_node *sn)
{
	json_t *nodes = json_object(), *paths = json_array();
	double seconds = (double)(clock_now_ns() - sn->started_ns) / 1e9;

	pthread_mutex_lock(&sn->control);
	list_for_each(n, &sn->nodes, struct node, entry)
		json_object_set_new(nodes, n->name, node_json(n, true));
	list_for_each(p, &sn->paths, struct path, entry)
		json_array_append_new(paths, path_json(sn, p, true));
	pthread_mutex_unlock(&sn->control);
	return json_pack("{sf so so}", "seconds", seconds, "nodes", nodes,
			 "paths", paths);
}
