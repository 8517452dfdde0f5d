/* SPDX-License-Identifier: BSD-2-Clause */
/* Replacements for functions that the sources under test call; included first. */
#ifndef INTERLEAVE_STAND_IN_H
#define INTERLEAVE_STAND_IN_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hca/run/progress.h"

void *stand_in_memcpy(void *to, const void *from, size_t n);
long stand_in_syscall(long number, ...);
int stand_in_yield(void);
int stand_in_usleep(unsigned us);
void stand_in_kick(void);
uint64_t stand_in_now_ns(void);
void stand_in_hca_yield(bool (*peer_ran_on)(unsigned cpu));
void stand_in_timer_arm(struct progress_timer *t, uint64_t deadline_ns);
/* No callback runs by itself, so disarming and cancelling are the same. */
void stand_in_timer_disarm(struct progress_timer *t);
/* Disarms the timer. True: it was armed. */
bool stand_in_timer_take(struct progress_timer *t);
void stand_in_timers_forget(void);

struct hca_cq;
struct shm_link;
struct iovec;
/* The peer's progress thread is woken; the program gets a completion event. */
void stand_in_wake(struct shm_link *l);
void stand_in_notify(struct hca_cq *cq);
/* A copy from or to the peer's memory, which is in this process. */
int stand_in_access_copy(struct shm_link *l, bool read, struct iovec *near,
			 int near_count, struct iovec *far, int far_count,
			 uint64_t length);

/* Counters of wake-ups, cleared by the thread that sleeps; see check_sleep(). */
extern uint64_t stand_in_kicks, stand_in_events;
extern uint64_t stand_in_now;

#ifdef INTERLEAVE_TESTED
#define memcpy stand_in_memcpy
#define syscall stand_in_syscall
#define sched_yield stand_in_yield
#define usleep stand_in_usleep
#define progress_kick stand_in_kick
#define shm_wake stand_in_wake
#define hca_channel_notify stand_in_notify
#define shm_access_copy stand_in_access_copy
#define progress_now_ns stand_in_now_ns
#define hca_yield stand_in_hca_yield
#define progress_timer_arm stand_in_timer_arm
#define progress_timer_disarm stand_in_timer_disarm
#define progress_timer_cancel stand_in_timer_disarm
#endif

#endif
