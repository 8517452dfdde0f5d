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

#include "gateway/hook/phasor.h"
#include "util/log.h"

struct ip_dft {
	struct phasor_settings settings;
	double nominal_freq, number_plc, estimation_range;

	struct phasor_clock clock;
	struct dft dft;
	double *last_frequency;  /* Hz, per channel; of the last report */
	uint64_t last_count;     /* 0: there is none */
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
	return (unsigned)ceil(p->settings.sample_rate * p->number_plc /
			      p->nominal_freq - 1e-9);
}

/* First and last multiple of sample_rate / size that is looked at: those next
 * to the range and one more on each side. */
static void limits(const struct ip_dft *p, unsigned *first, unsigned *last)
{
	double size = window_size(p), bin = p->settings.sample_rate / size;
	double low = floor((p->nominal_freq - p->estimation_range) / bin) - 1;
	double high = ceil((p->nominal_freq + p->estimation_range) / bin) + 1;

	*first = low > 0 ? (unsigned)low : 0;
	*last = (unsigned)fmin(high, floor(size / 2));
}

static int ip_dft_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct ip_dft *p = h->private_data;
	double size = p->settings.sample_rate * p->number_plc / p->nominal_freq;
	unsigned first, last, cosines = DFT_COSINES_MAX;

	if (p->settings.sample_rate < 4 * p->nominal_freq) {
		config_fail(c, cfg, "sample_rate",
			    "%g samples per second are too few for %g Hz, expected %g or more",
			    p->settings.sample_rate, p->nominal_freq,
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
	return phasor_parse(&p->settings, h, c, cfg);
}

static int ip_dft_signals(struct hook *h, struct signal_list *in,
			  struct signal_list **out)
{
	struct ip_dft *p = h->private_data;

	return phasor_signals(&p->settings, h, in, out);
}

static int ip_dft_stop(struct hook *h)
{
	struct ip_dft *p = h->private_data;

	dft_destroy(&p->dft);
	phasor_clock_destroy(&p->clock, h);
	free(p->last_frequency);
	p->last_frequency = NULL;
	return 0;
}

static int ip_dft_start(struct hook *h)
{
	struct ip_dft *p = h->private_data;
	unsigned size = window_size(p), first, last;
	int ret = phasor_clock_init(&p->clock, &p->settings, size);

	if (ret)
		return ret;
	limits(p, &first, &last);
	ret = dft_init(&p->dft, size, p->settings.select.count, last - first + 1,
		       (double)first / size, 1.0 / size,
		       (enum dft_window)p->settings.window_type);
	if (!ret) {
		p->last_frequency = calloc(p->settings.select.count,
					   sizeof(*p->last_frequency));
		ret = p->last_frequency ? 0 : -ENOMEM;
	}
	p->last_count = 0;
	if (ret)
		ip_dft_stop(h);
	return ret;
}

static void ip_dft_restart(struct hook *h)
{
	struct ip_dft *p = h->private_data;

	phasor_clock_restart(&p->clock);
	dft_clear(&p->dft);
	p->last_count = 0;
}

static void ip_dft_destroy(struct hook *h)
{
	struct ip_dft *p = h->private_data;

	hook_select_free(&p->settings.select);
}

/* False when no tone within the range explains what is there; then *t is what
 * the largest frequency shows. */
static bool find_tone(const struct ip_dft *p, unsigned channel,
		      struct dft_tone *t)
{
	const struct dft *d = &p->dft;
	double rate = p->settings.sample_rate;
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

static void report(struct ip_dft *p, struct hook *h, struct sample *s)
{
	double rate = p->settings.sample_rate;
	double passed = (double)(p->clock.count - p->last_count) / rate;
	double seconds = ((double)p->clock.aligned - p->dft.size / 2) / rate;

	for (unsigned i = 0; i < p->settings.select.count; i++) {
		struct dft_tone t;
		struct phasor f;

		if (unlikely(!find_tone(p, i, &t)) && p->beyond++ < 5)
			log_warn("%s: hook %s: no tone within %g Hz of %g Hz in channel %u; the next of the DFT is passed on",
				 h->owner, h->type->name, p->estimation_range,
				 p->nominal_freq, p->settings.select.index[i]);
		f.amplitude = 2 * hypot(t.c.re, t.c.im);
		f.frequency = t.frequency * rate;
		f.phase = atan2(t.c.im, t.c.re) +
			  2 * M_PI * f.frequency * seconds;
		f.rocof = (f.frequency - p->last_frequency[i]) / passed;
		p->last_frequency[i] = f.frequency;
		phasor_write(&p->settings, s, i, &f);
	}
	phasor_finish(&p->clock, &p->settings, s);
}

static enum hook_verdict ip_dft_process(struct hook *h, struct sample **smp)
{
	struct ip_dft *p = h->private_data;
	bool clear, first;
	enum phasor_step step = phasor_clock_take(&p->clock, h, &p->settings,
						  *smp, &clear);

	if (unlikely(step == PHASOR_BAD))
		return HOOK_ERROR;
	if (unlikely(clear)) {
		dft_clear(&p->dft);
		p->last_count = 0;
	}
	dft_push(&p->dft, p->clock.values);
	if (likely(step != PHASOR_REPORT))
		return HOOK_SKIP;
	first = !p->last_count;
	report(p, h, *smp);
	p->last_count = p->clock.count;
	/* Nothing is known yet about how the frequency changes. */
	return first ? HOOK_SKIP : HOOK_OK;
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
	.signals = ip_dft_signals,
	.start = ip_dft_start,
	.stop = ip_dft_stop,
	.restart = ip_dft_restart,
	.destroy = ip_dft_destroy,
	.process = ip_dft_process,
};
