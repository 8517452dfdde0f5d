/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `fmu`: a model (FMI 2.0 or 3.0, co-simulation) that runs inside of the gateway. Samples
 * that are written are its inputs, samples that are read its outputs.
 *
 * One thread at a time calls the FMU: with pace = "sample" the one that writes the node makes a
 * step for each sample, and what comes out waits in an inbox; with pace = "clock" the one that
 * reads the node makes a step at each tick, with the inputs that were written last.
 */
#define LOG_ROOM "gateway/fmu"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/base/waiting.h"
#include "gateway/format/part/text.h"
#include "gateway/node/fmu/fmu.h"
#include "gateway/part/fault.h"
#include "gateway/part/inbox.h"
#include "gateway/part/timer.h"
#include "gateway/plugin/node.h"
#include "gateway/plugin/services.h"
#include "gateway/sample/sequence.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/log.h"

extern const struct node_type node_fmu;

enum fmu_pace { PACE_AUTO, PACE_SAMPLE, PACE_CLOCK };

static const char *const paces[] = { "auto", "sample", "clock", NULL };

enum fmu_full { FULL_BLOCK, FULL_DROP };

static const char *const fulls[] = { "block", "drop", NULL };

/* A writer does not wait longer for a reader that takes nothing. */
#define ROOM_NS UINT64_C(2000000000)

enum fmu_figure {
	FIGURE_STEPS = FAULT_KINDS,
	FIGURE_PARTIAL,
	FIGURE_DISCARDED,
	FIGURE_WARNINGS,
	FIGURE_REPLACED,
	FIGURES,
};

static const struct node_figure fmu_figures[FIGURES] = {
	[FIGURE_STEPS] = { "steps", "Steps of the model", NODE_COUNTER },
	[FIGURE_PARTIAL] = { "partial_steps", "Parts of steps that the model ended early",
			     NODE_COUNTER },
	[FIGURE_DISCARDED] = { "discarded", "Inputs that were not taken, outputs that were not given",
			       NODE_COUNTER },
	[FIGURE_WARNINGS] = { "warnings", "Calls that ended with a warning", NODE_COUNTER },
	[FIGURE_REPLACED] = { "inputs_replaced",
			      "Samples that were followed by another one before the next step",
			      NODE_COUNTER },
};

struct fmu_node {
	/* Settings. */
	const char *path, *unpack_path;
	double start_s, stop_s, step_s, tolerance, catch_up_s;
	int64_t queuelen;
	int pace, timer_kind, full;
	bool writing_turn, debug_logging;
	json_t *parameters;

	struct node *node;
	struct fmu_description about;
	bool described;             /* the archive was there when the configuration was read */
	struct fmu_experiment experiment;
	double step;                /* seconds */
	struct fmu_side in, out;
	struct fmu_start *starts;
	bool by_clock;
	struct hist *late_ns;

	/* From start to stop. */
	char folder[4096];
	struct fmu_instance instance;
	struct fault_counters faults;
	uint64_t steps;             /* since the start */
	atomic_bool running, ended;
	struct inbox inbox;
	struct waker room;          /* wakes a writer that waits for the reader */
	bool gave_up;               /* the writer has waited in vain */
	struct timer timer;
	bool has_inbox, has_timer, resumed;
	uint64_t warnings_noted, partial_noted;

	/* Values by signal: of the thread that calls the FMU; of the thread that writes. */
	union fmu_value *outputs, *inputs, *written;
	/* pace = "clock": what was written last. */
	struct spin lock;
	union fmu_value *fresh;
	bool is_fresh;
};

#define OFFSET(field) offsetof(struct fmu_node, field)

