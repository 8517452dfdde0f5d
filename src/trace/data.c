/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting and polling, through the functions of a context. Each call is counted. A line is
 * written for a call that fails, for a completion with an error, or for all calls if
 * that is asked for.
 */
#include <inttypes.h>

#include "trace/calls.h"

static void show_sge_list(struct text *t, const struct ibv_sge *sge, int count)
{
	uint64_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += sge[i].length;
	text_add(t, "%" PRIu64 " bytes", bytes);
	if (count > 0)
		text_add(t, " at 0x%" PRIx64 " lkey 0x%x", sge[0].addr, sge[0].lkey);
	if (count != 1)
		text_add(t, " in %d pieces", count);
}

static bool is_one_sided(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
	       opcode == IBV_WR_RDMA_READ;
}

static void show_send(struct text *t, const struct ibv_send_wr *wr, enum ibv_qp_type type)
{
	text_add(t, "{wr_id 0x%" PRIx64 ", ", wr->wr_id);
	text_send_opcode(t, wr->opcode);
	text_add(t, ", ");
	text_send_flags(t, wr->send_flags);
	text_add(t, ", ");
	show_sge_list(t, wr->sg_list, wr->num_sge);
	if (type == IBV_QPT_UD)
		text_add(t, ", to qp 0x%x, ah %p", wr->wr.ud.remote_qpn, (void *)wr->wr.ud.ah);
	else if (is_one_sided(wr->opcode))
		text_add(t, ", remote 0x%" PRIx64 " rkey 0x%x", wr->wr.rdma.remote_addr,
			 wr->wr.rdma.rkey);
	text_add(t, "}%s", wr->next ? ", ..." : "");
}

static void show_recv(struct text *t, const struct ibv_recv_wr *wr)
{
	text_add(t, "{wr_id 0x%" PRIx64 ", ", wr->wr_id);
	show_sge_list(t, wr->sg_list, wr->num_sge);
	text_add(t, "}%s", wr->next ? ", ..." : "");
}

/* The number of requests before `end`, and their bytes. */
static uint64_t count_sends(const struct ibv_send_wr *wr, const struct ibv_send_wr *end,
			    uint64_t *bytes)
{
	uint64_t n = 0;

	for (; wr && wr != end; wr = wr->next, n++)
		for (int i = 0; i < wr->num_sge; i++)
			*bytes += wr->sg_list[i].length;
	return n;
}

static uint64_t count_recvs(const struct ibv_recv_wr *wr, const struct ibv_recv_wr *end)
{
	uint64_t n = 0;

	for (; wr && wr != end; wr = wr->next)
		n++;
	return n;
}

static void counted(struct counters *own, enum count which, uint64_t items, uint64_t bytes,
		    bool failed)
{
	if (!own)
		return;
	count_add(&own->of[which].calls, 1);
	count_add(&own->of[which].items, items);
	count_add(&own->of[which].bytes, bytes);
	if (failed)
		count_add(&own->of[which].failed, 1);
}

/* Is no line needed? Programs that retry until a queue has room fail many times in a row:
 * one line is enough. */
static bool told_already(struct counters *own, const void *object, int error)
{
	if (!error) {
		if (own && own->full == object)
			own->full = NULL;
		return true;
	}
	if (!own || error != ENOMEM)
		return false;
	if (own->full == object)
		return true;
	own->full = object;
	return false;
}

/* Appends the result of a call that was already made; `start` 0: begin not known. */
static void answered(struct call *call, int error, long result, uint64_t start)
{
	call_go(call);
	call_done(call, error);
	if (start) {
		call->spent_ns = call->start_ns - start;
		call->start_ns = start;
	}
	result_number(call, result);
}

static void show_recvs(struct call *call, const struct ibv_recv_wr *wr,
		       const struct ibv_recv_wr *end, int ret, uint64_t start)
{
	text_add(&call->text, ", ");
	if (wr)
		show_recv(&call->text, ret && end ? end : wr);
	answered(call, ret, ret, start);
}

static int data_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
			  struct ibv_send_wr **bad)
{
	int (*real)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **) =
		saved_ops(qp->context)->ops.post_send;
	struct counters *own = counters_own();
	const struct ibv_send_wr *end;
	uint64_t items, bytes = 0, start = trace_data ? monotonic_ns() : 0;
	struct call call;
	int ret = real(qp, wr, bad), error = errno;

	end = ret ? *bad : NULL;
	items = count_sends(wr, end, &bytes);
	counted(own, COUNT_POST_SEND, items, bytes, ret);
	if (told_already(own, qp, ret) && !trace_data)
		return ret;
	call_begin(&call, "ibv_post_send");
	show_qp(&call.text, qp);
	text_add(&call.text, ", ");
	if (wr)
		show_send(&call.text, ret && end ? end : wr, qp->qp_type);
	answered(&call, ret, ret, start);
	if (ret && end)
		why_post_send(call_reason(&call), ret, qp, end);
	call_end(&call);
	errno = error;
	return ret;
}

