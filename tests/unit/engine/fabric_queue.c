/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of events against a plain search for the first: random times, near and far, equal ones in the
 * order of arming, cancelled ones, and takes with a limit. */
#include "engine/fabric/queue.h"
#include "fabric_kit.h"
#include "util/prng.h"

#define EVENTS 300u
#define STEPS 20000u

static struct fabric_queue queue;
static struct fabric_due due[EVENTS];
static uint64_t order[EVENTS], at_ps[EVENTS]; /* of arming */

static struct fabric_due *first(void)
{
	struct fabric_due *best = NULL;

	for (unsigned i = 0; i < EVENTS; i++)
		if (fabric_due_is_armed(&due[i]) &&
		    (!best || at_ps[i] < at_ps[best - due] ||
		     (at_ps[i] == at_ps[best - due] && order[i] < order[best - due])))
			best = &due[i];
	return best;
}

static void play(uint64_t seed)
{
	struct prng g = prng_from(seed);
	uint64_t now = prng_next(&g) >> 20, steps = 0;

	fabric_queue_init(&queue);
	/* All of it is in use at times, so that an entry that gets lost fails an assertion. */
	CHECK(fabric_queue_reserve(&queue, EVENTS / 3) == 0);
	CHECK(fabric_queue_reserve(&queue, EVENTS - EVENTS / 3) == 0);
	for (unsigned i = 0; i < EVENTS; i++)
		fabric_due_init(&due[i], 0);
	while (steps++ < STEPS) {
		struct fabric_due *d = &due[prng_below(&g, EVENTS)];
		struct fabric_due *expected = first();
		uint64_t until = now + (prng_next(&g) >> (20 + prng_below(&g, 44)));

		CHECK(fabric_queue_next_ps(&queue) == (expected ? at_ps[expected - due] : UINT64_MAX));
		switch (prng_below(&g, 8)) {
		case 0:
			fabric_queue_cancel(&queue, d);
			CHECK(!fabric_due_is_armed(d));
			break;
		case 1:
		case 2:
		case 3:
			if (fabric_due_is_armed(d))
				break;
			/* Half of them at one of a few times. */
			at_ps[d - due] = prng_below(&g, 2) ? until : (now | 0xff) + 1;
			fabric_queue_arm(&queue, d, at_ps[d - due]);
			order[d - due] = steps;
			break;
		default:
			d = fabric_queue_take(&queue, until);
			CHECK(d == (expected && at_ps[expected - due] <= until ? expected : NULL));
			CHECK(!d || queue.at_ps == at_ps[d - due]);
			now = d ? queue.at_ps : until;
			break;
		}
	}
	fabric_queue_free(&queue);
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 8; seed++)
		play(seed);
	puts("ok");
	return 0;
}
