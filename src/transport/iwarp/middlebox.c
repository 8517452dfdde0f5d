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
	pthread_cond_t fewer;  /* iwarp_middleboxes_stop() waits until there are none */
	struct list list;
	bool stopping;         /* each one ends with its next turn */
	uint64_t count;        /* since the faults were set: each middlebox has another seed */
} middleboxes = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.fewer = PTHREAD_COND_INITIALIZER,
	.list = { &middleboxes.list, &middleboxes.list },
};

/* ---- the end ---- */

static void close_both(struct iwarp_middlebox *m, bool reset)
{
	const int tcp = m->tcp, local = m->local;

	if (tcp < 0)
		return;
	if (m->watched[0])
		progress_unwatch(tcp);
	if (m->watched[1])
		progress_unwatch(local);
	/* First: a child that is forked now closes what it finds here. */
	m->tcp = m->local = -1;
	if (reset)
		iwarp_socket_reset(tcp);
	else
		close(tcp);
	/* The stream learns it also while a child that has run no handlers of fork() has the socket. */
	shutdown(local, SHUT_RDWR);
	close(local);
	m->watched[0] = m->watched[1] = false;
	iwarp_flow_drop(&m->flows[OUT]);
	iwarp_flow_drop(&m->flows[IN]);
}

static void lose(struct iwarp_middlebox *m)
{
	atomic_store(&m->lost, true);
	close_both(m, true);
}

static void middlebox_free(struct iwarp_middlebox *m)
{
	iwarp_flow_close(&m->flows[OUT]);
	iwarp_flow_close(&m->flows[IN]);
	free(m);
}

/* ---- a turn ---- */

/* TCP gives up a peer that does not answer for so long. True: it would now. */
static bool is_given_up(struct iwarp_middlebox *m, uint64_t now_ns)
{
	const bool parted = iwarp_flow_is_parted(&m->flows[OUT]) ||
			    iwarp_flow_is_parted(&m->flows[IN]);

	if (!parted)
		m->parted_ns = 0;
	else if (!m->parted_ns)
		m->parted_ns = now_ns;
	else if (now_ns - m->parted_ns >= IWARP_SILENT_NS) {
		log_info("qp 0x%x: faults: the partition lasts longer than TCP waits", m->qpn);
		return true;
	}
	return false;
}

static void move(struct iwarp_middlebox *m, uint64_t now_ns)
{
	const unsigned left = atomic_load(&m->left);
	bool goes_on = left != RESETS && !is_given_up(m, now_ns);

	for (unsigned i = 0; i < 2 && goes_on; i++)
		goes_on = iwarp_flow_read(&m->flows[i], left && i == OUT, now_ns) !=
				  IWARP_STEP_LOST &&
			  iwarp_flow_send(&m->flows[i], now_ns) != IWARP_STEP_LOST;
	/* The stream takes the end as a loss then, behind what has come. */
	if (m->flows[OUT].gone)
		atomic_store(&m->lost, true);
	if (!goes_on)
		lose(m);
	else if (m->flows[OUT].done && (left || m->flows[IN].done))
		close_both(m, false);
}

static void ready(void *arg, uint32_t events);

static int watch(struct iwarp_middlebox *m, unsigned i, uint32_t events)
{
	const int fd = i ? m->local : m->tcp;
	int ret = 0;

	if (events == m->events[i])
		return 0;
	if (m->watched[i])
		ret = progress_rewatch(fd, events);
	else
		ret = progress_watch(fd, events, ready, m);
	m->watched[i] |= !ret;
	m->events[i] = events;
	return ret;
}

/* Of the socket where one flow comes from and the other one goes to. */
static uint32_t events_of(const struct iwarp_flow *from, const struct iwarp_flow *to)
{
	return (iwarp_flow_reads(from) ? EPOLLIN : 0) | (to->blocked ? EPOLLOUT : 0);
}

static int watch_both(struct iwarp_middlebox *m)
{
	const int ret = watch(m, 0, events_of(&m->flows[IN], &m->flows[OUT]));

	return ret ? ret : watch(m, 1, events_of(&m->flows[OUT], &m->flows[IN]));
}

static uint64_t next_ns(const struct iwarp_middlebox *m)
{
	uint64_t next = MIN(iwarp_flow_next_ns(&m->flows[OUT]), iwarp_flow_next_ns(&m->flows[IN]));

	return m->parted_ns ? MIN(next, m->parted_ns + IWARP_SILENT_NS) : next;
}

static void turn(struct iwarp_middlebox *m)
{
	uint64_t next;
	int ret = 0;

	if (m->tcp >= 0)
		move(m, progress_now_ns());
	if (m->tcp >= 0)
		ret = watch_both(m);
	if (ret) {
		log_error("qp 0x%x: its middlebox cannot be watched: %s", m->qpn, strerror(-ret));
		lose(m);
	}
	next = m->tcp >= 0 ? next_ns(m) : UINT64_MAX;
	if (next != UINT64_MAX)
		progress_timer_hasten(&m->timer, next);
}

static void set_flows(struct iwarp_middlebox *m, const struct impair_settings *faults)
{
	const uint64_t seed = 2 * (faults->seed + middleboxes.count++);

	iwarp_flow_set(&m->flows[OUT], &faults->out, seed);
	iwarp_flow_set(&m->flows[IN], &faults->in, seed + 1);
}

