/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs dot(1) with a limit of time and of what it may print. The graph is given as a
 * memory file, so that nobody has to write to it while it prints.
 */
#define LOG_ROOM "gateway/control"
#include "gateway/control/graph_dot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gateway/base/ending.h"
#include "gateway/control/graph.h"
#include "util/clock.h"

#define LIMIT_NS (10 * NSEC_PER_SEC)
#define OUTPUT_MAX (16u << 20)
#define READ_BYTES 65536

static int memory_file(const char *text)
{
	int fd = memfd_create("graph", MFD_CLOEXEC);
	size_t len = strlen(text);

	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

/* 0 with *pid, or a positive errno value. */
static int start(int in, int out, const struct graph *g, pid_t *pid)
{
	char format[16], layout[16];
	char *argv[] = { (char *)"dot", format, layout, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int err;

	snprintf(format, sizeof(format), "-T%s", g->format);
	snprintf(layout, sizeof(layout), "-K%s", g->layout);
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
					 O_WRONLY, 0);
	err = posix_spawnp(pid, argv[0], &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return err;
}

/* All that comes from `fd`. 0, -ETIMEDOUT, -EFBIG or -ENOMEM. */
static int read_all(int fd, struct graph *g)
{
	uint64_t end = clock_now_ns() + LIMIT_NS;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		char *more;
		ssize_t n;

		if (clock_now_ns() >= end || ending_has_begun())
			return -ETIMEDOUT;
		if (g->len > OUTPUT_MAX)
			return -EFBIG;
		if (poll(&p, 1, 100) <= 0)
			continue;
		more = realloc(g->text, g->len + READ_BYTES);
		if (!more)
			return -ENOMEM;
		g->text = more;
		n = read(fd, g->text + g->len, READ_BYTES);
		if (n > 0)
			g->len += (size_t)n;
		else if (n == 0 || errno != EINTR)
			return 0;
	}
}

int graph_dot(const char *text, struct graph *g, char *error, size_t size)
{
	int in = memory_file(text), fds[2], ret, status = 0;
	pid_t pid;

	if (in < 0 || pipe2(fds, O_CLOEXEC)) {
		snprintf(error, size, "%s", strerror(errno));
		if (in >= 0)
			close(in);
		return -EIO;
	}
	ret = start(in, fds[1], g, &pid);
	close(in);
	close(fds[1]);
	if (ret) {
		close(fds[0]);
		snprintf(error, size,
			 "dot(1) of Graphviz draws this format, and is not installed; graph.dot needs no other program");
		return -ENOSYS;
	}
	ret = read_all(fds[0], g);
	close(fds[0]);
	if (ret)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!ret && (!WIFEXITED(status) || WEXITSTATUS(status) || !g->len))
		ret = -EIO;
	if (!ret)
		return 0;
	snprintf(error, size, "dot(1) did not draw the graph: %s",
		 ret == -EIO ? "it failed" : strerror(-ret));
	free(g->text);
	g->text = NULL;
	g->len = 0;
	return ret;
}
