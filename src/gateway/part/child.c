/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs of nodes; see child.h. */
#define LOG_ROOM "gateway/child"
#include "gateway/part/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
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

static void send_signal(const struct child *c, int number)
{
	kill(c->group ? -c->pid : c->pid, number);
}

/* ---- its start ---- */

int child_start(struct child *c, const struct child_settings *s)
{
	const struct spawn program = {
		.argv = s->argv, .envp = s->envp, .folder = s->folder,
		.streams = { s->streams[0], s->streams[1], s->streams[2] }, .pipes = c->pipes,
		.group = s->group, .death_signal = s->dies_along ? SIGTERM : 0,
	};
	pid_t pid;

	*c = (struct child){ .node = s->node, .program = s->argv[0], .group = s->group,
			     .pid_fd = -1, .pipes = { -1, -1, -1 } };
	pid = spawn_program(&program);
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
		send_signal(c, SIGKILL);
		child_reap(c);
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

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* At most `limit_ms`; while the gateway ends only a part of the time that is left, so
 * that the children of further nodes have some, too. */
static bool wait_end(struct child *c, unsigned limit_ms, unsigned part)
{
	int *output = &c->pipes[STDOUT_FILENO];
	uint64_t end_ns = clock_monotonic_ns_slow() + limit_ms * UINT64_C(1000000);
	bool ending = false;
	char rest[4096];

	for (;;) {
		struct pollfd fds[] = {
			[ITS_END] = { .fd = c->pid_fd, .events = POLLIN },
			[ITS_OUTPUT] = { .fd = *output, .events = POLLIN },
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
		    read(*output, rest, sizeof(rest)) == 0)
			close_fd(output);
	}
}

void child_end(struct child *c, unsigned eof_ms, unsigned grace_ms)
{
	close_fd(&c->pipes[STDIN_FILENO]);
	if (!wait_end(c, eof_ms, 3)) {
		send_signal(c, SIGTERM);
		if (!wait_end(c, grace_ms, 2)) {
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
	spawn_wait(c->pid);
	c->pid = 0;
	close_fd(&c->pid_fd);
	for (int i = 0; i < 3; i++)
		close_fd(&c->pipes[i]);
}
