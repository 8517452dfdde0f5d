/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generating samples; see source.h.
 *
 * The values of a step are made before the wait for it, so that its sample leaves at once.
 *
 * The origin is stamped after the wait for the step, so that the one-way delay
 * of a sample holds no part of the period. But then a step that is late looks as fast
 * as any other: how late each was is recorded beside it, and `origin = "planned"`
 * stamps the time at which it was due. A missed step leaves a gap in the
 * sequence numbers and is counted, one that is made up is counted too; nothing is
 * printed on the data path.
 */
#define LOG_ROOM "gateway/signal"
#include "gateway/part/signal_source.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/sequence.h"
#include "util/clock.h"
#include "util/hist.h"
#include "util/log.h"
#include "util/num.h"

/* Samples at a time when nothing is waited for, unless the configuration says
 * otherwise. */
#define BATCH 64

#define FIELD(field) offsetof(struct generator_value, field)

const struct signal_setting signal_settings[SIGNAL_SETTING_COUNT] = {
	{ "frequency", FIELD(frequency_hz), 1.0 },
	{ "amplitude", FIELD(amplitude), 1.0 },
	{ "stddev", FIELD(stddev), 0.2 },
	{ "offset", FIELD(offset), 0.0 },
	{ "phase", FIELD(phase_rad), 0.0 },
	{ "pulse_width", FIELD(pulse_width), 1.0 },
	{ "pulse_low", FIELD(pulse_low), 0.0 },
	{ "pulse_high", FIELD(pulse_high), 1.0 },
};

int signal_source_init(struct signal_source *s, unsigned count)
{
	s->generator.count = count;
	s->generator.rate_hz = s->rate_hz;
	s->generator.values = calloc(count, sizeof(s->generator.values[0]));
	s->ready = calloc(count, sizeof(s->ready[0]));
	s->late_ns = malloc(sizeof(*s->late_ns));
	if (!s->generator.values || !s->ready || !s->late_ns)
		return -ENOMEM;
	hist_init(s->late_ns);
	for (unsigned i = 0; i < count; i++) {
		struct generator_value *v = &s->generator.values[i];

		v->waveform = generator_mixed(i);
		for (size_t k = 0; k < SIGNAL_SETTING_COUNT; k++)
			memcpy((char *)v + signal_settings[k].field,
			       &signal_settings[k].fallback, sizeof(double));
	}
	return 0;
}

static bool number_of(const json_t *j, double *value)
{
	const char *text = json_string_value(j);

	if (json_is_number(j)) {
		*value = json_number_value(j);
		return isfinite(*value);
	}
	return text && num_parse_double(text, text + strlen(text), value) ==
			       text + strlen(text);
}

int signal_source_set(struct signal_source *s, unsigned index,
		      const struct signal_setting *setting, const json_t *j,
		      struct config *c, const json_t *at)
{
	struct generator_value *v = &s->generator.values[index];
	double number;

	if (!j)
		return 0;
	if (!number_of(j, &number)) {
		config_fail(c, at, setting->key,
			    "expected a number or a list of numbers");
		return -EINVAL;
	}
	if (setting->field == FIELD(frequency_hz) && !(number > 0)) {
		config_fail(c, at, setting->key, "must be above 0");
		return -EINVAL;
	}
	memcpy((char *)v + setting->field, &number, sizeof(number));
	return 0;
}

int signal_source_set_shape(struct signal_source *s, unsigned index,
			    const json_t *j, struct config *c,
			    const json_t *at)
{
	const char *name = json_string_value(j);

	if (!j)
		return 0;
	for (int w = 0; name && waveform_names[w]; w++) {
		if (strcmp(name, waveform_names[w]))
			continue;
		if (w != WAVEFORM_MIXED)
			s->generator.values[index].waveform = (enum waveform)w;
		return 0;
	}
	config_fail(c, at, "signal",
		    "%s%s%s is no waveform; there are mixed, random, sine, square, triangle, ramp, counter, constant and pulse",
		    name ? "'" : "", name ? name : "this", name ? "'" : "");
	return -EINVAL;
}

static bool is_first(const struct generator *g, unsigned index)
{
	for (unsigned i = 0; i < index; i++)
		if (g->values[i].waveform == g->values[index].waveform)
			return false;
	return true;
}

/*
 * Names of what is generated, unless the configuration has names of its own: sine,
 * and sine3 for another one. Files for VILLASnode, where all are called sine, find
 * what they name.
 */
