/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log-linear histogram of unsigned values (HDR style): 64 linear steps in each
 * power of two, so a percentile is exact below 64 and within 1.6 % above,
 * over the whole 64-bit range, in a fixed 30 KiB and without allocation.
 *
 * One writer; readers in other threads see a consistent-enough snapshot
 * (counters are relaxed atomics).
 */
#ifndef UTIL_HIST_H
#define UTIL_HIST_H

#include <stdatomic.h>
#include <stdint.h>

#define HIST_SUB_BITS 6
#define HIST_BUCKETS ((64 - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	_Atomic uint64_t count;
	_Atomic uint64_t min, max;
	_Atomic uint64_t sum;     /* wraps; mean needs sum < 2^64 */
	_Atomic uint64_t buckets[HIST_BUCKETS];
};

void hist_init(struct hist *h);
/* Empties it. Readers may run at the same time, but no writer. */
void hist_reset(struct hist *h);
void hist_record(struct hist *h, uint64_t value);

/* Adds all of `from` to `to`. */
void hist_merge(struct hist *to, const struct hist *from);

/*
 * Smallest recorded value v such that at least `percent` % of all values are
 * <= v, to the histogram's resolution (upper edge of the bucket, at most max).
 * 0 when empty. `percent` in [0, 100].
 */
uint64_t hist_percentile(const struct hist *h, double percent);
double hist_mean(const struct hist *h);

/*
 * counts[i] is the number of values <= bounds[i], to the histogram's resolution, for `rows`
 * bounds in rising order. Returns the number of all values, which is no less than any of
 * these, also while the writer goes on.
 */
uint64_t hist_cumulate(const struct hist *h, const uint64_t *bounds, uint64_t *counts,
		       unsigned rows);

#endif
