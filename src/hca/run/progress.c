/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The progress thread: descriptors, timers, and moving messages while the
 * application does not poll. See progress.h for the rules of its callers, and process.h for
 * the thread that moves messages.
 */
#define LOG_ROOM "hca"
#include "hca/run/progress.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hca/run/elide.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/library_thread.h"
#include "util/log.h"
#include "util/wakeup.h"

/* A timer that is later than this is also run by polling threads. */
#define OVERDUE_NS 50000
/* Stack of the thread. Not the usual 8 MiB, because mlockall() would allocate all of it. */
#define STACK_BYTES ((size_t)1 << 20)
#define SLICE_NS 100000 /* the shortest that there is */

/* The kinds of timers (struct progress_timer), each with a wheel. */
enum { ORDINARY, BY_POLLERS, LIGHT, WHEELS };

struct watch {
	void (*fn)(void *arg, uint32_t events);
	bool (*leave)(void *arg); /* progress_set_leave(); NULL: none */
	void *arg;
	uint32_t generation; /* distinguishes a descriptor from an earlier one with its number */
	bool idle; /* it is not in the epoll set, see progress_rewatch() */
};

static struct {
	pthread_mutex_t life; /* progress_hold() and progress_release() */
	unsigned users;
	pthread_t thread;

	pthread_mutex_t lock; /* protects all members below, except run_lock */
	pthread_cond_t idle;  /* a callback ended */
	struct watch *watches; /* indexed by descriptor */
	int watch_count;
	uint32_t generation;
	int running_fd;       /* descriptor whose callback runs, -1: none */
	struct progress_timer *running_timer;
	struct wheel wheels[WHEELS];
	/* First deadline in wheels[BY_POLLERS], UINT64_MAX: none. */
	_Atomic uint64_t next_due_ns;
	pthread_mutex_t run_lock; /* held while timers are run */
	uint64_t sleeping_until_ns;
	bool stop;
	int epoll_fd, wake_fd;
	int (*_Atomic tick)(void);   /* progress_set_tick() */
} progress = {
	.life = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.run_lock = PTHREAD_MUTEX_INITIALIZER,
	.next_due_ns = UINT64_MAX,
	.running_fd = -1,
	.epoll_fd = -1,
	.wake_fd = -1,
};

void progress_kick(void)
{
	int ret = wakeup_post(progress.wake_fd);

	if (ret)
		log_debug("progress wake-up failed: %s", strerror(-ret));
}

static int fd_of(const struct epoll_event *e)
{
	return (int)(uint32_t)e->data.u64;
}

/* The watch that an event is for; NULL: it has ended. lock is held. */
static struct watch *watch_of(const struct epoll_event *e)
{
	int fd = fd_of(e);

	return fd < progress.watch_count && progress.watches[fd].fn &&
			       progress.watches[fd].generation == (uint32_t)(e->data.u64 >> 32) ?
		       &progress.watches[fd] : NULL;
}

static void run_watch(const struct epoll_event *e)
{
	struct watch *found, w;

	pthread_mutex_lock(&progress.lock);
	found = watch_of(e);
	if (!found) {
		pthread_mutex_unlock(&progress.lock);
		return;
	}
	w = *found;
	progress.running_fd = fd_of(e);
	pthread_mutex_unlock(&progress.lock);
	w.fn(w.arg, e->events);
	pthread_mutex_lock(&progress.lock);
	progress.running_fd = -1;
	pthread_cond_broadcast(&progress.idle);
	pthread_mutex_unlock(&progress.lock);
}

static struct wheel *wheel_of(const struct progress_timer *t)
{
	return &progress.wheels[t->light ? LIGHT : t->by_pollers ? BY_POLLERS : ORDINARY];
}

/* After each change of the wheels; lock is held. */
static void note_next_due(void)
{
	atomic_store_explicit(&progress.next_due_ns,
			      wheel_next_ns(&progress.wheels[BY_POLLERS]),
			      memory_order_relaxed);
}

/* Removes the next timer of `wheel` that is due; NULL: there is none. lock is held. */
static struct progress_timer *take_due(struct wheel *wheel, uint64_t now_ns)
{
	struct wheel_timer *t = wheel_expire(wheel, now_ns);

	note_next_due();
	return t ? container_of(t, struct progress_timer, timer) : NULL;
}

/* Runs the timers of `wheel` that are due now. run_lock is held. */
static void run_timers(struct wheel *wheel)
{
	uint64_t now = progress_now_ns();
	struct progress_timer *t;

	pthread_mutex_lock(&progress.lock);
	while ((t = take_due(wheel, now))) {
		progress.running_timer = t;
		pthread_mutex_unlock(&progress.lock);
		t->fn(t);
		pthread_mutex_lock(&progress.lock);
		progress.running_timer = NULL;
		pthread_cond_broadcast(&progress.idle);
	}
	pthread_mutex_unlock(&progress.lock);
}

