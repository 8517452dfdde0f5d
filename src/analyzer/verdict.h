/* SPDX-License-Identifier: BSD-2-Clause */
/* What was found on each flow, and the verdict when the capture has ended. */
#ifndef ANALYZER_VERDICT_H
#define ANALYZER_VERDICT_H

#include "analyzer/flow.h"

/* Finds the flows whose READs were dropped at the same time; of `count` flows. */
void analyzer_verdict_flood(struct analyzer_flow *const *flow, uint32_t count);
/* What the counts of one flow show so far: its result.kinds, without gaps. */
void analyzer_verdict_kinds(struct analyzer_flow *f);
/* The verdict on one flow; `end_ns`: the capture's last packet. */
void analyzer_verdict_flow(struct analyzer_flow *f, int64_t end_ns);

#endif
