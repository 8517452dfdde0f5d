/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of a thread that serves a node, a file or the control socket. */
#ifndef GATEWAY_PART_THREAD_H
#define GATEWAY_PART_THREAD_H

#include <pthread.h>

enum thread_class {
	THREAD_AS_CALLER, /* class and priority of who starts it */
	THREAD_NORMAL,    /* never real time, also where who starts it is */
};

/*
 * Starts a thread that gets no signals but for its own faults: they are the main thread's business, and a
 * closed pipe is an error of a write, not the end of the process. `name` is what tools
 * show, cut to 15 characters. Logs nothing. 0 or a negative errno; then *thread is
 * not to be used.
 */
int thread_start(pthread_t *thread, const char *name, enum thread_class class,
		 void *(*function)(void *), void *arg);

#endif
