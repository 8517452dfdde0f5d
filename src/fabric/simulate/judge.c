/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether what a scenario expects holds. */
#include <errno.h>
#include <stdlib.h>

#include "fabric/simulate/summary.h"

/* A figure of a line of traffic; negative: not known. */
static double figure_of(const struct simulate_group *g, enum simulate_figure figure)
{
	switch (figure) {
	case SIMULATE_RATE:
		return g->rate_bps * 1e-9;
	case SIMULATE_SHARE:
		return g->share;
	case SIMULATE_LEAST_SHARE:
		return g->least_share;
	case SIMULATE_LATENCY:
		return g->packets.count ? (double)hist_percentile(&g->packets, 50) * 1e-3 : -1;
	case SIMULATE_LATENCY_99:
		return g->packets.count ? (double)hist_percentile(&g->packets, 99) * 1e-3 : -1;
	default:
		return -1;
	}
}

static double figure_of_all(const struct simulate_result *r, enum simulate_figure figure)
{
	switch (figure) {
	case SIMULATE_DEADLOCKS:
		return r->deadlock_count;
	case SIMULATE_CIRCLES:
		return r->circle_count;
	case SIMULATE_LOST:
		return (double)r->lost;
	case SIMULATE_REORDERED:
		return (double)r->reordered;
	case SIMULATE_MARKED:
		return (double)r->marked;
	case SIMULATE_LAYERS:
		return r->layers;
	case SIMULATE_CARRIED:
		return r->carried;
	default:
		return -1;
	}
}

static struct simulate_verdict judge(const struct simulate_expect *e, const struct simulate_result *r)
{
	struct simulate_verdict v = { .value = e->a < 0 ? figure_of_all(r, e->figure)
							: figure_of(&r->groups[e->a], e->figure) };
	double by = e->b < 0 ? 1 : figure_of(&r->groups[e->b], e->figure), off;

	v.known = v.value >= 0 && by > 0;
	if (!v.known)
		return v;
	v.value /= by;
	off = v.value - e->value;
	v.holds = e->relation == SIMULATE_BELOW ? off < 0 : e->relation == SIMULATE_ABOVE ? off > 0 :
		  (off < 0 ? -off : off) <= e->tolerance * (e->value > 0 ? e->value : 1);
	return v;
}

int simulate_judge(const struct simulate_scenario *s, struct simulate_result *r)
{
	r->verdicts = calloc(s->expect_count + 1u, sizeof(*r->verdicts));
	if (!r->verdicts)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->expect_count; i++)
		r->verdicts[i] = judge(&s->expect[i], r);
	return 0;
}
