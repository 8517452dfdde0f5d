/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of send queues; see opcode.h. */
#include "hca/object/opcode.h"

#include "hca/host/settings.h"

#define ROW(arg, entry, posted_as, wc, on, ex, access, has, counter) \
	[entry] = { .completion = IBV_WC_##wc,                       \
		    .right = (access),                               \
		    .posted = (posted_as),                           \
		    .traits = (has),                                 \
		    .types = (on),                                   \
		    .flag = (uint32_t)IBV_QP_EX_WITH_##ex },
const struct hca_opcode hca_opcodes[HCA_OPCODES] = { HCA_OPCODE_LIST(ROW, ) };

#define CHECK(arg, entry, posted, wc, on, ex, access, traits, counter)          \
	_Static_assert((posted) < 32 && (entry) < HCA_OPCODES, "bit of a set"); \
	_Static_assert((access) <= UINT8_MAX, "kept in a byte");                \
	_Static_assert((uint64_t)IBV_QP_EX_WITH_##ex <= UINT32_MAX, "kept in 32 bits");
HCA_OPCODE_LIST(CHECK, )

static bool is_offered(const struct hca_opcode *o, enum ibv_qp_type type, unsigned without)
{
	if ((without & HCA_WITHOUT_ATOMICS) && (o->traits & HCA_OP_WORD))
		return false;
	if ((without & HCA_WITHOUT_IMMEDIATE) && (o->traits & HCA_OP_IMMEDIATE))
		return false;
	if ((without & HCA_WITHOUT_ATOMIC_WRITE) && o->posted == IBV_WR_ATOMIC_WRITE)
		return false;
	if ((without & HCA_WITHOUT_SEND_IMMEDIATE) && o->posted == IBV_WR_SEND_WITH_IMM)
		return false;
	if ((without & HCA_WITHOUT_WINDOWS) && o->posted == IBV_WR_BIND_MW)
		return false;
	return o->types >> type & 1;
}

uint64_t hca_opcode_flags_of(enum ibv_qp_type type, unsigned without)
{
	uint64_t flags = 0;

	for (unsigned i = 0; i < HCA_OPCODES; i++)
		if (is_offered(&hca_opcodes[i], type, without))
			flags |= hca_opcodes[i].flag;
	return flags;
}

uint32_t hca_opcode_posted_of(enum ibv_qp_type type, unsigned without)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < HCA_OPCODES; i++)
		if (is_offered(&hca_opcodes[i], type, without))
			set |= 1u << hca_opcodes[i].posted;
	return set;
}

uint32_t hca_opcode_set_of(uint64_t flags)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < HCA_OPCODES; i++)
		if (flags & hca_opcodes[i].flag)
			set |= 1u << i;
	return set;
}
