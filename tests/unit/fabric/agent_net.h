/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A subnet for tests of the management agents: a generated description, an engine with its nodes and
 * links, and a network that carries MADs from node to node at once, by directed route or by the engine's
 * forwarding tables. No packet goes through the engine.
 */
#ifndef TESTS_UNIT_FABRIC_AGENT_NET_H
#define TESTS_UNIT_FABRIC_AGENT_NET_H

#include "engine/fabric/fabric.h"
#include "fabric/agent/agent.h"
#include "fabric/topology/topology.h"
#include "plug/plug.h"
#include "wire/mad/port.h"
#include "wire/mad/smp.h"

#define NET_LOG 64
#define NET_QUEUE 1024

struct net_mad {
	uint32_t node;
	uint8_t port;
	uint8_t mad[MAD_BYTES];
	struct agent_address address;
};

struct net {
	struct topology *topology;
	struct fabric *engine;
	struct fabric_agents *agents;
	uint64_t now_ns;
	/* What waits to be carried. */
	struct net_mad *queue;
	unsigned head, tail;
	/* The last MADs that came to processes; delivered() is called, too, when it is set. */
	struct net_mad got[NET_LOG];
	unsigned got_count;
	void (*delivered)(void *arg, const struct net_mad *m);
	void *arg;
	unsigned sent, lost; /* MADs that agents sent, that found no way */
	/* The last change of a host's port. */
	unsigned changes, reregisters;
	uint32_t changed_node;
	struct plug_port changed;
};

/* A description as topology_generate() reads it, or the file of that name when it has a '/'; all as the
 * agents' defaults want it. Ends the program when it cannot. */
void net_open(struct net *n, const char *what, const struct fabric_agents_limits *limits);
void net_close(struct net *n);
/* Carries MADs until none waits. */
void net_run(struct net *n);
uint32_t net_node(const struct net *n, const char *name);

/* A process at port 1 of a host sends an SMP by directed route (path: ports out, 0 at the end); *smp is the
 * answer then. False: no answer came. */
bool net_directed(struct net *n, uint32_t node, const uint8_t *path, struct mad_smp *smp);
/* PortInfo by directed route: the status of the answer, 0xffff: none came. A Set has the modifier as it is. */
uint16_t net_get_port_info(struct net *n, uint32_t node, const uint8_t *path, uint32_t port,
			   struct mad_port_info *info);
uint16_t net_set_port_info(struct net *n, uint32_t node, const uint8_t *path, uint32_t port,
			   const struct mad_port_info *info);
/* By LID, to queue pair 0 or 1; the class is in the MAD, which is the answer then. */
bool net_by_lid(struct net *n, uint32_t node, uint16_t lid, uint8_t qp, uint8_t mad[MAD_BYTES]);

#endif
