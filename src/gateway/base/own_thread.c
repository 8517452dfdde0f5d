/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of thread numbers; each takes itself out when it ends. */
#include "gateway/base/own_thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct own {
	struct own *next;
	pid_t tid;
	unsigned settings;
};

static struct own *first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void forget(void *own)
{
	pthread_mutex_lock(&lock);
	for (struct own **o = &first; *o; o = &(*o)->next) {
		if (*o == own) {
			*o = (*o)->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	free(own);
}

static void make_key(void)
{
	if (pthread_key_create(&key, forget))
		abort();
}

void own_thread_keep(unsigned settings)
{
	struct own *o;

	if (!settings)
		return;
	pthread_once(&once, make_key);
	o = pthread_getspecific(key);
	if (o) {
		o->settings = settings;
		return;
	}
	o = malloc(sizeof(*o));
	if (!o)
		return;
	*o = (struct own){ .tid = (pid_t)syscall(SYS_gettid),
			   .settings = settings };
	pthread_setspecific(key, o);
	pthread_mutex_lock(&lock);
	o->next = first;
	first = o;
	pthread_mutex_unlock(&lock);
}

unsigned own_thread_settings(pid_t tid)
{
	unsigned settings = 0;

	pthread_mutex_lock(&lock);
	for (const struct own *o = first; o; o = o->next)
		if (o->tid == tid)
			settings = o->settings;
	pthread_mutex_unlock(&lock);
	return settings;
}
