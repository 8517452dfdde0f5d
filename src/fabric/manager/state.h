/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the subnet manager share: the subnet as it was found, requests, groups. */
#ifndef FABRIC_MANAGER_STATE_H
#define FABRIC_MANAGER_STATE_H

#include "fabric/manager/manager.h"
#include "fabric/topology/topology.h"
#include "util/list.h"
#include "wire/mad/mad.h"
#include "wire/mad/port.h"
#include "wire/mad/smp.h"

#define MANAGER_NODES_MAX TOPOLOGY_NODES_MAX
#define MANAGER_GROUPS_MAX 512
#define MANAGER_LID_FIRST 1
#define MANAGER_LID_LAST 0xbfff
#define MANAGER_NONE UINT32_MAX

struct manager_port {
	struct mad_port_info info;
	bool known;          /* `info` was read in this sweep */
	uint32_t peer;       /* index of the node at the other end; MANAGER_NONE */
	uint8_t peer_port;
	uint64_t guid;       /* of an end port */
	/* Of an adapter's port with a link the way that ends there: its agent lets no other port set it. */
	bool reached;
	uint8_t hops, path[MAD_SMP_PATH_BYTES];
};

struct manager_node {
	struct mad_node_info info;
	struct mad_node_description description;
	struct mad_switch_info switch_info;
	uint8_t hops;
	uint8_t path[MAD_SMP_PATH_BYTES]; /* of directed route, from entry 1 */
	uint16_t lid;        /* of a switch: of port 0; of an adapter: 0 */
	struct manager_port *ports; /* [0 .. num_ports] */
	uint8_t *forwarding; /* of a switch: by LID, up to top */
	uint16_t top;
};

/* Tables that a switch has got, kept from sweep to sweep by its GUID, so that only changes are sent. */
struct manager_loaded {
	uint64_t guid;
	uint8_t *forwarding;
	uint16_t top;
	uint16_t (*multicast)[MANAGER_GROUPS_MAX]; /* [position][group] */
	bool lanes; /* SL to VL and arbitration are set */
};

struct manager_member {
	uint8_t gid[16];
	uint8_t join_state;
	bool by_itself; /* another port does not end its membership */
};

struct manager_group {
	bool used;
	uint8_t mgid[16];
	uint32_t qkey, flow_label;
	uint16_t pkey;
	uint8_t mtu, rate, packet_life, sl, tclass, hop_limit, scope;
	struct manager_member *members;
	unsigned member_count;
	bool keep; /* it stays without members */
};

enum manager_phase {
	MANAGER_IDLE,
	MANAGER_LIGHT,    /* asks the switches whether a port has changed */
	MANAGER_DISCOVER,
	MANAGER_LIDS,
	MANAGER_TABLES,
	MANAGER_ARM,
	MANAGER_ACTIVATE,
	MANAGER_GROUPS,   /* loads multicast tables after a join */
};

/* A request of subnet management. */
struct manager_request {
	struct list entry;
	/* The answer, or NULL: none came, or it has a status. */
	void (*done)(struct manager *m, const struct manager_request *r, const struct mad_smp *answer);
	uint64_t due_ns;
	uint32_t number;    /* lower half of the transaction identifier */
	unsigned tries;     /* that are left */
	uint32_t node;      /* for done(): index, or MANAGER_NONE */
	uint8_t port;
	struct mad_smp smp;
};

struct manager {
	struct manager_config config;
	struct manager_ops ops;
	uint64_t now_ns, phase_ns, next_light_ns;
	enum manager_phase phase;
	bool sweep_wanted, groups_changed;
	struct manager_report report;
	uint32_t act_count;

	struct list queue, flight; /* of struct manager_request */
	unsigned in_flight;
	struct list answers; /* of struct manager_long: by RMPP */
	unsigned answer_count;
	uint32_t next_number;

