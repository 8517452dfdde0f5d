/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Child processes; see child.h. They are started by vfork(): a gateway may have much
 * memory, and a copy of pages that an adapter uses would take them from this process.
 */
#define LOG_ROOM "gateway/child"
#include "gateway/part/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gateway/base/ending.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

/* How often a wait looks whether the end of the gateway has begun. */
#define LOOK_MS 50

enum { ITS_END, ITS_OUTPUT };

/* ---- in the child: only calls that are allowed between vfork() and exec ---- */

static int take_stream(int number, int fd)
{
	if (fd == CHILD_INHERITS)
		return 0;
	if (fd == CHILD_NULL)
		fd = open("/dev/null", (number ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	return fd < 0 || dup2(fd, number) < 0 ? -1 : 0;
}

_Noreturn static void become(const struct child_settings *s, int report_fd,
			     pid_t parent)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t none;
	int err;

	/* First the handlers, which belong to the parent's memory, then the mask. */
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &usual, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if ((s->group && setpgid(0, 0)) ||
	    (s->dies_along && prctl(PR_SET_PDEATHSIG, SIGTERM)))
		goto out;
	/* The parent has ended before that. */
	if (s->dies_along && getppid() != parent)
		_exit(127);
	for (int i = 0; i < 3; i++)
		if (take_stream(i, s->streams[i]))
			goto out;
	if (!s->folder || !chdir(s->folder))
		execvpe(s->argv[0], s->argv, s->envp ? s->envp : environ);
out:
	err = errno;
	if (write(report_fd, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

/* ---- its start ---- */

/* A negative errno when it does not become the program. */
static pid_t spawn(const struct child_settings *s)
{
	pid_t parent = getpid(), pid;
	int fds[2], err = 0;
	sigset_t all, before;
	ssize_t got = 0;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	/* No handler of this process runs in the child. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = vfork();
	if (pid == 0)
		become(s, fds[1], parent);
	if (pid < 0)
		err = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(fds[1]);
	/* Closed without a word when it has become the program. */
	if (pid > 0)
		do
			got = read(fds[0], &err, sizeof(err));
		while (got < 0 && errno == EINTR);
	close(fds[0]);
	if (!err)
		return pid;
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return -err;
}

int child_start(struct child *c, const struct child_settings *s)
{
	pid_t pid = spawn(s);

	*c = (struct child){ .node = s->node, .program = s->argv[0],
			     .group = s->group, .pid_fd = -1 };
	if (pid < 0) {
		log_error("node %s: cannot start '%s'%s%s: %s", s->node, s->argv[0],
			  s->folder ? " in " : "", s->folder ? s->folder : "",
			  strerror((int)-pid));
		return (int)pid;
	}
	c->pid = pid;
	c->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (c->pid_fd < 0) {
		int err = errno;

		log_error("node %s: cannot watch process %d: %s", s->node, (int)pid,
			  strerror(err));
		kill(c->group ? -pid : pid, SIGKILL);
		waitpid(pid, NULL, 0);
		c->pid = 0;
		return -err;
	}
	log_info("node %s: started %s, process %d", s->node, s->argv[0], (int)pid);
	return 0;
}

/* ---- its end ---- */

bool child_wait(const struct child *c, int timeout_ms)
{
	struct pollfd p = { .fd = c->pid_fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) > 0;
}

void child_tell_end(const struct child *c)
{
	siginfo_t info = { 0 };

	/* It stays a zombie, so that its group keeps its number. */
	if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT | WNOHANG) ||
	    !info.si_pid)
		return;
	if (info.si_code != CLD_EXITED)
		log_warn("node %s: %s: process %d was ended by signal %d (%s)",
			 c->node, c->program, (int)c->pid, info.si_status,
			 strsignal(info.si_status));
	else if (info.si_status)
		log_warn("node %s: %s: process %d ended with status %d",
			 c->node, c->program, (int)c->pid, info.si_status);
	else
		log_info("node %s: %s: process %d ended", c->node, c->program,
			 (int)c->pid);
}

/* At most `limit_ms`; while the gateway ends only a part of the time that is left, so
 * that the children of further nodes have some, too. */
static bool wait_end(const struct child *c, unsigned limit_ms, unsigned part,
		     int *drain_fd)
{
	uint64_t end_ns = clock_monotonic_ns_slow() + limit_ms * UINT64_C(1000000);
	bool ending = false;
	char rest[4096];

	for (;;) {
		struct pollfd fds[] = {
			[ITS_END] = { .fd = c->pid_fd, .events = POLLIN },
			[ITS_OUTPUT] = { .fd = *drain_fd, .events = POLLIN },
		};
		uint64_t now = clock_monotonic_ns_slow();

		if (!ending && ending_has_begun()) {
			int left = ending_left_ms(ENDING_CHILDREN_MS, (int)limit_ms);
			uint64_t soon = now + (uint64_t)left * 1000000 / part;

			ending = true;
			end_ns = MIN(end_ns, soon);
		}
		poll(fds, 2, now < end_ns ?
			     (int)MIN((end_ns - now) / 1000000 + 1, LOOK_MS) : 0);
		if (fds[ITS_END].revents)
			return true;
		if (now >= end_ns)
			return false;
		if (fds[ITS_OUTPUT].revents &&
		    read(*drain_fd, rest, sizeof(rest)) == 0)
			*drain_fd = -1;
	}
}

static void send_signal(const struct child *c, int number)
{
	kill(c->group ? -c->pid : c->pid, number);
}

void child_end(const struct child *c, unsigned eof_ms, unsigned grace_ms, int drain_fd)
{
	if (!wait_end(c, eof_ms, 3, &drain_fd)) {
		send_signal(c, SIGTERM);
		if (!wait_end(c, grace_ms, 2, &drain_fd)) {
			log_warn("node %s: %s: process %d does not end, it is killed",
				 c->node, c->program, (int)c->pid);
			send_signal(c, SIGKILL);
		}
	} else if (c->group) {
		/* Processes that it left behind. */
		send_signal(c, SIGTERM);
	}
}

void child_reap(struct child *c)
{
	waitpid(c->pid, NULL, 0);
	close(c->pid_fd);
	c->pid_fd = -1;
	c->pid = 0;
}
