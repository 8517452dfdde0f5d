/* SPDX-License-Identifier: BSD-2-Clause */
/* The key of packets from the file of a secret; see resolver.h. */
#include "ripc/find/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECRET_MIN 16
#define SECRET_MAX 64

int resolver_key_read(struct packet_key *key, const char *path, char *why, size_t size)
{
	char secret[SECRET_MAX + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, secret, sizeof(secret));
	int err = n < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	if (!err && (n < SECRET_MIN || n > SECRET_MAX))
		err = -EINVAL;
	if (n < 0)
		snprintf(why, size, "%s", strerror(-err));
	else if (err)
		snprintf(why, size, "has not %d to %d bytes", SECRET_MIN, SECRET_MAX);
	else
		packet_key_make(key, secret, (size_t)n);
	explicit_bzero(secret, sizeof(secret));
	return err;
}
