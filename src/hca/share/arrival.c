/* SPDX-License-Identifier: BSD-2-Clause */
/* See arrival.h. */
#define LOG_ROOM "hca"
#include "hca/share/arrival.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "hca/host/thread.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

#define ARRIVALS 4
/* More would make each wake-up slower, as the kernel asks all in their order. */
#define SLEEPERS 16
#define WATCHED (EPOLLIN | EPOLLEXCLUSIVE)
/* The place of a sleeper's own descriptor. */
#define OWN UINT64_MAX

/* Two arrivals on the progress thread, with visits of the program in between, that are not further
 * apart make it stand aside. */
#define ASIDE_NS UINT64_C(1000000)
/* Between the two looks of a glance; between glances, a part of the time since it stands aside. */
#define GLANCE_NS UINT64_C(60000)
#define PAUSE_NS UINT64_C(60000)
#define PAUSE_MOST_NS UINT64_C(1000000)
#define PAUSE_PART 16
/* A thread that gets no processor for so long is not waited for any more. */
#define AWAITS_NS UINT64_C(4000000)

struct arrival {
	int fd; /* -1: free place */
	void (*fn)(uint32_t events);
	bool (*leave)(void);
	bool on;
	uint32_t generation; /* distinguishes it from an earlier one in its place */
	unsigned running;    /* threads that slept and now are in fn */
};

atomic_bool hca_arrivals_aside;

static void on_glance(struct progress_timer *t);

static struct {
	pthread_mutex_t lock; /* before the lock of progress.c */
	pthread_cond_t idle;  /* a thread has left an arrival's fn */
	struct arrival at[ARRIVALS];
	int sleepers[SLEEPERS]; /* epoll instances; -1: free place */
	uint64_t aside_ns;      /* since then */
	bool glancing;          /* between the two looks of `glance` */
	uint64_t looks;         /* looks() at the first of them */
	uint64_t cpu_ns;        /* the processor time of `last` then */
	uint64_t looked_ns;     /* when a glance last found that the program had looked */
	uint32_t glance_visits; /* `visits` at the first look of the last glance */
	struct progress_timer glance;

	/* By the progress thread alone: its last arrival, and `visits` at that time. */
	uint64_t seen_ns;
	uint32_t seen_visits;

	/* The thread that left its sleep last: its number and its processor time. */
	_Atomic pid_t last;
	_Atomic clockid_t last_clock;
	atomic_uint asleep; /* threads in hca_sleeper_wait() */
	atomic_uint visits; /* how often one has left it, or found an event without it */
} arrivals = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.at = { [0 ... ARRIVALS - 1] = { .fd = -1 } },
	.sleepers = { [0 ... SLEEPERS - 1] = -1 },
	.glance = { .timer.entry = { &arrivals.glance.timer.entry,
				     &arrivals.glance.timer.entry },
		    .fn = on_glance, .light = true },
};

/* ---- the kernel's queue of those that it may wake ---- */

/* lock is held, as for the following. 0 or a negative errno. */
static int sleeper_add(int sleeper, const struct arrival *a)
{
	struct epoll_event ev = { .events = WATCHED };

	/* The eventfd stays readable; each write of it is an arrival. The sockets are readable as
	 * long as packets are in them. */
	if (a->fd == hca_process.kick_fd)
		ev.events |= EPOLLET;
	ev.data.u64 = (uint64_t)a->generation << 32 | (uint64_t)(a - arrivals.at);
	return epoll_ctl(sleeper, EPOLL_CTL_ADD, a->fd, &ev) ? -errno : 0;
}

static void sleeper_remove(int sleeper, const struct arrival *a)
{
	epoll_ctl(sleeper, EPOLL_CTL_DEL, a->fd, NULL);
}

/* The progress thread leaves the queue, or (again) takes the last place, if it watches. If `fd` is
 * readable, it is woken. */
static int leave_queue(const struct arrival *a)
{
	return progress_rewatch(a->fd, 0);
}

static int take_last_place(const struct arrival *a)
{
	int ret = leave_queue(a);

	return ret || !a->on || hca_arrival_aside() ? ret : progress_rewatch(a->fd, WATCHED);
}

