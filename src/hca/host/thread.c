/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a thread, by /proc; see thread.h. */
#include "hca/host/thread.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/container_of.h"

static _Thread_local pid_t number __attribute__((tls_model("initial-exec")));

void hca_thread_forked(void)
{
	number = 0;
}

pid_t hca_thread_number(void)
{
	if (unlikely(!number))
		number = (pid_t)syscall(SYS_gettid);
	return number;
}

bool hca_thread_is_ready(pid_t tid)
{
	char path[64], text[128] = "";
	const char *state;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = 0;
	close(fd);
	/* The name in front of it may have any characters. */
	state = strrchr(text, ')');
	return state && !strncmp(state, ") R", 3);
}
