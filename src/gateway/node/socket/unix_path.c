/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place of a Unix socket in the file system. Only what stands at the configured path
 * itself may be removed or moved: no symbolic link is followed.
 */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/datagram.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/log.h"

/*
 * An empty regular file is what mktemp(1) makes to reserve a name: it is removed. One with
 * contents may be meant for something else: it is moved aside.
 */
static int clear_file(const struct socket_ends *e, const char *path, off_t size)
{
	char aside[sizeof(e->local.un.sun_path) + 8];
	int ret;

	if (!size) {
		log_warn("%s: in.address: the empty regular file '%s' stands in the place of the socket, it is removed",
			 e->node->name, path);
		return unlink(path) ? -errno : 0;
	}
	snprintf(aside, sizeof(aside), "%s.stale", path);
	if (!renameat2(AT_FDCWD, path, AT_FDCWD, aside, RENAME_NOREPLACE)) {
		log_warn("%s: in.address: a regular file of %jd bytes stands in the place of the socket '%s', it is called '%s' now",
			 e->node->name, (intmax_t)size, path, aside);
		return 0;
	}
	ret = -errno;
	log_error("%s: in.address: a regular file stands in the place of the socket '%s' and cannot be moved to '%s': %s; remove it, or choose another address",
		  e->node->name, path, aside, strerror(-ret));
	return ret;
}

int unix_path_clear(const struct socket_ends *e)
{
	const char *path = e->local.un.sun_path;
	struct stat st;
	int fd, err;

	if (!*path || lstat(path, &st))
		return 0;
	if (S_ISREG(st.st_mode))
		return clear_file(e, path, st.st_size);
	if (!S_ISSOCK(st.st_mode)) {
		log_error("%s: in.address: '%s' is there and is neither a socket nor a regular file; remove it, or choose another address",
			  e->node->name, path);
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	err = fd < 0 || connect(fd, &e->local.sa, e->local.len) ? errno : 0;
	if (fd < 0) {
		log_error("%s: socket: %s", e->node->name, strerror(err));
		return -err;
	}
	close(fd);
	if (err != ECONNREFUSED) {
		log_error("%s: in.address: another process receives at '%s'", e->node->name,
			  path);
		return -EADDRINUSE;
	}
	unlink(path);
	return 0;
}
