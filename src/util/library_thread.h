/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start of a thread that a library has for itself: it blocks all signals from its first
 * moment on, because signals belong to the program's own threads; except SIGSEGV and SIGBUS, which
 * are for its own faults.
 */
#ifndef UTIL_LIBRARY_THREAD_H
#define UTIL_LIBRARY_THREAD_H

#include <pthread.h>
#include <signal.h>

/* `attr` may be NULL. 0 or a negative errno. */
static inline int library_thread_start(pthread_t *thread, const pthread_attr_t *attr,
				   void *(*function)(void *), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	/* A handler may continue behind a fault (hca/run/touch.h); a fault whose signal is blocked
	 * ends the process. */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, attr, function, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

#endif
