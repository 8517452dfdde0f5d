/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Run by `busbar exec`: every call of the C library that takes a path finds the
 * entries of soft0 below /sys and /dev, and everything else as it is.
 *
 * Usage: entries, or entries none (where they are not to be found). Compiled twice,
 * plainly and with _FORTIFY_SOURCE, which calls other functions.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLASS "/sys/class/infiniband"
#define STATE CLASS "/soft0/ports/1/state"
#define NODE "/dev/infiniband/uverbs-soft0"

static int failed;

#define CHECK(condition)                                                     \
	do {                                                                 \
		errno = 0;                                                   \
		if (!(condition)) {                                          \
			printf("failed: line %d: %s (errno %d)\n", __LINE__, \
			       #condition, errno);                           \
			failed = 1;                                          \
		}                                                            \
	} while (0)

/* So that the compiler cannot see that no mode is needed, and checks at run time. */
static volatile int read_only = O_RDONLY;

static bool reads(int fd, const char *wanted)
{
	char buf[64];
	ssize_t n = fd >= 0 ? read(fd, buf, sizeof(buf)) : -1;

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(wanted) && !memcmp(buf, wanted, (size_t)n);
}

static bool streams(FILE *f, const char *wanted)
{
	char buf[64];
	bool same = f && fgets(buf, sizeof(buf), f) && !strcmp(buf, wanted);

	if (f)
		fclose(f);
	return same;
}

static bool listed(DIR *dir, const char *name)
{
	const struct dirent *e;
	bool found = false;

	while (dir && (e = readdir(dir)))
		found |= !strcmp(e->d_name, name);
	if (dir)
		closedir(dir);
	return found;
}

static void opening(void)
{
	static const char active[] = "4: ACTIVE\n";
	struct dirent **list;
	struct dirent64 **list64;
	int dir, n;

	CHECK(reads(open(STATE, read_only), active));
	CHECK(reads(open64(STATE, read_only), active));
	CHECK(reads(openat(AT_FDCWD, STATE, read_only), active));
	CHECK(reads(openat64(AT_FDCWD, STATE, read_only), active));
	CHECK(reads(open("//sys/class//infiniband/soft0///ports/1/state", O_RDONLY),
		    active));
	CHECK(streams(fopen(STATE, "r"), active));
	CHECK(streams(fopen64(STATE, "r"), active));
	CHECK(listed(opendir(CLASS), "soft0"));
	CHECK(listed(opendir(CLASS "/"), "soft0"));
	CHECK(listed(opendir(CLASS "/soft0/ports"), "1"));
	CHECK(listed(opendir("/sys/class/infiniband_verbs"), "uverbs-soft0"));
	CHECK(listed(opendir("/dev/infiniband"), "uverbs-soft0"));
	n = scandir(CLASS, &list, NULL, alphasort);
	CHECK(n >= 3); /* with . and .. */
	n = scandir64(CLASS, &list64, NULL, alphasort64);
	CHECK(n >= 3);

	/* Seen from a folder that is open. */
	dir = open(CLASS, O_RDONLY | O_DIRECTORY);
	CHECK(dir >= 0);
	CHECK(reads(openat(dir, "soft0/ports/1/state", O_RDONLY), active));
	close(dir);
	CHECK(!chdir(CLASS "/soft0"));
	CHECK(reads(open("ports/1/state", O_RDONLY), active));
	CHECK(!chdir("/"));
}

static void looking(void)
{
	char to[PATH_MAX], *real;
	struct stat st;
	struct stat64 st64;
	struct statx stx;

	CHECK(!stat(NODE, &st) && S_ISCHR(st.st_mode) && st.st_rdev);
	CHECK(!stat64(NODE, &st64) && S_ISCHR(st64.st_mode));
	CHECK(!lstat(CLASS "/soft0", &st) && S_ISDIR(st.st_mode));
	CHECK(!lstat64(CLASS "/soft0", &st64) && S_ISDIR(st64.st_mode));
	CHECK(!fstatat(AT_FDCWD, NODE, &st, 0) && S_ISCHR(st.st_mode));
	CHECK(!fstatat64(AT_FDCWD, NODE, &st64, 0) && S_ISCHR(st64.st_mode));
	CHECK(!statx(AT_FDCWD, NODE, 0, STATX_TYPE, &stx) && S_ISCHR(stx.stx_mode));
	CHECK(!access(NODE, R_OK | W_OK));
	CHECK(!faccessat(AT_FDCWD, NODE, R_OK | W_OK, 0));
	CHECK(!eaccess(CLASS, F_OK));
	CHECK(!euidaccess(CLASS, F_OK));
	CHECK(readlink(CLASS "/soft0/device/driver", to, sizeof(to)) > 7);
	CHECK(readlinkat(AT_FDCWD, CLASS "/soft0/device/driver", to, sizeof(to)) > 7);
	CHECK((real = realpath(CLASS "/soft0", NULL)) && !access(real, F_OK));
	free(real);
	CHECK(realpath(CLASS "/soft0", to) && !access(to, F_OK));
	CHECK((real = canonicalize_file_name(CLASS "/soft0")) &&
	      !access(real, F_OK));
	free(real);
}

/* The node takes no command, and does not say that it did. */
static void node(void)
{
	int fd = open(NODE, O_RDWR | O_CLOEXEC);
	struct stat st;

	CHECK(fd >= 0);
	CHECK(!fstat(fd, &st) && S_ISCHR(st.st_mode));
	CHECK(write(fd, "command", 7) < 0);
	close(fd);
}

/* What is not soft0's is not touched. */
static void others(void)
{
	char path[2 * PATH_MAX];
	struct stat st;

	CHECK(open(CLASS "/no_such0/ports/1/state", O_RDONLY) < 0 && errno == ENOENT);
	CHECK(stat(CLASS "/..", &st) < 0 || st.st_ino != 0);
	CHECK(access("/sys/class/infiniband_other", F_OK) < 0 && errno == ENOENT);
	CHECK(!access("/sys/class/net", F_OK));
	CHECK(!stat("/dev/null", &st) && S_ISCHR(st.st_mode));
	CHECK(open("/no/such/file", O_RDONLY) < 0 && errno == ENOENT);
	memset(path, 'x', sizeof(path) - 1);
	memcpy(path, CLASS "/", strlen(CLASS "/"));
	path[sizeof(path) - 1] = '\0';
	CHECK(open(path, O_RDONLY) < 0 &&
	      (errno == ENAMETOOLONG || errno == ENOENT));
}

int main(int argc, char **argv)
{
	others();
	if (argc > 1) {
		CHECK(access(CLASS "/soft0", F_OK) < 0);
		CHECK(open(STATE, O_RDONLY) < 0);
		CHECK(!listed(opendir("/dev/infiniband"), "uverbs-soft0"));
		return failed;
	}
	opening();
	looking();
	node();
	return failed;
}