static int data_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			  struct ibv_recv_wr **bad)
{
	int (*real)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **) =
		saved_ops(qp->context)->ops.post_recv;
	struct counters *own = counters_own();
	uint64_t start = trace_data ? monotonic_ns() : 0;
	const struct ibv_recv_wr *end;
	struct call call;
	int ret = real(qp, wr, bad), error = errno;

	end = ret ? *bad : NULL;
	counted(own, COUNT_POST_RECV, count_recvs(wr, end), 0, ret);
	if (told_already(own, qp, ret) && !trace_data)
		return ret;
	call_begin(&call, "ibv_post_recv");
	show_qp(&call.text, qp);
	show_recvs(&call, wr, end, ret, start);
	if (ret && end)
		why_post_recv(call_reason(&call), ret, qp, end);
	call_end(&call);
	errno = error;
	return ret;
}

static int data_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			      struct ibv_recv_wr **bad)
{
	int (*real)(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **) =
		saved_ops(srq->context)->ops.post_srq_recv;
	struct counters *own = counters_own();
	uint64_t start = trace_data ? monotonic_ns() : 0;
	const struct ibv_recv_wr *end;
	struct call call;
	int ret = real(srq, wr, bad), error = errno;

	end = ret ? *bad : NULL;
	counted(own, COUNT_POST_SRQ_RECV, count_recvs(wr, end), 0, ret);
	if (told_already(own, srq, ret) && !trace_data)
		return ret;
	call_begin(&call, "ibv_post_srq_recv");
	show_srq(&call.text, srq);
	show_recvs(&call, wr, end, ret, start);
	if (ret && end)
		why_post_srq_recv(call_reason(&call), ret, srq, end);
	call_end(&call);
	errno = error;
	return ret;
}

static void show_completion(struct text *t, struct ibv_context *context,
			    const struct ibv_wc *wc)
{
	text_add(t, "{wr_id 0x%" PRIx64 ", qp 0x%x, ", wc->wr_id, wc->qp_num);
	text_wc_status(t, wc->status);
	/* Of a failed completion no other field is defined. */
	if (wc->status == IBV_WC_SUCCESS) {
		text_add(t, ", ");
		text_wc_opcode(t, wc->opcode);
		if (wc->opcode & IBV_WC_RECV)
			text_add(t, ", %u bytes", wc->byte_len);
	} else if (wc->vendor_err) {
		text_add(t, ", vendor_err 0x%x", wc->vendor_err);
	}
	text_add(t, "}");
}

static void completion_line(const char *name, struct ibv_cq *cq, const struct ibv_wc *wc,
			    int found, unsigned flushed, uint64_t start)
{
	struct call call;

	call_begin(&call, name);
	show_cq(&call.text, cq);
	answered(&call, 0, found, start);
	if (wc) {
		output(&call.text);
		show_completion(&call.text, cq->context, wc);
	}
	if (flushed)
		text_add(&call.text, " and %u more that were flushed", flushed);
	if (wc && wc->status != IBV_WC_SUCCESS) {
		call.reasoned = true;
		why_wc(call_reason(&call), cq->context, wc->status, wc->qp_num);
	}
	call_end(&call);
}

/* Number of flushed completions of the same queue pair that follow the first: they are
 * reported in its line. */
static unsigned flushed_behind(const struct ibv_wc *wc, int count)
{
	unsigned n = 0;

	for (int i = 1; i < count && wc[i].status == IBV_WC_WR_FLUSH_ERR &&
			wc[i].qp_num == wc[0].qp_num; i++)
		n++;
	return n;
}

static void tell_completions(const char *name, struct ibv_cq *cq, const struct ibv_wc *wc,
			     int found, uint64_t start)
{
	struct counters *own = counters_own();
	int i = 0;

	while (i < found) {
		bool failed = wc[i].status != IBV_WC_SUCCESS;
		unsigned flushed = failed ? flushed_behind(wc + i, found - i) : 0;
		bool flush = wc[i].status == IBV_WC_WR_FLUSH_ERR;
		bool again = flush && own && own->flushed == wc[i].qp_num;

		if (failed && own)
			count_add(&own->of[COUNT_POLL].failed, flushed + 1);
		if (trace_data || (failed && !again))
			completion_line(name, cq, wc + i, found, flushed, start);
		if (failed && own)
			own->flushed = flush || flushed ? wc[i].qp_num : 0;
		i += 1 + (int)flushed;
	}
}

