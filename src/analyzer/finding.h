/* SPDX-License-Identifier: BSD-2-Clause */
/* Stalls of a flow: packet damming, the near miss of it, and other timeouts. */
#ifndef ANALYZER_FINDING_H
#define ANALYZER_FINDING_H

#include "analyzer/flow.h"

/*
 * A timeout sends `q` again at `now_ns`; q still has the time of its last send. Returns the
 * finding's index, or -1 if there is no room; *kind tells damming from another timeout. A
 * further timeout of a request prolongs its finding.
 */
int analyzer_finding_timeout(struct analyzer_flow *f, const struct analyzer_request *q,
			     int64_t now_ns, uint64_t packet, enum analyzer_kind *kind);
/* A sequence NAK asks for q: was q lost by a pending period? True: it was, and is noted. */
bool analyzer_finding_recovered(struct analyzer_flow *f, const struct analyzer_request *q,
				int64_t now_ns, uint64_t packet);
/* The first answer to q behind a stall. */
void analyzer_finding_answered(struct analyzer_flow *f, uint32_t psn, uint64_t packet);

#endif
