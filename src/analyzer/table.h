/* SPDX-License-Identifier: BSD-2-Clause */
/* The flows by their addresses and QP number, and the pairs that carry one connection. */
#ifndef ANALYZER_TABLE_H
#define ANALYZER_TABLE_H

#include "analyzer/flow.h"

#define ANALYZER_FLOWS_MAX 65536
#define ANALYZER_BUCKETS 65536 /* a power of two */

struct analyzer_table {
	uint64_t seed; /* of the lists: a random number */
	uint32_t count;
	struct analyzer_flow *flow[ANALYZER_FLOWS_MAX];     /* in the order of appearance */
	struct analyzer_flow *by_key[ANALYZER_BUCKETS];
	struct analyzer_flow *by_hosts[ANALYZER_BUCKETS];   /* those without a partner, and others */
};

/* The flow of the packet; with `add`, a new one if there is none. NULL: none, or no room. */
struct analyzer_flow *analyzer_table_get(struct analyzer_table *t, const struct analyzer_packet *p,
					 bool add);
/* The flow whose requests the packet answers, which came in flow `y`; NULL: not known. Pairs
 * the two. */
struct analyzer_flow *analyzer_table_pair(struct analyzer_table *t, struct analyzer_flow *y,
					  const struct analyzer_packet *p);
/* The two are one connection; `sure`: no guess. */
void analyzer_table_join(struct analyzer_flow *x, struct analyzer_flow *y, bool sure);
/* A list (next_host) that has the flows against the direction of y, and others. */
struct analyzer_flow **analyzer_table_opposites(struct analyzer_table *t, const struct analyzer_flow *y);
/* The first flow of the list that has no partner; NULL: none. Those before it leave the list. */
struct analyzer_flow *analyzer_table_alone(struct analyzer_flow **at);
/* Are they between the same hosts, in different directions? */
bool analyzer_table_opposite(const struct analyzer_flow *x, const struct analyzer_flow *y);
/* An answer in flow `y` did or did not fit to its partner's requests. A pair that does not fit
 * is divided. */
void analyzer_table_rate(struct analyzer_table *t, struct analyzer_flow *y, bool fitted);

#endif