static const struct config_key fmu_keys[] = {
	{ "fmu_path", CONFIG_STRING, OFFSET(path), .required = true,
	  .help = "The FMU, a file of this host; its code runs inside of the gateway" },
	{ "fmu_unpack_path", CONFIG_STRING, OFFSET(unpack_path),
	  .help = "Folder to unpack it to, in a new folder that is removed at the stop; "
		  "$TMPDIR, else /tmp" },
	{ "start_time", CONFIG_REAL, OFFSET(start_s), .min = -1e15, .max = 1e15,
	  .help = "Simulated seconds at the start; without it those of the model, else 0" },
	{ "stop_time", CONFIG_REAL, OFFSET(stop_s), .min = -1e15, .max = 1e15,
	  .help = "Simulated seconds at which the node ends; without it never" },
	{ "step_size", CONFIG_REAL, OFFSET(step_s), .min = 1e-9, .max = 1e9,
	  .help = "Simulated seconds of a step; without it those of the model" },
	{ "tolerance", CONFIG_REAL, OFFSET(tolerance), .min = 1e-15, .max = 1,
	  .help = "Relative error of the model's solver; without it that of the model" },
	{ "pace", CONFIG_ENUM, OFFSET(pace), "auto", .names = paces,
	  .help = "sample: each sample that is written makes a step; clock: steps in real time; "
		  "auto: sample if a path writes the node" },
	{ "fmu_writing_turn", CONFIG_BOOL, OFFSET(writing_turn), "true",
	  .help = "pace = sample: false: the first step does not wait for a sample" },
	{ "parameters", CONFIG_JSON, OFFSET(parameters),
	  .help = "Values of parameters and first values of inputs, { mass = 1.5; } "
		  "or ( { name = \"body.mass\"; value = 1.5; } )",
	  .form = "'anyOf': [{'type': 'null'}, {'type': 'object', "
		  "'additionalProperties': {'type': ['number', 'boolean', 'string', 'null']}}, "
		  "{'type': 'array', 'items': {'type': 'object', 'required': ['name', 'value'], "
		  "'additionalProperties': false, 'properties': {'name': {'type': 'string'}, "
		  "'value': {'type': ['number', 'boolean', 'string']}}}}]" },
	{ "debug_logging", CONFIG_BOOL, OFFSET(debug_logging), "false",
	  .help = "Ask the model for all of its messages" },
	{ "timer", CONFIG_ENUM, OFFSET(timer_kind), "auto", .names = timer_kind_names,
	  .help = "pace = clock: as for signals" },
	TIMER_CATCH_UP_KEY(OFFSET(catch_up_s)),
};

static const struct config_key fmu_in_keys[] = {
	{ "queuelen", CONFIG_INT, OFFSET(queuelen), "1024", .min = 2, .max = 1 << 20,
	  .help = "pace = sample: outputs that may wait until they are read" },
	{ "full", CONFIG_ENUM, OFFSET(full), "block", .names = fulls,
	  .help = "pace = sample: when so many wait: block the path that writes, or drop outputs" },
};

/* ---- settings ---- */

static bool is_given(const json_t *cfg, const char *key)
{
	const json_t *v = json_object_get(cfg, key);

	return v && !json_is_null(v);
}

static int fail(struct config *c, const json_t *at, const char *key, const char *what)
{
	config_fail(c, at, key, "%s", what);
	return -EINVAL;
}

/* Takes times and tolerance from the settings, else from the model. */
static int set_experiment(struct fmu_node *f, struct config *c, const json_t *cfg)
{
	const struct fmu_description *d = &f->about;
	bool known = f->described;
	struct fmu_experiment *e = &f->experiment;

	e->start = known && !isnan(d->start) ? d->start : 0;
	if (is_given(cfg, "start_time"))
		e->start = f->start_s;
	e->stop = is_given(cfg, "stop_time") ? f->stop_s : NAN;
	e->tolerance = is_given(cfg, "tolerance") ? f->tolerance : known ? d->tolerance : NAN;
	f->step = is_given(cfg, "step_size") ? f->step_s : known ? d->step : NAN;
	if (known && !(f->step > 0 && f->step <= 1e9))
		return fail(c, cfg, "step_size",
			    "is missing: the model does not say how long a step is");
	if (e->stop <= e->start)
		return fail(c, cfg, "stop_time", "has to be later than start_time");
	return 0;
}

