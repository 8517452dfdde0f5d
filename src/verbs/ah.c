/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles, and the Ethernet address for a GID.
 *
 * The adapter needs no Ethernet addresses, because its packets go through sockets.
 * ibv_resolve_eth_l2_from_gid() is for programs that build frames. It takes the
 * address from the GID, this host's interfaces or the kernel's IPv4 neighbour table,
 * and sends nothing.
 */
#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "hca/hca.h"
#include "verbs/abi.h"
#include "verbs/system.h"

enum {
	VLAN_NONE = 0xffff,
};

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	VERBS_FORWARD(OWNER(pd), verbs_null, ibv_create_ah, pd, attr);

	struct ibv_ah *ah;
	int ret = pd && attr ? hca_ah_create(pd, attr, &ah) : -EINVAL;

	return ret ? verbs_null(ret) : ah;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	VERBS_FORWARD(OWNER(ah), verbs_errno, ibv_destroy_ah, ah);
	return verbs_errno(ah ? hca_ah_destroy(ah) : -EINVAL);
}

/* `grh` may be NULL only if the completion has no IBV_WC_GRH. */
static int verbs_ah_init(struct ibv_context *context, uint8_t port_num,
			 struct ibv_wc *wc, struct ibv_grh *grh,
			 struct ibv_ah_attr *attr)
{
	if (!context || !wc || !attr || ((wc->wc_flags & IBV_WC_GRH) && !grh))
		return -EINVAL;
	return hca_ah_init_from_wc(context, port_num, wc, grh, attr);
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num,
			       struct ibv_wc *wc, struct ibv_grh *grh,
			       struct ibv_ah_attr *attr)
{
	VERBS_FORWARD(context, verbs_minus1, ibv_init_ah_from_wc, context,
		      port_num, wc, grh, attr);
	return verbs_minus1(verbs_ah_init(context, port_num, wc, grh, attr));
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd,
					    struct ibv_wc *wc,
					    struct ibv_grh *grh,
					    uint8_t port_num)
{
	VERBS_FORWARD(OWNER(pd), verbs_null, ibv_create_ah_from_wc, pd, wc, grh,
		      port_num);

	struct ibv_ah_attr attr = { 0 };
	int ret = pd ? verbs_ah_init(pd->context, port_num, wc, grh, &attr) :
		       -EINVAL;

	return ret ? verbs_null(ret) : ibv_create_ah(pd, &attr);
}

static bool gid_is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

/* Multicast (RFC 1112, RFC 2464) and EUI-64 addresses (RFC 4291, appendix A). */
static bool l2_from_gid(const union ibv_gid *gid, uint8_t mac[ETHERNET_LL_SIZE])
{
	const uint8_t *raw = gid->raw;

	if (gid_is_ipv4(gid) && (raw[12] & 0xf0) == 0xe0) {
		memcpy(mac, (uint8_t[]){ 0x01, 0x00, 0x5e, raw[13] & 0x7f,
					 raw[14], raw[15] }, ETHERNET_LL_SIZE);
		return true;
	}
	if (raw[0] == 0xff) {
		memcpy(mac, (uint8_t[]){ 0x33, 0x33, raw[12], raw[13], raw[14],
					 raw[15] }, ETHERNET_LL_SIZE);
		return true;
	}
	if (raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80 && raw[11] == 0xff &&
	    raw[12] == 0xfe) {
		memcpy(mac, (uint8_t[]){ raw[8] ^ 2, raw[9], raw[10], raw[13],
					 raw[14], raw[15] }, ETHERNET_LL_SIZE);
		return true;
	}
	return false;
}

static bool gid_is_address(const union ibv_gid *gid, const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return gid_is_ipv4(gid) &&
		       !memcmp(&((const struct sockaddr_in *)sa)->sin_addr,
			       gid->raw + 12, 4);
	return sa->sa_family == AF_INET6 &&
	       !memcmp(&((const struct sockaddr_in6 *)sa)->sin6_addr, gid->raw,
		       16);
}

static bool l2_from_own(const union ibv_gid *gid, uint8_t mac[ETHERNET_LL_SIZE])
{
	const char *name = NULL;
	struct ifaddrs *list, *i;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (i = list; i && !name; i = i->ifa_next)
		if (i->ifa_addr && gid_is_address(gid, i->ifa_addr))
			name = i->ifa_name;
	for (i = list; i && name && !found; i = i->ifa_next) {
		const struct sockaddr_ll *ll;

		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_PACKET ||
		    strcmp(i->ifa_name, name) != 0)
			continue;
		ll = (const struct sockaddr_ll *)i->ifa_addr;
		memcpy(mac, ll->sll_addr, ETHERNET_LL_SIZE);
		found = true;
	}
	freeifaddrs(list);
	return found;
}

static bool l2_from_neighbour(const union ibv_gid *gid,
			      uint8_t mac[ETHERNET_LL_SIZE])
{
	char line[256], ip[64], hw[32], want[INET_ADDRSTRLEN];
	unsigned int flags;
	bool found = false;
	FILE *f;

	if (!gid_is_ipv4(gid) ||
	    !inet_ntop(AF_INET, gid->raw + 12, want, sizeof(want)))
		return false;
	f = fopen("/proc/net/arp", "re");
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %*s 0x%x %31s", ip, &flags, hw) != 3 ||
		    !(flags & 2) || strcmp(ip, want) != 0)
			continue;
		found = sscanf(hw, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0],
			       &mac[1], &mac[2], &mac[3], &mac[4],
			       &mac[5]) == ETHERNET_LL_SIZE;
	}
	fclose(f);
	return found;
}

/* Returns a negative errno, unlike most functions of this interface. */
EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
				       struct ibv_ah_attr *attr,
				       uint8_t eth_mac[ETHERNET_LL_SIZE],
				       uint16_t *vid)
{
	VERBS_FORWARD(context, verbs_raw, ibv_resolve_eth_l2_from_gid, context,
		      attr, eth_mac, vid);

	const union ibv_gid *gid;
	uint8_t mac[ETHERNET_LL_SIZE];

	if (!context || !attr || !eth_mac || !vid || !attr->is_global)
		return -EINVAL;
	gid = &attr->grh.dgid;
	if (!l2_from_gid(gid, mac) && !l2_from_own(gid, mac) &&
	    !l2_from_neighbour(gid, mac))
		return -EHOSTUNREACH;
	memcpy(eth_mac, mac, sizeof(mac));
	*vid = VLAN_NONE;
	return 0;
}
