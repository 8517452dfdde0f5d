/* SPDX-License-Identifier: BSD-2-Clause */
/* Max-min fair shares; see fair.h. All flows grow at the same pace; one stops when it has what it wants or when a link
 * of its path is full. */
#include "fabric/simulate/fair.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define NEARLY 1e-9 /* what is left of a full link, by rounding */

struct filling {
	struct simulate_fair_flow *flows;
	size_t count;
	double *room;       /* that is left */
	double *most;       /* at the beginning */
	uint32_t *growing;  /* flows that grow, of each link */
	bool *stopped;
	uint32_t link_count;
};

/* How far all flows can grow until the first one has to stop. */
static double step_of(const struct filling *f)
{
	double step = -1;

	for (uint32_t l = 0; l < f->link_count; l++)
		if (f->growing[l] && (step < 0 || f->room[l] / f->growing[l] < step))
			step = f->room[l] / f->growing[l];
	for (size_t i = 0; i < f->count; i++) {
		double wants = f->flows[i].demand - f->flows[i].share;

		if (!f->stopped[i] && (step < 0 || wants < step))
			step = wants;
	}
	return step > 0 ? step : 0;
}

static bool must_stop(const struct filling *f, size_t i)
{
	const struct simulate_fair_flow *w = &f->flows[i];

	if (w->share >= w->demand * (1 - NEARLY))
		return true;
	for (uint32_t k = 0; k < w->link_count; k++)
		if (f->room[w->links[k]] <= f->most[w->links[k]] * NEARLY)
			return true;
	return false;
}

static void fill(struct filling *f)
{
	size_t left = f->count;

	while (left) {
		double step = step_of(f);
		size_t before = left;

		for (uint32_t l = 0; l < f->link_count; l++)
			f->room[l] -= step * f->growing[l];
		for (size_t i = 0; i < f->count; i++)
			if (!f->stopped[i])
				f->flows[i].share += step;
		for (size_t i = 0; i < f->count; i++) {
			if (f->stopped[i] || !must_stop(f, i))
				continue;
			f->stopped[i] = true;
			left--;
			for (uint32_t k = 0; k < f->flows[i].link_count; k++)
				f->growing[f->flows[i].links[k]]--;
		}
		/* Rounding has left all of them just short. */
		if (left == before)
			return;
	}
}

int simulate_fair_shares(struct simulate_fair_flow *flows, size_t count, double *room, uint32_t link_count)
{
	struct filling f = {
		.flows = flows, .count = count, .room = room, .link_count = link_count,
		.most = calloc(link_count + 1u, sizeof(double)),
		.growing = calloc(link_count + 1u, sizeof(uint32_t)), .stopped = calloc(count + 1u, sizeof(bool)),
	};
	int err = f.most && f.growing && f.stopped ? 0 : -ENOMEM;

	for (uint32_t l = 0; !err && l < link_count; l++)
		f.most[l] = room[l];
	for (size_t i = 0; !err && i < count; i++) {
		flows[i].share = 0;
		for (uint32_t k = 0; k < flows[i].link_count; k++)
			f.growing[flows[i].links[k]]++;
	}
	if (!err)
		fill(&f);
	free(f.most);
	free(f.growing);
	free(f.stopped);
	return err;
}
