/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forwarding tables of all switches of a subnet: which port leads towards which end port (IBA volume 1,
 * 14.2.5.10, LinearForwardingTable), and whether the paths that they make can deadlock. Pure functions of
 * a description, which must not change while they are used.
 *
 * Tables are indexed by targets and not by LIDs: a target is a port that can have a LID, port 0 of a switch or
 * a port of a host adapter. A subnet manager that gives LIDs writes the entry of a target to its LIDs.
 *
 * Engines give one path between two ports. LASH and DFSSSP also say which layer, so which service level and lane, packets
 * between two ports use. Several paths between two ports, and routing on partitions, are not here.
 */
#ifndef FABRIC_ROUTING_ROUTING_H
#define FABRIC_ROUTING_ROUTING_H

#include "fabric/topology/topology.h"

/* The entry of a target that a switch does not reach: packets are discarded. */
#define ROUTING_DISCARD 255
#define ROUTING_LANES_MAX 15

struct routing_target {
	uint32_t node; /* index into the description's nodes */
	uint8_t port;
	uint8_t at_port; /* of the switch: the port where an adapter's cable ends, 0 for the switch itself */
	uint32_t at;     /* the switch; TOPOLOGY_NONE: the port has no cable to one, and is not reached */
};

struct routing {
	struct routing_target *targets; /* in the order of the nodes and their ports */
	uint32_t target_count, node_count;
	uint32_t *first; /* of a node its first target; [node_count]: target_count */
	/* Those that are at a switch: there[there_first[switch] .. there_first[switch + 1] - 1]. */
	uint32_t *there, *there_first;
	uint8_t **ports; /* of a switch [target], of an adapter NULL */
};

/* ---- engines: on success the caller frees *r by routing_tables_free() ---- */

/*
 * Shortest paths. Of several ports, each target gets the one that leads to the fewest ports of adapters so
 * far, then the lowest. The paths may deadlock: routing_credit_loop(). -ENOMEM.
 */
int routing_min_hop(const struct topology *t, struct routing **r);

/*
 * Paths that go up to the roots and then down, never up again, so that they cannot deadlock. A switch has
 * the rank of its distance to the nearest root; of a link the end with the lower rank is up, of equal
 * ranks the switch with the lower index. A table knows the target alone and not where a packet came from:
 * so a switch with a way down takes it, also where up and down again were shorter. Between ports that this
 * leaves the choice is that of routing_min_hop().
 *
 * Without roots (root_count 0) they are those of routing_find_roots(), or only the first of these if several
 * leave adapters without a path. Several roots may have no path between themselves, and if they are badly
 * chosen adapters may not either: routing_check_paths(). -EINVAL: a root that is no switch; -ENOMEM.
 */
int routing_up_down(const struct topology *t, const uint32_t *roots, uint32_t root_count, struct routing **r);

/*
 * Roots for routing_up_down() into roots[node_count]: the switches whose distances to all ports of
 * adapters have the smallest sum. All of them, if no adapter hangs at any and they are not neighbours
 * (the spines of a fat tree); otherwise the first one. *root_count is 0 if there is no switch. -ENOMEM.
 */
int routing_find_roots(const struct topology *t, uint32_t *roots, uint32_t *root_count);

void routing_tables_free(struct routing *r);

/* ---- layers ---- */

struct routing_layers {
	uint32_t node_count;
	unsigned count; /* layers in use, from 0 */
	uint8_t **of;   /* of a switch [target], of an adapter NULL */
};

/*
 * LASH: the paths of routing_min_hop(), each in the first of up to `layers_max` layers (ROUTING_LANES_MAX at
 * most) that it leaves without a circle, so that packets cannot deadlock if each layer has a lane of its own.
 * On success the caller frees *r and *layers. -ENOSPC: `why` says that more layers are needed; -EINVAL, -ENOMEM.
 */
int routing_lash(const struct topology *t, unsigned layers_max, struct routing **r,
		 struct routing_layers **layers, char *why, size_t why_bytes);
/*
 * DFSSSP: as LASH, but of the shortest paths to a target each switch takes the one whose cables the fewest other paths
 * pass, so that traffic is spread over the whole path and not only over the ports of one switch.
 */
int routing_dfsssp(const struct topology *t, unsigned layers_max, struct routing **r,
		   struct routing_layers **layers, char *why, size_t why_bytes);
/* The layer of packets from target `source` to target `target`. */
uint8_t routing_layer(const struct routing *r, const struct routing_layers *l, uint32_t source, uint32_t target);
/* NULL is allowed. */
void routing_layers_free(struct routing_layers *l);

/* ---- paths ---- */

/* The target of a port; TOPOLOGY_NONE: it cannot have a LID. */
uint32_t routing_find_target(const struct routing *r, uint32_t node, uint8_t port);

/*
 * Follows a packet from the end port `source` to the target and puts the links into links[most], if it is not
 * NULL. Returns how many there are; -ENETUNREACH: a switch discards it, or there is no cable; -ELOOP: it
 * visits more switches than there are; -ENOSPC: more than `most`.
 */
int routing_path(const struct topology *t, const struct routing *r, uint32_t source, uint32_t target,
		 uint32_t *links, uint32_t most);

/*
 * Whether each port of an adapter with a cable to a switch reaches each other one. 0; -ENETUNREACH, -ELOOP:
 * `why` names two ports without a path; -ENOMEM.
 */
int routing_check_paths(const struct topology *t, const struct routing *r, char *why, size_t why_bytes);

/* ---- deadlocks ---- */

/* The buffer at the end of a link in one direction, of one virtual lane. */
struct routing_channel {
	uint32_t link;
	uint8_t from; /* the end of the link that sends: index into its end[] */
	uint8_t lane;
};

/*
 * The lane of a packet from target `source` to target `target` on the link behind port `out` of the node,
 * below ROUTING_LANES_MAX. `in` is the port where it came from, 0 at its source.
 */
typedef uint8_t routing_lane(const void *context, uint32_t source, uint32_t target, uint32_t node, uint8_t in,
			     uint8_t out);

/*
 * Looks for a circle of channels, each of which can be full while its first packet waits for the next one:
 * the circle of the channel dependency graph (Dally and Seitz, 1987) of all paths between end ports of which one
 * at least is an adapter's. Switches do not send to each other on data lanes. `lane` NULL: all packets have lane 0. Returns 0, or the number of channels of one circle, which the caller
 * gets in *circle and frees; -ENOMEM.
 */
int routing_credit_loop(const struct topology *t, const struct routing *r, routing_lane *lane,
			const void *context, struct routing_channel **circle);

#endif
