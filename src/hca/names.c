/* SPDX-License-Identifier: BSD-2-Clause */
/* Names in the abstract namespace; see names.h. */
#define LOG_ROOM "hca"
#include "hca/names.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hca/peers.h"
#include "util/log.h"

#define NAMES_FILE "/proc/net/unix"

/* A socket of that type, and the name's address. */
static int name_socket(const char *name, int type, struct sockaddr_un *sun,
		       socklen_t *len)
{
	size_t size = strlen(name);
	int fd;

	if (size >= sizeof(sun->sun_path))
		return -ENAMETOOLONG;
	/* sun_path[0] == 0: the abstract namespace. */
	*sun = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(sun->sun_path + 1, name, size);
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + size);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd < 0 ? -errno : fd;
}

static int name_take(const char *name, int type)
{
	struct sockaddr_un sun;
	socklen_t len;
	int fd = name_socket(name, type, &sun, &len), ret;

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&sun, len) ||
	    (type == SOCK_SEQPACKET && listen(fd, 1))) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

int hca_name_bind(const char *name)
{
	return name_take(name, SOCK_DGRAM);
}

int hca_name_listen(const char *name)
{
	return name_take(name, SOCK_SEQPACKET);
}

int hca_name_holder(const char *name, struct ucred *cred)
{
	struct sockaddr_un sun;
	socklen_t len;
	int fd = name_socket(name, SOCK_SEQPACKET, &sun, &len), ret = 0;

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&sun, len))
		ret = errno == EPROTOTYPE ? -ECONNREFUSED : -errno;
	else if (!hca_peer_cred(fd, cred))
		ret = -EACCES;
	close(fd);
	return ret;
}

int hca_names_each(const char *prefix, void (*fn)(const char *rest, void *arg),
		   void *arg)
{
	FILE *f = fopen(NAMES_FILE, "re");
	size_t room = 0, len = strlen(prefix);
	char *line = NULL;
	int ret;

	if (!f) {
		ret = -errno;
		log_error("%s not readable, so other processes of this host are not found: %m",
			  NAMES_FILE);
		return ret;
	}
	/* The name is the last column; a leading zero byte is shown as '@'. */
	while (getline(&line, &room, f) > 0) {
		char *name = strrchr(line, ' ');

		line[strcspn(line, "\n")] = '\0';
		if (name && name[1] == '@' && !strncmp(name + 2, prefix, len))
			fn(name + 2 + len, arg);
	}
	free(line);
	fclose(f);
	return 0;
}
