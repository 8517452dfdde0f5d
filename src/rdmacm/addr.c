/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses: what they are, whose they are, and the GIDs they stand for. */
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "rdmacm/cma.h"

static const struct sockaddr_in *in4(const struct sockaddr *addr)
{
	return (const struct sockaddr_in *)(const void *)addr;
}

static const struct sockaddr_in6 *in6(const struct sockaddr *addr)
{
	return (const struct sockaddr_in6 *)(const void *)addr;
}

socklen_t cma_addr_len(const struct sockaddr *addr)
{
	if (!addr)
		return 0;
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

bool cma_addr_is_any(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return in4(addr)->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&in6(addr)->sin6_addr);
}

bool cma_addr_is_multicast(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return IN_MULTICAST(ntohl(in4(addr)->sin_addr.s_addr));
	if (IN6_IS_ADDR_V4MAPPED(&in6(addr)->sin6_addr))
		return (in6(addr)->sin6_addr.s6_addr[12] & 0xf0) == 0xe0;
	return IN6_IS_ADDR_MULTICAST(&in6(addr)->sin6_addr);
}

bool cma_addr_is_loopback(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ntohl(in4(addr)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&in6(addr)->sin6_addr);
}

void cma_addr_to_bytes(const struct sockaddr *addr, uint8_t bytes[16])
{
	memset(bytes, 0, 16);
	if (addr->sa_family == AF_INET)
		memcpy(bytes + 12, &in4(addr)->sin_addr, 4);
	else
		memcpy(bytes, &in6(addr)->sin6_addr, 16);
}

bool cma_addr_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	uint8_t x[16], y[16];

	if (a->sa_family != b->sa_family)
		return false;
	cma_addr_to_bytes(a, x);
	cma_addr_to_bytes(b, y);
	return !memcmp(x, y, sizeof(x));
}

uint16_t cma_addr_port(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ntohs(in4(addr)->sin_port);
	case AF_INET6:
		return ntohs(in6(addr)->sin6_port);
	default:
		return 0;
	}
}

void cma_addr_set_port(struct sockaddr *addr, uint16_t port)
{
	if (addr->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)addr)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)(void *)addr)->sin6_port = htons(port);
}

void cma_addr_set_loopback(struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)addr)->sin_addr.s_addr =
			htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)(void *)addr)->sin6_addr =
			in6addr_loopback;
}

void cma_addr_from_bytes(struct sockaddr_storage *addr, int ip_version,
			 const uint8_t bytes[16], uint16_t port)
{
	memset(addr, 0, sizeof(*addr));
	if (ip_version == 4) {
		struct sockaddr_in *sin = (struct sockaddr_in *)addr;

		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
		memcpy(&sin->sin_addr, bytes + 12, 4);
	} else {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;

		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(port);
		memcpy(&sin6->sin6_addr, bytes, 16);
	}
}

void cma_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	if (from->sa_family == AF_INET6 &&
	    IN6_IS_ADDR_V4MAPPED(&in6(from)->sin6_addr)) {
		cma_addr_from_bytes(to, 4, in6(from)->sin6_addr.s6_addr,
				    cma_addr_port(from));
		return;
	}
	memset(to, 0, sizeof(*to));
	memcpy(to, from, cma_addr_len(from));
}

void cma_addr_to_gid(const struct sockaddr *addr, union ibv_gid *gid)
{
	cma_addr_to_bytes(addr, gid->raw);
	if (addr->sa_family == AF_INET)
		gid->raw[10] = gid->raw[11] = 0xff;
}

/* The kernel lets a socket be bound to addresses of this namespace only. */
int cma_addr_check_local(const struct sockaddr *addr)
{
	struct sockaddr_storage probe;
	int fd, ret = 0;

	cma_addr_copy(&probe, addr);
	cma_addr_set_port((struct sockaddr *)&probe, 0);
	fd = socket(probe.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&probe,
		 cma_addr_len((struct sockaddr *)&probe)))
		ret = -errno;
	close(fd);
	return ret;
}

int cma_addr_source(const struct sockaddr *dst, struct sockaddr_storage *src)
{
	struct sockaddr_storage to;
	socklen_t len = sizeof(*src);
	int fd, ret = 0;

	cma_addr_copy(&to, dst);
	if (!cma_addr_port((struct sockaddr *)&to))
		cma_addr_set_port((struct sockaddr *)&to, 1);
	fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Connecting a datagram socket sends nothing; it looks up the route. */
	if (connect(fd, (struct sockaddr *)&to,
		    cma_addr_len((struct sockaddr *)&to)) ||
	    getsockname(fd, (struct sockaddr *)src, &len))
		ret = -errno;
	else
		cma_addr_set_port((struct sockaddr *)src, 0);
	close(fd);
	return ret;
}

const char *cma_addr_text(const struct sockaddr *addr, char text[CMA_ADDR_TEXT])
{
	const void *host = addr->sa_family == AF_INET ?
				   (const void *)&in4(addr)->sin_addr :
				   (const void *)&in6(addr)->sin6_addr;

	if (!cma_addr_len(addr) ||
	    !inet_ntop(addr->sa_family, host, text, CMA_ADDR_TEXT))
		strcpy(text, "?");
	return text;
}