static int name_signals(struct node *n, const struct generator *g)
{
	struct signal_list *l = signal_list_new(g->count, SIGNAL_FLOAT);

	for (unsigned i = 0; l && i < g->count; i++) {
		const char *shape = waveform_names[g->values[i].waveform];
		char *name;

		if ((is_first(g, i) ? asprintf(&name, "%s", shape) :
				      asprintf(&name, "%s%u", shape, i)) < 0) {
			signal_list_put(l);
			return -ENOMEM;
		}
		free(l->signals[i].name);
		l->signals[i].name = name;
	}
	if (!l)
		return -ENOMEM;
	signal_list_put(n->in.signals);
	n->in.signals = l;
	return 0;
}

int signal_source_ready(struct node *n, struct signal_source *s, json_t *cfg,
			bool named)
{
	/* Many at a time cost less, and where nothing is waited for none of
	 * them waits for another. */
	if (!s->realtime && !json_object_get(cfg, "vectorize") &&
	    !(n->in.cfg && json_object_get(n->in.cfg, "vectorize")))
		n->in.vectorize = BATCH;
	s->generator.own_seed = json_object_get(cfg, "seed") != NULL;
	s->generator.seed = (uint32_t)s->seed;
	s->period_ns = 1e9 / s->rate_hz;
	if (s->realtime)
		n->step_late_ns = s->late_ns;
	n->origin_planned = !s->realtime || s->origin == ORIGIN_PLANNED;
	return named ? 0 : name_signals(n, &s->generator);
}

void signal_source_destroy(struct node *n)
{
	struct signal_source *s = n->private_data;

	free(s->generator.values);
	free(s->ready);
	free(s->late_ns);
}

int signal_source_start(struct node *n)
{
	struct signal_source *s = n->private_data;
	int ret;

	ret = timer_open(&s->timer, (enum timer_kind)s->timer_kind, s->rate_hz);
	if (ret)
		return ret;
	s->timer_open = true;
	s->steps = 0;
	s->ready_step = UINT64_MAX;
	hist_reset(s->late_ns);
	generator_start(&s->generator);
	s->started = clock_realtime();
	timer_set_catch_up(&s->timer, s->catch_up_s);
	if (s->realtime)
		timer_start(&s->timer, s->rate_hz);
	return 0;
}

int signal_source_stop(struct node *n)
{
	struct signal_source *s = n->private_data;

	if (!s->timer_open)
		return 0;
	s->timer_open = false;
	if (s->realtime && s->monitor_missed && s->steps)
		log_info("node %s: steps %ju missed %ju made up %ju late p50 %.1f us p99 %.1f us max %.1f us timer %s",
			 n->name, (uintmax_t)s->steps,
			 (uintmax_t)atomic_load(&n->counters.missed),
			 (uintmax_t)atomic_load(&n->counters.made_up),
			 (double)hist_percentile(s->late_ns, 50) / 1e3,
			 (double)hist_percentile(s->late_ns, 99) / 1e3,
			 (double)hist_percentile(s->late_ns, 100) / 1e3,
			 timer_kind_name(s->timer.kind));
	timer_close(&s->timer);
	return 0;
}

/* All steps are taken, and `more` besides. */
static bool at_end(const struct signal_source *s, uint64_t more)
{
	return s->limit > 0 && s->steps >= (uint64_t)s->limit + more;
}

/* Waits for the step that the next sample belongs to. In real time the end comes
 * when a next step would: what other generators make in the last one counts. */
static int take_step(struct node *n, struct signal_source *s)
{
	uint64_t late_ns;
	int64_t steps = 1;

	if (!s->realtime && unlikely(at_end(s, 0)))
		return -ENODATA;
	if (s->realtime) {
		s->timer.runs_turns = n->in.carries;
		steps = timer_wait_step(&s->timer, &late_ns);
		if (steps < 0)
			return (int)steps;
		if (unlikely(at_end(s, 0)))
			return -ENODATA;
		/* Of a pause only the step that was taken counts. */
		if (unlikely(s->resumed))
			late_ns = timer_step_age_ns(&s->timer);
		s->resumed = false;
		node_record_step(n, late_ns);
		if (unlikely(s->timer.grid.made_up))
			atomic_fetch_add_explicit(&n->counters.made_up, 1,
						  memory_order_relaxed);
	}
	if (unlikely(steps > 1)) {
		n->sequence += (uint64_t)steps - 1;
		atomic_fetch_add_explicit(&n->counters.missed,
					  (uint64_t)steps - 1,
					  memory_order_relaxed);
	}
	s->left_out = (uint64_t)steps - 1;
	s->steps += (uint64_t)steps;
	return unlikely(at_end(s, 1)) ? -ENODATA : 0;
}