/* Of all sleepers. */
static int sleepers_set(const struct arrival *a, bool on)
{
	int ret = 0;

	for (unsigned i = 0; i < SLEEPERS && !ret; i++)
		if (arrivals.sleepers[i] >= 0 && on)
			ret = sleeper_add(arrivals.sleepers[i], a);
		else if (arrivals.sleepers[i] >= 0)
			sleeper_remove(arrivals.sleepers[i], a);
	return ret;
}

/* ---- standing aside ---- */

/* Grows whenever the program polls, or asks for events. */
static uint64_t looks(void)
{
	return atomic_load_explicit(&hca_process.polls, memory_order_relaxed) +
	       atomic_load(&arrivals.visits);
}

static uint64_t next_glance_ns(uint64_t now_ns)
{
	if (arrivals.glancing)
		return now_ns + GLANCE_NS;
	return now_ns +
	       MIN(MAX((now_ns - arrivals.aside_ns) / PAUSE_PART, PAUSE_NS), PAUSE_MOST_NS);
}

/* lock is held. */
static void set_aside(bool aside)
{
	uint64_t now = progress_now_ns();

	atomic_store(&hca_arrivals_aside, aside);
	arrivals.glancing = false;
	for (struct arrival *a = arrivals.at; a < arrivals.at + ARRIVALS; a++) {
		int ret = a->fd >= 0 ? take_last_place(a) : 0;

		if (ret)
			log_error("messages may wait for polls, as their descriptor cannot be watched: %s",
				  strerror(-ret));
	}
	arrivals.aside_ns = now;
	if (aside) {
		arrivals.glance_visits = atomic_load(&arrivals.visits) - 1;
		progress_timer_arm(&arrivals.glance, next_glance_ns(now));
	}
}

static uint64_t last_cpu_ns(void)
{
	clockid_t of = atomic_load(&arrivals.last_clock);
	struct timespec t;

	return of && !clock_gettime(of, &t) ? timespec_to_ns(t) : 0;
}

/* Between the two looks: has the thread that was woken last hardly run, because others have the
 * processors? It looks when it gets one. */
static bool awaits_processor(void)
{
	return last_cpu_ns() - arrivals.cpu_ns < GLANCE_NS / 2 &&
	       progress_now_ns() - arrivals.looked_ns < AWAITS_NS &&
	       hca_thread_is_ready(atomic_load(&arrivals.last));
}

/* Messages wait if no thread of the program sleeps here and none looks. Where one has slept since
 * the last glance nothing happens, so there is no use in further glances either. */
static bool is_needed(void)
{
	bool asleep = atomic_load(&arrivals.asleep) > 0;
	uint32_t visits = atomic_load(&arrivals.visits);

	if (asleep || looks() != arrivals.looks)
		arrivals.looked_ns = progress_now_ns();
	else if (arrivals.glancing)
		return !awaits_processor();
	if (arrivals.glancing)
		return false;
	if (asleep && visits == arrivals.glance_visits)
		return true;
	arrivals.glance_visits = visits;
	return false;
}

static void on_glance(struct progress_timer *t)
{
	pthread_mutex_lock(&arrivals.lock);
	if (!hca_arrival_aside()) {
		/* It was removed with the last arrival descriptor. */
	} else if (is_needed()) {
		set_aside(false);
		/* The program may have left acknowledgements for its next call. */
		hca_attention_hand_over();
	} else {
		arrivals.glancing = !arrivals.glancing;
		arrivals.looks = looks();
		arrivals.cpu_ns = last_cpu_ns();
		progress_timer_arm(t, next_glance_ns(progress_now_ns()));
	}
	pthread_mutex_unlock(&arrivals.lock);
}

/* On the progress thread, which was woken for a message although the program asks for events. */
static void consider_aside(void)
{
	uint32_t visits = atomic_load(&arrivals.visits);
	uint64_t now = progress_now_ns();

	if (visits != arrivals.seen_visits && now - arrivals.seen_ns < ASIDE_NS) {
		pthread_mutex_lock(&arrivals.lock);
		if (!hca_arrival_aside())
			set_aside(true);
		pthread_mutex_unlock(&arrivals.lock);
	}
	arrivals.seen_visits = visits;
	arrivals.seen_ns = now;
}