static int read_description(const struct fmu_node *f, struct fmu_description *d,
			    struct fmu_why *why)
{
	size_t length;
	char *text;
	int ret = fmu_archive_describe(f->path, &fmu_limits, &text, &length, why);

	if (ret)
		return ret;
	ret = fmu_description_parse(d, text, length, why);
	free(text);
	if (ret)
		fmu_description_free(d);
	return ret;
}

/* `late`: the gateway runs, so that the list of signals has to be what it was. */
static int describe_side(struct fmu_node *f, struct fmu_side *s, struct config *c, bool writes,
			 bool late)
{
	struct node *n = f->node;
	struct node_direction *d = writes ? &n->out : &n->in;
	bool used = writes ? n->is_destination : n->is_source;
	struct signal_list *l = NULL;
	int ret;

	if (!late || signal_list_is_given(d->cfg, "signals"))
		return fmu_side_parse(s, c, d->cfg, &f->about, &d->signals, writes);
	ret = fmu_side_parse(s, c, d->cfg, &f->about, &l, writes);
	if (!ret && used && (!l || !d->signals || !signal_list_equal(l, d->signals)))
		ret = l || d->signals ? -ESTALE : 0;
	signal_list_put(l);
	return ret;
}

/* Sets all that depends on modelDescription.xml. */
static int describe(struct fmu_node *f, struct config *c, const json_t *cfg, bool late)
{
	int ret = set_experiment(f, c, cfg);

	ret = describe_side(f, &f->in, c, false, late) ?: ret;
	ret = describe_side(f, &f->out, c, true, late) ?: ret;
	ret = fmu_starts_parse(&f->starts, &f->experiment.start_count, c, cfg, &f->about) ?: ret;
	f->experiment.starts = f->starts;
	return ret;
}

static int check_path(struct fmu_node *f, struct config *c, const json_t *cfg)
{
	if (!*f->path)
		return fail(c, cfg, "fmu_path", "is missing");
	if (strlen(f->path) > 4000)
		return fail(c, cfg, "fmu_path", "is too long");
	if (strstr(f->path, "://"))
		return fail(c, cfg, "fmu_path",
			    "needs the path of a file: an FMU is never loaded from elsewhere");
	return 0;
}

static int fmu_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct fmu_node *f = n->private_data;
	struct fmu_why why;
	int ret = check_path(f, c, cfg);

	f->node = n;
	n->in.follows_writer = f->pace != PACE_CLOCK;
	if (signal_list_is_given(cfg, "signals"))
		return fail(c, cfg, "signals",
			    "cannot stand here: outputs of the model stand in in.signals, inputs in out.signals");
	ret = fmu_starts_check(c, cfg) ?: ret;
	if (ret)
		return ret;
	ret = read_description(f, &f->about, &why);
	if (ret == -ENOENT) {
		config_warn(c, cfg, "fmu_path", "%s: %s; so the names of variables are not checked",
			    f->path, why.text);
		return set_experiment(f, c, cfg);
	}
	if (ret) {
		config_fail(c, cfg, "fmu_path", "%s: %s", f->path, why.text);
		return -EINVAL;
	}
	f->described = true;
	return describe(f, c, cfg, false);
}

static void forget(struct fmu_node *f)
{
	fmu_side_free(&f->in);
	fmu_side_free(&f->out);
	free(f->starts);
	f->starts = NULL;
	if (f->described)
		fmu_description_free(&f->about);
	f->described = false;
}

static void fmu_destroy(struct node *n)
{
	struct fmu_node *f = n->private_data;

	forget(f);
	free(f->late_ns);
}

