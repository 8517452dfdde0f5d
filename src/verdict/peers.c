/* SPDX-License-Identifier: BSD-2-Clause */
/* Which process of the call is at the other side of a queue pair; see judge.h. */
#include "verdict/judge.h"

/* Two queue pairs that name each other. Numbers of two hosts or devices may be the same, but hardly
 * in both directions. */
static bool has_end(const struct verdict_facts *f, uint32_t number, uint32_t peer)
{
	for (unsigned i = 0; i < VERDICT_QPS; i++)
		if (f->qps[i].number == number && f->qps[i].peer == peer)
			return true;
	return false;
}

static int find_end(const struct verdict_facts *const *all, unsigned count, const struct verdict_qp *qp)
{
	for (unsigned i = 0; i < count; i++)
		if (has_end(all[i], qp->peer, qp->number))
			return (int)i;
	return -1;
}

/* The queue pair that the question is about. */
static bool is_asked(const struct verdict_facts *f, const struct verdict_qp *qp)
{
	if (f->since_ns)
		return qp->number == f->broken && qp->context == f->broken_context;
	return qp->receives > qp->received;
}

int verdict_peer_of(const struct verdict_facts *const *all, unsigned count, unsigned self)
{
	const struct verdict_facts *f = all[self];

	for (unsigned i = 0; i < VERDICT_QPS; i++) {
		const struct verdict_qp *qp = &f->qps[i];
		int found = qp->number && qp->peer && is_asked(f, qp) ? find_end(all, count, qp) : -1;

		if (found >= 0)
			return found;
	}
	return -1;
}
