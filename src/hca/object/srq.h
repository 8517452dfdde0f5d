/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. */
#ifndef HCA_SRQ_H
#define HCA_SRQ_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

#include "hca/object/cq.h"
#include "hca/object/pd.h"
#include "hca/object/public.h"
#include "hca/object/rq.h"
#include "hca/object/xrcd.h"
#include "util/container_of.h"

struct hca_qp_counters;

struct hca_srq {
	struct ibv_srq ibv;
	struct hca_rq rq;
	_Atomic uint32_t event_below; /* the SRQ limit; 0: no event requested */
	uint32_t async_taken;
	atomic_int users;
	/* Only in an XRC SRQ; else NULL and 0. */
	struct hca_xrcd *xrcd;
	struct hca_cq *cq;
	uint32_t number;
	struct hca_qp_public *pub;
	struct hca_qp_counters *counters; /* of messages from target QPs of other processes */
	struct hca_memory memory;
};

static inline struct hca_srq *hca_srq(struct ibv_srq *srq)
{
	return container_of(srq, struct hca_srq, ibv);
}

#endif
