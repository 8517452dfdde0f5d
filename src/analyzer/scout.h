/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the two directions of a connection before their packets are analysed: the packets wait
 * in a queue meanwhile. Each answer narrows the flows that a direction's answers can belong to.
 */
#ifndef ANALYZER_SCOUT_H
#define ANALYZER_SCOUT_H

#include "analyzer/table.h"

#define ANALYZER_SCOUT_REQUESTS 32
#define ANALYZER_SCOUT_CANDIDATES 16

struct analyzer_scout {
	unsigned requests;
	struct {
		uint32_t psn, length;
		bool read;
	} request[ANALYZER_SCOUT_REQUESTS]; /* the latest */
	unsigned candidates, tries;
	struct analyzer_flow *candidate[ANALYZER_SCOUT_CANDIDATES];
};

void analyzer_scout_packet(struct analyzer_table *t, struct analyzer_flow *f,
			   const struct analyzer_packet *p);

#endif
