/* SPDX-License-Identifier: BSD-2-Clause */
/* The nodes and links of a description in an engine: node 0, 1, ... of one are those of the other. */
#ifndef FABRIC_BUILD_BUILD_H
#define FABRIC_BUILD_BUILD_H

#include "engine/fabric/fabric.h"
#include "fabric/topology/topology.h"

/* What a description does not say: the same for all switches and links. */
struct fabric_build {
	struct fabric_switch switches;
	uint16_t mtu;           /* payload */
	uint8_t lanes;          /* data lanes */
	uint32_t buffer_bytes;  /* of each lane at each receiver */
};

/* The engine is empty. 0, or a negative errno, logged with the name of the node or the ends of the
 * link. */
int fabric_build(const struct topology *t, const struct fabric_build *b, struct fabric *f);

#endif
