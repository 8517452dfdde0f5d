/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What other processes ask this one to do, and that cannot be done where the request
 * arrives: a lock of a transport is held there, on the progress thread or on a thread that
 * connects to its own process. So requests are kept, a timer does the work, and the process
 * that asked is answered then.
 */
#ifndef HCA_ASKED_H
#define HCA_ASKED_H

#include <pthread.h>
#include <stdint.h>

#include "hca/run/progress.h"
#include "hca/share/inspect_message.h"

#define HCA_ASKED_MAX 8

struct hca_asker {
	int fd; /* for the answer; to be closed behind it */
	union {
		uint32_t device;                  /* fail.h */
		struct hca_inspect_faults faults; /* faults.h */
	};
};

struct hca_asked {
	pthread_mutex_t lock; /* innermost */
	struct hca_asker askers[HCA_ASKED_MAX];
	unsigned count;
	struct progress_timer timer;
};

#define HCA_ASKED(name, due)                                                    \
	{                                                                       \
		.lock = PTHREAD_MUTEX_INITIALIZER,                              \
		.timer = PROGRESS_TIMER((name).timer, due),                     \
	}

/* Keeps a copy of the request, with a descriptor of its own, and arms the timer. 0; -EBUSY:
 * too many wait; or another negative errno. Any thread. */
int hca_asked_add(struct hca_asked *a, const struct hca_asker *asker);
/* Takes all requests that wait; how many. The caller answers and closes. */
unsigned hca_asked_take(struct hca_asked *a, struct hca_asker out[HCA_ASKED_MAX]);
/* In a forked child: closes what the parent will answer; the timer will call `due`. */
void hca_asked_forked(struct hca_asked *a, void (*due)(struct progress_timer *t));

#endif
