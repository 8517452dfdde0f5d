/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library in the place of the system's libibverbs.so.1: device stand0, every
 * public and private function of a release, and a record of who was called. The
 * test finds `standin_state` in it by the loader.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>

#define STANDIN_DRIVERS 8
#define STANDIN_ARGS 9

/* The last call by this thread; values are as they came. */
struct standin_call {
	const char *name;
	long args[STANDIN_ARGS];
	unsigned long count;
};

struct standin_state {
	struct standin_call *(*call)(void); /* of the calling thread */
	atomic_ulong calls;                 /* of all threads */
	atomic_int lists;                   /* handed out and not freed */
	atomic_int forks;                   /* calls of ibv_fork_init */
	atomic_int drivers;
	const void *driver[STANDIN_DRIVERS];
	bool *allow_destroy;
	char log[256]; /* what __verbs_log() printed last */
	int listed_in_constructor;
};

/* Tells what ran: the recorded functions return this. */
static inline long standin_answer(const char *name)
{
	unsigned hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return (long)(hash % 100000) + 100;
}

long standin_record(const char *name, long a1, long a2, long a3, long a4,
		    long a5, long a6, long a7, long a8, long a9);

#endif
