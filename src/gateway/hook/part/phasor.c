/* SPDX-License-Identifier: BSD-2-Clause */
/* What the phasor hooks share; see phasor.h. */
#define LOG_ROOM "gateway/phasor"
#include "gateway/hook/part/phasor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/sequence.h"
#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/log.h"

const char *const phasor_unit_names[] = { "rad", "degree", NULL };

double phasor_wrap(double angle)
{
	return angle - 2 * M_PI * rint(angle / (2 * M_PI));
}

int phasor_parse(struct phasor_settings *p, struct hook *h, struct config *c,
		 json_t *cfg)
{
	if (!p->dft_rate) {
		config_fail(c, cfg, "dft_rate",
			    "0 is no rate; give phasors per second, or the seconds between two as a negative number");
		return -EINVAL;
	}
	return hook_select_parse(&p->select, h, HOOK_SELECT_MANY);
}

static bool set_signal(const struct phasor_settings *p, struct signal *s,
		       const char *what, const char *unit, const char *channel)
{
	char name[300];

	if (p->add_channel_name)
		snprintf(name, sizeof(name), "%s_%s", what, channel);
	return hook_signal_set(s, p->add_channel_name ? name : what, unit,
			       SIGNAL_FLOAT);
}

int phasor_signals(struct phasor_settings *p, struct hook *h,
		   struct signal_list *in, struct signal_list **out)
{
	const char *angle = p->angle_unit == PHASOR_RAD ? "rad" : "deg";
	struct signal_list *l;
	bool fine = true;
	int ret = hook_select_resolve(&p->select, h, in);

