/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `round`: rounds real and complex values to `precision` decimal places,
 * halves away from zero. Integers and booleans stay as they are.
 */
#include "gateway/hook/part/select.h"

#include <math.h>

struct round {
	struct hook_select select;
	int64_t precision;

	double factor;
};

extern const struct hook_type hook_round;

static const struct config_key round_keys[] = {
	HOOK_SELECT_KEYS(struct round, select),
	{ "precision", CONFIG_INT, offsetof(struct round, precision), "1",
	  .min = 0, .max = 300, .help = "Decimal places" },
};

static int round_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct round *r = h->private_data;

	r->factor = pow(10, (double)r->precision);
	return hook_select_parse(&r->select, h, HOOK_SELECT_MANY);
}

static int round_signals(struct hook *h, struct signal_list *in,
			 struct signal_list **out)
{
	struct round *r = h->private_data;

	return hook_select_signals(&r->select, h, in, out);
}

static double round_one(double v, double factor)
{
	double scaled = v * factor;

	/* Beyond 2^52 there are no more decimal places to round. */
	return fabs(scaled) < 0x1p52 ? round(scaled) / factor : v;
}

static enum hook_verdict round_process(struct hook *h, struct sample **smp)
{
	const struct round *r = h->private_data;
	struct sample *s = *smp;

	for (unsigned k = 0; k < r->select.count; k++) {
		unsigned i = r->select.index[k];
		union signal_data *v = &s->data[i];

		if (i >= s->length)
			continue;
		switch (hook_value_type(h, s, i)) {
		case SIGNAL_FLOAT:
			v->f = round_one(v->f, r->factor);
			break;
		case SIGNAL_COMPLEX:
			v->z.re = (float)round_one((double)v->z.re, r->factor);
			v->z.im = (float)round_one((double)v->z.im, r->factor);
			break;
		case SIGNAL_INTEGER:
		case SIGNAL_BOOLEAN:
			break;
		}
	}
	return HOOK_OK;
}

static void round_destroy(struct hook *h)
{
	hook_select_free(&((struct round *)h->private_data)->select);
}

const struct hook_type hook_round = {
	.name = "round",
	.description = "rounds values to some decimal places",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct round),
	.keys = round_keys,
	.key_count = ARRAY_SIZE(round_keys),
	.parse = round_parse,
	.destroy = round_destroy,
	.signals = round_signals,
	.process = round_process,
};
