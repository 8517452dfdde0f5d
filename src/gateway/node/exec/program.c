/* SPDX-License-Identifier: BSD-2-Clause */
/* The program and its streams; see program.h. */
#define LOG_ROOM "gateway/exec"
#include "gateway/node/exec/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gateway/base/thread.h"
#include "util/container_of.h"
#include "util/log.h"

/* Most programs end by themselves at the end of their input. */
#define EOF_MS 500
/* Pieces of standard error that are still read at the end. */
#define LAST_WORDS 64

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void log_line(struct program *p)
{
	if (p->line_used)
		log_info("%s: %.*s", p->settings.node, (int)p->line_used, p->line);
	p->line_used = 0;
}

/* False at the end of its standard error. */
static bool take_error(struct program *p)
{
	char buf[512];
	ssize_t n = read(p->err_fd, buf, sizeof(buf));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	for (ssize_t i = 0; i < n; i++) {
		/* Nothing unprintable into the log. */
		if (buf[i] == '\n' || p->line_used == sizeof(p->line))
			log_line(p);
		if (buf[i] != '\n')
			p->line[p->line_used++] =
				(unsigned char)buf[i] < ' ' && buf[i] != '\t' ?
					'?' : buf[i];
	}
	return n > 0;
}

/* Bounded, because the program may write for ever. */
static void take_last_words(struct program *p)
{
	struct pollfd fd = { .fd = p->err_fd, .events = POLLIN };

	for (unsigned i = 0; i < LAST_WORDS && poll(&fd, 1, 0) > 0; i++)
		if (!take_error(p))
			break;
}

static void tell_end(const struct program *p)
{
	if (!atomic_load(&p->stopping))
		child_tell_end(&p->child);
}

static void *run(void *arg)
{
	struct program *p = arg;
	uint64_t one = 1;
	struct pollfd fds[] = {
		{ .fd = p->stop_fd, .events = POLLIN },
		{ .fd = p->child.pid_fd, .events = POLLIN },
		{ .fd = p->err_fd, .events = POLLIN },
	};

	while (poll(fds, ARRAY_SIZE(fds), -1), !fds[0].revents) {
		if (fds[2].revents && !take_error(p))
			fds[2].fd = -1;
		if (fds[1].revents) {
			fds[1].fd = -1;
			take_last_words(p);
			tell_end(p);
			atomic_store(&p->ended, true);
			if (write(p->wake_fd, &one, sizeof(one)) < 0) {
				/* It is readable, which is all we want. */
			}
		}
	}
	take_last_words(p);
	log_line(p);
	/* It had ended before it was asked to: that was not told yet. */
	if (fds[1].fd >= 0)
		tell_end(p);
	return NULL;
}

/* [0] to read, [1] to write. Ours is non-blocking. */
static int make_pipe(int ends[2], int ours)
{
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	return fcntl(ends[ours], F_SETFL, O_NONBLOCK) ? -errno : 0;
}

static int start_child(struct program *p, const int pipes[3][2])
{
	const struct program_settings *s = &p->settings;
	const struct child_settings settings = {
		.node = s->node, .argv = s->argv, .envp = s->envp, .folder = s->folder,
		.streams = { s->write ? pipes[0][0] : SPAWN_NULL,
			     s->read ? pipes[1][1] : SPAWN_NULL, pipes[2][1] },
		/* A Ctrl-C for the gateway is not for the program, and what the
		 * program starts can be ended with it. */
		.group = true,
	};

	return child_start(&p->child, &settings);
}

int program_start(struct program *p, const struct program_settings *settings,
		  int wake_fd)
{
	int pipes[3][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
	int ret = 0;

	p->settings = *settings;
	p->wake_fd = wake_fd;
	p->in_fd = p->out_fd = p->err_fd = -1;
	p->line_used = 0;
	atomic_store(&p->ended, false);
	atomic_store(&p->stopping, false);
	p->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->stop_fd < 0)
		ret = -errno;
	for (unsigned i = 0; i < 3 && !ret; i++)
		ret = make_pipe(pipes[i], i == 0);
	if (ret)
		log_error("node %s: no pipes to '%s': %s", settings->node,
			  settings->argv[0], strerror(-ret));
	else
		ret = start_child(p, (const int(*)[2])pipes);
	for (unsigned i = 0; i < 3; i++)
		close_fd(&pipes[i][i == 0 ? 0 : 1]);
	p->in_fd = pipes[0][1];
	p->out_fd = pipes[1][0];
	p->err_fd = pipes[2][0];
	if (ret)
		goto err_close;
	ret = thread_start(&p->thread, "exec-child", THREAD_AS_CALLER, run, p);
	if (!ret)
		return 0;
	log_error("node %s: no thread to watch process %d: %s", settings->node,
		  (int)p->child.pid, strerror(-ret));
	child_end(&p->child, 0, 0, -1);
	child_reap(&p->child);
err_close:
	close_fd(&p->in_fd);
	close_fd(&p->out_fd);
	close_fd(&p->err_fd);
	close_fd(&p->stop_fd);
	return ret;
}

void program_stop(struct program *p)
{
	uint64_t one = 1;

	if (!p->child.pid)
		return;
	atomic_store(&p->stopping, !child_wait(&p->child, 0));
	close_fd(&p->in_fd);
	child_end(&p->child, EOF_MS, p->settings.grace_ms, p->out_fd);
	if (write(p->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(p->thread, NULL);
	child_reap(&p->child);
	close_fd(&p->out_fd);
	close_fd(&p->err_fd);
	close_fd(&p->stop_fd);
}
