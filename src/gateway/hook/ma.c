/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `ma`: replaces signals by the mean of their last values; of those that
 * have come, until the window is full.
 */
#include "gateway/hook/part/moving.h"
#include "util/container_of.h"

extern const struct hook_type hook_ma;

static const struct config_key ma_keys[] = {
	HOOK_SELECT_KEYS(struct moving, select),
	{ "window_size", CONFIG_INT, offsetof(struct moving, window_size),
	  "10", .min = 1, .max = WINDOW_SIZE_MAX,
	  .help = "Samples in the window" },
};

static enum hook_verdict ma_process(struct hook *h, struct sample **smp)
{
	struct moving *m = h->private_data;
	struct sample *s = *smp;

	if (!moving_fits(m, s))
		return hook_fail(h, "a sample without one of the signals");
	for (unsigned i = 0; i < m->select.count; i++) {
		unsigned at = m->select.index[i];
		double v = window_value(s->data[at],
					hook_value_type(h, s, at));

		v = window_sum_push(&m->sums[i], v);
		s->data[at].f = v / m->sums[i].filled;
	}
	return HOOK_OK;
}

const struct hook_type hook_ma = {
	.name = "ma",
	.description = "moving average over a window of samples",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct moving),
	.keys = ma_keys,
	.key_count = ARRAY_SIZE(ma_keys),
	.parse = moving_parse,
	.signals = moving_signals,
	.start = moving_start,
	.stop = moving_stop,
	.restart = moving_restart,
	.destroy = moving_destroy,
	.process = ma_process,
};
