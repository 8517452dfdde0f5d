/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `pmu_dft`: amplitude, phase, frequency and its rate of change of each
 * selected signal, from the largest value of its spectrum between two
 * frequencies.
 *
 * The spectrum is taken directly at the frequencies asked for; filling the
 * window up with zeros gives the same values, so `padding_type` only matters
 * where the signal is repeated instead.
 */
#define LOG_ROOM "gateway/hook"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "gateway/hook/part/phasor.h"
#include "util/log.h"

enum padding { PADDING_NONE, PADDING_ZERO, PADDING_REPEAT };
static const char *const padding_names[] = { "none", "zero", "signal_repeat",
					     NULL };
enum estimate { ESTIMATE_NONE, ESTIMATE_QUADRATIC, ESTIMATE_IPDFT };
static const char *const estimate_names[] = { "none", "quadratic", "ipdft",
					      NULL };

struct pmu_dft {
	struct phasor_base base;
	double start, start_misspelt, end, end_misspelt, resolution;
	int64_t window_size_factor, pps_index;
	int padding, estimate, estimate_other;

	unsigned repeats;        /* of the window, by signal_repeat */
	double *heights;         /* amplitudes of one spectrum */
	uint64_t at_edge;        /* reports whose peak was first or last */
};

extern const struct hook_type hook_pmu_dft;

#define AT(field) offsetof(struct pmu_dft, field)
static const struct config_key pmu_dft_keys[] = {
	PHASOR_KEYS(struct pmu_dft),
	{ "start_frequency", CONFIG_REAL, AT(start), .min = 1e-6, .max = 1e9,
	  .help = "First frequency of the spectrum, Hz" },
	{ "start_freqency", CONFIG_REAL, AT(start_misspelt), .min = 1e-6,
	  .max = 1e9, .help = "The same, as files of VILLASnode spell it" },
	{ "end_frequency", CONFIG_REAL, AT(end), .min = 1e-6, .max = 1e9,
	  .help = "Last frequency of the spectrum, Hz" },
	{ "end_freqency", CONFIG_REAL, AT(end_misspelt), .min = 1e-6,
	  .max = 1e9, .help = "The same, as files of VILLASnode spell it" },
	{ "frequency_resolution", CONFIG_REAL, AT(resolution),
	  .required = true, .min = 1e-9, .max = 1e9,
	  .help = "Distance of the frequencies, Hz" },
	{ "window_size_factor", CONFIG_INT, AT(window_size_factor), "1",
	  .min = 1, .max = 10000,
	  .help = "Length of the window in intervals of dft_rate" },
	{ "padding_type", CONFIG_ENUM, AT(padding), "none",
	  .names = padding_names, .help = "What the window is filled up with" },
	{ "estimate_type", CONFIG_ENUM, AT(estimate), "none",
	  .names = estimate_names,
	  .help = "How the peak between frequencies is found" },
	{ "frequency_estimate_type", CONFIG_ENUM, AT(estimate_other), "none",
	  .names = estimate_names, .help = "The same as estimate_type" },
	{ "pps_index", CONFIG_INT, AT(pps_index), "0", .min = 0,
	  .max = UINT32_MAX,
	  .help = "Only 0: of a debugging aid of VILLASnode that is not here" },
};

/* One of two spellings; both are an error. */
static int one_of(struct config *c, json_t *cfg, const char *right,
		  const char *other)
{
	if (json_object_get(cfg, right) && json_object_get(cfg, other)) {
		config_fail(c, cfg, other, "stands beside `%s`; give one of them",
			    right);
		return -EINVAL;
	}
	return 0;
}

static int take_spellings(struct pmu_dft *p, struct config *c, json_t *cfg)
{
	int ret = one_of(c, cfg, "start_frequency", "start_freqency") |
		  one_of(c, cfg, "end_frequency", "end_freqency") |
		  one_of(c, cfg, "estimate_type", "frequency_estimate_type");

	if (ret)
		return -EINVAL;
	/* What is not given is 0, and "none" is too. */
	p->start += p->start_misspelt;
	p->end += p->end_misspelt;
	p->estimate += p->estimate_other;
	if (p->start <= 0 || p->end <= 0) {
		config_fail(c, cfg, NULL, "%s is missing, but required",
			    p->start <= 0 ? "start_frequency" : "end_frequency");
		return -EINVAL;
	}
	return 0;
}

