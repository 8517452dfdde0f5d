/* SPDX-License-Identifier: BSD-2-Clause */
/* See group.h. */
#define LOG_ROOM "roce"
#include "transport/roce/group.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "hca/host/allowed.h"
#include "hca/host/gid.h"
#include "hca/limits.h"
#include "hca/path/path.h"
#include "transport/carrier/udp.h"
#include "util/log.h"

/* The same in every network namespace of Linux. */
#define LOOPBACK_INDEX 1

struct interfaces {
	unsigned count;
	uint32_t index[HCA_MAX_GIDS];
};

static bool has(const struct interfaces *all, uint32_t index)
{
	for (unsigned i = 0; i < all->count; i++)
		if (all->index[i] == index)
			return true;
	return false;
}

/* Finds the interfaces that have an allowed address of the IP version. */
static void find(bool v4, struct interfaces *all)
{
	struct ibv_gid_entry e;

	all->count = 0;
	for (uint32_t i = 0; i < HCA_MAX_GIDS && !hca_gid_by_index(i, &e); i++)
		if (hca_gid_is_ipv4(e.gid.raw) == v4 && hca_network_allows(e.gid.raw) && !has(all, e.ndev_ifindex))
			all->index[all->count++] = e.ndev_ifindex;
}

static void tell(const union ibv_gid *gid, int error)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid, text, sizeof(text));
	log_warn("multicast group %s not joined: %s%s", text, strerror(-error),
		 error == -ENOMEM ? "; see net.ipv4.igmp_max_memberships and net.core.optmem_max"
				  : "");
}

int roce_group_member(struct carrier *udp, const union ibv_gid *gid, bool joined)
{
	struct interfaces all;
	unsigned members = 0;
	int error = 0;

	find(hca_gid_is_ipv4(gid->raw), &all);
	for (unsigned i = 0; i < all.count && !error; i++) {
		struct carrier_addr to = carrier_udp_addr_of(gid->raw, all.index[i], 0);
		int ret = carrier_udp_member(udp, &to, all.index[i], joined);

		members += !ret;
		/* Gone meanwhile, or without multicast. */
		if (!joined || !ret || ret == -ENODEV || ret == -EOPNOTSUPP)
			continue;
		error = ret == -ENOBUFS ? -ENOMEM : ret;
		while (i--)
			carrier_udp_member(udp, &to, all.index[i], false);
		break;
	}
	if (joined && !members && !error)
		error = -EADDRNOTAVAIL;
	if (error)
		tell(gid, error);
	/* Without such an address at all the group still exists inside of the host. */
	return error == -EADDRNOTAVAIL && hca_local_has_groups() ? 0 : error;
}

bool roce_group_stays_here(const struct ibv_ah_attr *to)
{
	struct ibv_gid_entry source;

	return !hca_gid_by_index(to->grh.sgid_index, &source) &&
	       source.ndev_ifindex == LOOPBACK_INDEX;
}
