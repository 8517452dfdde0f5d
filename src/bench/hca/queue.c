/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting, polling, waiting; see end.h. */
#define LOG_ROOM "bench/hca"
#include "bench/hca/end.h"

#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "util/spin.h"

int hca_queue_open(struct hca_end *e, struct hca_watched_cq *q, enum hca_polling polling,
		   int entries)
{
	q->polling = polling;
	if (polling != HCA_BUSY) {
		q->channel = ibv_create_comp_channel(e->verbs);
		if (!q->channel)
			return log_fail(-errno, "the adapter offers no events: %s",
					strerror(errno));
	}
	q->cq = ibv_create_cq(e->verbs, entries, NULL, q->channel, 0);
	if (q->cq)
		return 0;
	return log_fail(-errno, "cannot create a completion queue of %d entries: %s", entries,
			strerror(errno));
}

void hca_queue_acknowledge(struct hca_watched_cq *q)
{
	if (q->cq && q->taken)
		ibv_ack_cq_events(q->cq, q->taken);
	q->taken = 0;
}

void hca_queue_close(struct hca_watched_cq *q)
{
	hca_queue_acknowledge(q);
	if (q->cq)
		ibv_destroy_cq(q->cq);
	if (q->channel)
		ibv_destroy_comp_channel(q->channel);
	q->cq = NULL;
	q->channel = NULL;
}

/* mixed: is it still time to poll? */
static bool still_spins(const struct hca_end *e, struct hca_watched_cq *q)
{
	uint64_t now_ns = hca_end_now(e);

	if (!q->idle_since_ns)
		q->idle_since_ns = now_ns;
	return now_ns - q->idle_since_ns < e->c->spin_ns;
}

int hca_queue_wait(struct hca_end *e, struct hca_watched_cq *q)
{
	struct ibv_cq *cq;
	void *context;
	int err;

	if (q->polling == HCA_BUSY)
		return 0;
	if (q->polling == HCA_MIXED && still_spins(e, q))
		return 0;
	if (!q->armed) {
		err = ibv_req_notify_cq(q->cq, 0);
		if (err)
			return log_fail(-err, "cannot ask for events: %s", strerror(err));
		q->armed = true;
		return 0;
	}
	if (ibv_get_cq_event(q->channel, &cq, &context)) {
		err = -errno;
		if (err != -EINTR && err != -EAGAIN)
			log_error("cannot wait for an event: %s", strerror(-err));
		return err == -EAGAIN ? -EINTR : err;
	}
	q->armed = false;
	q->idle_since_ns = 0;
	q->taken++;
	q->events++;
	return 0;
}

int hca_queue_complain(const struct hca_end *e, const struct ibv_wc *wc, const char *what)
{
	const char *side = e->side == HCA_SENDER ? "sender" : "receiver";

	return log_fail(-EIO, "%s: %s %llu failed: %s", side, what, (unsigned long long)wc->wr_id,
			ibv_wc_status_str(wc->status));
}

/* ---- receives ---- */

int hca_queue_fill(struct hca_end *e, uint64_t most)
{
	uint64_t missing = e->recv_taken + e->recv_depth - e->recv_posted;

	missing = MIN(missing, most);
	while (missing) {
		uint64_t first = e->recv_posted % e->recv_depth;
		uint64_t count = MIN(missing, e->recv_depth - first);
		struct ibv_recv_wr *last = &e->recv_wr[first + count - 1], *bad;
		struct ibv_recv_wr *next = last->next;
		int err;

		last->next = NULL;
		err = ibv_post_recv(e->qp, &e->recv_wr[first], &bad);
		last->next = next;
		if (err)
			return log_fail(-err, "cannot post a receive: %s", strerror(err));
		e->recv_posted += count;
		missing -= count;
	}
	return 0;
}

/* ---- sends ---- */

static void mark_signaled(struct hca_end *e, struct ibv_send_wr *wr, bool wanted)
{
	if (++e->unsignaled_run >= e->signal_every || wanted) {
		wr->send_flags |= IBV_SEND_SIGNALED;
		e->unsignaled_run = 0;
	} else {
		wr->send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
	}
}

