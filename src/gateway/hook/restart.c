/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Built-in hook `restart`: notices that the source began anew and marks that
 * sample SAMPLE_NEW_SIMULATION, on which later hooks reset themselves.
 *
 * sequence.h states by which rule.
 */
#define LOG_ROOM "gateway/hook"
#include "gateway/plugin/hook.h"
#include "gateway/sample/sequence.h"
#include "util/log.h"

struct restart {
	struct sequence sequence;
	uint64_t restarts;
};

extern const struct hook_type hook_restart;

static enum hook_verdict restart_process(struct hook *h, struct sample **smp)
{
	const struct sample *s = *smp;
	struct restart *r = h->private_data;
	uint64_t before = r->sequence.last;

	if (likely(sequence_judge(&r->sequence, s) != SEQUENCE_RESTART))
		return HOOK_OK;
	/* The first ones are news; a source that does nothing else must not fill
	 * the log. */
	if (r->restarts++ < 5)
		log_info("%s: the source began anew, sequence %llu after %llu",
			 h->owner, (unsigned long long)s->sequence,
			 (unsigned long long)before);
	if (s->flags & SAMPLE_NEW_SIMULATION)
		return HOOK_OK;
	if (!hook_own_sample(smp))
		return HOOK_SKIP;
	(*smp)->flags |= SAMPLE_NEW_SIMULATION;
	return HOOK_OK;
}

static int restart_start(struct hook *h)
{
	((struct restart *)h->private_data)->sequence = (struct sequence){ 0 };
	return 0;
}

const struct hook_type hook_restart = {
	.name = "restart",
	.description = "marks the first sample after a restart of the source",
	.places = HOOK_NODE_READ,
	.priority = 1,
	.builtin = true,
	.read_only = true, /* but for the one that it marks */
	.size = sizeof(struct restart),
	.start = restart_start,
	.process = restart_process,
};
