/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of send queues: one table row for each, from which everything here is
 * made. A new operation needs a row, its counters (counters.h) and the code that carries
 * it out.
 *
 * The data path tests bit masks with one bit per operation, which are constants for the
 * compiler; the table is for values that have to be looked up.
 */
#ifndef HCA_OPCODE_H
#define HCA_OPCODE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* Number of ATOMIC WRITE in entries: counters are indexed by operation, and the public
 * number is above all of them. The number used is that of a driver's own operation. */
#define HCA_WR_ATOMIC_WRITE IBV_WR_DRIVER1
/* Upper bound of the operations in entries (hca_swqe.opcode). */
#define HCA_OPCODES 12

enum hca_opcode_traits {
	HCA_OP_RDMA = 1 << 0,      /* READ or WRITE of a range of the peer's memory */
	HCA_OP_WORD = 1 << 1,      /* works on one aligned word of that range */
	HCA_OP_TAKES_DATA = 1 << 2, /* returns data into the local buffers; at most
				     * max_rd_atomic at a time */
	HCA_OP_INLINE = 1 << 3,    /* IBV_SEND_INLINE is possible */
	HCA_OP_IMMEDIATE = 1 << 4, /* carries immediate data */
};

/* Queue pair types that offer an operation, one bit each. */
#define HCA_ON(type) (1u << IBV_QPT_##type)
#define HCA_ON_RC HCA_ON(RC)
#define HCA_ON_CONNECTED (HCA_ON(RC) | HCA_ON(UC))
#define HCA_ON_REQUESTERS (HCA_ON(RC) | HCA_ON(XRC_SEND))
#define HCA_ON_ORDERED (HCA_ON_CONNECTED | HCA_ON(XRC_SEND))
#define HCA_ON_ALL (HCA_ON_ORDERED | HCA_ON(UD))

/*
 * X(arg, entry, posted, completion, types, flag, right, traits, counter)
 *   entry       number in an entry; posted: in a work request
 *   completion  enum ibv_wc_opcode, without its prefix
 *   types       of queue pairs that offer it
 *   flag        enum ibv_qp_create_send_ops_flags, without its prefix
 *   right       that the peer's queue pair and key must give; 0: none
 *   counter     of the successful ones, without HCA_
 */
#define HCA_OPCODE_LIST(X, arg)                                              \
	X(arg, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, RDMA_WRITE,             \
	  HCA_ON_ORDERED, RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE,               \
	  HCA_OP_RDMA | HCA_OP_INLINE, TX_WRITES)                            \
	X(arg, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM,       \
	  RDMA_WRITE, HCA_ON_ORDERED, RDMA_WRITE_WITH_IMM,                   \
	  IBV_ACCESS_REMOTE_WRITE,                                           \
	  HCA_OP_RDMA | HCA_OP_INLINE | HCA_OP_IMMEDIATE, TX_WRITES_IMM)     \
	X(arg, IBV_WR_SEND, IBV_WR_SEND, SEND, HCA_ON_ALL, SEND, 0,          \
	  HCA_OP_INLINE, TX_SENDS)                                           \
	X(arg, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM, SEND, HCA_ON_ALL, \
	  SEND_WITH_IMM, 0, HCA_OP_INLINE | HCA_OP_IMMEDIATE, TX_SENDS_IMM)  \
	X(arg, IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, RDMA_READ,                \
	  HCA_ON_REQUESTERS, RDMA_READ, IBV_ACCESS_REMOTE_READ,              \
	  HCA_OP_RDMA | HCA_OP_TAKES_DATA, TX_READS)                         \
	X(arg, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP,         \
	  COMP_SWAP, HCA_ON_REQUESTERS, ATOMIC_CMP_AND_SWP,                  \
	  IBV_ACCESS_REMOTE_ATOMIC, HCA_OP_WORD | HCA_OP_TAKES_DATA,         \
	  TX_COMPARE_SWAPS)                                                  \
	X(arg, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD,     \
	  FETCH_ADD, HCA_ON_REQUESTERS, ATOMIC_FETCH_AND_ADD,                \
	  IBV_ACCESS_REMOTE_ATOMIC, HCA_OP_WORD | HCA_OP_TAKES_DATA,         \
	  TX_FETCH_ADDS)                                                     \
	/* Not offered over XRC. */                                          \
	X(arg, IBV_WR_LOCAL_INV, IBV_WR_LOCAL_INV, LOCAL_INV,                \
	  HCA_ON_CONNECTED, LOCAL_INV, 0, 0, TX_INVALIDATES)                 \
	X(arg, IBV_WR_BIND_MW, IBV_WR_BIND_MW, BIND_MW, HCA_ON_CONNECTED,    \
	  BIND_MW, 0, 0, TX_BINDS)                                           \
	X(arg, IBV_WR_SEND_WITH_INV, IBV_WR_SEND_WITH_INV, SEND,             \
	  HCA_ON_CONNECTED, SEND_WITH_INV, 0, HCA_OP_INLINE, TX_SENDS_INV)   \
	X(arg, HCA_WR_ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE, ATOMIC_WRITE,       \
	  HCA_ON_RC, ATOMIC_WRITE, IBV_ACCESS_REMOTE_WRITE,                  \
	  HCA_OP_WORD | HCA_OP_INLINE, TX_ATOMIC_WRITES)

