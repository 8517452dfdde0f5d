/* SPDX-License-Identifier: BSD-2-Clause */
/* The line at the end of the program; see shield.h. */
#include "shield/shield.h"

#include <stdio.h>

/* A program that used no region on demand prints nothing. */
__attribute__((destructor)) static void at_end(void)
{
	if (!shield_has_regions())
		return;
	fprintf(stderr,
		"busbar odp-shield: %ju regions prefetched (%ju KiB), %ju touched (%ju KiB), shortest RNR wait for %ju queue pairs, %ju probes\n",
		(uintmax_t)shield_counts.regions, (uintmax_t)(shield_counts.bytes >> 10),
		(uintmax_t)shield_counts.touched_regions,
		(uintmax_t)(shield_counts.touched_bytes >> 10),
		(uintmax_t)shield_counts.queue_pairs, (uintmax_t)shield_counts.probes);
}
