/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the three phasor hooks (pmu, ip-dft-pmu, pmu_dft) share: their common
 * keys, the signals they put out, when they report and how a phasor is written
 * into a sample. The estimation itself is theirs.
 */
#ifndef GATEWAY_HOOK_PART_PHASOR_H
#define GATEWAY_HOOK_PART_PHASOR_H

#include "gateway/plugin/hook.h"
#include "gateway/hook/part/dft.h"
#include "gateway/hook/part/select.h"
#include "gateway/hook/part/window.h"

enum phasor_unit { PHASOR_RAD, PHASOR_DEGREE };
extern const char *const phasor_unit_names[];

/* Values per signal, in this order. */
enum phasor_value {
	PHASOR_FREQUENCY,
	PHASOR_AMPLITUDE,
	PHASOR_PHASE,
	PHASOR_ROCOF,
	PHASOR_VALUES,
};

struct phasor_settings {
	struct hook_select select;
	double sample_rate;        /* Hz */
	int64_t dft_rate;          /* above 0: per second; below: seconds */
	int window_type, angle_unit, align;
	bool add_channel_name;
	double phase_offset, amplitude_offset, frequency_offset, rocof_offset;
};

#define PHASOR_AT(type, name) offsetof(type, base.settings.name)
#define PHASOR_KEYS(type)                                                     \
	HOOK_SELECT_KEYS(type, base.settings.select),                             \
	{ "sample_rate", CONFIG_REAL, PHASOR_AT(type, sample_rate),           \
	  .required = true, .min = 1e-3, .max = 1e9,                          \
	  .help = "Samples per second that come in" },                        \
	{ "dft_rate", CONFIG_INT, PHASOR_AT(type, dft_rate), "1",             \
	  .min = -86400, .max = 1e9,                                          \
	  .help = "Phasors per second; below zero: seconds per phasor" },     \
	{ "window_type", CONFIG_ENUM, PHASOR_AT(type, window_type), "none",   \
	  .names = dft_window_names, .help = "Window function" },             \
	{ "angle_unit", CONFIG_ENUM, PHASOR_AT(type, angle_unit), "rad",      \
	  .names = phasor_unit_names, .help = "Unit of the phase" },          \
	{ "add_channel_name", CONFIG_BOOL, PHASOR_AT(type, add_channel_name), \
	  "true", .help = "Append the name of the signal to those put out" }, \
	{ "timestamp_align", CONFIG_ENUM, PHASOR_AT(type, align), "center",   \
	  .names = window_align_names,                                        \
	  .help = "Sample of the window that time and phase are of" },        \
	{ "phase_offset", CONFIG_REAL, PHASOR_AT(type, phase_offset), "0",    \
	  .help = "Added to the phase, in its unit" },                        \
	{ "amplitude_offset", CONFIG_REAL, PHASOR_AT(type, amplitude_offset), \
	  "0", .help = "Added to the amplitude" },                            \
	{ "frequency_offset", CONFIG_REAL, PHASOR_AT(type, frequency_offset), \
	  "0", .help = "Added to the frequency, Hz" },                        \
	{ "rocof_offset", CONFIG_REAL, PHASOR_AT(type, rocof_offset), "0",    \
	  .help = "Added to the rate of change of frequency, Hz/s" }

/* What is found; peak values, phase at the sample that gives the timestamp. */
struct phasor {
	double amplitude;
	double phase;     /* rad, of a cosine */
	double frequency; /* Hz */
	double rocof;     /* Hz/s */
};

/* Which samples make a report. */
struct phasor_clock {
	struct window_stamps stamps;
	unsigned aligned;          /* position of the stamp in the span */
	double sample_rate;
	int64_t dft_rate;
	uint64_t count;            /* samples since the span began to fill */
	int64_t slot;              /* of the last report */
	bool slot_known;
	uint64_t sequence;         /* of the last sample */
	uint64_t step, last_step;  /* expected between two; the last one seen */
	bool seen;                 /* a sequence number */
	uint64_t holes;
	double *values;            /* of the selected signals, newest */
};

/* Checks what the common keys say; config_fail() has been called on error. */
int phasor_parse(struct phasor_settings *p, struct hook *h, struct config *c,
		 json_t *cfg);
/* signals() of a phasor hook: four for each selected one, instead of all. */
int phasor_signals(struct phasor_settings *p, struct hook *h,
		   struct signal_list *in, struct signal_list **out);

int phasor_clock_init(struct phasor_clock *k, const struct phasor_settings *p,
		      unsigned span);
/* Says how often samples were missing, too. */
void phasor_clock_destroy(struct phasor_clock *k, struct hook *h);
/* The source began anew: as after init. */
void phasor_clock_restart(struct phasor_clock *k);

enum phasor_step {
	PHASOR_BAD,    /* the sample is too short */
	PHASOR_FILL,   /* its values are in k->values; no report */
	PHASOR_REPORT, /* likewise; the span is full and a report is due */
};

/*
 * Takes one sample. When samples are missing before it, *clear is set: windows
 * are to be emptied before the values are pushed, because what is in them and
 * this one are not evenly spaced.
 */
enum phasor_step phasor_clock_take(struct phasor_clock *k, struct hook *h,
				   const struct phasor_settings *p,
				   const struct sample *s, bool *clear);

void phasor_write(const struct phasor_settings *p, struct sample *s,
		  unsigned channel, const struct phasor *found);
/* Length and timestamp, after all channels have been written. */
void phasor_finish(struct phasor_clock *k, const struct phasor_settings *p,
		   struct sample *s);

/* The private data of a phasor hook begin with this, its member `base`. */
struct phasor_base {
	struct phasor_settings settings;
	struct phasor_clock clock;
	struct dft dft;
	double *last_frequency;  /* Hz, per channel; of the last report */
	uint64_t last_count;     /* clock.count then; 0: there is none */
};

/* Callbacks of struct hook_type. */
int phasor_hook_signals(struct hook *h, struct signal_list *in,
			struct signal_list **out);
void phasor_hook_restart(struct hook *h);
void phasor_hook_destroy(struct hook *h);

/* start(): windows of `size` samples, reports about `span` of them; the other
 * arguments as dft_init() has them, in turns per sample. phasor_stop() also when
 * this fails. 0 or a negative errno. */
int phasor_start(struct phasor_base *b, unsigned span, unsigned size,
		 unsigned frequencies, double first, double step);
void phasor_stop(struct phasor_base *b, struct hook *h);

/* The sample into the windows; for a hook that makes reports of its own. */
enum phasor_step phasor_take(struct phasor_base *b, struct hook *h,
			     const struct sample *s);

/* Finds amplitude, frequency, and the phase at the middle of the window. */
typedef void phasor_estimate_fn(struct hook *h, unsigned channel,
				struct phasor *out);
/* process(): reports about one window each; the rate of change is that since the
 * last. */
enum hook_verdict phasor_process(struct phasor_base *b, struct hook *h,
				 struct sample *s, phasor_estimate_fn *estimate);

/* Into (-pi, pi]. */
double phasor_wrap(double angle);

#endif
