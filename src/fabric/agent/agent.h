/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What answers management datagrams (MADs) in each node of a simulated subnet: the subnet management
 * interface (SMI, directed route: IBA volume 1, 14.2.2) and agent (SMA, 14.2.4 and 14.2.5), the
 * performance agent (PMA, 16.1) and the congestion control agent (annex A10). They keep what a subnet
 * manager sets and put it into the engine (engine/fabric/fabric.h).
 *
 * Pure: MADs and the time in, MADs out by send() and deliver(). No socket, clock, thread or lock; one
 * thread at a time. Memory is allocated by fabric_agents_open() alone. It is not a subnet manager, and
 * knows nothing of packets: the owner takes MADs out of packets and puts them into packets.
 *
 * Nodes have the numbers of the description, and the engine the same: the owner adds node 0, 1, ...
 * of the description to the engine in this order, then the links, then opens the agents.
 *
 * A MAD that reaches an agent causes at most one MAD in answer, and perhaps traps, of which each kind is
 * sent at most once in a port's SubnetTimeOut. What breaks a rule of directed routes, has a wrong M_Key or
 * is not a MAD at all is discarded and counted.
 *
 * The agents alone call the functions of the engine by which management sets something, and its
 * fabric_set_link(), fabric_set_rate() and fabric_clear_counters(), from fabric_agents_open() on.
 */
#ifndef FABRIC_AGENT_AGENT_H
#define FABRIC_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/topology/topology.h"
#include "wire/mad/mad.h"

struct fabric;
struct fabric_agents;
struct plug_port;

/* How a MAD travels. Integers in host order. */
struct agent_address {
	uint16_t slid, dlid;      /* 0xffff: directed route */
	uint16_t pkey;            /* of QP1 */
	uint8_t sl;
	bool grh;                 /* the members below `qkey` mean something */
	uint32_t src_qp, dest_qp; /* 0: SMPs, on lane 15; 1: the others */
	uint32_t qkey;            /* of QP1 */
	uint8_t sgid[16], dgid[16];
	uint32_t flow_label;
	uint8_t traffic_class, hop_limit;
};

struct fabric_agents_ops {
	/* The node sends the MAD out of `port`; 0: from the management port of a switch, to where its
	 * forwarding table leads `to->dlid`. */
	void (*send)(void *arg, uint32_t node, uint8_t port, const uint8_t mad[MAD_BYTES],
		     const struct agent_address *to);
	/* The MAD is for a process that is plugged into the port of a host: answers, traps, SMInfo if the
	 * port has a manager (IsSM), and all classes without an agent here. */
	void (*deliver)(void *arg, uint32_t node, uint8_t port, const uint8_t mad[MAD_BYTES],
			const struct agent_address *from);
	/* What fabric_agents_get_port() says of the port of a host has changed. client_reregister is 1
	 * in this call alone. NULL: not called. */
	void (*changed)(void *arg, uint32_t node, uint8_t port, const struct plug_port *p);
	void *arg;
};

/* Of all ports; 0: the value in brackets. */
struct fabric_agents_limits {
	uint16_t mtu;   /* payload: 256, 512, 1024, 2048 or 4096 (4096) */
	uint8_t lanes;  /* data lanes: 1, 2, 4, 8 or 15 (8) */
	uint16_t multicast; /* entries of multicast forwarding tables, a multiple of 32 (1024) */
};

/*
 * Ports with a link that is up are in the state INIT, the others DOWN. The description and the engine
 * must outlive the agents. 0 with *out; -EINVAL: a limit is none of its values, or the engine has not the
 * nodes of the description, or a link with less MTU or lanes; -ENOMEM.
 */
int fabric_agents_open(const struct topology *t, struct fabric *engine,
		       const struct fabric_agents_limits *limits, const struct fabric_agents_ops *ops,
		       struct fabric_agents **out);
void fabric_agents_close(struct fabric_agents *a); /* NULL is allowed */

/* ---- MADs ---- */

/* A MAD has come from the link of `port`, or by LID to the management port of a switch (`port`: where
 * it came in; 0: from the switch itself). */
void fabric_agents_receive(struct fabric_agents *a, uint32_t node, uint8_t port,
			   const uint8_t mad[MAD_BYTES], const struct agent_address *from,
			   uint64_t now_ns);
