/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of responders whose READs were dropped by requesters. A page is stale from the first
 * good answer of any queue pair to the last one of a queue pair whose answers were dropped.
 */
#ifndef ANALYZER_PAGES_H
#define ANALYZER_PAGES_H

#include "analyzer/flow.h"

#define ANALYZER_PAGES_MAX 4096 /* a power of two */

struct analyzer_page {
	bool used;
	uint64_t page;
	uint32_t rkey;
	int64_t first_ns, last_ns;
};

struct analyzer_pages {
	uint64_t count;
	struct analyzer_page slot[ANALYZER_PAGES_MAX];
};

/* The requester dropped an answer of this READ. */
void analyzer_pages_discard(struct analyzer_pages *pages, const struct analyzer_request *q);
/* This READ is over: its last answer was taken. */
void analyzer_pages_done(struct analyzer_pages *pages, const struct analyzer_request *q);
int64_t analyzer_pages_stale_ns(const struct analyzer_pages *pages);

#endif
