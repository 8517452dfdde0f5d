/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves queue pairs to the error state whose completion queue or device has failed. */
#include <pthread.h>
#include <stdatomic.h>

#include "hca/event/async.h"
#include "hca/qp/qp.h"
#include "hca/share/process.h"
#include "hca/view/inspect_message.h"

static void fail_if_on(struct hca_qp *qp, void *arg)
{
	const struct hca_cq *cq = arg;
	enum ibv_qp_state state = hca_qp_state(qp);

	if ((qp->send_cq != cq && qp->recv_cq != cq) ||
	    state == IBV_QPS_RESET || state == IBV_QPS_ERR)
		return;
	/* The state first: it is visible to the program that reads the event. */
	hca_qp_fail(qp);
	hca_async_qp_event(qp, IBV_EVENT_QP_FATAL);
}

void hca_qps_fail_on(struct hca_cq *cq)
{
	pthread_mutex_lock(&hca_process.lock);
	hca_qps_each(fail_if_on, cq);
	pthread_mutex_unlock(&hca_process.lock);
}

static void fail_if_of(struct hca_qp *qp, void *arg)
{
	const uint32_t *device = arg;

	/* qpn is 0 while the QP is being created; hca_qp_create() then checks the device. */
	if (atomic_load(&qp->pub->qpn) &&
	    (*device == HCA_INSPECT_DEVICES ||
	     atomic_load(&qp->pub->device) == *device) &&
	    hca_qp_state(qp) != IBV_QPS_ERR)
		hca_qp_fail(qp);
}

void hca_qps_fail_of(uint32_t device)
{
	hca_qps_each(fail_if_of, &device);
}
