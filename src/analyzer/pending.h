/* SPDX-License-Identifier: BSD-2-Clause */
/* Pending periods of a flow: an RNR NAK or a dropped answer, until the request is sent again. */
#ifndef ANALYZER_PENDING_H
#define ANALYZER_PENDING_H

#include "analyzer/flow.h"

/* Nominal delay of an RNR NAK's code (IBTA volume 1, table 45). */
int64_t analyzer_rnr_ns(uint8_t syndrome);

/* Opens a period for the request; returns it. */
struct analyzer_pending *analyzer_pending_open(struct analyzer_flow *f,
					       const struct analyzer_request *q,
					       enum analyzer_side side, int64_t now_ns,
					       uint64_t packet);
void analyzer_pending_close(struct analyzer_pending *p, int64_t now_ns, uint64_t packet);
/* The last period, if it is open; or NULL. */
struct analyzer_pending *analyzer_pending_now(struct analyzer_flow *f);
/* A period by its number; NULL: it is no longer kept. */
struct analyzer_pending *analyzer_pending_by_id(struct analyzer_flow *f, uint32_t id);
/* The number of the period in whose window a request is that is sent first now; 0: none. */
uint32_t analyzer_pending_window(struct analyzer_flow *f, uint32_t psn, int64_t now_ns);

#endif
