/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Max-min fair shares (Bertsekas and Gallager, "Data Networks", 6.5.2): the rates of flows that share links, of which
 * none can be raised without lowering one that is no larger. Lanes and their weights do not count: this is what an
 * ideal network of the same links and paths would give. Private to the folder.
 */
#ifndef FABRIC_SIMULATE_FAIR_H
#define FABRIC_SIMULATE_FAIR_H

#include <stddef.h>
#include <stdint.h>

struct simulate_fair_flow {
	const uint32_t *links;  /* `link_count` of them */
	uint32_t link_count;
	double demand;          /* most that it wants */
	double share;           /* the result */
};

/* `room` of `link_count` links, which is used up. -ENOMEM. */
int simulate_fair_shares(struct simulate_fair_flow *flows, size_t count, double *room, uint32_t link_count);

#endif
