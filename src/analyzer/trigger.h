/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a request is sent again. */
#ifndef ANALYZER_TRIGGER_H
#define ANALYZER_TRIGGER_H

#include "analyzer/flow.h"

struct analyzer_cause {
	enum analyzer_trigger trigger;
	bool follows;       /* it goes back behind another resend */
	int64_t lost_ns;    /* the time that the cause has taken */
};

/* `q` still has the times and counts of before this resend. */
struct analyzer_cause analyzer_trigger_of(struct analyzer_flow *f, const struct analyzer_request *q,
					  int64_t now_ns);

#endif
