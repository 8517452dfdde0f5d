/* SPDX-License-Identifier: BSD-2-Clause */
/* The child process; see child.h. */
#define LOG_ROOM "gateway/exec"
#include "gateway/node/exec/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gateway/base/thread.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

/* Most programs end by themselves at the end of their input. */
#define EOF_MS 500
/* Pieces of standard error that are still read at the end. */
#define LAST_WORDS 64

enum { CHILD_END, OUR_END };

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void log_line(struct child *c)
{
	if (c->line_used)
		log_info("%s: %.*s", c->settings.node, (int)c->line_used, c->line);
	c->line_used = 0;
}

/* False at the end of its standard error. */
static bool take_error(struct child *c)
{
	char buf[512];
	ssize_t n = read(c->err_fd, buf, sizeof(buf));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	for (ssize_t i = 0; i < n; i++) {
		/* Nothing unprintable into the log. */
		if (buf[i] == '\n' || c->line_used == sizeof(c->line))
			log_line(c);
		if (buf[i] != '\n')
			c->line[c->line_used++] =
				(unsigned char)buf[i] < ' ' && buf[i] != '\t' ?
					'?' : buf[i];
	}
	return n > 0;
}

/* Bounded, because the program may write for ever. */
static void take_last_words(struct child *c)
{
	struct pollfd p = { .fd = c->err_fd, .events = POLLIN };

	for (unsigned i = 0; i < LAST_WORDS && poll(&p, 1, 0) > 0; i++)
		if (!take_error(c))
			break;
}

static void tell_end(const struct child *c)
{
	siginfo_t info = { 0 };

	/* Left to be reaped, so that its group keeps its number. */
	if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT | WNOHANG) ||
	    atomic_load(&c->stopping))
		return;
	if (info.si_code == CLD_EXITED && !info.si_status)
		log_info("%s: %s (pid %d) has ended", c->settings.node,
			 c->settings.argv[0], (int)c->pid);
	else if (info.si_code == CLD_EXITED)
		log_warn("%s: %s (pid %d) has ended with status %d",
			 c->settings.node, c->settings.argv[0], (int)c->pid,
			 info.si_status);
	else
		log_warn("%s: %s (pid %d) was ended by signal %d (%s)",
			 c->settings.node, c->settings.argv[0], (int)c->pid,
			 info.si_status, strsignal(info.si_status));
}

static void *run(void *arg)
{
	struct child *c = arg;
	uint64_t one = 1;
	struct pollfd fds[] = {
		{ .fd = c->stop_fd, .events = POLLIN },
		{ .fd = c->pid_fd, .events = POLLIN },
		{ .fd = c->err_fd, .events = POLLIN },
	};

	while (poll(fds, ARRAY_SIZE(fds), -1), !fds[0].revents) {
		if (fds[2].revents && !take_error(c))
			fds[2].fd = -1;
		if (fds[1].revents) {
			fds[1].fd = -1;
			take_last_words(c);
			tell_end(c);
			atomic_store(&c->ended, true);
			if (write(c->wake_fd, &one, sizeof(one)) < 0) {
				/* It is readable, which is all we want. */
			}
		}
	}
	take_last_words(c);
	log_line(c);
	/* It had ended before it was asked to: that was not told yet. */
	if (fds[1].fd >= 0)
		tell_end(c);
	return NULL;
}

/* [0] to read, [1] to write. Ours is non-blocking. */
static int make_pipe(int ends[2], int ours)
{
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	return fcntl(ends[ours], F_SETFL, O_NONBLOCK) ? -errno : 0;
}

static int set_actions(const struct child *c, posix_spawn_file_actions_t *a,
		       const int pipes[3][2])
{
	int err = 0;

	if (c->settings.write)
		err = posix_spawn_file_actions_adddup2(a, pipes[0][0], 0);
	else
		err = posix_spawn_file_actions_addopen(a, 0, "/dev/null",
						       O_RDONLY, 0);
	if (!err && c->settings.read)
		err = posix_spawn_file_actions_adddup2(a, pipes[1][1], 1);
	else if (!err)
		err = posix_spawn_file_actions_addopen(a, 1, "/dev/null",
						       O_WRONLY, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(a, pipes[2][1], 2);
	if (!err && c->settings.folder)
		err = posix_spawn_file_actions_addchdir_np(a, c->settings.folder);
	return err;
}

/* 0 or a positive errno. */
static int spawn(struct child *c, const int pipes[3][2])
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	/* A group of its own: a Ctrl-C for the gateway is not for the child, and
	 * what the child starts can be ended with it. */
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP |
						POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawn_file_actions_init(&actions);
	err = set_actions(c, &actions, pipes);
	if (!err)
		err = posix_spawnp(&c->pid, c->settings.argv[0], &actions, &attr,
				   c->settings.argv, c->settings.envp);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return err;
}

