/* SPDX-License-Identifier: BSD-2-Clause */
/* A request packet of a flow: a new one, or one that is sent again, and why. */
#ifndef ANALYZER_REQUEST_H
#define ANALYZER_REQUEST_H

#include "analyzer/flow.h"
#include "analyzer/pages.h"
#include "analyzer/requests.h"

/* What all flows share. */
struct analyzer_shared {
	struct analyzer_budget budget;
	struct analyzer_pages pages;
};

void analyzer_request_packet(struct analyzer_shared *all, struct analyzer_flow *f,
			     const struct analyzer_packet *p);
/* A request is no longer kept, or the capture has ended. */
void analyzer_request_retire(struct analyzer_shared *all, struct analyzer_flow *f,
			     const struct analyzer_request *q);

#endif
