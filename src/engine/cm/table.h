/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the connection to which a message belongs, among all connections at one end
 * of a carrier. A pure index: its entries are copies of the machines' values, so a
 * lookup needs only the lock of the table and not those of the machines.
 */
#ifndef ENGINE_CM_TABLE_H
#define ENGINE_CM_TABLE_H

#include "engine/cm/machine.h"
#include "util/list.h"

#define CM_TABLE_BUCKETS 1024 /* a power of 2 */

struct cm_entry {
	struct list by_local, by_remote, by_qpn;
	uint64_t peer;           /* the other end, numbered by the carrier */
	uint32_t local_comm_id, remote_comm_id;
	uint32_t remote_qpn;     /* 0: a REQ of that QP makes nothing stale */
	uint64_t calls_service;  /* peer to peer, before a REQ came; else 0 */
};

struct cm_table {
	struct list by_local[CM_TABLE_BUCKETS], by_remote[CM_TABLE_BUCKETS],
		by_qpn[CM_TABLE_BUCKETS];
};

void cm_table_init(struct cm_table *t);
void cm_entry_init(struct cm_entry *e);
/* Enters a machine, or updates its entry after a change. */
void cm_table_update(struct cm_table *t, struct cm_entry *e, uint64_t peer,
		     const struct cm_machine *m);
/* Also allowed for an entry that is not in the table. */
void cm_table_remove(struct cm_entry *e);

/* The connection to which a message of `peer` (or a repeated request) belongs; or
 * NULL. */
struct cm_entry *cm_table_find(struct cm_table *t, uint64_t peer,
			       const struct cm_mad *mad);
/* A connection with the peer's QP that sends `mad`, a REQ for another one; or NULL. */
struct cm_entry *cm_table_find_stale(struct cm_table *t, uint64_t peer,
				     const struct cm_mad *mad);

#endif
