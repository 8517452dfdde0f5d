/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the time of a case goes; see show.h. */
#include <errno.h>
#include <stdio.h>

#include "bench/report/show.h"
#include "bench/report/table.h"

static struct budget_part part_of(const struct report_series *s)
{
	return (struct budget_part){
		.label = s->label,
		.count = s->statistics.count,
		.p10 = (double)s->statistics.percentile[0],
		.median = (double)s->statistics.percentile[2],
		.p90 = (double)s->statistics.percentile[4],
		.middle = s->statistics.middle,
	};
}

/* Of the case's latency `whole`; false: it has no parts. */
static bool find_budget(const struct report_case *c, const struct report_series *whole,
			struct budget *b)
{
	*b = (struct budget){ .whole = part_of(whole) };
	for (size_t i = 0; i < c->series_count && b->count < BUDGET_PARTS_MAX; i++)
		if (budget_is_part_of(c->series[i].name, whole->name))
			b->parts[b->count++] = part_of(&c->series[i]);
	budget_add_up(b);
	return b->count > 0;
}

static int show_budget(struct work *w, struct report_case *c, const struct report_series *whole,
		       const struct budget *b)
{
	char label[REPORT_LABEL_MAX], what[200];
	struct drawing d;
	int ret = page_figure_begin(w->p, &d);

	if (ret)
		return ret;
	figure_budget(&d.figure, b);
	snprintf(what, sizeof(what), "Where the time goes, mean of the middle 80 %%, bars from 10 to 90 %%: %.40s; %s",
		 whole->name, report_case_label(w->g, c, label));
	ret = page_figure_draw(w->p, &d, w->g->question ? w->g->question : w->g->kind, what);
	if (ret)
		return ret;
	table_budget(w->p->out, b);
	page_figure_end(w->p, &c, 1);
	return 0;
}

int show_budgets(struct work *w, struct report_case *c)
{
	int ret = 0;

	for (size_t i = 0; i < c->series_count && !ret; i++) {
		struct budget b;

		if (!budget_is_part(c->series[i].name) && find_budget(c, &c->series[i], &b))
			ret = show_budget(w, c, &c->series[i], &b);
	}
	return ret;
}
