/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `power`: powers of pairs of a voltage and a current over a window of
 * samples.
 *
 *	active    P  mean of u i
 *	apparent  S  rms of u times rms of i
 *	reactive  Q  sqrt(S^2 - P^2): of all that is not active, so never
 *	             below zero, whatever the current's direction
 *	cos_phi      the angle atan2(Q, P), as users' files expect by this name
 */
#define LOG_ROOM "gateway/hook"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/hook/part/pair.h"
#include "gateway/hook/part/phasor.h"
#include "util/log.h"

#define PAIRS_MAX 4096

struct power_pair {
	struct pair pair;
	struct window_sum uu, ii, ui;
};

struct power {
	struct hook_select select;
	int64_t window_size;
	json_t *pairings;
	bool active, reactive, apparent, cos_phi, add_channel_name;
	int align, angle_unit;

	struct power_pair *pairs;
	unsigned count;
	struct window_stamps stamps;
};

extern const struct hook_type hook_power;

#define AT(field) offsetof(struct power, field)
static const struct config_key power_keys[] = {
	HOOK_SELECT_KEYS(struct power, select),
	{ "window_size", CONFIG_INT, AT(window_size), .required = true,
	  .min = 1, .max = WINDOW_SIZE_MAX, .help = "Samples in the window" },
	{ "pairings", CONFIG_JSON, AT(pairings), .required = true,
	  .help = "List of { voltage, current }: names or indices of signals" },
	{ "active_power", CONFIG_BOOL, AT(active), "true",
	  .help = "Put out the active power" },
	{ "reactive_power", CONFIG_BOOL, AT(reactive), "true",
	  .help = "Put out the reactive power" },
	{ "apparent_power", CONFIG_BOOL, AT(apparent), "true",
	  .help = "Put out the apparent power" },
	{ "cos_phi", CONFIG_BOOL, AT(cos_phi), "true",
	  .help = "Put out the angle between voltage and current" },
	{ "add_channel_name", CONFIG_BOOL, AT(add_channel_name), "false",
	  .help = "Append the names of the pair; always done for several pairs" },
	{ "timestamp_align", CONFIG_ENUM, AT(align), "center",
	  .names = window_align_names,
	  .help = "Sample of the window that gives the timestamp" },
	{ "angle_unit", CONFIG_ENUM, AT(angle_unit), "rad",
	  .names = phasor_unit_names, .help = "Unit of cos_phi" },
};

static int power_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct power *p = h->private_data;
	size_t n = json_array_size(p->pairings);
	int ret = hook_select_parse(&p->select, h, HOOK_SELECT_OPTIONAL);

	if (!json_is_array(p->pairings) || !n || n > PAIRS_MAX) {
		config_fail(c, cfg, "pairings",
			    "expected a list of up to %d pairs such as { voltage = \"u\", current = \"i\" }",
			    PAIRS_MAX);
		return -EINVAL;
	}
	if (!p->active && !p->reactive && !p->apparent && !p->cos_phi) {
		config_fail(c, cfg, "active_power",
			    "everything is switched off, there would be nothing to put out");
		return -EINVAL;
	}
	p->pairs = calloc(n, sizeof(*p->pairs));
	if (!p->pairs)
		return -ENOMEM;
	p->count = (unsigned)n;
	for (size_t i = 0; i < n; i++)
		if (pair_parse(&p->pairs[i].pair, c, cfg, "pairings", i))
			ret = -EINVAL;
	return ret;
}

static int resolve(struct power *p, struct hook *h, const struct signal_list *in)
{
	int ret = hook_select_resolve(&p->select, h, in);

	for (unsigned i = 0; i < p->count && !ret; i++)
		ret = pair_resolve(&p->pairs[i].pair, h, in);
	return ret;
}

static const char *name_of(const struct signal_list *in, unsigned index,
			   char *buf, size_t size)
{
	if (in && index < in->count)
		return in->signals[index].name;
	snprintf(buf, size, "signal%u", index);
	return buf;
}

static int power_signals(struct hook *h, struct signal_list *in,
			 struct signal_list **out)
{
	struct power *p = h->private_data;
	const struct {
		bool on;
		const char *name, *unit;
	} kinds[] = {
		{ p->active, "active", "W" },
		{ p->reactive, "reactive", "Var" },
		{ p->apparent, "apparent", "VA" },
		{ p->cos_phi, "cos_phi", p->angle_unit ? "deg" : "rad" },
	};
	unsigned values = (unsigned)p->active + p->reactive + p->apparent +
			  p->cos_phi, at = 0;
	struct signal_list *l;
	int ret = resolve(p, h, in);

	if (ret)
		return ret;
	l = signal_list_new(values * p->count, SIGNAL_FLOAT);
	if (!l)
		return -ENOMEM;
	for (unsigned i = 0; i < p->count; i++) {
		char name[600], u[32], v[32];
		const char *voltage = name_of(in,
					      p->pairs[i].pair.voltage_index,
					      u, sizeof(u));
		const char *current = name_of(in,
					      p->pairs[i].pair.current_index,
					      v, sizeof(v));

		for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++) {
			if (!kinds[k].on)
				continue;
			if (p->add_channel_name || p->count > 1)
				snprintf(name, sizeof(name), "%s_%s_%s",
					 kinds[k].name, voltage, current);
			else
				snprintf(name, sizeof(name), "%s", kinds[k].name);
			if (hook_signal_set(&l->signals[at++], name,
					    kinds[k].unit, SIGNAL_FLOAT))
				continue;
			signal_list_put(l);
			return -ENOMEM;
		}
	}
	*out = l;
	return 0;
}

