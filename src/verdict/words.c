/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and sentences for people; see judge.h. Not those of libibverbs, which `busbar` does not load. */
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdio.h>

#include "verdict/judge.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *name_of(const char *const *names, size_t count, uint32_t number)
{
	return number < count && names[number] ? names[number] : "unknown";
}

const char *verdict_word(enum verdict_word word)
{
	static const char *const names[] = {
		[VERDICT_NO_ERROR] = "no error",   [VERDICT_HANDLED] = "handled",
		[VERDICT_RECOVERED] = "recovered", [VERDICT_TOLD_LATE] = "told late",
		[VERDICT_HIDDEN] = "hidden",       [VERDICT_HUNG] = "hung",
		[VERDICT_NOT_SEEN] = "not seen",   [VERDICT_UNDECIDED] = "undecided",
	};

	return name_of(names, COUNT(names), word);
}

const char *verdict_wc_status(uint32_t status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "flushed",
		[IBV_WC_MW_BIND_ERR] = "memory window bind error",
		[IBV_WC_BAD_RESP_ERR] = "bad response error",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "retry exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry exceeded",
		[IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
		[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[IBV_WC_REM_ABORT_ERR] = "remote aborted error",
		[IBV_WC_INV_EECN_ERR] = "invalid EE context number",
		[IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout error",
		[IBV_WC_GENERAL_ERR] = "general error",
		[IBV_WC_TM_ERR] = "tag matching error",
		[IBV_WC_TM_RNDV_INCOMPLETE] = "tag matching rendezvous incomplete",
	};

	return name_of(names, COUNT(names), status);
}

const char *verdict_opcode(uint32_t opcode)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "RDMA WRITE",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "RDMA WRITE with immediate",
		[IBV_WR_SEND] = "SEND",
		[IBV_WR_SEND_WITH_IMM] = "SEND with immediate",
		[IBV_WR_RDMA_READ] = "RDMA READ",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "compare and swap",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "fetch and add",
		[IBV_WR_LOCAL_INV] = "local invalidate",
		[IBV_WR_BIND_MW] = "bind window",
		[IBV_WR_SEND_WITH_INV] = "SEND with invalidate",
		[IBV_WR_TSO] = "TSO",
		[IBV_WR_DRIVER1] = "driver's operation",
		[IBV_WR_ATOMIC_WRITE] = "ATOMIC WRITE",
	};

	return name_of(names, COUNT(names), opcode);
}

const char *verdict_event(uint32_t event)
{
	static const char *const names[] = {
		[IBV_EVENT_CQ_ERR] = "IBV_EVENT_CQ_ERR",
		[IBV_EVENT_QP_FATAL] = "IBV_EVENT_QP_FATAL",
		[IBV_EVENT_QP_REQ_ERR] = "IBV_EVENT_QP_REQ_ERR",
		[IBV_EVENT_QP_ACCESS_ERR] = "IBV_EVENT_QP_ACCESS_ERR",
		[IBV_EVENT_PATH_MIG_ERR] = "IBV_EVENT_PATH_MIG_ERR",
		[IBV_EVENT_DEVICE_FATAL] = "IBV_EVENT_DEVICE_FATAL",
		[IBV_EVENT_PORT_ERR] = "IBV_EVENT_PORT_ERR",
		[IBV_EVENT_SRQ_ERR] = "IBV_EVENT_SRQ_ERR",
		[IBV_EVENT_WQ_FATAL] = "IBV_EVENT_WQ_FATAL",
	};

	return name_of(names, COUNT(names), event);
}

const char *verdict_cm_event(uint32_t event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
	};

	return name_of(names, COUNT(names), event);
}

void verdict_answer(struct verdict_answer *a, enum verdict_says says, const char *format, ...)
{
	va_list args;

	a->says = says;
	va_start(args, format);
	vsnprintf(a->evidence, sizeof(a->evidence), format, args);
	va_end(args);
}

struct verdict_time verdict_between(uint64_t from_ns, uint64_t to_ns)
{
	struct verdict_time t;

	snprintf(t.text, sizeof(t.text), "%.3f s",
		 to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0.0);
	return t;
}
