/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a benchmark leaves behind: one folder a run, which a person, a spreadsheet and
 * `busbar report` can read.
 *
 *   DIR/run.json              suite, command line, start, end, version of this layout,
 *                             ids of the cases in their order
 *   DIR/machine.json          CPUs, clock, kernel, isolation, governor, versions, floor
 *   DIR/cases/ID/case.json    kind, parameters, question, labels: what was measured
 *   DIR/cases/ID/raw.bin      every measured row, see below
 *   DIR/cases/ID/raw.csv      the same as text, one line a row, unless switched off
 *   DIR/cases/ID/summary.json of each latency: count, min, percentiles, max, mean,
 *                             skewness, share above the limit; and the figures
 *
 * A case is written to DIR/cases/ID.part, which is renamed when the case is whole; so a
 * folder cases/ID is always complete, and a run that was ended goes on with the cases
 * that are not there.
 *
 * raw.bin: struct result_header, then `columns` struct result_column_header, then the
 * columns one behind the other, `rows` int64_t each. Little-endian. Times are in ns of
 * CLOCK_MONOTONIC or CLOCK_REALTIME, one clock within a case.
 *
 * run.json:      { "layout": 1, "suite", "version", "command": [ argv ], "start", "end",
 *                  "resumed": [ times ], "cases": [ ids ],
 *                  "left_out": [ { "id", "scenario", "reason" } ],
 *                  "disturbance": { ... } }; times as "2026-01-31T23:59:59Z", "end" null in a
 *                  run that goes on or was killed. docs/benchmarks.md: disturbance.
 * machine.json:  machine.h
 * summary.json:  { "rows", "latencies": { NAME: { "label", "from", "to", "count", "min",
 *                  "p10", "p25", "p50", ..., "p99.999", "max", "mean", "middle" (mean
 *                  without the tenth at either end), "deviation", "skewness", "share_above" (0 to 1), "limit_ns" } },
 *                  "figures": { NAME: { "label", "unit", "value" } }, "disturbance":
 *                  { "processor_seconds", "stolen_percent", "others_percent" } }, the first two in the
 *                  order in which they were given. With a count of 0 a latency has no more than
 *                  label, from, to, count and limit_ns. What is not a number is null.
 *
 * All functions return 0 or a negative errno after having logged the cause; none may be
 * called by two threads at once.
 */
#ifndef BENCH_RESULT_RESULT_H
#define BENCH_RESULT_RESULT_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESULT_LAYOUT 1
#define RESULT_MAGIC "busbarR1"
#define RESULT_NAME_MAX 24
/* In a column: this row has no such value (a message that was lost was not received). */
#define RESULT_ABSENT INT64_MIN

struct result_header {
	char magic[8];
	uint32_t layout, columns;
	uint64_t rows;
};

struct result_column_header {
	char name[RESULT_NAME_MAX]; /* NUL-terminated */
	char unit[8];               /* "ns", or "" of a number */
};

struct result_column {
	const char *name, *unit;
	const int64_t *values; /* `rows` of them */
};

/* A latency is the difference of two columns: to - from. Rows in which one of them is
 * absent do not count. Those called NAME.PART are parts of NAME: budget.h. */
struct result_latency {
	const char *name;  /* "t_lat"; key of summary.json */
	const char *label; /* "one-way latency": in figures and tables */
	const char *from, *to;
};

/* A number beside the latencies: "missed", "%", 0.5. */
struct result_figure {
	const char *name, *label, *unit;
	double value;
};

struct result_run;
struct result_case;

struct result_options {
	const char *suite;     /* or the benchmark's name */
	int argc;              /* the command line */
	char *const *argv;
	bool no_csv;
	bool no_floor;         /* machine.json without the floor, which takes four seconds */
	const atomic_bool *stop; /* Ctrl-C ends the measurement of the floor; may be NULL */
};

/* Creates the folder and describes the machine; or opens one that is there, whose suite must
 * be the same (-EEXIST otherwise). One process at a time has a folder open (-EBUSY); -EINTR:
 * `stop` was set. */
