/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The times in the configuration of a recording. As long as one
 * interval fits all rows to half a microsecond, that is their rate; else the
 * record has none (nrates 0) and the stamps alone tell the time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/comtrade/comtrade.h"
#include "gateway/sample/time.h"

#define TOLERANCE_NS 500.0
#define ELAPSED_MAX INT64_C(4000000000000000000)

void comtrade_recorder_init(struct comtrade_recorder *r,
			    struct comtrade_cfg *cfg, int64_t start_ns,
			    int64_t unit_ns)
{
	bool fine = cfg->revision >= 2013;

	start_ns = MAX(start_ns, INT64_MIN + 1000);
	/* Stamps count from the start as it is written. */
	if (!fine)
		start_ns -= (start_ns % 1000 + 1000) % 1000;
	*r = (struct comtrade_recorder){
		.cfg = cfg,
		.unit_ns = fine ? unit_ns : 1000,
		.start_ns = start_ns,
		.last_ns = start_ns,
		.period_max = INFINITY,
	};
	cfg->start = cfg->trigger = comtrade_time_from_ns(start_ns, fine);
	cfg->time_multiplier = fine ? (double)r->unit_ns : 1;
	comtrade_recorder_settle(r);
}

void comtrade_recorder_destroy(struct comtrade_recorder *r)
{
	comtrade_cfg_free(r->cfg);
	r->cfg = NULL;
}

struct comtrade_row comtrade_recorder_next(struct comtrade_recorder *r,
					   int64_t origin_ns)
{
	struct comtrade_row row = { .has_number = true, .has_stamp = true };
	int64_t elapsed = sample_time_sum_ns(origin_ns, -r->start_ns);
	double n = (double)r->rows;

	/* A sample may have any time. */
	elapsed = elapsed > ELAPSED_MAX ? ELAPSED_MAX :
		  elapsed < -ELAPSED_MAX ? -ELAPSED_MAX : elapsed;
	if (r->rows > 0) {
		r->period_min = fmax(r->period_min,
				     ((double)elapsed - TOLERANCE_NS) / n);
		r->period_max = fmin(r->period_max,
				     ((double)elapsed + TOLERANCE_NS) / n);
	}
	row.number = ++r->rows;
	/* Half a unit up, also below zero. */
	row.stamp = (elapsed >= 0 ? elapsed + r->unit_ns / 2 :
				    elapsed - (r->unit_ns - 1) / 2) / r->unit_ns;
	if (row.stamp < 0 && r->cfg->data != COMTRADE_ASCII) {
		row.stamp = 0;
		r->early++;
	}
	r->last_ns = origin_ns;
	return row;
}

/* The shortest number of Hz within the limits: 50, not 49.9999998. */
static double round_rate(double low, double high)
{
	double middle = (low + high) / 2, v = middle;
	char text[40];

	for (int digits = 1; digits < 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, middle);
		v = strtod(text, NULL);
		if (v >= low && v <= high)
			return v;
	}
	return middle;
}

void comtrade_recorder_settle(struct comtrade_recorder *r)
{
	struct comtrade_rate *rate = &r->cfg->rates[0];

	rate->end = r->rows;
	rate->hz = 0;
	if (r->rows > 1 && r->period_min > 0 && r->period_min <= r->period_max)
		rate->hz = round_rate(1e9 / r->period_max, 1e9 / r->period_min);
}
