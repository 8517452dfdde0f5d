/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `dp`: from a signal to its dynamic phasors, and back.
 *
 *	X_k(t) = 1/T * integral over the last period T = 1/f0 of
 *	         x(tau) exp(-2 pi i k f0 tau) d tau
 *	x(t)   = X_0 + 2 Re(sum over k > 0 of X_k exp(2 pi i k f0 t))
 *
 * so A cos(2 pi k f0 t + phi) has X_k = A / 2 exp(i phi) and X_0 is the mean. t
 * is 0 at the first sample after the start, or after a restart of the source.
 */
#define LOG_ROOM "gateway/dp"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/hook/part/dft.h"
#include "gateway/hook/part/select.h"
#include "gateway/hook/part/window.h"
#include "gateway/sample/signals.h"
#include "util/log.h"

#define HARMONIC_MAX 4000

struct dp {
	struct hook_select select;
	double f0, dt, rate;
	json_t *list;
	bool inverse;

	unsigned *harmonics, count;
	unsigned lowest;         /* harmonic; the transform begins there */
	struct dft dft;
	uint64_t phase, samples; /* of f0, per sample */
};

extern const struct hook_type hook_dp;

#define AT(field) offsetof(struct dp, field)
static const struct config_key dp_keys[] = {
	HOOK_SELECT_KEYS(struct dp, select),
	{ "f0", CONFIG_REAL, AT(f0), .required = true, .min = 1e-9, .max = 1e9,
	  .help = "Fundamental frequency, Hz" },
	{ "dt", CONFIG_REAL, AT(dt), .min = 1e-12, .max = 1e9,
	  .help = "Time from sample to sample, seconds" },
	{ "rate", CONFIG_REAL, AT(rate), .min = 1e-9, .max = 1e12,
	  .help = "Samples per second; instead of dt" },
	{ "harmonics", CONFIG_JSON, AT(list), .required = true,
	  .help = "List of harmonics: 0 the mean, 1 the fundamental ..." },
	{ "inverse", CONFIG_BOOL, AT(inverse), "false",
	  .help = "From phasors to the signal" },
};

static int parse_harmonics(struct dp *p, struct config *c, json_t *cfg)
{
	size_t n = json_array_size(p->list), i;
	unsigned highest = 0;
	json_t *e;

	if (!n || n > HARMONIC_MAX) {
		config_fail(c, cfg, "harmonics",
			    "expected a list of harmonics such as ( 0, 1, 3, 5 )");
		return -EINVAL;
	}
	p->harmonics = calloc(n, sizeof(*p->harmonics));
	if (!p->harmonics)
		return -ENOMEM;
	p->count = (unsigned)n;
	p->lowest = HARMONIC_MAX;
	json_array_foreach(p->list, i, e) {
		json_int_t k = json_integer_value(e);

		if (!json_is_integer(e) || k < 0 || k > HARMONIC_MAX) {
			config_fail(c, cfg, "harmonics",
				    "entry %zu is not a whole number from 0 to %d",
				    i, HARMONIC_MAX);
			return -EINVAL;
		}
		p->harmonics[i] = (unsigned)k;
		highest = MAX(highest, (unsigned)k);
		p->lowest = MIN(p->lowest, (unsigned)k);
	}
	if (highest * p->f0 * p->dt >= 0.5) {
		config_fail(c, cfg, "harmonics",
			    "harmonic %u is at %g Hz; %g samples per second show less than %g Hz",
			    highest, highest * p->f0, 1 / p->dt, 0.5 / p->dt);
		return -EINVAL;
	}
	return 0;
}