static int fmu_prepare(struct node *n)
{
	struct fmu_node *f = n->private_data;

	f->by_clock = f->pace == PACE_CLOCK || (f->pace == PACE_AUTO && !n->is_destination);
	/* read() waits by itself, for the timer. */
	n->in.waits_itself = f->by_clock;
	if (!f->by_clock)
		return 0;
	f->late_ns = malloc(sizeof(*f->late_ns));
	if (!f->late_ns)
		return -ENOMEM;
	hist_init(f->late_ns);
	n->step_late_ns = f->late_ns;
	return 0;
}

/* ---- steps ---- */

static double time_at(const struct fmu_node *f, uint64_t step)
{
	return f->experiment.start + (double)step * f->step;
}

static bool is_over(const struct fmu_node *f)
{
	/* Half a step allows for rounding. */
	return time_at(f, f->steps + 1) > f->experiment.stop + 0.5 * f->step;
}

/* Ends the simulation; `why`: the reason of an end that was not planned, else NULL. */
static void end(struct fmu_node *f, const struct fmu_why *why)
{
	if (why) {
		log_error("node %s: the FMU '%s' has ended at %.9g s: %s", f->node->name, f->path,
			  time_at(f, f->steps), why->text);
		services_note_failure(f->node->services);
	} else {
		log_info("node %s: the simulation has ended at %.9g s", f->node->name,
			 time_at(f, f->steps));
	}
	atomic_store(&f->ended, true);
	if (f->has_inbox)
		inbox_interrupt(&f->inbox, true);
}

static void note_figures(struct fmu_node *f)
{
	uint64_t warnings = atomic_load_explicit(&f->instance.warnings, memory_order_relaxed);

	node_figure_add(f->node, FIGURE_STEPS, 1);
	node_figure_add(f->node, FIGURE_WARNINGS, warnings - f->warnings_noted);
	node_figure_add(f->node, FIGURE_PARTIAL, f->instance.partial - f->partial_noted);
	f->warnings_noted = warnings;
	f->partial_noted = f->instance.partial;
}

/* Sets the inputs, if there are new ones. 0, -EAGAIN: the model did not take them, or another
 * negative errno: the simulation has ended. */
static int set_inputs(struct fmu_node *f, const union fmu_value *values, struct fmu_why *why)
{
	int ret = fmu_instance_set(&f->instance, f->out.groups, f->out.group_count, values, why);

	if (ret == -EAGAIN)
		node_figure_add(f->node, FIGURE_DISCARDED, 1);
	else if (ret)
		end(f, why);
	return ret;
}

/* Makes one step. False: the simulation has ended. */
static bool step(struct fmu_node *f)
{
	struct fmu_why why;
	int ret = fmu_instance_step(&f->instance, time_at(f, f->steps), time_at(f, f->steps + 1),
				    &why);

	if (ret) {
		end(f, ret > 0 ? NULL : &why);
		return false;
	}
	f->steps++;
	note_figures(f);
	return true;
}

/* Makes a sample of the outputs. False: the model gives none. */
static bool fill(struct fmu_node *f, struct sample *s)
{
	struct node *n = f->node;
	struct fmu_why why;
	int ret = fmu_instance_get(&f->instance, f->in.groups, f->in.group_count, f->outputs, &why);

	if (ret == -EAGAIN)
		node_figure_add(n, FIGURE_DISCARDED, 1);
	else if (ret)
		end(f, &why);
	if (ret)
		return false;
	s->signals = n->in.signals;
	s->length = MIN(f->in.count, s->capacity);
	for (unsigned i = 0; i < s->length; i++)
		fmu_value_to_signal(f->in.variables[i], f->outputs[i],
				    s->signals->signals[i].type, &s->data[i]);
	s->sequence = n->sequence++;
	s->origin = clock_realtime();
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	return true;
}

/* ---- pace = sample ---- */

static bool is_interrupted(struct fmu_node *f)
{
	return atomic_load_explicit(&f->inbox.interrupted, memory_order_acquire);
}

