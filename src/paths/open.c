/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that open a path. */
#include "paths/paths.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

/* Reads the argument `mode`, which exists only if a file may be created. */
#define MODE(flags, mode)                                            \
	do {                                                         \
		va_list ap_;                                         \
		if (!__OPEN_NEEDS_MODE(flags))                       \
			break;                                       \
		va_start(ap_, flags);                                \
		(mode) = va_arg(ap_, mode_t);                        \
		va_end(ap_);                                         \
	} while (0)

PATHS_EXPORT int open(const char *path, int flags, ...)
{
	char buf[PATHS_MAX];
	mode_t mode = 0;

	MODE(flags, mode);
	return PATHS_REAL(open)(paths_turn(path, buf), flags, mode);
}

PATHS_EXPORT int open64(const char *path, int flags, ...)
{
	char buf[PATHS_MAX];
	mode_t mode = 0;

	MODE(flags, mode);
	return PATHS_REAL(open64)(paths_turn(path, buf), flags, mode);
}

PATHS_EXPORT int openat(int dir, const char *path, int flags, ...)
{
	char buf[PATHS_MAX];
	mode_t mode = 0;

	MODE(flags, mode);
	return PATHS_REAL(openat)(dir, paths_turn(path, buf), flags, mode);
}

PATHS_EXPORT int openat64(int dir, const char *path, int flags, ...)
{
	char buf[PATHS_MAX];
	mode_t mode = 0;

	MODE(flags, mode);
	return PATHS_REAL(openat64)(dir, paths_turn(path, buf), flags, mode);
}

/* Their names with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

PATHS_EXPORT int __open_2(const char *path, int flags)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__open_2)(paths_turn(path, buf), flags);
}

PATHS_EXPORT int __open64_2(const char *path, int flags)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__open64_2)(paths_turn(path, buf), flags);
}

PATHS_EXPORT int __openat_2(int dir, const char *path, int flags)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__openat_2)(dir, paths_turn(path, buf), flags);
}

PATHS_EXPORT int __openat64_2(int dir, const char *path, int flags)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(__openat64_2)(dir, paths_turn(path, buf), flags);
}

PATHS_EXPORT FILE *fopen(const char *path, const char *mode)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(fopen)(paths_turn(path, buf), mode);
}

PATHS_EXPORT FILE *fopen64(const char *path, const char *mode)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(fopen64)(paths_turn(path, buf), mode);
}

PATHS_EXPORT DIR *opendir(const char *path)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(opendir)(paths_turn(path, buf));
}

PATHS_EXPORT int scandir(const char *path, struct dirent ***list,
			 int (*filter)(const struct dirent *),
			 int (*compare)(const struct dirent **,
					const struct dirent **))
{
	char buf[PATHS_MAX];

	return PATHS_REAL(scandir)(paths_turn(path, buf), list, filter, compare);
}

PATHS_EXPORT int scandir64(const char *path, struct dirent64 ***list,
			   int (*filter)(const struct dirent64 *),
			   int (*compare)(const struct dirent64 **,
					  const struct dirent64 **))
{
	char buf[PATHS_MAX];

	return PATHS_REAL(scandir64)(paths_turn(path, buf), list, filter, compare);
}

PATHS_EXPORT int chdir(const char *path)
{
	char buf[PATHS_MAX];

	return PATHS_REAL(chdir)(paths_turn(path, buf));
}
