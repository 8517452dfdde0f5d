/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits between attempts; see backoff.h. */
#include "gateway/part/backoff.h"

#include "util/container_of.h"

void backoff_plan(struct backoff *b, uint64_t interval_ns, uint64_t now_ns)
{
	uint64_t wait_ns = b->wait_ns ? 2 * b->wait_ns : BACKOFF_FIRST_NS;

	wait_ns = MIN(wait_ns, interval_ns);
	b->wait_ns = wait_ns;
	/* Random enough: no two gateways fail in the same 16 ns. */
	b->at_ns = now_ns + wait_ns * 3 / 4 + (now_ns >> 4) % (wait_ns / 2 + 1);
}
