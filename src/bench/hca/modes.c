/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loops of the three modes. oneway: the sender stamps and posts, the receiver polls and stamps;
 * one clock. throughput: the same without stamps, and several completions are taken at once.
 * roundtrip: each message is answered by one of the same size before the next one leaves; within a
 * host the one that answers stamps as well, so that half of the round trip can be compared with the
 * way there.
 */
#define LOG_ROOM "bench/hca"
#include <errno.h>

#include "bench/hca/end.h"

#define POLL_MANY 32

/* ---- one way ---- */

static void note_sent(struct hca_end *e, uint64_t seq, uint32_t count, uint64_t t_ns)
{
	for (uint32_t i = 0; i < count; i++) {
		int64_t row = hca_end_row(e, (uint32_t)(seq + i));

		if (row >= 0)
			e->s->column[HCA_T_SUBM][row] = t_ns;
	}
}

static int send_burst(struct hca_end *e, unsigned number, uint64_t first, uint32_t count)
{
	uint64_t next_ns = 0;
	int ret = 0;

	for (uint32_t done = 0, n; done < count; done += n) {
		uint64_t t_ns;

		n = hca_queue_batch(e, count - done);
		ret = hca_queue_room(e, n);
		/* The warm-up does not wait: with long pauses it would never end. */
		if (!ret && e->c->pause_ns && number >= !!e->c->warmup)
			ret = hca_loop_pause(e, next_ns);
		if (ret < 0)
			return ret;
		t_ns = hca_end_now(e);
		note_sent(e, first + done, n, t_ns);
		ret = hca_queue_post(e, (uint32_t)(first + done), n, t_ns,
				     done + n == count);
		if (ret < 0)
			return ret;
		next_ns = t_ns + e->c->pause_ns;
		if (!e->completions.runs && e->unsignaled_run == 0)
			ret = hca_queue_harvest(e);
		if (ret < 0)
			return ret;
		atomic_store_explicit(&e->s->messages, first + done + n,
				      memory_order_relaxed);
		if (done % HCA_LOOK_EVERY == 0 && hca_end_stopped(e))
			return -EINTR;
	}
	e->report->sent += number >= !!e->c->warmup ? count : 0;
	return hca_queue_flush(e);
}

/* Files a message; does it belong to the burst that begins at `first`? */
static bool note_received(struct hca_end *e, const struct ibv_wc *wc, uint64_t first,
			  uint64_t t_ns)
{
	struct hca_report *r = e->report;
	uint32_t seq = hca_queue_seq(wc, e->recv_taken - 1);
	int64_t row = hca_end_row(e, seq);
	uint64_t slot = e->c->op == HCA_WRITE ? seq : e->recv_taken - 1;

	if (row >= 0) {
		if (e->s->column[HCA_T_RECV][row]) {
			r->duplicates++;
			return false;
		}
		e->s->column[HCA_T_RECV][row] = t_ns;
		e->s->column[HCA_T_SENT][row] = hca_buffers_time(e, slot);
		r->received++;
		r->reordered += seq < e->highest_seq;
		e->highest_seq = MAX(e->highest_seq, seq);
	}
	return seq >= first;
}

static int take(struct hca_end *e, struct ibv_wc *wc, uint64_t first, uint32_t count, uint64_t t_ns)
{
	bool ours = note_received(e, wc, first, t_ns);

	count -= ours;
	if (e->recv_posted - e->recv_taken < count &&
	    e->recv_taken % MIN(HCA_REFILL, e->recv_depth) == 0)
		return hca_queue_fill(e, HCA_REFILL) ?: ours;
	return ours;
}

/* A receiver's burst: `one` is called for each message, and says whether it belongs to the burst (1
 * or 0), or returns a negative errno. */
