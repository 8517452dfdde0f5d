/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `scale`: value * scale + offset. Integers are cut towards zero, booleans
 * are true when the result is not zero; of a complex value the offset is added
 * to the real part.
 */
#include "gateway/hook/part/select.h"

#include <errno.h>
#include <math.h>

/* Up to here a double has every integer. */
#define DOUBLE_EXACT (INT64_C(1) << 53)

struct scale {
	struct hook_select select;
	double scale, gain, offset; /* `gain` is the other name of `scale` */
};

extern const struct hook_type hook_scale;

static const struct config_key scale_keys[] = {
	HOOK_SELECT_KEYS(struct scale, select),
	{ "scale", CONFIG_REAL, offsetof(struct scale, scale), "1",
	  .help = "Factor" },
	{ "gain", CONFIG_REAL, offsetof(struct scale, gain), "1",
	  .help = "The same as scale" },
	{ "offset", CONFIG_REAL, offsetof(struct scale, offset), "0",
	  .help = "Added to the product" },
};

static int scale_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct scale *k = h->private_data;

	if (hook_select_parse(&k->select, h, HOOK_SELECT_MANY))
		return -EINVAL;
	if (!json_object_get(h->cfg, "gain"))
		return 0;
	if (json_object_get(h->cfg, "scale") && k->scale != k->gain) {
		config_fail(c, h->cfg, "gain",
			    "%.9g contradicts scale, which is %.9g; they are two names of one key",
			    k->gain, k->scale);
		return -EINVAL;
	}
	k->scale = k->gain;
	return 0;
}

static int scale_signals(struct hook *h, struct signal_list *in,
			 struct signal_list **out)
{
	struct scale *k = h->private_data;

	return hook_select_signals(&k->select, h, in, out);
}

/*
 * In double as long as it holds the value, because people expect ten times 0.7
 * to be seven, which the 64 bits of a long double, knowing 0.7 too well, miss by a
 * hair and cut to six. Beyond, every bit counts.
 */
static int64_t scale_integer(const struct scale *k, int64_t v)
{
	if (v <= DOUBLE_EXACT && v >= -DOUBLE_EXACT)
		return signal_type_to_integer((double)v * k->scale + k->offset);
	return signal_type_to_integer((long double)v * (long double)k->scale +
				      (long double)k->offset);
}

static enum hook_verdict scale_process(struct hook *h, struct sample **smp)
{
	const struct scale *k = h->private_data;
	struct sample *s = *smp;

	for (unsigned n = 0; n < k->select.count; n++) {
		unsigned i = k->select.index[n];
		union signal_data *v = &s->data[i];
		double real;

		if (i >= s->length)
			continue;
		switch (hook_value_type(h, s, i)) {
		case SIGNAL_FLOAT:
			v->f = v->f * k->scale + k->offset;
			break;
		case SIGNAL_INTEGER:
			v->i = scale_integer(k, v->i);
			break;
		case SIGNAL_BOOLEAN:
			real = (v->i ? k->scale : 0) + k->offset;
			v->i = real != 0;
			break;
		case SIGNAL_COMPLEX:
			v->z.re = (float)((double)v->z.re * k->scale +
					  k->offset);
			v->z.im = (float)((double)v->z.im * k->scale);
			break;
		}
	}
	return HOOK_OK;
}

static void scale_destroy(struct hook *h)
{
	hook_select_free(&((struct scale *)h->private_data)->select);
}

const struct hook_type hook_scale = {
	.name = "scale",
	.description = "multiplies values by a factor and adds an offset",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct scale),
	.keys = scale_keys,
	.key_count = ARRAY_SIZE(scale_keys),
	.parse = scale_parse,
	.destroy = scale_destroy,
	.signals = scale_signals,
	.process = scale_process,
};
