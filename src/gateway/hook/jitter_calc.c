/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `jitter_calc`: one-way delay of the last 16 samples (mean, variance) and
 * its jitter by RFC 3550, 6.4.1: J += (|D| - J) / 16, where D is the difference
 * of the delays of two samples one after the other. Logged at the rate of the
 * statistics and at the end.
 */
#define LOG_ROOM "gateway/hook"
#include "gateway/plugin/hook.h"

#include <math.h>

#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/log.h"

#define WINDOW 16

struct jitter_calc {
	double delays_us[WINDOW]; /* the last ones */
	unsigned count, next;
	double jitter_us;
	/* For the statistics thread. */
	_Atomic double mean, variance, jitter;
	_Atomic uint64_t samples;
};

extern const struct hook_type hook_jitter_calc;

static void jitter_calc_restart(struct hook *h)
{
	struct jitter_calc *j = h->private_data;

	j->count = j->next = 0;
	j->jitter_us = 0;
}

static int jitter_calc_start(struct hook *h)
{
	jitter_calc_restart(h);
	return 0;
}

/* Over the window anew each time: 16 additions cost nothing, and no error grows. */
static void publish(struct jitter_calc *j)
{
	double mean = 0, squares = 0;

	for (unsigned i = 0; i < j->count; i++)
		mean += j->delays_us[i] / j->count;
	for (unsigned i = 0; i < j->count; i++)
		squares += (j->delays_us[i] - mean) * (j->delays_us[i] - mean);
	atomic_store_explicit(&j->mean, mean, memory_order_relaxed);
	atomic_store_explicit(&j->variance,
			      j->count > 1 ? squares / (j->count - 1) : 0,
			      memory_order_relaxed);
	atomic_store_explicit(&j->jitter, j->jitter_us, memory_order_relaxed);
	atomic_fetch_add_explicit(&j->samples, 1, memory_order_relaxed);
}

static enum hook_verdict jitter_calc_process(struct hook *h,
					     struct sample **smp)
{
	struct jitter_calc *j = h->private_data;
	const struct sample *s = *smp;
	struct timespec now;
	double delay_us, last_us;

	if (!(s->flags & SAMPLE_HAS_ORIGIN))
		return HOOK_OK;
	now = s->flags & SAMPLE_HAS_RECEIVED ? s->received : clock_realtime();
	delay_us = (double)sample_time_since_ns(now, s->origin) / 1e3;
	if (j->count) {
		last_us = j->delays_us[(j->next + WINDOW - 1) % WINDOW];
		j->jitter_us += (fabs(delay_us - last_us) - j->jitter_us) / 16;
	}
	j->delays_us[j->next] = delay_us;
	j->next = (j->next + 1) % WINDOW;
	if (j->count < WINDOW)
		j->count++;
	publish(j);
	return HOOK_OK;
}

static void jitter_calc_print(struct hook *h)
{
	struct jitter_calc *j = h->private_data;

	if (j->samples)
		log_info("%s: jitter %.3f us, delay %.3f us, variance %.3f us^2 (the last %d samples)",
			 h->owner, j->jitter, j->mean, j->variance, WINDOW);
}

static int jitter_calc_stop(struct hook *h)
{
	jitter_calc_print(h);
	return 0;
}

const struct hook_type hook_jitter_calc = {
	.name = "jitter_calc",
	.description = "logs mean, variance and jitter of the one-way delay",
	.places = HOOK_NODE_READ | HOOK_PATH,
	.priority = 0,
	.read_only = true,
	.size = sizeof(struct jitter_calc),
	.start = jitter_calc_start,
	.stop = jitter_calc_stop,
	.restart = jitter_calc_restart,
	.process = jitter_calc_process,
	.periodic = jitter_calc_print,
};
