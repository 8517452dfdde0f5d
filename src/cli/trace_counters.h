/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_COUNTERS_H
#define CLI_TRACE_COUNTERS_H

#include "cli/counters.h"

/* A port that is watched. */
struct watched {
	struct counters counters;
	uint64_t before[COUNTERS_MAX], first[COUNTERS_MAX];
	uint64_t grown[COUNTERS_MAX]; /* in all intervals, of each counter */
	uint32_t known;               /* bits of enum analyzer_counter */
	bool gone;                    /* the adapter was taken away, or the process has ended */
	bool failed;                  /* not because its process has ended */
	struct analyzer_counters judged;
};

/* The ports that are watched from now on. */
void trace_counters_begin(const struct watched *w, unsigned count, unsigned interval_ms, bool as_json);
/* An interval in which a counter of events has grown. */
void trace_counters_interval(const struct watched *w, const struct analyzer_interval *i,
			     const uint64_t *grown, enum analyzer_kind kind, bool as_json);
/* Counters that the adapter lacks, and what cannot be judged without them. */
void trace_counters_missing(const struct watched *w);
/* The verdict on each port; as JSON one object on a line. */
void trace_counters_verdicts(const struct watched *w, unsigned count, int64_t duration_ns, int status,
			     bool as_json);

#endif
