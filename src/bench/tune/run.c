/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that run while the processors may not sleep, or in the partition; see tune.h. */
#define LOG_ROOM "tune"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/tune/measure.h"
#include "bench/tune/setting.h"
#include "bench/tune/tune.h"
#include "util/log.h"
#include "util/spawn.h"

/* The same as in shells. */
enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

static int start_failed(const char *program, int err)
{
	return log_fail(err == ENOENT ? NOT_FOUND : NOT_EXECUTABLE, "%s: %s", program,
			strerror(err));
}

/* The child takes the place of the program that was asked for. */
static volatile sig_atomic_t child;

static void pass_on(int signal)
{
	if (child > 0)
		kill((pid_t)child, signal);
}

int tune_hold_main(const struct tune_options *o, char **argv)
{
	struct sigaction pass = { .sa_handler = pass_on, .sa_flags = SA_RESTART };
	int fd = tune_latency_request(o->root, o->latency_us), status;
	sigset_t set, before;
	const struct spawn program = {
		.argv = argv, .streams = { SPAWN_INHERITS, SPAWN_INHERITS, SPAWN_INHERITS },
		.blocked = &before,
	};
	pid_t pid;

	if (fd < 0)
		return log_fail(1, "%s/dev/cpu_dma_latency: %s%s", o->root, strerror(-fd),
				fd == -EACCES
				    ? " (root may write it, or give your group access by a udev rule)"
				    : "");
	/* A signal that comes before the child is known waits until then. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &before);
	pid = spawn_program(&program);
	if (pid < 0) {
		close(fd);
		return start_failed(argv[0], (int)-pid);
	}
	child = pid;
	/* The terminal sends these to the program as well, which decides. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	sigaction(SIGTERM, &pass, NULL);
	sigaction(SIGHUP, &pass, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	status = spawn_wait(pid);
	close(fd);
	return spawn_exit_status(status);
}

/* Ordinary programs may not lock much memory nor have a real-time priority. Root may raise
 * these limits; for others they stay, and `check` says so. */
static void raise_limits(void)
{
	const struct rlimit memory = { RLIM_INFINITY, RLIM_INFINITY }, priority = { 99, 99 };

	if (setrlimit(RLIMIT_MEMLOCK, &memory))
		log_debug("locked memory stays limited: %m");
	if (setrlimit(RLIMIT_RTPRIO, &priority))
		log_debug("real-time priorities stay limited: %m");
}

int tune_exec_main(const struct tune_options *o, char **argv)
{
	const struct tune_tree t = { .root = o->root };
	char mount[512], path[640], partition[128], pid[32];
	int err = tune_cgroup_mount(&t, mount, sizeof(mount));

	if (err)
		return log_fail(1, "cgroup version 2 is not mounted: there is no partition to start '%s' in",
				argv[0]);
	snprintf(path, sizeof(path), "%s/" TUNE_CGROUP "/cpuset.cpus.partition", mount);
	err = tune_tree_line(&t, path, partition, sizeof(partition));
	if (err)
		return log_fail(1,
				"%s%s: %s: make the partition with 'busbar tune apply --cpus LIST'",
				o->root, path, strerror(-err));
	if (strcmp(partition, "isolated") && strcmp(partition, "root"))
		log_warn("%s says '%s': other programs may run on these processors", path,
			 partition);
	snprintf(path, sizeof(path), "%s/" TUNE_CGROUP "/cgroup.procs", mount);
	snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	err = tune_tree_put(&t, path, pid);
	if (err)
		return log_fail(1, "moving to the cgroup: %s%s: %s%s", o->root, path,
				strerror(-err), err == -EACCES ? " (this needs root)" : "");
	raise_limits();
	execvp(argv[0], argv);
	return start_failed(argv[0], errno);
}
