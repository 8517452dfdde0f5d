/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that return facts about a path. */
#include "paths/paths.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

PATHS_EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(stat)(paths_turn(path, buf), st);
}

PATHS_EXPORT int stat64(const char *restrict path, struct stat64 *restrict st)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(stat64)(paths_turn(path, buf), st);
}

PATHS_EXPORT int lstat(const char *restrict path, struct stat *restrict st)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(lstat)(paths_turn(path, buf), st);
}

PATHS_EXPORT int lstat64(const char *restrict path, struct stat64 *restrict st)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(lstat64)(paths_turn(path, buf), st);
}

PATHS_EXPORT int fstatat(int dir, const char *restrict path,
			 struct stat *restrict st, int flags)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(fstatat)(dir, paths_turn(path, buf), st, flags);
}

PATHS_EXPORT int fstatat64(int dir, const char *restrict path,
			   struct stat64 *restrict st, int flags)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(fstatat64)(dir, paths_turn(path, buf), st, flags);
}

/* The names of these functions in programs built with glibc before 2.33. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st,
		 int flags);

PATHS_EXPORT int __xstat(int version, const char *path, struct stat *st)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__xstat)(version, paths_turn(path, buf), st);
}

PATHS_EXPORT int __xstat64(int version, const char *path, struct stat64 *st)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__xstat64)(version, paths_turn(path, buf), st);
}

PATHS_EXPORT int __lxstat(int version, const char *path, struct stat *st)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__lxstat)(version, paths_turn(path, buf), st);
}

PATHS_EXPORT int __lxstat64(int version, const char *path, struct stat64 *st)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__lxstat64)(version, paths_turn(path, buf), st);
}

PATHS_EXPORT int __fxstatat(int version, int dir, const char *path,
			    struct stat *st, int flags)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__fxstatat)(version, dir, paths_turn(path, buf), st,
				      flags);
}

PATHS_EXPORT int __fxstatat64(int version, int dir, const char *path,
			      struct stat64 *st, int flags)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__fxstatat64)(version, dir, paths_turn(path, buf), st,
					flags);
}

PATHS_EXPORT int statx(int dir, const char *restrict path, int flags,
		       unsigned mask, struct statx *restrict st)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(statx)(dir, paths_turn(path, buf), flags, mask, st);
}

PATHS_EXPORT int access(const char *path, int mode)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(access)(paths_turn(path, buf), mode);
}

PATHS_EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(faccessat)(dir, paths_turn(path, buf), mode, flags);
}

PATHS_EXPORT int eaccess(const char *path, int mode)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(eaccess)(paths_turn(path, buf), mode);
}

PATHS_EXPORT int euidaccess(const char *path, int mode)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(euidaccess)(paths_turn(path, buf), mode);
}

PATHS_EXPORT ssize_t readlink(const char *restrict path, char *restrict to,
			      size_t size)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(readlink)(paths_turn(path, buf), to, size);
}

PATHS_EXPORT ssize_t readlinkat(int dir, const char *restrict path,
				char *restrict to, size_t size)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(readlinkat)(dir, paths_turn(path, buf), to, size);
}

/* Their names with _FORTIFY_SOURCE. */
ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *to, size_t size,
			 size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room);

PATHS_EXPORT ssize_t __readlink_chk(const char *path, char *to, size_t size,
				    size_t room)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__readlink_chk)(paths_turn(path, buf), to, size, room);
}

PATHS_EXPORT ssize_t __readlinkat_chk(int dir, const char *path, char *to,
				      size_t size, size_t room)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__readlinkat_chk)(dir, paths_turn(path, buf), to, size,
					    room);
}

PATHS_EXPORT char *realpath(const char *restrict path, char *restrict resolved)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(realpath)(paths_turn(path, buf), resolved);
}

PATHS_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__realpath_chk)(paths_turn(path, buf), resolved, room);
}

PATHS_EXPORT char *canonicalize_file_name(const char *path)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(canonicalize_file_name)(paths_turn(path, buf));
}

/* `ls -l` reads access control lists. */
PATHS_EXPORT ssize_t getxattr(const char *path, const char *name, void *value,
			      size_t size)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(getxattr)(paths_turn(path, buf), name, value, size);
}

PATHS_EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value,
			       size_t size)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(lgetxattr)(paths_turn(path, buf), name, value, size);
}

PATHS_EXPORT ssize_t listxattr(const char *path, char *list, size_t size)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(listxattr)(paths_turn(path, buf), list, size);
}

PATHS_EXPORT ssize_t llistxattr(const char *path, char *list, size_t size)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(llistxattr)(paths_turn(path, buf), list, size);
}
