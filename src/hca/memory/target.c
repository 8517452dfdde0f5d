/* SPDX-License-Identifier: BSD-2-Clause */
/* See target.h. */
#include "hca/memory/target.h"

#include <errno.h>

#include "hca/host/mapping.h"
#include "hca/memory/key.h"
#include "hca/memory/sge.h"
#include "hca/object/opcode.h"
#include "hca/run/dma.h"
#include "hca/run/touch.h"
#include "util/container_of.h"

int hca_target_copy(bool read, uint64_t addr, void *data, uint32_t length, bool on_demand)
{
	uint8_t *at = (uint8_t *)(uintptr_t)addr;

	if (unlikely(on_demand))
		return read ? hca_copy_careful(data, at, length) :
			      hca_copy_careful(at, data, length);
	if (unlikely(read ? !hca_touch_read(at, length) : !hca_touch_write(at, length)))
		return -EFAULT;
	if (read)
		hca_dma_copy(data, at, length);
	else
		hca_dma_copy_ordered(at, data, length);
	return 0;
}

/* Not instrumented by the thread sanitizer: for the program the adapter does this, not
 * one of its threads (dma.h). */
hca_unseen uint64_t hca_atomic_apply(uint64_t *at, unsigned opcode, uint64_t compare_add,
				     uint64_t swap)
{
	uint64_t found = compare_add;

	if (opcode == HCA_WR_ATOMIC_WRITE) {
		__atomic_store_n(at, swap, __ATOMIC_RELEASE);
		return 0;
	}
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return __atomic_fetch_add(at, compare_add, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(at, &found, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return found;
}

enum ibv_wc_status hca_target_atomic(const struct hca_key_use *use, unsigned opcode,
				     uint64_t compare_add, uint64_t swap, uint64_t *old)
{
	void *at = (void *)(uintptr_t)use->addr;

	/* An iova may be aligned where the memory is not. */
	if (use->addr % sizeof(uint64_t))
		return IBV_WC_REM_OP_ERR;
	/* If the page goes away after this check, that is a race of the program with itself. */
	if ((use->flags & HCA_KEY_ON_DEMAND) && !hca_page_usable(at, true))
		return IBV_WC_REM_ACCESS_ERR;
	if (unlikely(!hca_touch_atomic(at)))
		return IBV_WC_REM_ACCESS_ERR;
	*old = hca_atomic_apply(at, opcode, compare_add, swap);
	return IBV_WC_SUCCESS;
}
