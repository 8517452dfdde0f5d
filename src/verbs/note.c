/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells `busbar exec` that this process listed devices, or opened one: writes its process
 * number as a line to a file in the folder BUSBAR_EXEC_DIR. Once per process. Does
 * nothing if there is no such folder.
 */
#include "verbs/note.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {
	[VERBS_LISTED] = "listed",
	[VERBS_OPENED] = "opened",
};

void verbs_note(enum verbs_note what)
{
	static atomic_int noted[2];
	const char *dir = secure_getenv("BUSBAR_EXEC_DIR");
	char path[PATH_MAX], pid[32];
	int fd, err = errno;
	ssize_t len;

	/* By process number, because a forked child is a process of its own. */
	if (!dir || atomic_exchange_explicit(&noted[what], getpid(),
					     memory_order_relaxed) == getpid())
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, names[what]);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		len = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
		/* A failure costs the user only a message of `busbar exec`. */
		len = write(fd, pid, (size_t)len);
		(void)len;
		close(fd);
	}
	errno = err;
}
