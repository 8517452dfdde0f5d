/* SPDX-License-Identifier: BSD-2-Clause */
/* See disturbance.h. */
#include "bench/result/disturbance.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/floor/floor.h"
#include "bench/result/number.h"
#include "bench/result/show.h"
#include "bench/tune/tree.h"
#include "util/clock.h"

/* Shares of fewer ticks say nothing. */
#define TICKS_MIN 50

bool disturbance_parse(const char *line, double hz, struct disturbance_times *t)
{
	struct tune_ticks ticks;

	if (!tune_ticks_parse(line, &ticks) || !(hz > 0))
		return false;
	t->busy = (double)ticks.busy / hz;
	t->stolen = (double)ticks.stolen / hz;
	t->all = (double)ticks.all / hz;
	return true;
}

double disturbance_seconds(int who)
{
	struct rusage u;

	if (getrusage(who, &u))
		return 0;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void disturbance_now(struct disturbance_times *t)
{
	char line[300];

	*t = (struct disturbance_times){ .own = disturbance_seconds(RUSAGE_SELF) +
						disturbance_seconds(RUSAGE_CHILDREN) };
	t->known = !tune_tree_line(&tune_here, "/proc/stat", line, sizeof(line)) &&
		   disturbance_parse(line, (double)sysconf(_SC_CLK_TCK), t);
}

static json_t *percent(double part, double all, bool known)
{
	return known ? json_real(round(1e4 * fmin(fmax(part / all, 0), 1)) / 100) : json_null();
}

json_t *disturbance_between(const struct disturbance_times *from,
			    const struct disturbance_times *to)
{
	double all = to->all - from->all, own = to->own - from->own;
	bool known = from->known && to->known &&
		     all * (double)sysconf(_SC_CLK_TCK) >= TICKS_MIN;

	return json_pack("{s:o, s:o, s:o}", "processor_seconds",
			 known ? json_real(all) : json_null(), "stolen_percent",
			 percent(to->stolen - from->stolen, all, known),
			 "others_percent",
			 percent(to->busy - from->busy - own, all, known));
}

/* ---- the floor, again and again ---- */

static json_t *load_now(void)
{
	double load;

	return getloadavg(&load, 1) == 1 ? json_real(load) : json_null();
}

static json_t *check(const char *at, double line_ns, double best_ns, double missed)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "at", at, "cacheline_oneway_ns",
			 number_json(line_ns), "best_ns", number_json(best_ns), "missed_percent",
			 number_json(missed), "load", load_now());
}

json_t *disturbance_check_of(const char *at, const json_t *floor)
{
	const json_t *line = json_object_get(floor, "cacheline_oneway_ns");
	const json_t *missed = json_object_get(floor, "paced_100k_missed");

	return check(at, number_of(line, "median"), number_of(line, "best"),
		     number_of(missed, "median"));
}

static void measure(const char *name, const struct floor_setting *setting,
		    struct floor_result *r)
{
	*r = (struct floor_result){ .median = NAN, .best = NAN, .err = -1 };
	for (size_t i = 0; i < floor_measure_count; i++)
		if (!strcmp(floor_measures[i].name, name))
			floor_measure_run(&floor_measures[i], setting, r);
	if (r->err)
		r->median = r->best = NAN;
}

json_t *disturbance_check(const char *at)
{
	struct floor_setting setting;
	struct floor_result line, missed;

	clock_init();
	if (floor_default_setting(&setting))
		return check(at, NAN, NAN, NAN);
	measure("cacheline_oneway_ns", &setting, &line);
	measure("paced_100k_missed", &setting, &missed);
	return check(at, line.median, line.best, missed.median);
}

/* ---- what follows ---- */

static void add_reason(json_t *reasons, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void add_reason(json_t *reasons, const char *fmt, ...)
{
	char text[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	json_array_append_new(reasons, json_string(text));
}

/* "31 %", "2.5 %" */
static const char *shown_percent(double v, char buf[16])
{
	snprintf(buf, 16, v < 10 ? "%.1f %%" : "%.0f %%", v);
	return buf;
}

static void reasons_of_shares(const json_t *o, json_t *reasons)
{
	double stolen = number_of(o, "stolen_percent"), others = number_of(o, "others_percent");
	char buf[16];

	if (stolen >= DISTURBANCE_STOLEN_PERCENT)
		add_reason(reasons, "the host took the processors away for %s of the time",
			   shown_percent(stolen, buf));
	if (others >= DISTURBANCE_OTHERS_PERCENT)
		add_reason(reasons, "other programs used %s of the processors",
			   shown_percent(others, buf));
}

static void reasons_of_floor(const json_t *run, json_t *reasons)
{
	double missed = number_of(run, "missed_percent"), best = number_of(run, "floor_ns");
	double worst = number_of(run, "floor_worst_ns");
	char a[32], b[32];

	if (missed >= DISTURBANCE_MISSED_PERCENT)
		add_reason(reasons, "a loop that does nothing else missed %s of its steps at "
			   "100 kHz", shown_percent(missed, a));
	if (worst / best >= DISTURBANCE_FLOOR_RATIO)
		add_reason(reasons, "a cache line to the other processor took %s at best and %s "
			   "at worst", show_ns(best, a), show_ns(worst, b));
}

static void set_floor(json_t *run)
{
	double best = NAN, worst = NAN, missed = NAN;
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(run, "checks"), i, one) {
		double ns = number_of(one, "cacheline_oneway_ns");

		/* fmin and fmax leave out what is no number. */
		best = fmin(best, ns);
		worst = fmax(worst, ns);
		missed = fmax(missed, number_of(one, "missed_percent"));
	}
	json_object_set_new(run, "floor_ns", number_json(best));
	json_object_set_new(run, "floor_worst_ns", number_json(worst));
	json_object_set_new(run, "floor_ratio", number_json(worst / best));
	json_object_set_new(run, "missed_percent", number_json(missed));
}

static json_t *line_of(const json_t *reasons)
{
	char text[1000] = "this machine was busy: ";
	const json_t *one;
	size_t i;

	json_array_foreach(reasons, i, one) {
		size_t n = strlen(text);

		snprintf(text + n, sizeof(text) - n, "%s%s", i ? "; " : "",
			 json_string_value(one));
	}
	return json_array_size(reasons) ? json_string(text) : json_null();
}

void disturbance_judge(json_t *run)
{
	json_t *reasons = json_array();

	set_floor(run);
	reasons_of_shares(run, reasons);
	reasons_of_floor(run, reasons);
	json_object_set_new(run, "busy", json_boolean(json_array_size(reasons)));
	json_object_set_new(run, "line", line_of(reasons));
	json_object_set_new(run, "reasons", reasons);
}

void disturbance_reason(const json_t *one, const char *id, char *text, size_t size)
{
	json_t *reasons = json_array();

	*text = '\0';
	reasons_of_shares(one, reasons);
	if (json_array_size(reasons))
		snprintf(text, size, "%s while %s was measured",
			 json_string_value(json_array_get(reasons, 0)), id);
	json_decref(reasons);
}
