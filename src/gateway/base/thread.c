/* SPDX-License-Identifier: BSD-2-Clause */
/* Starting and joining threads; see thread.h. */
#include "gateway/base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>

#include "gateway/base/ending.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/timed.h"

#define SOON_NS 20000000

/* What an instruction of the thread itself raises: blocked, it ends the process, also
 * where a handler would have seen to it (shared memory that was cut off). */
static const int own_faults[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };

int thread_start(pthread_t *thread, const char *name, enum thread_class class,
		 void *(*function)(void *), void *arg)
{
	const struct sched_param normal = { .sched_priority = 0 };
	pthread_attr_t attr;
	sigset_t all, before;
	char shown[16];
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	if (class == THREAD_NORMAL) {
		pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
		pthread_attr_setschedparam(&attr, &normal);
	}
	/* The new thread has the mask of who starts it, from its first moment on. */
	sigfillset(&all);
	for (size_t i = 0; i < ARRAY_SIZE(own_faults); i++)
		sigdelset(&all, own_faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, &attr, function, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (err)
		return -err;
	snprintf(shown, sizeof(shown), "%s", name);
	pthread_setname_np(*thread, shown);
	return 0;
}

bool thread_join_soon(pthread_t thread)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until = timespec_from_ns(timespec_to_ns(until) + SOON_NS);
	return timed_join(thread, &until) != ETIMEDOUT;
}

bool thread_join_in_time(pthread_t thread)
{
	do {
		if (ending_is_past(ENDING_JOIN_MS))
			return false;
	} while (!thread_join_soon(thread));
	return true;
}