static bool wait_for_room(struct fmu_node *f)
{
	struct ring *r = &f->inbox.rings[0];
	uint64_t since = 0;

	for (;;) {
		unsigned generation = waker_prepare(&f->room);
		uint64_t now;

		if (likely(ring_count(r) <= r->mask))
			return true;
		if (f->full == FULL_DROP || f->gave_up || is_interrupted(f))
			return false;
		now = clock_monotonic_ns_slow();
		since = since ? since : now;
		if (now - since > ROOM_NS)
			return false;
		waker_wait(&f->room, generation, ROOM_NS / 20);
	}
}

static void deliver(struct fmu_node *f)
{
	enum node_loss cause = f->full == FULL_DROP ? NODE_LOSS_FULL : NODE_LOSS_STUCK;
	struct sample *s;

	if (!f->node->is_source)
		return;
	f->gave_up = !wait_for_room(f);
	s = f->gave_up ? NULL : sample_alloc(&f->inbox.pool);
	if (!s)
		node_lose(f->node, is_interrupted(f) ? NODE_LOSS_CLOSED : cause, 1,
			  "outputs find no room; read faster or raise in.queuelen (%lld)",
			  (long long)f->queuelen);
	else if (fill(f, s))
		inbox_push(&f->inbox, 0, s);
	else
		sample_put(s);
	inbox_wake(&f->inbox);
}

/* Makes a step with the inputs of f->written. False: the model did not take the inputs. */
static bool step_by_sample(struct fmu_node *f)
{
	struct fmu_why why;
	int ret = set_inputs(f, f->written, &why);

	if (ret) {
		node_refuse(f->node, NODE_LOSS_REFUSED, 1, "%s", why.text);
		return false;
	}
	if (!step(f)) {
		node_refuse(f->node, f->instance.state == FMU_READY ? NODE_LOSS_CLOSED :
								      NODE_LOSS_REFUSED,
			    1, "the simulation has ended");
		return false;
	}
	deliver(f);
	if (!atomic_load_explicit(&f->ended, memory_order_relaxed) && is_over(f))
		end(f, NULL);
	return true;
}

/* ---- writing ---- */

/* Converts the values of a sample to f->written. */
static bool convert(struct fmu_node *f, const struct sample *s)
{
	const struct signal_list *l = s->signals ? s->signals : f->node->out.signals;

	if (s->length < f->out.count) {
		node_refuse(f->node, NODE_LOSS_FORMAT, 1,
			    "a sample has %u values, the model has %u inputs here", s->length,
			    f->out.count);
		return false;
	}
	for (unsigned i = 0; i < f->out.count; i++) {
		const struct fmu_variable *v = f->out.variables[i];
		const char *why = fmu_value_from_signal(v, text_type(l, i), &s->data[i],
							&f->written[i]);

		if (!why)
			continue;
		node_refuse(f->node, NODE_LOSS_FORMAT, 1,
			    "value %u (from 0 on) for variable '%.100s' %s", i, v->name, why);
		return false;
	}
	return true;
}

static void keep_written(struct fmu_node *f)
{
	bool replaced;

	spin_lock(&f->lock);
	replaced = f->is_fresh;
	f->is_fresh = true;
	memcpy(f->fresh, f->written, f->out.count * sizeof(*f->fresh));
	spin_unlock(&f->lock);
	if (replaced)
		node_figure_add(f->node, FIGURE_REPLACED, 1);
}

static bool take(struct fmu_node *f, const struct sample *s)
{
	if (atomic_load_explicit(&f->ended, memory_order_acquire)) {
		node_refuse(f->node, f->instance.state == FMU_READY ? NODE_LOSS_CLOSED :
								      NODE_LOSS_REFUSED,
			    1, "the simulation has ended");
		return false;
	}
	if (!convert(f, s))
		return false;
	if (!f->by_clock)
		return step_by_sample(f);
	keep_written(f);
	return true;
}

static int fmu_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct fmu_node *f = n->private_data;
	unsigned taken = 0;

	if (!atomic_load_explicit(&f->running, memory_order_acquire))
		return -EBADF;
	for (unsigned i = 0; i < cnt; i++) {
		struct sample *s = smps[i];

		if (!take(f, s))
			continue;
		smps[i] = smps[taken];
		smps[taken++] = s;
	}
	return (int)taken;
}

