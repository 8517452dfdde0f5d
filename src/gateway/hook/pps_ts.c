/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `pps_ts`: origin timestamps from a pulse per second (PPS) that stands in
 * one of the signals: its rising edge is a whole second.
 *
 *	simple   the sample of the edge gets the whole second; those behind it
 *	         follow at the period that the second before showed
 *	horizon  timestamps run on without a jump: the period is that of the last
 *	         `horizon_estimation` seconds, corrected so that what is wrong at an
 *	         edge is made up for within about `horizon_compensation` seconds
 *
 * Which second it is comes from the sample's receive timestamp, or the clock of
 * this host when it has none: the nearest one. So the way to here must take less
 * than half a second, and so must the clock be right.
 */
#define LOG_ROOM "gateway/pps_ts"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "gateway/hook/part/select.h"
#include "gateway/hook/part/window.h"
#include "gateway/sample/sequence.h"
#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/log.h"

/* So many samples at once are not lost between two that come: the numbers begin
 * anew, or jump, and tell nothing of the time between. */
#define STEP_MAX 1000000
#define HORIZON_MAX 3600

enum mode { MODE_SIMPLE, MODE_HORIZON };
static const char *const mode_names[] = { "simple", "horizon", NULL };

/* An edge: which sample, which second. */
struct edge {
	uint64_t sample;
	int64_t second;
};

struct pps {
	struct hook_select select;
	int mode;
	double threshold, expected_smp_rate;
	int64_t horizon_estimation, horizon_compensation;

	struct edge *edges;     /* the last horizon_estimation + 1, a ring */
	unsigned size;
	uint64_t edge_count;
	uint64_t samples;       /* numbers of samples, missing ones included */
	uint64_t sequence;
	bool seen, high;        /* a sample; above the threshold */
	double period;          /* ns from sample to sample; 0: not known yet */
	struct timespec base;   /* time of sample number base_sample, */
	double base_part;       /* and what is left of a nanosecond */
	uint64_t base_sample;
};

extern const struct hook_type hook_pps_ts;

#define AT(field) offsetof(struct pps, field)
static const struct config_key pps_keys[] = {
	HOOK_SELECT_KEYS(struct pps, select),
	{ "mode", CONFIG_ENUM, AT(mode), "simple", .names = mode_names,
	  .help = "How timestamps are made between the edges" },
	{ "threshold", CONFIG_REAL, AT(threshold), "1.5",
	  .help = "An edge is where the signal rises above this" },
	{ "expected_smp_rate", CONFIG_REAL, AT(expected_smp_rate), .min = 1e-3,
	  .max = 1e9,
	  .help = "Samples per second; with it the first edge is enough" },
	{ "horizon_estimation", CONFIG_INT, AT(horizon_estimation), "10",
	  .min = 1, .max = HORIZON_MAX,
	  .help = "Seconds that the period is taken from; mode horizon" },
	{ "horizon_compensation", CONFIG_INT, AT(horizon_compensation), "10",
	  .min = 1, .max = HORIZON_MAX,
	  .help = "Seconds within which an error is made up for; mode horizon" },
};

static int pps_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct pps *p = h->private_data;

	(void)c;
	(void)cfg;
	return hook_select_parse(&p->select, h, HOOK_SELECT_ONE);
}

static int pps_signals(struct hook *h, struct signal_list *in,
		       struct signal_list **out)
{
	struct pps *p = h->private_data;
	int ret = hook_select_resolve(&p->select, h, in);

	if (!ret)
		ret = hook_select_check_types(&p->select, h, in,
					      1 << SIGNAL_FLOAT |
					      1 << SIGNAL_INTEGER |
					      1 << SIGNAL_BOOLEAN);
	if (!ret && in)
		*out = signal_list_get(in);
	return ret;
}

static void pps_restart(struct hook *h)
{
	struct pps *p = h->private_data;

	p->edge_count = 0;
	p->samples = 0;
	p->seen = p->high = false;
	p->period = p->expected_smp_rate > 0 ? 1e9 / p->expected_smp_rate : 0;
}

static int pps_start(struct hook *h)
{
	struct pps *p = h->private_data;

	if (!p->select.count) /* signals() was not called */
		return -EINVAL;
	p->size = p->mode == MODE_SIMPLE ? 2 :
					   (unsigned)p->horizon_estimation + 1;
	p->edges = calloc(p->size, sizeof(*p->edges));
	if (!p->edges)
		return -ENOMEM;
	pps_restart(h);
	return 0;
}

static int pps_stop(struct hook *h)
{
	struct pps *p = h->private_data;

	free(p->edges);
	p->edges = NULL;
	return 0;
}

static void pps_destroy(struct hook *h)
{
	struct pps *p = h->private_data;

	hook_select_free(&p->select);
}