static void run_timers_here(void)
{
	CANCEL_OFF;

	run_timers(&progress.wheels[BY_POLLERS]);
}

/*
 * Threads of a program may poll on every processor, perhaps at a real-time priority, so
 * that the progress thread does not run. Then polling threads run its timers.
 */
void progress_run_overdue(void)
{
	if (likely(atomic_load_explicit(&progress.next_due_ns,
					memory_order_relaxed) == UINT64_MAX) ||
	    progress_now_ns() <
		    atomic_load_explicit(&progress.next_due_ns,
					 memory_order_relaxed) + OVERDUE_NS ||
	    pthread_mutex_trylock(&progress.run_lock))
		return;
	run_timers_here();
	pthread_mutex_unlock(&progress.run_lock);
}

/* The first deadline of the timers that are run inside of hca_enter(). lock is held. */
static uint64_t next_inside_ns(void)
{
	return MIN(wheel_next_ns(&progress.wheels[ORDINARY]),
		   wheel_next_ns(&progress.wheels[BY_POLLERS]));
}

/* The time to sleep: until the next timer, but at most until `until_ns` (UINT64_MAX: no limit).
 * UINT64_MAX: until woken. */
static uint64_t sleep_ns(uint64_t until_ns)
{
	uint64_t now = progress_now_ns();

	pthread_mutex_lock(&progress.lock);
	until_ns = MIN(until_ns, MIN(next_inside_ns(),
				     wheel_next_ns(&progress.wheels[LIGHT])));
	progress.sleeping_until_ns = until_ns;
	pthread_mutex_unlock(&progress.lock);
	if (until_ns == UINT64_MAX)
		return UINT64_MAX;
	return until_ns > now ? until_ns - now : 0;
}

/* Runs the light timers. Is anything else due? */
static bool run_light(uint64_t until_ns)
{
	uint64_t now;

	pthread_mutex_lock(&progress.run_lock);
	run_timers(&progress.wheels[LIGHT]);
	pthread_mutex_unlock(&progress.run_lock);
	now = progress_now_ns();
	pthread_mutex_lock(&progress.lock);
	until_ns = MIN(until_ns, next_inside_ns());
	pthread_mutex_unlock(&progress.lock);
	return until_ns <= now;
}

/* epoll_wait with nanoseconds; milliseconds, rounded up, on old kernels. */
static int wait_events(struct epoll_event *events, int max, uint64_t wait_ns)
{
	struct timespec t = timespec_from_ns(wait_ns);
	int n = epoll_pwait2(progress.epoll_fd, events, max,
			     wait_ns == UINT64_MAX ? NULL : &t, NULL);

	if (n < 0 && errno == ENOSYS)
		n = epoll_wait(progress.epoll_fd, events, max,
			       wait_ns == UINT64_MAX ?
				       -1 :
				       (int)((wait_ns + 999999) / 1000000));
	return n;
}

/* Runs the tick. Returns when the next one is due; UINT64_MAX: only after an event. */
static uint64_t tick(void)
{
	int (*fn)(void) = atomic_load(&progress.tick);
	int wait_ms = fn ? fn() : -1;

	return wait_ms < 0 ? UINT64_MAX :
			     progress_now_ns() + (uint64_t)wait_ms * 1000000;
}

void progress_set_tick(int (*fn)(void))
{
	atomic_store(&progress.tick, fn);
}

/* The thread is woken for short work, while other threads may poll and compute on all processors.
 * With a short time slice the kernel (since Linux 6.12) runs it at once, instead of after the
 * slices of these, which take milliseconds. Earlier kernels ignore the setting. */
static void ask_for_short_slices(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} attr = { .size = sizeof(attr) };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) || attr.policy != SCHED_OTHER)
		return;
	attr.runtime_ns = SLICE_NS;
	if (syscall(SYS_sched_setattr, 0, &attr, 0))
		log_debug("the progress thread has a usual time slice: %m");
}

static bool stopping(void)
{
	bool stop;

	pthread_mutex_lock(&progress.lock);
	stop = progress.stop;
	pthread_mutex_unlock(&progress.lock);
	return stop;
}

static bool is_any_due_inside(void)
{
	bool due;

	pthread_mutex_lock(&progress.lock);
	due = next_inside_ns() <= progress_now_ns();
	pthread_mutex_unlock(&progress.lock);
	return due;
}

/* Removes the events that other threads are about to handle; returns the number of those that are
 * left. */
