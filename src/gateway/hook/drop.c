/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Built-in hook `drop`: takes out samples whose sequence number does not grow
 * (doubles and such that were overtaken on their way), unless the hook `restart`
 * has found that their source began anew.
 */
#include "gateway/plugin/hook.h"
#include "gateway/sample/sequence.h"

struct drop {
	bool seen;
	uint64_t sequence; /* of the last sample that went through */
};

extern const struct hook_type hook_drop;

static enum hook_verdict drop_process(struct hook *h, struct sample **smp)
{
	const struct sample *s = *smp;
	struct drop *d = h->private_data;

	if (unlikely(!(s->flags & SAMPLE_HAS_SEQUENCE)))
		return HOOK_OK;
	if (unlikely(d->seen && s->sequence <= d->sequence &&
		     !(s->flags & SAMPLE_NEW_SIMULATION) &&
		     !sequence_wrapped(d->sequence, s->sequence)))
		return HOOK_SKIP;
	d->seen = true;
	d->sequence = s->sequence;
	return HOOK_OK;
}

/* Behind a restart of its node numbers begin anew. */
static int drop_start(struct hook *h)
{
	((struct drop *)h->private_data)->seen = false;
	return 0;
}

const struct hook_type hook_drop = {
	.name = "drop",
	.description = "drops samples whose sequence number does not grow",
	.places = HOOK_NODE_READ,
	.priority = 3,
	.builtin = true,
	.read_only = true,
	.size = sizeof(struct drop),
	.start = drop_start,
	.process = drop_process,
};
