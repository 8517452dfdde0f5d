/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets in network namespaces: a namespace stands for a host. A socket stays in the
 * namespace in which it was made, so only the thread that makes it goes there, for that call.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/floor/floor_parts.h"

/* "A=10.77.0.1" up to `end`. */
static bool parse_one(const char *text, const char *end, struct floor_host *host)
{
	const char *equals = memchr(text, '=', (size_t)(end - text));
	char address[INET_ADDRSTRLEN];

	if (!equals || equals == text || memchr(text, '/', (size_t)(equals - text)) ||
	    (size_t)(equals - text) >= sizeof(host->netns) ||
	    (size_t)(end - equals) > sizeof(address))
		return false;
	snprintf(host->netns, sizeof(host->netns), "%.*s", (int)(equals - text), text);
	snprintf(address, sizeof(address), "%.*s", (int)(end - equals - 1), equals + 1);
	return inet_pton(AF_INET, address, &host->address) == 1;
}

bool floor_hosts_parse(const char *text, struct floor_host hosts[2])
{
	const char *comma = strchr(text, ',');

	return comma && parse_one(text, comma, &hosts[0]) &&
	       parse_one(comma + 1, comma + 1 + strlen(comma + 1), &hosts[1]);
}

static int open_namespace(const char *name)
{
	char path[100];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int make_there(const char *netns, int type)
{
	int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), there, fd;

	if (here < 0)
		return -errno;
	fd = there = open_namespace(netns);
	if (there >= 0) {
		fd = setns(there, CLONE_NEWNET) ? -errno : socket(AF_INET, type, 0);
		if (fd == -1)
			fd = -errno;
		if (setns(here, CLONE_NEWNET) && fd >= 0) {
			close(fd);
			fd = -EIO;
		}
		close(there);
	}
	close(here);
	return fd;
}

int floor_host_socket(const struct floor_host *host, int type, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = host->netns[0] ? make_there(host->netns, type | SOCK_CLOEXEC) :
				  socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return host->netns[0] ? fd : -errno;
	*addr = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = host->address };
	if (bind(fd, (struct sockaddr *)addr, sizeof(*addr)) ||
	    getsockname(fd, (struct sockaddr *)addr, &len)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}