static bool fmu_may_wait(struct node *n)
{
	const struct fmu_node *f = n->private_data;

	return !f->by_clock;
}

/* ---- reading ---- */

static void take_fresh(struct fmu_node *f, bool *is_fresh)
{
	spin_lock(&f->lock);
	*is_fresh = f->is_fresh;
	f->is_fresh = false;
	if (*is_fresh)
		memcpy(f->inputs, f->fresh, f->out.count * sizeof(*f->inputs));
	spin_unlock(&f->lock);
}

/* Waits for the tick of the next step. 0 or -EINTR. */
static int wait_for_tick(struct fmu_node *f)
{
	struct node *n = f->node;
	uint64_t late_ns, left_out;
	int64_t ticks;

	f->timer.runs_turns = n->in.carries;
	ticks = timer_wait_step(&f->timer, &late_ns);
	if (ticks < 0)
		return (int)ticks;
	/* After a pause only the step that was taken counts as late. */
	if (f->resumed)
		late_ns = timer_step_age_ns(&f->timer);
	f->resumed = false;
	node_record_step(n, late_ns);
	if (f->timer.grid.made_up)
		atomic_fetch_add_explicit(&n->counters.made_up, 1, memory_order_relaxed);
	left_out = (uint64_t)ticks - 1;
	if (!left_out)
		return 0;
	sequence_note_left_out(n->sequence, left_out, clock_realtime());
	n->sequence += left_out;
	atomic_fetch_add_explicit(&n->counters.missed, left_out, memory_order_relaxed);
	return 0;
}

static int read_by_clock(struct fmu_node *f, struct sample *s)
{
	struct fmu_why why;
	bool is_fresh;
	int ret;

	if (atomic_load_explicit(&f->ended, memory_order_relaxed))
		return -ENODATA;
	ret = wait_for_tick(f);
	if (ret)
		return ret;
	if (is_over(f)) {
		end(f, NULL);
		return -ENODATA;
	}
	take_fresh(f, &is_fresh);
	ret = is_fresh ? set_inputs(f, f->inputs, &why) : 0;
	if ((ret && ret != -EAGAIN) || !step(f))
		return -ENODATA;
	if (fill(f, s))
		return 1;
	return atomic_load_explicit(&f->ended, memory_order_relaxed) ? -ENODATA : 0;
}

static int fmu_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct fmu_node *f = n->private_data;
	bool ended = atomic_load_explicit(&f->ended, memory_order_acquire);
	int ret;

	if (!atomic_load_explicit(&f->running, memory_order_acquire))
		return -EBADF;
	if (f->by_clock)
		return read_by_clock(f, smps[0]);
	ret = inbox_read(&f->inbox, n, &f->faults, smps, cnt);
	if (ret > 0)
		waker_wake(&f->room);
	/* Samples that came before the end are read first. */
	return ended && ret <= 0 ? -ENODATA : ret;
}

static void fmu_sleep(struct node *n, uint64_t until_ns)
{
	struct fmu_node *f = n->private_data;

	inbox_sleep_until(&f->inbox, until_ns);
}

static int fmu_poll_fds(struct node *n, int fds[], int max)
{
	struct fmu_node *f = n->private_data;

	if (f->has_inbox && !f->by_clock)
		return inbox_poll_fds(&f->inbox, fds, max);
	if (!f->has_timer || max < 1)
		return 0;
	fds[0] = timer_poll_fd(&f->timer, false);
	return 1;
}

static void fmu_interrupt(struct node *n)
{
	struct fmu_node *f = n->private_data;

	if (f->has_inbox)
		inbox_interrupt(&f->inbox, true);
	waker_wake(&f->room);
	if (f->has_timer)
		timer_interrupt(&f->timer);
}

