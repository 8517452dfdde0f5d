/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers that the generators of this process left out. A receiver in the same process
 * finds them as gaps; no sample was lost there. See sequence.h.
 */
#include "gateway/sample/sequence.h"
#include "gateway/sample/time.h"
#include "util/spin.h"

#define NOTES 1024
/* A format may carry milliseconds of a time. */
#define SLACK_NS INT64_C(1000000)

struct note {
	uint64_t first, count;
	struct timespec behind;
};

static struct {
	struct spin lock;
	_Atomic uint64_t written; /* since the process began */
	struct note notes[NOTES];
} all;

void sequence_note_left_out(uint64_t first, uint64_t count, struct timespec behind)
{
	spin_lock(&all.lock);
	all.notes[all.written % NOTES] = (struct note){ first, count, behind };
	atomic_store_explicit(&all.written, all.written + 1, memory_order_release);
	spin_unlock(&all.lock);
}

static bool is_known(struct timespec t)
{
	return t.tv_sec || t.tv_nsec;
}

static bool lies_between(const struct note *n, struct timespec before,
			 struct timespec behind)
{
	return (!is_known(before) ||
		sample_time_since_ns(n->behind, before) > -SLACK_NS) &&
	       (!is_known(behind) ||
		sample_time_since_ns(n->behind, behind) < SLACK_NS);
}

uint64_t sequence_count_left_out(uint64_t first, uint64_t count, struct timespec before,
				 struct timespec behind)
{
	uint64_t found = 0;

	if (likely(!atomic_load_explicit(&all.written, memory_order_acquire)))
		return 0;
	spin_lock(&all.lock);
	for (uint64_t i = 0; i < NOTES && i < all.written && found < count; i++) {
		const struct note *n = &all.notes[(all.written - 1 - i) % NOTES];
		uint64_t from = MAX(first, n->first);
		uint64_t end = MIN(first + count, n->first + n->count);

		if (from < end && lies_between(n, before, behind))
			found += end - from;
	}
	spin_unlock(&all.lock);
	return MIN(found, count);
}