static int64_t nearest_second(const struct sample *s)
{
	struct timespec t = s->flags & SAMPLE_HAS_RECEIVED ? s->received :
							     clock_realtime();

	return sample_time_add_ns(t, SAMPLE_TIME_SECOND / 2).tv_sec;
}

/* Nanoseconds from the base to sample number `sample`; limited to what 64 bits hold,
 * because the seconds of two edges may be any. */
static double since_base(const struct pps *p, uint64_t sample)
{
	double ns = (double)(sample - p->base_sample) * p->period + p->base_part;

	return fmax(-9e18, fmin(ns, 9e18));
}

/* Moves the base of the timestamps to sample number `sample`. */
static void move_base(struct pps *p, uint64_t sample)
{
	double ns = since_base(p, sample);
	double whole = floor(ns);

	p->base = sample_time_add_ns(p->base, (int64_t)whole);
	p->base_part = ns - whole;
	p->base_sample = sample;
}

/* The period, in ns, that the edges of the last seconds show; 0 when none. */
static double measured_period(const struct pps *p, const struct edge *now)
{
	uint64_t back = p->edge_count < p->size - 1 ? p->edge_count : p->size - 1;
	const struct edge *then;

	if (!back)
		return 0;
	then = &p->edges[(p->edge_count - back) % p->size];
	if (now->second <= then->second || now->sample <= then->sample)
		return 0;
	return ((double)now->second - (double)then->second) * 1e9 /
	       (double)(now->sample - then->sample);
}

static void take_edge(struct pps *p, struct hook *h, const struct sample *s)
{
	struct edge now = { p->samples, nearest_second(s) };
	const struct timespec whole = { .tv_sec = (time_t)now.second };
	double measured = measured_period(p, &now);
	bool running = p->edge_count && p->period > 0;

	if (p->edge_count) {
		int64_t last = p->edges[(p->edge_count - 1) % p->size].second;

		if (last == INT64_MAX || now.second != last + 1)
			log_warn("%s: hook pps_ts: the edge at second %lld follows the one at %lld",
				 h->owner, (long long)now.second,
				 (long long)last);
	}
	p->edges[p->edge_count++ % p->size] = now;
	if (p->mode == MODE_HORIZON && running) {
		double error;

		move_base(p, now.sample);
		error = (double)sample_time_since_ns(whole, p->base) - p->base_part;
		/* That much is no drift: the clock or the pulse was wrong. */
		if (fabs(error) < 0.5e9) {
			if (measured > 0)
				p->period = measured;
			p->period += error * p->period /
				     (1e9 * (double)p->horizon_compensation);
			return;
		}
	}
	if (measured > 0)
		p->period = measured;
	p->base = whole;
	p->base_part = 0;
	p->base_sample = now.sample;
}

/* Counts samples by their sequence numbers, so that lost ones pass time too. */
static void count_sample(struct pps *p, const struct sample *s)
{
	uint64_t step = 1;

	if (s->flags & SAMPLE_HAS_SEQUENCE) {
		step = sequence_step(p->sequence, s->sequence);
		p->sequence = s->sequence;
		if (!step || step > STEP_MAX)
			step = 1;
	}
	if (p->seen)
		p->samples += step;
}

static enum hook_verdict pps_process(struct hook *h, struct sample **smp)
{
	struct pps *p = h->private_data;
	struct sample *s = *smp;
	unsigned at = p->select.index[0];
	bool high, edge;

	if (unlikely(at >= s->length))
		return hook_fail(h, "a sample without the signal");
	count_sample(p, s);
	high = window_value(s->data[at], hook_value_type(h, s, at)) >
	       p->threshold;
	edge = p->seen && high && !p->high;
	p->high = high;
	p->seen = true;
	if (unlikely(edge))
		take_edge(p, h, s);
	/* No edge yet, or only one and the period is not known. */
	if (unlikely(!p->edge_count || p->period <= 0))
		return HOOK_SKIP;
	/* Numbers stay small, so that no rounding adds up. */
	if (unlikely(p->samples - p->base_sample > STEP_MAX))
		move_base(p, p->samples);
	s->origin = sample_time_add_ns(p->base, llrint(since_base(p, p->samples)));
	s->flags |= SAMPLE_HAS_ORIGIN;
	return HOOK_OK;
}

const struct hook_type hook_pps_ts = {
	.name = "pps_ts",
	.description = "origin timestamps from a pulse per second",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct pps),
	.keys = pps_keys,
	.key_count = ARRAY_SIZE(pps_keys),
	.parse = pps_parse,
	.signals = pps_signals,
	.start = pps_start,
	.stop = pps_stop,
	.restart = pps_restart,
	.destroy = pps_destroy,
	.process = pps_process,
};
