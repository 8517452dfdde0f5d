/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A filter that shows every unit that was emitted or delivered, for captures. While no
 * watcher is set it costs a load and a call; who never stacks it pays nothing.
 */
#ifndef TRANSPORT_CARRIER_TAP_H
#define TRANSPORT_CARRIER_TAP_H

#include "transport/carrier/carrier.h"

/* Shown are the units that the carrier below took (behind that, so an answer may be
 * shown first), and those that it delivers, before the owner has them. Any thread that
 * emits or polls, several at a time, with locks of queue pairs held: it must neither
 * block nor call the carrier, and keeps nothing of the units. */
struct carrier_watcher {
	void (*saw)(void *arg, enum carrier_direction direction,
		    const struct carrier_unit *units, unsigned n);
	void *arg;
};

/* Over `below`, which is the filter's when this succeeds. `watcher` may be NULL. 0 or
 * -ENOMEM. */
int carrier_tap_open(struct carrier *below, const struct carrier_watcher *watcher,
		     struct carrier **out);

/* Replaces the watcher, which remains the caller's; NULL: none. When this returns the
 * old one is not called any more, nor is a call in progress: it waits for that, so it is
 * not called by a watcher. One caller at a time. */
void carrier_tap_set(struct carrier *c, const struct carrier_watcher *watcher);

#endif
