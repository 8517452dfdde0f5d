/* SPDX-License-Identifier: BSD-2-Clause */
/* The middlebox of middlebox.h: two flows (flow.h), and when they go on and end. */
#define LOG_ROOM "iwarp"
#include "transport/iwarp/middlebox.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/run/progress.h"
#include "transport/iwarp/stream.h"
#include "transport/iwarp/flow.h"
#include "util/log.h"

enum { OUT, IN };
enum { STAYS, CLOSES, RESETS };

struct iwarp_middlebox {
	struct list entry;
	struct progress_timer timer;
	int tcp, local;        /* -1: closed */
	uint32_t events[2];    /* watched of `tcp` and `local` */
	bool watched[2];
	uint32_t qpn;
	bool crc;
	struct iwarp_flow flows[2];
	uint64_t parted_ns;    /* since when a partition holds up a flow; 0: none does */
	atomic_bool lost;
	atomic_uint left;      /* changes under middleboxes.lock, with the arming of the timer */
};

static struct {
	pthread_mutex_t lock;
	struct list list;
	bool stopping;         /* iwarp_middleboxes_stop() frees them */
	uint64_t count;        /* since the faults were set: each middlebox has another seed */
} middleboxes = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.list = { &middleboxes.list, &middleboxes.list },
};

/* ---- the end ---- */

static void close_both(struct iwarp_middlebox *r, bool reset)
{
	if (r->tcp < 0)
		return;
	if (r->watched[0])
		progress_unwatch(r->tcp);
	if (r->watched[1])
		progress_unwatch(r->local);
	if (reset)
		iwarp_socket_reset(r->tcp);
	else
		close(r->tcp);
	close(r->local);
	r->tcp = r->local = -1;
	r->watched[0] = r->watched[1] = false;
	iwarp_flow_drop(&r->flows[OUT]);
	iwarp_flow_drop(&r->flows[IN]);
}

static void lose(struct iwarp_middlebox *r)
{
	atomic_store(&r->lost, true);
	close_both(r, true);
}

static void middlebox_free(struct iwarp_middlebox *r)
{
	iwarp_flow_close(&r->flows[OUT]);
	iwarp_flow_close(&r->flows[IN]);
	free(r);
}

/* ---- a turn ---- */

/* TCP gives up a peer that does not answer for so long. True: it would now. */
static bool is_given_up(struct iwarp_middlebox *r, uint64_t now_ns)
{
	const bool parted = iwarp_flow_is_parted(&r->flows[OUT]) ||
			    iwarp_flow_is_parted(&r->flows[IN]);

	if (!parted)
		r->parted_ns = 0;
	else if (!r->parted_ns)
		r->parted_ns = now_ns;
	else if (now_ns - r->parted_ns >= IWARP_SILENT_NS) {
		log_info("qp 0x%x: faults: the partition lasts longer than TCP waits", r->qpn);
		return true;
	}
	return false;
}

static void move(struct iwarp_middlebox *r, uint64_t now_ns)
{
	const unsigned left = atomic_load(&r->left);
	bool goes_on = left != RESETS && !is_given_up(r, now_ns);

	for (unsigned i = 0; i < 2 && goes_on; i++)
		goes_on = iwarp_flow_read(&r->flows[i], left && i == OUT, now_ns) !=
				  IWARP_STEP_LOST &&
			  iwarp_flow_send(&r->flows[i], now_ns) != IWARP_STEP_LOST;
	if (!goes_on)
		lose(r);
	else if (r->flows[OUT].done && (left || r->flows[IN].done))
		close_both(r, false);
}

static void ready(void *arg, uint32_t events);

static int watch(struct iwarp_middlebox *r, unsigned i, uint32_t events)
{
	const int fd = i ? r->local : r->tcp;
	int ret = 0;

	if (events == r->events[i])
		return 0;
	if (r->watched[i])
		ret = progress_rewatch(fd, events);
	else
		ret = progress_watch(fd, events, ready, r);
	r->watched[i] |= !ret;
	r->events[i] = events;
	return ret;
}

static int watch_both(struct iwarp_middlebox *r)
{
	const struct iwarp_flow *out = &r->flows[OUT], *in = &r->flows[IN];
	int ret = watch(r, 0, (iwarp_flow_reads(in) ? EPOLLIN : 0) | (out->blocked ? EPOLLOUT : 0));

	return ret ? ret : watch(r, 1, (iwarp_flow_reads(out) ? EPOLLIN : 0) | (in->blocked ? EPOLLOUT : 0));
}

static uint64_t next_ns(const struct iwarp_middlebox *r)
{
	uint64_t next = MIN(iwarp_flow_next_ns(&r->flows[OUT]), iwarp_flow_next_ns(&r->flows[IN]));

	return r->parted_ns ? MIN(next, r->parted_ns + IWARP_SILENT_NS) : next;
}

static void turn(struct iwarp_middlebox *r)
{
	uint64_t next;
	int ret = 0;

	if (r->tcp >= 0)
		move(r, progress_now_ns());
	if (r->tcp >= 0)
		ret = watch_both(r);
	if (ret) {
		log_error("qp 0x%x: its middlebox cannot be watched: %s", r->qpn, strerror(-ret));
		lose(r);
	}
	next = r->tcp >= 0 ? next_ns(r) : UINT64_MAX;
	if (next != UINT64_MAX)
		progress_timer_hasten(&r->timer, next);
}

/* Frees the middlebox when its stream does not use it any more. */
static void turn_or_end(struct iwarp_middlebox *r)
{
	bool over;

	turn(r);
	pthread_mutex_lock(&middleboxes.lock);
	over = r->tcp < 0 && atomic_load(&r->left) && !middleboxes.stopping;
	if (over)
		list_remove(&r->entry);
	pthread_mutex_unlock(&middleboxes.lock);
	if (!over)
		return;
	progress_timer_cancel(&r->timer);
	middlebox_free(r);
}

