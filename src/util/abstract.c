/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets under names of the abstract namespace; see abstract.h. */
#include "util/abstract.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

int abstract_name(struct abstract_name *name, const char *format, ...)
{
	const size_t room = sizeof(name->address.sun_path) - 1;
	va_list args;
	int len;

	/* sun_path[0] == 0: the abstract namespace. */
	name->address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	va_start(args, format);
	len = vsnprintf(name->address.sun_path + 1, room, format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= room)
		return -ENAMETOOLONG;
	name->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				(size_t)len);
	return 0;
}

int abstract_socket(int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

int abstract_take(int fd, const struct abstract_name *name)
{
	return bind(fd, (const struct sockaddr *)&name->address, name->len) ?
		       -errno : 0;
}

int abstract_open(const struct abstract_name *name, int type, int backlog)
{
	int fd = abstract_socket(type), ret;

	if (fd < 0)
		return fd;
	ret = abstract_take(fd, name);
	if (!ret && backlog && listen(fd, backlog))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int abstract_connect(const struct abstract_name *name)
{
	int fd = abstract_socket(SOCK_SEQPACKET), ret;

	if (fd < 0)
		return fd;
	if (!connect(fd, (const struct sockaddr *)&name->address, name->len))
		return fd;
	ret = errno == EPROTOTYPE ? -ECONNREFUSED : -errno;
	close(fd);
	return ret;
}