static int dp_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct dp *p = h->private_data;
	double period;

	if (!!json_object_get(cfg, "dt") == !!json_object_get(cfg, "rate")) {
		config_fail(c, cfg, "dt", p->dt ?
			    "stands beside `rate`; give one of them" :
			    "missing; give it or `rate`");
		return -EINVAL;
	}
	if (p->rate > 0)
		p->dt = 1 / p->rate;
	period = 1 / (p->f0 * p->dt);
	if (period < 2 || period > WINDOW_SIZE_MAX) {
		config_fail(c, cfg, "f0",
			    "a period is %g samples, possible are 2 to %d",
			    period, WINDOW_SIZE_MAX);
		return -EINVAL;
	}
	if (fabs(period - rint(period)) > 1e-6 * period)
		log_warn("%s: hook dp: a period is %g samples, not a whole number; the phasors will swing by about %.1e of the amplitude",
			 h->owner, period, fabs(period - rint(period)) / period);
	return parse_harmonics(p, c, cfg) ?:
	       hook_select_parse(&p->select, h, HOOK_SELECT_ONE);
}

/* The signal becomes one complex signal per harmonic, where it stood. */
static int forward_signals(struct dp *p, struct hook *h, unsigned at,
			   struct signal_list *in, struct signal_list **out)
{
	struct signal_list *l;
	char name[300], old[256], *unit = NULL;
	bool fine = true;
	int ret = hook_select_check_types(&p->select, h, in,
					  1 << SIGNAL_FLOAT |
					  1 << SIGNAL_INTEGER);

