/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Built-in hook `fix`: gives a sample the sequence number, receive and origin
 * timestamp that its source did not deliver.
 */
#include "gateway/plugin/hook.h"
#include "gateway/plugin/node.h"
#include "util/clock.h"

#define ALL (SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_RECEIVED | SAMPLE_HAS_ORIGIN)

extern const struct hook_type hook_fix;

static enum hook_verdict fix_process(struct hook *h, struct sample **smp)
{
	struct sample *s;

	if (likely(((*smp)->flags & ALL) == ALL))
		return HOOK_OK;
	if (!hook_own_sample(smp))
		return HOOK_SKIP;
	s = *smp;
	if (!(s->flags & SAMPLE_HAS_SEQUENCE))
		s->sequence = h->node ? h->node->sequence++ : 0;
	if (!(s->flags & SAMPLE_HAS_RECEIVED))
		s->received = clock_realtime();
	if (!(s->flags & SAMPLE_HAS_ORIGIN))
		s->origin = s->received;
	s->flags |= ALL;
	return HOOK_OK;
}

const struct hook_type hook_fix = {
	.name = "fix",
	.description = "adds missing sequence numbers and timestamps",
	.places = HOOK_NODE_READ,
	.priority = 1,
	.builtin = true,
	.read_only = true, /* but for samples that lack something */
	.process = fix_process,
};
