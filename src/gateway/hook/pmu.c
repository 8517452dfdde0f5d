/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `pmu`: amplitude, phase, frequency and its rate of change of each
 * selected signal from a sliding DFT at the nominal frequency.
 *
 * Three phasors of windows that lie one nominal period apart give, at the middle
 * of the second one, frequency (first central difference of the phase) and its
 * rate of change (second one). With the frequency known, what the window does to
 * a tone beside the nominal frequency (a smaller amplitude, and the component
 * at the negative frequency that makes estimates swing) is taken out; that
 * makes the frequency better, so it is done a few times.
 */
#define LOG_ROOM "gateway/hook"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/hook/part/phasor.h"
#include "util/log.h"

/*
 * Each pass multiplies the error of the frequency by about the part of the
 * window function that leaks from the negative frequency: 0.05 and less where
 * the window suits the signal, so few are used.
 */
#define PASSES_MAX 16

struct pmu {
	struct phasor_base base;
	double nominal_freq, number_plc;

	unsigned lag;                /* samples between two phasors */
	struct dft_complex *history; /* channels * keep, rings */
	unsigned keep, position;
};

extern const struct hook_type hook_pmu;

static const struct config_key pmu_keys[] = {
	PHASOR_KEYS(struct pmu),
	{ "nominal_freq", CONFIG_REAL, offsetof(struct pmu, nominal_freq), "50",
	  .min = 1e-3, .max = 1e9, .help = "Nominal frequency, Hz" },
	{ "number_plc", CONFIG_REAL, offsetof(struct pmu, number_plc), "1",
	  .min = 0.5, .max = 1e4, .help = "Nominal periods in the window" },
};

static int pmu_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct pmu *p = h->private_data;
	double size = p->base.settings.sample_rate * p->number_plc / p->nominal_freq;

	if (p->base.settings.sample_rate < 4 * p->nominal_freq) {
		config_fail(c, cfg, "sample_rate",
			    "%g samples per second are too few for %g Hz, expected %g or more",
			    p->base.settings.sample_rate, p->nominal_freq,
			    4 * p->nominal_freq);
		return -EINVAL;
	}
	if (size + 2 * size / p->number_plc > WINDOW_SIZE_MAX) {
		config_fail(c, cfg, "number_plc",
			    "the window would be %.0f samples, possible are %d",
			    size, WINDOW_SIZE_MAX);
		return -EINVAL;
	}
	return phasor_parse(&p->base.settings, h, c, cfg);
}

static int pmu_stop(struct hook *h)
{
	struct pmu *p = h->private_data;

	phasor_stop(&p->base, h);
	free(p->history);
	p->history = NULL;
	return 0;
}

static int pmu_start(struct hook *h)
{
	struct pmu *p = h->private_data;
	double period = p->base.settings.sample_rate / p->nominal_freq;
	/* As many whole samples as make at least the periods asked for. */
	unsigned size = (unsigned)ceil(period * p->number_plc - 1e-9);
	int ret;

	p->lag = (unsigned)lrint(period);
	p->keep = 2 * p->lag + 1;
	p->position = 0;
	ret = phasor_start(&p->base, size + 2 * p->lag, size, 1, 1 / period, 0);
	if (!ret) {
		p->history = calloc((size_t)p->keep * p->base.settings.select.count,
				    sizeof(p->history[0]));
		ret = p->history ? 0 : -ENOMEM;
	}
	if (ret)
		pmu_stop(h);
	return ret;
}

/* The phasor of `channel` at the middle of all that is in the windows. */
static void estimate(const struct pmu *p, unsigned channel, struct phasor *out)
{
	const struct dft_complex *ring = &p->history[(size_t)channel * p->keep];
	double nominal = p->base.dft.first, turns = nominal * p->lag;
	/* In turns per sample, and per sample squared. */
	double frequency = nominal, rocof = 0, angle[3];
	struct dft_complex c[3];

	for (unsigned pass = 0; pass < PASSES_MAX; pass++) {
		double before, behind, last = frequency;

		for (unsigned i = 0; i < 3; i++) {
			/* `position` is the oldest, 2 lags back. */
			unsigned at = p->position + i * p->lag;
			double f = frequency + rocof * p->lag * ((double)i - 1);

			if (at >= p->keep)
				at -= p->keep;
			c[i] = dft_amplitude(&p->base.dft, f, nominal, ring[at]);
			angle[i] = atan2(c[i].im, c[i].re);
		}
		before = angle[1] - angle[0] - 2 * M_PI * turns;
		behind = angle[2] - angle[1] - 2 * M_PI * turns;
		before = phasor_wrap(before) / (2 * M_PI) + turns;
		behind = phasor_wrap(behind) / (2 * M_PI) + turns;
		frequency = (before + behind) / (2 * p->lag);
		rocof = (behind - before) / ((double)p->lag * p->lag);
		if (fabs(frequency - last) <= 1e-14 * nominal)
			break;
	}
	out->amplitude = 2 * hypot(c[1].re, c[1].im);
	out->phase = angle[1];
	out->frequency = frequency * p->base.settings.sample_rate;
	out->rocof = rocof * p->base.settings.sample_rate * p->base.settings.sample_rate;
}

/* From the middle to the sample that gives the timestamp. */
static void shift(const struct pmu *p, struct phasor *f)
{
	double middle = p->lag + p->base.dft.size / 2;
	double seconds = (p->base.clock.aligned - middle) / p->base.settings.sample_rate;

	f->phase += 2 * M_PI * seconds *
		    (f->frequency + f->rocof * seconds / 2);
	f->frequency += f->rocof * seconds;
}

static enum hook_verdict pmu_process(struct hook *h, struct sample **smp)
{
	struct pmu *p = h->private_data;
	struct sample *s = *smp;
	enum phasor_step step = phasor_take(&p->base, h, s);

	if (unlikely(step == PHASOR_BAD))
		return hook_fail(h, "a sample without one of the signals");
	for (unsigned i = 0; i < p->base.settings.select.count; i++)
		p->history[(size_t)i * p->keep + p->position] =
			dft_phasor(&p->base.dft, i, 0);
	if (++p->position == p->keep)
		p->position = 0;
	if (likely(step != PHASOR_REPORT))
		return HOOK_SKIP;
	for (unsigned i = 0; i < p->base.settings.select.count; i++) {
		struct phasor found;

		estimate(p, i, &found);
		shift(p, &found);
		phasor_write(&p->base.settings, s, i, &found);
	}
	phasor_finish(&p->base.clock, &p->base.settings, s);
	return HOOK_OK;
}

const struct hook_type hook_pmu = {
	.name = "pmu",
	.description = "phasor, frequency and its rate of change by a sliding DFT",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct pmu),
	.keys = pmu_keys,
	.key_count = ARRAY_SIZE(pmu_keys),
	.parse = pmu_parse,
	.signals = phasor_hook_signals,
	.start = pmu_start,
	.stop = pmu_stop,
	.restart = phasor_hook_restart,
	.destroy = phasor_hook_destroy,
	.process = pmu_process,
};
