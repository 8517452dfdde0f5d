/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether memory may be registered, found in each of the possible ways: by asking the
 * kernel for one mapping or, where a filter of system calls forbids that, by trying the
 * pages or reading the list of mappings. All must give the same answers.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hca/host/mapping.h"
#include "hca/memory/paging.h"

enum { PAGE = 4096, SMALL = 8, LARGE = 512 };
enum way { ASKED, TRIED_OR_READ, WITHOUT_PROC, WAYS };
static const char *const names[] = { "asked", "tried or read", "without /proc" };

/* Pages: `count` writable ones, one read-only, one without access, a hole of one page,
 * `count` writable ones. */
static uint8_t *map(size_t count)
{
	uint8_t *at = mmap(NULL, (2 * count + 3) * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	memset(at, 0x5a, (2 * count + 3) * PAGE);
	if (mprotect(at + count * PAGE, PAGE, PROT_READ) ||
	    mprotect(at + (count + 1) * PAGE, PAGE, PROT_NONE) ||
	    munmap(at + (count + 2) * PAGE, PAGE))
		return NULL;
	return at;
}

static int check_at(const char *file, int line, enum way way, bool got, bool want)
{
	if (got == want)
		return 0;
	fprintf(stderr, "%s:%d: %s: %s\n", file, line, names[way],
		got ? "found to be there" : "not found");
	return 1;
}
#define CHECK(addr, length, write, want)                         \
	(bad += check_at(__FILE__, __LINE__, way,                \
			 hca_range_mapped(addr, length, write), want))

static int answers(enum way way, uint8_t *at, size_t count)
{
	/* Trying finds every page; without the list large ranges are tried in part. */
	bool seen = way != WITHOUT_PROC || count == SMALL;
	size_t all = count * PAGE;
	uint8_t *behind = at + all + 3 * (size_t)PAGE;
	int bad = 0;

	CHECK(at, all, false, true);
	CHECK(at, all, true, true);
	CHECK(at, all + 1, false, true);
	CHECK(at, all + 1, true, !seen);
	CHECK(at, all + PAGE, false, true);
	CHECK(at, all + PAGE + 1, false, !seen);
	CHECK(at + all - 1, 1, true, true);
	CHECK(at + all - 1, 2, true, false);
	CHECK(at + all - 1, 2, false, true);
	CHECK(at + all + PAGE, 1, false, false);
	CHECK(at + all + 2 * (size_t)PAGE, 1, false, false);
	CHECK(at, 2 * all + 3 * (size_t)PAGE, false, false);
	CHECK(behind - 1, 2, false, false);
	CHECK(behind, all, true, true);
	CHECK(behind + 7, all - 7, true, true);
	CHECK(behind + all - 1, 1, true, true);
	CHECK(at + all + 2 * (size_t)PAGE, 0, true, true);
	CHECK((void *)1, 1, false, false);
	for (size_t i = 0; i < all; i++)
		bad += at[i] != 0x5a || behind[i] != 0x5a;
	return bad;
}

/* A filter in which ioctl() fails, and with `opening` also open(). */
static int forbid(bool opening)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, opening ? SECCOMP_RET_ERRNO | EACCES :
						    SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(*code), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int run(enum way way)
{
	static const size_t counts[] = { SMALL, LARGE };
	int bad = 0;

	for (int i = 0; i < 2; i++) {
		uint8_t *at = map(counts[i]);

		if (!at)
			return 1;
		if (i == 0 && way != ASKED && forbid(way == WITHOUT_PROC))
			return 77;
		/* What it keeps does not matter. */
		bad += answers(way, at, counts[i]);
		hca_mapping_stop();
		bad += answers(way, at, counts[i]);
	}
	return bad ? 1 : 0;
}

int main(void)
{
	int worst = 0;

	for (enum way way = 0; way < WAYS; way++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(run(way));
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
			return 1;
		if (WEXITSTATUS(status) == 77)
			printf("%s: not tested, filters are not allowed\n", names[way]);
		else
			worst |= WEXITSTATUS(status);
	}
	return worst;
}
