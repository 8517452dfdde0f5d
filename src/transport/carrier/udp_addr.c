/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of the carrier over UDP in their normal form; see udp.h. */
#include <errno.h>
#include <string.h>

#include "transport/carrier/udp_parts.h"

_Static_assert(sizeof(struct sockaddr_in6) <= CARRIER_ADDR_BYTES, "room for an address");

struct carrier_addr carrier_udp_addr_of(const uint8_t ip[16], uint32_t scope, uint16_t port)
{
	struct in6_addr v6;
	union udp_name n;

	memset(&n, 0, sizeof(n));
	memcpy(&v6, ip, sizeof(v6));
	if (IN6_IS_ADDR_V4MAPPED(&v6)) {
		n.v4.sin_family = AF_INET;
		n.v4.sin_port = htons(port);
		memcpy(&n.v4.sin_addr, ip + 12, sizeof(n.v4.sin_addr));
	} else {
		n.v6.sin6_family = AF_INET6;
		n.v6.sin6_port = htons(port);
		n.v6.sin6_addr = v6;
		if (IN6_IS_ADDR_LINKLOCAL(&v6) || IN6_IS_ADDR_MC_LINKLOCAL(&v6))
			n.v6.sin6_scope_id = scope;
	}
	return n.as_carrier;
}

/* An IPv4 address as an IPv6 one. */
static void map_v4(const struct in_addr *v4, uint8_t ip[16])
{
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	memcpy(ip + 12, v4, sizeof(*v4));
}

int carrier_udp_addr(const struct sockaddr *address, socklen_t len,
		     struct carrier_addr *out)
{
	union udp_name n;
	uint8_t ip[16];

	memset(&n, 0, sizeof(n));
	memcpy(&n, address, len < sizeof(n) ? len : sizeof(n));
	if (n.any.sa_family == AF_INET && len >= sizeof(n.v4)) {
		map_v4(&n.v4.sin_addr, ip);
		*out = carrier_udp_addr_of(ip, 0, ntohs(n.v4.sin_port));
	} else if (n.any.sa_family == AF_INET6 && len >= sizeof(n.v6)) {
		*out = carrier_udp_addr_of(n.v6.sin6_addr.s6_addr, n.v6.sin6_scope_id,
					   ntohs(n.v6.sin6_port));
	} else {
		return -EAFNOSUPPORT;
	}
	return 0;
}

int carrier_udp_addr_ip(const struct carrier_addr *a, uint8_t ip[16], uint16_t *port)
{
	union udp_name n;

	n.as_carrier = *a;
	if (n.any.sa_family == AF_INET) {
		map_v4(&n.v4.sin_addr, ip);
		*port = ntohs(n.v4.sin_port);
	} else if (n.any.sa_family == AF_INET6) {
		memcpy(ip, &n.v6.sin6_addr, 16);
		*port = ntohs(n.v6.sin6_port);
	} else {
		memset(ip, 0, 16);
		*port = 0;
		return 0;
	}
	return n.any.sa_family;
}
