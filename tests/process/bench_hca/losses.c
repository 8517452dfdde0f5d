/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * losses SEED PROBABILITY SKIP COUNT: how many of COUNT messages, behind SKIP others, the
 * adapter loses with BUSBAR_FAULTS=loss=PROBABILITY,seed=SEED, by the same decisions: what a
 * measurement has to report, no more and no less.
 */
#include <stdio.h>
#include <stdlib.h>

#include "transport/carrier/impair.h"

int main(int argc, char **argv)
{
	struct impair_params p = { 0 };
	struct impair_fate fate;
	struct impair_lane lane;
	unsigned long skip, count, lost = 0;

	if (argc != 5)
		return 2;
	p.loss = atof(argv[2]);
	skip = strtoul(argv[3], NULL, 10);
	count = strtoul(argv[4], NULL, 10);
	/* The lane of what leaves; see transport/shm/faults.c. */
	impair_lane_init(&lane, 2 * strtoull(argv[1], NULL, 10));
	impair_lane_set(&lane, IMPAIR_ALL_CLASSES, &p);
	for (unsigned long i = 0; i < skip + count; i++) {
		impair_decide(&lane, 0, 0, 0, &fate);
		lost += i >= skip && !fate.copies;
	}
	printf("%lu\n", lost);
	return 0;
}
