/* SPDX-License-Identifier: BSD-2-Clause */
/* Log-linear histogram; see hist.h for shape and accuracy. */
#include "util/hist.h"

#include <string.h>

#include "util/container_of.h"

#define SUB_COUNT (1u << HIST_SUB_BITS)

#define RELAXED memory_order_relaxed

static unsigned bucket_of(uint64_t value)
{
	unsigned shift;

	if (value < SUB_COUNT)
		return (unsigned)value;
	shift = 63 - (unsigned)__builtin_clzll(value) - HIST_SUB_BITS;
	return ((shift + 1) << HIST_SUB_BITS) +
	       (unsigned)((value >> shift) - SUB_COUNT);
}

/* Largest value that falls into bucket `b`. */
static uint64_t bucket_upper(unsigned b)
{
	unsigned shift;
	uint64_t base;

	if (b < SUB_COUNT)
		return b;
	shift = (b >> HIST_SUB_BITS) - 1;
	base = (uint64_t)(b & (SUB_COUNT - 1)) + SUB_COUNT;
	return (base << shift) + ((UINT64_C(1) << shift) - 1);
}

void hist_init(struct hist *h)
{
	memset(h, 0, sizeof(*h));
	atomic_store_explicit(&h->min, UINT64_MAX, RELAXED);
}

void hist_reset(struct hist *h)
{
	for (unsigned b = 0; b < HIST_BUCKETS; b++)
		atomic_store_explicit(&h->buckets[b], 0, RELAXED);
	atomic_store_explicit(&h->count, 0, RELAXED);
	atomic_store_explicit(&h->sum, 0, RELAXED);
	atomic_store_explicit(&h->max, 0, RELAXED);
	atomic_store_explicit(&h->min, UINT64_MAX, RELAXED);
}

/* There is one writer: no locked addition is needed. */
static void add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter,
			      atomic_load_explicit(counter, RELAXED) + n,
			      RELAXED);
}

void hist_record(struct hist *h, uint64_t value)
{
	if (value < atomic_load_explicit(&h->min, RELAXED))
		atomic_store_explicit(&h->min, value, RELAXED);
	if (value > atomic_load_explicit(&h->max, RELAXED))
		atomic_store_explicit(&h->max, value, RELAXED);
	add(&h->sum, value);
	add(&h->buckets[bucket_of(value)], 1);
	add(&h->count, 1);
}

void hist_merge(struct hist *to, const struct hist *from)
{
	if (from->count == 0)
		return;
	to->min = MIN(to->min, from->min);
	to->max = MAX(to->max, from->max);
	add(&to->sum, from->sum);
	for (unsigned b = 0; b < HIST_BUCKETS; b++)
		add(&to->buckets[b], from->buckets[b]);
	add(&to->count, from->count);
}

uint64_t hist_percentile(const struct hist *h, double percent)
{
	uint64_t total = atomic_load_explicit(&h->count, RELAXED);
	uint64_t rank, seen = 0;
	double exact = (double)total * percent / 100.0;

	if (total == 0)
		return 0;
	rank = (uint64_t)exact;
	if ((double)rank < exact || rank == 0)
		rank++;
	for (unsigned b = 0; b < HIST_BUCKETS; b++) {
		seen += atomic_load_explicit(&h->buckets[b], RELAXED);
		if (seen >= rank)
			return MIN(bucket_upper(b),
				   atomic_load_explicit(&h->max, RELAXED));
	}
	return h->max;
}

double hist_mean(const struct hist *h)
{
	uint64_t count = atomic_load_explicit(&h->count, RELAXED);

	return count ? (double)atomic_load_explicit(&h->sum, RELAXED) /
			       (double)count
		     : 0.0;
}

uint64_t hist_cumulate(const struct hist *h, const uint64_t *bounds, uint64_t *counts,
		       unsigned rows)
{
	uint64_t sum = 0;
	unsigned row = 0;

	for (unsigned b = 0; b < HIST_BUCKETS; b++) {
		while (row < rows && bucket_upper(b) > bounds[row])
			counts[row++] = sum;
		sum += atomic_load_explicit(&h->buckets[b], RELAXED);
	}
	while (row < rows)
		counts[row++] = sum;
	return sum;
}
