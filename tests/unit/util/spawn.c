/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs get the streams, the folder, the environment and the signals that they should. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/spawn.h"

static const struct spawn_limits patient = { .ms = 60000, .bytes = 4000 };

/* What a shell command prints, started by `s` with its output as `number`. */
static const char *said(struct spawn *s, const char *command, int number)
{
	static char *text;
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)command, NULL };
	int pipes[3], status;
	size_t bytes;
	pid_t pid;

	free(text);
	s->argv = argv;
	s->pipes = pipes;
	s->streams[number] = SPAWN_PIPE;
	pid = spawn_program(s);
	assert_true(pid > 0);
	assert_int_equal(spawn_collect(pid, pipes[number], &patient, &text, &bytes, &status), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(strlen(text), bytes);
	return text;
}

static pid_t started(const char *command, int *pipes)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)command, NULL };
	const struct spawn s = { .argv = argv, .pipes = pipes,
				 .streams = { SPAWN_NULL, SPAWN_PIPE, SPAWN_NULL }, .group = true };
	pid_t pid = spawn_program(&s);

	assert_true(pid > 0);
	return pid;
}

static void streams_and_folder(void **state)
{
	struct spawn s = { .streams = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL }, .folder = "/usr" };

	assert_string_equal(said(&s, "pwd; cat", 1), "/usr\n");
	s.streams[1] = SPAWN_NULL;
	assert_string_equal(said(&s, "echo a; echo b >&2", 2), "b\n");
	/* Nothing else of ours. */
	s.streams[2] = SPAWN_NULL;
	assert_string_equal(said(&s, "for i in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$i ] && echo $i; done", 1), "");
}

static void a_program_that_is_not_there_is_told(void **state)
{
	char *argv[] = { (char *)"no-such-program", NULL };
	struct spawn s = { .argv = argv, .streams = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL } };

	assert_int_equal(spawn_program(&s), -ENOENT);
	argv[0] = (char *)"true";
	s.folder = "/no/such/folder";
	assert_int_equal(spawn_program(&s), -ENOENT);
	/* No zombie is left. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_true(spawn_is_installed("sh"));
	assert_false(spawn_is_installed("no-such-program"));
}

/* The C library keeps the signals 32 and 33 for itself. */
static void blocked_and_ignored(struct spawn *s, unsigned long long *blocked,
				unsigned long long *ignored)
{
	const char *text = said(s, "grep -E 'SigBlk|SigIgn' /proc/self/status | tr -d '[:space:]'", 1);

	assert_int_equal(sscanf(text, "SigBlk:%llxSigIgn:%llx", blocked, ignored), 2);
	*blocked &= ~(3ull << 31);
	*ignored &= ~(3ull << 31);
}

static void on_signal(int number)
{
}

static void signals_are_at_their_defaults_or_those_of_the_caller(void **state)
{
	struct spawn s = { .streams = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL } };
	unsigned long long blocked, ignored;
	sigset_t set, before;

	signal(SIGUSR1, SIG_IGN);
	signal(SIGHUP, on_signal);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, &before);
	blocked_and_ignored(&s, &blocked, &ignored);
	assert_true(!blocked && !ignored);
	sigprocmask(SIG_SETMASK, &before, NULL);
	s.blocked = &set;
	blocked_and_ignored(&s, &blocked, &ignored);
	assert_true(blocked == 1ull << (SIGUSR2 - 1));
	/* Perhaps with others, which our caller ignores. */
	assert_true(ignored & 1ull << (SIGUSR1 - 1));
	assert_false(ignored & 1ull << (SIGHUP - 1));
	signal(SIGUSR1, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
}

static void the_environment_is_changed(void **state)
{
	static const struct spawn_variable changes[] = {
		{ .name = "SPAWN_SET", .value = "new" }, { .name = "SPAWN_GONE" },
		{ .name = "SPAWN_STAYS", .value = "no", .gives_way = true },
		{ .name = "SPAWN_ADDED", .value = "yes", .gives_way = true }, { .name = NULL },
	};
	struct spawn s = { .streams = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL } };
	char **envp;

	setenv("SPAWN_SET", "old", 1);
	setenv("SPAWN_GONE", "old", 1);
	setenv("SPAWN_STAYS", "old", 1);
	setenv("SPAWN_SET_MORE", "kept", 1);
	envp = spawn_environment(changes);
	s.envp = envp;
	assert_string_equal(said(&s, "echo $SPAWN_SET $SPAWN_GONE $SPAWN_STAYS $SPAWN_ADDED $SPAWN_SET_MORE", 1),
			    "new old yes kept\n");
	spawn_environment_free(envp);
	spawn_environment_free(NULL);
	assert_string_equal(getenv("SPAWN_SET"), "old");
}

