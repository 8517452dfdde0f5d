/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `average`: inserts the mean of some signals as a new one, called
 * "average", at position `offset`.
 */
#include "gateway/hook/part/select.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "gateway/sample/signals.h"

struct average {
	struct hook_select select;
	int64_t offset;
};

extern const struct hook_type hook_average;

static const struct config_key average_keys[] = {
	HOOK_SELECT_KEYS(struct average, select),
	{ "offset", CONFIG_INT, offsetof(struct average, offset),
	  .required = true, .min = 0, .max = SIGNALS_MAX,
	  .help = "Position of the new signal, counted from 0" },
};

static int average_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct average *a = h->private_data;

	return hook_select_parse(&a->select, h, HOOK_SELECT_MANY);
}

static int average_signals(struct hook *h, struct signal_list *in,
			   struct signal_list **out)
{
	struct average *a = h->private_data;
	unsigned count = in ? in->count : SIGNALS_DEFAULT;
	int ret = hook_select_resolve(&a->select, h, in);

	if (!ret)
		ret = hook_select_check_types(&a->select, h, in,
					      1 << SIGNAL_FLOAT |
						      1 << SIGNAL_INTEGER);
	if (ret)
		return ret;
	if (a->offset > count) {
		config_fail(h->config, h->cfg, "offset",
			    "%lld is beyond the end, there are %u signals",
			    (long long)a->offset, count);
		return -EINVAL;
	}
	*out = hook_signals_insert(in, (unsigned)a->offset, 1);
	if (!*out || !hook_signal_set(&(*out)->signals[a->offset], "average",
				      NULL, SIGNAL_FLOAT)) {
		signal_list_put(*out);
		*out = NULL;
		return -ENOMEM;
	}
	return 0;
}

static enum hook_verdict average_process(struct hook *h, struct sample **smp)
{
	const struct average *a = h->private_data;
	struct sample *s = *smp;
	unsigned at = MIN((unsigned)a->offset, s->length), n = 0;
	double sum = 0;

	if (unlikely(s->length >= s->capacity))
		return hook_fail(h, "the sample has no room for another value");
	for (unsigned k = 0; k < a->select.count; k++) {
		unsigned i = a->select.index[k];

		if (i >= s->length)
			continue;
		sum += hook_value_real(hook_value_type(h, s, i), &s->data[i]);
		n++;
	}
	memmove(&s->data[at + 1], &s->data[at],
		(s->length - at) * sizeof(s->data[0]));
	s->data[at].f = n ? sum / n : NAN;
	s->length++;
	return HOOK_OK;
}

static void average_destroy(struct hook *h)
{
	hook_select_free(&((struct average *)h->private_data)->select);
}

const struct hook_type hook_average = {
	.name = "average",
	.description = "inserts the mean of some signals",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct average),
	.keys = average_keys,
	.key_count = ARRAY_SIZE(average_keys),
	.parse = average_parse,
	.destroy = average_destroy,
	.signals = average_signals,
	.process = average_process,
};
