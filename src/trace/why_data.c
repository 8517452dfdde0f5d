/* SPDX-License-Identifier: BSD-2-Clause */
/* Why posting fails, and what the status of a completion means. */
#include <inttypes.h>
#include <string.h>

#include "trace/calls.h"

struct key_search {
	uint32_t lkey;
	struct ibv_mr found;
	bool is;
};

static bool has_key(void *handle, void *arg)
{
	const struct ibv_mr *mr = handle;
	struct key_search *s = arg;

	if (mr->lkey != s->lkey)
		return true;
	s->found = *mr;
	s->is = true;
	return false;
}

static bool sge_wrong(struct text *t, const struct ibv_pd *pd, const struct ibv_sge *sge,
		      int count)
{
	for (int i = 0; i < count; i++) {
		struct key_search s = { .lkey = sge[i].lkey };

		object_each(OBJECT_MR, has_key, &s);
		if (!s.is)
			text_add(t, "sg_list[%d].lkey 0x%x is of no region", i, sge[i].lkey);
		else if (s.found.pd != pd)
			text_add(t, "sg_list[%d].lkey 0x%x is of another protection domain", i,
				 sge[i].lkey);
		else
			continue;
		return true;
	}
	return false;
}

static bool opcode_wrong(struct text *t, enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
	bool read = opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		    opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	bool send = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;

	if (!(type == IBV_QPT_UD && !send) && !(type == IBV_QPT_UC && read) &&
	    opcode != IBV_WR_TSO && opcode != IBV_WR_DRIVER1)
		return false;
	text_add(t, "opcode ");
	text_send_opcode(t, opcode);
	text_add(t, " is not possible on a queue pair of type ");
	text_qp_type(t, type);
	text_add(t, type == IBV_QPT_UD ? ": only SEND and SEND_WITH_IMM" :
		    type == IBV_QPT_UC ? ": no READ and no ATOMIC" : "");
	return true;
}

static bool send_wrong(struct text *t, struct ibv_qp *qp, const struct ibv_send_wr *wr,
		       const struct ibv_qp_cap *cap)
{
	uint64_t bytes = 0;

	if (opcode_wrong(t, qp->qp_type, wr->opcode))
		return true;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > cap->max_send_sge) {
		text_add(t, "num_sge is %d, the queue pair was made with max_send_sge %u",
			 wr->num_sge, cap->max_send_sge);
		return true;
	}
	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	if (wr->send_flags & IBV_SEND_INLINE && bytes > cap->max_inline_data) {
		text_add(t, "%" PRIu64 " bytes with IBV_SEND_INLINE, the queue pair was made with max_inline_data %u",
			 bytes, cap->max_inline_data);
		return true;
	}
	if (qp->qp_type == IBV_QPT_UD && !wr->wr.ud.ah) {
		text_add(t, "wr.ud.ah is NULL: a datagram needs an address handle");
		return true;
	}
	if (wr->send_flags & ~(unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED |
					 IBV_SEND_INLINE)) {
		text_add(t, "send_flags ");
		text_send_flags(t, wr->send_flags);
		text_add(t, ": the device does not offer all of these");
		return true;
	}
	return !(wr->send_flags & IBV_SEND_INLINE) &&
	       sge_wrong(t, qp->pd, wr->sg_list, wr->num_sge);
}

void why_post_send(struct text *t, int error, struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;

	if (!why_qp(qp, &now, &init))
		return;
	if (error == ENOMEM) {
		text_add(t, "the send queue is full (max_send_wr %u): a request leaves it when its completion, or a later one, has been polled",
			 now.cap.max_send_wr);
		return;
	}
	if (now.qp_state < IBV_QPS_RTS) {
		text_add(t, "the queue pair is in ");
		text_state(t, now.qp_state);
		text_add(t, ": sending needs RTS");
		return;
	}
	if (!wr || !send_wrong(t, qp, wr, &now.cap))
		text_add(t, "%s", strerrordesc_np(error));
}

