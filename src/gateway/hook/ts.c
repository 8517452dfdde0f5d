/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `ts`: the receive timestamp becomes the origin timestamp too. A sample
 * that has none stays as it is.
 */
#include "gateway/plugin/hook.h"

extern const struct hook_type hook_ts;

static enum hook_verdict ts_process(struct hook *h, struct sample **smp)
{
	struct sample *s = *smp;

	if (s->flags & SAMPLE_HAS_RECEIVED) {
		s->origin = s->received;
		s->flags |= SAMPLE_HAS_ORIGIN;
	}
	return HOOK_OK;
}

const struct hook_type hook_ts = {
	.name = "ts",
	.description = "takes the receive timestamp as origin timestamp",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.process = ts_process,
};
