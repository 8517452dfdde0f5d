/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions, however they are polled. What is hidden never ends a poll that would have found more. */
#include "preload/poll.h"

#include <errno.h>

#include "preload/listener.h"
#include "preload/saved.h"

/* Moves those that the program sees to the front. Returns their number. */
static int keep_shown(struct ibv_cq *cq, struct ibv_wc *wc, int count)
{
	int shown = 0;

	for (int i = 0; i < count; i++) {
		if (!preload_listener.completion(cq, &wc[i]))
			continue;
		if (shown != i)
			wc[shown] = wc[i];
		shown++;
	}
	return shown;
}

int poll_heard(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	int (*real)(struct ibv_cq *, int, struct ibv_wc *) = saved_find(cq->context)->ops.poll_cq;
	int found, shown;

	do {
		found = real(cq, entries, wc);
		if (found <= 0)
			return found;
		shown = keep_shown(cq, wc, found);
	} while (!shown);
	return shown;
}

/* ---- extended completion queues ---- */

static struct ibv_wc completion_of(struct ibv_cq_ex *cq)
{
	struct ibv_wc wc = { .wr_id = cq->wr_id, .status = cq->status };

	if (cq->read_qp_num)
		wc.qp_num = cq->read_qp_num(cq);
	if (wc.status != IBV_WC_SUCCESS) {
		wc.vendor_err = cq->read_vendor_err ? cq->read_vendor_err(cq) : 0;
		return wc;
	}
	if (cq->read_opcode)
		wc.opcode = cq->read_opcode(cq);
	if (cq->read_wc_flags)
		wc.wc_flags = cq->read_wc_flags(cq);
	if (cq->read_byte_len)
		wc.byte_len = cq->read_byte_len(cq);
	if (cq->read_imm_data && wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV))
		wc.imm_data = cq->read_imm_data(cq);
	if (cq->read_src_qp)
		wc.src_qp = cq->read_src_qp(cq);
	return wc;
}

/* The program sees the completion at which the queue stands. */
static bool is_shown(struct ibv_cq_ex *cq)
{
	const struct ibv_wc wc = completion_of(cq);

	return preload_listener.completion(ibv_cq_ex_to_cq(cq), &wc);
}

static int next_poll(struct ibv_cq_ex *cq)
{
	const struct ibv_cq_ex *real = &saved_find(cq)->cq;
	int ret;

	do
		ret = real->next_poll(cq);
	while (!ret && !is_shown(cq));
	return ret;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	const struct ibv_cq_ex *real = &saved_find(cq)->cq;
	int ret = real->start_poll(cq, attr);

	if (ret || is_shown(cq))
		return ret;
	ret = next_poll(cq);
	/* A poll that has not started is not ended by the program. */
	if (ret)
		real->end_poll(cq);
	return ret;
}

void poll_hear(struct ibv_cq_ex *cq)
{
	struct saved *s = cq->start_poll ? saved_make(cq) : NULL;

	if (!s)
		return;
	s->cq = *cq;
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
}