#define HCA_OPCODE_TRAIT_BIT(want, entry, posted, wc, types, flag, right, traits, n) \
	| ((traits) & (want) ? 1 << (entry) : 0)
#define HCA_OPCODE_POSTED_TRAIT_BIT(want, entry, posted, wc, types, flag, right, traits, n) \
	| ((traits) & (want) ? 1 << (posted) : 0)

/* Sets of operations. */
enum hca_opcode_sets {
	HCA_OPS_RDMA = 0 HCA_OPCODE_LIST(HCA_OPCODE_TRAIT_BIT, HCA_OP_RDMA),
	HCA_OPS_WORD = 0 HCA_OPCODE_LIST(HCA_OPCODE_TRAIT_BIT, HCA_OP_WORD),
	HCA_OPS_TAKE_DATA = 0 HCA_OPCODE_LIST(HCA_OPCODE_TRAIT_BIT, HCA_OP_TAKES_DATA),
	HCA_OPS_ATOMIC = HCA_OPS_WORD & HCA_OPS_TAKE_DATA,
};
/* The same by the operation in a work request. */
enum hca_posted_sets {
	HCA_POSTED_INLINE = 0 HCA_OPCODE_LIST(HCA_OPCODE_POSTED_TRAIT_BIT, HCA_OP_INLINE),
};

#undef HCA_OPCODE_TRAIT_BIT
#undef HCA_OPCODE_POSTED_TRAIT_BIT

static inline bool hca_opcode_in(unsigned set, unsigned opcode)
{
	return set >> opcode & 1;
}

/* Tests of the operation in an entry. */
static inline bool hca_op_is_rdma(unsigned opcode)
{
	return hca_opcode_in(HCA_OPS_RDMA, opcode);
}

/* Carried out by one instruction on a word, however the memory is reached. */
static inline bool hca_op_is_word(unsigned opcode)
{
	return hca_opcode_in(HCA_OPS_WORD, opcode);
}

static inline bool hca_op_takes_data(unsigned opcode)
{
	return hca_opcode_in(HCA_OPS_TAKE_DATA, opcode);
}

/* Returns the original value; ATOMIC WRITE does not. */
static inline bool hca_op_is_atomic(unsigned opcode)
{
	return hca_opcode_in(HCA_OPS_ATOMIC, opcode);
}

/* Is the operation of a work request in the set, which is of hca_opcode_posted_of()? */
static inline bool hca_opcode_offered(uint32_t offered, unsigned posted)
{
	return posted < 32 && hca_opcode_in(offered, posted);
}

struct hca_opcode {
	uint8_t completion; /* enum ibv_wc_opcode */
	uint8_t right;      /* enum ibv_access_flags, or 0 */
	uint8_t posted;     /* in a work request */
	uint8_t traits;     /* enum hca_opcode_traits */
	uint16_t types;     /* HCA_ON */
	uint32_t flag;      /* enum ibv_qp_create_send_ops_flags */
};
/* Index: the operation in an entry; an unused index has no types. */
extern const struct hca_opcode hca_opcodes[HCA_OPCODES];

/* What queue pairs of that type offer on a device without what `without` (enum hca_without)
 * names: as enum ibv_qp_create_send_ops_flags, and as a set of operations in work requests. */
uint64_t hca_opcode_flags_of(enum ibv_qp_type type, unsigned without);
uint32_t hca_opcode_posted_of(enum ibv_qp_type type, unsigned without);
/* The set of operations in entries for such flags. */
uint32_t hca_opcode_set_of(uint64_t flags);

#endif
