/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mode = roundtrip: each message is answered by one of the same size before the next one
 * leaves. Within a host the one that answers stamps as well, so that half of the round trip
 * can be compared with the way there.
 */
#define LOG_ROOM "bench/hca"
#include <errno.h>

#include "bench/hca/loops.h"

/* Waits for the reply to `seq`; 1: there was one, 0: it is lost. */
static int await_reply(struct hca_end *e, uint32_t seq, uint64_t t_subm)
{
	struct ibv_wc wc;
	uint64_t t_ns;
	unsigned idle = 0;
	int ret;

	for (;;) {
		ret = hca_loop_poll(e, &wc, &t_ns);
		if (ret < 0)
			return ret;
		if (ret > 0) {
			uint32_t got = hca_queue_seq(&wc, e->recv_taken - 1);
			int64_t row = hca_end_row(e, got);

			e->recv.idle_since_ns = 0;
			if (row >= 0 && e->s->column[HCA_T_BACK][row])
				e->report->duplicates++;
			else if (row >= 0)
				e->s->column[HCA_T_BACK][row] = t_ns;
			e->report->received += row >= 0;
			if (got == seq)
				return 1;
			continue;
		}
		ret = hca_queue_wait(e, &e->recv);
		if (ret && ret != -EINTR)
			return ret;
		if (++idle % HCA_LOOK_EVERY && !ret)
			continue;
		if (hca_end_stopped(e))
			return -EINTR;
		if (hca_end_now(e) - t_subm > e->c->lost_after_ns && e->c->type != HCA_RC)
			return 0;
	}
}

static int ask_burst(struct hca_end *e, unsigned number, uint64_t first, uint32_t count)
{
	bool counts = number >= !!e->c->warmup;
	int ret = 0;

	for (uint32_t i = 0; i < count && ret >= 0; i++) {
		uint32_t seq = (uint32_t)(first + i);
		int64_t row = hca_end_row(e, seq);
		uint64_t t_ns;

		ret = hca_queue_room(e, 1);
		if (ret < 0)
			return ret;
		t_ns = hca_end_now(e);
		if (row >= 0)
			e->s->column[HCA_T_SUBM][row] = t_ns;
		ret = hca_queue_post(e, seq, 1, t_ns, i + 1 == count);
		if (!ret)
			ret = await_reply(e, seq, t_ns);
		/* A late reply to an earlier message may have taken a receive too. */
		if (ret >= 0)
			ret = hca_queue_fill(e, HCA_REFILL);
		if (ret >= 0 && !e->completions_run && e->unsignaled_run == 0)
			ret = hca_queue_harvest(e);
		if (ret >= 0 && e->c->pause_ns && counts)
			ret = hca_loop_pause(e, t_ns + e->c->pause_ns);
		atomic_store_explicit(&e->s->messages, seq + 1u, memory_order_relaxed);
	}
	if (ret < 0)
		return ret;
	e->report->sent += counts ? count : 0;
	return hca_queue_flush(e);
}

/* A datagram's sender is known from its first message. */
static int learn_peer(struct hca_end *e, struct ibv_wc *wc)
{
	struct ibv_grh *grh = (struct ibv_grh *)(e->in + (e->recv_taken - 1) %
							 e->recv_depth * e->stride);

	e->ah = ibv_create_ah_from_wc(e->pd, wc, grh, e->port);
	if (!e->ah)
		return log_fail(-errno, "cannot make an address handle for the sender: %s",
				strerror(errno));
	e->remote_qpn = wc->src_qp;
	for (uint32_t i = 0; i < e->buffers; i++) {
		e->send_wr[i].wr.ud.ah = e->ah;
		e->send_wr[i].wr.ud.remote_qpn = e->remote_qpn;
		e->send_wr[i].wr.ud.remote_qkey = e->remote_qkey;
	}
	return 0;
}

static int answer(struct hca_end *e, struct ibv_wc *wc, uint64_t t_ns)
{
	uint32_t seq = hca_queue_seq(wc, e->recv_taken - 1);
	int64_t row = hca_end_row(e, seq);
	int ret = 0;

	if (e->c->type == HCA_UD && !e->ah)
		ret = learn_peer(e, wc);
	if (!ret)
		ret = hca_queue_room(e, 1);
	/* All replies may be the last one, when messages can be lost. */
	if (!ret)
		ret = hca_queue_post(e, seq, 1, t_ns, false);
	if (row >= 0) {
		e->s->column[HCA_T_RECV][row] = t_ns;
		e->report->received++;
	}
	if (!ret)
		ret = hca_queue_fill(e, 1);
	if (!ret && !e->completions_run && e->unsignaled_run == 0)
		ret = hca_queue_harvest(e);
	return ret;
}

static int answer_burst(struct hca_end *e, unsigned number, uint64_t first, uint32_t count)
{
	struct hca_wait w = { .burst = number };
	struct ibv_wc wc;
	uint64_t t_ns;
	int ret;

	/* Who asks says when it is over: requests and replies may have been lost. */
	while (count) {
		ret = hca_loop_poll(e, &wc, &t_ns);
		if (ret > 0) {
			hca_wait_over(e, &w);
			ret = answer(e, &wc, t_ns);
			count -= hca_queue_seq(&wc, e->recv_taken - 1) >= first;
		} else if (ret == 0) {
			ret = hca_loop_idle(e, &w);
			if (ret == 1)
				return 0;
		}
		if (ret < 0)
			return ret;
	}
	return 0;
}

int hca_roundtrip(struct hca_end *e)
{
	return hca_loop_bursts(e, e->side == HCA_SENDER ? ask_burst : answer_burst);
}
