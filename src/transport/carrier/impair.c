/* SPDX-License-Identifier: BSD-2-Clause */
/* What a network does to packets; see impair.h. */
#include "transport/carrier/impair.h"

#include <string.h>

void impair_lane_init(struct impair_lane *lane, uint64_t seed)
{
	memset(lane, 0, sizeof(*lane));
	impair_lane_seed(lane, seed);
}

void impair_lane_seed(struct impair_lane *lane, uint64_t seed)
{
	lane->random = prng_from(seed);
}

void impair_lane_forget(struct impair_lane *lane)
{
	lane->free_ns = lane->last_ns = 0;
}

void impair_lane_set(struct impair_lane *lane, unsigned classes,
		     const struct impair_params *params)
{
	for (unsigned i = 0; i < IMPAIR_CLASSES; i++)
		if (classes & (1u << i))
			lane->params[i] = *params;
}

/* When its last bit has left the link. Times stay far from where they would wrap. */
static uint64_t leave_ns(struct impair_lane *lane, const struct impair_params *p,
			 size_t bytes, uint64_t now_ns)
{
	uint64_t start = lane->free_ns > now_ns ? lane->free_ns : now_ns;

	if (!p->rate_bps)
		return start;
	lane->free_ns = start + (uint64_t)((unsigned __int128)bytes * 8 * 1000000000 /
					   p->rate_bps);
	if (lane->free_ns > INT64_MAX)
		lane->free_ns = INT64_MAX;
	return lane->free_ns;
}

static void decide_copy(struct impair_lane *lane, const struct impair_params *p,
			struct impair_counters *count, uint64_t leaves_ns, bool counts,
			struct impair_fate *fate)
{
	struct prng *r = &lane->random;
	uint64_t due = leaves_ns + p->delay_ns + prng_below(r, p->jitter_ns + 1);
	uint64_t gap = 1 + prng_below(r, p->gap_ns ? p->gap_ns : IMPAIR_GAP_NS);
	bool late = prng_chance(r, p->reorder), corrupt = prng_chance(r, p->corrupt);

	if (!counts)
		return;
	if (due < lane->last_ns)
		due = lane->last_ns;
	if (late)
		due += gap;
	else
		lane->last_ns = due;
	count->reordered += late;
	count->corrupted += corrupt;
	fate->copy[fate->copies].due_ns = due;
	fate->copy[fate->copies++].corrupt = corrupt;
}

void impair_decide(struct impair_lane *lane, unsigned class, size_t bytes,
		   uint64_t now_ns, struct impair_fate *fate)
{
	const struct impair_params *p = &lane->params[class];
	struct impair_counters *count = &lane->count[class];
	bool lost = prng_chance(&lane->random, p->loss);
	bool twice = prng_chance(&lane->random, p->duplicate);
	bool cut = p->partition;
	uint64_t leaves = cut ? now_ns : leave_ns(lane, p, bytes, now_ns);

	fate->copies = 0;
	count->packets++;
	count->cut += cut;
	count->lost += !cut && lost;
	count->duplicated += !cut && !lost && twice;
	decide_copy(lane, p, count, leaves, !cut && !lost, fate);
	decide_copy(lane, p, count, leaves, !cut && !lost && twice, fate);
}

/* Within the frame; where the stream has to reach a certain byte first, behind that one at the
 * earliest. */
static size_t end_within(struct impair_lane *lane, const struct impair_params *p, size_t bytes)
{
	size_t at = 1 + (size_t)prng_below(&lane->random, bytes - 1);

	return p->after_bytes > lane->passed ? (size_t)(p->after_bytes - lane->passed) : at;
}

void impair_decide_stream(struct impair_lane *lane, size_t bytes, uint64_t now_ns,
			  struct impair_stream_fate *fate)
{
	const struct impair_params *p = &lane->params[0];
	struct prng *r = &lane->random;
	bool cut = prng_chance(r, p->cut), reset = prng_chance(r, p->reset);
	bool stall = prng_chance(r, p->stall), corrupt = prng_chance(r, p->corrupt);
	bool may_end = lane->passed + bytes > p->after_bytes;
	uint64_t due = leave_ns(lane, p, bytes, now_ns) + p->delay_ns +
		       prng_below(r, p->jitter_ns + 1);

	*fate = (struct impair_stream_fate){ .corrupt = corrupt,
					     .end_at = end_within(lane, p, bytes) };
	if (may_end && (cut || reset))
		fate->end = cut ? IMPAIR_CUT : IMPAIR_RESET;
	if (stall)
		fate->pause_ns = p->pause_ns ? p->pause_ns : IMPAIR_PAUSE_NS;
	lane->last_ns = due > lane->last_ns ? due : lane->last_ns;
	lane->passed += bytes;
	fate->due_ns = lane->last_ns;
}

void impair_corrupt(struct impair_lane *lane, uint8_t *bytes, size_t n)
{
	size_t at = (size_t)prng_below(&lane->random, n);

	bytes[at] ^= (uint8_t)(1 + prng_below(&lane->random, 255));
}
