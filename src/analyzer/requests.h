/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests of a flow by PSN, modulo 2^24. Answered ones are kept while there is room,
 * for a request may be sent again after its answer. */
#ifndef ANALYZER_REQUESTS_H
#define ANALYZER_REQUESTS_H

#include "analyzer/flow.h"

#define ANALYZER_REQUESTS_MAX 16384 /* of a flow */

/* Of all flows: how many more may be allocated. */
struct analyzer_budget {
	uint64_t left;
	bool used_up;
};

static inline struct analyzer_request *analyzer_request_at(const struct analyzer_requests *r, uint32_t i)
{
	return &r->ring[(r->head + i) & (r->room - 1)];
}

/* The newest request, or NULL. */
static inline struct analyzer_request *analyzer_requests_newest(const struct analyzer_requests *r)
{
	return r->count ? analyzer_request_at(r, r->count - 1) : NULL;
}

/* The number of requests whose PSN is `psn` or before. */
uint32_t analyzer_requests_rank(const struct analyzer_requests *r, uint32_t psn);
/* The request that `psn` belongs to: its own, or one of a READ's answers; or NULL. */
struct analyzer_request *analyzer_requests_find(const struct analyzer_requests *r, uint32_t psn);
/* A zeroed request with this PSN at its place. If there is no room, *forgotten is the oldest
 * one, which had to go (forgotten->sends is 0 otherwise). NULL: no memory. */
struct analyzer_request *analyzer_requests_add(struct analyzer_requests *r, uint32_t psn,
					       struct analyzer_budget *budget,
					       struct analyzer_request *forgotten);
/* The oldest request that has no answer; or NULL. */
struct analyzer_request *analyzer_requests_open(struct analyzer_requests *r);
void analyzer_requests_free(struct analyzer_requests *r, struct analyzer_budget *budget);

#endif
