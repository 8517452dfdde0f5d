/* SPDX-License-Identifier: BSD-2-Clause */
/* Which paths are replaced, and the C library's functions. */
#include "paths/paths.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PARTS_MAX 4

struct paths_real paths_real;

static char root[PATHS_MAX / 2];
static atomic_bool noted;

/* The folders that also contain entries of real adapters. */
static const char *const folders[][PARTS_MAX] = {
	{ "sys", "class", "infiniband" },
	{ "sys", "class", "infiniband_verbs" },
	{ "dev", "infiniband" },
};

#define FIND(name) \
	paths_real.name = (__typeof__(paths_real.name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) void paths_init(void)
{
	const char *dir = secure_getenv("BUSBAR_EXEC_DIR");

	if (paths_real.open)
		return;
	if (dir && dir[0] == '/' && strlen(dir) < sizeof(root))
		strcpy(root, dir);
	FIND(open64);
	FIND(openat);
	FIND(openat64);
	FIND(__open_2);
	FIND(__open64_2);
	FIND(__openat_2);
	FIND(__openat64_2);
	FIND(fopen);
	FIND(fopen64);
	FIND(opendir);
	FIND(scandir);
	FIND(scandir64);
	FIND(chdir);
	FIND(stat);
	FIND(stat64);
	FIND(lstat);
	FIND(lstat64);
	FIND(fstatat);
	FIND(fstatat64);
	FIND(__xstat);
	FIND(__xstat64);
	FIND(__lxstat);
	FIND(__lxstat64);
	FIND(__fxstatat);
	FIND(__fxstatat64);
	FIND(statx);
	FIND(access);
	FIND(faccessat);
	FIND(eaccess);
	FIND(euidaccess);
	FIND(readlink);
	FIND(readlinkat);
	FIND(__readlink_chk);
	FIND(__readlinkat_chk);
	FIND(getxattr);
	FIND(lgetxattr);
	FIND(listxattr);
	FIND(llistxattr);
	FIND(realpath);
	FIND(__realpath_chk);
	FIND(canonicalize_file_name);
	FIND(socket);
	FIND(send);
	FIND(sendto);
	FIND(sendmsg);
	FIND(open); /* last: PATHS_REAL tests it to see whether all are set */
}

const char *paths_root(void)
{
	if (!paths_real.open)
		paths_init();
	return root;
}

/* The rest of `path` after the components `parts`; NULL: it begins otherwise. */
static const char *behind(const char *path, const char *const *parts)
{
	for (int i = 0; i < PARTS_MAX && parts[i]; i++) {
		size_t len = strlen(parts[i]);

		if (*path != '/')
			return NULL;
		while (*path == '/')
			path++;
		if (strncmp(path, parts[i], len) != 0 ||
		    (path[len] && path[len] != '/'))
			return NULL;
		path += len;
	}
	return path;
}

/*
 * Is the first component of `rest`, in the folder that ends at buf[len], an entry that
 * only the private folder has? An entry of a real adapter is a link to the original.
 */
static bool is_own(char *buf, size_t len, const char *rest)
{
	size_t name = strcspn(rest, "/");
	char target[64];
	ssize_t n;

	if (len + 1 + name >= PATHS_MAX || (name == 2 && !memcmp(rest, "..", 2)))
		return false;
	buf[len] = '/';
	memcpy(buf + len + 1, rest, name);
	buf[len + 1 + name] = '\0';
	n = syscall(SYS_readlinkat, AT_FDCWD, buf, target, sizeof(target) - 1);
	if (n < 0)
		return errno == EINVAL; /* it exists and is no link */
	target[n] = '\0';
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (behind(target, folders[i]))
			return false;
	return true;
}

void paths_note(void)
{
	char path[PATHS_MAX], pid[32];
	int fd;

	if (atomic_exchange_explicit(&noted, true, memory_order_relaxed))
		return;
	snprintf(path, sizeof(path), "%s/listed", root);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path,
			  O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	syscall(SYS_write, fd, pid, strlen(pid));
	syscall(SYS_close, fd);
}

static const char *turn(const char *path, char *buf)
{
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *rest = behind(path, folders[i]);
		size_t len = strlen(root);

		if (!rest)
			continue;
		memcpy(buf, root, len);
		for (int p = 0; p < PARTS_MAX && folders[i][p]; p++) {
			buf[len++] = '/';
			strcpy(buf + len, folders[i][p]);
			len += strlen(folders[i][p]);
		}
		while (*rest == '/')
			rest++;
		if (*rest) {
			if (len + 1 + strlen(rest) >= PATHS_MAX ||
			    !is_own(buf, len, rest))
				return path;
			buf[len] = '/';
			strcpy(buf + len + 1, rest);
			paths_note();
		}
		return buf;
	}
	return path;
}

const char *paths_turn(const char *path, char *buf)
{
	const char *turned;
	int err;

	if (!path || path[0] != '/' || !root[0])
		return path;
	err = errno;
	turned = turn(path, buf);
	errno = err;
	return turned;
}