static double window_samples(const struct pmu_dft *p)
{
	double rate = (double)p->base.settings.dft_rate;
	double interval = rate > 0 ? 1 / rate : -rate;

	return rint(p->base.settings.sample_rate * interval *
		    (double)p->window_size_factor);
}

static double frequencies(const struct pmu_dft *p)
{
	return ceil((p->end - p->start) / p->resolution - 1e-6) + 1;
}

static int check_window(struct pmu_dft *p, struct config *c, json_t *cfg)
{
	double samples = window_samples(p), rate = p->base.settings.sample_rate;
	double sums = frequencies(p) * (1 + 2 * DFT_COSINES_MAX);

	if (samples < 4 || samples > WINDOW_SIZE_MAX) {
		config_fail(c, cfg, "dft_rate",
			    "the window would be %.0f samples, possible are 4 to %d",
			    samples, WINDOW_SIZE_MAX);
		return -EINVAL;
	}
	if (p->end <= p->start || p->end >= rate / 2) {
		config_fail(c, cfg, NULL,
			    "the spectrum is from %g to %g Hz; it must end above its start and below half the sample rate (%g)",
			    p->start, p->end, rate / 2);
		return -EINVAL;
	}
	/* A peak between two frequencies could be missed. */
	if (p->resolution > rate / samples * (1 + 1e-9)) {
		config_fail(c, cfg, "frequency_resolution",
			    "%g Hz is more than the window tells apart, expected %g (sample_rate / %.0f samples) or less",
			    p->resolution, rate / samples, samples);
		return -EINVAL;
	}
	if (sums > DFT_SUMS_MAX) {
		config_fail(c, cfg, "frequency_resolution",
			    "%.0f frequencies, possible are %d; every sample is work for each of them",
			    frequencies(p),
			    DFT_SUMS_MAX / (1 + 2 * DFT_COSINES_MAX));
		return -EINVAL;
	}
	return 0;
}

static int pmu_dft_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct pmu_dft *p = h->private_data;
	int ret = phasor_parse(&p->base.settings, h, c, cfg);

	if (!ret && p->pps_index) {
		config_fail(c, cfg, "pps_index",
			    "names the signal of a debugging dump, which is not built; timestamps from a pulse are made by the hook pps_ts, put it before");
		ret = -EINVAL;
	}
	if (!ret)
		ret = take_spellings(p, c, cfg);
	return ret ? ret : check_window(p, c, cfg);
}

static int pmu_dft_stop(struct hook *h)
{
	struct pmu_dft *p = h->private_data;

	phasor_stop(&p->base, h);
	free(p->heights);
	p->heights = NULL;
	return 0;
}

static int pmu_dft_start(struct hook *h)
{
	struct pmu_dft *p = h->private_data;
	unsigned size = (unsigned)window_samples(p);
	unsigned count = (unsigned)frequencies(p);
	double rate = p->base.settings.sample_rate;
	int ret = phasor_start(&p->base, size, size, count, p->start / rate,
			       p->resolution / rate);

	p->repeats = p->padding == PADDING_REPEAT ?
			     (unsigned)ceil(rate / size / p->resolution - 1e-6) : 1;
	if (!ret) {
		p->heights = calloc(count, sizeof(*p->heights));
		ret = p->heights ? 0 : -ENOMEM;
	}
	if (ret)
		pmu_dft_stop(h);
	return ret;
}

/* What repeating the window does to the height of a spectrum at frequency `f`:
 * the mean of exp(2 pi i f size n) over the repetitions. */
static double comb(const struct pmu_dft *p, double f)
{
	double slow, turns = f * p->base.dft.size;

	turns -= rint(turns);
	slow = sin(M_PI * turns) * p->repeats;
	return fabs(slow) < 1e-12 ? 1 :
				    fabs(sin(M_PI * turns * p->repeats) / slow);
}

