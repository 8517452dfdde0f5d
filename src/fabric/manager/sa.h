/* SPDX-License-Identifier: BSD-2-Clause */
/* An answer of subnet administration while its records are gathered. */
#ifndef FABRIC_MANAGER_SA_H
#define FABRIC_MANAGER_SA_H

#include <stddef.h>
#include <stdint.h>

struct manager;
struct manager_group;
struct mad_mc_member_record;

#define MAD_MC_MEMBER_RECORD_BYTES 52

struct sa_answer {
	uint16_t attr_id;
	uint32_t attr_mod;
	uint64_t mask;          /* components of `query` that records have to match */
	const uint8_t *query;   /* a record, as bytes */
	uint16_t lid;           /* of the port that asks */
	uint16_t status;        /* 0, or that of the answer: then it has no records */
	unsigned record_bytes;  /* of a record on the wire */
	size_t bytes, capacity; /* of records */
	unsigned count;
	uint8_t *mad;           /* room for headers, then records */
};

/* Room for one more record, zeroed; sa_answer_keep() keeps it if it matches the query. NULL: no
 * memory, and status says so. */
void *sa_answer_record(struct sa_answer *a);
void sa_answer_keep(struct sa_answer *a, const uint8_t *record);

/* What the record of each member of a group says alike. */
void sa_member_fill(const struct manager *m, const struct manager_group *g,
		    struct mad_mc_member_record *r);

/* ---- sa_records.c ---- */
/* Adds all records of a->attr_id that match. -ENOENT: it is no attribute that is known here. */
int sa_records(const struct manager *m, struct sa_answer *a);

#endif