static int leave_out(struct epoll_event *events, int n)
{
	int left = 0;

	pthread_mutex_lock(&progress.lock);
	for (int i = 0; i < n; i++) {
		const struct watch *w = watch_of(&events[i]);

		if (!w || !w->leave || !w->leave(w->arg))
			events[left++] = events[i];
	}
	pthread_mutex_unlock(&progress.lock);
	return left;
}

/* Handles events and timers. Entering takes long where a thread of the program is inside and has
 * lost its processor, so it is left out if there is nothing to do inside. */
static void handle(struct epoll_event *events, int n)
{
	int left = leave_out(events, n);
	bool inside = false;

	for (int i = 0; i < left; i++)
		if (fd_of(&events[i]) == progress.wake_fd)
			wakeup_drain(progress.wake_fd);
		else
			inside = true;
	if (!inside && !is_any_due_inside()) {
		if (left < n)
			hca_make_way(0);
		return;
	}
	hca_enter();
	for (int i = 0; i < left; i++)
		if (fd_of(&events[i]) != progress.wake_fd)
			run_watch(&events[i]);
	pthread_mutex_lock(&progress.run_lock);
	run_timers(&progress.wheels[ORDINARY]);
	run_timers(&progress.wheels[BY_POLLERS]);
	pthread_mutex_unlock(&progress.run_lock);
	hca_leave();
}

static void *progress_main(void *arg)
{
	struct epoll_event events[32];

	progress_self_begin();
	pthread_setname_np(pthread_self(), "busbar-progress");
	ask_for_short_slices();
	/* Its shortest timers are of 20 µs; usually the kernel adds up to 50. */
	prctl(PR_SET_TIMERSLACK, 1000UL);
	while (!stopping()) {
		uint64_t until_ns = tick();
		int n;

		do {
			n = wait_events(events, ARRAY_SIZE(events), sleep_ns(until_ns));
		} while (!run_light(until_ns) && n == 0);
		handle(events, n);
	}
	return NULL;
}

static int progress_start(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	pthread_attr_t attr;
	int ret;

	progress.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (progress.epoll_fd < 0)
		return -errno;
	progress.wake_fd = wakeup_open_signal();
	if (progress.wake_fd < 0) {
		ret = progress.wake_fd;
		goto err_epoll;
	}
	ev.data.u64 = (uint32_t)progress.wake_fd;
	if (epoll_ctl(progress.epoll_fd, EPOLL_CTL_ADD, progress.wake_fd, &ev)) {
		ret = -errno;
		goto err_wake;
	}
	for (unsigned i = 0; i < WHEELS; i++)
		wheel_init(&progress.wheels[i], progress_now_ns());
	note_next_due();
	progress.stop = false;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	ret = library_thread_start(&progress.thread, &attr, progress_main, NULL);
	pthread_attr_destroy(&attr);
	if (ret)
		goto err_wake;
	return 0;

err_wake:
	close(progress.wake_fd);
err_epoll:
	close(progress.epoll_fd);
	progress.epoll_fd = progress.wake_fd = -1;
	return ret;
}

int progress_hold(void)
{
	int ret = 0;

	clock_init();
	pthread_mutex_lock(&progress.life);
	if (progress.users == 0)
		ret = progress_start();
	if (!ret)
		progress.users++;
	pthread_mutex_unlock(&progress.life);
	return ret;
}

void progress_release(void)
{
	pthread_mutex_lock(&progress.life);
	if (--progress.users == 0) {
		pthread_mutex_lock(&progress.lock);
		progress.stop = true;
		pthread_mutex_unlock(&progress.lock);
		progress_kick();
		pthread_join(progress.thread, NULL);
		close(progress.wake_fd);
		close(progress.epoll_fd);
		progress.epoll_fd = progress.wake_fd = -1;
		free(progress.watches);
		progress.watches = NULL;
		progress.watch_count = 0;
	}
	pthread_mutex_unlock(&progress.life);
}

/* In a forked child: the thread does not exist, its descriptors are shared with the parent. */
void progress_forked(void)
{
	if (progress.epoll_fd >= 0) {
		close(progress.epoll_fd);
		close(progress.wake_fd);
	}
	pthread_mutex_init(&progress.life, NULL);
	pthread_mutex_init(&progress.lock, NULL);
	pthread_mutex_init(&progress.run_lock, NULL);
	pthread_cond_init(&progress.idle, NULL);
	atomic_store(&progress.next_due_ns, UINT64_MAX);
	progress.users = 0;
	free(progress.watches);
	progress.watches = NULL;
	progress.watch_count = 0;
	progress.epoll_fd = progress.wake_fd = -1;
	progress.running_fd = -1;
	progress.running_timer = NULL;
	progress_self_forked();
}

