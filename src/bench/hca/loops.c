/* SPDX-License-Identifier: BSD-2-Clause */
/* What the loops of the three modes share; see end.h. */
#define LOG_ROOM "bench/hca"
#include "bench/hca/end.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "util/order.h"
#include "util/spin.h"

/* Sleeping is for pauses that are longer; it ends that much earlier. */
#define SLEEP_MIN_NS (1000 * UINT64_C(1000))
#define SLEEP_SPIN_NS (200 * UINT64_C(1000))
#define SLEEP_MAX_NS (50 * UINT64_C(1000000))
#define SHARE_SPIN_NS (20 * UINT64_C(1000))
#define OWN_ROUNDS 2048

int hca_loop_idle(struct hca_end *e, struct hca_wait *w)
{
	uint64_t now_ns;
	int ret = hca_queue_wait(e, &e->recv);

	if (ret && ret != -EINTR)
		return ret;
	if (++w->idle % HCA_LOOK_EVERY && !ret)
		return 0;
	now_ns = hca_end_now(e);
	ret = hca_control_look(e, w->burst, now_ns);
	if (ret <= 0)
		return ret;
	if (!w->since_ns)
		w->since_ns = now_ns;
	return now_ns - w->since_ns >= e->c->lost_after_ns;
}

int hca_loop_poll(struct hca_end *e, struct ibv_wc *wc, uint64_t *t_ns)
{
	int n = ibv_poll_cq(e->recv.cq, 1, wc);

	if (n == 0)
		return 0;
	*t_ns = hca_end_now(e);
	if (n < 0)
		return log_fail(-EIO, "cannot poll the receive queue");
	if (wc->status != IBV_WC_SUCCESS)
		return hca_queue_complain(e, wc, "receive");
	e->recv_taken++;
	return 1;
}

static int sleep_until(struct hca_end *e, uint64_t until_ns)
{
	uint64_t now_ns = hca_end_now(e);

	while (now_ns + SLEEP_MIN_NS < until_ns) {
		uint64_t rest = MIN(until_ns - now_ns - SLEEP_SPIN_NS, SLEEP_MAX_NS);
		struct timespec pause = timespec_from_ns(rest);

		nanosleep(&pause, NULL);
		if (hca_end_stopped(e))
			return -EINTR;
		now_ns = hca_end_now(e);
	}
	return 0;
}

/* The thread that watches the send queue may share this CPU. */
static void let_others_run(uint64_t rest_ns)
{
	struct timespec pause = timespec_from_ns(rest_ns - SHARE_SPIN_NS);

	if (rest_ns > 2 * SHARE_SPIN_NS)
		nanosleep(&pause, NULL);
	else
		sched_yield();
}

int hca_loop_pause(struct hca_end *e, uint64_t until_ns)
{
	unsigned tries = 0;
	uint64_t now_ns;
	int ret = 0;

	while ((now_ns = hca_end_now(e)) < until_ns && ret >= 0) {
		bool open = e->posted - e->unsignaled_run > atomic_load(&e->completed);

		if (until_ns - now_ns > SLEEP_MIN_NS && (e->completions.runs || !open))
			ret = sleep_until(e, until_ns);
		else if (e->completions.runs)
			let_others_run(until_ns - now_ns);
		else if (open)
			ret = hca_queue_harvest(e);
		if (++tries % HCA_LOOK_EVERY == 0 && hca_end_stopped(e))
			ret = -EINTR;
	}
	return MIN(ret, 0);
}

static int one_burst(struct hca_end *e, unsigned number, uint64_t first, uint32_t count,
		     int (*burst)(struct hca_end *, unsigned, uint64_t, uint32_t))
{
	int ret = hca_queue_fill(e, UINT64_MAX) ?: hca_control_ready(e) ?:
		  burst(e, number, first, count) ?: hca_control_sent(e);

	hca_queue_acknowledge(&e->recv);
	if (ret || e->side == HCA_SENDER || e->c->remote)
		return ret;
	while ((ret = hca_control_look(e, number, 0)) == 0)
		spin_sleep();
	/* Nobody sleeps any more for want of a message that was lost; in round trips that can
	 * happen within the next burst. */
	if (e->c->mode != HCA_ROUNDTRIP)
		atomic_store(&e->s->nudge, false);
	return MIN(ret, 0);
}

int hca_loop_bursts(struct hca_end *e,
		    int (*burst)(struct hca_end *e, unsigned number, uint64_t first,
				 uint32_t count))
{
	const struct hca_case *c = e->c;
	unsigned number = 0;
	uint64_t first = 0;
	int ret = 0;

	if (c->warmup) {
		ret = one_burst(e, number++, 0, c->warmup, burst);
		first = c->warmup;
	}
	for (uint32_t i = 0; i < c->repetitions && !ret; i++) {
		ret = one_burst(e, number++, first, c->burst, burst);
		first += c->burst;
	}
	return ret;
}

void hca_loop_own_cost(struct hca_end *e)
{
	uint64_t *column = e->s->column[e->side == HCA_SENDER ? HCA_T_SUBM : HCA_T_RECV];
	size_t rows = MIN(e->s->rows, OWN_ROUNDS);
	uint64_t before = hca_end_now(e);
	int64_t took[OWN_ROUNDS];

	for (size_t i = 0; i < OWN_ROUNDS; i++) {
		uint64_t now = hca_end_now(e);

		column[i % rows] = now;
		*(volatile uint64_t *)(e->out + i % e->buffers * e->stride) = now;
		took[i] = (int64_t)(now - before);
		before = now;
	}
	memset(column, 0, rows * sizeof(*column));
	order_int64(took, OWN_ROUNDS);
	e->report->own_ns = (uint64_t)took[OWN_ROUNDS / 2];
}

/* ---- stamp = send ---- */

static void *overwrite(void *arg)
{
	struct hca_end *e = arg;

	while (!atomic_load_explicit(&e->stamper.stop, memory_order_relaxed))
		hca_stamp(e);
	return NULL;
}

int hca_stamper_start(struct hca_end *e)
{
	/* Without a CPU for it the receiver does it between two polls. */
	if (!e->c->stamp_send || e->side != HCA_SENDER || e->c->cpu[2] < 0)
		return 0;
	return hca_thread_start(&e->stamper, overwrite, e, e->c->cpu[2]);
}

void hca_stamper_stop(struct hca_end *e)
{
	if (!e->stamper.runs)
		return;
	atomic_store(&e->stamper.stop, true);
	pthread_join(e->stamper.id, NULL);
	e->stamper.runs = false;
}
