/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a tap (tap.h) is put into a direction of a node; part of struct node, of no use to
 * node-types. */
#ifndef GATEWAY_PLUGIN_TAP_PLACE_H
#define GATEWAY_PLUGIN_TAP_PLACE_H

#include <stdatomic.h>
#include <stdbool.h>

struct tap_ring;

struct tap_place {
	_Atomic(struct tap_ring *) ring; /* NULL: nobody looks */
	atomic_bool busy;                /* a copy is being made */
};

#endif
