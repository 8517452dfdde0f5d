/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports. A port of a port space is a name in the abstract namespace of AF_UNIX:
 * bind() takes it atomically for the network namespace, and the kernel frees it
 * with the socket or the process.
 *
 *   \0busbar.cm.<port space, hex>.<port>.<host>
 *
 * <host> is an address, "any4" (0.0.0.0), "any6" (:: for IPv6 only) or "any" (:: for
 * both); for AF_IB "gid-" and the GID, or "gid". A wildcard and an address can hold
 * the same port at the same time; callers then reach the one with the address.
 */
#define LOG_ROOM "rdmacm"
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdmacm/cma.h"
#include "util/log.h"
#include "verbs/private.h"

uint32_t cma_random(uint32_t mask)
{
	uint32_t value;

	while (getrandom(&value, sizeof(value), 0) != sizeof(value))
		;
	return value & mask;
}

static socklen_t name_make(struct sockaddr_un *name, uint16_t ps, uint16_t port,
			   const char *host)
{
	int n;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
		     "busbar.cm.%04x.%u.%s", ps, port, host);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

#define HOST_TEXT (CMA_ADDR_TEXT + 8)

static const char *host_text(const struct sockaddr *addr, char text[HOST_TEXT])
{
	if (addr->sa_family != AF_IB)
		return cma_addr_text(addr, text);
	memcpy(text, "gid-", 4);
	cma_addr_text(addr, text + 4);
	return text;
}

static const char *host_of(const struct cma_id *id, char text[HOST_TEXT])
{
	const struct sockaddr *addr = &id->pub.route.addr.src_addr;

	if (!cma_addr_is_any(addr))
		return host_text(addr, text);
	if (addr->sa_family == AF_IB)
		return "gid";
	if (addr->sa_family == AF_INET)
		return "any4";
	return id->v6_only ? "any6" : "any";
}

int cma_port_names(enum rdma_port_space ps, const struct sockaddr *dst,
		   struct sockaddr_un names[CMA_PORT_NAMES],
		   socklen_t lens[CMA_PORT_NAMES])
{
	uint16_t port = cma_addr_port(dst), space = cma_addr_port_space(dst, ps);
	char text[HOST_TEXT];

	lens[0] = name_make(&names[0], space, port, host_text(dst, text));
	if (dst->sa_family == AF_IB) {
		lens[1] = name_make(&names[1], space, port, "gid");
		return 2;
	}
	lens[1] = name_make(&names[1], space, port,
			    dst->sa_family == AF_INET ? "any4" : "any6");
	lens[2] = name_make(&names[2], space, port, "any");
	return CMA_PORT_NAMES;
}

/* The kernel's range of ports for sockets that are bound to port 0. */
static void port_range(unsigned *low, unsigned *high)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");

	*low = 32768;
	*high = 60999;
	if (!f)
		return;
	if (fscanf(f, "%u %u", low, high) != 2 || *low < 1 || *high > 65535 ||
	    *low > *high) {
		*low = 32768;
		*high = 60999;
	}
	fclose(f);
}

static socklen_t port_name(const struct cma_id *id, uint16_t port,
			   struct sockaddr_un *name)
{
	char text[HOST_TEXT];

	return name_make(name,
		cma_addr_port_space(&id->pub.route.addr.src_addr, id->pub.ps),
		port, host_of(id, text));
}

static int port_bind(struct cma_id *id, uint16_t port)
{
	struct sockaddr_un name;
	socklen_t len = port_name(id, port, &name);

	if (bind(id->port_fd, (struct sockaddr *)&name, len))
		return -errno;
	return 0;
}

static int port_bind_free(struct cma_id *id, uint16_t *port)
{
	unsigned low, high, count, start;

	port_range(&low, &high);
	count = high - low + 1;
	start = cma_random(UINT32_MAX) % count;
	for (unsigned i = 0; i < count; i++) {
		int ret;

		*port = (uint16_t)(low + (start + i) % count);
		ret = port_bind(id, *port);
		if (ret != -EADDRINUSE)
			return ret;
	}
	return -EADDRNOTAVAIL;
}

/* Any process can bind the name of a port. busbar_peer_check() logs the holder, if it
 * is a process that may not talk to us. */
static void holder_name(const struct cma_id *id, uint16_t port)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	socklen_t len = port_name(id, port, &name);
	pid_t pid;

	log_debug("port space %04x port %u in use", id->pub.ps, port);
	if (fd < 0)
		return;
	if (!connect(fd, (struct sockaddr *)&name, len))
		busbar_peer_check(fd, "holder of a port in use,", &pid);
	close(fd);
}

int cma_port_take(struct cma_id *id)
{
	struct sockaddr *src = &id->pub.route.addr.src_addr;
	uint16_t port = cma_addr_port(src);
	int ret;

	if (id->port_fd >= 0)
		return 0;
	id->port_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK |
			     SOCK_CLOEXEC, 0);
	if (id->port_fd < 0)
		return -errno;
	if (!port) {
		ret = port_bind_free(id, &port);
	} else {
		ret = port_bind(id, port);
		if (ret == -EADDRINUSE)
			holder_name(id, port);
	}
	if (ret) {
		cma_port_release(id);
		return ret;
	}
	cma_addr_set_port(src, port);
	return 0;
}

void cma_port_release(struct cma_id *id)
{
	if (id->port_fd >= 0)
		close(id->port_fd);
	id->port_fd = -1;
}
