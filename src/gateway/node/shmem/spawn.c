/* SPDX-License-Identifier: BSD-2-Clause */
/* Starting and ending a simulator; see child.h. */
#define LOG_ROOM "gateway/shmem"
#include "gateway/node/shmem/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/log.h"

#define END_WAIT_NS 5000000
#define END_TRIES 400

/* In the child: only calls that are allowed between fork and exec. */
_Noreturn static void become(char *const argv[], int report_fd, pid_t parent)
{
	sigset_t none;
	int err;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	/* A gateway that is killed takes it along, else it would hold on to the
	 * objects that the next gateway wants to give to a new one. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent)
		execvp(argv[0], argv);
	err = errno;
	if (write(report_fd, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

int shmem_child_start(struct child *c, const char *node, char *const argv[])
{
	pid_t parent = getpid(), pid;
	int fds[2], err = 0;
	ssize_t got;

	if (pipe2(fds, O_CLOEXEC)) {
		err = errno;
		goto err;
	}
	pid = fork();
	if (pid == 0)
		become(argv, fds[1], parent);
	if (pid < 0)
		err = errno;
	close(fds[1]);
	/* Closed without a word once it is another program. */
	do
		got = pid < 0 ? 0 : read(fds[0], &err, sizeof(err));
	while (got < 0 && errno == EINTR);
	close(fds[0]);
	if (!err) {
		c->pid = pid;
		log_info("node %s: started %s, process %d", node, argv[0],
			 (int)pid);
		return 0;
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
err:
	log_error("node %s: exec: cannot start %s: %s", node, argv[0],
		  strerror(err));
	return -err;
}

bool child_running(struct child *c, const char *node)
{
	int status;

	if (!c->pid)
		return false;
	if (waitpid(c->pid, &status, WNOHANG) != c->pid)
		return true;
	if (WIFSIGNALED(status))
		log_warn("node %s: process %d was ended by signal %d (%s)",
			 node, (int)c->pid, WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		log_warn("node %s: process %d ended with status %d", node,
			 (int)c->pid, WEXITSTATUS(status));
	else
		log_info("node %s: process %d ended", node, (int)c->pid);
	c->pid = 0;
	return false;
}

void shmem_child_stop(struct child *c, const char *node)
{
	const struct timespec pause = { .tv_nsec = END_WAIT_NS };

	if (!child_running(c, node))
		return;
	kill(c->pid, SIGTERM);
	for (int i = 0; i < END_TRIES; i++) {
		if (waitpid(c->pid, NULL, WNOHANG) == c->pid) {
			c->pid = 0;
			return;
		}
		nanosleep(&pause, NULL);
	}
	log_warn("node %s: process %d does not end, it is killed", node,
		 (int)c->pid);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	c->pid = 0;
}