static int start_thread(struct child *c)
{
	return -thread_start(&c->thread, "exec-child", THREAD_AS_CALLER, run, c);
}

/* A child without a thread: nobody has seen it do anything yet. */
static void kill_at_once(struct child *c)
{
	kill(-c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
}

int exec_child_start(struct child *c, const struct child_settings *settings,
		int wake_fd)
{
	int pipes[3][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
	int err;

	c->settings = *settings;
	c->wake_fd = wake_fd;
	c->in_fd = c->out_fd = c->err_fd = c->pid_fd = -1;
	c->line_used = 0;
	atomic_store(&c->ended, false);
	atomic_store(&c->stopping, false);
	c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = c->stop_fd < 0 ? errno : 0;
	for (unsigned i = 0; i < 3 && !err; i++)
		err = -make_pipe(pipes[i], i == 0);
	if (!err)
		err = spawn(c, (const int(*)[2])pipes);
	for (unsigned i = 0; i < 3; i++)
		close_fd(&pipes[i][i == 0 ? 0 : 1]);
	c->in_fd = pipes[0][1];
	c->out_fd = pipes[1][0];
	c->err_fd = pipes[2][0];
	if (err) {
		log_error("%s: cannot start '%s'%s%s: %s", settings->node,
			  settings->argv[0], settings->folder ? " in " : "",
			  settings->folder ? settings->folder : "", strerror(err));
		goto err_close;
	}
	c->pid_fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	err = c->pid_fd < 0 ? errno : start_thread(c);
	if (err) {
		log_error("%s: cannot watch process %d: %s", settings->node,
			  (int)c->pid, strerror(err));
		kill_at_once(c);
		goto err_close;
	}
	log_debug("%s: pid %d is '%s'", settings->node, (int)c->pid,
		  settings->argv[settings->argv[1] && settings->argv[2] ? 2 : 0]);
	return 0;

err_close:
	close_fd(&c->in_fd);
	close_fd(&c->out_fd);
	close_fd(&c->err_fd);
	close_fd(&c->pid_fd);
	close_fd(&c->stop_fd);
	c->pid = 0;
	return -err;
}

bool exec_child_wait_end(const struct child *c, int timeout_ms)
{
	struct pollfd p = { .fd = c->pid_fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) > 0;
}

/* Waits for its end and reads what it writes, so that it cannot hang in that. */
static bool wait_end(struct child *c, unsigned timeout_ms)
{
	uint64_t end_ns = clock_monotonic_ns_slow() + timeout_ms * UINT64_C(1000000);
	char rest[4096];

	for (;;) {
		struct pollfd fds[] = {
			[CHILD_END] = { .fd = c->pid_fd, .events = POLLIN },
			[OUR_END] = { .fd = c->out_fd, .events = POLLIN },
		};
		uint64_t now = clock_monotonic_ns_slow();

		poll(fds, 2, now < end_ns ? (int)((end_ns - now) / 1000000 + 1) : 0);
		if (fds[CHILD_END].revents)
			return true;
		if (now >= end_ns)
			return false;
		if (fds[OUR_END].revents &&
		    read(c->out_fd, rest, sizeof(rest)) == 0)
			close_fd(&c->out_fd);
	}
}

void exec_child_stop(struct child *c)
{
	uint64_t one = 1;

	if (!c->pid)
		return;
	atomic_store(&c->stopping, !exec_child_wait_end(c, 0));
	close_fd(&c->in_fd);
	if (!wait_end(c, EOF_MS)) {
		kill(-c->pid, SIGTERM);
		if (!wait_end(c, c->settings.grace_ms)) {
			log_warn("%s: %s (pid %d) does not end, it is killed",
				 c->settings.node, c->settings.argv[0],
				 (int)c->pid);
			kill(-c->pid, SIGKILL);
		}
	} else {
		/* What it has left behind; it is not reaped yet, so the number
		 * is still that of its group. */
		kill(-c->pid, SIGTERM);
	}
	if (write(c->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(c->thread, NULL);
	waitpid(c->pid, NULL, 0);
	close_fd(&c->out_fd);
	close_fd(&c->err_fd);
	close_fd(&c->pid_fd);
	close_fd(&c->stop_fd);
	c->pid = 0;
}