static inline int receive(struct hca_end *e, unsigned number, uint64_t first, uint32_t count,
			  int (*one)(struct hca_end *e, struct ibv_wc *wc, uint64_t first,
				     uint32_t count, uint64_t t_ns))
{
	bool stamps = e->c->stamp_send && e->c->cpu[2] < 0;
	struct hca_wait w = { .burst = number };
	struct ibv_wc wc;
	uint64_t t_ns;
	int ret;

	while (count) {
		ret = hca_loop_poll(e, &wc, &t_ns);
		if (ret > 0) {
			hca_wait_over(e, &w);
			ret = one(e, &wc, first, count, t_ns);
			count -= ret > 0;
		} else if (ret == 0) {
			if (stamps)
				hca_stamp(e);
			ret = hca_loop_idle(e, &w);
			if (ret == 1)
				return 0;
		}
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int receive_burst(struct hca_end *e, unsigned number, uint64_t first, uint32_t count)
{
	return receive(e, number, first, count, take);
}

int hca_oneway(struct hca_end *e)
{
	return hca_loop_bursts(e, e->side == HCA_SENDER ? send_burst : receive_burst);
}

/* ---- throughput ---- */

static int send_many(struct hca_end *e, unsigned number, uint64_t first, uint32_t count)
{
	bool counts = number >= !!e->c->warmup;
	uint64_t begin_ns = hca_end_now(e);
	int ret = 0;

	for (uint32_t done = 0, n; done < count && ret >= 0; done += n) {
		n = hca_queue_batch(e, count - done);
		ret = hca_queue_room(e, n);
		if (ret >= 0)
			ret = hca_queue_post(e, (uint32_t)(first + done), n, begin_ns,
					     done + n == count);
		if (done % HCA_LOOK_EVERY == 0 && hca_end_stopped(e))
			ret = -EINTR;
	}
	if (ret >= 0)
		ret = hca_queue_flush(e);
	if (ret < 0)
		return ret;
	atomic_store_explicit(&e->s->messages, first + count, memory_order_relaxed);
	if (counts) {
		e->s->column[HCA_T_SUBM][number - !!e->c->warmup] = begin_ns;
		e->report->sent += count;
		e->report->busy_ns += hca_end_now(e) - begin_ns;
	}
	return 0;
}

static int take_many(struct hca_end *e, int most, uint64_t first, uint32_t *count,
		     uint64_t *got)
{
	struct ibv_wc wc[POLL_MANY];
	int n = ibv_poll_cq(e->recv.cq, most, wc);

	if (n < 0)
		return log_fail(-EIO, "cannot poll the receive queue");
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			return hca_queue_complain(e, &wc[i], "receive");
		/* What comes late belongs to a burst that was given up. */
		if (hca_queue_seq(&wc[i], e->recv_taken + (uint64_t)i) >= first && *count) {
			--*count;
			++*got;
		}
	}
	e->recv_taken += (uint64_t)n;
	return n;
}

static int receive_many(struct hca_end *e, unsigned number, uint64_t first, uint32_t count)
{
	struct hca_wait w = { .burst = number };
	uint64_t begin_ns = 0, end_ns = 0, got = 0;
	int ret;

	while (count) {
		uint64_t before = got;

		/* The first message begins the time, so it is taken alone: any that came
		 * with it would count as messages that took no time. */
		ret = take_many(e, got ? POLL_MANY : 1, first, &count, &got);
		if (ret > 0) {
			if (got > before)
				end_ns = hca_end_now(e);
			begin_ns = begin_ns ?: end_ns;
			hca_wait_over(e, &w);
			if (e->recv_posted - e->recv_taken + HCA_REFILL <= e->recv_depth ||
			    e->recv_posted == e->recv_taken)
				ret = hca_queue_fill(e, UINT64_MAX);
		} else if (ret == 0) {
			ret = hca_loop_idle(e, &w);
			if (ret == 1)
				break;
		}
		if (ret < 0)
			return ret;
	}
	if (number >= !!e->c->warmup) {
		e->s->column[HCA_T_RECV][number - !!e->c->warmup] = end_ns;
		e->report->received += got;
		e->report->busy_ns += end_ns - begin_ns;
	}
	return 0;
}

int hca_throughput(struct hca_end *e)
{
	return hca_loop_bursts(e, e->side == HCA_SENDER ? send_many : receive_many);
}

/* ---- round trips ---- */

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
		ret = ret ?: await_reply(e, seq, t_ns);
		/* A late reply to an earlier message may have taken a receive too. */
		if (ret >= 0)
			ret = hca_queue_fill(e, HCA_REFILL);
		if (ret >= 0 && !e->completions.runs && e->unsignaled_run == 0)
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

static int answer(struct hca_end *e, struct ibv_wc *wc, uint64_t first, uint32_t count,
		  uint64_t t_ns)
{
	uint32_t seq = hca_queue_seq(wc, e->recv_taken - 1);
	int64_t row = hca_end_row(e, seq);
	int ret = (e->c->type == HCA_UD && !e->ah ? learn_peer(e, wc) : 0) ?: hca_queue_room(e, 1);

	/* All replies may be the last one, when messages can be lost. */
	ret = ret ?: hca_queue_post(e, seq, 1, t_ns, false);
	if (row >= 0) {
		e->s->column[HCA_T_RECV][row] = t_ns;
		e->report->received++;
	}
	ret = ret ?: hca_queue_fill(e, 1);
	if (!ret && !e->completions.runs && e->unsignaled_run == 0)
		ret = hca_queue_harvest(e);
	return ret < 0 ? ret : seq >= first;
}

/* Who asks says when it is over: requests and replies may have been lost. */
static int answer_burst(struct hca_end *e, unsigned number, uint64_t first, uint32_t count)
{
	return receive(e, number, first, count, answer);
}

int hca_roundtrip(struct hca_end *e)
{
	return hca_loop_bursts(e, e->side == HCA_SENDER ? ask_burst : answer_burst);
}
