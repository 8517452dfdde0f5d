/* SPDX-License-Identifier: BSD-2-Clause */
/* Hook `decimate`: lets every `ratio`-th sample through, the first one too. */
#include "gateway/plugin/hook.h"

struct decimate {
	int64_t ratio;
	bool renumber;

	int64_t counter; /* samples to drop before the next one goes through */
};

extern const struct hook_type hook_decimate;

static const struct config_key decimate_keys[] = {
	{ "ratio", CONFIG_INT, offsetof(struct decimate, ratio),
	  .required = true, .min = 1, .max = 1e15,
	  .help = "One of how many samples goes through" },
	{ "renumber", CONFIG_BOOL, offsetof(struct decimate, renumber), "false",
	  .help = "Divide sequence numbers by the ratio" },
};

static void decimate_restart(struct hook *h)
{
	((struct decimate *)h->private_data)->counter = 0;
}

static int decimate_start(struct hook *h)
{
	decimate_restart(h);
	return 0;
}

static enum hook_verdict decimate_process(struct hook *h, struct sample **smp)
{
	struct decimate *d = h->private_data;

	if (d->counter) {
		d->counter--;
		return HOOK_SKIP;
	}
	d->counter = d->ratio - 1;
	if (!d->renumber)
		return HOOK_OK;
	if (!hook_own_sample(smp))
		return HOOK_SKIP;
	(*smp)->sequence /= (uint64_t)d->ratio;
	return HOOK_OK;
}

const struct hook_type hook_decimate = {
	.name = "decimate",
	.description = "lets one of several samples through",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.read_only = true,
	.size = sizeof(struct decimate),
	.keys = decimate_keys,
	.key_count = ARRAY_SIZE(decimate_keys),
	.start = decimate_start,
	.restart = decimate_restart,
	.process = decimate_process,
};
