/* SPDX-License-Identifier: BSD-2-Clause */
/* See end_guard.h. */
#include "cli/end_guard.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "gateway/base/ending.h"
#include "gateway/base/own_thread.h"
#include "gateway/base/thread.h"
#include "util/log.h"

static sem_t begun;
static void (*tell_unfinished)(void);
static atomic_bool finished;

/* Ends the process after 100 ms, in case writing the log blocks. */
static void *leave_anyway(void *arg)
{
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	_exit(CLI_STUCK);
	return arg;
}

static void *watch(void *arg)
{
	pthread_t thread;
	int left;

	own_thread_keep(OWN_PRIORITY);
	while (sem_wait(&begun) && errno == EINTR)
		;
	while ((left = ending_left_ms(ENDING_LIMIT_MS, 1000)))
		nanosleep(&(struct timespec){ left / 1000,
					      left % 1000 * 1000000L },
			  NULL);
	if (atomic_load(&finished))
		return NULL;
	if (pthread_create(&thread, NULL, leave_anyway, NULL))
		_exit(CLI_STUCK);
	tell_unfinished();
	_exit(CLI_STUCK);
	return arg;
}

void end_guard_start(void (*tell)(void))
{
	static bool started;
	pthread_t thread;
	int ret;

	if (started)
		return;
	started = true;
	tell_unfinished = tell;
	sem_init(&begun, 0, 0);
	ret = thread_start(&thread, "end-guard", THREAD_AS_CALLER, watch, NULL);
	if (ret) {
		log_warn("cannot start the thread that limits the time of the end: %s",
			 strerror(-ret));
		return;
	}
	/* Real-time threads of the gateway may never yield a processor; where such
	 * threads are permitted, this one gets the highest priority. */
	pthread_setschedparam(thread, SCHED_FIFO,
			      &(struct sched_param){
				      .sched_priority = sched_get_priority_max(SCHED_FIFO) });
	pthread_detach(thread);
}

void end_guard_begin(void)
{
	int saved_errno = errno;

	ending_begin();
	sem_post(&begun);
	errno = saved_errno;
}

void end_guard_finish(void)
{
	atomic_store(&finished, true);
}

void end_guard_leave(void)
{
	_exit(CLI_STUCK);
}
