/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `skip_first`: drops what comes in the first seconds (by origin
 * timestamps) or the first samples, and again after each restart of the source.
 * Samples are counted by their numbers, so that lost ones count; each that is seen
 * counts as one at least, so that numbers that wrap or begin anew are no trap.
 */
#include "gateway/plugin/hook.h"

#include <errno.h>
#include <math.h>

#include "gateway/sample/time.h"

struct skip_first {
	double seconds;
	int64_t samples;

	bool by_time, seen, done;
	struct timespec first_time;
	uint64_t first; /* sequence number */
	uint64_t skipped; /* samples */
};

extern const struct hook_type hook_skip_first;

static const struct config_key skip_first_keys[] = {
	{ "seconds", CONFIG_REAL, offsetof(struct skip_first, seconds), "0",
	  .min = 0, .max = 1e9, .help = "Seconds to skip" },
	{ "samples", CONFIG_INT, offsetof(struct skip_first, samples), "0",
	  .min = 0, .max = 1e15, .help = "Samples to skip" },
};

static int skip_first_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct skip_first *k = h->private_data;
	bool samples = json_object_get(h->cfg, "samples");

	k->by_time = json_object_get(h->cfg, "seconds");
	if (samples != k->by_time)
		return 0;
	config_fail(c, h->cfg, samples ? "samples" : NULL, "%s",
		    samples ? "stands beside `seconds`; give one of them" :
			      "give `seconds` or `samples` to skip");
	return -EINVAL;
}

static void skip_first_restart(struct hook *h)
{
	struct skip_first *k = h->private_data;

	k->seen = k->done = false;
	k->skipped = 0;
}

static int skip_first_start(struct hook *h)
{
	skip_first_restart(h);
	return 0;
}

static bool is_among_the_first(struct skip_first *k, const struct sample *s)
{
	uint64_t past = s->sequence < k->first ? 0 : s->sequence - k->first;

	if (k->by_time)
		return sample_time_since_ns(s->origin, k->first_time) <
		       llround(k->seconds * 1e9);
	return past < (uint64_t)k->samples &&
	       k->skipped++ < (uint64_t)k->samples;
}

static enum hook_verdict skip_first_process(struct hook *h,
					    struct sample **smp)
{
	struct skip_first *k = h->private_data;
	const struct sample *s = *smp;

	if (likely(k->done))
		return HOOK_OK;
	if (!(s->flags & (k->by_time ? SAMPLE_HAS_ORIGIN : SAMPLE_HAS_SEQUENCE)))
		return hook_fail(h, k->by_time ?
					    "a sample without origin timestamp" :
					    "a sample without sequence number");
	if (!k->seen) {
		k->seen = true;
		k->first = s->sequence;
		k->first_time = s->origin;
	}
	if (is_among_the_first(k, s))
		return HOOK_SKIP;
	k->done = true;
	return HOOK_OK;
}

const struct hook_type hook_skip_first = {
	.name = "skip_first",
	.description = "drops the first seconds or samples",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.read_only = true,
	.size = sizeof(struct skip_first),
	.keys = skip_first_keys,
	.key_count = ARRAY_SIZE(skip_first_keys),
	.parse = skip_first_parse,
	.start = skip_first_start,
	.restart = skip_first_restart,
	.process = skip_first_process,
};
