/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses: conversion between the caller's form, ours and the wire's. */
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"

static socklen_t length_of(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET  ? sizeof(struct sockaddr_in) :
	       addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
	       addr->sa_family == AF_IB	   ? sizeof(struct sockaddr_ib) :
					     0;
}

int rs_addr_check(const struct rs *rs, const struct sockaddr *addr, socklen_t len)
{
	if (!addr || len < sizeof(addr->sa_family))
		return -EINVAL;
	/* A socket takes addresses of its own domain; one of AF_INET6 those of AF_INET, too. */
	if (!length_of(addr) ||
	    (addr->sa_family != rs->domain &&
	     (rs->domain != AF_INET6 || addr->sa_family != AF_INET)))
		return -EAFNOSUPPORT;
	return len < length_of(addr) ? -EINVAL : 0;
}

void rs_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	const struct sockaddr_in6 *v6 = (const void *)from;
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	if (from->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		v4->sin_family = AF_INET;
		v4->sin_port = v6->sin6_port;
		memcpy(&v4->sin_addr, v6->sin6_addr.s6_addr + 12, 4);
	} else {
		memcpy(to, from, length_of(from));
	}
}

uint16_t rs_addr_port(const struct sockaddr *addr)
{
	/* sin_port and sin6_port have the same offset. */
	return ntohs(((const struct sockaddr_in *)(const void *)addr)->sin_port);
}

void rs_addr_set_port(struct sockaddr *addr, uint16_t port)
{
	((struct sockaddr_in *)(void *)addr)->sin_port = htons(port);
}

bool rs_addr_is_any(const struct sockaddr *addr)
{
	const struct sockaddr_in *v4 = (const void *)addr;
	const struct sockaddr_in6 *v6 = (const void *)addr;

	return addr->sa_family == AF_INET ? v4->sin_addr.s_addr == INADDR_ANY :
					    IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
}

void rs_addr_to_wire(const struct sockaddr *addr, uint8_t ip[16])
{
	const struct sockaddr_in *v4 = (const void *)addr;
	const struct sockaddr_in6 *v6 = (const void *)addr;

	memset(ip, 0, 16);
	if (addr->sa_family == AF_INET)
		memcpy(ip, &v4->sin_addr, 4);
	else
		memcpy(ip, &v6->sin6_addr, 16);
}

void rs_addr_from_wire(struct sockaddr_storage *addr, int version,
		       const uint8_t ip[16], uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)addr;

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = version == 4 ? AF_INET : AF_INET6;
	if (version == 4)
		memcpy(&v4->sin_addr, ip, 4);
	else
		memcpy(&v6->sin6_addr, ip, 16);
	v4->sin_port = htons(port);
}

void rs_addr_give(int domain, const struct sockaddr *from, struct sockaddr *to,
		  socklen_t *len)
{
	const struct sockaddr_in *v4 = (const void *)from;
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6 };

	if (!to || !len)
		return;
	if (domain == AF_INET6 && from->sa_family == AF_INET) {
		mapped.sin6_port = v4->sin_port;
		if (v4->sin_addr.s_addr != INADDR_ANY)
			memset(mapped.sin6_addr.s6_addr + 10, 0xff, 2);
		memcpy(mapped.sin6_addr.s6_addr + 12, &v4->sin_addr, 4);
		from = (struct sockaddr *)&mapped;
	}
	memcpy(to, from, MIN(*len, length_of(from)));
	*len = length_of(from);
}

bool rs_addr_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	uint8_t x[16], y[16];

	if (a->sa_family != b->sa_family || rs_addr_port(a) != rs_addr_port(b))
		return false;
	rs_addr_to_wire(a, x);
	rs_addr_to_wire(b, y);
	return !memcmp(x, y, sizeof(x));
}
