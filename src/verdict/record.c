/* SPDX-License-Identifier: BSD-2-Clause */
/* The file with the facts of this process, and its end; see observe.h. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "verdict/observe.h"

VERDICT_EXPORT _Noreturn void _exit(int status);
VERDICT_EXPORT _Noreturn void _Exit(int status);

struct verdict_facts *_Atomic verdict_facts_now;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t start_ns;
static bool failed; /* under `lock` */
static void (*real_exit)(int status);

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t verdict_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t verdict_about_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC_COARSE);
}

/* A process that becomes another program has one file for each. */
static int open_file(const char *folder)
{
	char path[512];
	int fd = -1;

	for (unsigned i = 0; fd < 0 && i < 1000; i++) {
		if ((size_t)snprintf(path, sizeof(path), "%s/%d.%u", folder, getpid(), i) >=
		    sizeof(path))
			return -1;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			return -1;
	}
	return fd;
}

static struct verdict_facts *map_file(void)
{
	const char *folder = getenv(VERDICT_ENV);
	struct verdict_facts *f = MAP_FAILED;
	int fd = folder ? open_file(folder) : -1;

	if (fd < 0)
		return NULL;
	/* A file with holes could end the program later by SIGBUS, for want of room. */
	if (!posix_fallocate(fd, 0, sizeof(*f)))
		f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (f == MAP_FAILED)
		return NULL;
	f->pid = (uint32_t)getpid();
	snprintf(f->program, sizeof(f->program), "%s", program_invocation_short_name);
	f->start_ns = start_ns;
	f->progress_ns = verdict_now_ns();
	f->magic = VERDICT_MAGIC;
	return f;
}

struct verdict_facts *verdict_facts_make(void)
{
	struct verdict_facts *f = verdict_facts();
	int error = errno;

	if (f)
		return f;
	pthread_mutex_lock(&lock);
	f = atomic_load(&verdict_facts_now);
	if (!f && !failed) {
		f = map_file();
		failed = !f;
		atomic_store_explicit(&verdict_facts_now, f, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	errno = error;
	return f;
}

/* Also called by a child of vfork(), in which the facts are those of its parent, and by handlers of
 * signals. */
static void note_end(int status)
{
	struct verdict_facts *f = verdict_facts();

	if (!f || f->pid != (uint32_t)getpid())
		return;
	f->exit_status = status & 0xff;
	f->end_ns = verdict_now_ns();
	f->end = VERDICT_EXITS;
}

static void at_exit(int status, void *arg)
{
	(void)arg;
	note_end(status);
}

_Noreturn void _exit(int status)
{
	note_end(status);
	if (real_exit)
		real_exit(status);
	for (;;)
		syscall(SYS_exit_group, status);
}

_Noreturn void _Exit(int status)
{
	_exit(status);
}

/* The child of a fork has facts of its own, if it uses verbs. */
static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	atomic_store(&verdict_facts_now, NULL);
	failed = false;
	start_ns = verdict_now_ns();
}

__attribute__((constructor)) static void at_load(void)
{
	start_ns = verdict_now_ns();
	/* Not when it is needed: that may be in a handler of a signal. */
	real_exit = (void (*)(int))dlsym(RTLD_NEXT, "_exit");
	on_exit(at_exit, NULL);
	pthread_atfork(NULL, NULL, forked);
}