static void fmu_rearm(struct node *n)
{
	struct fmu_node *f = n->private_data;

	if (f->has_inbox)
		inbox_interrupt(&f->inbox, atomic_load(&f->ended));
	if (f->has_timer)
		timer_rearm(&f->timer);
}

static void fmu_resume(struct node *n)
{
	struct fmu_node *f = n->private_data;

	if (f->has_timer)
		timer_grid_forgive(&f->timer.grid);
	f->resumed = true;
}

/* ---- start and stop ---- */

static bool is_same(const struct fmu_description *a, const struct fmu_description *b)
{
	if (a->version != b->version || a->count != b->count || strcmp(a->token, b->token) ||
	    strcmp(a->identifier, b->identifier))
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct fmu_variable *v = &a->variables[i], *w = &b->variables[i];

		if (strcmp(v->name, w->name) || v->reference != w->reference ||
		    v->type != w->type || v->causality != w->causality || v->array != w->array)
			return false;
	}
	return true;
}

/* The archive may have come, or have been replaced, since the configuration was read. */
static int describe_again(struct fmu_node *f, struct fmu_why *why)
{
	struct fmu_description now;
	int ret = read_description(f, &now, why);

	if (ret)
		return ret;
	if (f->described && is_same(&now, &f->about)) {
		fmu_description_free(&now);
		return 0;
	}
	forget(f);
	f->about = now;
	f->described = true;
	ret = describe(f, f->node->config, f->node->cfg, true);
	if (!ret)
		return 0;
	forget(f);
	return fmu_why(why, ret,
		       "it is another one than when the configuration was read, which does not fit it; restart the gateway");
}

static int make_values(struct fmu_node *f)
{
	size_t in = f->in.count + 1, out = f->out.count + 1;

	f->outputs = calloc(in, sizeof(*f->outputs));
	f->inputs = calloc(out, sizeof(*f->inputs));
	f->written = calloc(out, sizeof(*f->written));
	f->fresh = calloc(out, sizeof(*f->fresh));
	f->is_fresh = false;
	return f->outputs && f->inputs && f->written && f->fresh ? 0 : -ENOMEM;
}

static int load(struct fmu_node *f, struct fmu_why *why)
{
	const char *temporary = getenv("TMPDIR");
	const char *parent = f->unpack_path && *f->unpack_path ? f->unpack_path :
			     temporary && *temporary ? temporary : "/tmp";
	struct fmu_instance *i = &f->instance;
	char name[100];
	int ret;

	*i = (struct fmu_instance){ .name = f->node->name, .about = &f->about, .faults = &f->faults,
				    .logging = f->debug_logging };
	snprintf(name, sizeof(name), "busbar-fmu-%s", f->node->name);
	ret = describe_again(f, why);
	ret = ret ?: fmu_archive_unpack(f->path, parent, name, &fmu_limits, f->folder,
					sizeof(f->folder), why);
	if (ret)
		f->folder[0] = '\0';
	ret = ret ?: fmu_instance_load(i, f->folder, why);
	ret = ret ?: fmu_instance_check(i, f->in.groups, f->in.group_count, false, why);
	ret = ret ?: fmu_instance_check(i, f->out.groups, f->out.group_count, true, why);
	return ret ?: fmu_instance_begin(i, &f->experiment, why);
}

static int open_waiting(struct fmu_node *f, struct fmu_why *why)
{
	int ret;

	if (f->by_clock) {
		ret = timer_open(&f->timer, (enum timer_kind)f->timer_kind, 1 / f->step);
		f->has_timer = !ret;
		if (ret)
			return fmu_why(why, ret, "no timer: %s", strerror(-ret));
		timer_set_catch_up(&f->timer, f->catch_up_s);
		timer_start(&f->timer, 1 / f->step);
		return 0;
	}
	f->inbox = (struct inbox){ .event_fd = -1 };
	f->gave_up = false;
	ret = inbox_init(&f->inbox, 1, (unsigned)f->queuelen, f->in.count + 1);
	f->has_inbox = true;
	return ret ? fmu_why(why, ret, "no queue: %s", strerror(-ret)) : 0;
}