static void on_progress_thread(void *arg, uint32_t events)
{
	struct arrival *a = arg;

	if (atomic_load(&arrivals.visits) != arrivals.seen_visits)
		consider_aside();
	a->fn(events);
}

/* ---- arrival descriptors ---- */

/* lock is held. NULL: there is none. */
static struct arrival *find(int fd)
{
	for (struct arrival *a = arrivals.at; a < arrivals.at + ARRIVALS; a++)
		if (a->fd == fd)
			return a;
	return NULL;
}

int hca_arrival_watch(int fd, void (*fn)(uint32_t events))
{
	struct arrival *a;
	int ret = -ENOSPC;

	pthread_mutex_lock(&arrivals.lock);
	a = find(-1);
	if (a) {
		a->fd = fd;
		a->fn = fn;
		a->leave = NULL;
		a->on = true;
		a->generation++;
		ret = sleepers_set(a, true);
		if (!ret)
			ret = progress_watch(fd, WATCHED, on_progress_thread, a);
		if (!ret && hca_arrival_aside())
			ret = leave_queue(a);
		if (ret) {
			sleepers_set(a, false);
			a->fd = -1;
		}
	}
	pthread_mutex_unlock(&arrivals.lock);
	return ret;
}

/* Not while threads of the program sleep: then on_progress_thread() finds out whether the progress
 * thread is to stand aside. */
static bool leaves(void *arg)
{
	const struct arrival *a = arg;

	return atomic_load(&arrivals.visits) == arrivals.seen_visits && a->leave();
}

void hca_arrival_set_leave(int fd, bool (*leave)(void))
{
	struct arrival *a;

	pthread_mutex_lock(&arrivals.lock);
	a = find(fd);
	if (a) {
		a->leave = leave;
		progress_set_leave(fd, leaves);
	}
	pthread_mutex_unlock(&arrivals.lock);
}

int hca_arrival_rewatch(int fd, bool on)
{
	struct arrival *a;
	int ret = -ENOENT;

	pthread_mutex_lock(&arrivals.lock);
	a = find(fd);
	if (a && a->on != on) {
		a->on = on;
		ret = sleepers_set(a, on);
		if (!ret)
			ret = take_last_place(a);
	} else if (a) {
		ret = 0;
	}
	pthread_mutex_unlock(&arrivals.lock);
	return ret;
}

void hca_arrival_unwatch(int fd)
{
	struct arrival *a;

	pthread_mutex_lock(&arrivals.lock);
	a = find(fd);
	if (a) {
		sleepers_set(a, false);
		a->fd = -1;
		a->generation++;
		while (a->running)
			pthread_cond_wait(&arrivals.idle, &arrivals.lock);
	}
	if (fd == hca_process.kick_fd)
		atomic_store(&hca_arrivals_aside, false);
	pthread_mutex_unlock(&arrivals.lock);
	progress_unwatch(fd);
	if (fd == hca_process.kick_fd)
		progress_timer_cancel(&arrivals.glance);
}

void hca_arrival_forked(void)
{
	pthread_mutex_init(&arrivals.lock, NULL);
	pthread_cond_init(&arrivals.idle, NULL);
	for (struct arrival *a = arrivals.at; a < arrivals.at + ARRIVALS; a++) {
		a->fd = -1;
		a->running = 0;
	}
	/* They are the parent's: a thread that slept there would take its wake-ups. */
	for (unsigned i = 0; i < SLEEPERS; i++) {
		if (arrivals.sleepers[i] >= 0)
			close(arrivals.sleepers[i]);
		arrivals.sleepers[i] = -1;
	}
	atomic_store(&hca_arrivals_aside, false);
	atomic_store(&arrivals.asleep, 0);
	progress_timer_init(&arrivals.glance, on_glance);
	arrivals.glance.light = true;
}

/* ---- sleepers ---- */

/* lock is held. The sleeper's own descriptor and all arrival descriptors; then the progress thread
 * goes behind it. */
static int sleeper_fill(int sleeper, int own_fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = OWN };
	int ret = epoll_ctl(sleeper, EPOLL_CTL_ADD, own_fd, &ev) ? -errno : 0;

	for (struct arrival *a = arrivals.at; a < arrivals.at + ARRIVALS && !ret; a++) {
		if (a->fd < 0 || !a->on)
			continue;
		ret = sleeper_add(sleeper, a);
		if (!ret)
			ret = take_last_place(a);
	}
	return ret;
}

