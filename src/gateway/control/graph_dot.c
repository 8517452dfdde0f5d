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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gateway/base/ending.h"
#include "gateway/control/graph.h"
#include "util/clock.h"
#include "util/spawn.h"

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

static pid_t start(int in, int out, const struct graph *g)
{
	char format[16], layout[16];
	char *argv[] = { (char *)"dot", format, layout, NULL };
	const struct spawn dot = { .argv = argv, .streams = { in, out, SPAWN_NULL } };

	snprintf(format, sizeof(format), "-T%s", g->format);
	snprintf(layout, sizeof(layout), "-K%s", g->layout);
	return spawn_program(&dot);
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
	pid = start(in, fds[1], g);
	close(in);
	close(fds[1]);
	if (pid < 0) {
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
