/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control sockets of QPN blocks: a name in the abstract namespace for each,
 * which is atomic to claim, scoped by network namespace, and vanishes with its
 * process. Anybody can take any name: who has it is asked of the kernel (peers.h).
 */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "hca/process.h"

static socklen_t block_address(uint32_t block, struct sockaddr_un *sun)
{
	int len;

	/* sun_path[0] == 0: the abstract namespace. */
	*sun = (struct sockaddr_un){ .sun_family = AF_UNIX };
	len = snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1,
		       "busbar.qpn.%u", block);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)len);
}

static int block_socket(uint32_t block, bool listening)
{
	struct sockaddr_un sun;
	socklen_t len = block_address(block, &sun);
	int fd, ret;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (listening ? bind(fd, (struct sockaddr *)&sun, len) ||
				listen(fd, 128) :
			connect(fd, (struct sockaddr *)&sun, len)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

int hca_block_bind(uint32_t block)
{
	return block_socket(block, true);
}

int hca_block_connect(uint32_t block)
{
	return block_socket(block, false);
}
