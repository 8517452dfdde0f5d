/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What else took the processors while something was measured, and whether that is so much that
 * figures say little. The facts come from /proc/stat, from the times of this process and its
 * children, and from repeated measurements of the floor. docs/benchmarks.md names the members
 * of the objects.
 */
#ifndef BENCH_RESULT_DISTURBANCE_H
#define BENCH_RESULT_DISTURBANCE_H

#include <jansson.h>
#include <stdbool.h>

/* Above these a machine is called busy. Medians bear about as much. */
#define DISTURBANCE_STOLEN_PERCENT 5.0
#define DISTURBANCE_OTHERS_PERCENT 10.0
#define DISTURBANCE_MISSED_PERCENT 5.0
#define DISTURBANCE_FLOOR_RATIO 1.5

/* Seconds of all processors together since the machine started, and of this process with the
 * children that it has waited for. */
struct disturbance_times {
	double all, busy, stolen, own;
	bool known; /* false: there is no /proc/stat */
};

/* The first line of /proc/stat, in ticks of `hz` a second; false: it is not that. */
bool disturbance_parse(const char *line, double hz, struct disturbance_times *t);
void disturbance_now(struct disturbance_times *t);
/* Processor time so far of RUSAGE_SELF, or of RUSAGE_CHILDREN that have ended. */
double disturbance_seconds(int who);

/* { "processor_seconds", "stolen_percent", "others_percent" }: shares of the time of all
 * processors; null where it is not known or shorter than the kernel's ticks can tell. NULL without
 * memory. */
json_t *disturbance_between(const struct disturbance_times *from,
			    const struct disturbance_times *to);

/* One measurement of the floor between or behind the cases: { "at", "cacheline_oneway_ns",
 * "best_ns", "missed_percent", "load" }, in a fifth of a second. NULL without memory. */
json_t *disturbance_check(const char *at);
/* The same from a whole floor (machine.json). */
json_t *disturbance_check_of(const char *at, const json_t *floor);

/* Puts what follows from the facts into the object of a run: "floor_ns", "floor_worst_ns",
 * "floor_ratio", "missed_percent", "busy", "reasons" and "line". */
void disturbance_judge(json_t *run);

/* Why a case says little, or "" if it was not disturbed; of the object that
 * disturbance_between() made, or NULL. */
void disturbance_reason(const json_t *one, const char *id, char *text, size_t size);

#endif
