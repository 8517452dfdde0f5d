/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is meant by a message, among all connections of one end of a carrier: a
 * pure index. It keeps copies of what it looks for, so that it can be asked
 * under a lock of its own while machines are at work under theirs.
 */
#ifndef RDMACM_CM_TABLE_H
#define RDMACM_CM_TABLE_H

#include "rdmacm/cm_machine.h"
#include "util/list.h"

#define CM_TABLE_BUCKETS 1024 /* a power of 2 */

struct cm_entry {
	struct list by_local, by_remote, by_qpn;
	uint64_t peer;           /* the other end, as the carrier names it */
	uint32_t local_comm_id, remote_comm_id;
	uint32_t remote_qpn;     /* 0: its QP is free for another connection */
	uint64_t calls_service;  /* 0, or another caller of it may be met */
};

struct cm_table {
	struct list by_local[CM_TABLE_BUCKETS], by_remote[CM_TABLE_BUCKETS],
		by_qpn[CM_TABLE_BUCKETS];
};

void cm_table_init(struct cm_table *t);
void cm_entry_init(struct cm_entry *e);
/* Enters a machine, or what has changed of it since. */
void cm_table_update(struct cm_table *t, struct cm_entry *e, uint64_t peer,
		     const struct cm_machine *m);
/* Also of one that is not in it. */
void cm_table_remove(struct cm_entry *e);

/* Whom a message of `peer` concerns, a repeated request included; or NULL. */
struct cm_entry *cm_table_find(struct cm_table *t, uint64_t peer,
			       const struct cm_mad *mad);
/* A connection whose QP of the peer now asks (`mad` is a REQ) for another. */
struct cm_entry *cm_table_find_stale(struct cm_table *t, uint64_t peer,
				     const struct cm_mad *mad);

#endif
