/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/nice.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* On Linux, unlike POSIX, each thread has a nice value. */
int nice_set(int value, int was)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int err = 0;

	if (!tasks)
		return setpriority(PRIO_PROCESS, 0, value) ? -errno : 0;
	while ((entry = readdir(tasks))) {
		id_t tid = (id_t)strtoul(entry->d_name, NULL, 10);

		if (!tid)
			continue;
		errno = 0;
		if (getpriority(PRIO_PROCESS, tid) != was || errno)
			continue;
		/* A thread that has ended meanwhile is no error. */
		if (setpriority(PRIO_PROCESS, tid, value) && errno != ESRCH &&
		    !err)
			err = -errno;
	}
	closedir(tasks);
	return err;
}

static bool sessions_are_groups(void)
{
	char on = '0';
	int fd = open("/proc/sys/kernel/sched_autogroup_enabled",
		      O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (read(fd, &on, 1) != 1)
		on = '0';
	close(fd);
	return on == '1';
}

int nice_set_session(int value)
{
	int fd, err = 0;

	if (!sessions_are_groups())
		return 0;
	if (getsid(0) != getpid())
		return -EXDEV;
	fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (dprintf(fd, "%d", value) < 0)
		err = -errno;
	close(fd);
	return err;
}
