/* SPDX-License-Identifier: BSD-2-Clause */
/* Nice values of processes and sessions. Each case runs in a child of its own. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/nice.h"

/* Runs `body` in a child. 0: success, else the line of the failed check. */
static int in_child(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define EXPECT(condition)                \
	do {                             \
		if (!(condition))        \
			return __LINE__; \
	} while (0)

struct helper {
	pthread_t thread;
	pthread_barrier_t there, look;
	bool chooses;
	int nice;
};

static void *help(void *arg)
{
	struct helper *h = arg;

	if (h->chooses)
		setpriority(PRIO_PROCESS, 0, 15);
	pthread_barrier_wait(&h->there);
	pthread_barrier_wait(&h->look);
	h->nice = getpriority(PRIO_PROCESS, 0);
	return NULL;
}

static void start_helper(struct helper *h)
{
	pthread_barrier_init(&h->there, NULL, 2);
	pthread_barrier_init(&h->look, NULL, 2);
	pthread_create(&h->thread, NULL, help, h);
	pthread_barrier_wait(&h->there);
}

static int nice_of(struct helper *h)
{
	pthread_barrier_wait(&h->look);
	pthread_join(h->thread, NULL);
	return h->nice;
}

static int set_all(void)
{
	struct helper plain = { 0 }, other = { .chooses = true };
	int was = getpriority(PRIO_PROCESS, 0);

	start_helper(&plain);
	start_helper(&other);
	EXPECT(nice_set(was + 3, was) == 0);
	EXPECT(getpriority(PRIO_PROCESS, 0) == was + 3);
	EXPECT(nice_of(&plain) == was + 3);
	EXPECT(nice_of(&other) == 15);
	return 0;
}

static void all_threads_but_those_with_their_own(void **state)
{
	(void)state;
	assert_int_equal(in_child(set_all), 0);
}

static int refused(void)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_NICE, &none);
	/* Gives up root's rights. */
	if (!getuid() && (setgid(65534) || setuid(65534)))
		return 77;
	EXPECT(nice_set(-20, getpriority(PRIO_PROCESS, 0)) < 0);
	EXPECT(getpriority(PRIO_PROCESS, 0) > -20);
	return 0;
}

static void a_refusal_is_an_error(void **state)
{
	int status = in_child(refused);

	(void)state;
	if (status == 77)
		skip();
	assert_int_equal(status, 0);
}

static int grouped(void)
{
	FILE *f = fopen("/proc/sys/kernel/sched_autogroup_enabled", "re");
	char on = '0', text[64] = "";

	if (f) {
		on = (char)fgetc(f);
		fclose(f);
	}
	EXPECT(nice_set_session(4) == (on == '1' ? -EXDEV : 0));
	EXPECT(setsid() > 0);
	EXPECT(nice_set_session(4) == 0);
	if (on != '1')
		return 0;
	f = fopen("/proc/self/autogroup", "re");
	EXPECT(f && fgets(text, sizeof(text), f));
	fclose(f);
	EXPECT(strstr(text, "nice 4"));
	return 0;
}

static void only_its_leader_sets_the_session(void **state)
{
	(void)state;
	assert_int_equal(in_child(grouped), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_threads_but_those_with_their_own),
		cmocka_unit_test(a_refusal_is_an_error),
		cmocka_unit_test(only_its_leader_sets_the_session),
	};

	return cmocka_run_group_tests_name("nice", tests, NULL, NULL);
}