/* The spectrum's heights (amplitudes); returns the position of the largest. */
static unsigned find_peak(struct pmu_dft *p, unsigned channel)
{
	unsigned peak = 0;

	for (unsigned i = 0; i < p->base.dft.frequencies; i++) {
		struct dft_complex c = dft_phasor(&p->base.dft, channel, i);

		p->heights[i] = 2 * hypot(c.re, c.im);
		if (p->repeats > 1)
			p->heights[i] *= comb(p, dft_frequency(&p->base.dft, i));
		if (p->heights[i] > p->heights[peak])
			peak = i;
	}
	return peak;
}

/* Vertex of the parabola through the peak and its neighbours. */
static void quadratic(const struct pmu_dft *p, unsigned peak, double *frequency,
		      double *amplitude)
{
	double a = p->heights[peak - 1], b = p->heights[peak];
	double c = p->heights[peak + 1], curve = a - 2 * b + c;
	double offset = curve < 0 ? (a - c) / (2 * curve) : 0;

	*frequency += offset * p->base.dft.step;
	*amplitude = b - (a - c) * offset / 4;
}

/* The tone that explains the peak and what lies a width of the window beside. */
static bool interpolate(const struct pmu_dft *p, unsigned channel, unsigned peak,
			struct dft_tone *t)
{
	const struct dft *d = &p->base.dft;
	unsigned apart = (unsigned)fmax(1, rint(1 / (d->size * d->step)));
	unsigned low = peak < apart ? peak : apart;
	unsigned high = d->frequencies - 1 - peak;
	struct dft_complex shown[3];
	double at[3];
	unsigned which[3];

	high = high < apart ? high : apart;
	which[0] = peak - low;
	which[1] = peak;
	which[2] = peak + high;
	for (unsigned i = 0; i < 3; i++) {
		at[i] = dft_frequency(d, which[i]);
		shown[i] = dft_phasor(d, channel, which[i]);
	}
	t->frequency = at[1];
	return dft_fit(d, at, shown, 3, 1.5 / d->size, t);
}

static void estimate(struct hook *h, unsigned channel, struct phasor *out)
{
	struct pmu_dft *p = h->private_data;
	unsigned peak = find_peak(p, channel);
	double at = dft_frequency(&p->base.dft, peak), frequency = at;
	struct dft_complex c = dft_phasor(&p->base.dft, channel, peak);
	struct dft_tone t;

	out->amplitude = p->heights[peak];
	if (p->estimate != ESTIMATE_NONE &&
	    unlikely(!peak || peak + 1 == p->base.dft.frequencies)) {
		if (p->at_edge++ < 5)
			log_warn("%s: hook %s: the largest value of channel %u is at the end of the spectrum (%g Hz), nothing is estimated",
				 h->owner, h->type->name,
				 p->base.settings.select.index[channel],
				 at * p->base.settings.sample_rate);
	} else if (p->estimate == ESTIMATE_QUADRATIC) {
		quadratic(p, peak, &frequency, &out->amplitude);
		c = dft_amplitude(&p->base.dft, frequency, at, c);
	} else if (p->estimate == ESTIMATE_IPDFT &&
		   interpolate(p, channel, peak, &t)) {
		frequency = t.frequency;
		c = t.c;
		out->amplitude = 2 * hypot(c.re, c.im);
	}
	out->frequency = frequency * p->base.settings.sample_rate;
	out->phase = atan2(c.im, c.re);
}

static enum hook_verdict pmu_dft_process(struct hook *h, struct sample **smp)
{
	struct pmu_dft *p = h->private_data;

	return phasor_process(&p->base, h, *smp, estimate);
}

const struct hook_type hook_pmu_dft = {
	.name = "pmu_dft",
	.description = "phasor, frequency and its rate of change from a spectrum",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct pmu_dft),
	.keys = pmu_dft_keys,
	.key_count = ARRAY_SIZE(pmu_dft_keys),
	.parse = pmu_dft_parse,
	.signals = phasor_hook_signals,
	.start = pmu_dft_start,
	.stop = pmu_dft_stop,
	.restart = phasor_hook_restart,
	.destroy = phasor_hook_destroy,
	.process = pmu_dft_process,
};
