/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies that peers ask for: by remote keys, with the rights of the queue pair. */
#include <string.h>

#include "hca/memory/key.h"
#include "hca/memory/target.h"
#include "hca/object/opcode.h"
#include "hca/queue/hold.h"
#include "hca/queue/scatter.h"
#include "transport/packet/responder/responder.h"

/* ---- what peers ask for ---- */

static bool has_right(const struct packet_qp *pq, unsigned access)
{
	return atomic_load_explicit(&pq->qp->pub->access, memory_order_relaxed) & access;
}

static struct hca_key_use use_of(const struct packet_qp *pq, uint32_t pd_id,
				 unsigned access, uint32_t rkey, uint64_t addr,
				 uint64_t length)
{
	return (struct hca_key_use){
		.rkey = rkey, .pd_id = pd_id, .qpn = pq->qp->ibv.qp_num,
		.access = access, .iova = addr, .length = length,
	};
}

static int copy(const struct hca_key_use *use, bool read, uint64_t at,
		const struct packet_payload *p)
{
	uint8_t *data = p->data;
	uint64_t addr = use->addr + at;
	int ret = 0;

	for (uint32_t i = 0; !ret && i <= p->more; i++) {
		ret = hca_target_copy(read, addr, data, p->bytes, use->flags & HCA_KEY_ON_DEMAND);
		addr += p->bytes;
		data += p->stride;
	}
	return ret;
}

enum ibv_wc_status packet_access(const struct packet_qp *pq, uint32_t pd_id,
				 enum packet_access what, uint32_t rkey, uint64_t addr,
				 uint64_t length, uint64_t at, const struct packet_payload *p)
{
	static const unsigned rights[] = {
		[PACKET_WRITE] = IBV_ACCESS_REMOTE_WRITE,
		[PACKET_READ] = IBV_ACCESS_REMOTE_READ,
		[PACKET_ATOMIC] = IBV_ACCESS_REMOTE_ATOMIC,
	};
	const unsigned access = rights[what];
	struct hca_key_use use = use_of(pq, pd_id, access, rkey, addr, length);
	enum ibv_wc_status status;
	unsigned turn;

	if (!has_right(pq, access))
		return IBV_WC_REM_INV_REQ_ERR;
	if (length == 0) /* then no key is looked at (9.7.4.1.5) */
		return IBV_WC_SUCCESS;
	turn = hca_copy_begin(&pq->port->copies);
	status = hca_key_check_own(&use);
	if (status == IBV_WC_SUCCESS && p && copy(&use, what == PACKET_READ, at, p))
		status = IBV_WC_REM_ACCESS_ERR;
	hca_copy_end(&pq->port->copies, turn);
	return status;
}

static unsigned opcode_of(const struct rc_packet *p)
{
	if (p->op == RC_WRITE)
		return HCA_WR_ATOMIC_WRITE;
	return p->op == RC_FETCH_ADD ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
}

enum ibv_wc_status packet_atomic(const struct packet_qp *pq, uint32_t pd_id,
				 const struct rc_packet *p, const void *data,
				 uint64_t *old)
{
	unsigned access = p->op == RC_WRITE ? IBV_ACCESS_REMOTE_WRITE :
					      IBV_ACCESS_REMOTE_ATOMIC;
	struct hca_key_use use = use_of(pq, pd_id, access, p->rkey, p->remote_addr,
					sizeof(uint64_t));
	enum ibv_wc_status status;
	uint64_t word = p->swap;
	unsigned turn;

	if (!has_right(pq, access) || p->remote_addr % sizeof(uint64_t))
		return IBV_WC_REM_INV_REQ_ERR;
	if (data)
		memcpy(&word, data, sizeof(word));
	turn = hca_copy_begin(&pq->port->copies);
	status = hca_key_check_own(&use);
	if (status == IBV_WC_SUCCESS)
		status = hca_target_atomic(&use, opcode_of(p), p->compare_add, word, old);
	hca_copy_end(&pq->port->copies, turn);
	return status;
}
