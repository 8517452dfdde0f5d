/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taps: copies of the samples that pass a node, in one direction, for somebody who looks
 * (the page of the HTTP server). The thread that reads or writes the node puts copies into
 * a ring and never waits or wakes anybody; the observer looks from time to time. With no
 * tap it costs one load for each call of the node.
 *
 * A tap is that of a name: it goes on when the node is stopped and started, or is replaced
 * by a reload.
 */
#ifndef GATEWAY_PLUGIN_TAP_H
#define GATEWAY_PLUGIN_TAP_H

#include <stdatomic.h>
#include <stdint.h>

#include "gateway/plugin/tap_place.h"
#include "gateway/sample/sample.h"

struct node;
struct tap;

/* Which samples: those that node_read() returned, or that node_write() was given. */
enum tap_direction { TAP_IN, TAP_OUT };

/* ---- the node ---- */

void tap_copy(struct tap_place *at, struct sample *const smps[], unsigned count);

/* From the one thread that reads or writes the node at the time. */
static inline void tap_note(struct tap_place *at, struct sample *const smps[],
			    unsigned count)
{
	if (unlikely(atomic_load_explicit(&at->ring, memory_order_relaxed)))
		tap_copy(at, smps, count);
}

/* Of its life cycle (node_life.c): it exists; it has started, and so taps of its name are
 * put into it; nobody reads or writes it any more; it ends. */
void taps_add_node(struct node *n);
void taps_start_node(struct node *n);
void taps_stop_node(struct node *n);
void taps_remove_node(struct node *n);

/* ---- the observer ---- */

/*
 * The tap of this node and direction, a new one where there is none. 0; -ENOENT: there is no
 * such node; -ENOMEM. Every observer closes what he has opened. All observers are one
 * thread.
 */
int tap_open(struct tap **out, const char *node, enum tap_direction direction);
void tap_close(struct tap *t);

/* A reference to the list of signals that the node's samples have at present; NULL: not
 * known. */
struct signal_list *tap_signals(struct tap *t);

struct tap_look {
	struct sample *smp;
	uint64_t passed_ns; /* clock_now_ns() when it passed */
};

/*
 * Up to `max` samples that have passed, oldest first; their number. They stay until
 * tap_done(), which takes away the first `count` of them.
 */
unsigned tap_peek(struct tap *t, struct tap_look looks[], unsigned max);
void tap_done(struct tap *t, unsigned count);
/* Samples that found no room, or were longer than any seen before, since the first
 * tap_open(). */
uint64_t tap_lost(const struct tap *t);

#endif