/* The device closes. What the stream has sent leaves without a delay, as far as TCP takes it. False:
 * not all of it does. */
static bool flush(struct iwarp_middlebox *m)
{
	static const struct impair_settings none;
	struct iwarp_flow *out = &m->flows[OUT];

	if (iwarp_flow_is_parted(out))
		return false;
	set_flows(m, &none);
	while (!out->done && !out->blocked)
		if (iwarp_flow_read(out, true, 0) == IWARP_STEP_LOST ||
		    iwarp_flow_send(out, 0) == IWARP_STEP_LOST)
			return false;
	return out->done;
}

/* Frees the middlebox when its stream does not use it any more. */
static void turn_or_end(struct iwarp_middlebox *m)
{
	pthread_mutex_lock(&middleboxes.lock);
	if (!middleboxes.stopping) {
		pthread_mutex_unlock(&middleboxes.lock);
		turn(m);
		pthread_mutex_lock(&middleboxes.lock);
	} else if (m->tcp >= 0) {
		close_both(m, atomic_load(&m->left) == RESETS || !flush(m));
	}
	if (m->tcp < 0 && atomic_load(&m->left)) {
		progress_timer_cancel(&m->timer);
		list_remove(&m->entry);
		middlebox_free(m);
		pthread_cond_signal(&middleboxes.fewer);
	}
	pthread_mutex_unlock(&middleboxes.lock);
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

static bool open_flows(struct iwarp_middlebox *m, const struct iwarp_middlebox_params *p)
{
	struct iwarp_flow *out = &m->flows[OUT], *in = &m->flows[IN];
	struct iwarp_receiver leaves;

	iwarp_receiver_init(&leaves, p->out_markers, false, NULL);
	leaves.position = p->out_position;
	*out = (struct iwarp_flow){ .from = m->local, .to = m->tcp, .text = "leaves" };
	*in = (struct iwarp_flow){ .from = m->tcp, .to = m->local, .text = "arrives" };
	out->qpn = in->qpn = p->qpn;
	out->crc = in->crc = p->crc;
	if (!iwarp_flow_open(out, &leaves) || !iwarp_flow_open(in, p->in))
		return false;
	out->partial = p->out_partial;
	out->midway = false; /* a marker may be next */
	return true;
}

int iwarp_middlebox_open(const struct iwarp_middlebox_params *p,
			 const struct impair_settings *faults,
			 struct iwarp_middlebox **middlebox)
{
	struct iwarp_middlebox *m = calloc(1, sizeof(*m));
	int fd[2];

	if (!m)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd)) {
		const int ret = -errno;

		free(m);
		return ret;
	}
	m->tcp = p->fd;
	m->local = fd[1];
	m->qpn = p->qpn;
	m->crc = p->crc;
	progress_timer_init(&m->timer, due);
	m->timer.light = true;
	if (!open_flows(m, p)) {
		close(fd[0]);
		close(fd[1]);
		middlebox_free(m);
		return -ENOMEM;
	}
	pthread_mutex_lock(&middleboxes.lock);
	set_flows(m, faults);
	list_push(&middleboxes.list, &m->entry);
	progress_timer_arm(&m->timer, progress_now_ns());
	pthread_mutex_unlock(&middleboxes.lock);
	*middlebox = m;
	return fd[0];
}

/* ---- the stream's side ---- */

bool iwarp_middlebox_lost(const struct iwarp_middlebox *m)
{
	return atomic_load(&m->lost);
}

void iwarp_middlebox_leave(struct iwarp_middlebox *m, bool reset)
{
	pthread_mutex_lock(&middleboxes.lock);
	atomic_store(&m->left, reset ? RESETS : CLOSES);
	progress_timer_arm(&m->timer, progress_now_ns());
	pthread_mutex_unlock(&middleboxes.lock);
}

/* ---- all of them ---- */

unsigned iwarp_middleboxes_set(const struct impair_settings *faults)
{
	unsigned without_crc = 0;

	pthread_mutex_lock(&middleboxes.lock);
	middleboxes.count = 0;
	list_for_each(m, &middleboxes.list, struct iwarp_middlebox, entry) {
		set_flows(m, faults);
		progress_timer_arm(&m->timer, progress_now_ns());
		without_crc += !m->crc;
	}
	pthread_mutex_unlock(&middleboxes.lock);
	return without_crc;
}

void iwarp_middleboxes_stop(void)
{
	pthread_mutex_lock(&middleboxes.lock);
	middleboxes.stopping = true;
	list_for_each(m, &middleboxes.list, struct iwarp_middlebox, entry)
		progress_timer_arm(&m->timer, progress_now_ns());
	while (!list_empty(&middleboxes.list))
		pthread_cond_wait(&middleboxes.fewer, &middleboxes.lock);
	middleboxes.stopping = false;
	pthread_mutex_unlock(&middleboxes.lock);
}

void iwarp_middleboxes_forked(void)
{
	pthread_mutex_init(&middleboxes.lock, NULL);
	pthread_cond_init(&middleboxes.fewer, NULL);
	middleboxes.stopping = false;
	list_for_each(m, &middleboxes.list, struct iwarp_middlebox, entry) {
		if (m->tcp >= 0)
			close(m->tcp);
		if (m->local >= 0)
			close(m->local);
		m->tcp = m->local = -1;
	}
	list_init(&middleboxes.list);
}