static int power_stop(struct hook *h)
{
	struct power *p = h->private_data;

	for (unsigned i = 0; i < p->count; i++) {
		window_sum_destroy(&p->pairs[i].uu);
		window_sum_destroy(&p->pairs[i].ii);
		window_sum_destroy(&p->pairs[i].ui);
	}
	window_stamps_destroy(&p->stamps);
	return 0;
}

static int power_start(struct hook *h)
{
	struct power *p = h->private_data;
	unsigned size = (unsigned)p->window_size;
	int ret = window_stamps_init(&p->stamps, size);

	for (unsigned i = 0; i < p->count && !ret; i++)
		ret = window_sum_init(&p->pairs[i].uu, size) ?:
		      window_sum_init(&p->pairs[i].ii, size) ?:
		      window_sum_init(&p->pairs[i].ui, size);
	if (ret)
		power_stop(h);
	return ret;
}

static void power_restart(struct hook *h)
{
	struct power *p = h->private_data;

	window_stamps_clear(&p->stamps);
	for (unsigned i = 0; i < p->count; i++) {
		window_sum_clear(&p->pairs[i].uu);
		window_sum_clear(&p->pairs[i].ii);
		window_sum_clear(&p->pairs[i].ui);
	}
}

static void power_destroy(struct hook *h)
{
	struct power *p = h->private_data;

	hook_select_free(&p->select);
	free(p->pairs);
	p->count = 0;
}

/* Means over the window of u^2, i^2 and u i. */
struct means {
	double uu, ii, ui;
};

/* What rounding has brought below it; no number stays none, other than in fmax(). */
static double above_zero(double v)
{
	return v < 0 ? 0 : v;
}

/* sqrt(a b), also where the product is out of range; less exact there. */
static double root_of_product(double a, double b)
{
	double product = a * b;

	return likely(isnormal(product)) ? sqrt(product) : sqrt(a) * sqrt(b);
}

static unsigned write_pair(const struct power *p, struct sample *s, unsigned at,
			   const struct means *m)
{
	double unit = p->angle_unit == PHASOR_RAD ? 1 : 180 / M_PI;
	double apparent = root_of_product(above_zero(m->uu), above_zero(m->ii));
	/* Rounding may make P the larger one. */
	double reactive = root_of_product(above_zero(apparent - m->ui),
					  above_zero(apparent + m->ui));

	if (p->active)
		s->data[at++].f = m->ui;
	if (p->reactive)
		s->data[at++].f = reactive;
	if (p->apparent)
		s->data[at++].f = apparent;
	if (p->cos_phi)
		s->data[at++].f = atan2(reactive, m->ui) * unit;
	return at;
}

/* Values come in from and go out into the same sample: all are taken before
 * any is written. */
static enum hook_verdict power_process(struct hook *h, struct sample **smp)
{
	struct power *p = h->private_data;
	struct sample *s = *smp;
	unsigned at = 0;
	double u, c;

	/* All before any: the pairs' windows and the stamps stay in step. */
	for (unsigned i = 0; i < p->count; i++)
		if (unlikely(!pair_values(&p->pairs[i].pair, h, s, &u, &c)))
			return hook_fail(h, "a sample without one of the signals");
	for (unsigned i = 0; i < p->count; i++) {
		struct power_pair *pair = &p->pairs[i];

		pair_values(&pair->pair, h, s, &u, &c);
		window_sum_push(&pair->uu, u * u);
		window_sum_push(&pair->ii, c * c);
		window_sum_push(&pair->ui, u * c);
	}
	window_stamps_push(&p->stamps, s);
	if (!window_stamps_full(&p->stamps))
		return HOOK_SKIP;
	for (unsigned i = 0; i < p->count; i++) {
		double size = (double)p->window_size;
		struct means m = { window_sum_get(&p->pairs[i].uu) / size,
				   window_sum_get(&p->pairs[i].ii) / size,
				   window_sum_get(&p->pairs[i].ui) / size };

		at = write_pair(p, s, at, &m);
	}
	s->length = at;
	if (!p->stamps.missing)
		s->origin = window_stamps_get(&p->stamps,
					      window_aligned((enum window_align)p->align,
							     p->stamps.size));
	return HOOK_OK;
}

const struct hook_type hook_power = {
	.name = "power",
	.description = "active, reactive and apparent power over a window of samples",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct power),
	.keys = power_keys,
	.key_count = ARRAY_SIZE(power_keys),
	.parse = power_parse,
	.signals = power_signals,
	.start = power_start,
	.stop = power_stop,
	.restart = power_restart,
	.destroy = power_destroy,
	.process = power_process,
};