static void stamp(const struct signal_source *s, struct sample *smp, uint64_t step)
{
	smp->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	if (unlikely(!s->realtime)) {
		smp->origin = timespec_from_ns(
			timespec_to_ns(s->started) +
			(uint64_t)((double)step / s->rate_hz * 1e9));
		return;
	}
	if (s->origin == ORIGIN_ACTUAL) {
		smp->origin = clock_realtime();
		return;
	}
	smp->origin = timer_planned_time(&s->timer,
					 timer_grid_taken_ns(&s->timer.grid),
					 &smp->received);
	smp->flags |= SAMPLE_HAS_RECEIVED;
}

static void store(union signal_data *d, enum signal_type type, double v)
{
	switch (type) {
	case SIGNAL_FLOAT:
		d->f = v;
		break;
	case SIGNAL_INTEGER:
		d->i = signal_type_to_integer(v);
		break;
	case SIGNAL_BOOLEAN:
		d->i = v > 0;
		break;
	case SIGNAL_COMPLEX:
		d->z.re = (float)v;
		d->z.im = 0.0f;
		break;
	}
}

/*
 * Makes the values of `step`, unless they are there. Where those of an earlier step were made and
 * that step was missed, all are made again but those of random walks, which take one step for each
 * sample.
 */
static void make_ready(struct signal_source *s, uint64_t step)
{
	struct generator *g = &s->generator;

	if (s->ready_step == step)
		return;
	for (unsigned i = 0; i < g->count; i++)
		if (s->ready_step == UINT64_MAX || !generator_is_walk(g, i))
			s->ready[i] = generator_next(g, i, step);
	s->ready_step = step;
}

int signal_source_read(struct node *n, struct sample *smps[], unsigned cnt,
		       unsigned *release)
{
	struct signal_source *s = n->private_data;
	struct signal_list *signals = n->in.signals;
	unsigned filled = 0;

	/* In real time each sample goes out at its own instant. */
	if (s->realtime)
		cnt = MIN(cnt, 1u);
	for (; filled < cnt; filled++) {
		struct sample *smp = smps[filled];
		uint64_t step;
		int ret;

		if (unlikely(filled && at_end(s, 0)))
			return (int)filled;
		if (s->realtime)
			make_ready(s, s->steps);
		ret = take_step(n, s);
		if (unlikely(ret))
			return ret;
		step = s->steps - 1;
		stamp(s, smp, step);
		if (unlikely(s->left_out))
			sequence_note_left_out(n->sequence - s->left_out, s->left_out,
					       smp->origin);
		make_ready(s, step);
		smp->signals = signals;
		smp->length = MIN(s->generator.count, smp->capacity);
		for (unsigned i = 0; i < smp->length; i++)
			store(&smp->data[i], signals->signals[i].type, s->ready[i]);
		s->ready_step = UINT64_MAX;
		smp->sequence = n->sequence++;
	}
	return (int)filled;
}

void signal_source_interrupt(struct node *n)
{
	struct signal_source *s = n->private_data;

	if (s->timer_open)
		timer_interrupt(&s->timer);
}

void signal_source_rearm(struct node *n)
{
	struct signal_source *s = n->private_data;

	if (s->timer_open)
		timer_rearm(&s->timer);
}

void signal_source_resume(struct node *n)
{
	struct signal_source *s = n->private_data;

	if (s->timer_open)
		timer_grid_forgive(&s->timer.grid);
	s->resumed = true;
}

int signal_source_poll_fds(struct node *n, int fds[], int max)
{
	struct signal_source *s = n->private_data;

	if (!s->timer_open || max < 1)
		return 0;
	fds[0] = timer_poll_fd(&s->timer, !s->realtime);
	return 1;
}

void signal_source_print(struct node *n, char *buf, size_t size)
{
	const struct signal_source *s = n->private_data;
	const struct generator *g = &s->generator;
	bool same = true;

	for (unsigned i = 1; i < g->count; i++)
		same &= g->values[i].waveform == g->values[0].waveform;
	snprintf(buf, size, "signal %s values %u rate %g%s",
		 same ? waveform_names[g->values[0].waveform] : "mixed",
		 g->count, s->rate_hz, s->realtime ? "" : " not in real time");
}
