/* SPDX-License-Identifier: BSD-2-Clause */
/* The program's memory, as the peer names it: by STag and tagged offset. */
#include "hca/memory/key.h"
#include "hca/memory/target.h"
#include "hca/run/touch.h"
#include "transport/iwarp/stream.h"

/* Why the key does not permit the access. */
static enum iwarp_answer reason(const struct hca_key_use *use)
{
	struct hca_key key;

	if (!hca_key_look_own(use->rkey, &key))
		return IWARP_NO_STAG;
	if (key.pd_id != use->pd_id || (key.qpn && key.qpn != use->qpn))
		return IWARP_NO_STREAM;
	if ((key.access & use->access) != use->access)
		return IWARP_NO_ACCESS;
	return IWARP_NO_BOUNDS;
}

/* Sets use->addr. */
static enum iwarp_answer check(const struct iwarp_stream *s, struct hca_key_use *use)
{
	const struct hca_qp_public *pub = s->qp->pub;

	if (!(atomic_load_explicit(&pub->access, memory_order_relaxed) & use->access))
		return IWARP_NO_ACCESS;
	return hca_key_check_own(use) == IBV_WC_SUCCESS ? IWARP_DONE : reason(use);
}

static struct hca_key_use use_of(const struct iwarp_stream *s, unsigned access, uint32_t stag,
				 uint64_t to, uint32_t bytes)
{
	return (struct hca_key_use){
		.rkey = stag, .pd_id = s->qp->pd->id, .qpn = s->qp->ibv.qp_num,
		.access = access, .iova = to, .length = bytes,
	};
}

enum iwarp_answer iwarp_access(const struct iwarp_stream *s, bool read, uint32_t stag, uint64_t to,
			       uint32_t bytes, void *data)
{
	struct hca_key_use use = use_of(s, read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE,
					stag, to, bytes);
	unsigned turn = hca_copy_begin(&iwarp_port.copies);
	enum iwarp_answer answer = check(s, &use);

	if (answer == IWARP_DONE && data &&
	    hca_target_copy(read, use.addr, data, bytes, use.flags & HCA_KEY_ON_DEMAND))
		answer = IWARP_NO_BOUNDS;
	hca_copy_end(&iwarp_port.copies, turn);
	return answer;
}

enum iwarp_answer iwarp_memory(const struct iwarp_stream *s, uint32_t stag, uint64_t to,
			       uint32_t bytes, uint8_t **piece)
{
	struct hca_key_use use = use_of(s, IBV_ACCESS_REMOTE_READ, stag, to, bytes);
	enum iwarp_answer answer = check(s, &use);

	*piece = NULL;
	if (answer == IWARP_DONE && !(use.flags & (HCA_KEY_ON_DEMAND | HCA_KEY_NULL)) &&
	    hca_touch_read((void *)(uintptr_t)use.addr, bytes))
		*piece = (uint8_t *)(uintptr_t)use.addr;
	return answer;
}

enum iwarp_answer iwarp_atomic(const struct iwarp_stream *s, const struct iwarp_look *l,
			       uint64_t *original)
{
	const unsigned opcode = l->swaps ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct hca_key_use use = use_of(s, IBV_ACCESS_REMOTE_ATOMIC, l->stag, l->to, l->bytes);
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	enum iwarp_answer answer;
	unsigned turn;

	if (l->to % sizeof(uint64_t))
		return IWARP_NOT_ALIGNED;
	turn = hca_copy_begin(&iwarp_port.copies);
	answer = check(s, &use);
	if (answer == IWARP_DONE)
		status = hca_target_atomic(&use, opcode, l->compare_add, l->swap, original);
	hca_copy_end(&iwarp_port.copies, turn);
	if (status == IBV_WC_REM_OP_ERR)
		return IWARP_NOT_ALIGNED;
	return status == IBV_WC_SUCCESS ? answer : IWARP_NO_BOUNDS;
}
