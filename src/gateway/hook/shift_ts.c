/* SPDX-License-Identifier: BSD-2-Clause */
/* Hook `shift_ts`: adds seconds to the origin or the receive timestamp. */
#include "gateway/plugin/hook.h"

#include <math.h>

#include "gateway/sample/time.h"

/* The short names are those of the code of VILLASnode, the long ones those of
 * its documents. */
static const char *const mode_names[] = { "origin", "received", "ts_origin",
					  "ts_received", NULL };

struct shift_ts {
	int mode;
	double offset;

	int64_t offset_ns;
};

extern const struct hook_type hook_shift_ts;

static const struct config_key shift_ts_keys[] = {
	{ "mode", CONFIG_ENUM, offsetof(struct shift_ts, mode), "origin",
	  .names = mode_names, .help = "Which timestamp" },
	{ "offset", CONFIG_REAL, offsetof(struct shift_ts, offset),
	  .required = true, .min = -9e9, .max = 9e9,
	  .help = "Seconds that are added" },
};

static int shift_ts_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct shift_ts *k = h->private_data;

	k->offset_ns = llround(k->offset * 1e9);
	return 0;
}

static enum hook_verdict shift_ts_process(struct hook *h, struct sample **smp)
{
	const struct shift_ts *k = h->private_data;
	bool received = k->mode % 2;
	struct timespec *t = received ? &(*smp)->received : &(*smp)->origin;

	if ((*smp)->flags & (received ? SAMPLE_HAS_RECEIVED : SAMPLE_HAS_ORIGIN))
		*t = sample_time_add_ns(*t, k->offset_ns);
	return HOOK_OK;
}

const struct hook_type hook_shift_ts = {
	.name = "shift_ts",
	.description = "adds seconds to a timestamp",
	.places = HOOK_NODE_READ | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct shift_ts),
	.keys = shift_ts_keys,
	.key_count = ARRAY_SIZE(shift_ts_keys),
	.parse = shift_ts_parse,
	.process = shift_ts_process,
};
