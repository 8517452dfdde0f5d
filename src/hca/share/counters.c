/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters: their names, and functions that are not called per message; see counters.h. */
#include "hca/share/counters.h"

#include <string.h>

#include "hca/object/opcode.h"
#include "hca/object/qp.h"
#include "hca/object/srq.h"
#include "hca/run/elide.h"
#include "hca/share/process.h"
#include "util/container_of.h"

#define NAME(name, place, text) [place] = (text),
const char *const hca_qp_counter_names[HCA_QP_COUNTERS] = {
	HCA_QP_COUNTER_LIST(NAME)
};
const char *const hca_process_counter_names[HCA_PROCESS_COUNTERS] = {
	HCA_PROCESS_COUNTER_LIST(NAME)
};

_Static_assert(sizeof(struct hca_qp_counters) % CACHE_LINE == 0 &&
	       HCA_RX_SENDS % 8 == 0, "the parts share no line");

#define CHECK(arg, entry, posted, wc, on, ex, access, traits, counter) \
	_Static_assert(HCA_##counter == 2 * (entry), "counted by opcode");
HCA_OPCODE_LIST(CHECK, )
_Static_assert(HCA_TX_RETRIES == 2 * HCA_OPCODES, "behind the operations");

void hca_count_failed(struct hca_qp *qp, unsigned status)
{
	switch (status) {
	case IBV_WC_WR_FLUSH_ERR:
		HCA_COUNT_RARE(qp, TX_FLUSHED, 1);
		break;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_OP_ERR:
		HCA_COUNT_RARE(qp, TX_NAKS_RECEIVED, 1);
		break;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
		HCA_COUNT_RARE(qp, TX_GIVEN_UP, 1);
		break;
	default:
		HCA_COUNT_RARE(qp, TX_ERRORS, 1);
		break;
	}
}

void hca_counters_reset(struct hca_qp *qp)
{
	memset(qp->counters, 0, sizeof(*qp->counters));
	HCA_COUNT_PROCESS(QPS_CREATED, 1);
}

static void keep(const struct hca_qp_counters *c)
{
	for (unsigned i = 0; i < HCA_QP_COUNTERS; i++)
		__atomic_fetch_add(&hca_process.segment->past.at[i],
				   __atomic_load_n(&c->at[i], __ATOMIC_RELAXED),
				   __ATOMIC_RELAXED);
}

void hca_counters_retire_srq(struct hca_srq *srq)
{
	hca_lock(&srq->rq.consume_lock);
	keep(srq->counters);
	hca_unlock(&srq->rq.consume_lock);
}

void hca_counters_retire(struct hca_qp *qp)
{
	hca_lock(&qp->sq_lock);
	hca_lock(&qp->recv->consume_lock);
	keep(qp->counters);
	hca_unlock(&qp->recv->consume_lock);
	hca_unlock(&qp->sq_lock);
}
