/* SPDX-License-Identifier: BSD-2-Clause */
/* See spawn.h. */
#include "util/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"

#define LOOK_MS 100 /* between two looks whether to stop */
#define READ_BYTES 65536

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
	if (s->session ? setsid() < 0 : s->group && setpgid(0, 0))
		return -1;
	for (int i = 0; i < 3; i++)
		if (take_stream(i, s->streams[i]))
			return -1;
	if (s->prepare) {
		errno = -s->prepare(s->arg);
		if (errno)
			return -1;
	}
	/* Behind a change of rights, which clears it. */
	if (s->death_signal && prctl(PR_SET_PDEATHSIG, s->death_signal))
		return -1;
	/* The parent has ended before that. */
	if (s->death_signal && getppid() != parent)
		_exit(127);
	if (s->cpus && sched_setaffinity(0, sizeof(*s->cpus), s->cpus))
		return -1;
	return s->folder ? chdir(s->folder) : 0;
}

_Noreturn static void become(const struct spawn *s, int report_fd, pid_t parent)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct sigaction now;
	sigset_t none;
	int err;

	/* First the handlers, which belong to the parent's memory, then the mask. */
	for (int i = 1; i < NSIG; i++)
		if (!s->blocked || sigaction(i, NULL, &now) || now.sa_handler != SIG_IGN)
			sigaction(i, &usual, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, s->blocked ? s->blocked : &none, NULL);
	if (!prepare(s, parent))
		execvpe(s->argv[0], s->argv, s->envp ? s->envp : environ);
	err = errno;
	if (write(report_fd, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

/* ---- in this process ---- */

/* Its number, or a negative errno. */
static pid_t start(const struct spawn *s)
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
	pid = s->prepare ? fork() : vfork();
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
		spawn_wait(pid);
	return -err;
}

/* Its end of a pipe; the other one, *ours, is non-blocking. Or a negative errno. */
static int make_pipe(bool to_it, int *ours)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	*ours = ends[to_it];
	fcntl(*ours, F_SETFL, O_NONBLOCK);
	return ends[!to_it];
}

pid_t spawn_program(const struct spawn *s)
{
	struct spawn own = *s;
	pid_t pid = 0;

	for (int i = 0; i < 3 && !pid; i++)
		if (s->streams[i] == SPAWN_PIPE) {
			own.streams[i] = make_pipe(i == STDIN_FILENO, &s->pipes[i]);
			pid = own.streams[i] < 0 ? own.streams[i] : 0;
		}
	if (!pid)
		pid = start(&own);
	for (int i = 0; i < 3; i++)
		if (s->streams[i] == SPAWN_PIPE && own.streams[i] >= 0) {
			close(own.streams[i]);
			if (pid < 0) {
				close(s->pipes[i]);
				s->pipes[i] = -1;
			}
		}
	return pid;
}

pid_t spawn_copy(int death_signal)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, death_signal);
	if (getppid() != parent)
		_exit(127);
	return 0;
}

/* ---- its end ---- */

int spawn_wait(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Also when the kernel has forgotten it, because SIGCHLD is ignored. */
static bool is_gone(pid_t pid, int *status)
{
	pid_t got = waitpid(pid, status, WNOHANG);

	if (got < 0)
		*status = 0;
	return got;
}

bool spawn_has_ended(pid_t pid, int ms, int *status)
{
	struct pollfd p = { .events = POLLIN };

	if (is_gone(pid, status))
		return true;
	if (!ms)
		return false;
	/* -1 before Linux 5.3: that waits for the whole time. */
	p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	poll(&p, 1, ms);
	if (p.fd >= 0)
		close(p.fd);
	return is_gone(pid, status);
}

int spawn_exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- its input and output ---- */

int spawn_memory_file(const void *bytes, size_t size)
{
	int fd = memfd_create("spawn", MFD_CLOEXEC), err;

	for (size_t done = 0; fd >= 0 && done < size;) {
		ssize_t n = write(fd, (const char *)bytes + done, size - done);

		if (n < 0 && errno != EINTR) {
			err = errno;
			close(fd);
			return -err;
		}
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0)
		return -errno;
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* As read(), behind what is there; -1 with errno also without memory. */
static ssize_t read_more(int fd, char **text, size_t *bytes)
{
	char *more = realloc(*text, *bytes + READ_BYTES + 1);
	ssize_t n;

	if (!more)
		return -1;
	*text = more;
	n = read(fd, more + *bytes, READ_BYTES);
	*bytes += n > 0 ? (size_t)n : 0;
	more[*bytes] = '\0';
	return n;
}

/* 0: go on. */
static int is_over(const struct spawn_limits *limits, uint64_t end_ns, size_t bytes)
{
	if (bytes > limits->bytes)
		return -EFBIG;
	if (limits->stop && limits->stop())
		return -EINTR;
	return clock_monotonic_ns_slow() >= end_ns ? -ETIMEDOUT : 0;
}

int spawn_collect(pid_t pid, int fd, const struct spawn_limits *limits, char **text,
		  size_t *bytes, int *status)
{
	uint64_t end_ns = clock_monotonic_ns_slow() + limits->ms * UINT64_C(1000000);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool ended = false, closed = false;
	int ret;

	*text = NULL;
	*bytes = 0;
	while (!(ret = is_over(limits, end_ns, *bytes))) {
		ssize_t n;

		/* Looked at before: what it wrote before its end is there then. */
		ended = ended || spawn_has_ended(pid, closed ? LOOK_MS : 0, status);
		n = closed ? 0 : read_more(fd, text, bytes);
		closed = !n;
		if (n < 0 && errno == ENOMEM)
			ret = -ENOMEM;
		if (ret || (ended && n <= 0))
			break;
		if (n < 0)
			poll(&p, 1, LOOK_MS);
	}
	close(fd);
	if (!ended) {
		kill(pid, SIGKILL);
		spawn_wait(pid);
	}
	if (ret) {
		free(*text);
		*text = NULL;
	}
	return ret;
}

/* ---- its environment ---- */

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

int spawn_find(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	int err = -ENOENT;
	struct stat st;

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		if (stat(path, &st))
			return errno == EACCES ? -EACCES : -ENOENT;
		return S_ISREG(st.st_mode) && !access(path, X_OK) ? 0 : -EACCES;
	}
	if (!dirs)
		dirs = "/bin:/usr/bin";
	while (*name) {
		int len = (int)strcspn(dirs, ":");

		snprintf(path, PATH_MAX, "%.*s/%s", len ? len : 1,
			 len ? dirs : ".", name);
		if (!stat(path, &st) && S_ISREG(st.st_mode)) {
			if (!access(path, X_OK))
				return 0;
			err = -EACCES;
		}
		if (!dirs[len])
			break;
		dirs += len + 1;
	}
	return err;
}

bool spawn_is_installed(const char *program)
{
	char path[PATH_MAX];

	return !spawn_find(program, path);
}
