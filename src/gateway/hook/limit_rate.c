/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `limit_rate`: drops samples that come earlier than one period of `rate`
 * after the last one that went through.
 */
#include "gateway/plugin/hook.h"

#include <errno.h>
#include <math.h>

#include "gateway/sample/time.h"
#include "util/clock.h"

enum mode { LOCAL, RECEIVED, ORIGIN };
static const char *const mode_names[] = { "local", "received", "origin", NULL };

struct limit_rate {
	double rate;
	int mode;

	int64_t period_ns;
	struct timespec last;
	bool seen;
};

extern const struct hook_type hook_limit_rate;

static const struct config_key limit_rate_keys[] = {
	{ "rate", CONFIG_REAL, offsetof(struct limit_rate, rate),
	  .required = true, .min = 1e-9, .max = 1e9,
	  .help = "Samples per second at most" },
	{ "mode", CONFIG_ENUM, offsetof(struct limit_rate, mode), "local",
	  .names = mode_names,
	  .help = "Which time counts: now, or a timestamp of the sample" },
};

static int limit_rate_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct limit_rate *l = h->private_data;

	l->period_ns = l->rate > 0 ? llround(1e9 / l->rate) : 0;
	return 0;
}

static void limit_rate_restart(struct hook *h)
{
	((struct limit_rate *)h->private_data)->seen = false;
}

static int limit_rate_start(struct hook *h)
{
	limit_rate_restart(h);
	return 0;
}

static enum hook_verdict limit_rate_process(struct hook *h,
					    struct sample **smp)
{
	struct limit_rate *l = h->private_data;
	const struct sample *s = *smp;
	struct timespec now = { 0 };
	int64_t since_ns;

	switch ((enum mode)l->mode) {
	case LOCAL:
		now = timespec_from_ns(clock_now_ns());
		break;
	case RECEIVED:
		if (!(s->flags & SAMPLE_HAS_RECEIVED))
			return hook_fail(h, "a sample without receive timestamp");
		now = s->received;
		break;
	case ORIGIN:
		if (!(s->flags & SAMPLE_HAS_ORIGIN))
			return hook_fail(h, "a sample without origin timestamp");
		now = s->origin;
		break;
	}
	/* A sample that was overtaken on its way is early, too; a stamp much earlier
	 * means that the clock was set, or that the last one was wrong. */
	since_ns = sample_time_since_ns(now, l->last);
	if (l->seen && since_ns < l->period_ns &&
	    since_ns > -MAX(l->period_ns, SAMPLE_TIME_SECOND))
		return HOOK_SKIP;
	l->seen = true;
	l->last = now;
	return HOOK_OK;
}

const struct hook_type hook_limit_rate = {
	.name = "limit_rate",
	.description = "drops samples that come faster than a rate",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.read_only = true,
	.size = sizeof(struct limit_rate),
	.keys = limit_rate_keys,
	.key_count = ARRAY_SIZE(limit_rate_keys),
	.parse = limit_rate_parse,
	.start = limit_rate_start,
	.restart = limit_rate_restart,
	.process = limit_rate_process,
};
