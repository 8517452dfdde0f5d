/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The events of a port: counts the packets of each queue pair and direction, finds those that the
 * rules (rules.h) name, and records what became of them (outcome.h). It sees each packet once where
 * it passes the filter of faults (carrier/fault.h), which then carries out what the rules say.
 *
 * Takes the time, and neither sends nor receives. Memory for a queue pair is allocated with its first
 * packet, only while there are rules. Up to 4096 queue pairs are counted, and 128 events recorded;
 * later events still take place.
 */
#ifndef TRANSPORT_PACKET_EVENT_WATCH_H
#define TRANSPORT_PACKET_EVENT_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/carrier/fault.h"
#include "transport/packet/event/rules.h"
#include "transport/packet/frame/frame.h"

#define PACKET_EVENT_RECORDS 128

struct packet_events;

/* NULL: no memory. */
struct packet_events *packet_events_open(void);
/* NULL is allowed. */
void packet_events_close(struct packet_events *e);

/* These rules from now on; counts and records begin anew. NULL: none. Any thread, as all that
 * follow. */
void packet_events_set(struct packet_events *e, const struct packet_event_rules *rules,
		       uint64_t now_ns);
/* The queue pair is connected: its packets are counted from 1, and their PSNs are new. */
void packet_events_connected(struct packet_events *e, uint32_t qpn);
/* In a forked child: counts and records begin anew. */
void packet_events_forked(struct packet_events *e);

/* A packet of the queue pair `qpn` of this end passes. Adds to *verdict what the rules say. */
void packet_events_see(struct packet_events *e, enum carrier_direction direction, uint32_t qpn,
		       const struct packet_frame *f, uint64_t now_ns,
		       struct carrier_fault_verdict *verdict);

/* How many events are recorded. If `index` is one of them, from 0 in their order, `line` tells it
 * (packet_event_record_tell()). */
unsigned packet_events_tell(struct packet_events *e, unsigned index, char *line, size_t bytes);

#endif
