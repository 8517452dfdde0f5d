/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the reader share: read.c follows files and records, cable.c reads the line of one
 * end of a link and joins the ends. Private to the folder.
 */
#ifndef FABRIC_TOPOLOGY_READER_H
#define FABRIC_TOPOLOGY_READER_H

#include "fabric/topology/lookup.h"
#include "fabric/topology/scan.h"
#include "fabric/topology/topology.h"

/* One end of a link, as its line says. */
struct topology_half {
	uint32_t node;
	uint8_t port, peer_port;
	uint8_t widths, speeds; /* bits that are allowed, of speeds 1 << enum topology_speed */
	bool has_rate, has_delay, has_error_rate;
	enum topology_width width;
	enum topology_speed speed;
	uint64_t delay_ns;
	double bit_error_rate;
	uint64_t peer_guid; /* 0: not said */
	const char *file;
	unsigned line;
	char peer[TOPOLOGY_NAME_MAX + 1];
};

struct topology_halves {
	struct topology_half *list;
	uint32_t count, capacity;
	struct topology_table by_end; /* node * 256 + port */
};

/*
 * Reads the line of a port of the node that gets the index `node`: `[1](GUID) "PEER"[2] ...`. A GUID goes
 * to port_guids[port]. `widths` and `speeds` are what a line allows that says nothing. Negative: told.
 */
int topology_half_read(struct topology_halves *h, struct topology_scan *s, const struct topology_node *n,
		       uint32_t node, uint8_t widths, uint8_t speeds);
/* Makes links of all ends. Negative: told, with the file and line of an end. */
int topology_halves_join(struct topology_halves *h, struct topology *t, struct topology_scan *s);
void topology_halves_free(struct topology_halves *h);

#endif