static int data_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	int (*real)(struct ibv_cq *, int, struct ibv_wc *) =
		saved_ops(cq->context)->ops.poll_cq;
	struct counters *own = counters_own();
	uint64_t start = trace_data ? monotonic_ns() : 0;
	int found = real(cq, num, wc);
	bool failed = false;

	if (own) {
		count_add(&own->of[COUNT_POLL].calls, 1);
		if (found <= 0) {
			count_add(&own->of[COUNT_POLL].empty, 1);
			return found;
		}
		count_add(&own->of[COUNT_POLL].items, (uint64_t)found);
	}
	for (int i = 0; i < found; i++)
		failed |= wc[i].status != IBV_WC_SUCCESS;
	if (failed || trace_data) {
		int error = errno;

		tell_completions("ibv_poll_cq", cq, wc, found, start);
		errno = error;
	}
	return found;
}

static int data_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	int (*real)(struct ibv_cq *, int) = saved_ops(cq->context)->ops.req_notify_cq;
	struct counters *own = counters_own();
	struct call call;

	counted(own, COUNT_NOTIFY, 1, 0, false);
	if (!trace_data)
		return real(cq, solicited_only);
	call_begin(&call, "ibv_req_notify_cq");
	show_cq(&call.text, cq);
	text_add(&call.text, ", %d", solicited_only);
	call_go(&call);
	int ret = real(cq, solicited_only);

	call_done(&call, ret);
	result_number(&call, ret);
	call_end(&call);
	return ret;
}

void data_patch_ops(struct ibv_context *context)
{
	struct ibv_context_ops *ops = &context->ops;

	ops->post_send = data_post_send;
	ops->post_recv = data_post_recv;
	ops->post_srq_recv = data_post_srq_recv;
	ops->poll_cq = data_poll_cq;
	ops->req_notify_cq = data_req_notify_cq;
}

/* ---- extended completion queues ---- */

static void completion_ex(struct ibv_cq_ex *cq, int ret)
{
	struct counters *own = counters_own();
	struct ibv_wc wc;
	int error = errno;

	if (own && ret == ENOENT)
		count_add(&own->of[COUNT_POLL].empty, 1);
	if (ret)
		return;
	if (own)
		count_add(&own->of[COUNT_POLL].items, 1);
	if (cq->status == IBV_WC_SUCCESS && !trace_data)
		return;
	wc = (struct ibv_wc){
		.wr_id = cq->wr_id,
		.status = cq->status,
		.qp_num = cq->read_qp_num ? cq->read_qp_num(cq) : 0,
		.vendor_err = cq->status && cq->read_vendor_err ? cq->read_vendor_err(cq) : 0,
	};
	if (cq->status == IBV_WC_SUCCESS && cq->read_opcode)
		wc.opcode = cq->read_opcode(cq);
	if (wc.opcode & IBV_WC_RECV && cq->read_byte_len)
		wc.byte_len = cq->read_byte_len(cq);
	tell_completions("ibv_start_poll", ibv_cq_ex_to_cq(cq), &wc, 1, 0);
	errno = error;
}

static int data_start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct counters *own = counters_own();
	int ret = saved_find(cq)->cq.start_poll(cq, attr);

	if (own)
		count_add(&own->of[COUNT_POLL].calls, 1);
	completion_ex(cq, ret);
	return ret;
}

static int data_next_poll(struct ibv_cq_ex *cq)
{
	int ret = saved_find(cq)->cq.next_poll(cq);

	if (!ret)
		completion_ex(cq, ret);
	return ret;
}

void data_patch_cq(struct ibv_cq_ex *cq)
{
	struct saved *s = cq->start_poll ? saved_make(cq) : NULL;

	if (!s)
		return;
	s->cq = *cq;
	cq->start_poll = data_start_poll;
	cq->next_poll = data_next_poll;
}

/* ---- builders of extended queue pairs ---- */

/*
 * Only wr_complete is traced: the adapter reports errors of the other functions there.
 */
static int data_wr_complete(struct ibv_qp_ex *qp)
{
	struct counters *own = counters_own();
	int ret = saved_find(qp)->qp.wr_complete(qp), error = errno;
	struct call call;

	counted(own, COUNT_POST_SEND, 1, 0, ret);
	if (told_already(own, qp, ret) && !trace_data)
		return ret;
	call_begin(&call, "ibv_wr_complete");
	show_qp(&call.text, &qp->qp_base);
	text_add(&call.text, ", last {wr_id 0x%" PRIx64 ", ", qp->wr_id);
	text_send_flags(&call.text, qp->wr_flags);
	text_add(&call.text, "}");
	call_go(&call);
	call_done(&call, ret);
	result_number(&call, ret);
	if (ret)
		why_post_send(call_reason(&call), ret, &qp->qp_base, NULL);
	call_end(&call);
	errno = error;
	return ret;
}

void data_patch_qp(struct ibv_qp_ex *qp)
{
	struct saved *s;

	if (!qp->wr_complete || qp->wr_complete == data_wr_complete)
		return;
	s = saved_make(qp);
	if (!s)
		return;
	s->qp = *qp;
	qp->wr_complete = data_wr_complete;
}