static void clean_up(struct fmu_node *f)
{
	atomic_store(&f->running, false);
	fmu_instance_close(&f->instance);
	if (f->folder[0])
		fmu_folder_remove(f->folder);
	if (f->has_inbox)
		inbox_destroy(&f->inbox);
	if (f->has_timer)
		timer_close(&f->timer);
	f->has_inbox = f->has_timer = false;
	f->folder[0] = '\0';
	free(f->outputs);
	free(f->inputs);
	free(f->written);
	free(f->fresh);
	f->outputs = f->inputs = f->written = f->fresh = NULL;
}

static void tell_start(const struct fmu_node *f)
{
	const struct node *n = f->node;

	log_info("node %s: model %s of FMI %u.0, %u outputs, %u inputs, %u parameters, steps of %.9g s",
		 n->name, f->about.model, f->about.version, f->in.count, f->out.count,
		 f->experiment.start_count, f->step);
	if (n->services && f->by_clock && !n->is_source)
		log_warn("node %s: no path reads it, so the model makes no step", n->name);
	if (n->services && !f->by_clock && !n->is_destination)
		log_warn("node %s: no path writes it, so the model makes no step", n->name);
}

static int fmu_start_node(struct node *n)
{
	struct fmu_node *f = n->private_data;
	struct fmu_why why;
	int ret;

	f->faults.node = n;
	f->steps = f->warnings_noted = f->partial_noted = 0;
	atomic_store(&f->ended, false);
	ret = load(f, &why);
	if (!ret)
		ret = make_values(f) ? fmu_why(&why, -ENOMEM, "no memory") : open_waiting(f, &why);
	if (ret) {
		log_error("node %s: the FMU '%s': %s", n->name, f->path, why.text);
		clean_up(f);
		return ret;
	}
	tell_start(f);
	atomic_store_explicit(&f->running, true, memory_order_release);
	if (!f->by_clock && !f->writing_turn && !is_over(f) && step(f))
		deliver(f);
	return 0;
}

static int fmu_stop_node(struct node *n)
{
	struct fmu_node *f = n->private_data;

	uint64_t left = 0;

	for (struct sample *s; f->has_inbox && (s = ring_pop(&f->inbox.rings[0])); left++)
		sample_put(s);
	node_lose(n, NODE_LOSS_CLOSED, left, "it stops while outputs wait to be read");
	fault_finish(&f->faults);
	clean_up(f);
	return 0;
}

static void fmu_print(struct node *n, char *buf, size_t size)
{
	const struct fmu_node *f = n->private_data;

	snprintf(buf, size, "fmu_path %s, step_size %.9g, pace %s", f->path, f->step,
		 paces[f->pace]);
}

const struct node_type node_fmu = {
	.name = "fmu",
	.description = "A model of FMI 2.0 or 3.0 for co-simulation",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_GENERATES,
	.size = sizeof(struct fmu_node),
	.keys = fmu_keys,
	.key_count = ARRAY_SIZE(fmu_keys),
	.in_keys = fmu_in_keys,
	.in_key_count = ARRAY_SIZE(fmu_in_keys),
	.signal_keys = fmu_signal_keys,
	.signal_key_count = FMU_SIGNAL_KEYS,
	.figures = fmu_figures,
	.figure_count = ARRAY_SIZE(fmu_figures),
	.parse = fmu_parse,
	.prepare = fmu_prepare,
	.start = fmu_start_node,
	.stop = fmu_stop_node,
	.destroy = fmu_destroy,
	.read = fmu_read,
	.write = fmu_write,
	.sleep = fmu_sleep,
	.may_wait = fmu_may_wait,
	.interrupt = fmu_interrupt,
	.rearm = fmu_rearm,
	.resume = fmu_resume,
	.poll_fds = fmu_poll_fds,
	.print = fmu_print,
};
