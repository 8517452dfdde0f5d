/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of states, attributes, operations and statuses. */
#include <arpa/inet.h>
#include <string.h>

#include "trace/calls.h"

#define NAME(prefix, name) { prefix##name, #name }

static const struct text_name states[] = {
	NAME(IBV_QPS_, RESET), NAME(IBV_QPS_, INIT), NAME(IBV_QPS_, RTR),
	NAME(IBV_QPS_, RTS),   NAME(IBV_QPS_, SQD),  NAME(IBV_QPS_, SQE),
	NAME(IBV_QPS_, ERR),
};
static const struct text_name qp_types[] = {
	NAME(IBV_QPT_, RC),	  NAME(IBV_QPT_, UC),	    NAME(IBV_QPT_, UD),
	NAME(IBV_QPT_, RAW_PACKET), NAME(IBV_QPT_, XRC_SEND), NAME(IBV_QPT_, XRC_RECV),
	NAME(IBV_QPT_, DRIVER),
};
static const struct text_name qp_masks[] = {
	NAME(IBV_QP_, STATE),	       NAME(IBV_QP_, CUR_STATE),
	NAME(IBV_QP_, EN_SQD_ASYNC_NOTIFY), NAME(IBV_QP_, ACCESS_FLAGS),
	NAME(IBV_QP_, PKEY_INDEX),     NAME(IBV_QP_, PORT),
	NAME(IBV_QP_, QKEY),	       NAME(IBV_QP_, AV),
	NAME(IBV_QP_, PATH_MTU),       NAME(IBV_QP_, TIMEOUT),
	NAME(IBV_QP_, RETRY_CNT),      NAME(IBV_QP_, RNR_RETRY),
	NAME(IBV_QP_, RQ_PSN),	       NAME(IBV_QP_, MAX_QP_RD_ATOMIC),
	NAME(IBV_QP_, ALT_PATH),       NAME(IBV_QP_, MIN_RNR_TIMER),
	NAME(IBV_QP_, SQ_PSN),	       NAME(IBV_QP_, MAX_DEST_RD_ATOMIC),
	NAME(IBV_QP_, PATH_MIG_STATE), NAME(IBV_QP_, CAP),
	NAME(IBV_QP_, DEST_QPN),       NAME(IBV_QP_, RATE_LIMIT),
};
static const struct text_name accesses[] = {
	NAME(IBV_ACCESS_, LOCAL_WRITE),	  NAME(IBV_ACCESS_, REMOTE_WRITE),
	NAME(IBV_ACCESS_, REMOTE_READ),	  NAME(IBV_ACCESS_, REMOTE_ATOMIC),
	NAME(IBV_ACCESS_, MW_BIND),	  NAME(IBV_ACCESS_, ZERO_BASED),
	NAME(IBV_ACCESS_, ON_DEMAND),	  NAME(IBV_ACCESS_, HUGETLB),
	NAME(IBV_ACCESS_, RELAXED_ORDERING),
};
static const struct text_name send_opcodes[] = {
	NAME(IBV_WR_, RDMA_WRITE), NAME(IBV_WR_, RDMA_WRITE_WITH_IMM),
	NAME(IBV_WR_, SEND), NAME(IBV_WR_, SEND_WITH_IMM), NAME(IBV_WR_, RDMA_READ),
	NAME(IBV_WR_, ATOMIC_CMP_AND_SWP), NAME(IBV_WR_, ATOMIC_FETCH_AND_ADD),
	NAME(IBV_WR_, LOCAL_INV), NAME(IBV_WR_, BIND_MW), NAME(IBV_WR_, SEND_WITH_INV),
	NAME(IBV_WR_, TSO), NAME(IBV_WR_, DRIVER1),
};
static const struct text_name send_flags[] = {
	NAME(IBV_SEND_, FENCE), NAME(IBV_SEND_, SIGNALED), NAME(IBV_SEND_, SOLICITED),
	NAME(IBV_SEND_, INLINE), NAME(IBV_SEND_, IP_CSUM),
};
static const struct text_name wc_statuses[] = {
	NAME(IBV_WC_, SUCCESS), NAME(IBV_WC_, LOC_LEN_ERR), NAME(IBV_WC_, LOC_QP_OP_ERR),
	NAME(IBV_WC_, LOC_EEC_OP_ERR), NAME(IBV_WC_, LOC_PROT_ERR),
	NAME(IBV_WC_, WR_FLUSH_ERR), NAME(IBV_WC_, MW_BIND_ERR),
	NAME(IBV_WC_, BAD_RESP_ERR), NAME(IBV_WC_, LOC_ACCESS_ERR),
	NAME(IBV_WC_, REM_INV_REQ_ERR), NAME(IBV_WC_, REM_ACCESS_ERR),
	NAME(IBV_WC_, REM_OP_ERR), NAME(IBV_WC_, RETRY_EXC_ERR),
	NAME(IBV_WC_, RNR_RETRY_EXC_ERR), NAME(IBV_WC_, LOC_RDD_VIOL_ERR),
	NAME(IBV_WC_, REM_INV_RD_REQ_ERR), NAME(IBV_WC_, REM_ABORT_ERR),
	NAME(IBV_WC_, FATAL_ERR), NAME(IBV_WC_, RESP_TIMEOUT_ERR),
	NAME(IBV_WC_, GENERAL_ERR),
};
static const struct text_name wc_opcodes[] = {
	NAME(IBV_WC_, SEND), NAME(IBV_WC_, RDMA_WRITE), NAME(IBV_WC_, RDMA_READ),
	NAME(IBV_WC_, COMP_SWAP), NAME(IBV_WC_, FETCH_ADD), NAME(IBV_WC_, BIND_MW),
	NAME(IBV_WC_, LOCAL_INV), NAME(IBV_WC_, RECV), NAME(IBV_WC_, RECV_RDMA_WITH_IMM),
};
static const struct text_name events[] = {
	NAME(IBV_EVENT_, CQ_ERR), NAME(IBV_EVENT_, QP_FATAL), NAME(IBV_EVENT_, QP_REQ_ERR),
	NAME(IBV_EVENT_, QP_ACCESS_ERR), NAME(IBV_EVENT_, COMM_EST),
	NAME(IBV_EVENT_, SQ_DRAINED), NAME(IBV_EVENT_, PATH_MIG),
	NAME(IBV_EVENT_, PATH_MIG_ERR), NAME(IBV_EVENT_, DEVICE_FATAL),
	NAME(IBV_EVENT_, PORT_ACTIVE), NAME(IBV_EVENT_, PORT_ERR),
	NAME(IBV_EVENT_, LID_CHANGE), NAME(IBV_EVENT_, PKEY_CHANGE),
	NAME(IBV_EVENT_, SM_CHANGE), NAME(IBV_EVENT_, SRQ_ERR),
	NAME(IBV_EVENT_, SRQ_LIMIT_REACHED), NAME(IBV_EVENT_, QP_LAST_WQE_REACHED),
	NAME(IBV_EVENT_, CLIENT_REREGISTER), NAME(IBV_EVENT_, GID_CHANGE),
	NAME(IBV_EVENT_, WQ_FATAL),
};