int hca_queue_post(struct hca_end *e, uint32_t seq, uint32_t count, uint64_t t_ns, bool last)
{
	uint64_t slot = e->posted % e->buffers;
	struct ibv_send_wr *first = &e->send_wr[slot], *end = first + count - 1, *bad;
	struct ibv_send_wr *next = end->next;
	int err;

	for (uint32_t i = 0; i < count; i++) {
		struct ibv_send_wr *wr = first + i;

		*(uint64_t *)(e->out + (slot + i) * e->stride) = t_ns;
		wr->imm_data = htobe32(seq + i);
		wr->wr_id = e->posted + i;
		mark_signaled(e, wr, last && i == count - 1);
	}
	end->next = NULL;
	err = ibv_post_send(e->qp, first, &bad);
	end->next = next;
	if (unlikely(err))
		return log_fail(-err, "cannot post message %u: %s", seq, strerror(err));
	e->posted += count;
	return 0;
}

int hca_queue_harvest(struct hca_end *e)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(e->send.cq, 1, &wc);
	uint64_t now_ns;
	int64_t row;

	if (n == 0)
		return 0;
	now_ns = hca_end_now(e);
	if (n < 0)
		return log_fail(-EIO, "cannot poll the send queue");
	e->send.idle_since_ns = 0;
	if (wc.status != IBV_WC_SUCCESS)
		return hca_queue_complain(e, &wc, "message");
	/* On the side that sends first, requests have the numbers of messages. */
	row = hca_end_row(e, (uint32_t)wc.wr_id);
	if (row >= 0 && e->side == HCA_SENDER && e->c->mode != HCA_THROUGHPUT)
		e->s->column[HCA_T_COMP][row] = now_ns;
	atomic_store_explicit(&e->completed, wc.wr_id + 1, memory_order_release);
	return 1;
}

/* Harvests, or leaves that to the thread. */
static int wait_completion(struct hca_end *e, unsigned *tries)
{
	int failed = atomic_load_explicit(&e->failed, memory_order_relaxed);

	if (failed)
		return failed;
	if (++*tries % 1024 == 0 && hca_end_stopped(e))
		return -EINTR;
	if (!e->completions.runs)
		return hca_queue_harvest(e);
	spin_sleep();
	return 0;
}

static int wait_until(struct hca_end *e, uint64_t open_max)
{
	unsigned tries = 0;
	int ret;

	while (e->posted - atomic_load_explicit(&e->completed, memory_order_acquire) > open_max) {
		ret = wait_completion(e, &tries);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int hca_queue_room(struct hca_end *e, uint32_t count)
{
	return wait_until(e, e->limit - count);
}

int hca_queue_flush(struct hca_end *e)
{
	return wait_until(e, 0);
}

static void *serve(void *arg)
{
	struct hca_end *e = arg;
	int ret = 0;

	while (!atomic_load(&e->completions.stop) && ret >= 0) {
		ret = hca_queue_harvest(e);
		if (ret == 0) {
			ret = hca_queue_wait(e, &e->send);
			sched_yield(); /* to who posts, on the same CPU */
		}
		if (ret == -EINTR)
			ret = 0;
	}
	if (ret < 0)
		atomic_store(&e->failed, ret);
	return NULL;
}

int hca_queue_serve(struct hca_end *e)
{
	if (e->send.polling == HCA_BUSY)
		return 0;
	/* Without a CPU it shares that of this thread, which lets it run in pauses. */
	return hca_thread_start(&e->completions, serve, e, e->c->stamp_send ? -1 : e->c->cpu[2]);
}

void hca_queue_serve_end(struct hca_end *e)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	if (!e->completions.runs)
		return;
	atomic_store(&e->completions.stop, true);
	/* Again and again: it may be about to wait. */
	while (pthread_kill(e->completions.id, SIGUSR1) == 0 &&
	       pthread_tryjoin_np(e->completions.id, NULL) == EBUSY)
		nanosleep(&pause, NULL);
	e->completions.runs = false;
}
