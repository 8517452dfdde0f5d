/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The description of an InfiniBand subnet: switches, host adapters, the links between their ports,
 * and the identities that the InfiniBand architecture gives them (IBA volume 1, 4.1 and 14.2.5).
 *
 * It says what is there, not how it behaves: LIDs, states of ports, forwarding tables and lanes belong
 * to the agents and the subnet manager. A description is read from text (topology_read()), generated
 * from the name of a family (generate.h), or built by topology_add_node() and topology_add_link(). It is
 * one allocation tree without global state; a description that no thread changes may be read by many.
 *
 * Functions that may fail return 0 or a negative errno, and write one line for a person into `why`:
 * what is wrong, where, and what would be right. `why` may be NULL with a size of 0.
 */
#ifndef FABRIC_TOPOLOGY_TOPOLOGY_H
#define FABRIC_TOPOLOGY_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NodeInfo's NumPorts has 8 bits, and port 255 of a forwarding table means "discard". */
#define TOPOLOGY_PORTS_MAX 254
#define TOPOLOGY_NODES_MAX 4096
#define TOPOLOGY_LINKS_MAX 65536
/* Bytes of a name without the NUL byte: those of NodeDescription. */
#define TOPOLOGY_NAME_MAX 64
#define TOPOLOGY_DELAY_NS_MAX UINT64_C(1000000000)
/* No node, no link. */
#define TOPOLOGY_NONE UINT32_MAX

/* NodeInfo's NodeType. Routers (3) are refused: a description is one subnet. */
enum topology_kind {
	TOPOLOGY_HCA = 1,
	TOPOLOGY_SWITCH = 2,
};

/* PortInfo's bits of LinkWidthActive. */
enum topology_width {
	TOPOLOGY_1X = 1,
	TOPOLOGY_4X = 2,
	TOPOLOGY_8X = 4,
	TOPOLOGY_12X = 8,
	TOPOLOGY_2X = 16,
};

/* In the order of their rates; PortInfo spreads them over two fields (and a vendor's for FDR10). */
enum topology_speed {
	TOPOLOGY_SDR,
	TOPOLOGY_DDR,
	TOPOLOGY_QDR,
	TOPOLOGY_FDR10,
	TOPOLOGY_FDR,
	TOPOLOGY_EDR,
	TOPOLOGY_HDR,
	TOPOLOGY_NDR,
	TOPOLOGY_SPEEDS,
};

struct topology_port {
	uint64_t guid; /* of a host adapter's port; of port 0 of a switch; 0 for other ports of switches */
	uint32_t link; /* index into links; TOPOLOGY_NONE: no cable */
};

struct topology_node {
	char id[TOPOLOGY_NAME_MAX + 1];   /* unique; what a person types: "host-1", "S-0002c9..." */
	char name[TOPOLOGY_NAME_MAX + 1]; /* NodeDescription, perhaps that of several nodes */
	enum topology_kind kind;
	bool enhanced_port_0; /* of a switch: its port 0 is an end port like that of an adapter */
	uint8_t port_count;   /* without port 0 */
	uint32_t vendor_id;   /* 24 bits */
	uint16_t device_id;
	uint64_t guid;                /* unique among nodes */
	uint64_t system_guid;         /* SystemImageGUID */
	struct topology_port *ports; /* [0 .. port_count]; [0] is unused for a host adapter */
};

struct topology_end {
	uint32_t node; /* index into nodes */
	uint8_t port;  /* 1 .. port_count */
};

struct topology_link {
	struct topology_end end[2]; /* in no particular order */
	enum topology_width width;
	enum topology_speed speed;
	uint64_t delay_ns;     /* of a bit from end to end, one way; up to TOPOLOGY_DELAY_NS_MAX */
	double bit_error_rate; /* 0 up to below 1; 0: none */
};

struct topology_index; /* private: lookup.h */

struct topology {
	struct topology_node *nodes;
	struct topology_link *links;
	uint32_t node_count, link_count;
	struct topology_index *index;
};

/* ---- making: build.c ---- */

/* An empty description; NULL: no memory. topology_free() frees all of it; NULL is allowed. */
struct topology *topology_new(void);
void topology_free(struct topology *t);

/*
 * Adds a copy of `n`, without links; `ports` may be NULL, or has the GUIDs of the ports (their links are
 * ignored). What is left empty is filled in: name by id; GUIDs of 0 by node GUIDs that nobody else has
 * with the ports' behind them (node GUID + number of the port); system_guid by the node's GUID.
 * *node: its index, which stays. -EEXIST: another node has the id or the GUID, or another port the
 * port's GUID; -EINVAL: a value is out of range; -ENOSPC: a limit; -ENOMEM.
 */
int topology_add_node(struct topology *t, const struct topology_node *n, uint32_t *node, char *why,
		      size_t why_bytes);

/*
 * Adds a copy of `l`. -EEXIST: a port has a link already; -EINVAL: a node or port that is not there, a
 * port linked to itself, a value out of range; -ENOSPC, -ENOMEM.
 */
int topology_add_link(struct topology *t, const struct topology_link *l, char *why, size_t why_bytes);

