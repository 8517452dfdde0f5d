/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that wake who polls them or sleeps in read(): eventfds, and the rules of
 * writing and reading one. Two kinds: a signal, where any number of posts are one
 * wake-up, and a counter, where each post is one event that one reader takes; programs
 * poll counters, sleep in read() of them and may set O_NONBLOCK.
 *
 * Whoever holds an eventfd, be it by SCM_RIGHTS in another process, can clear O_NONBLOCK
 * for all holders and fill the counter, so that a post blocks. Therefore a descriptor
 * that came from a peer is posted to only when the peer is of the same user (hca/share/peers.h).
 * Draining and taking never block, whatever the flags are.
 *
 * Nothing here takes a lock. Only wakeup_wait() and wakeup_poll() are cancellation points.
 */
#ifndef UTIL_WAKEUP_H
#define UTIL_WAKEUP_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* A new signal, O_NONBLOCK, or a counter, which blocks. The descriptor (to be closed with
 * close()) or a negative errno. */
int wakeup_open_signal(void);
int wakeup_open_counter(void);

/* Wakes: one more wake-up or event. 0 or a negative errno; of one that is full 0, it is
 * readable anyway. */
int wakeup_post(int fd);

/* Takes all of a signal of one's own; how many posts that were, 0: none. Only who opened it
 * may call this, one thread at a time. */
uint64_t wakeup_drain(int fd);

/* Waits as poll() for one of fds[0] to fds[count - 1], at the longest until `until_ns` of
 * clock_now_ns() (UINT64_MAX: for ever). fds[0] is a signal of one's own for POLLIN, which is
 * drained. May return without reason. */
void wakeup_poll(struct pollfd fds[], unsigned count, uint64_t until_ns);

/* Takes one event of a counter if there is one: true. A kernel before 5.8 cannot read an
 * eventfd without waiting: there nothing is taken from one that blocks. */
bool wakeup_take(int fd);

/* Can the kernel take an event of a counter that blocks without waiting? */
bool wakeup_takes(void);

/* Sleeps until there is an event and takes it; 0 or a negative errno: -EINTR, or -EAGAIN
 * where somebody has set O_NONBLOCK and there is none. */
int wakeup_wait(int fd);

#endif