int result_run_open(const char *dir, const struct result_options *options,
		    struct result_run **run);
/* Measures the cache line and an empty loop again, in a fifth of a second, if the floor of the
 * run was measured: `at` is "middle" or the like. Between two cases. */
void result_run_check(struct result_run *run, const char *at);
/* Measures them for the last time; writes the end and what disturbed the run into run.json, and
 * into machine.json the best that a cache line took. NULL does nothing. */
int result_run_close(struct result_run *run);

/* The case is possible, but not on this machine: noted in run.json, with the reason; in place
 * of what was noted for this id before. A case that begins later takes the note away. */
int result_run_left_out(struct result_run *run, const char *id, const char *scenario,
			const char *reason);

/* Is cases/ID there? */
bool result_case_done(const struct result_run *run, const char *id);

/* `id`: letters, digits and "-_.+=", at most 120 characters, no '.' at the start, no ".part"
 * at the end; -EINVAL otherwise. `description`
 * becomes case.json: an object with at least "kind" (string), "parameters" (object) and, where
 * known, "scenario" (the id of the experiment, A1), "question", "label" (short), "limit_ns"
 * (of "share above"; default 10000), "reference": { "source", "figures": {...} } (other
 * hardware; numbers by the names of figures, the median of a latency as "NAME_median_ns", that
 * of the first one also as "median_ns"), "command" (that repeats this case alone), "suite",
 * "scale" (of the sample counts; 1: all). Not stolen. -EEXIST: the case is there
 * already. */
int result_case_begin(struct result_run *run, const char *id, json_t *description,
		      struct result_case **c);
/* Its folder while it is written, for further files of a kind (the output of a program). */
const char *result_case_dir(const struct result_case *c);
/* At most once. The values are copied or written before it returns. */
int result_case_rows(struct result_case *c, const struct result_column *columns,
		     size_t columns_count, size_t rows,
		     const struct result_latency *latencies, size_t latencies_count);
int result_case_figure(struct result_case *c, const struct result_figure *figure);
/* All of them but those whose name is NULL. */
int result_case_figures(struct result_case *c, const struct result_figure *figures, size_t count);
/* What is known of it so far, in the form of summary.json; borrowed until its end. */
const json_t *result_case_summary(const struct result_case *c);
/* Writes the summary and makes the case visible; frees it also on an error. */
int result_case_end(struct result_case *c);
/* Removes what was written. NULL does nothing. */
void result_case_abandon(struct result_case *c);

/* ---- reading ---- */

/* A case as it lies in a folder. */
struct result_read {
	char *id;
	json_t *description, *summary;
	/* 0 and NULL until result_read_rows(). */
	size_t columns, rows;
	struct result_column_header *header;
	int64_t **values; /* [column][row] */
};

/* A run as it lies in a folder. */
struct result_folder {
	const char *dir;           /* borrowed */
	json_t *run, *machine;     /* machine: NULL in a run without machine.json */
	struct result_read *cases; /* the complete ones, in the order of their ids' first appearance
				    * in run.json, else alphabetical */
	size_t count;
};

/* 0; damaged files are named in the log and give -EBADMSG; no run: -ENOENT. Free it with
 * result_folder_close(), also after an error. */
int result_folder_open(const char *dir, struct result_folder *f);
void result_folder_close(struct result_folder *f);
/* The case of this id; NULL: there is none. */
struct result_read *result_folder_find(const struct result_folder *f, const char *id);
/* Loads the columns of raw.bin; every size is checked against the file's. A case without
 * raw.bin has 0 columns and 0 rows. */
int result_read_rows(const char *dir, struct result_read *c);
/* Frees the columns; those of many cases together need much memory. */
void result_drop_rows(struct result_read *c);
/* The values of a latency of the case, absent ones left out; malloc()ed. -ENOENT (not logged): there
 * is no such latency. After result_read_rows(). */
int result_read_latency(const struct result_read *c, const char *name, int64_t **values,
			size_t *count);

#endif