static void why_recv(struct text *t, int error, const struct ibv_recv_wr *wr, uint32_t max_wr,
		     uint32_t max_sge, const char *queue)
{
	if (error == ENOMEM)
		text_add(t, "the %s is full (%u requests)", queue, max_wr);
	else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > max_sge)
		text_add(t, "num_sge is %d, the %s was made for at most %u", wr->num_sge, queue,
			 max_sge);
}

void why_post_recv(struct text *t, int error, struct ibv_qp *qp, const struct ibv_recv_wr *wr)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;

	if (!why_qp(qp, &now, &init))
		return;
	if (init.srq)
		text_add(t, "the queue pair has a shared receive queue: ibv_post_srq_recv posts to it");
	else if (now.qp_state == IBV_QPS_RESET)
		text_add(t, "the queue pair is in RESET: receives can be posted from INIT on");
	else
		why_recv(t, error, wr, now.cap.max_recv_wr, now.cap.max_recv_sge,
			 "receive queue");
}

void why_post_srq_recv(struct text *t, int error, struct ibv_srq *srq,
		       const struct ibv_recv_wr *wr)
{
	int (*query)(struct ibv_srq *, struct ibv_srq_attr *) =
		__extension__(__typeof__(query))real_find("ibv_query_srq", "IBVERBS_1.1");
	struct ibv_srq_attr now = { 0 };

	if (query && !query(srq, &now))
		why_recv(t, error, wr, now.max_wr, now.max_sge, "shared receive queue");
}

static const struct {
	enum ibv_wc_status status;
	const char *text;
} statuses[] = {
	{ IBV_WC_LOC_LEN_ERR,
	  "the message is longer than the receive request, or than a message may be" },
	{ IBV_WC_LOC_QP_OP_ERR, "the request does not fit the queue pair" },
	{ IBV_WC_LOC_PROT_ERR,
	  "sg_list names memory that its lkey does not cover: a wrong lkey, a range outside of the region, or a region without IBV_ACCESS_LOCAL_WRITE that is to be written" },
	{ IBV_WC_WR_FLUSH_ERR,
	  "the queue pair went to the error state before; the first completion that failed says why" },
	{ IBV_WC_MW_BIND_ERR, "the window could not be bound: rights or range of the region" },
	{ IBV_WC_LOC_ACCESS_ERR, "a request of the peer touched memory that it may not" },
	{ IBV_WC_REM_INV_REQ_ERR,
	  "the peer refuses the request: the message is longer than its receive request, or it does not allow this operation (qp_access_flags, max_dest_rd_atomic)" },
	{ IBV_WC_REM_ACCESS_ERR,
	  "the peer does not allow it: rkey wrong or deregistered, range outside of its region, or right missing (IBV_ACCESS_REMOTE_WRITE, READ, ATOMIC) in the region or in the peer's qp_access_flags" },
	{ IBV_WC_REM_OP_ERR, "the peer could not carry it out; its own completion says why" },
	{ IBV_WC_RETRY_EXC_ERR,
	  "no answer from the peer within timeout and retry_cnt: its process has ended, its queue pair is not in RTR or RTS, or dest_qp_num or the address is wrong" },
	{ IBV_WC_RNR_RETRY_EXC_ERR,
	  "the peer had no receive posted within rnr_retry: post receives before the other side sends, or set rnr_retry to 7" },
	{ IBV_WC_FATAL_ERR, "the device has failed" },
	{ IBV_WC_GENERAL_ERR, "an error that has no other name" },
};

void why_wc(struct text *t, struct ibv_context *context, unsigned status, uint32_t qp_num)
{
	for (size_t i = 0; i < COUNT(statuses); i++)
		if (statuses[i].status == status) {
			text_add(t, "%s", statuses[i].text);
			return;
		}
	text_wc_status(t, status);
}
