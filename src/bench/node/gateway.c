/* SPDX-License-Identifier: BSD-2-Clause */
/* Child processes that run gateways; see gateway.h. */
#define LOG_ROOM "bench/node"
#include "bench/node/gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/node/namespaces.h"
#include "util/clock.h"
#include "util/log.h"

#define READY_S 20.0
#define END_S 3.0
#define LOOK_S 0.001
#define LOG_SHOWN 4096
#define SLICE_S 1.0

static void file_name(const struct bench_node_gateway *g, const char *suffix,
		      char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s.%s", g->dir, g->name, suffix);
}

bool bench_node_pause(double seconds, const atomic_bool *stop)
{
	while (seconds > 0 && !(stop && atomic_load(stop))) {
		double now = fmin(seconds, SLICE_S);
		struct timespec t = { (time_t)now, (long)((now - floor(now)) * 1e9) };

		/* A signal may be the one that sets `stop`. */
		nanosleep(&t, NULL);
		seconds -= now;
	}
	return stop && atomic_load(stop);
}

/* Output to a file in place of a descriptor; in the child. */
static void redirect(const struct bench_node_gateway *g, const char *suffix, int to)
{
	char path[PATH_MAX];
	int fd;

	file_name(g, suffix, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || dup2(fd, to) < 0)
		_exit(126);
	if (fd != to)
		close(fd);
}

static void pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fprintf(stderr, "cannot run on processor %d: %s\n", cpu,
			strerror(errno));
}

/* The child; does not return. What goes wrong stands in its log. */
static void run_child(const struct bench_node_gateway *g, const char *program,
		      pid_t parent)
{
	char conf[64], control[80];
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);

	redirect(g, "json", STDOUT_FILENO);
	redirect(g, "log", STDERR_FILENO);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	/* A Ctrl-C is for the benchmark, which then ends the gateways. */
	if (g->session)
		setsid();
	else
		setpgid(0, 0);
	if (g->namespaces && bench_node_namespaces_enter(g->namespaces))
		_exit(126);
	/* Behind the namespaces, because a change of rights clears it. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(126);
	pin(g->cpu);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	if (chdir(g->dir)) {
		perror(g->dir);
		_exit(126);
	}
	snprintf(conf, sizeof(conf), "%s.conf", g->name);
	snprintf(control, sizeof(control), "--control=%s.sock", g->name);
	execl(program, "busbar", "run", "-q", "-d", "info", "--summary=json",
	      control, conf, NULL);
	perror(program);
	_exit(126);
}

int bench_node_gateway_start(struct bench_node_gateway *g, const json_t *configuration)
{
	char path[PATH_MAX], program[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	pid_t parent = getpid();

	if (n < 0 || access("/proc/self/exe", X_OK)) {
		log_error("cannot find this executable: %s", strerror(errno));
		return -errno;
	}
	program[n] = '\0';
	file_name(g, "conf", path);
	if (json_dump_file(configuration, path, JSON_INDENT(2))) {
		log_error("cannot write '%s'", path);
		return -EIO;
	}
	/* Here, so that it is there to be looked at. */
	file_name(g, "log", path);
	close(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	fflush(NULL);
	g->status = -1;
	g->pid = fork();
	if (!g->pid)
		run_child(g, program, parent);
	if (g->pid < 0) {
		g->pid = 0;
		log_error("cannot start a process: %s", strerror(errno));
		return -errno;
	}
	return 0;
}

bool bench_node_gateway_has_ended(struct bench_node_gateway *g)
{
	int status;

	if (!g->pid)
		return true;
	if (waitpid(g->pid, &status, WNOHANG) != g->pid)
		return false;
	g->pid = 0;
	g->status = WIFEXITED(status) ? WEXITSTATUS(status) :
					128 + WTERMSIG(status);
	return true;
}

