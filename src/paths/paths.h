/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libbusbar-paths.so: the entries of soft0 below /sys and /dev, for programs that
 * look there before they ask libibverbs. Loaded by LD_PRELOAD (`busbar exec`).
 *
 * `busbar exec` makes the entries in a private folder, BUSBAR_EXEC_DIR. This library
 * replaces the path in calls of the C library that have one: the three folders
 * themselves become folders of the private one, in which real adapters are links; and
 * entries that exist only there become paths in it. Other paths are not changed. Paths
 * relative to an open folder need no replacement.
 *
 * Requests to the kernel by RDMA netlink are answered for soft0, too (netlink.c).
 *
 * It needs only the C library, because it is loaded into every program.
 */
#ifndef PATHS_PATHS_H
#define PATHS_PATHS_H

#include <dirent.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#define PATHS_EXPORT __attribute__((visibility("default")))

/* Longer results are not used: a signal handler's stack may be small. */
#define PATHS_MAX 512

/* The path to use: `path` itself, or its replacement in buf[PATHS_MAX]. errno stays
 * unchanged. */
const char *paths_turn(const char *path, char *buf);

/* The private folder; "" if there is none. */
const char *paths_root(void);
/* Tells `busbar exec` that the program looked for a device. */
void paths_note(void);

struct stat64;
struct statx;

/* The C library's functions; NULL if it lacks one, which is then not called either. */
struct paths_real {
	int (*open)(const char *, int, ...);
	int (*open64)(const char *, int, ...);
	int (*openat)(int, const char *, int, ...);
	int (*openat64)(int, const char *, int, ...);
	int (*__open_2)(const char *, int);
	int (*__open64_2)(const char *, int);
	int (*__openat_2)(int, const char *, int);
	int (*__openat64_2)(int, const char *, int);
	FILE *(*fopen)(const char *, const char *);
	FILE *(*fopen64)(const char *, const char *);
	DIR *(*opendir)(const char *);
	int (*scandir)(const char *, struct dirent ***,
		       int (*)(const struct dirent *),
		       int (*)(const struct dirent **, const struct dirent **));
	int (*scandir64)(const char *, struct dirent64 ***,
			 int (*)(const struct dirent64 *),
			 int (*)(const struct dirent64 **,
				 const struct dirent64 **));
	int (*chdir)(const char *);
	int (*stat)(const char *, struct stat *);
	int (*stat64)(const char *, struct stat64 *);
	int (*lstat)(const char *, struct stat *);
	int (*lstat64)(const char *, struct stat64 *);
	int (*fstatat)(int, const char *, struct stat *, int);
	int (*fstatat64)(int, const char *, struct stat64 *, int);
	int (*__xstat)(int, const char *, struct stat *);
	int (*__xstat64)(int, const char *, struct stat64 *);
	int (*__lxstat)(int, const char *, struct stat *);
	int (*__lxstat64)(int, const char *, struct stat64 *);
	int (*__fxstatat)(int, int, const char *, struct stat *, int);
	int (*__fxstatat64)(int, int, const char *, struct stat64 *, int);
	int (*statx)(int, const char *, int, unsigned, struct statx *);
	int (*access)(const char *, int);
	int (*faccessat)(int, const char *, int, int);
	int (*eaccess)(const char *, int);
	int (*euidaccess)(const char *, int);
	ssize_t (*readlink)(const char *, char *, size_t);
	ssize_t (*readlinkat)(int, const char *, char *, size_t);
	ssize_t (*__readlink_chk)(const char *, char *, size_t, size_t);
	ssize_t (*__readlinkat_chk)(int, const char *, char *, size_t, size_t);
	ssize_t (*getxattr)(const char *, const char *, void *, size_t);
	ssize_t (*lgetxattr)(const char *, const char *, void *, size_t);
	ssize_t (*listxattr)(const char *, char *, size_t);
	ssize_t (*llistxattr)(const char *, char *, size_t);
	char *(*realpath)(const char *, char *);
	char *(*__realpath_chk)(const char *, char *, size_t);
	char *(*canonicalize_file_name)(const char *);
	int (*socket)(int, int, int);
	ssize_t (*send)(int, const void *, size_t, int);
	ssize_t (*sendto)(int, const void *, size_t, int, const struct sockaddr *,
			  socklen_t);
	ssize_t (*sendmsg)(int, const struct msghdr *, int);
};

extern struct paths_real paths_real;
void paths_init(void);

/* Initialises on first use: constructors of other libraries may run before ours. */
#define PATHS_REAL(name) \
	(paths_real.open ? paths_real.name : (paths_init(), paths_real.name))

#endif
