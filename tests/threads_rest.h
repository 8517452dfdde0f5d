/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests that fork while their process has several threads. gcc 12's address sanitizer
 * does not take the lock of its allocator for a fork; if another thread has it just then, it
 * stays locked in the child for ever.
 */
#ifndef TESTS_THREADS_REST_H
#define TESTS_THREADS_REST_H

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The state that the kernel tells of a thread of this process, as 'R' or 'S'; 'X': it has
 * ended. */
static inline char thread_state(pid_t tid)
{
	char path[64], text[256], *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 'X';
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' ? name_end[2] : 'X';
}

static inline bool others_sleep(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	bool sleep = true;

	if (!dir)
		return true;
	while ((entry = readdir(dir))) {
		pid_t tid = (pid_t)atoi(entry->d_name);
		char state = tid && tid != gettid() ? thread_state(tid) : 'X';

		sleep &= state == 'S' || state == 'X';
	}
	closedir(dir);
	return sleep;
}

/* Returns when each other thread sleeps, so that none has the lock of the allocator. The
 * test's limit of time ends the wait. */
static inline void threads_rest(void)
{
	while (!others_sleep())
		sched_yield();
}

#endif
