/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests of a flow by PSN; see requests.h. */
#include "analyzer/requests.h"
#include "engine/rc/rules.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 4
#define HISTORY 16 /* requests that are kept although they were answered */
#define MTU_MIN 256

uint32_t analyzer_requests_rank(const struct analyzer_requests *r, uint32_t psn)
{
	uint32_t low = 0, high = r->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (rc_psn_diff(psn, analyzer_request_at(r, middle)->psn) >= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The most PSNs that the answers of a READ can have. */
static uint32_t span_max(const struct analyzer_request *q)
{
	if (analyzer_operation(q->opcode) != IB_READ_REQUEST)
		return 1;
	if (q->span)
		return q->span;
	return q->length / MTU_MIN + 1;
}

struct analyzer_request *analyzer_requests_find(const struct analyzer_requests *r, uint32_t psn)
{
	uint32_t rank = analyzer_requests_rank(r, psn);
	struct analyzer_request *q;

	if (!rank)
		return NULL;
	q = analyzer_request_at(r, rank - 1);
	return (uint32_t)rc_psn_diff(psn, q->psn) < span_max(q) ? q : NULL;
}

static bool grow(struct analyzer_requests *r, struct analyzer_budget *budget)
{
	uint32_t room = r->room ? r->room * 2 : ROOM_FIRST;
	struct analyzer_request *ring;

	if (room > ANALYZER_REQUESTS_MAX)
		return false;
	if (room - r->room > budget->left) {
		budget->used_up = true;
		return false;
	}
	ring = malloc(room * sizeof(*ring));
	if (!ring)
		return false;
	for (uint32_t i = 0; i < r->count; i++)
		ring[i] = *analyzer_request_at(r, i);
	free(r->ring);
	budget->left -= room - r->room;
	*r = (struct analyzer_requests){ .ring = ring, .count = r->count, .room = room,
					 .open_from = r->open_from };
	return true;
}

static void drop_oldest(struct analyzer_requests *r, struct analyzer_request *dropped)
{
	*dropped = *analyzer_request_at(r, 0);
	r->head++;
	r->count--;
	r->open_from -= r->open_from > 0;
}

struct analyzer_request *analyzer_requests_add(struct analyzer_requests *r, uint32_t psn,
					       struct analyzer_budget *budget,
					       struct analyzer_request *forgotten)
{
	uint32_t rank;

	forgotten->sends = 0;
	if (r->count == r->room) {
		bool oldest_open = r->count && analyzer_request_at(r, 0)->open;

		if ((oldest_open || r->room < HISTORY) && grow(r, budget))
			;
		else if (r->count)
			drop_oldest(r, forgotten);
		else
			return NULL;
	}
	rank = analyzer_requests_rank(r, psn);
	for (uint32_t i = r->count; i > rank; i--)
		*analyzer_request_at(r, i) = *analyzer_request_at(r, i - 1);
	r->count++;
	if (rank < r->open_from)
		r->open_from = rank;
	memset(analyzer_request_at(r, rank), 0, sizeof(*r->ring));
	analyzer_request_at(r, rank)->psn = psn;
	return analyzer_request_at(r, rank);
}

struct analyzer_request *analyzer_requests_open(struct analyzer_requests *r)
{
	while (r->open_from < r->count && !analyzer_request_at(r, r->open_from)->open)
		r->open_from++;
	return r->open_from < r->count ? analyzer_request_at(r, r->open_from) : NULL;
}

void analyzer_requests_free(struct analyzer_requests *r, struct analyzer_budget *budget)
{
	budget->left += r->room;
	free(r->ring);
	memset(r, 0, sizeof(*r));
}