/*
 * A process that is plugged into the port of a host sends a MAD: the port's SMI begins the directed
 * route; a MAD to the port itself stays in the node. `to->slid` is set here from the port's LID and its
 * lower bits. 0; -EINVAL: no such port, not a host, a wrong version or path; -ENETDOWN: the port's
 * state permits no such MAD.
 */
int fabric_agents_submit(struct fabric_agents *a, uint32_t node, uint8_t port,
			 const uint8_t mad[MAD_BYTES], const struct agent_address *to, uint64_t now_ns);

/* ---- time ---- */

/* When fabric_agents_tick() has something to do; UINT64_MAX: never, by itself. */
uint64_t fabric_agents_next_ns(const struct fabric_agents *a);
/* Repeats traps that nobody repressed, ends leases of M_Keys and CC_Keys, and periods of sampling. */
void fabric_agents_tick(struct fabric_agents *a, uint64_t now_ns);

/* ---- links ---- */

/* The cable of the port is cut or joined. The agents set the engine's link, which is up while the cable
 * is joined and neither end is disabled by its manager; do not call fabric_set_link() besides. */
int fabric_agents_cable(struct fabric_agents *a, uint32_t node, uint8_t port, bool joined,
			uint64_t now_ns);
/* The engine said by fabric_ops.link that a link went down or came up. May be called for changes that
 * the agents know already. */
void fabric_agents_link(struct fabric_agents *a, uint32_t node, uint8_t port, bool up, uint64_t now_ns);

/* ---- the port of a host, as plugged-in processes see it ---- */

/* Fills *p from PortInfo and the tables. -EINVAL: no such port of a host. */
int fabric_agents_get_port(const struct fabric_agents *a, uint32_t node, uint8_t port,
			   struct plug_port *p);
/* Bits of PortInfo:CapabilityMask that processes may change: IsSM, IsCommunicationManagementSupported,
 * IsSNMPTunnelingSupported, IsDeviceManagementSupported, IsVendorClassSupported. -EINVAL: others. */
int fabric_agents_set_capability(struct fabric_agents *a, uint32_t node, uint8_t port, uint32_t set,
				 uint32_t clear, uint64_t now_ns);

/* A packet had a P_Key that the host's port has not, or the Q_Key was wrong: counts, and sends trap 257
 * or 258. */
struct agent_violation {
	bool qkey;             /* else P_Key */
	uint32_t key;
	uint16_t slid, dlid;
	uint8_t sl;
	uint32_t src_qp, dest_qp;
	uint8_t sgid[16], dgid[16]; /* zero without a GRH */
};
int fabric_agents_violation(struct fabric_agents *a, uint32_t node, uint8_t port,
			    const struct agent_violation *v, uint64_t now_ns);
/* A switch port dropped a packet for its P_Key (FABRIC_DROP_PARTITION): trap 259. */
int fabric_agents_switch_violation(struct fabric_agents *a, uint32_t node, uint8_t port,
				   const struct agent_violation *v, uint64_t now_ns);

/* ---- congestion logs ---- */

/* A BECN came to the host for its queue pair `local_qp`. `service`: 0 RC, 1 UC, 2 RD, 3 UD. */
struct agent_becn {
	uint32_t local_qp, remote_qp;
	uint16_t local_lid, remote_lid;
	uint8_t sl, service;
};
int fabric_agents_becn(struct fabric_agents *a, uint32_t node, uint8_t port, const struct agent_becn *b,
		       uint64_t now_ns);
/* An output port of a switch marked a packet (FABRIC_EVENT_MARKED). */
int fabric_agents_marked(struct fabric_agents *a, uint32_t node, uint8_t port, uint16_t slid,
			 uint16_t dlid, uint8_t sl, uint64_t now_ns);
/* Whether the host's port delays flows by service level (true) or by queue pair (PortControl). */
bool fabric_agents_by_sl(const struct fabric_agents *a, uint32_t node, uint8_t port);

/* ---- what happened ---- */

struct fabric_agents_counts {
	uint64_t received;       /* by receive() and submit() */
	uint64_t answered, forwarded, delivered;
	uint64_t bad_mad;        /* discarded: version, class, method or length of a path */
	uint64_t bad_route;      /* discarded: a rule of directed routes, or a port that is down */
	uint64_t bad_lid;        /* discarded: not for this node */
	uint64_t bad_key;        /* discarded: M_Key, CC_Key */
	uint64_t traps, traps_repeated, traps_repressed;
};
void fabric_agents_get_counts(const struct fabric_agents *a, struct fabric_agents_counts *c);

#endif
