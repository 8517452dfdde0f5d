/* SPDX-License-Identifier: BSD-2-Clause */
/* See spawn.h. */
#include "util/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- in the child: only calls that are allowed between vfork() and exec ---- */

static int take_stream(int number, int fd)
{
	if (fd == SPAWN_INHERITS)
		return 0;
	if (fd == SPAWN_NULL)
		fd = open("/dev/null", (number ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		return -1;
	/* dup2() of a descriptor to itself would leave it to be closed on exec. */
	if (fd == number)
		return fcntl(fd, F_SETFD, 0);
	return dup2(fd, number) < 0 ? -1 : 0;
}

/* 0, or -1 with errno. */
static int prepare(const struct spawn *s, pid_t parent)
{
	if (s->group && setpgid(0, 0))
		return -1;
	if (s->death_signal && prctl(PR_SET_PDEATHSIG, s->death_signal))
		return -1;
	/* The parent has ended before that. */
	if (s->death_signal && getppid() != parent)
		_exit(127);
	if (s->cpus && sched_setaffinity(0, sizeof(*s->cpus), s->cpus))
		return -1;
	for (int i = 0; i < 3; i++)
		if (take_stream(i, s->streams[i]))
			return -1;
	return s->folder ? chdir(s->folder) : 0;
}

_Noreturn static void become(const struct spawn *s, int report_fd, pid_t parent)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t none;
	int err;

	/* First the handlers, which belong to the parent's memory, then the mask. */
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &usual, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!prepare(s, parent))
		execvpe(s->argv[0], s->argv, s->envp ? s->envp : environ);
	err = errno;
	if (write(report_fd, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

/* ---- in this process ---- */

pid_t spawn_program(const struct spawn *s)
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

/* The length of the name in "NAME=value". */
static size_t name_length(const char *entry)
{
	return strcspn(entry, "=");
}

static bool is_set(const char *name)
{
	return getenv(name) != NULL;
}

static bool is_changed(const struct spawn_variable *changes, const char *entry)
{
	for (const struct spawn_variable *v = changes; v->name; v++)
		if (strlen(v->name) == name_length(entry) &&
		    !strncmp(v->name, entry, name_length(entry)))
			return !v->value || !v->gives_way;
	return false;
}

char **spawn_environment(const struct spawn_variable *changes)
{
	size_t count = 0, n = 0;
	char **envp;
	bool failed = false;

	for (char **e = environ; *e; e++)
		count++;
	for (const struct spawn_variable *v = changes; v->name; v++)
		count++;
	envp = calloc(count + 1, sizeof(*envp));
	if (!envp)
		return NULL;
	for (char **e = environ; *e; e++)
		if (!is_changed(changes, *e))
			failed |= !(envp[n++] = strdup(*e));
	for (const struct spawn_variable *v = changes; v->name; v++)
		if (v->value && !(v->gives_way && is_set(v->name)))
			failed |= asprintf(&envp[n++], "%s=%s", v->name, v->value) < 0;
	if (!failed)
		return envp;
	for (size_t i = 0; i < n; i++)
		free(envp[i]);
	free(envp);
	return NULL;
}

void spawn_environment_free(char **envp)
{
	for (char **e = envp; e && *e; e++)
		free(*e);
	free(envp);
}

bool spawn_is_installed(const char *program)
{
	const char *dirs = getenv("PATH");
	char path[PATH_MAX];

	for (dirs = dirs ? dirs : "/usr/bin:/bin"; *dirs;) {
		size_t n = strcspn(dirs, ":");

		snprintf(path, sizeof(path), "%.*s%s%s", (int)n, dirs, n ? "/" : "./", program);
		if (!access(path, X_OK))
			return true;
		dirs += n + (dirs[n] == ':');
	}
	return false;
}
