/* SPDX-License-Identifier: BSD-2-Clause */
/* See socket_option.h. */
#define LOG_ROOM "gateway/node"
#include "gateway/part/socket_option.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "util/log.h"

int socket_option_set(int fd, int level, int option, const void *value, size_t size,
		      const char *node, const char *name)
{
	const char *hint = "";
	int err;

	if (!setsockopt(fd, level, option, value, (socklen_t)size))
		return 0;
	err = errno;
	if (err == EPERM && level == SOL_SOCKET && option == SO_MARK)
		hint = "; a mark needs root or CAP_NET_ADMIN";
	log_error("%s: %s: %s%s", node, name, strerror(err), hint);
	return -err;
}

void socket_option_try(int fd, int level, int option, int value, const char *node,
		       const char *name)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		log_debug("%s: %s: %s", node, name, strerror(errno));
}