static int grow_watches(int fd)
{
	int count = MAX(fd + 1, progress.watch_count * 2);
	struct watch *w;

	if (fd < progress.watch_count)
		return 0;
	w = realloc(progress.watches, (size_t)count * sizeof(*w));
	if (!w)
		return -ENOMEM;
	memset(w + progress.watch_count, 0,
	       (size_t)(count - progress.watch_count) * sizeof(*w));
	progress.watches = w;
	progress.watch_count = count;
	return 0;
}

int progress_watch(int fd, uint32_t events, void (*fn)(void *, uint32_t),
		   void *arg)
{
	struct epoll_event ev = { .events = events };
	int ret;

	pthread_mutex_lock(&progress.lock);
	ret = grow_watches(fd);
	if (!ret) {
		uint32_t generation = ++progress.generation;

		ev.data.u64 = (uint64_t)generation << 32 | (uint32_t)fd;
		progress.watches[fd] = (struct watch){
			.fn = fn, .arg = arg, .generation = generation
		};
		if (epoll_ctl(progress.epoll_fd, EPOLL_CTL_ADD, fd, &ev)) {
			ret = -errno;
			progress.watches[fd].fn = NULL;
		}
	}
	pthread_mutex_unlock(&progress.lock);
	return ret;
}

void progress_set_leave(int fd, bool (*leave)(void *arg))
{
	pthread_mutex_lock(&progress.lock);
	if (fd < progress.watch_count && progress.watches[fd].fn)
		progress.watches[fd].leave = leave;
	pthread_mutex_unlock(&progress.lock);
}

int progress_rewatch(int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };
	int ret = -ENOENT, op;
	struct watch *w;

	pthread_mutex_lock(&progress.lock);
	if (fd < progress.watch_count && progress.watches[fd].fn) {
		w = &progress.watches[fd];
		ev.data.u64 = (uint64_t)w->generation << 32 | (uint32_t)fd;
		if (!events)
			op = EPOLL_CTL_DEL;
		else
			op = w->idle ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
		ret = 0;
		if ((events || !w->idle) && epoll_ctl(progress.epoll_fd, op, fd, &ev))
			ret = -errno;
		else
			w->idle = !events;
	}
	pthread_mutex_unlock(&progress.lock);
	return ret;
}

static void unwatch(int fd)
{
	if (fd < progress.watch_count && progress.watches[fd].fn) {
		progress.watches[fd].fn = NULL;
		if (!progress.watches[fd].idle)
			epoll_ctl(progress.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	}
}

void progress_unwatch_async(int fd)
{
	pthread_mutex_lock(&progress.lock);
	unwatch(fd);
	pthread_mutex_unlock(&progress.lock);
}

void progress_unwatch(int fd)
{
	pthread_mutex_lock(&progress.lock);
	unwatch(fd);
	while (!hca_self.progress && progress.running_fd == fd)
		pthread_cond_wait(&progress.idle, &progress.lock);
	pthread_mutex_unlock(&progress.lock);
}

void progress_timer_init(struct progress_timer *t,
			 void (*fn)(struct progress_timer *))
{
	wheel_timer_init(&t->timer);
	t->fn = fn;
	t->by_pollers = t->light = false;
}

static void arm(struct progress_timer *t, uint64_t deadline_ns, bool if_earlier)
{
	bool wake = false;

	pthread_mutex_lock(&progress.lock);
	/* Without the thread no timer is run. */
	if (progress.epoll_fd >= 0 &&
	    !(if_earlier && wheel_is_armed(&t->timer) &&
	      t->timer.deadline_ns <= deadline_ns)) {
		wheel_arm(wheel_of(t), &t->timer, deadline_ns);
		note_next_due();
		wake = deadline_ns < progress.sleeping_until_ns;
	}
	pthread_mutex_unlock(&progress.lock);
	if (wake && !hca_self.progress)
		progress_kick();
}

void progress_timer_arm(struct progress_timer *t, uint64_t deadline_ns)
{
	arm(t, deadline_ns, false);
}

void progress_timer_hasten(struct progress_timer *t, uint64_t deadline_ns)
{
	arm(t, deadline_ns, true);
}

/* lock is held. */
static void disarm(struct progress_timer *t)
{
	if (wheel_cancel(wheel_of(t), &t->timer))
		note_next_due();
}

void progress_timer_disarm(struct progress_timer *t)
{
	pthread_mutex_lock(&progress.lock);
	disarm(t);
	pthread_mutex_unlock(&progress.lock);
}

void progress_timer_cancel(struct progress_timer *t)
{
	pthread_mutex_lock(&progress.lock);
	disarm(t);
	while (!hca_self.progress && progress.running_timer == t)
		pthread_cond_wait(&progress.idle, &progress.lock);
	disarm(t); /* fn may have armed it again */
	pthread_mutex_unlock(&progress.lock);
}
