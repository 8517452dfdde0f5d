/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data of a report, as JSON: what was measured, reduced to what can be drawn. The page
 * (src/page/report) makes figures, tables and sentences of it; nothing here judges or formats.
 *
 * { "layout": 1, "command": the words that made the report, "kind": "run", "recording" or
 *   "subnet", "runs": [ RUN ], one or two, none of subnets,
 *   "subnets": [ SUBNET ] (subnet.h),
 *   "compare": [ { "id", "latency", "a_ns", "b_ns", "ratio", "low", "high", "verdict" } ] of two
 *              (result/compare.h) }
 * RUN:     { "title", "folder", "run": run.json, "machine": machine.json, "shapes":
 *            shapes_evaluate(), "figures": [ { "name", "label", "unit" } ], each once,
 *            "cases": [ CASE ] }; what is not there is null
 * CASE:    { "id", "kind", "scenario", "question", "label", "command", "limit_ns",
 *            "parameters", "reference", "disturbance" (of its time, result/disturbance.h),
 *            "latencies": [ LATENCY ], "figures": [ [ index in the run's figures, value ] ],
 *            "curves": [ CURVE ], "packets": packets.json of the kind "odp" (docs/odp.md), if there is
 *            one and the page has room for it }
 * LATENCY: as in summary.json with "name", and further "low", "high" (95 % interval of the
 *          median), "reference_ns"; of those that have rows and are no parts of a budget:
 *          "range_ns", "bin_ns", "beyond" (share of the values that are longer than the range), "bins" (percent of the values in each of equal parts of the range, zeros
 *          at the end left out), "bands" { "low", "median", "high" } (of equal parts of the rows
 *          in their order), "tail" { "left", "value" } (so many values are at least that)
 * CURVE:   { "label", "unit", "samples", "min", "mean", "max", "seconds", "low", "high" }
 *
 * Functions return 0 or -ENOMEM unless they say otherwise. Objects are borrowed.
 */
#ifndef BENCH_REPORT_DATA_H
#define BENCH_REPORT_DATA_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define REPORT_LAYOUT 1

/* How much of each latency is kept, so that a page of any suite stays small. */
struct report_detail {
	size_t bins, bands, tail;
};

/* For so many latencies with rows. */
struct report_detail report_detail_for(size_t latencies);

/* Text from outside as a value: bytes that are not UTF-8 become U+FFFD. NULL is null. */
json_t *report_string(const char *text);

/* An object for a run, appended to data's "runs". NULL without memory. */
json_t *report_run_add(json_t *data, const char *title, const char *folder);
/* A case, appended to the run's "cases". NULL without memory. */
json_t *report_case_add(json_t *run, const char *id, const char *kind);

/* Appends a latency of `values` (in the order in which they were measured), which are sorted
 * on return. Nothing is appended for count 0. `detail` NULL: a part of a budget. */
int report_latency_add(json_t *c, const char *name, const char *label, int64_t *values,
		       size_t count, const struct report_detail *detail);

/* A number beside the latencies. `c` is a case of `run`. */
int report_figure_add(json_t *run, json_t *c, const char *name, const char *label,
		      const char *unit, double value);

/* A quantity over time: `seconds` and `values` of `count` samples, not a number where there is
 * none. Nothing is appended where there is no value at all. */
int report_curve_add(json_t *c, const char *label, const char *unit, const double *seconds,
		     const double *values, size_t count);

/* A run's folder. 0 or a negative errno, logged. */
int report_load(json_t *data, const char *dir);
/* Two folders, and what result/compare.h says of them. 0 or a negative errno, logged. */
int report_load_two(json_t *data, const char *a, const char *b);

#endif