	struct manager_node *nodes;  /* of the last sweep; [0]: where the manager is */
	uint32_t node_count, node_room;
	uint16_t sm_lid;

	struct { uint64_t guid; uint16_t lid; } *lids; /* by port GUID, for ever */
	uint32_t lid_count;
	struct manager_loaded *loaded;
	uint32_t loaded_count;
	struct manager_group groups[MANAGER_GROUPS_MAX];
};

/* ---- request.c ---- */
/* A Get (or Set, with the 64 bytes at `data`) by directed route to the node at `path`. */
void manager_get(struct manager *m, uint32_t node, const uint8_t *path, uint8_t hops, uint16_t attr_id,
		 uint32_t attr_mod, uint8_t port,
		 void (*done)(struct manager *, const struct manager_request *, const struct mad_smp *));
void manager_set(struct manager *m, uint32_t node, uint16_t attr_id, uint32_t attr_mod, uint8_t port,
		 const uint8_t *data,
		 void (*done)(struct manager *, const struct manager_request *, const struct mad_smp *));
void manager_requests_answer(struct manager *m, const struct mad_smp *answer);
void manager_requests_turn(struct manager *m);
uint64_t manager_requests_due_ns(const struct manager *m);
bool manager_requests_idle(const struct manager *m);
void manager_requests_forget(struct manager *m);

/* ---- discover.c ---- */
void manager_discover(struct manager *m);
void manager_light(struct manager *m);
void manager_nodes_free(struct manager *m);
uint32_t manager_node_find(const struct manager *m, uint64_t guid);
/* An end port by its LID or port GUID. False: there is none. */
bool manager_port_by_lid(const struct manager *m, uint16_t lid, uint32_t *node, uint8_t *port);
bool manager_port_by_guid(const struct manager *m, uint64_t guid, uint32_t *node, uint8_t *port);
uint16_t manager_lid(const struct manager_node *n, uint8_t port);

/* ---- program.c ---- */
void manager_assign_lids(struct manager *m);
/* 0 or -ENOMEM. */
int manager_load_tables(struct manager *m);
void manager_set_states(struct manager *m, uint8_t state);
struct manager_loaded *manager_loaded_find(struct manager *m, uint64_t guid);
void manager_loaded_free(struct manager *m);

/* ---- route.c ---- */
/* Computes the forwarding tables of all switches into nodes[].forwarding. 0 or -ENOMEM. */
int manager_route(struct manager *m);

/* ---- multicast.c ---- */
void manager_load_groups(struct manager *m);
/* The group with this MGID; NULL. */
struct manager_group *manager_group_find(struct manager *m, const uint8_t mgid[16]);
struct manager_group *manager_group_new(struct manager *m, const uint8_t mgid[16]);
int manager_group_join(struct manager *m, struct manager_group *g, const uint8_t gid[16],
		       uint8_t join_state, bool by_itself);
/* -ENOENT: it is no member. -EACCES: it joined by itself, and another port asks. */
int manager_group_leave(struct manager *m, struct manager_group *g, const uint8_t gid[16],
			uint8_t join_state, bool by_itself);
uint16_t manager_group_mlid(const struct manager *m, const struct manager_group *g);
void manager_groups_free(struct manager *m);

/* ---- sa.c ---- */
/* Answers a query. */
void manager_administer(struct manager *m, const struct manager_address *from,
			const uint8_t mad[MAD_BYTES]);

/* ---- long.c ---- */
/* Sends the answer of `bytes` at `mad`, which becomes the manager's, by RMPP. */
void manager_long_send(struct manager *m, const struct manager_address *to, uint8_t *mad, size_t bytes);
/* Is it about such an answer? */
bool manager_long_receive(struct manager *m, const struct manager_address *from,
			  const uint8_t mad[MAD_BYTES]);
void manager_long_turn(struct manager *m);
uint64_t manager_long_due_ns(const struct manager *m);
void manager_long_forget(struct manager *m);

#endif
