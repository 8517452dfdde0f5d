/* SPDX-License-Identifier: BSD-2-Clause */
/* See too_long.h. */
#define LOG_ROOM "roce"
#include "transport/roce/too_long.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/carrier/udp.h"
#include "transport/packet/base/port.h"
#include "util/log.h"

/* BTH, RETH, immediate data and ICRC, and the headers of UDP and IP. */
#define HEADERS_V4 (12 + 16 + 4 + 4 + 8 + 20)
#define HEADERS_V6 (12 + 16 + 4 + 4 + 8 + 40)
#define PATH_MTU_MIN 256
#define PATH_MTU_MAX 4096

uint16_t roce_fragment_port;

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct carrier_addr as_carrier;
};

static socklen_t length_of(const union address *a)
{
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

unsigned roce_path_mtu(unsigned mtu, bool ipv4)
{
	unsigned room = ipv4 ? HEADERS_V4 : HEADERS_V6, path_mtu = PATH_MTU_MAX;

	while (path_mtu >= PATH_MTU_MIN && path_mtu + room > mtu)
		path_mtu /= 2;
	return path_mtu >= PATH_MTU_MIN ? path_mtu : 0;
}

static bool same_address(const struct sockaddr *a, const union address *b)
{
	if (!a || a->sa_family != b->any.sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
		       b->v4.sin_addr.s_addr;
	return !memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
		       &b->v6.sin6_addr, sizeof(b->v6.sin6_addr));
}

static void name_of(const union address *source, char name[IF_NAMESIZE])
{
	struct ifaddrs *list;

	snprintf(name, IF_NAMESIZE, "?");
	if (getifaddrs(&list))
		return;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		if (same_address(i->ifa_addr, source))
			snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
	freeifaddrs(list);
}

/* Finds the interface by which packets to the address leave, and its MTU; 0: not known. */
static int look(const struct packet_route *route, char name[IF_NAMESIZE])
{
	union address to, from;
	socklen_t len = sizeof(int), from_len = sizeof(from);
	int fd, mtu = 0;
	bool v4;

	to.as_carrier = route->to;
	from.as_carrier = route->from;
	v4 = to.any.sa_family == AF_INET;
	snprintf(name, IF_NAMESIZE, "?");
	fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
	if (fd < 0)
		return 0;
	if (!bind(fd, &from.any, length_of(&from)) &&
	    !connect(fd, &to.any, length_of(&to)) &&
	    !getsockname(fd, &from.any, &from_len)) {
		if (getsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_MTU : IPV6_MTU,
			       &mtu, &len))
			mtu = 0;
		name_of(&from, name);
	}
	close(fd);
	return mtu;
}

static void tell(const struct packet_route *route, size_t bytes)
{
	union address to = { .as_carrier = route->to };
	bool v4 = to.any.sa_family == AF_INET;
	char name[IF_NAMESIZE], advice[64] = "";
	int mtu = look(route, name);
	unsigned path_mtu = mtu > 0 ? roce_path_mtu((unsigned)mtu, v4) : 0;

	if (path_mtu)
		snprintf(advice, sizeof(advice), "use path MTU %u, or ", path_mtu);
	log_warn("packets of %zu bytes are too long for interface %s (MTU %d): %s; %sset its MTU to %d or more",
		 bytes, name, mtu,
		 roce_fragment_port ?
			 "they leave in IP fragments, slowly, and only for busbar" :
			 "they are lost",
		 advice, PATH_MTU_MAX + (v4 ? HEADERS_V4 : HEADERS_V6));
}

bool roce_too_long(const struct packet_route *route, size_t bytes)
{
	static atomic_bool told;

	if (!atomic_exchange(&told, true))
		tell(route, bytes);
	return roce_fragment_port;
}
