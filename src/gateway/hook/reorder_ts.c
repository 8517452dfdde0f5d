/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `reorder_ts`: puts samples in the order of their origin timestamps. It
 * holds `window_size` of them back and, from then on, gives the oldest for each
 * that comes. What it holds at the end is dropped, or goes on in order where
 * `flush` asks for it.
 *
 * What is held from before a restart of the source goes first, whatever its
 * timestamps: a simulation may begin anew at time 0.
 */
#define LOG_ROOM "gateway/hook"
#include "gateway/plugin/hook.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/time.h"
#include "util/log.h"

struct held {
	uint64_t epoch; /* restarts before it */
	struct timespec origin;
	struct sample *sample;
};

struct reorder_ts {
	int64_t window_size;
	bool flush;

	struct held *window; /* sorted, the oldest first */
	unsigned count;
	uint64_t epoch;
};

extern const struct hook_type hook_reorder_ts;

static const struct config_key reorder_ts_keys[] = {
	{ "window_size", CONFIG_INT, offsetof(struct reorder_ts, window_size),
	  "16", .min = 1, .max = 65536,
	  .help = "Samples that are held back" },
	{ "flush", CONFIG_BOOL, offsetof(struct reorder_ts, flush), "false",
	  .help = "At the end pass on those that are held, else they are dropped" },
};

static int reorder_ts_start(struct hook *h)
{
	struct reorder_ts *r = h->private_data;

	r->count = 0;
	/* One more for the sample that comes. */
	r->window = calloc((size_t)r->window_size + 1, sizeof(*r->window));
	return r->window ? 0 : -ENOMEM;
}

static int reorder_ts_stop(struct hook *h)
{
	struct reorder_ts *r = h->private_data;

	if (r->count)
		log_info("%s: hook reorder_ts drops the %u samples that it holds at the end (flush = true passes them on)",
			 h->owner, r->count);
	while (r->count)
		sample_put(r->window[--r->count].sample);
	free(r->window);
	r->window = NULL;
	return 0;
}

static unsigned reorder_ts_hold_max(const struct hook *h)
{
	return (unsigned)((const struct reorder_ts *)h->private_data)->window_size;
}

static void reorder_ts_restart(struct hook *h)
{
	((struct reorder_ts *)h->private_data)->epoch++;
}

static bool later(const struct held *a, const struct held *b)
{
	return a->epoch != b->epoch ? a->epoch > b->epoch :
				      sample_time_is_later(a->origin, b->origin);
}

static struct sample *take_oldest(struct reorder_ts *r)
{
	struct sample *s = r->window[0].sample;

	memmove(r->window, r->window + 1, --r->count * sizeof(*r->window));
	return s;
}

static enum hook_verdict reorder_ts_process(struct hook *h,
					    struct sample **smp)
{
	struct reorder_ts *r = h->private_data;
	struct held new = { r->epoch, (*smp)->origin, *smp };
	unsigned at = r->count;

	/* From the end: mostly it is already the last one. */
	while (at > 0 && later(&r->window[at - 1], &new))
		at--;
	memmove(&r->window[at + 1], &r->window[at],
		(r->count - at) * sizeof(*r->window));
	r->window[at] = new;
	r->count++;
	if (r->count <= r->window_size)
		return HOOK_HOLD;
	*smp = take_oldest(r);
	return HOOK_OK;
}

static struct sample *reorder_ts_flush(struct hook *h)
{
	struct reorder_ts *r = h->private_data;

	return r->flush && r->count ? take_oldest(r) : NULL;
}

const struct hook_type hook_reorder_ts = {
	.name = "reorder_ts",
	.description = "puts samples in the order of their origin timestamps",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	/* Before `drop`, which would take out what was overtaken. */
	.priority = 2,
	.read_only = true,
	.size = sizeof(struct reorder_ts),
	.keys = reorder_ts_keys,
	.key_count = ARRAY_SIZE(reorder_ts_keys),
	.start = reorder_ts_start,
	.stop = reorder_ts_stop,
	.restart = reorder_ts_restart,
	.hold_max = reorder_ts_hold_max,
	.flush = reorder_ts_flush,
	.process = reorder_ts_process,
};
