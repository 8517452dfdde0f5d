/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs gnuplot; see gnuplot.h. */
#define LOG_ROOM "bench/report"
#include "bench/report/gnuplot.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/log.h"
#include "util/spawn.h"

#define TIME_MAX_S 60
#define ERRORS_MAX 65536

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

static bool is_stopped(void)
{
	return stopped;
}

static const struct spawn_limits limits = {
	.ms = TIME_MAX_S * 1000, .bytes = 64 << 20, .stop = is_stopped,
};

/* -d: without the settings of the user or the system. */
static pid_t start(int in, int *out, int errors)
{
	static char *const argv[] = { (char *)"gnuplot", (char *)"-d", NULL };
	static const struct spawn_variable changes[] = {
		{ .name = "GNUPLOT_LIB" }, { .name = "LC_ALL", .value = "C.UTF-8" }, { .name = NULL },
	};
	char **envp = spawn_environment(changes);
	int pipes[3];
	/* What a terminal sends to all is for us alone: we end it. */
	const struct spawn gnuplot = { .argv = argv, .envp = envp, .group = true, .pipes = pipes,
				       .streams = { in, SPAWN_PIPE, errors },
				       .death_signal = SIGKILL };
	pid_t pid = envp ? spawn_program(&gnuplot) : -ENOMEM;

	spawn_environment_free(envp);
	if (pid < 0)
		log_error("cannot start gnuplot: %s", strerror((int)-pid));
	*out = pipes[STDOUT_FILENO];
	return pid;
}

/* The last line of what gnuplot wrote to its standard error that is no picture of where the
 * error stands. */
static void log_failure(const char *name, int errors, int status)
{
	char text[ERRORS_MAX], *rest = text, *line, *last = NULL;
	ssize_t n = pread(errors, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	while ((line = strsep(&rest, "\n")))
		if (line[strspn(line, " \t^")])
			last = line;
	if (WIFSIGNALED(status))
		log_error("figure '%s': gnuplot was ended by signal %d", name,
			  WTERMSIG(status));
	else
		log_error("figure '%s': gnuplot failed with status %d: %s", name,
			  WEXITSTATUS(status), last ? last : "no message");
}

static int draw(int in, int errors, const char *name, char **picture)
{
	int out, status, ret;
	size_t bytes;
	pid_t pid = start(in, &out, errors);

	if (pid < 0)
		return (int)pid;
	ret = spawn_collect(pid, out, &limits, picture, &bytes, &status);
	if (ret == -ETIMEDOUT)
		log_error("figure '%s': gnuplot took longer than %d s and was ended", name,
			  TIME_MAX_S);
	else if (ret && ret != -EINTR)
		log_error("figure '%s': gnuplot was ended: %s", name, strerror(-ret));
	if (ret)
		return ret;
	if (status || !strstr(*picture, "</svg>")) {
		log_failure(name, errors, status);
		free(*picture);
		*picture = NULL;
		return -ENOEXEC;
	}
	return 0;
}

int report_gnuplot_run(const char *name, const char *script, size_t size, char **picture)
{
	int in = spawn_memory_file(script, size), errors = spawn_memory_file(NULL, 0);
	int ret = in < 0 ? in : errors < 0 ? errors : 0;

	if (ret)
		log_error("no memory for a figure: %s", strerror(-ret));
	else
		ret = stopped ? -EINTR : draw(in, errors, name, picture);
	if (in >= 0)
		close(in);
	if (errors >= 0)
		close(errors);
	return ret;
}
