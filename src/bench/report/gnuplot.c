/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs gnuplot; see gnuplot.h. */
#define LOG_ROOM "bench/report"
#include "bench/report/gnuplot.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/log.h"
#include "util/spawn.h"

#define TIME_MAX_S 60
#define PICTURE_BYTES_MAX (64 << 20)

static volatile sig_atomic_t stopped;
static struct sigaction before_int, before_term;

static void on_signal(int number)
{
	stopped = number;
}

void report_gnuplot_begin(void)
{
	struct sigaction a = { .sa_handler = on_signal };

	stopped = 0;
	sigaction(SIGINT, NULL, &before_int);
	sigaction(SIGTERM, NULL, &before_term);
	/* What the caller ignores (nohup, a job in the background) stays ignored. */
	if (before_int.sa_handler != SIG_IGN)
		sigaction(SIGINT, &a, NULL);
	if (before_term.sa_handler != SIG_IGN)
		sigaction(SIGTERM, &a, NULL);
}

void report_gnuplot_end(void)
{
	sigaction(SIGINT, &before_int, NULL);
	sigaction(SIGTERM, &before_term, NULL);
}

int report_gnuplot_stopped(void)
{
	return stopped;
}

bool report_gnuplot_found(void)
{
	return spawn_is_installed("gnuplot");
}

struct child {
	int in, out, err; /* memory files */
	pid_t pid;
	int pid_fd;
};

static int memory_file(const char *name, const void *bytes, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, (const char *)bytes + done, size - done);

		if (n < 0 && errno != EINTR) {
			int err = -errno;

			close(fd);
			return err;
		}
		done += n > 0 ? (size_t)n : 0;
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* -d: without the settings of the user or the system. */
static int start(struct child *c)
{
	static char *const argv[] = { (char *)"gnuplot", (char *)"-d", NULL };
	static const struct spawn_variable changes[] = {
		{ .name = "GNUPLOT_LIB" }, { .name = "LC_ALL", .value = "C.UTF-8" }, { .name = NULL },
	};
	char **envp = spawn_environment(changes);
	/* What a terminal sends to all is for us alone: we end it. */
	const struct spawn gnuplot = { .argv = argv, .envp = envp, .group = true,
				       .streams = { c->in, c->out, c->err },
				       .death_signal = SIGKILL };
	pid_t pid = envp ? spawn_program(&gnuplot) : -ENOMEM;

	spawn_environment_free(envp);
	if (pid < 0) {
		log_error("cannot start gnuplot: %s", strerror((int)-pid));
		return (int)pid;
	}
	c->pid = pid;
	c->pid_fd = (int)syscall(SYS_pidfd_open, (long)c->pid, 0L);
	return 0;
}

/* Waits for its end; 0 with *status set, -EINTR or -ETIME, and then it was killed. */
static int await(struct child *c, int *status)
{
	struct pollfd p = { .fd = c->pid_fd, .events = POLLIN };
	struct timespec limit = { .tv_sec = TIME_MAX_S };
	sigset_t mask, old;
	int ret = 0, n = 1;

	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, &old);
	/* Without pidfd_open (Linux before 5.3) only the end itself is waited for. */
	while (!stopped && c->pid_fd >= 0) {
		n = ppoll(&p, 1, &limit, &old);
		if (n >= 0 || errno != EINTR)
			break;
	}
	if (stopped)
		ret = -EINTR;
	else if (!n)
		ret = -ETIME;
	if (ret)
		kill(c->pid, SIGKILL);
	while (waitpid(c->pid, status, 0) < 0 && errno == EINTR)
		;
	sigprocmask(SIG_SETMASK, &old, NULL);
	return ret;
}

/* The whole memory file as a string, at most `max` bytes of it; NULL without memory. */
static char *contents(int fd, size_t max)
{
	off_t end = lseek(fd, 0, SEEK_END);
	size_t size = end > 0 ? (size_t)end : 0, done = 0;
	char *text;

	size = size > max ? max : size;
	text = malloc(size + 1);
	while (text && done < size) {
		ssize_t n = pread(fd, text + done, size - done, (off_t)done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (text)
		text[done] = '\0';
	return text;
}

/* The last line of what gnuplot wrote to its standard error that is no picture of where the
 * error stands. */
static void log_failure(const char *name, const struct child *c, int status)
{
	char *text = contents(c->err, 1 << 16), *rest = text, *line, *last = NULL;

	while (rest && (line = strsep(&rest, "\n")))
		if (line[strspn(line, " \t^")])
			last = line;
	if (WIFSIGNALED(status))
		log_error("figure '%s': gnuplot was ended by signal %d", name,
			  WTERMSIG(status));
	else
		log_error("figure '%s': gnuplot failed with status %d: %s", name,
			  WEXITSTATUS(status), last ? last : "no message");
	free(text);
}

static int converse(struct child *c, const char *name, char **picture)
{
	int status = 0, ret = start(c);

	if (ret)
		return ret;
	ret = await(c, &status);
	if (c->pid_fd >= 0)
		close(c->pid_fd);
	if (ret == -ETIME)
		log_error("figure '%s': gnuplot took longer than %d s and was ended", name,
			  TIME_MAX_S);
	if (ret)
		return ret;
	*picture = contents(c->out, PICTURE_BYTES_MAX);
	if (!*picture)
		return -ENOMEM;
	if (status || !strstr(*picture, "</svg>")) {
		log_failure(name, c, status);
		free(*picture);
		*picture = NULL;
		return -ENOEXEC;
	}
	return 0;
}

int report_gnuplot_run(const char *name, const char *script, size_t size, char **picture)
{
	struct child c = { .in = -1, .out = -1, .err = -1, .pid_fd = -1 };
	int ret = 0;

	c.in = memory_file("gnuplot-in", script, size);
	c.out = memory_file("gnuplot-out", NULL, 0);
	c.err = memory_file("gnuplot-err", NULL, 0);
	if (c.in < 0 || c.out < 0 || c.err < 0) {
		ret = c.in < 0 ? c.in : c.out < 0 ? c.out : c.err;
		log_error("no memory for a figure: %s", strerror(-ret));
	}
	if (!ret)
		ret = stopped ? -EINTR : converse(&c, name, picture);
	if (c.in >= 0)
		close(c.in);
	if (c.out >= 0)
		close(c.out);
	if (c.err >= 0)
		close(c.err);
	return ret;
}
