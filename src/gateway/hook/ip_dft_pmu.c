/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `ip-dft-pmu`: amplitude, phase, frequency and its rate of change of each
 * selected signal by interpolation between the frequencies of a DFT.
 *
 * The window gives values every sample_rate / size Hz. The largest one near the
 * nominal frequency and its two neighbours are explained by one tone, its
 * component at the negative frequency included.
 */
#define LOG_ROOM "gateway/hook"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "gateway/hook/part/phasor.h"
#include "util/log.h"

struct ip_dft {
	struct phasor_base base;
	double nominal_freq, number_plc, estimation_range;

	uint64_t beyond;         /* reports whose peak lay outside */
};

extern const struct hook_type hook_ip_dft_pmu;

static const struct config_key ip_dft_keys[] = {
	PHASOR_KEYS(struct ip_dft),
	{ "nominal_freq", CONFIG_REAL, offsetof(struct ip_dft, nominal_freq),
	  "50", .min = 1e-3, .max = 1e9, .help = "Nominal frequency, Hz" },
	{ "number_plc", CONFIG_REAL, offsetof(struct ip_dft, number_plc), "1",
	  .min = 0.5, .max = 1e4, .help = "Nominal periods in the window" },
	{ "estimation_range", CONFIG_REAL,
	  offsetof(struct ip_dft, estimation_range), .required = true,
	  .min = 1e-6, .max = 1e9,
	  .help = "Largest deviation from the nominal frequency, Hz" },
};

static unsigned window_size(const struct ip_dft *p)
{
	return (unsigned)ceil(p->base.settings.sample_rate * p->number_plc /
			      p->nominal_freq - 1e-9);
}

/* First and last multiple of sample_rate / size that is looked at: those next
 * to the range and one more on each side. */
static void limits(const struct ip_dft *p, unsigned *first, unsigned *last)
{
	double size = window_size(p), bin = p->base.settings.sample_rate / size;
	double low = floor((p->nominal_freq - p->estimation_range) / bin) - 1;
	double high = ceil((p->nominal_freq + p->estimation_range) / bin) + 1;

	*first = low > 0 ? (unsigned)low : 0;
	*last = (unsigned)fmin(high, floor(size / 2));
}

static int ip_dft_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct ip_dft *p = h->private_data;
	double size = p->base.settings.sample_rate * p->number_plc / p->nominal_freq;
	unsigned first, last, cosines = DFT_COSINES_MAX;

	if (p->base.settings.sample_rate < 4 * p->nominal_freq) {
		config_fail(c, cfg, "sample_rate",
			    "%g samples per second are too few for %g Hz, expected %g or more",
			    p->base.settings.sample_rate, p->nominal_freq,
			    4 * p->nominal_freq);
		return -EINVAL;
	}
	if (size > WINDOW_SIZE_MAX) {
		config_fail(c, cfg, "number_plc",
			    "the window would be %.0f samples, possible are %d",
			    size, WINDOW_SIZE_MAX);
		return -EINVAL;
	}
	if (p->estimation_range >= p->nominal_freq) {
		config_fail(c, cfg, "estimation_range",
			    "%g Hz reach down to 0 Hz, expected less than nominal_freq (%g)",
			    p->estimation_range, p->nominal_freq);
		return -EINVAL;
	}
	limits(p, &first, &last);
	if (last < first + 2) {
		config_fail(c, cfg, "number_plc",
			    "the window would be %u samples, whose transform has no three values around %g Hz",
			    window_size(p), p->nominal_freq);
		return -EINVAL;
	}
	if ((last - first + 1) * (1 + 2 * cosines) > DFT_SUMS_MAX) {
		config_fail(c, cfg, "estimation_range",
			    "%u frequencies lie in the range, possible are %u; make it or number_plc smaller",
			    last - first + 1, DFT_SUMS_MAX / (1 + 2 * cosines));
		return -EINVAL;
	}
	return phasor_parse(&p->base.settings, h, c, cfg);
}

static int ip_dft_stop(struct hook *h)
{
	struct ip_dft *p = h->private_data;

	phasor_stop(&p->base, h);
	return 0;
}

static int ip_dft_start(struct hook *h)
{
	struct ip_dft *p = h->private_data;
	unsigned size = window_size(p), first, last;
	int ret;

	limits(p, &first, &last);
	ret = phasor_start(&p->base, size, size, last - first + 1,
			   (double)first / size, 1.0 / size);
	if (ret)
		ip_dft_stop(h);
	return ret;
}

/* False when no tone within the range explains what is there; then *t is what
 * the largest frequency shows. */
static bool find_tone(const struct ip_dft *p, unsigned channel,
		      struct dft_tone *t)
{
	const struct dft *d = &p->base.dft;
	double rate = p->base.settings.sample_rate;
	double nominal = p->nominal_freq / rate, best = -1;
	/* A little more, for a signal right at the end of the range. */
	double range = (p->estimation_range + 1e-6) / rate;
	struct dft_complex shown[3];
	double at[3], power[3];
	unsigned peak = 1;

	for (unsigned i = 1; i + 1 < d->frequencies; i++) {
		struct dft_complex c = dft_phasor(d, channel, i);
		double here = c.re * c.re + c.im * c.im;

		if (here > best) {
			best = here;
			peak = i;
		}
	}
	for (unsigned i = 0; i < 3; i++) {
		at[i] = dft_frequency(d, peak - 1 + i);
		shown[i] = dft_phasor(d, channel, peak - 1 + i);
		power[i] = hypot(shown[i].re, shown[i].im);
	}
	/* Begin on the side of the larger neighbour. */
	t->frequency = at[1] + (power[2] - power[0]) / d->size /
			       (power[0] + power[1] + power[2] + 1e-300) / 2;
	if (dft_fit(d, at, shown, 3, 2.0 / d->size, t) &&
	    fabs(t->frequency - nominal) <= range)
		return true;
	t->frequency = at[1];
	t->c = shown[1];
	return false;
}

static void estimate(struct hook *h, unsigned channel, struct phasor *out)
{
	struct ip_dft *p = h->private_data;
	struct dft_tone t;

	if (unlikely(!find_tone(p, channel, &t)) && p->beyond++ < 5)
		log_warn("%s: hook %s: no tone within %g Hz of %g Hz in channel %u; the next of the DFT is passed on",
			 h->owner, h->type->name, p->estimation_range,
			 p->nominal_freq, p->base.settings.select.index[channel]);
	out->amplitude = 2 * hypot(t.c.re, t.c.im);
	out->frequency = t.frequency * p->base.settings.sample_rate;
	out->phase = atan2(t.c.im, t.c.re);
}

static enum hook_verdict ip_dft_process(struct hook *h, struct sample **smp)
{
	struct ip_dft *p = h->private_data;

	return phasor_process(&p->base, h, *smp, estimate);
}

const struct hook_type hook_ip_dft_pmu = {
	.name = "ip-dft-pmu",
	.description = "phasor, frequency and its rate of change by an interpolated DFT",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct ip_dft),
	.keys = ip_dft_keys,
	.key_count = ARRAY_SIZE(ip_dft_keys),
	.parse = ip_dft_parse,
	.signals = phasor_hook_signals,
	.start = ip_dft_start,
	.stop = ip_dft_stop,
	.restart = phasor_hook_restart,
	.destroy = phasor_hook_destroy,
	.process = ip_dft_process,
};
