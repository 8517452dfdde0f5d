/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `signal`: generates samples of known shape at a fixed rate.
 *
 * The origin is stamped after the wait for the step, so that the one-way delay
 * of a sample holds no part of the period. A missed step leaves a gap in the
 * sequence numbers and is counted; nothing is printed on the data path.
 */
#define LOG_ROOM "gateway/signal"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node.h"
#include "gateway/node/signal/generator.h"
#include "gateway/node/signal/timer.h"
#include "util/clock.h"
#include "util/hist.h"
#include "util/log.h"
#include "util/num.h"

#define VALUES_MAX 65536

struct signal_node {
	/* Settings. */
	json_t *signal, *frequency, *amplitude, *stddev, *offset, *phase,
		*pulse_width, *pulse_low, *pulse_high;
	int64_t values, limit, seed;
	double rate_hz;
	bool realtime, monitor_missed;
	int timer_kind;

	struct generator generator;
	struct timer timer;
	bool timer_open;
	struct timespec started;
	uint64_t steps;         /* taken, the missed ones included */
	struct hist *late_ns;
};

#define OFFSET(field) offsetof(struct signal_node, field)

/* A value for all, or a list with one for each. */
#define PER_VALUE(key, text) \
	{ #key, CONFIG_JSON, OFFSET(key), .help = text }

static const struct config_key signal_keys[] = {
	PER_VALUE(signal, "mixed, random, sine, square, triangle, ramp, "
			  "counter, constant or pulse; mixed (the default) "
			  "gives each value another one"),
	{ "values", CONFIG_INT, OFFSET(values), "0", .min = 0, .max = VALUES_MAX,
	  .help = "Values in a sample; 0: as many as the lists hold, else 1" },
	{ "rate", CONFIG_REAL, OFFSET(rate_hz), "10", .min = 1e-6, .max = 1e9,
	  .help = "Samples per second" },
	PER_VALUE(frequency, "Of the signal in Hz, 1; of a ramp its period in s"),
	PER_VALUE(amplitude, "1"),
	PER_VALUE(stddev, "Standard deviation of a random walk's step, 0.2"),
	PER_VALUE(offset, "Added to every value, 0; where a random walk starts"),
	PER_VALUE(phase, "In radians, 0"),
	PER_VALUE(pulse_width, "Steps that a pulse lasts, 1"),
	PER_VALUE(pulse_low, "Value between pulses, 0"),
	PER_VALUE(pulse_high, "Value of a pulse, 1"),
	{ "limit", CONFIG_INT, OFFSET(limit), "-1",
	  .help = "End after this many steps; 0 and below: never" },
	{ "realtime", CONFIG_BOOL, OFFSET(realtime), "true",
	  .help = "Wait for each step; false: as fast as samples are taken, "
		  "stamped as if the rate had been kept" },
	{ "monitor_missed", CONFIG_BOOL, OFFSET(monitor_missed), "true",
	  .help = "Report missed steps and lateness at the end" },
	{ "timer", CONFIG_ENUM, OFFSET(timer_kind), "auto",
	  .names = timer_kind_names,
	  .help = "timerfd: sleeps, for moderate rates; tsc: spins before each "
		  "step; auto: timerfd up to 2000 per second, tsc above" },
	{ "seed", CONFIG_INT, OFFSET(seed), "1",
	  .help = "Of the random walks; the same seed gives the same values" },
};

/* What a list under `key` says for value `index`; NULL when nothing does. */
static const json_t *setting_of(const json_t *list, unsigned index)
{
	return json_is_array(list) ? json_array_get(list, index) : list;
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

struct per_value {
	const char *key;
	size_t setting; /* json_t * in struct signal_node */
	size_t field;   /* double in struct generator_value */
	double fallback;
};

#define FIELD(field) offsetof(struct generator_value, field)

static const struct per_value per_values[] = {
	{ "frequency", OFFSET(frequency), FIELD(frequency_hz), 1.0 },
	{ "amplitude", OFFSET(amplitude), FIELD(amplitude), 1.0 },
	{ "stddev", OFFSET(stddev), FIELD(stddev), 0.2 },
	{ "offset", OFFSET(offset), FIELD(offset), 0.0 },
	{ "phase", OFFSET(phase), FIELD(phase_rad), 0.0 },
	{ "pulse_width", OFFSET(pulse_width), FIELD(pulse_width), 1.0 },
	{ "pulse_low", OFFSET(pulse_low), FIELD(pulse_low), 0.0 },
	{ "pulse_high", OFFSET(pulse_high), FIELD(pulse_high), 1.0 },
};

static const json_t *setting_at(const struct signal_node *s, size_t offset)
{
	return *(json_t *const *)((const char *)s + offset);
}

/* All lists must be of one length; that is the number of values. */
static int count_values(struct signal_node *s, struct config *c, json_t *cfg,
			const struct signal_list *signals)
{
	size_t count = (size_t)s->values;
	const char *key = "signal";
	const json_t *list = s->signal;

	for (size_t i = 0;; i++) {
		if (json_is_array(list)) {
			if (count == 0)
				count = json_array_size(list);
			if (count == 0) {
				config_fail(c, cfg, key, "the list is empty");
				return -EINVAL;
			}
			if (json_array_size(list) != count) {
				config_fail(c, cfg, key,
					    "the list has %zu entries, expected %zu, one for each value",
					    json_array_size(list), count);
				return -EINVAL;
			}
		}
		if (i == ARRAY_SIZE(per_values))
			break;
		key = per_values[i].key;
		list = setting_at(s, per_values[i].setting);
	}
	if (count == 0)
		count = signals ? signals->count : 1;
	if (signals && signals->count != count) {
		config_fail(c, cfg, "values",
			    "%zu values are to be generated, but `signals` names %u",
			    count, signals->count);
		return -EINVAL;
	}
	s->generator.count = (unsigned)count;
	return 0;
}

static int parse_waveform(struct signal_node *s, struct config *c, json_t *cfg,
			  unsigned index)
{
	const json_t *j = setting_of(s->signal, index);
	const char *name = json_string_value(j);

	s->generator.values[index].waveform = generator_mixed(index);
	if (!j)
		return 0;
	for (int w = 0; name && waveform_names[w]; w++) {
		if (strcmp(name, waveform_names[w]))
			continue;
		if (w != WAVEFORM_MIXED)
			s->generator.values[index].waveform = (enum waveform)w;
		return 0;
	}
	config_fail(c, cfg, "signal",
		    "%s%s%s is no waveform; there are mixed, random, sine, square, triangle, ramp, counter, constant and pulse",
		    name ? "'" : "", name ? name : "this", name ? "'" : "");
	return -EINVAL;
}

static int parse_values(struct signal_node *s, struct config *c, json_t *cfg)
{
	int ret = 0;

	for (unsigned i = 0; i < s->generator.count && !ret; i++) {
		char *value = (char *)&s->generator.values[i];

		ret = parse_waveform(s, c, cfg, i);
		for (size_t k = 0; k < ARRAY_SIZE(per_values); k++) {
			const struct per_value *p = &per_values[k];
			const json_t *j = setting_of(setting_at(s, p->setting), i);
			double v = p->fallback;

			if (j && !number_of(j, &v)) {
				config_fail(c, cfg, p->key,
					    "expected a number or a list of numbers");
				ret = -EINVAL;
			}
			memcpy(value + p->field, &v, sizeof(v));
		}
		if (!(s->generator.values[i].frequency_hz > 0)) {
			config_fail(c, cfg, "frequency", "must be above 0");
			ret = -EINVAL;
		}
	}
	return ret;
}

/* Names of what is generated, unless the configuration has names of its own. */
static int name_signals(struct node *n, const struct generator *g)
{
	struct signal_list *l = signal_list_new(g->count, SIGNAL_FLOAT);

	for (unsigned i = 0; l && i < g->count; i++) {
		char *name;

		if (asprintf(&name, "%s%u",
			     waveform_names[g->values[i].waveform], i) < 0) {
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

static int signal_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct signal_node *s = n->private_data;
	bool named = json_object_get(cfg, "signals") ||
		     json_object_get(n->in.cfg, "signals");
	int ret;

	ret = count_values(s, c, cfg, named ? n->in.signals : NULL);
	if (ret)
		return ret;
	s->generator.rate_hz = s->rate_hz;
	s->generator.values = calloc(s->generator.count,
				     sizeof(s->generator.values[0]));
	s->late_ns = malloc(sizeof(*s->late_ns));
	if (!s->generator.values || !s->late_ns)
		return -ENOMEM;
	ret = parse_values(s, c, cfg);
	if (ret || named)
		return ret;
	return name_signals(n, &s->generator);
}

static void signal_destroy(struct node *n)
{
	struct signal_node *s = n->private_data;

	free(s->generator.values);
	free(s->late_ns);
}

static int signal_start(struct node *n)
{
	struct signal_node *s = n->private_data;
	int ret;

	ret = timer_open(&s->timer, (enum timer_kind)s->timer_kind, s->rate_hz);
	if (ret)
		return ret;
	s->timer_open = true;
	s->steps = 0;
	hist_init(s->late_ns);
	generator_start(&s->generator, (uint64_t)s->seed);
	s->started = clock_realtime();
	if (s->realtime)
		timer_start(&s->timer, s->rate_hz);
	return 0;
}

static int signal_stop(struct node *n)
{
	struct signal_node *s = n->private_data;
	uint64_t missed = atomic_load(&n->counters.missed);

	if (!s->timer_open)
		return 0;
	s->timer_open = false;
	if (s->realtime && s->monitor_missed && s->steps)
		log_info("node %s: steps %ju missed %ju late p50 %.1f us p99 %.1f us max %.1f us timer %s",
			 n->name, (uintmax_t)s->steps, (uintmax_t)missed,
			 (double)hist_percentile(s->late_ns, 50) / 1e3,
			 (double)hist_percentile(s->late_ns, 99) / 1e3,
			 (double)hist_percentile(s->late_ns, 100) / 1e3,
			 timer_kind_name(s->timer.kind));
	timer_close(&s->timer);
	return 0;
}

/* Waits for the step that the next sample belongs to. */
static int take_step(struct node *n, struct signal_node *s)
{
	uint64_t late_ns;
	int64_t steps = 1;

	if (s->realtime) {
		steps = timer_wait_step(&s->timer, &late_ns);
		if (steps < 0)
			return (int)steps;
		hist_record(s->late_ns, late_ns);
	}
	if (unlikely(steps > 1)) {
		n->sequence += (uint64_t)steps - 1;
		atomic_fetch_add_explicit(&n->counters.missed,
					  (uint64_t)steps - 1,
					  memory_order_relaxed);
	}
	s->steps += (uint64_t)steps;
	if (unlikely(s->limit > 0 && s->steps > (uint64_t)s->limit))
		return -ENODATA;
	return 0;
}

static struct timespec origin_of(const struct signal_node *s, uint64_t step)
{
	if (s->realtime)
		return clock_realtime();
	return timespec_from_ns(timespec_to_ns(s->started) +
				(uint64_t)((double)step / s->rate_hz * 1e9));
}

static void store(union signal_data *d, enum signal_type type, double v)
{
	switch (type) {
	case SIGNAL_FLOAT:
		d->f = v;
		break;
	case SIGNAL_INTEGER:
		/* Out of range is undefined for the conversion itself. */
		d->i = v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : 0;
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

static int signal_read(struct node *n, struct sample *smps[], unsigned cnt,
		       unsigned *release)
{
	struct signal_node *s = n->private_data;
	struct signal_list *signals = n->in.signals;
	unsigned filled = 0;

	/* In real time each sample goes out at its own instant. */
	if (s->realtime)
		cnt = MIN(cnt, 1u);
	for (; filled < cnt; filled++) {
		struct sample *smp = smps[filled];
		uint64_t step;
		int ret;

		if (unlikely(s->limit > 0 && s->steps >= (uint64_t)s->limit))
			return filled ? (int)filled : -ENODATA;
		ret = take_step(n, s);
		if (unlikely(ret))
			return ret;
		step = s->steps - 1;
		smp->origin = origin_of(s, step);
		smp->signals = signals;
		smp->length = MIN(s->generator.count, smp->capacity);
		for (unsigned i = 0; i < smp->length; i++)
			store(&smp->data[i], signals->signals[i].type,
			      generator_next(&s->generator, i, step));
		smp->sequence = n->sequence++;
		smp->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
			     SAMPLE_HAS_DATA;
	}
	return (int)filled;
}

static void signal_interrupt(struct node *n)
{
	struct signal_node *s = n->private_data;

	if (s->timer_open)
		timer_interrupt(&s->timer);
}

static void signal_rearm(struct node *n)
{
	struct signal_node *s = n->private_data;

	if (s->timer_open)
		timer_rearm(&s->timer);
}

static int signal_poll_fds(struct node *n, int fds[], int max)
{
	struct signal_node *s = n->private_data;

	if (!s->timer_open || max < 1)
		return 0;
	fds[0] = timer_poll_fd(&s->timer, !s->realtime);
	return 1;
}

static void signal_print(struct node *n, char *buf, size_t size)
{
	const struct signal_node *s = n->private_data;
	const struct generator *g = &s->generator;
	bool same = true;

	for (unsigned i = 1; i < g->count; i++)
		same &= g->values[i].waveform == g->values[0].waveform;
	snprintf(buf, size, "signal %s values %u rate %g%s",
		 same ? waveform_names[g->values[0].waveform] : "mixed",
		 g->count, s->rate_hz, s->realtime ? "" : " not in real time");
}

const struct node_type node_signal = {
	.name = "signal",
	.description = "Generates signals of known shape",
	.flags = NODE_CAN_READ | NODE_READ_BLOCKS | NODE_GENERATES,
	.size = sizeof(struct signal_node),
	.keys = signal_keys,
	.key_count = ARRAY_SIZE(signal_keys),
	.parse = signal_parse,
	.start = signal_start,
	.stop = signal_stop,
	.destroy = signal_destroy,
	.read = signal_read,
	.interrupt = signal_interrupt,
	.rearm = signal_rearm,
	.poll_fds = signal_poll_fds,
	.print = signal_print,
};
