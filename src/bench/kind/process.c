/* SPDX-License-Identifier: BSD-2-Clause */
/* See process.h; and what the commands have in common: Ctrl-C, and their command line. */
#define LOG_ROOM "bench/program"
#include "bench/kind/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/kind/command.h"
#include "util/beside.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/spawn.h"

#define LOOK_MS 5

void process_words_add(struct process_words *w, const char *word)
{
	char *copy = w->count < PROCESS_WORDS_MAX ? strdup(word) : NULL;

	if (copy)
		w->argv[w->count++] = copy;
	else
		w->failed = true;
}

void process_words_list(struct process_words *w, ...)
{
	const char *word;
	va_list words;

	va_start(words, w);
	while ((word = va_arg(words, const char *)))
		process_words_add(w, word);
	va_end(words);
}

void process_words_number(struct process_words *w, const char *option, long long value)
{
	char text[30];

	snprintf(text, sizeof(text), "%lld", value);
	process_words_add(w, option);
	process_words_add(w, text);
}

void process_words_split(struct process_words *w, const char *words)
{
	for (; words += strspn(words, " "), *words; words += strcspn(words, " ")) {
		char *word = strndup(words, strcspn(words, " "));

		if (word)
			process_words_add(w, word);
		else
			w->failed = true;
		free(word);
	}
}

void process_words_self(struct process_words *w, const char *words)
{
	char self[PATH_MAX];

	beside_self(self);
	process_words_add(w, self);
	process_words_split(w, words);
}

void process_words_exec(struct process_words *w, const char *option)
{
	process_words_self(w, "exec --quiet");
	process_words_list(w, option ? option : "--", option ? "--" : NULL, NULL);
}

void process_words_free(struct process_words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->argv[i]);
	*w = (struct process_words){ .count = 0 };
}

/* Its standard error is its standard output where it has no file of its own. */
static int spawn(struct process *p, char **envp, int out, int errors)
{
	cpu_set_t set;
	const struct spawn program = {
		.argv = p->argv, .envp = envp,
		.folder = p->folder, .streams = { SPAWN_NULL, out, p->errors ? errors : out },
		.group = true, .session = p->session,
		.death_signal = p->death_signal ? p->death_signal : SIGKILL,
		.cpus = p->cpu >= 0 ? &set : NULL, .prepare = p->prepare, .arg = p->arg,
	};
	pid_t pid;

	if (out < 0 || (p->errors && errors < 0))
		return -errno;
	CPU_ZERO(&set);
	if (p->cpu >= 0)
		CPU_SET(p->cpu, &set);
	pid = spawn_program(&program);
	p->pid = pid > 0 ? pid : 0;
	return pid < 0 ? (int)pid : 0;
}

int process_start(struct process *p)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
	int out = open(p->output, flags, 0666), errors = p->errors ? open(p->errors, flags, 0666) : -1;
	char **envp = p->set ? spawn_environment(p->set) : NULL;
	int ret = p->set && !envp ? -ENOMEM : spawn(p, envp, out, errors);

	spawn_environment_free(envp);
	if (out >= 0)
		close(out);
	if (errors >= 0)
		close(errors);
	if (ret)
		log_error("no process for %s%s: %s", p->argv[0],
			  p->cpu >= 0 && ret == -EINVAL ? " on its processor" : "", strerror(-ret));
	return ret;
}

int process_copy(struct process *p, void (*run)(void *arg), void *arg)
{
	pid_t pid = spawn_copy(SIGKILL);

	if (pid < 0)
		return log_fail(-errno, "cannot start a process: %s", strerror(errno));
	setpgid(pid, pid);
	if (!pid) {
		run(arg);
		_exit(0);
	}
	p->pid = pid;
	return 0;
}

int process_run(struct process *p, uint64_t until_ns, const atomic_bool *stop)
{
	int ret = process_start(p) ?: process_await(p, until_ns, stop);

	process_kill(p);
	return ret;
}

void process_kill(struct process *p)
{
	if (!p->pid)
		return;
	kill(-p->pid, SIGKILL);
	p->status = spawn_wait(p->pid);
	p->pid = 0;
}

static bool has_ended_within(struct process *p, int ms)
{
	if (!p->pid)
		return true;
	if (!spawn_has_ended(p->pid, ms, &p->status))
		return false;
	kill(-p->pid, SIGKILL);
	p->pid = 0;
	return true;
}

bool process_has_ended(struct process *p)
{
	return has_ended_within(p, 0);
}

int process_await(struct process *p, uint64_t until_ns, const atomic_bool *stop)
{
	while (!has_ended_within(p, LOOK_MS)) {
		if (stop && atomic_load(stop))
			return -EINTR;
		if (clock_monotonic_ns_slow() > until_ns)
			return -ETIMEDOUT;
	}
	return 0;
}

bool process_end(struct process *p, unsigned seconds)
{
	bool ended;

	if (p->pid)
		kill(p->pid, SIGTERM);
	ended = !process_await(p, clock_monotonic_ns_slow() + seconds * NSEC_PER_SEC, NULL);
	process_kill(p);
	return ended;
}

int process_failed(const struct process *p, const char *who)
{
	if (WIFSIGNALED(p->status))
		log_error("the %s %s was ended by signal %d; its output is in %s", who,
			  p->argv[0], WTERMSIG(p->status), p->output);
	else
		log_error("the %s %s ended with status %d", who, p->argv[0],
			  WEXITSTATUS(p->status));
	return -EIO;
}

/* The folder of a failed case goes, so they are all that is left of it. */
void process_show_end(const char *who, const char *path)
{
	char last[3][200] = { "", "", "" }, line[200];
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line || strchr("-*", *line))
			continue;
		memmove(last[0], last[1], sizeof(last[0]) * 2);
		strcpy(last[2], line);
	}
	if (f)
		fclose(f);
	for (int i = 0; i < 3; i++)
		if (*last[i])
			log_error("%s: %s", who, last[i]);
}

void process_pause(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = LOOK_MS * 1000000 }, NULL);
}

#define PORTS_MAX 4

int process_free_ports(unsigned *ports, size_t count)
{
	int fd[PORTS_MAX], ret = 0;
	size_t open = 0;

	/* All at once, so that they differ. */
	for (; open < MIN(count, (size_t)PORTS_MAX) && !ret; open++) {
		struct sockaddr_in a = { .sin_family = AF_INET };
		socklen_t len = sizeof(a);

		fd[open] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd[open] < 0 || bind(fd[open], (struct sockaddr *)&a, len) ||
		    getsockname(fd[open], (struct sockaddr *)&a, &len))
			ret = -errno;
		ports[open] = ntohs(a.sin_port);
	}
	while (open--)
		if (fd[open] >= 0)
			close(fd[open]);
	return ret;
}

/* ---- commands ---- */

static atomic_bool asked;

static void on_signal(int number)
{
	atomic_store(&asked, true);
}

const atomic_bool *bench_catch_signals(void)
{
	/* Without SA_RESTART: what waits in a system call comes out of it. */
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = (int)SA_RESETHAND };

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	return &asked;
}

char **bench_command(int argc, char **argv)
{
	char **all = calloc((size_t)argc + 3, sizeof(*all));

	if (!all)
		return NULL;
	all[0] = (char *)"busbar";
	all[1] = (char *)"bench";
	memcpy(all + 2, argv, (size_t)argc * sizeof(*argv));
	return all;
}
