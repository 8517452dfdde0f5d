/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of users in a user namespace that maps none, one or all. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
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

#include "util/user.h"

#define REFUSED 255

static unsigned overflow;

/* Runs `body` in a child. 0: success, else the line of the failed check. */
static void in_child(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == REFUSED)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define EXPECT(condition)                \
	do {                             \
		if (!(condition))        \
			return __LINE__; \
	} while (0)

static int nothing_mapped(void)
{
	const struct rlimit none = { 0, 0 };

	if (unshare(CLONE_NEWUSER))
		return REFUSED;
	EXPECT(geteuid() == overflow);
	for (int i = 0; i < 2; i++) {
		EXPECT(!user_is_known(overflow) && !user_group_is_known(overflow));
		EXPECT(!user_is_ours(geteuid()) && !user_is_ours_or_root(geteuid()));
		EXPECT(user_is_known(0) && user_is_known(1000) && user_is_ours_or_root(0));
		/* The same without a descriptor left. */
		EXPECT(!setrlimit(RLIMIT_NOFILE, &none));
	}
	return 0;
}

/* The overflow id is mapped, and yet stands for all others, too. */
static int itself_mapped(void)
{
	unsigned uid = geteuid();
	int fd;

	if (unshare(CLONE_NEWUSER))
		return REFUSED;
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || dprintf(fd, "%u %u 1\n", overflow, uid) < 0)
		return REFUSED;
	close(fd);
	EXPECT(geteuid() == overflow);
	EXPECT(!user_is_known(overflow) && !user_is_ours(overflow));
	return 0;
}

static int other_mapped(void)
{
	unsigned uid = geteuid();
	int fd;

	if (unshare(CLONE_NEWUSER))
		return REFUSED;
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || dprintf(fd, "5 %u 1\n", uid) < 0)
		return REFUSED;
	close(fd);
	EXPECT(geteuid() == 5 && user_is_ours(5) && !user_is_known(overflow));
	return 0;
}

static void who_is_not_mapped_is_not_known(void **state)
{
	in_child(nothing_mapped);
}

static void a_mapped_overflow_id_is_not_known(void **state)
{
	in_child(itself_mapped);
}

static void who_is_mapped_is_known(void **state)
{
	in_child(other_mapped);
}

static void this_user_is_ours(void **state)
{
	if (geteuid() == overflow)
		skip();
	assert_true(user_is_ours(geteuid()) && user_is_ours_or_root(geteuid()));
	assert_true(user_is_ours_or_root(0));
	assert_false(user_is_ours(geteuid() + 1) || user_is_known((uid_t)-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_not_mapped_is_not_known),
		cmocka_unit_test(a_mapped_overflow_id_is_not_known),
		cmocka_unit_test(who_is_mapped_is_known),
		cmocka_unit_test(this_user_is_ours),
	};
	FILE *f = fopen("/proc/sys/kernel/overflowuid", "re");

	if (!f || fscanf(f, "%u", &overflow) != 1)
		return 77;
	fclose(f);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