static char *read_text(const struct bench_node_gateway *g, const char *suffix)
{
	char path[PATH_MAX], *text = NULL;
	struct stat st;
	ssize_t n = 0;
	int fd;

	file_name(g, suffix, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st))
		text = malloc((size_t)st.st_size + 1);
	if (text) {
		n = read(fd, text, (size_t)st.st_size);
		text[n < 0 ? 0 : n] = '\0';
	}
	close(fd);
	return text;
}

char *bench_node_gateway_log(const struct bench_node_gateway *g)
{
	return read_text(g, "log");
}

static void show_log(const struct bench_node_gateway *g)
{
	char *text = read_text(g, "log");
	size_t len = text ? strlen(text) : 0;
	const char *from = text;

	if (len > LOG_SHOWN) {
		from = strchr(text + len - LOG_SHOWN, '\n');
		from = from ? from + 1 : text;
	}
	if (len)
		fprintf(stderr, "--- log of the %s\n%s---\n", g->name, from);
	free(text);
}

int bench_node_gateway_await(struct bench_node_gateway *g, const char *text,
			     const atomic_bool *stop)
{
	double left_s = READY_S;

	for (;;) {
		bool ended = bench_node_gateway_has_ended(g);
		char *log = read_text(g, "log");
		bool found = log && strstr(log, text);

		free(log);
		if (found)
			return 0;
		if (ended) {
			log_error("the gateway of the %s ended with status %d before it was ready",
				  g->name, g->status);
			show_log(g);
			return -EIO;
		}
		if (left_s <= 0)
			break;
		if (bench_node_pause(LOOK_S, stop))
			return -EINTR;
		left_s -= LOOK_S;
	}
	log_error("the gateway of the %s did not say '%s' within %.0f s", g->name,
		  text, READY_S);
	show_log(g);
	return -ETIMEDOUT;
}

int bench_node_gateway_await_end(struct bench_node_gateway *g, double seconds,
				 const atomic_bool *stop)
{
	double left_s = seconds;

	while (!bench_node_gateway_has_ended(g)) {
		if (left_s <= 0) {
			log_error("the gateway of the %s did not end within %.0f s",
				  g->name, seconds);
			show_log(g);
			return -ETIMEDOUT;
		}
		if (bench_node_pause(LOOK_S, stop))
			return -EINTR;
		left_s -= LOOK_S;
	}
	return 0;
}

void bench_node_gateway_kill(struct bench_node_gateway *g)
{
	if (g->pid)
		kill(g->pid, SIGKILL);
	while (!bench_node_gateway_has_ended(g))
		bench_node_pause(LOOK_S / 10, NULL);
}

void bench_node_gateway_stop(struct bench_node_gateway *g)
{
	double left_s = END_S;

	if (bench_node_gateway_has_ended(g))
		return;
	kill(g->pid, SIGCONT);
	kill(g->pid, SIGTERM);
	while (!bench_node_gateway_has_ended(g)) {
		if (left_s <= 0) {
			log_warn("the gateway of the %s does not end, and is killed",
				 g->name);
			kill(g->pid, SIGKILL);
			left_s = INFINITY;
		}
		bench_node_pause(LOOK_S, NULL);
		left_s -= LOOK_S;
	}
}

int bench_node_gateway_judge(const struct bench_node_gateway *g)
{
	/* 3: samples were lost that the configuration does not allow to be lost. */
	if (g->status == 0 || g->status == 3)
		return 0;
	log_error("the gateway of the %s ended with status %d", g->name, g->status);
	show_log(g);
	return -EIO;
}

uint64_t bench_node_gateway_cpu_ns(const struct bench_node_gateway *g)
{
	struct timespec t;
	clockid_t clock;

	if (!g->pid || clock_getcpuclockid(g->pid, &clock) ||
	    clock_gettime(clock, &t))
		return 0;
	return timespec_to_ns(t);
}

json_t *bench_node_gateway_summary(const struct bench_node_gateway *g)
{
	json_error_t err;
	char *text = read_text(g, "json");
	json_t *o = text ? json_loads(text, 0, &err) : NULL;

	if (!o)
		log_error("the gateway of the %s has left no summary", g->name);
	free(text);
	return o;
}
