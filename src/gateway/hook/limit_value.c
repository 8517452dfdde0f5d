/* SPDX-License-Identifier: BSD-2-Clause */
/* Hook `limit_value`: keeps values between `min` and `max`. NaN stays NaN. */
#include "gateway/hook/part/select.h"

#include <errno.h>
#include <math.h>

struct limit_value {
	struct hook_select select;
	double min, max;

	int64_t min_integer, max_integer; /* of the integers between them */
};

extern const struct hook_type hook_limit_value;

static const struct config_key limit_value_keys[] = {
	HOOK_SELECT_KEYS(struct limit_value, select),
	{ "min", CONFIG_REAL, offsetof(struct limit_value, min),
	  .required = true, .help = "Lowest value" },
	{ "max", CONFIG_REAL, offsetof(struct limit_value, max),
	  .required = true, .help = "Highest value" },
};

static int limit_value_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct limit_value *l = h->private_data;

	if (hook_select_parse(&l->select, h, HOOK_SELECT_MANY))
		return -EINVAL;
	if (l->min > l->max) {
		config_fail(c, h->cfg, "min", "%.17g is above max, which is %.17g",
			    l->min, l->max);
		return -EINVAL;
	}
	l->min_integer = signal_type_to_integer(ceil(l->min));
	l->max_integer = signal_type_to_integer(floor(l->max));
	return 0;
}

static int limit_value_signals(struct hook *h, struct signal_list *in,
			       struct signal_list **out)
{
	struct limit_value *l = h->private_data;
	int ret = hook_select_signals(&l->select, h, in, out);

	if (ret)
		return ret;
	ret = hook_select_check_types(&l->select, h, in,
				      1 << SIGNAL_FLOAT | 1 << SIGNAL_INTEGER);
	if (ret) {
		signal_list_put(*out);
		*out = NULL;
		return ret;
	}
	for (unsigned k = 0; in && k < l->select.count; k++) {
		const struct signal *sig = &in->signals[l->select.index[k]];

		if (sig->type != SIGNAL_INTEGER ||
		    l->min_integer <= l->max_integer)
			continue;
		config_fail(h->config, h->cfg, "min",
			    "there is no integer from %.17g to %.17g for signal '%s'",
			    l->min, l->max, sig->name);
		signal_list_put(*out);
		*out = NULL;
		return -EINVAL;
	}
	return 0;
}

static enum hook_verdict limit_value_process(struct hook *h,
					     struct sample **smp)
{
	const struct limit_value *l = h->private_data;
	struct sample *s = *smp;

	for (unsigned k = 0; k < l->select.count; k++) {
		unsigned i = l->select.index[k];
		union signal_data *v = &s->data[i];

		if (i >= s->length)
			continue;
		if (hook_value_type(h, s, i) == SIGNAL_INTEGER) {
			v->i = MAX(v->i, l->min_integer);
			v->i = MIN(v->i, l->max_integer);
		} else if (v->f > l->max) {
			v->f = l->max;
		} else if (v->f < l->min) {
			v->f = l->min;
		}
	}
	return HOOK_OK;
}

static void limit_value_destroy(struct hook *h)
{
	hook_select_free(&((struct limit_value *)h->private_data)->select);
}

const struct hook_type hook_limit_value = {
	.name = "limit_value",
	.description = "keeps values between two limits",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct limit_value),
	.keys = limit_value_keys,
	.key_count = ARRAY_SIZE(limit_value_keys),
	.parse = limit_value_parse,
	.destroy = limit_value_destroy,
	.signals = limit_value_signals,
	.process = limit_value_process,
};
