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
#include "rdmacm/id/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/base/base.h"
#include "util/log.h"
#include "verbs/private.h"

/* It always has room. */
static struct abstract_name name_of(uint16_t ps, uint16_t port, const char *host)
{
	struct abstract_name name;

	/* Each host of a simulated subnet has ports of its own. */
	if (busbar_subnet_on())
		abstract_name(&name, "busbar.cm.%016llx.%04x.%u.%s",
			      (unsigned long long)busbar_subnet_place(), ps, port, host);
	else
		abstract_name(&name, "busbar.cm.%04x.%u.%s", ps, port, host);
	return name;
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
		   struct abstract_name names[CMA_PORT_NAMES])
{
	uint16_t port = cma_addr_port(dst), space = cma_addr_port_space(dst, ps);
	char text[HOST_TEXT];

	names[0] = name_of(space, port, host_text(dst, text));
	if (dst->sa_family == AF_IB) {
		names[1] = name_of(space, port, "gid");
		return 2;
	}
	names[1] = name_of(space, port, dst->sa_family == AF_INET ? "any4" : "any6");
	names[2] = name_of(space, port, "any");
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

static struct abstract_name port_name(const struct cma_id *id, uint16_t port)
{
	char text[HOST_TEXT];

	return name_of(
		cma_addr_port_space(&id->pub.route.addr.src_addr, id->pub.ps),
		port, host_of(id, text));
}

static int port_bind(struct cma_id *id, uint16_t port)
{
	struct abstract_name name = port_name(id, port);

	return abstract_take(id->port_fd, &name);
}

/* May a listener of iWARP have the port, which is also one of TCP? Without such a device: yes. */
static bool tcp_is_free(const struct cma_id *id, uint16_t port)
{
	struct sockaddr_storage at;
	int fd, on = 1, v6_only = id->v6_only;
	bool taken;

	cma_addr_copy(&at, &id->pub.route.addr.src_addr);
	if (!cma_devices_have(IBV_TRANSPORT_IWARP) ||
	    (at.ss_family != AF_INET && at.ss_family != AF_INET6))
		return true;
	fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true;
	cma_addr_set_port((struct sockaddr *)&at, port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (at.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
	taken = bind(fd, (struct sockaddr *)&at, cma_addr_len((struct sockaddr *)&at)) &&
		errno == EADDRINUSE;
	close(fd);
	return !taken;
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
		if (!tcp_is_free(id, *port))
			continue;
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
	struct abstract_name name = port_name(id, port);
	int fd = abstract_connect(&name);
	pid_t pid;

	log_debug("port space %04x port %u in use", id->pub.ps, port);
	if (fd < 0)
		return;
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
	id->port_fd = abstract_socket(SOCK_SEQPACKET);
	if (id->port_fd < 0)
		return id->port_fd;
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