static bool always(void)
{
	return true;
}

static void output_has_limits(void **state)
{
	static const struct spawn_limits hasty = { .ms = 50, .bytes = 4000 },
					 stopped = { .ms = 60000, .bytes = 4000, .stop = always };
	char *text = (char *)"not set";
	int pipes[3], status;
	size_t bytes;
	pid_t pid = started("exec sleep 60", pipes);

	assert_int_equal(spawn_collect(pid, pipes[1], &hasty, &text, &bytes, &status), -ETIMEDOUT);
	assert_null(text);
	pid = started("exec cat /dev/zero", pipes);
	assert_int_equal(spawn_collect(pid, pipes[1], &patient, &text, &bytes, &status), -EFBIG);
	pid = started("exec sleep 60", pipes);
	assert_int_equal(spawn_collect(pid, pipes[1], &stopped, &text, &bytes, &status), -EINTR);
	/* It lives on without its output. */
	pid = started("exec >&-; exec sleep 60", pipes);
	assert_int_equal(spawn_collect(pid, pipes[1], &hasty, &text, &bytes, &status), -ETIMEDOUT);
	/* It has ended, and what it left behind has its output. */
	pid = started("echo all; sleep 60 & exit 3", pipes);
	assert_int_equal(spawn_collect(pid, pipes[1], &patient, &text, &bytes, &status), 0);
	assert_string_equal(text, "all\n");
	assert_int_equal(spawn_exit_status(status), 3);
	free(text);
	assert_int_equal(kill(-pid, SIGKILL), 0);
	/* No zombie is left. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void input_comes_from_memory(void **state)
{
	int in = spawn_memory_file("a graph", 7);
	struct spawn s = { .streams = { in, SPAWN_NULL, SPAWN_NULL } };

	assert_true(in >= 0);
	assert_string_equal(said(&s, "cat", 1), "a graph");
	close(in);
}

static int refuse(void *arg)
{
	return *(int *)arg;
}

static void a_child_is_prepared(void **state)
{
	int answer = -EPERM;
	struct spawn s = { .streams = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL }, .session = true,
			   .prepare = refuse, .arg = &answer };
	char *argv[] = { (char *)"true", NULL };

	s.argv = argv;
	assert_int_equal(spawn_program(&s), -EPERM);
	answer = 0;
	/* Its session and its group have its own number. */
	assert_string_equal(said(&s, "[ \"$(cut -d' ' -f5,6 /proc/$$/stat)\" = \"$$ $$\" ] && echo leads", 1),
			    "leads\n");
}

static void the_end_is_seen(void **state)
{
	int status = 0;
	pid_t pid = spawn_copy(SIGKILL);

	if (!pid) {
		pause();
		_exit(0);
	}
	assert_false(spawn_has_ended(pid, 0, &status));
	assert_false(spawn_has_ended(pid, 1, &status));
	kill(pid, SIGTERM);
	assert_true(spawn_has_ended(pid, 60000, &status));
	assert_int_equal(spawn_exit_status(status), 128 + SIGTERM);
	pid = spawn_copy(SIGKILL);
	if (!pid)
		_exit(7);
	assert_int_equal(spawn_exit_status(spawn_wait(pid)), 7);
	/* Of a caller that ignores the ends of children. */
	signal(SIGCHLD, SIG_IGN);
	pid = spawn_copy(SIGKILL);
	if (!pid)
		_exit(7);
	while (!spawn_has_ended(pid, 1000, &status))
		;
	assert_int_equal(status, 0);
	signal(SIGCHLD, SIG_DFL);
}

static void groups_and_processors(void **state)
{
	cpu_set_t set;
	struct spawn s = { .streams = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL }, .group = true,
			   .cpus = &set };
	char first[32];
	int cpu = 0;

	sched_getaffinity(0, sizeof(set), &set);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	snprintf(first, sizeof(first), "%d\n", cpu);
	assert_string_equal(said(&s, "grep -o 'Cpus_allowed_list:.*' /proc/self/status | cut -f2", 1), first);
	s.streams[1] = SPAWN_NULL;
	/* Its group has its own number. */
	assert_string_equal(said(&s, "[ $(cut -d' ' -f5 /proc/$$/stat) = $$ ] && echo leads", 1), "leads\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_and_folder),
		cmocka_unit_test(a_program_that_is_not_there_is_told),
		cmocka_unit_test(signals_are_at_their_defaults_or_those_of_the_caller),
		cmocka_unit_test(the_environment_is_changed),
		cmocka_unit_test(output_has_limits),
		cmocka_unit_test(input_comes_from_memory),
		cmocka_unit_test(a_child_is_prepared),
		cmocka_unit_test(the_end_is_seen),
		cmocka_unit_test(groups_and_processors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