int hca_sleeper_open(int own_fd)
{
	int fd, ret, place = 0;

	pthread_mutex_lock(&arrivals.lock);
	while (place < SLEEPERS && arrivals.sleepers[place] >= 0)
		place++;
	ret = -ENOSPC;
	if (place == SLEEPERS)
		goto out;
	fd = epoll_create1(EPOLL_CLOEXEC);
	ret = fd < 0 ? -errno : sleeper_fill(fd, own_fd);
	if (ret && fd >= 0)
		close(fd);
	else if (!ret)
		arrivals.sleepers[place] = fd;
out:
	pthread_mutex_unlock(&arrivals.lock);
	return ret ? ret : place;
}

void hca_sleeper_close(int sleeper)
{
	pthread_mutex_lock(&arrivals.lock);
	/* A thread that sleeps there keeps the epoll instance, which must not take wake-ups. */
	for (struct arrival *a = arrivals.at; a < arrivals.at + ARRIVALS; a++)
		if (a->fd >= 0)
			sleeper_remove(arrivals.sleepers[sleeper], a);
	close(arrivals.sleepers[sleeper]);
	arrivals.sleepers[sleeper] = -1;
	pthread_mutex_unlock(&arrivals.lock);
}

/* On a thread that slept; inside of hca_enter(). */
static void run(uint64_t data, uint32_t events)
{
	struct arrival *a = &arrivals.at[data & UINT32_MAX];
	void (*fn)(uint32_t) = NULL;

	pthread_mutex_lock(&arrivals.lock);
	if (a->fd >= 0 && a->generation == (uint32_t)(data >> 32)) {
		fn = a->fn;
		a->running++;
	}
	pthread_mutex_unlock(&arrivals.lock);
	if (!fn)
		return;
	fn(events);
	pthread_mutex_lock(&arrivals.lock);
	if (--a->running == 0)
		pthread_cond_broadcast(&arrivals.idle);
	pthread_mutex_unlock(&arrivals.lock);
}

static __attribute__((noinline)) void become_last(void)
{
	clockid_t clock;

	if (pthread_getcpuclockid(pthread_self(), &clock))
		clock = 0;
	atomic_store(&arrivals.last_clock, clock);
	atomic_store(&arrivals.last, hca_thread_number());
}

static void leave_sleep(void)
{
	if (unlikely(atomic_load_explicit(&arrivals.last, memory_order_relaxed) !=
		     hca_thread_number()))
		become_last();
	atomic_fetch_add(&arrivals.visits, 1);
	atomic_fetch_sub(&arrivals.asleep, 1);
}

/* The thread may have been woken for messages that it does not move now. */
static void on_cancelled(void *arg)
{
	(void)arg;
	leave_sleep();
	hca_attention_hand_over();
}

void hca_sleeper_visit(void)
{
	atomic_fetch_add_explicit(&arrivals.visits, 1, memory_order_relaxed);
}

/* What was left for a reply of the program is done before it sleeps. */
static void settle(void)
{
	CANCEL_OFF;

	hca_enter();
	hca_transports_settle();
	hca_leave();
}

int hca_sleeper_wait(int sleeper, struct hca_channel *for_events_of)
{
	struct epoll_event events[1 + ARRIVALS];
	int n, ret;

	settle();
	atomic_fetch_add(&arrivals.asleep, 1);
	pthread_cleanup_push(on_cancelled, NULL);
	n = epoll_wait(arrivals.sleepers[sleeper], events, 1 + ARRIVALS, -1);
	ret = n < 0 ? -errno : 0;
	pthread_cleanup_pop(0);
	leave_sleep();
	if (ret)
		return ret;

	CANCEL_OFF;

	hca_self.waits_for = for_events_of;
	for (int i = 0; i < n; i++) {
		if (events[i].data.u64 == OWN)
			continue;
		hca_enter();
		run(events[i].data.u64, events[i].events);
		hca_self.looked = true;
		hca_leave();
	}
	hca_self.waits_for = NULL;
	return 0;
}
