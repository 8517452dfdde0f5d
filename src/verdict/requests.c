/* SPDX-License-Identifier: BSD-2-Clause */
/* To which request a completion belongs; see observe.h. */
#include "verdict/observe.h"

const struct verdict_request *verdict_done(struct verdict_qp *q, uint64_t wr_id, bool good)
{
	uint64_t posted = atomic_load_explicit(&q->posted, memory_order_acquire);
	uint64_t at = atomic_load_explicit(&q->done, memory_order_relaxed);

	if (at + VERDICT_REQUESTS < posted)
		at = posted - VERDICT_REQUESTS;
	while (at < posted) {
		const struct verdict_request *r = &q->requests[++at % VERDICT_REQUESTS];

		if (r->wr_id == wr_id && (r->signaled || !good)) {
			atomic_store_explicit(&q->done, at, memory_order_relaxed);
			return r;
		}
	}
	return NULL;
}
