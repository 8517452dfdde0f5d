/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the agents of a subnet remember: of each node and port what a manager set and the engine does not
 * keep. Forwarding tables, arbitration and the mapping of service levels are in the engine alone.
 * Private to the agents; no function here decides anything.
 */
#ifndef FABRIC_AGENT_STATE_H
#define FABRIC_AGENT_STATE_H

#include "engine/fabric/fabric.h"
#include "fabric/agent/agent.h"
#include "plug/plug.h"
#include "util/list.h"
#include "wire/mad/cc.h"
#include "wire/mad/notice.h"
#include "wire/mad/port.h"
#include "wire/mad/smp.h"

#define AGENT_PKEYS PLUG_PKEYS
#define AGENT_GUIDS PLUG_GUIDS
#define AGENT_NOTICES 8        /* traps of a node that wait to be repressed */
#define AGENT_LIDS 0xc000u     /* unicast LIDs: entries of linear forwarding tables */
#define AGENT_CC_BLOCKS 2      /* of 64 entries each, of an adapter's congestion control table */
#define AGENT_QKEY 0x80010000u /* of QP1 (IBA volume 1, 3.5.3) */
#define AGENT_SAMPLES 15       /* counters of a period of sampling */

enum agent_sampling {
	AGENT_SAMPLES_DONE = 0,
	AGENT_SAMPLES_DELAYED = 1,
	AGENT_SAMPLES_RUNNING = 2,
};

/* Of a node: one period of sampling for one of its ports (16.1.3.2). */
struct agent_samples {
	uint8_t state; /* enum agent_sampling */
	uint8_t port;
	uint16_t tag;
	uint32_t start, interval; /* ticks */
	uint64_t due_ns;          /* begin or end of the period */
	uint16_t select[AGENT_SAMPLES];
	uint64_t counter[AGENT_SAMPLES]; /* running: at its begin; done: the differences */
};

/* A trap that is sent again and again until the manager represses it. */
struct agent_notice {
	bool pending;
	uint8_t type, port;
	uint16_t trap;       /* 0: the slot was never used */
	uint32_t tid;
	uint64_t last_ns;    /* when it was sent */
	uint64_t due_ns;
	uint8_t repeats;     /* since it was raised, up to a limit */
	uint8_t toggle;
	uint8_t details[MAD_NOTICE_DETAILS_BYTES];
};

/* The congestion control agent of a node: of a switch all, of an adapter what all ports share. */
struct agent_cc {
	struct mad_congestion_key_info key;
	uint64_t lease_end_ns; /* 0: does not run */
	struct mad_switch_congestion_setting set;
	struct mad_switch_port_congestion *port; /* of a switch, [0 .. ports] */
	struct mad_congestion_log_switch log;
};

/* Congestion control of an adapter's port. */
struct agent_cc_port {
	struct mad_ca_congestion_setting set;
	uint16_t limit; /* CCTI_Limit */
	uint16_t table[AGENT_CC_BLOCKS * MAD_CC_TABLE_ENTRIES]; /* shift << 14 | multiplier */
	struct mad_congestion_log_ca log;
};

struct agent_port {
	struct mad_port_info info;  /* of external ports of switches: without the fields of end ports */
	uint16_t pkeys[AGENT_PKEYS];
	bool joined;                /* the cable */
	bool up;                    /* the physical link, as the agents told the engine */
	uint8_t physical;           /* what the manager wants: sleep, polling or disabled */
	bool led;
	uint64_t mkey_lease_end_ns; /* 0: does not run */
	struct fabric_counters base, base_extended; /* what the engine had counted when they were cleared */
	struct agent_port_host *host; /* of adapters alone */
};

/* What only an adapter's port has. */
struct agent_port_host {
	uint64_t guids[AGENT_GUIDS];
	struct agent_cc_port cc;
};

struct agent_node {
	uint32_t number;
	bool is_switch;
	uint8_t ports; /* without port 0 */
	const struct topology_node *what;
	struct agent_port *port; /* [0 .. ports]; [0] of an adapter is not used */
	struct mad_switch_info info;
	struct agent_notice notice[AGENT_NOTICES];
	struct agent_samples samples;
	struct agent_cc cc;
	struct list timed; /* in fabric_agents.timed while something has a due time */
};

struct fabric_agents {
	const struct topology *topology;
	struct fabric *engine;
	struct fabric_agents_ops ops;
	struct agent_node *node;
	struct agent_port *ports;           /* of all nodes */
	struct agent_port_host *hosts;      /* of all adapters' ports */
	struct mad_switch_port_congestion *cc_ports; /* of all switches' ports */
	uint32_t nodes;
	uint16_t multicast; /* entries of multicast forwarding tables */
	uint32_t tid;       /* of the last trap */
	struct list timed;  /* of agent_node.timed */
	struct fabric_agents_counts counts;
};

/* One request to an agent, in its bytes, which become the answer. */
struct agent_request {
	struct fabric_agents *a;
	struct agent_node *node;
	uint8_t in_port;  /* where it came in; of an adapter: the port that is asked */
	uint32_t mod;     /* attribute modifier */
	uint8_t *data;    /* of the attribute: where the class has it */
	size_t data_bytes; /* from there to the end of what the class has for attributes */
	uint64_t now_ns;
	bool key_matches; /* M_Key or CC_Key: keys may be shown */
};

static inline struct agent_node *agent_node_at(const struct fabric_agents *a, uint32_t node)
{
	return node < a->nodes ? &a->node[node] : NULL;
}

/* A port with a connector; NULL: no such one. */
static inline struct agent_port *agent_port_at(const struct fabric_agents *a, uint32_t node, uint8_t port)
{
	return node < a->nodes && port && port <= a->node[node].ports ? &a->node[node].port[port] : NULL;
}

static inline struct agent_port *agent_host_port_at(const struct fabric_agents *a, uint32_t node,
						    uint8_t port)
{
	struct agent_port *p = agent_port_at(a, node, port);

	return p && p->host ? p : NULL;
}

/* The number of the port that has LID, M_Key and the other properties of an end port. */
static inline uint8_t agent_end_port(const struct agent_node *n, uint8_t port)
{
	return n->is_switch ? 0 : port;
}

/* Whether the LID is one of the port's (LMC). */
static inline bool agent_has_lid(const struct agent_port *p, uint16_t lid)
{
	return p->info.lid && lid != MAD_LID_PERMISSIVE && lid >> p->info.lmc == p->info.lid >> p->info.lmc;
}

/* fabric_agents_tick() shall look at the node. */
static inline void agent_time_node(struct fabric_agents *a, struct agent_node *n)
{
	if (list_empty(&n->timed))
		list_push(&a->timed, &n->timed);
}

#endif
