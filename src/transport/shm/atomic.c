/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ATOMIC operations: unlike WRITE and READ the responder executes them, with the
 * processor's own atomic instructions, so they are atomic with respect to all
 * initiators and to the responder's program as well (IBV_ATOMIC_GLOB). The
 * request is a message of the ring; the original value comes back in its slot.
 */
#include <string.h>

#include "transport/shm/shm.h"

void shm_atomic_request(const struct hca_swqe *e, struct shm_slot *slot)
{
	const struct shm_atomic a = {
		.remote_addr = e->remote_addr,
		.compare_add = e->atomic.compare_add,
		.swap = e->atomic.swap,
		.rkey = e->rkey,
	};

	memcpy(slot->payload, &a, sizeof(a));
}

enum ibv_wc_status shm_atomic_execute(struct hca_qp *qp, struct shm_slot *slot,
				      bool compare_swap)
{
	uint32_t pd_id = qp->pd->id;
	struct shm_atomic a;
	enum ibv_wc_status status;
	uint64_t addr;

	shm_copy_once(&a, slot->payload, sizeof(a));
	if (!(atomic_load_explicit(&qp->pub->access, memory_order_relaxed) &
	      IBV_ACCESS_REMOTE_ATOMIC) ||
	    a.remote_addr % sizeof(uint64_t))
		return IBV_WC_REM_INV_REQ_ERR;
	status = hca_key_check(hca_process.segment->keys, HCA_KEYS, a.rkey,
			       pd_id, a.remote_addr, sizeof(uint64_t),
			       IBV_ACCESS_REMOTE_ATOMIC, &addr);
	if (status != IBV_WC_SUCCESS)
		return status;
	/* An iova may be aligned where the memory is not. */
	if (addr % sizeof(uint64_t))
		return IBV_WC_REM_OP_ERR;
	if (compare_swap) {
		a.result = a.compare_add;
		__atomic_compare_exchange_n((uint64_t *)(uintptr_t)addr,
					    &a.result, a.swap, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	} else {
		a.result = __atomic_fetch_add((uint64_t *)(uintptr_t)addr,
					      a.compare_add, __ATOMIC_SEQ_CST);
	}
	memcpy(slot->payload + offsetof(struct shm_atomic, result), &a.result,
	       sizeof(a.result));
	return IBV_WC_SUCCESS;
}

enum ibv_wc_status shm_atomic_result(const struct hca_qp *qp,
				     const struct hca_swqe *e, uint64_t result)
{
	const uint8_t *from = (const uint8_t *)&result;

	for (unsigned i = 0; i < e->num_sge; i++) {
		void *to = hca_sge_resolve(qp->pd, &e->sge[i],
					   IBV_ACCESS_LOCAL_WRITE);

		if (!to && e->sge[i].length)
			return IBV_WC_LOC_PROT_ERR;
		memcpy(to, from, e->sge[i].length);
		from += e->sge[i].length;
	}
	return IBV_WC_SUCCESS;
}