	if (ret)
		return ret;
	ret = hook_select_check_types(&p->select, h, in,
				      1 << SIGNAL_FLOAT | 1 << SIGNAL_INTEGER);
	if (ret)
		return ret;
	l = signal_list_new(p->select.count * PHASOR_VALUES, SIGNAL_FLOAT);
	if (!l)
		return -ENOMEM;
	for (unsigned i = 0; i < p->select.count && fine; i++) {
		struct signal *s = &l->signals[(size_t)i * PHASOR_VALUES];
		unsigned index = p->select.index[i];
		const struct signal *from =
			in && index < in->count ? &in->signals[index] : NULL;
		char numbered[32];

		snprintf(numbered, sizeof(numbered), "signal%u", index);
		fine = set_signal(p, &s[PHASOR_FREQUENCY], "frequency", "Hz",
				  from ? from->name : numbered) &&
		       set_signal(p, &s[PHASOR_AMPLITUDE], "amplitude",
				  from ? from->unit : NULL,
				  from ? from->name : numbered) &&
		       set_signal(p, &s[PHASOR_PHASE], "phase", angle,
				  from ? from->name : numbered) &&
		       set_signal(p, &s[PHASOR_ROCOF], "rocof", "Hz/s",
				  from ? from->name : numbered);
	}
	if (!fine) {
		signal_list_put(l);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

int phasor_clock_init(struct phasor_clock *k, const struct phasor_settings *p,
		      unsigned span)
{
	int ret;

	memset(k, 0, sizeof(*k));
	ret = window_stamps_init(&k->stamps, span);
	if (ret)
		return ret;
	k->values = calloc(p->select.count ? p->select.count : 1,
			   sizeof(k->values[0]));
	if (!k->values) {
		window_stamps_destroy(&k->stamps);
		return -ENOMEM;
	}
	k->aligned = window_aligned((enum window_align)p->align, span);
	k->sample_rate = p->sample_rate;
	k->dft_rate = p->dft_rate;
	k->step = 1;
	return 0;
}

/* Of that many holes each is logged when it comes. */
#define HOLES_LOGGED 5

void phasor_clock_destroy(struct phasor_clock *k, struct hook *h)
{
	if (k->holes > HOLES_LOGGED)
		log_warn("%s: hook %s began %llu new windows because samples were missing",
			 h->owner, h->type->name,
			 (unsigned long long)k->holes);
	k->holes = 0;
	window_stamps_destroy(&k->stamps);
	free(k->values);
	k->values = NULL;
}

static void clear_span(struct phasor_clock *k)
{
	window_stamps_clear(&k->stamps);
	k->count = 0;
	k->slot_known = false;
}

void phasor_clock_restart(struct phasor_clock *k)
{
	clear_span(k);
	k->seen = false;
	k->step = 1;
}

/*
 * Number of the reporting interval that holds a time. Instants of report are at
 * whole multiples of the interval since the epoch, so that two gateways report
 * at the same ones.
 */
static int64_t slot_of(const struct phasor_clock *k, int64_t time_ns)
{
	__int128 part = time_ns, length = SAMPLE_TIME_SECOND;

	/* A negative rate is a number of seconds. */
	if (k->dft_rate < 0)
		length *= -(__int128)k->dft_rate;
	else
		part *= k->dft_rate;
	return (int64_t)(part / length - (part % length < 0));
}

/*
 * An instant is reported with the sample whose stamp is nearest, so a stamp that
 * was rounded down to the nanosecond below an instant still meets it.
 */
static bool is_due(struct phasor_clock *k)
{
	int64_t half = (int64_t)(0.5e9 / k->sample_rate), time_ns, slot;

	if (likely(!k->stamps.missing))
		time_ns = sample_time_to_ns(
			window_stamps_get(&k->stamps, k->aligned));
	else
		time_ns = (int64_t)((double)(k->count - k->stamps.size +
					     k->aligned) * 1e9 / k->sample_rate);
	slot = slot_of(k, sample_time_sum_ns(time_ns, half));
	if (unlikely(!k->slot_known)) {
		k->slot = slot_of(k, sample_time_sum_ns(time_ns, -half));
		k->slot_known = true;
	}
	if (slot == k->slot)
		return false;
	/* Time that goes back begins a new count. */
	if (unlikely(slot < k->slot)) {
		k->slot = slot;
		return false;
	}
	k->slot = slot;
	return true;
}

/* True when samples are missing between the last one and `s`. */
static bool is_hole(struct phasor_clock *k, struct hook *h,
		    const struct sample *s)
{
	bool seen = k->seen;
	uint64_t step = sequence_step(k->sequence, s->sequence);

	if (!(s->flags & SAMPLE_HAS_SEQUENCE))
		return false;
	k->seen = true;
	k->sequence = s->sequence;
	if (likely(!seen || step == k->step))
		return false;
	/* A hook before this one may leave out all but every n-th. */
	if (step == k->last_step)
		k->step = step;
	k->last_step = step;
	if (k->holes++ < HOLES_LOGGED)
		log_warn("%s: hook %s begins a new window: sequence %llu follows %llu",
			 h->owner, h->type->name,
			 (unsigned long long)s->sequence,
			 (unsigned long long)(s->sequence - step));
	return true;
}

enum phasor_step phasor_clock_take(struct phasor_clock *k, struct hook *h,
				   const struct phasor_settings *p,
				   const struct sample *s, bool *clear)
{
	for (unsigned i = 0; i < p->select.count; i++) {
		unsigned index = p->select.index[i];

		if (unlikely(index >= s->length))
			return PHASOR_BAD;
		k->values[i] = window_value(s->data[index],
					    hook_value_type(h, s, index));
	}
	*clear = is_hole(k, h, s);
	if (unlikely(*clear))
		clear_span(k);
	window_stamps_push(&k->stamps, s);
	k->count++;
	return window_stamps_full(&k->stamps) && is_due(k) ? PHASOR_REPORT :
							     PHASOR_FILL;
}

void phasor_write(const struct phasor_settings *p, struct sample *s,
		  unsigned channel, const struct phasor *found)
{
	union signal_data *data = &s->data[(size_t)channel * PHASOR_VALUES];
	double unit = p->angle_unit == PHASOR_RAD ? 1 : 180 / M_PI;

	data[PHASOR_FREQUENCY].f = found->frequency + p->frequency_offset;
	data[PHASOR_AMPLITUDE].f = found->amplitude * M_SQRT1_2 +
				   p->amplitude_offset;
	data[PHASOR_PHASE].f = phasor_wrap(found->phase) * unit +
			       p->phase_offset;
	data[PHASOR_ROCOF].f = found->rocof + p->rocof_offset;
}

void phasor_finish(struct phasor_clock *k, const struct phasor_settings *p,
		   struct sample *s)
{
	s->length = p->select.count * PHASOR_VALUES;
	if (!k->stamps.missing) {
		s->origin = window_stamps_get(&k->stamps, k->aligned);
		s->flags |= SAMPLE_HAS_ORIGIN;
	}
}

/* ---- a hook's callbacks ---- */

int phasor_hook_signals(struct hook *h, struct signal_list *in,
			struct signal_list **out)
{
	struct phasor_base *b = h->private_data;

	return phasor_signals(&b->settings, h, in, out);
}

void phasor_hook_restart(struct hook *h)
{
	struct phasor_base *b = h->private_data;

	phasor_clock_restart(&b->clock);
	dft_clear(&b->dft);
	b->last_count = 0;
}

void phasor_hook_destroy(struct hook *h)
{
	struct phasor_base *b = h->private_data;

	hook_select_free(&b->settings.select);
}

int phasor_start(struct phasor_base *b, unsigned span, unsigned size,
		 unsigned frequencies, double first, double step)
{
	unsigned channels = b->settings.select.count;
	int ret = phasor_clock_init(&b->clock, &b->settings, span);

	b->last_count = 0;
	if (ret)
		return ret;
	ret = dft_init(&b->dft, size, channels, frequencies, first, step,
		       (enum dft_window)b->settings.window_type);
	if (ret)
		return ret;
	b->last_frequency = calloc(channels, sizeof(*b->last_frequency));
	return b->last_frequency ? 0 : -ENOMEM;
}

void phasor_stop(struct phasor_base *b, struct hook *h)
{
	dft_destroy(&b->dft);
	phasor_clock_destroy(&b->clock, h);
	free(b->last_frequency);
	b->last_frequency = NULL;
}

enum phasor_step phasor_take(struct phasor_base *b, struct hook *h,
			     const struct sample *s)
{
	bool clear;
	enum phasor_step step =
		phasor_clock_take(&b->clock, h, &b->settings, s, &clear);

	if (unlikely(step == PHASOR_BAD))
		return step;
	if (unlikely(clear)) {
		dft_clear(&b->dft);
		b->last_count = 0;
	}
	dft_push(&b->dft, b->clock.values);
	return step;
}

static enum hook_verdict report(struct phasor_base *b, struct hook *h,
				struct sample *s, phasor_estimate_fn *estimate)
{
	double rate = b->settings.sample_rate;
	double passed = (double)(b->clock.count - b->last_count) / rate;
	double seconds = ((double)b->clock.aligned - b->dft.size / 2) / rate;
	bool first = !b->last_count;

	for (unsigned i = 0; i < b->settings.select.count; i++) {
		struct phasor f;

		estimate(h, i, &f);
		f.phase += 2 * M_PI * f.frequency * seconds;
		f.rocof = (f.frequency - b->last_frequency[i]) / passed;
		b->last_frequency[i] = f.frequency;
		phasor_write(&b->settings, s, i, &f);
	}
	phasor_finish(&b->clock, &b->settings, s);
	b->last_count = b->clock.count;
	/* Nothing is known yet about how the frequency changes. */
	return first ? HOOK_SKIP : HOOK_OK;
}

enum hook_verdict phasor_process(struct phasor_base *b, struct hook *h,
				 struct sample *s, phasor_estimate_fn *estimate)
{
	switch (phasor_take(b, h, s)) {
	case PHASOR_REPORT:
		return report(b, h, s, estimate);
	case PHASOR_FILL:
		return HOOK_SKIP;
	default:
		return hook_fail(h, "a sample without one of the signals");
	}
}
