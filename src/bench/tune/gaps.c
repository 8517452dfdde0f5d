/* SPDX-License-Identifier: BSD-2-Clause */
/* Loops that look for the times at which they did not run; see measure.h. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/floor/floor.h"
#include "bench/tune/measure.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/order.h"

/* More than these are counted, and not looked at for a period. */
#define GAPS_MAX 4096
/* No thread comes and goes in less: at such pauses the scheduler's counter is looked at, so
 * that a short run of another thread is not taken for the cause of the next gap. */
#define PAUSE_NS 1000
/* Fewer say nothing about a period. */
#define REGULAR_MIN 5

static uint64_t median(int64_t *values, size_t count)
{
	order_int64(values, count);
	return (uint64_t)values[count / 2];
}

/* Is `interval` one to three times the period, within a tenth of the period? */
static bool fits(uint64_t interval, uint64_t period)
{
	uint64_t times = (interval + period / 2) / period;
	uint64_t ideal = times * period;

	return times >= 1 && times <= 3 &&
	       (interval > ideal ? interval - ideal : ideal - interval) <= period / 10;
}

static bool is_by(const struct tune_gap *gap, enum tune_taker taker)
{
	return gap->switched == (taker == TUNE_SWITCHED);
}

/* Looks for a period among the gaps by `taker` that are at least `least` long. */
static bool find_period(const struct tune_gap *gaps, size_t count, enum tune_taker taker,
			uint64_t least, struct tune_taken *out)
{
	int64_t *interval = malloc((count + 1) * sizeof(*interval));
	int64_t *length = malloc((count + 1) * sizeof(*length));
	uint64_t last = 0, period = 0;
	size_t n = 0, fitting = 0;

	for (size_t i = 0; interval && length && i < count; i++) {
		if (!is_by(&gaps[i], taker) || gaps[i].ns < least)
			continue;
		length[n] = (int64_t)gaps[i].ns;
		interval[n++] = (int64_t)(gaps[i].at_ns - last);
		last = gaps[i].at_ns;
	}
	/* The first one is no interval. */
	if (n > REGULAR_MIN) {
		period = median(interval + 1, n - 1);
		for (size_t i = 1; i < n && period; i++)
			fitting += fits((uint64_t)interval[i], period);
	}
	if (period && fitting * 5 >= (n - 1) * 4) {
		out->period_ns = period;
		out->regular_ns = median(length, n);
	}
	free(interval);
	free(length);
	return out->period_ns;
}

static void add(struct tune_taken *t, size_t count, uint64_t lost_ns, uint64_t longest_ns)
{
	t->count += count;
	t->lost_ns += lost_ns;
	t->longest_ns = MAX(t->longest_ns, longest_ns);
}

void tune_gaps_evaluate(const struct tune_gap *gaps, size_t count, uint64_t duration_ns,
			struct tune_gaps *out)
{
	out->duration_ns = duration_ns;
	for (enum tune_taker taker = 0; taker < TUNE_TAKERS; taker++) {
		struct tune_taken *t = &out->by[taker];

		*t = (struct tune_taken){ 0 };
		for (size_t i = 0; i < count; i++)
			if (is_by(&gaps[i], taker))
				add(t, 1, gaps[i].ns, gaps[i].ns);
		if (!find_period(gaps, count, taker, t->longest_ns / 2, t))
			find_period(gaps, count, taker, 0, t);
	}
}

struct loop {
	pthread_t thread;
	atomic_int *go; /* 0: wait, 1: measure, -1: end */
	uint64_t duration_ns;
	struct tune_gap *gaps;
	struct tune_gaps *out;
};

static long switches(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
}

static void spin(struct loop *l)
{
	uint64_t least = clock_ns_to_ticks(TUNE_GAP_NS), pause = clock_ns_to_ticks(PAUSE_NS);
	uint64_t begin = clock_ticks(), last = begin;
	uint64_t end = begin + clock_ns_to_ticks(l->duration_ns);
	struct tune_taken more[TUNE_TAKERS] = { 0 };
	size_t count = 0;
	long before = switches();

	while (last < end) {
		uint64_t now = clock_ticks();

		if (__builtin_expect(now - last > pause, 0)) {
			long after = switches();
			struct tune_gap gap = {
				.at_ns = clock_ticks_to_ns(last - begin),
				.ns = clock_ticks_to_ns(now - last),
				.switched = after != before,
			};

			before = after;
			if (now - last > least && count < GAPS_MAX)
				l->gaps[count++] = gap;
			else if (now - last > least)
				add(&more[gap.switched ? TUNE_SWITCHED : TUNE_BELOW], 1, gap.ns,
				    gap.ns);
			/* What the system call took is no gap. */
			now = clock_ticks();
		}
		last = now;
	}
	tune_gaps_evaluate(l->gaps, count, clock_ticks_to_ns(last - begin), l->out);
	for (enum tune_taker t = 0; t < TUNE_TAKERS; t++)
		add(&l->out->by[t], more[t].count, more[t].lost_ns, more[t].longest_ns);
}

static void *run_loop(void *arg)
{
	struct loop *l = arg;
	int go;

	l->out->err = floor_pin(l->out->cpu);
	while (!(go = atomic_load(l->go)))
		sched_yield();
	if (go > 0 && !l->out->err)
		spin(l);
	return NULL;
}

/* The processors to measure on; returns how many. */
static size_t choose(const struct tune_cpus *cpus, struct tune_gaps **out)
{
	cpu_set_t allowed;
	size_t count = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return 0;
	*out = calloc((size_t)CPU_COUNT(&allowed) + 1, sizeof(**out));
	for (int i = 0; *out && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &allowed) && tune_cpus_has(cpus, i))
			(*out)[count++].cpu = i;
	return count;
}

int tune_gaps_measure(const struct tune_cpus *cpus, uint64_t duration_ns,
		      struct tune_gaps **out, size_t *count)
{
	atomic_int go = 0;
	struct tune_gap *gaps;
	struct loop *loops;
	size_t started = 0, n;
	int err = 0;

	*out = NULL;
	*count = n = choose(cpus, out);
	if (!n) {
		free(*out);
		*out = NULL;
		return -ENODEV;
	}
	clock_init();
	loops = calloc(n, sizeof(*loops));
	/* Touched now, because a page fault in the loop would be a gap. */
	gaps = malloc(n * GAPS_MAX * sizeof(*gaps));
	if (!loops || !gaps) {
		err = -ENOMEM;
		goto out;
	}
	memset(gaps, 1, n * GAPS_MAX * sizeof(*gaps));
	for (; started < n; started++) {
		struct loop *l = &loops[started];

		*l = (struct loop){ .go = &go, .duration_ns = duration_ns,
				    .gaps = gaps + started * GAPS_MAX,
				    .out = &(*out)[started] };
		err = -pthread_create(&l->thread, NULL, run_loop, l);
		if (err)
			break;
	}
	atomic_store(&go, err ? -1 : 1);
	for (size_t i = 0; i < started; i++)
		pthread_join(loops[i].thread, NULL);
out:
	free(loops);
	free(gaps);
	return err;
}
