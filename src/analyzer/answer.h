/* SPDX-License-Identifier: BSD-2-Clause */
/* An answer to the requests of a flow. */
#ifndef ANALYZER_ANSWER_H
#define ANALYZER_ANSWER_H

#include "analyzer/flow.h"

/* False: it answers no request of this flow that was captured. */
bool analyzer_answer_packet(struct analyzer_flow *f, const struct analyzer_packet *p);
/* Could the packet answer a request of this flow that is open? The request, or NULL. */
const struct analyzer_request *analyzer_answer_fits(const struct analyzer_flow *f,
						    const struct analyzer_packet *p);

#endif
