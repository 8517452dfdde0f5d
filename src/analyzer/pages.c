/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of READs that were dropped; see pages.h. */
#include "analyzer/pages.h"

#define PAGE_BITS 12
#define PROBES 16

static struct analyzer_page *slot_of(struct analyzer_pages *pages, const struct analyzer_request *q,
				     bool add)
{
	uint64_t page = q->va >> PAGE_BITS;
	uint64_t hash = (page * UINT64_C(0x9e3779b97f4a7c15)) ^ (q->rkey * UINT64_C(0xbf58476d1ce4e5b9));

	for (unsigned i = 0; i < PROBES; i++) {
		struct analyzer_page *p = &pages->slot[((hash >> 40) + i) % ANALYZER_PAGES_MAX];

		if (p->used && p->page == page && p->rkey == q->rkey)
			return p;
		if (p->used)
			continue;
		if (!add)
			return NULL;
		*p = (struct analyzer_page){ .used = true, .page = page, .rkey = q->rkey };
		pages->count++;
		return p;
	}
	return NULL;
}

void analyzer_pages_discard(struct analyzer_pages *pages, const struct analyzer_request *q)
{
	if (q->has_address)
		slot_of(pages, q, true);
}

void analyzer_pages_done(struct analyzer_pages *pages, const struct analyzer_request *q)
{
	struct analyzer_page *p;

	if (!q->has_address || !q->answers || !pages->count)
		return;
	p = slot_of(pages, q, false);
	if (!p)
		return;
	if (!p->first_ns || q->answer_ns < p->first_ns)
		p->first_ns = q->answer_ns;
	if (q->discards && q->answer_ns > p->last_ns)
		p->last_ns = q->answer_ns;
}

int64_t analyzer_pages_stale_ns(const struct analyzer_pages *pages)
{
	int64_t longest_ns = 0;

	for (unsigned i = 0; i < ANALYZER_PAGES_MAX; i++) {
		const struct analyzer_page *p = &pages->slot[i];

		if (p->used && p->last_ns - p->first_ns > longest_ns)
			longest_ns = p->last_ns - p->first_ns;
	}
	return longest_ns;
}
