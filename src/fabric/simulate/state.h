/* SPDX-License-Identifier: BSD-2-Clause */
/* A scenario while it runs, for the files of this folder. */
#ifndef FABRIC_SIMULATE_STATE_H
#define FABRIC_SIMULATE_STATE_H

#include "engine/fabric/fabric.h"
#include "engine/fabric/queue.h"
#include "fabric/routing/routing.h"
#include "fabric/simulate/run.h"
#include "util/prng.h"

#define SIMULATE_HEADER_BYTES 26u /* LRH, BTH, ICRC, VCRC */
#define SIMULATE_NOTIFICATION_BYTES 42u /* a congestion notification: 16 bytes more */

/* Makes the packets of one line of traffic at one port, for one target after the other. */
struct simulate_sender {
	struct fabric_due due;   /* the next message, if its load is limited */
	struct simulate_sender *next_there; /* another one of the same port */
	struct topology_end at;
	uint32_t traffic, first_flow, flow_count;
	uint32_t turn;           /* the flow of the next message, if they take turns */
	uint32_t flow;           /* of the message that is being sent */
	uint32_t left_bytes;     /* of it; 0: none is being sent */
	uint32_t engine_flow;
	uint32_t outstanding;    /* packets that have not come, if it has a window */
	uint64_t messages_left;
	uint64_t due_messages;   /* that came with the time and have not been begun */
	uint64_t next_ps, interval_ps; /* interval 0: no limit of the load */
	bool started, done, pumping;
};

struct simulate_state {
	const struct simulate_scenario *s;
	const struct simulate_options *o;
	struct simulate_result *r;
	struct fabric *f;
	struct routing *routing;
	struct routing_layers *layers; /* NULL: neither lash nor dfsssp */
	struct prng prng;
	struct simulate_sender *senders;
	uint32_t sender_count, senders_done;
	uint32_t *by_node;             /* of a node: the first of its senders + 1, they stand together */
	struct fabric_queue due;
	uint64_t end_ps;               /* at the latest */
	bool out_of_packets;           /* the engine has no more of them */
	uint64_t next_sample_ps;
	uint32_t next_fault;
	struct fabric_counters *before; /* of each direction of the links, when the measurement began */
	uint32_t *open;                /* of each lane of each direction: its interval in r->congested + 1 */
	uint32_t congested_capacity;
};

#endif
