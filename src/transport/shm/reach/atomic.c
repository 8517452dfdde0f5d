/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ATOMIC operations and ATOMIC WRITE (annex A19), executed with the processor's
 * atomic instructions, so that they are atomic with respect to all initiators and to
 * the responder's program (pci_atomic_caps). The responder executes them: the request
 * is a message of the ring, the original value comes back in its slot. An initiator
 * that has the memory mapped executes them itself (onesided.c), with the same
 * instructions.
 */
#include <string.h>

#include "hca/memory/key.h"
#include "hca/memory/target.h"
#include "hca/object/opcode.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/scatter.h"
#include "hca/share/process.h"
#include "transport/shm/link/state.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/ring/ring.h"
#include "util/container_of.h"

void shm_atomic_request(const struct hca_swqe *e, uint64_t word, struct shm_slot *slot)
{
	bool write = e->opcode == HCA_WR_ATOMIC_WRITE;
	const struct shm_atomic a = {
		.remote_addr = e->remote_addr,
		.compare_add = write ? 0 : e->atomic.compare_add,
		.swap = write ? word : e->atomic.swap,
		.rkey = e->rkey,
	};

	memcpy(slot->payload, &a, sizeof(a));
}

static unsigned opcode_of(enum shm_op op)
{
	switch (op) {
	case SHM_ATOMIC_WRITE: return HCA_WR_ATOMIC_WRITE;
	case SHM_FETCH_ADD: return IBV_WR_ATOMIC_FETCH_AND_ADD;
	default: return IBV_WR_ATOMIC_CMP_AND_SWP;
	}
}

static enum ibv_wc_status execute(const struct hca_key_use *use, struct shm_atomic *a,
				  enum shm_op op)
{
	return hca_target_atomic(use, opcode_of(op), a->compare_add, a->swap, &a->result);
}

/*
 * For a key of a memory window or of on-demand memory. A window may be unbound by a
 * thread that does not wait for this link's lock, so the key is announced as a hazard,
 * as initiators do (onesided.c).
 */
static enum ibv_wc_status execute_carefully(struct shm_atomic *a,
					    struct hca_key_use *use,
					    enum shm_op op)
{
	uint64_t tag = shm_uuid_tag(hca_process.uuid);
	int hazard = hca_hazard_enter(tag << 32 | a->rkey);
	enum ibv_wc_status status;

	status = hca_key_check_own(use);
	if (status == IBV_WC_SUCCESS)
		status = execute(use, a, op);
	hca_hazard_leave(hazard);
	return status;
}

enum ibv_wc_status shm_atomic_execute(struct hca_qp *qp, struct shm_slot *slot, enum shm_op op)
{
	struct hca_key_use use = {
		.pd_id = qp->pd->id,
		.qpn = qp->ibv.qp_num,
		.access = op == SHM_ATOMIC_WRITE ? IBV_ACCESS_REMOTE_WRITE :
						   IBV_ACCESS_REMOTE_ATOMIC,
		.length = sizeof(uint64_t),
	};
	enum ibv_wc_status status;
	struct shm_atomic a;

	shm_copy_once(&a, slot->payload, sizeof(a));
	if (!(atomic_load_explicit(&qp->pub->access, memory_order_relaxed) &
	      use.access) ||
	    a.remote_addr % sizeof(uint64_t))
		return IBV_WC_REM_INV_REQ_ERR;
	use.rkey = a.rkey;
	use.iova = a.remote_addr;
	status = hca_key_check_own(&use);
	if (status != IBV_WC_SUCCESS)
		return status;
	status = unlikely(use.flags) ? execute_carefully(&a, &use, op) : execute(&use, &a, op);
	if (status != IBV_WC_SUCCESS)
		return status;
	memcpy(slot->payload + offsetof(struct shm_atomic, result), &a.result, sizeof(a.result));
	return IBV_WC_SUCCESS;
}

enum ibv_wc_status shm_atomic_result(const struct hca_qp *qp,
				     const struct hca_swqe *e, uint64_t result)
{
	return hca_sges_write(qp->pd, e->sge, e->num_sge, 0, &result, sizeof(result)) ?
		       IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}
