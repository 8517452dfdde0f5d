/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a connection has to send, and what it has sent and the peer has not acknowledged.
 * Connections of one redundancy group (IEC 60870-5-104 edition 2, clause 10) share the samples that
 * wait: one of them at a time sends data, the one that was started last. What it has sent and is
 * not acknowledged when another one takes over, or when it ends, waits again in front of the
 * others, so that nothing is lost; it may arrive twice. No socket, no clock and no thread.
 */
#ifndef GATEWAY_NODE_IEC60870_5_104_FLOW_H
#define GATEWAY_NODE_IEC60870_5_104_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/grid/iec104_link.h"

/* An ASDU that waits to be sent. */
struct station_slot {
	uint8_t len;
	bool last;              /* the last one of a sample */
	uint8_t asdu[IEC104_ASDU_MAX];
};

struct station_queue {
	struct station_slot *slots;
	unsigned size;          /* of the ring */
	unsigned limit;         /* that may wait; more only if they were taken back */
	unsigned head, count;
};

/* `more`: places for ASDUs that are taken back. 0 or -ENOMEM. */
int station_queue_init(struct station_queue *q, unsigned limit, unsigned more);
unsigned station_queue_room(const struct station_queue *q);
/* False: no room. */
bool station_queue_put(struct station_queue *q, const uint8_t *asdu, size_t len, bool last);
/* Drops the oldest sample. */
void station_queue_drop(struct station_queue *q);
/* Samples of which an ASDU waits. */
unsigned station_queue_samples(const struct station_queue *q);

struct station_flow;

/* The connections that share what waits. */
struct station_group {
	struct station_queue low;
	struct station_flow *members, *active; /* NULL: none */
	bool known;             /* one of them was started once */
};

struct station_flown {
	bool low;               /* it is of the samples, and was not taken back */
	struct station_slot slot;
};

struct station_flow {
	struct station_queue own, high; /* samples; answers, which come first */
	struct station_queue *low;      /* samples: own, or those of the group */
	struct station_group *group;    /* NULL: none */
	struct station_flow *next;      /* in the group */
	struct iec104_link *link;
	struct station_flown *flight;   /* sent and not acknowledged, a ring of k */
	unsigned k, flight_head, flight_count;
};

/* 0 or -ENOMEM. */
int station_flow_init(struct station_flow *f, struct iec104_link *link, unsigned low,
		      unsigned high, unsigned k);
void station_flow_free(struct station_flow *f);

/* Of a new connection; `group` may be NULL. */
void station_flow_begin(struct station_flow *f, struct station_group *group);
/* The connection has ended. `delivered`: the peer has got all that was sent. Samples that are
 * lost. */
unsigned station_flow_end(struct station_flow *f, bool delivered);
/* The link has started to send data, or does not any more. True: it has taken over from another
 * one, which was started or had not had all acknowledgements. */
bool station_flow_started(struct station_flow *f);
void station_flow_stopped(struct station_flow *f);

/* Hands the link the next ASDU. False: there is none, or no room. */
bool station_flow_send(struct station_flow *f, uint64_t now_ns);
/* The peer has the oldest `count` of those that were sent. */
void station_flow_acknowledged(struct station_flow *f, unsigned count);
/* Whether anything waits that it could send. */
bool station_flow_waits(const struct station_flow *f);

#endif
