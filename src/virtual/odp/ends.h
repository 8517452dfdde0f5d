/* SPDX-License-Identifier: BSD-2-Clause */
/* The client and the server of a point: memory, queue pairs, and what is posted on them. */
#ifndef VIRTUAL_ODP_ENDS_H
#define VIRTUAL_ODP_ENDS_H

#include "virtual/odp/point.h"

/* The number of the virtual host of each. */
enum odp_end_number { ODP_END_CLIENT, ODP_END_SERVER };

struct odp_end {
	uint8_t *memory; /* its buffer, odp_bytes() long */
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp[ODP_QPS_MAX + 1]; /* odp_qps() of them */
};

/* A queue pair of either end, and its place in `qp`. */
struct odp_name {
	uint32_t qpn, number;
};

struct odp_ends {
	const struct odp_point *point;
	struct odp_end end[2]; /* by odp_end_number */
	struct odp_name names[2 * (ODP_QPS_MAX + 1)]; /* by qpn */
	/* What the spare queue pair READs into: pinned, odp_bytes() long. */
	uint8_t *spare;
	struct ibv_mr *spare_mr;
};

/* On the open network (virtual_open()): all queue pairs are connected, receives are posted, and
 * pages are touched before as the point says. */
void odp_ends_open(struct odp_ends *e, const struct odp_point *point);
void odp_ends_close(struct odp_ends *e);
/* The place in `qp` of a queue pair of either end. */
unsigned odp_ends_number(const struct odp_ends *e, uint32_t qpn);
/* Numbers of completions beside those of operations. */
#define ODP_WR_DUMMY (UINT64_C(1) << 63)
#define ODP_WR_REISSUED (UINT64_C(1) << 62) /* with the operation's number */

/* Operation `i`, whose completion has this number. */
void odp_ends_post(struct odp_ends *e, uint64_t i);
/* An RDMA WRITE of no bytes; none where the send queue is full. */
void odp_ends_post_dummy(struct odp_ends *e, unsigned qp);
/* READ `i` once more on the spare queue pair. */
void odp_ends_reissue(struct odp_ends *e, uint64_t i);
/* What it has brought is the operation's. */
void odp_ends_take_reissued(struct odp_ends *e, uint64_t i);
/* Has operation `i` brought the right bytes? */
bool odp_ends_are_right(const struct odp_ends *e, uint64_t i);

#endif
