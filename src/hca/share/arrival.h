/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that become readable when messages have come (the eventfd that peers of this host
 * write, the sockets of a port), and the thread that the kernel wakes for them: one of the program
 * that sleeps in ibv_get_cq_event(), or the progress thread.
 *
 * A thread that sleeps has an epoll instance of its channel's, a *sleeper*, with the channel's
 * descriptor and all arrival descriptors in it, and moves the messages itself when it wakes. Without
 * that a message would wake the progress thread, which would move it and then wake the program.
 *
 * The sleepers and the progress thread watch with EPOLLEXCLUSIVE, the progress thread in the last
 * place. So the kernel wakes one thread: of a sleeper in which a thread sleeps just now, or else the
 * progress thread. No step of ours comes in between, so nothing is lost when a thread that slept is
 * cancelled, interrupted or ended, or when the program sleeps elsewhere and nobody asks for events.
 *
 * A program that is about to answer a message does not sleep when the next one comes, and waking the
 * progress thread then would cost both of them. So where this happens repeatedly the progress thread
 * stands aside: it leaves the arrival descriptors to the program, and looks now and then whether
 * that still sleeps or polls (`glance` in arrival.c). If not, it takes its place again.
 */
#ifndef HCA_ARRIVAL_H
#define HCA_ARRIVAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hca_channel;

extern atomic_bool hca_arrivals_aside;

/* Does the progress thread stand aside? Then what is left for the next call of the program is done
 * by the program before it sleeps, or a millisecond later by the progress thread. */
static inline bool hca_arrival_aside(void)
{
	return atomic_load_explicit(&hca_arrivals_aside, memory_order_relaxed);
}

/*
 * Has fn(events) called when `fd` is readable: on the progress thread, or on a thread of the
 * program that slept, inside of hca_enter() in both cases. It may leave a part of the messages,
 * if the descriptor stays readable or the progress thread is woken for them. The descriptor stays
 * the caller's. 0 or a negative errno.
 */
int hca_arrival_watch(int fd, void (*fn)(uint32_t events));
/* From now on leave() is asked on the progress thread before fn() (progress_set_leave()), while no
 * thread of the program sleeps in between. */
void hca_arrival_set_leave(int fd, bool (*leave)(void));
/* `on` false: nobody is woken for `fd`. 0 or a negative errno. */
int hca_arrival_rewatch(int fd, bool on);
/* After the return fn is not running and will not be called. Not on the progress thread, nor from
 * fn; the caller must not hold a lock that fn takes. */
void hca_arrival_unwatch(int fd);
/* In a forked child. */
void hca_arrival_forked(void);

/* A sleeper that also wakes for `own_fd`; its number, or a negative errno: there are too many, or
 * the kernel cannot do it. */
int hca_sleeper_open(int own_fd);
/* Before own_fd is closed. A thread that still sleeps there is not woken any more. */
void hca_sleeper_close(int sleeper);
/* A thread that would have slept in a sleeper has found an event without that. */
void hca_sleeper_visit(void);
/* Sleeps until the sleeper's own descriptor is readable or messages have come, and moves these, with
 * hca_self.waits_for set. Not inside of hca_enter(). The sleep is a cancellation point. 0, or
 * -EINTR. */
int hca_sleeper_wait(int sleeper, struct hca_channel *for_events_of);

#endif
