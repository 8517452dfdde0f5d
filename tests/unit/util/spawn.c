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

/* What a shell command prints, started by `s` with its output as `number`. */
static const char *said(struct spawn *s, const char *command, int number)
{
	static char text[4000];
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)command, NULL };
	size_t used = 0;
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	s->argv = argv;
	s->streams[number] = fds[1];
	pid = spawn_program(s);
	assert_true(pid > 0);
	close(fds[1]);
	while ((n = read(fds[0], text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = 0;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return text;
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

static void signals_are_at_their_defaults(void **state)
{
	struct spawn s = { .streams = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL } };
	const unsigned long long own = 3ull << 31;
	unsigned long long blocked, ignored;
	sigset_t set, before;
	const char *text;

	signal(SIGUSR1, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, &before);
	text = said(&s, "grep -E 'SigBlk|SigIgn' /proc/self/status | tr -d '[:space:]'", 1);
	assert_int_equal(sscanf(text, "SigBlk:%llxSigIgn:%llx", &blocked, &ignored), 2);
	/* The C library keeps the signals 32 and 33 for itself. */
	assert_true(!(blocked & ~own) && !(ignored & ~own));
	sigprocmask(SIG_SETMASK, &before, NULL);
	signal(SIGUSR1, SIG_DFL);
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
		cmocka_unit_test(signals_are_at_their_defaults),
		cmocka_unit_test(the_environment_is_changed),
		cmocka_unit_test(groups_and_processors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
