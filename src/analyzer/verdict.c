/* SPDX-License-Identifier: BSD-2-Clause */
/* The verdict on each flow; see verdict.h. */
#include "analyzer/verdict.h"

#include <stdlib.h>

#include "analyzer/requests.h"

#define FLOOD_FLOWS 2
#define AMPLIFICATION 4       /* resends of each WRITE */
#define AMPLIFIED_WRITES 8
#define AMPLIFIED_NAKS 4

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* How many of the sorted times are at or before `limit`. */
static uint32_t up_to(const int64_t *sorted, uint32_t count, int64_t limit)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (sorted[middle] <= limit)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void analyzer_verdict_flood(struct analyzer_flow *const *flow, uint32_t count)
{
	int64_t *begin = calloc(2 * (size_t)count + 1, sizeof(*begin)), *end = begin + count;
	uint32_t n = 0;

	if (!begin)
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (!flow[i]->result.flood_requests)
			continue;
		begin[n] = flow[i]->result.flood_begin_ns;
		end[n++] = flow[i]->result.flood_end_ns;
	}
	qsort(begin, n, sizeof(*begin), compare);
	qsort(end, n, sizeof(*end), compare);
	for (uint32_t i = 0; i < count; i++) {
		struct analyzer_result *r = &flow[i]->result;

		if (!r->flood_requests)
			continue;
		r->flood_flows = up_to(begin, n, r->flood_end_ns) - up_to(end, n, r->flood_begin_ns - 1);
		if (r->flood_flows >= FLOOD_FLOWS)
			r->kinds |= 1u << ANALYZER_READ_FLOOD;
	}
	free(begin);
}

void analyzer_verdict_kinds(struct analyzer_flow *f)
{
	struct analyzer_result *r = &f->result;

	if (r->sequence_naks || r->resends[ANALYZER_BY_SEQUENCE] || r->resends[ANALYZER_BY_GAP])
		r->kinds |= 1u << ANALYZER_LOSS;
	if (r->rnr_receives)
		r->kinds |= 1u << ANALYZER_RNR;
	if (r->rnr_faults || r->resends[ANALYZER_BY_DISCARD])
		r->kinds |= 1u << ANALYZER_PAGE_FAULT;
	if (r->marks || r->notifications)
		r->kinds |= 1u << ANALYZER_CONGESTION;
	if (r->refusals)
		r->kinds |= 1u << ANALYZER_REFUSED;
	if (r->write_naks >= AMPLIFIED_NAKS && r->write_distinct >= AMPLIFIED_WRITES &&
	    r->write_resends > AMPLIFICATION * r->write_distinct)
		r->kinds |= 1u << ANALYZER_WRITE_AMPLIFICATION;
}

/* Without answers in the capture: does the requester lack them, too? It does if it goes on
 * sending its first request again. */
static bool never_answered(struct analyzer_flow *f)
{
	const struct analyzer_result *r = &f->result;

	return r->timeouts && r->findings && f->requests.count &&
	       r->finding[0].psn == analyzer_request_at(&f->requests, 0)->psn;
}

static void gaps(struct analyzer_flow *f, int64_t end_ns)
{
	struct analyzer_result *r = &f->result;
	const struct analyzer_request *open = analyzer_requests_open(&f->requests);

	if (r->request_packets && !r->answers && !never_answered(f))
		r->gaps |= ANALYZER_NO_ANSWERS;
	if (r->requests_missing || r->answers_unmatched)
		r->gaps |= ANALYZER_REQUESTS_MISSING;
	if (r->answers_missing && r->answers)
		r->gaps |= ANALYZER_ANSWERS_MISSING;
	if (r->resends[ANALYZER_BY_UNKNOWN])
		r->gaps |= ANALYZER_RESENDS_UNEXPLAINED;
	if (open && r->answers && !r->refusals && end_ns - open->last_ns >= ANALYZER_TIMEOUT_NS_MIN)
		r->gaps |= ANALYZER_ENDS_EARLY;
	if (f->untimed)
		r->gaps |= ANALYZER_NO_TIMES;
	if (r->forgotten)
		r->gaps |= ANALYZER_FORGOTTEN;
	if (!r->request_packets && f->answers_alone)
		r->gaps |= ANALYZER_NO_REQUESTS;
}

void analyzer_verdict_flow(struct analyzer_flow *f, int64_t end_ns)
{
	struct analyzer_result *r = &f->result;

	analyzer_verdict_kinds(f);
	gaps(f, end_ns);
	if (r->gaps)
		r->kinds |= 1u << ANALYZER_INCOMPLETE;
	r->verdict = r->kinds ? (enum analyzer_kind)__builtin_ctz(r->kinds) : ANALYZER_NONE;
}
