/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the host does not allow ends in an error of the call and a line in the log that
 * says what stands in the way and what would help. BUSBAR_LOG has to show errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

static void small_files(void)
{
	const struct rlimit limit = { 4096, 4096 };

	expect_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* As profiles of containers do it. */
static void no_memory_files(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { .len = sizeof(code) / sizeof(*code),
					   .filter = code };

	expect_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		exit(77); /* a kernel or a sandbox without it */
}

static int open_denied(void (*deny)(void), int out)
{
	struct ibv_device **list;

	dup2(out, STDERR_FILENO);
	deny();
	list = ibv_get_device_list(NULL);
	for (int i = 0; i < 3; i++)
		if (!list || !list[0] || ibv_open_device(list[0]))
			return 1;
	return 0;
}

/* Three times refused, and said once. */
static void expect_said(void (*deny)(void), const char *cause, const char *remedy)
{
	char text[4096] = "", *at;
	int fds[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	expect_eq(pipe(fds), 0);
	pid = fork();
	if (pid == 0)
		_exit(open_denied(deny, fds[1]));
	close(fds[1]);
	while ((n = read(fds[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	close(fds[0]);
	expect_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		exit(77);
	if (status)
		fail("it ended with status 0x%x, and said: %s", status, text);
	at = strstr(text, cause);
	if (!at || !strstr(text, remedy))
		fail("neither \"%s\" nor \"%s\" in: %s", cause, remedy, text);
	if (strstr(at + 1, cause))
		fail("\"%s\" twice in: %s", cause, text);
}

static void a_small_limit_of_files_is_named(struct pair *p)
{
	expect_said(small_files, "the limit on the size of files is 4096 bytes",
		    "raise it (ulimit -f, RLIMIT_FSIZE)");
}

static void a_filter_of_system_calls_is_named(struct pair *p)
{
	expect_said(no_memory_files, "memfd_create: Operation not permitted",
		    "a seccomp filter or the profile of a container forbids it");
}

static const struct test_case cases[] = {
	CASE_IN(ONLY_ONE_PROCESS, a_small_limit_of_files_is_named),
	CASE_IN(ONLY_ONE_PROCESS, a_filter_of_system_calls_is_named),
};

int main(int argc, char **argv)
{
	setenv("BUSBAR_LOG", "error", 1);
	return RUN_CASES(argc, argv, cases);
}
