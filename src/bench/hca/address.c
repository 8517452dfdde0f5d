/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An address of this host for an iWARP device, whose GID is none: it is the hardware address of
 * the device's interface.
 */
#define LOG_ROOM "bench/hca"
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>

#include "bench/hca/end.h"
#include "util/log.h"

/* Has the interface this hardware address? */
static bool is_of(const struct ifaddrs *list, const char *interface, const union ibv_gid *gid)
{
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		const struct sockaddr_ll *at = (const void *)i->ifa_addr;

		if (at && at->sll_family == AF_PACKET && at->sll_halen == 6 &&
		    !strcmp(i->ifa_name, interface))
			return !memcmp(at->sll_addr, gid->raw, 6);
	}
	return false;
}

/* The device's own interface before others, loopback last, IPv4 before IPv6; 0: not usable. */
static int fitness(const struct ifaddrs *list, const struct ifaddrs *i, const union ibv_gid *gid)
{
	const struct sockaddr *a = i->ifa_addr;

	if (!a || !(i->ifa_flags & IFF_UP) ||
	    (a->sa_family != AF_INET && a->sa_family != AF_INET6) ||
	    (a->sa_family == AF_INET6 &&
	     IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr)))
		return 0;
	return 1 + 4 * is_of(list, i->ifa_name, gid) + 2 * !(i->ifa_flags & IFF_LOOPBACK) +
	       (a->sa_family == AF_INET);
}

int hca_host_address(const union ibv_gid *gid, struct sockaddr_storage *to)
{
	const struct ifaddrs *best = NULL;
	struct ifaddrs *list;
	int highest = 0, ret = 0;

	if (getifaddrs(&list)) {
		ret = -errno;
		log_error("the addresses of this host cannot be read: %s", strerror(-ret));
		return ret;
	}
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		int fits = fitness(list, i, gid);

		if (fits > highest) {
			highest = fits;
			best = i;
		}
	}
	if (best) {
		memcpy(to, best->ifa_addr, best->ifa_addr->sa_family == AF_INET ?
						   sizeof(struct sockaddr_in) :
						   sizeof(struct sockaddr_in6));
	} else {
		log_error("this host has no address, not even of loopback; 'ip link set lo up'");
		ret = -EADDRNOTAVAIL;
	}
	freeifaddrs(list);
	return ret;
}