	if (ret)
		return ret;
	l = hook_signals_insert(in, at + 1, p->count - 1);
	if (!l)
		return -ENOMEM;
	snprintf(old, sizeof(old), "%s", l->signals[at].name);
	if (l->signals[at].unit) {
		unit = strdup(l->signals[at].unit);
		fine = unit != NULL;
	}
	for (unsigned k = 0; k < p->count && fine; k++) {
		snprintf(name, sizeof(name), "%s_harm%u", old, p->harmonics[k]);
		fine = hook_signal_set(&l->signals[at + k], name, unit,
				       SIGNAL_COMPLEX);
	}
	free(unit);
	if (!fine) {
		signal_list_put(l);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

/* "u_harm1" was "u". */
static void original_name(const char *name, char *buf, size_t size)
{
	const char *end = strstr(name, "_harm");

	if (end && end != name)
		snprintf(buf, size, "%.*s", (int)(end - name), name);
	else
		snprintf(buf, size, "dp");
}

static int check_inverse(struct dp *p, struct hook *h, unsigned at,
			 const struct signal_list *in)
{
	if (at + p->count > in->count) {
		config_fail(h->config, h->cfg, "harmonics",
			    "%u phasors from signal %u on are needed, there are %u signals",
			    p->count, at, in->count);
		return -EINVAL;
	}
	for (unsigned k = 0; k < p->count; k++) {
		const struct signal *s = &in->signals[at + k];

		if (s->type == SIGNAL_COMPLEX)
			continue;
		config_fail(h->config, h->cfg, "inverse",
			    "signal '%s' is %s, expected a complex one for harmonic %u",
			    s->name, signal_type_name(s->type), p->harmonics[k]);
		return -EINVAL;
	}
	return 0;
}

static int inverse_signals(struct dp *p, struct hook *h, unsigned at,
			   struct signal_list *in, struct signal_list **out)
{
	struct signal_list *l;
	char name[256];
	bool fine = true;
	int ret;

	if (!in) /* what comes cannot be told, nor what goes */
		return 0;
	ret = check_inverse(p, h, at, in);
	if (ret)
		return ret;
	l = signal_list_new(in->count - p->count + 1, SIGNAL_FLOAT);
	for (unsigned i = 0; l && i < l->count && fine; i++) {
		unsigned from = i <= at ? i : i + p->count - 1;
		const struct signal *s = &in->signals[from];

		original_name(s->name, name, sizeof(name));
		fine = i == at ? hook_signal_set(&l->signals[i], name, s->unit,
						 SIGNAL_FLOAT) :
				 hook_signal_set(&l->signals[i], s->name,
						 s->unit, s->type);
	}
	if (!l || !fine) {
		signal_list_put(l);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

static int dp_signals(struct hook *h, struct signal_list *in,
		      struct signal_list **out)
{
	struct dp *p = h->private_data;
	int ret = hook_select_resolve(&p->select, h, in);

	if (ret)
		return ret;
	if (!in && p->select.index[0] >= SIGNALS_DEFAULT && !p->inverse) {
		config_fail(h->config, h->cfg, "signal",
			    "nothing is known about the signals here; name them by `signals` of the node");
		return -EINVAL;
	}
	return p->inverse ?
		       inverse_signals(p, h, p->select.index[0], in, out) :
		       forward_signals(p, h, p->select.index[0], in, out);
}

static int dp_start(struct hook *h)
{
	struct dp *p = h->private_data;
	unsigned highest = p->lowest;
	double step = p->f0 * p->dt;

	if (!p->select.count) /* signals() was not called */
		return -EINVAL;
	p->samples = 0;
	p->phase = dft_phase(step);
	if (p->inverse)
		return 0;
	for (unsigned k = 0; k < p->count; k++)
		highest = MAX(highest, p->harmonics[k]);
	return dft_init(&p->dft, (unsigned)lrint(1 / step), 1,
			highest - p->lowest + 1, p->lowest * step, step,
			DFT_NONE);
}

static int dp_stop(struct hook *h)
{
	struct dp *p = h->private_data;

	dft_destroy(&p->dft);
	return 0;
}

static void dp_restart(struct hook *h)
{
	struct dp *p = h->private_data;

	p->samples = 0;
	if (!p->inverse)
		dft_clear(&p->dft);
}

static void dp_destroy(struct hook *h)
{
	struct dp *p = h->private_data;

	hook_select_free(&p->select);
	free(p->harmonics);
}

static enum hook_verdict forward(struct dp *p, struct hook *h, struct sample *s,
				 unsigned at)
{
	double value;

	if (unlikely(at >= s->length))
		return hook_fail(h, "a sample without the signal");
	if (unlikely(s->length - 1 + p->count > s->capacity))
		return hook_fail(h, "the sample has no room for the phasors");
	value = window_value(s->data[at], hook_value_type(h, s, at));
	dft_push(&p->dft, &value);
	memmove(&s->data[at + p->count], &s->data[at + 1],
		(s->length - at - 1) * sizeof(s->data[0]));
	for (unsigned k = 0; k < p->count; k++) {
		struct dft_complex c = dft_transform(&p->dft, 0,
						     p->harmonics[k] - p->lowest);

		s->data[at + k].z.re = (float)c.re;
		s->data[at + k].z.im = (float)c.im;
	}
	s->length += p->count - 1;
	return HOOK_OK;
}

static enum hook_verdict inverse(struct dp *p, struct hook *h, struct sample *s,
				 unsigned at)
{
	double value = 0;

	if (unlikely(at + p->count > s->length))
		return hook_fail(h, "a sample without one of the phasors");
	for (unsigned k = 0; k < p->count; k++) {
		uint64_t phase = p->samples * p->phase * p->harmonics[k];
		struct dft_complex turn = dft_phase_turn(phase);
		double re = (double)s->data[at + k].z.re;
		double im = (double)s->data[at + k].z.im;

		value += (p->harmonics[k] ? 2 : 1) *
			 (re * turn.re - im * turn.im);
	}
	s->data[at].f = value;
	memmove(&s->data[at + 1], &s->data[at + p->count],
		(s->length - at - p->count) * sizeof(s->data[0]));
	s->length -= p->count - 1;
	return HOOK_OK;
}

static enum hook_verdict dp_process(struct hook *h, struct sample **smp)
{
	struct dp *p = h->private_data;
	unsigned at = p->select.index[0];
	enum hook_verdict verdict = p->inverse ? inverse(p, h, *smp, at) :
						 forward(p, h, *smp, at);

	p->samples++;
	return verdict;
}

const struct hook_type hook_dp = {
	.name = "dp",
	.description = "to and from dynamic phasors",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct dp),
	.keys = dp_keys,
	.key_count = ARRAY_SIZE(dp_keys),
	.parse = dp_parse,
	.signals = dp_signals,
	.start = dp_start,
	.stop = dp_stop,
	.restart = dp_restart,
	.destroy = dp_destroy,
	.process = dp_process,
};
