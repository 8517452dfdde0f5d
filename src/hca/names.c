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

#include "util/log.h"

#define NAMES_FILE "/proc/net/unix"

int hca_name_bind(const char *name)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd, ret;

	if (len >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	/* sun_path[0] == 0: the abstract namespace. */
	memcpy(sun.sun_path + 1, name, len);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&sun,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len))) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
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
