/* SPDX-License-Identifier: BSD-2-Clause */
/* What a responder does to memory of its program for a peer, when the key has been checked. */
#ifndef HCA_MEMORY_TARGET_H
#define HCA_MEMORY_TARGET_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct hca_key_use;

/* Carries out a part of a peer's READ (`read`) or WRITE: between `data` and the address in
 * this process that hca_key_check_own() gave. `on_demand`: pages may be missing. 0 or
 * -EFAULT. */
int hca_target_copy(bool read, uint64_t addr, void *data, uint32_t length, bool on_demand);

/* Executes an operation on one word with the processor's atomic instructions, so that it is
 * atomic with respect to all initiators and to the program (pci_atomic_caps). `opcode`:
 * IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD or HCA_WR_ATOMIC_WRITE, whose word is
 * `swap`. Returns the original value; 0 for an ATOMIC WRITE. */
uint64_t hca_atomic_apply(uint64_t *at, unsigned opcode, uint64_t compare_add, uint64_t swap);

/* The same at the address of a use that hca_key_check_own() has permitted. IBV_WC_SUCCESS: *old is
 * set. IBV_WC_REM_OP_ERR: the address is not aligned, IBV_WC_REM_ACCESS_ERR: its page is missing. */
enum ibv_wc_status hca_target_atomic(const struct hca_key_use *use, unsigned opcode,
				     uint64_t compare_add, uint64_t swap, uint64_t *old);

#endif
