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
static uint64_t order[EVENTS]; /* of arming */

static struct fabric_due *first(void)
{
	struct fabric_due *best = NULL;

	for (unsigned i = 0; i < EVENTS; i++)
		if (fabric_due_is_armed(&due[i]) &&
		    (!best || due[i].at_ps < best->at_ps ||
		     (due[i].at_ps == best->at_ps && order[i] < order[best - due])))
			best = &due[i];
	return best;
}

static void play(uint64_t seed)
{
	struct prng g = prng_from(seed);
	uint64_t now = prng_next(&g) >> 20, steps = 0;

	fabric_queue_init(&queue);
	for (unsigned i = 0; i < EVENTS; i++)
		fabric_due_init(&due[i], 0);
	while (steps++ < STEPS) {
		struct fabric_due *d = &due[prng_below(&g, EVENTS)];
		struct fabric_due *expected = first();
		uint64_t until = now + (prng_next(&g) >> (20 + prng_below(&g, 44)));

		CHECK(fabric_queue_next_ps(&queue) == (expected ? expected->at_ps : UINT64_MAX));
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
			fabric_queue_arm(&queue, d, prng_below(&g, 2) ? until : (now | 0xff) + 1);
			order[d - due] = steps;
			break;
		default:
			d = fabric_queue_take(&queue, until);
			CHECK(d == (expected && expected->at_ps <= until ? expected : NULL));
			now = d ? d->at_ps : until;
			break;
		}
	}
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 8; seed++)
		play(seed);
	puts("ok");
	return 0;
}
