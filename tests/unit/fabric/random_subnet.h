/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnets of tests of routing that differ by a number. */
#ifndef TESTS_FABRIC_RANDOM_SUBNET_H
#define TESTS_FABRIC_RANDOM_SUBNET_H

#include "fabric/topology/topology.h"

/* Switches in one part, with up to three hosts each and up to 40 links more than a tree has. */
struct topology *random_subnet(uint64_t seed);

#endif
