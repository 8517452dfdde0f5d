/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the owner hears: packets that have come or are lost, ports with room again, and each event for
 * traces. Packets wait in a list until the engine's own work for an event is done, so that the
 * owner's functions may call the engine.
 */
#ifndef ENGINE_FABRIC_REPORT_H
#define ENGINE_FABRIC_REPORT_H

#include "engine/fabric/state.h"

/* A packet, zero; NULL: the limit is reached. It is not counted as inside. */
struct fabric_item *fabric_item_new(struct fabric *f);
void fabric_item_free(struct fabric *f, struct fabric_item *item);

/* The packet has come to `o` and becomes the owner's. Its buffer is free already. */
void fabric_report_delivery(struct fabric *f, struct fabric_item *item, struct fabric_port *o);
/* It is lost at `o`, whose counters count it. */
void fabric_report_drop(struct fabric *f, struct fabric_item *item, struct fabric_port *o,
			enum fabric_drop why);
/* The same, and the caller has counted. */
void fabric_report_refusal(struct fabric *f, struct fabric_item *item, struct fabric_port *o,
			   enum fabric_drop why);
/* A source of the port was full, and has room. */
void fabric_report_writable(struct fabric *f, struct fabric_port *o);
/* Calls link() for both ends of a link. */
void fabric_report_link(struct fabric *f, const struct fabric_port *o, bool up);
/* Calls deliver(), drop() and writable(), also for what these cause. Nothing if it is called from
 * one of them. */
void fabric_report(struct fabric *f);

void fabric_report_traced(struct fabric *f, enum fabric_event_kind kind, uint64_t at_ps,
			  const struct fabric_item *item, const struct fabric_port *o, uint8_t why);

static inline void fabric_report_event(struct fabric *f, enum fabric_event_kind kind,
				       uint64_t at_ps, const struct fabric_item *item,
				       const struct fabric_port *o, uint8_t why)
{
	if (__builtin_expect(f->ops.event != NULL, false))
		fabric_report_traced(f, kind, at_ps, item, o, why);
}

#endif
