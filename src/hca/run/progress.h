/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The progress thread: one per process, asleep in epoll.
 *
 * It serves descriptors (control sockets, connection management) and timers,
 * and moves messages for applications that do not poll. It runs while at least
 * one reference is held. librdmacm reaches the same functions under the names
 * busbar_progress_* (verbs/private.h).
 */
#ifndef HCA_PROGRESS_H
#define HCA_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/wheel.h"

/* Starts the thread with the first reference. 0 or a negative errno. */
int progress_hold(void);
/* Stops and joins the thread with the last reference. Not on the progress thread. */
void progress_release(void);

/*
 * Calls fn(arg, events) on the progress thread whenever `fd` has one of
 * `events` (EPOLLIN ...; level triggered, EPOLLHUP and EPOLLERR implied).
 * The descriptor stays the caller's. 0 or a negative errno.
 */
int progress_watch(int fd, uint32_t events, void (*fn)(void *arg, uint32_t events),
		   void *arg);
/* From now on leave(arg) is asked, outside of hca_enter(), before fn is called. True: another thread
 * is about to do what fn would; then the thread rests for some microseconds, and asks again if `fd`
 * still has the events. leave() takes no lock. */
void progress_set_leave(int fd, bool (*leave)(void *arg));
/* 0 events: none, also not those that are implied; the descriptor leaves the epoll set, so that
 * what happens to it costs the kernel nothing. */
int progress_rewatch(int fd, uint32_t events);
/*
 * After the return fn is not running and will not be called (on the progress thread itself:
 * will not be called). To be called before the descriptor is closed. The caller must not
 * hold a lock that fn takes.
 */
void progress_unwatch(int fd);
/* The same without waiting: fn may still be running. For callers that hold a lock which fn
 * takes, if fn itself recognises that the watch has ended. */
void progress_unwatch_async(int fd);

struct progress_timer {
	struct wheel_timer timer;    /* in the time of progress_now_ns() */
	void (*fn)(struct progress_timer *t);
	/* May be run by a thread that polls, if the progress thread is late. */
	bool by_pollers;
	/* fn() takes no lock of the data path, and is run outside of hca_enter(), so that it does
	 * not hold up a thread that polls. Not together with by_pollers. */
	bool light;
};

/* Initialises a static timer, instead of progress_timer_init(). */
#define PROGRESS_TIMER(self, callback)                                           \
	{ .timer.entry = { &(self).timer.entry, &(self).timer.entry },           \
	  .fn = (callback) }

void progress_timer_init(struct progress_timer *t,
			 void (*fn)(struct progress_timer *t));
/* Arms or re-arms; fn runs once on the progress thread, up to WHEEL_TICK_NS after the
 * deadline. Takes the same time for any number of timers. */
void progress_timer_arm(struct progress_timer *t, uint64_t deadline_ns);
/* Arms it unless it is armed for an earlier time. */
void progress_timer_hasten(struct progress_timer *t, uint64_t deadline_ns);
/* Like progress_unwatch(): afterwards fn is not running and will not be called. */
void progress_timer_cancel(struct progress_timer *t);
/* The same without waiting, like progress_unwatch_async(): fn may still be running. */
void progress_timer_disarm(struct progress_timer *t);
/* Called now and then by threads that poll, outside of hca_enter(): runs overdue timers
 * with `by_pollers`. */
void progress_run_overdue(void);

/* Has the thread call fn(), inside of hca_enter(), each time before it sleeps; fn returns the
 * longest time to sleep in ms, or -1. Without a function it sleeps until something happens.
 * Always the same function; it may be set while the thread runs. */
void progress_set_tick(int (*fn)(void));

/* Wakes the thread, which then polls the transports. */
void progress_kick(void);
/* In a forked child: forgets the parent's thread and descriptors. */
void progress_forked(void);

/* ---- self.c ---- */
/* CLOCK_MONOTONIC, read by a system call: exact, but not fast. */
uint64_t progress_now_ns(void);
/* The processor time that the thread has used. */
uint64_t progress_cpu_ns(void);
/* True on the progress thread. */
bool progress_is_self(void);
/* The caller is the progress thread from now on. */
void progress_self_begin(void);
/* In a forked child: there is no progress thread. */
void progress_self_forked(void);

#endif
