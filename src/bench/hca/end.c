/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of an end; see case.h, hca_end_fn. */
#define LOG_ROOM "bench/hca"
#include "bench/hca/end.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

hca_end_fn bench_hca_end;

/* The columns that this end writes are shared, so its process has not mapped them yet; they
 * are touched, because a page that is missing when a time is stored costs more than a message.
 * Then nothing is given back. What nobody has touched is not needed. */
static void hold_memory(struct hca_end *e)
{
	int first = e->side == HCA_SENDER ? HCA_T_SUBM : HCA_T_RECV;
	int end = e->side == HCA_SENDER ? HCA_T_RECV : HCA_COLUMNS;

	for (int i = first; i < end; i++)
		memset(e->s->column[i], 0, e->s->rows * sizeof(*e->s->column[i]));
	e->report->locked = !mlockall(MCL_CURRENT | MCL_ONFAULT);
	if (!e->report->locked)
		log_debug("the memory is not locked: %s", strerror(errno));
}

/* Of this end alone: of its process, or of its thread where it shares one. */
static uint64_t cpu_ns(const struct hca_end *e)
{
	struct timespec t;

	if (clock_gettime(e->c->threads ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID, &t))
		return 0;
	return timespec_to_ns(t);
}

static int measure(struct hca_end *e)
{
	static int (*const modes[])(struct hca_end *) = {
		[HCA_ONEWAY] = hca_oneway,
		[HCA_ROUNDTRIP] = hca_roundtrip,
		[HCA_THROUGHPUT] = hca_throughput,
	};
	uint64_t cpu_start, start;
	int ret;

	/* Only now, so that the adapter's own thread runs where it likes. */
	hca_end_pin(pthread_self(), e->c->cpu[e->side]);
	hold_memory(e);
	hca_loop_own_cost(e);
	ret = hca_queue_serve(e) ?: hca_stamper_start(e);
	if (ret)
		return ret;
	cpu_start = cpu_ns(e);
	start = hca_end_now(e);
	ret = modes[e->c->mode](e);
	e->report->cpu_ns = cpu_ns(e) - cpu_start;
	e->report->wall_ns = hca_end_now(e) - start;
	return ret;
}

/* What both have counted; also keeps either from leaving while the other one measures. */
static int exchange_totals(struct hca_end *e)
{
	struct hca_report *theirs = &e->s->end[!e->side];
	uint64_t mine[] = { e->report->sent, e->report->received, e->report->busy_ns,
			    e->report->cpu_ns, e->report->wall_ns, e->report->own_ns };
	uint64_t got[ARRAY_SIZE(mine)];
	int ret = hca_control_send(e, mine, sizeof(mine)) ?:
		  hca_control_receive(e, got, sizeof(got));

	if (ret || !e->c->remote)
		return ret;
	theirs->sent = got[0];
	theirs->received = got[1];
	theirs->busy_ns = got[2];
	theirs->cpu_ns = got[3];
	theirs->wall_ns = got[4];
	theirs->own_ns = got[5];
	return 0;
}

static void close_end(struct hca_end *e)
{
	hca_stamper_stop(e);
	hca_queue_serve_end(e);
	e->report->events = e->recv.events + e->send.events;
	bench_hca_qp_destroy(e);
	bench_hca_device_close(e);
	hca_cm_close(e);
}

__attribute__((visibility("default")))
int bench_hca_end(const struct hca_case *c, struct hca_shared *s, enum hca_side side, int fd)
{
	struct hca_end e = {
		.c = c, .s = s, .side = side, .fd = fd, .report = &s->end[side],
	};
	int ret;

	atomic_store(&s->end[side].tid, (int)syscall(SYS_gettid));
	/* Else only who still waits when all is sent needs to be woken, see control.c. */
	if (c->poll_recv != HCA_BUSY && (c->remote || c->mode == HCA_ROUNDTRIP))
		atomic_store(&s->nudge, true);
	ret = (c->plain ? hca_plain_connect(&e) : hca_cm_connect(&e)) ?:
	      hca_buffers_requests(&e) ?: measure(&e) ?: exchange_totals(&e);
	atomic_store(&s->end[side].tid, 0);
	close_end(&e);
	e.report->error = ret;
	if (ret) /* the other end would wait for this one */
		atomic_store(&s->stop, true);
	return ret;
}