/* ---- looking up: indexes of nodes, TOPOLOGY_NONE if there is none ---- */

uint32_t topology_find_id(const struct topology *t, const char *id);
/* The node with this id, or the only one with this name (NodeDescription). */
uint32_t topology_find_name(const struct topology *t, const char *name);
uint32_t topology_find_guid(const struct topology *t, uint64_t node_guid);
/* The port with this GUID into *end (port 0: of a switch). False: there is none. */
bool topology_find_port_guid(const struct topology *t, uint64_t port_guid, struct topology_end *end);

/* ---- text: read.c, write.c ---- */

/*
 * Reads the format that ibnetdiscover prints and ibsim reads:
 *
 *	vendid=0x2c9
 *	devid=0xcb20
 *	sysimgguid=0x2c90300a1b2c3
 *	switchguid=0x2c90300a1b2c0(2c90300a1b2c0)
 *	Switch	36 "S-0002c90300a1b2c0"		# "leaf one" enhanced port 0 lid 3 lmc 0
 *	[1]	"H-0002c90300000001"[1](2c90300000002)	# "host one" lid 4 4xQDR
 *
 *	caguid=0x2c90300000001
 *	Ca	1 "H-0002c90300000001"		# "host one"
 *	[1](2c90300000002)	"S-0002c90300a1b2c0"[1]	# lid 4 lmc 0 "leaf one" lid 3 4xQDR
 *
 * and its short form, where GUIDs are those that ibsim would assign: `Switch 8 "sw1"`, `Hca 1 "host1"`,
 * `[1] "sw1"[2]`. Each link stands at both of its ends. Width and speed are taken from the comment
 * ("4xQDR"), from a word of that form before it, from w= and s= (the bits of PortInfo's
 * LinkWidthEnabled and LinkSpeedEnabled, as ibsim has them) or from the lines width= and speed= before
 * it, in this order; otherwise they are 4xSDR, as for ibsim. LIDs are skipped: a subnet manager assigns them.
 *
 * Of our own are words of a link before its comment, with = or, for files that older versions of ibsim read
 * as well, a colon: delay:300ns (ns, us, ms; a number alone: ns) and ber:1e-12. They may stand at one end.
 *
 * Refused, with file and line: routers, aliases (@), module, do and pdebug; words that are not known, with
 * the nearest one that is; ports that are used twice; ends that contradict each other; equal GUIDs or
 * ids. `include "FILE"` is followed, relative to the file that includes, up to 8 levels deep, only by
 * topology_read_file(). `name` stands in messages for the text. On success the caller frees *t.
 */
int topology_read(const char *text, size_t bytes, const char *name, struct topology **t, char *why,
		  size_t why_bytes);
int topology_read_file(const char *path, struct topology **t, char *why, size_t why_bytes);

/*
 * Writes the same format, which topology_read() and ibsim read, as text that the caller frees. What
 * is read back is equal (topology_equal()). -ENOMEM.
 */
int topology_write(const struct topology *t, char **text, size_t *bytes);

/* Whether both have the same nodes (by id) with the same properties, and the same links. Order does not
 * count. */
bool topology_equal(const struct topology *a, const struct topology *b);

/* ---- links: link.c ---- */

/* 1, 2, 4, 8, 12. */
unsigned topology_lanes(enum topology_width width);
/* "SDR" ... "NDR". */
const char *topology_speed_name(enum topology_speed speed);
/* Read "4x", "QDR", "4xQDR" (in any case), `bytes` long. -EINVAL: it is not one. */
int topology_parse_width(const char *text, size_t bytes, enum topology_width *width);
int topology_parse_speed(const char *text, size_t bytes, enum topology_speed *speed);
int topology_parse_rate(const char *text, size_t bytes, enum topology_width *width,
			enum topology_speed *speed);
/* Read "300", "300ns", "1.5us", "2ms", at most a second; and a probability below 1. -EINVAL. */
int topology_parse_delay(const char *text, size_t bytes, uint64_t *delay_ns);
int topology_parse_error_rate(const char *text, size_t bytes, double *bit_error_rate);
/*
 * Bits of packets that a link carries in a second, in each direction: lanes times the rate of a lane
 * less its line code (8b/10b, 64b/66b), and from HDR on less its error correction.
 */
uint64_t topology_link_bit_rate(const struct topology_link *l);

/* ---- the graph: graph.c ---- */

/* The end at the other side of the cable of a port into *peer. False: no cable, or no such port. */
bool topology_peer(const struct topology *t, uint32_t node, uint8_t port, struct topology_end *peer);

/*
 * Whether a path leads from each node to each other one, switches and adapters alike; adapters do not
 * forward. 0; -ENETUNREACH: `why` names a node of one part and a node of another; -ENOMEM.
 */
int topology_check_connected(const struct topology *t, char *why, size_t why_bytes);

/*
 * Hops (links) from node `from` to all nodes into hops[node_count]; UINT32_MAX: not reached. Adapters do
 * not forward. -ENOMEM.
 */
int topology_hops(const struct topology *t, uint32_t from, uint32_t *hops);

#endif
