/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues and XRC domains. */
#ifndef HCA_SRQ_H
#define HCA_SRQ_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

#include "hca/memory/pd.h"
#include "hca/queue/cq.h"
#include "hca/queue/rq.h"
#include "hca/share/counters.h"
#include "hca/share/public.h"
#include "util/container_of.h"
#include "util/list.h"

struct hca_xrcd {
	struct ibv_xrcd ibv;
	struct hca_xrcd_id id;
	int name_fd;       /* socket whose name marks the inode's domain as open on this host */
	atomic_int users;  /* target QPs and XRC SRQs */
	struct list entry;
};

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

static inline struct hca_xrcd *hca_xrcd(struct ibv_xrcd *xrcd)
{
	return container_of(xrcd, struct hca_xrcd, ibv);
}

int hca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad);

/* Raises IBV_EVENT_SRQ_LIMIT_REACHED, once, when fewer entries than the limit are left.
 * consume_lock is held. */
void hca_srq_check_limit(struct hca_srq *srq);

/* The XRC SRQ of this process with that number, or NULL. */
struct hca_srq *hca_srq_find(uint32_t number);
void hca_xrcd_forked(void);
void hca_xrc_targets_forked(void);

#endif
