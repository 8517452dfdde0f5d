/* SPDX-License-Identifier: BSD-2-Clause */
/* The start and the end of a thread that serves a node, a file or a request. */
#ifndef GATEWAY_BASE_THREAD_H
#define GATEWAY_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

enum thread_class {
	THREAD_AS_CALLER, /* scheduling class and priority of the caller */
	THREAD_NORMAL,    /* never real time, also if the caller is */
};

/*
 * Starts a thread that blocks all signals except those for its own faults, because the
 * main thread handles signals, and a closed pipe must be an error of a write and not end
 * the process. `name` is the name that tools show, cut to 15 characters. Logs nothing. 0
 * or a negative errno; then *thread is invalid. The caller joins or detaches the
 * thread.
 */
int thread_start(pthread_t *thread, const char *name, enum thread_class class,
		 void *(*function)(void *), void *arg);

/* Waits 20 ms for the end of a thread; true: it has ended and is joined. */
bool thread_join_soon(pthread_t thread);
/* Until it has ended; false: it does not, and the end of the process leaves no more time
 * (ENDING_JOIN_MS). Logs nothing. */
bool thread_join_in_time(pthread_t thread);

#endif
