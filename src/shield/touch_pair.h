/* SPDX-License-Identifier: BSD-2-Clause */
/* Two queue pairs of one protection domain that are connected to each other; see touch.h. */
#ifndef SHIELD_TOUCH_PAIR_H
#define SHIELD_TOUCH_PAIR_H

#include "shield/shield.h"

#define TOUCH_REQUESTS 16u /* on their way at most */
#define TOUCH_PIECES 16u   /* of a request at most */

struct touch_pair {
	struct ibv_cq *cq;
	struct ibv_qp *from, *to;
	struct ibv_mr *sink;
	void *page; /* of the sink: its own, as a child of fork() may lack it */
	uint32_t pieces;
};

/* False: the adapter cannot do it, and nothing is left of the pair. */
bool touch_pair_open(struct touch_pair *p, struct ibv_pd *pd);
/* Also while requests are on their way. */
void touch_pair_close(struct touch_pair *p);

#endif