void text_state(struct text *t, unsigned state)
{
	text_value(t, states, COUNT(states), "state ", state);
}

void text_qp_type(struct text *t, unsigned type)
{
	text_value(t, qp_types, COUNT(qp_types), "type ", type);
}

void text_qp_mask(struct text *t, uint64_t mask)
{
	text_bits(t, qp_masks, COUNT(qp_masks), mask);
}

void text_access(struct text *t, uint64_t access)
{
	text_bits(t, accesses, COUNT(accesses), access);
}

void text_send_opcode(struct text *t, unsigned opcode)
{
	text_value(t, send_opcodes, COUNT(send_opcodes), "opcode ", opcode);
}

void text_send_flags(struct text *t, uint64_t flags)
{
	text_bits(t, send_flags, COUNT(send_flags), flags);
}

void text_wc_status(struct text *t, unsigned status)
{
	text_value(t, wc_statuses, COUNT(wc_statuses), "status ", status);
}

void text_wc_opcode(struct text *t, unsigned opcode)
{
	text_value(t, wc_opcodes, COUNT(wc_opcodes), "opcode ", opcode);
}

void text_event(struct text *t, unsigned event)
{
	text_value(t, events, COUNT(events), "event ", event);
}

void text_gid(struct text *t, const union ibv_gid *gid)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	char text[INET6_ADDRSTRLEN];

	if (!memcmp(gid->raw, v4, sizeof(v4)))
		inet_ntop(AF_INET, gid->raw + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, gid->raw, text, sizeof(text));
	text_add(t, "%s", text);
}