static void ready(void *arg, uint32_t events)
{
	(void)events;
	turn_or_end(arg);
}

static void due(struct progress_timer *t)
{
	turn_or_end(container_of(t, struct iwarp_middlebox, timer));
}

/* ---- the beginning ---- */

static void set_flows(struct iwarp_middlebox *r, const struct impair_settings *faults)
{
	const uint64_t seed = 2 * (faults->seed + middleboxes.count++);

	iwarp_flow_set(&r->flows[OUT], &faults->out, seed);
	iwarp_flow_set(&r->flows[IN], &faults->in, seed + 1);
}

static bool open_flows(struct iwarp_middlebox *r, const struct iwarp_middlebox_params *p)
{
	struct iwarp_flow *out = &r->flows[OUT], *in = &r->flows[IN];
	struct iwarp_receiver leaves;

	iwarp_receiver_init(&leaves, p->out_markers, false, NULL);
	leaves.position = p->out_position;
	*out = (struct iwarp_flow){ .from = r->local, .to = r->tcp, .text = "leaves" };
	*in = (struct iwarp_flow){ .from = r->tcp, .to = r->local, .text = "arrives" };
	out->qpn = in->qpn = p->qpn;
	out->crc = in->crc = p->crc;
	if (!iwarp_flow_open(out, &leaves) || !iwarp_flow_open(in, p->in))
		return false;
	out->partial = p->out_partial;
	out->midway = false; /* a marker may be next */
	return true;
}

int iwarp_middlebox_open(const struct iwarp_middlebox_params *p, const struct impair_settings *faults,
		     struct iwarp_middlebox **middlebox)
{
	struct iwarp_middlebox *r = calloc(1, sizeof(*r));
	int fd[2];

	if (!r)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd)) {
		const int ret = -errno;

		free(r);
		return ret;
	}
	r->tcp = p->fd;
	r->local = fd[1];
	r->qpn = p->qpn;
	r->crc = p->crc;
	progress_timer_init(&r->timer, due);
	r->timer.light = true;
	if (!open_flows(r, p)) {
		close(fd[0]);
		close(fd[1]);
		middlebox_free(r);
		return -ENOMEM;
	}
	pthread_mutex_lock(&middleboxes.lock);
	set_flows(r, faults);
	list_push(&middleboxes.list, &r->entry);
	progress_timer_arm(&r->timer, progress_now_ns());
	pthread_mutex_unlock(&middleboxes.lock);
	*middlebox = r;
	return fd[0];
}

/* ---- the stream's side ---- */

bool iwarp_middlebox_lost(const struct iwarp_middlebox *r)
{
	return atomic_load(&r->lost);
}

void iwarp_middlebox_leave(struct iwarp_middlebox *r, bool reset)
{
	pthread_mutex_lock(&middleboxes.lock);
	atomic_store(&r->left, reset ? RESETS : CLOSES);
	progress_timer_arm(&r->timer, progress_now_ns());
	pthread_mutex_unlock(&middleboxes.lock);
}

/* ---- all of them ---- */

unsigned iwarp_middleboxes_set(const struct impair_settings *faults)
{
	unsigned without_crc = 0;

	pthread_mutex_lock(&middleboxes.lock);
	middleboxes.count = 0;
	list_for_each(r, &middleboxes.list, struct iwarp_middlebox, entry) {
		set_flows(r, faults);
		progress_timer_arm(&r->timer, progress_now_ns());
		without_crc += !r->crc;
	}
	pthread_mutex_unlock(&middleboxes.lock);
	return without_crc;
}

/* Without a delay from here on. False: the connection is lost. */
static bool flush(struct iwarp_middlebox *r)
{
	static const struct impair_settings none;
	struct iwarp_flow *w = &r->flows[OUT];
	enum iwarp_step step;

	if (iwarp_flow_is_parted(w))
		return false;
	set_flows(r, &none);
	do {
		step = iwarp_flow_read(w, true, 0);
		if (step == IWARP_STEP_LOST || iwarp_flow_send(w, 0) == IWARP_STEP_LOST)
			return false;
	} while (step == IWARP_STEP_DONE && !w->blocked);
	return w->done;
}

/* It has no more turns. */
static void rest(struct iwarp_middlebox *r)
{
	progress_timer_cancel(&r->timer);
	for (unsigned i = 0; i < 2; i++)
		if (r->watched[i])
			progress_unwatch(i ? r->local : r->tcp);
	/* A turn may have armed it again. */
	progress_timer_cancel(&r->timer);
	r->watched[0] = r->watched[1] = false;
}

void iwarp_middleboxes_stop(void)
{
	struct list all;

	list_init(&all);
	pthread_mutex_lock(&middleboxes.lock);
	list_splice(&all, &middleboxes.list);
	middleboxes.stopping = true;
	pthread_mutex_unlock(&middleboxes.lock);
	list_for_each(r, &all, struct iwarp_middlebox, entry)
		rest(r);
	list_for_each_safe(r, &all, struct iwarp_middlebox, entry) {
		const bool reset = r->tcp >= 0 &&
				   (atomic_load(&r->left) == RESETS || !flush(r));

		close_both(r, reset);
		middlebox_free(r);
	}
	middleboxes.stopping = false;
}

void iwarp_middleboxes_forked(void)
{
	pthread_mutex_init(&middleboxes.lock, NULL);
	list_for_each(r, &middleboxes.list, struct iwarp_middlebox, entry) {
		if (r->tcp >= 0)
			close(r->tcp);
		if (r->local >= 0)
			close(r->local);
		r->tcp = r->local = -1;
	}
	list_init(&middleboxes.list);
}
