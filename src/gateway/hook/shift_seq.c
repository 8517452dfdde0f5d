/* SPDX-License-Identifier: BSD-2-Clause */
/* Hook `shift_seq`: adds a number to the sequence number. */
#include "gateway/plugin/hook.h"

struct shift_seq {
	int64_t offset;
};

extern const struct hook_type hook_shift_seq;

static const struct config_key shift_seq_keys[] = {
	{ "offset", CONFIG_INT, offsetof(struct shift_seq, offset),
	  .required = true, .help = "Added to the sequence number" },
};

static enum hook_verdict shift_seq_process(struct hook *h, struct sample **smp)
{
	const struct shift_seq *k = h->private_data;

	/* Modulo 2^64, so that shifting back gives the same number. */
	(*smp)->sequence += (uint64_t)k->offset;
	return HOOK_OK;
}

const struct hook_type hook_shift_seq = {
	.name = "shift_seq",
	.description = "adds a number to the sequence number",
	.places = HOOK_NODE_READ | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct shift_seq),
	.keys = shift_seq_keys,
	.key_count = ARRAY_SIZE(shift_seq_keys),
	.process = shift_seq_process,
};
