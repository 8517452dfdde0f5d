/* SPDX-License-Identifier: BSD-2-Clause */
/* See pair.h. */
#define LOG_ROOM "bench/program"
#include "bench/suite/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"

#define LISTEN_SECONDS 20
#define LOOK_NS 5000000
#define TCP_LISTEN_STATE 0x0a

int pair_free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	ret = bind(fd, (struct sockaddr *)&a, size) ||
	      getsockname(fd, (struct sockaddr *)&a, &size) ? -errno : ntohs(a.sin_port);
	close(fd);
	return ret;
}

static void set_variable(const char *assignment)
{
	char name[100];
	size_t n = strcspn(assignment, "=");

	snprintf(name, sizeof(name), "%.*s", (int)n, assignment);
	setenv(name, assignment + n + 1, 0);
}

/* In the child. Its own group: Ctrl-C comes from us, when we have seen it. */
static _Noreturn void become(const struct pair_process *p, pid_t parent)
{
	cpu_set_t set;
	int out = open(p->output, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	int in = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (out < 0 || in < 0 || getppid() != parent)
		_exit(126);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	if (p->cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(p->cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	if (p->set)
		set_variable(p->set);
	execvp(p->argv[0], p->argv);
	dprintf(STDERR_FILENO, "%s: %s\n", p->argv[0], strerror(errno));
	_exit(127);
}

static int start(struct pair_process *p)
{
	pid_t parent = getpid();

	p->pid = fork();
	if (!p->pid)
		become(p, parent);
	if (p->pid > 0) {
		setpgid(p->pid, p->pid);
		return 0;
	}
	p->pid = 0;
	log_error("no process for %s: %s", p->argv[0], strerror(errno));
	return -EAGAIN;
}

static void kill_process(struct pair_process *p)
{
	if (!p->pid)
		return;
	kill(-p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	p->pid = 0;
}

/* Has it ended? Then its status, and it does not run any more. */
static bool has_ended(struct pair_process *p, int *status)
{
	if (waitpid(p->pid, status, WNOHANG) != p->pid)
		return false;
	/* What it started itself ends with it. */
	kill(-p->pid, SIGKILL);
	p->pid = 0;
	return true;
}

/* Does a TCP socket of this network namespace listen there? */
static bool listens_in(const char *table, int port)
{
	FILE *f = fopen(table, "re");
	char line[300];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		unsigned p, state;

		found = sscanf(line, " %*[0-9]: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &p, &state) == 2 &&
			p == (unsigned)port && state == TCP_LISTEN_STATE;
	}
	if (f)
		fclose(f);
	return found;
}

/* The same of busbar's own connection manager, whose ports are names of sockets. */
static bool cm_listens(int port)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[300], part[20];
	bool found = false;

	snprintf(part, sizeof(part), ".%d.", port);
	while (f && !found && fgets(line, sizeof(line), f)) {
		char *name = strstr(line, "@busbar.cm.");

		found = name && strstr(name, part);
	}
	if (f)
		fclose(f);
	return found;
}

static bool listens(int port)
{
	return listens_in("/proc/net/tcp", port) || listens_in("/proc/net/tcp6", port) ||
	       cm_listens(port);
}

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
}

static int failed(const struct pair_process *p, const char *who, int status)
{
	if (WIFSIGNALED(status))
		log_error("the %s %s was ended by signal %d; its output is in %s", who,
			  p->argv[0], WTERMSIG(status), p->output);
	else
		log_error("the %s %s ended with status %d", who, p->argv[0],
			  WEXITSTATUS(status));
	return -EIO;
}

static int await_listener(struct pair_process *server, int port, const atomic_bool *stop)
{
	uint64_t until = clock_monotonic_ns_slow() + LISTEN_SECONDS * NSEC_PER_SEC;
	int status;

	while (!listens(port)) {
		if (atomic_load(stop))
			return -EINTR;
		if (has_ended(server, &status))
			return failed(server, "server", status);
		if (clock_monotonic_ns_slow() > until) {
			log_error("the server %s does not listen on port %d",
				  server->argv[0], port);
			return -ETIMEDOUT;
		}
		pause_a_little();
	}
	return 0;
}

static int await_end(struct pair_process *p, const char *who, uint64_t until,
		     const atomic_bool *stop)
{
	int status;

	while (!has_ended(p, &status)) {
		if (atomic_load(stop))
			return -EINTR;
		if (clock_monotonic_ns_slow() > until) {
			log_error("the %s %s does not end", who, p->argv[0]);
			return -ETIMEDOUT;
		}
		pause_a_little();
	}
	return status ? failed(p, who, status) : 0;
}

int pair_run(struct pair_process *server, struct pair_process *client, int port,
	     double seconds_max, const atomic_bool *stop)
{
	uint64_t until;
	int ret;

	server->pid = client->pid = 0;
	ret = start(server);
	if (!ret)
		ret = await_listener(server, port, stop);
	if (!ret)
		ret = start(client);
	until = clock_monotonic_ns_slow() + (uint64_t)(seconds_max * 1e9);
	if (!ret)
		ret = await_end(client, "client", until, stop);
	if (!ret)
		ret = await_end(server, "server", until, stop);
	kill_process(client);
	kill_process(server);
	return ret;
}
