/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Built-in hook `restart`: notices that the source began anew and marks that
 * sample SAMPLE_NEW_SIMULATION, on which later hooks reset themselves.
 *
 * The sequence number going back to 0 says so. So does a smaller number with a
 * later origin time: the first samples after a restart may have been lost, and
 * a sample that was merely overtaken on its way has an earlier origin. A number of
 * 32 bits that has wrapped is no restart.
 */
#define LOG_ROOM "gateway/hook"
#include "gateway/plugin/hook.h"
#include "util/clock.h"
#include "util/log.h"

struct restart {
	bool seen;
	uint64_t sequence; /* of the last sample */
	uint64_t origin_ns;
	uint64_t restarts;
};

extern const struct hook_type hook_restart;

static enum hook_verdict restart_process(struct hook *h, struct sample **smp)
{
	struct sample *s = *smp;
	struct restart *r = h->private_data;
	uint64_t origin_ns;

	if (unlikely(!(s->flags & SAMPLE_HAS_SEQUENCE)))
		return HOOK_OK;
	origin_ns = s->flags & SAMPLE_HAS_ORIGIN ? timespec_to_ns(s->origin) : 0;
	if (unlikely(r->seen && s->sequence < r->sequence) &&
	    !sample_sequence_wrapped(r->sequence, s->sequence)) {
		if (s->sequence && origin_ns <= r->origin_ns)
			return HOOK_OK;
		if (!hook_own_sample(smp))
			return HOOK_SKIP;
		s = *smp;
		s->flags |= SAMPLE_NEW_SIMULATION;
		/* The first ones are news; a source that does nothing else
		 * must not fill the log. */
		if (r->restarts++ < 5)
			log_info("%s: the source began anew, sequence %llu after %llu",
				 h->owner, (unsigned long long)s->sequence,
				 (unsigned long long)r->sequence);
	}
	r->seen = true;
	r->sequence = s->sequence;
	r->origin_ns = origin_ns;
	return HOOK_OK;
}

static int restart_start(struct hook *h)
{
	((struct restart *)h->private_data)->seen = false;
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
