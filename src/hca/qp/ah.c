/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles. The global routing header that the receiver gets in front of a datagram
 * is built when the handle is created, except for its lengths. For RoCE v2 over IPv4 the
 * first 20 bytes are unused and the IPv4 header follows (InfiniBand specification, annex
 * A17.4.5.2), with the contents that it would have on the wire.
 *
 * An address vector without a GRH names a port by its LID. The only LID is that of this
 * host's port, for programs that do not use GIDs. In a simulated subnet (hca/host/subnet.h) each port
 * has its LIDs, and packets have a GRH only if the address vector has one.
 */
#define LOG_ROOM "hca"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <stdlib.h>
#include <string.h>

#include "hca/hca.h"
#include "hca/host/gid.h"
#include "hca/host/settings.h"
#include "hca/host/subnet.h"
#include "hca/limits.h"
#include "hca/memory/domain.h"
#include "hca/object/ah.h"
#include "hca/object/live.h"
#include "hca/object/quota.h"
#include "hca/path/path.h"
#include "hca/qp/address.h"
#include "hca/share/process.h"
#include "util/container_of.h"
#include "util/log.h"
#include "wire/ib/header.h"

/* Hop limits of address vectors that have 0; datagrams to groups stay in their network. */
#define HOPS 64
#define GROUP_HOPS 1

int hca_address_complete(const struct ibv_ah_attr *to, struct ibv_ah_attr *full,
			 union ibv_gid *source)
{
	struct ibv_gid_entry entry = { 0 };
	int ret;

	*full = *to;
	if (hca_subnet_on()) {
		ret = to->is_global ? hca_gid_by_index(to->grh.sgid_index, &entry) : 0;
		*source = entry.gid;
		return ret;
	}
	if (!to->is_global) {
		full->is_global = 1;
		full->grh = (struct ibv_global_route){ 0 };
	}
	if (!full->grh.hop_limit)
		full->grh.hop_limit = hca_gid_is_multicast(&full->grh.dgid) ? GROUP_HOPS : HOPS;
	ret = hca_gid_by_index(full->grh.sgid_index, &entry);
	*source = entry.gid;
	if (!to->is_global)
		full->grh.dgid = entry.gid;
	return ret;
}

int hca_address_refuse(void)
{
	log_warn("an address without a GRH means this host, and this host has no address");
	return -EHOSTUNREACH;
}

static void grh_fill(struct hca_ah *ah, const union ibv_gid *sgid)
{
	const struct ibv_global_route *g = &ah->attr.grh;

	ah->ipv4 = hca_gid_is_ipv4(g->dgid.raw);
	if (ah->ipv4) {
		struct iphdr ip = {
			.version = 4,
			.ihl = 5,
			.tos = g->traffic_class,
			.frag_off = htons(IP_DF),
			.ttl = g->hop_limit,
			.protocol = IPPROTO_UDP,
		};

		memcpy(&ip.saddr, sgid->raw + 12, 4);
		memcpy(&ip.daddr, g->dgid.raw + 12, 4);
		memcpy(ah->grh + 20, &ip, sizeof(ip));
		ah->checksum = ib_ip_sum(0, &ip, sizeof(ip));
	} else {
		struct ibv_grh grh = {
			.version_tclass_flow =
				htonl(6u << 28 | (uint32_t)g->traffic_class << 20 |
				      (g->flow_label & 0xfffff)),
			.next_hdr = IPPROTO_UDP,
			.hop_limit = g->hop_limit,
			.sgid = *sgid,
			.dgid = g->dgid,
		};

		memcpy(ah->grh, &grh, sizeof(grh));
	}
}

bool hca_grh_destination(const uint8_t grh[HCA_GRH_BYTES], union ibv_gid *gid)
{
	if (grh[0] >> 4 == 6) {
		memcpy(gid->raw, grh + offsetof(struct ibv_grh, dgid), 16);
		return true;
	}
	if (grh[20] >> 4 != 4)
		return false;
	*gid = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff } };
	memcpy(gid->raw + 12, grh + 20 + offsetof(struct iphdr, daddr), 4);
	return true;
}

void hca_ah_header(const struct hca_ah *ah, uint32_t length, bool imm,
		   uint8_t to[HCA_GRH_BYTES])
{
	/* UDP, BTH, DETH, immediate, data with padding, ICRC. */
	uint32_t bytes = 8 + 12 + 8 + (imm ? 4 : 0) + ((length + 3) & ~3u) + 4;
	uint16_t field;

	memcpy(to, ah->grh, HCA_GRH_BYTES);
	if (likely(ah->ipv4)) {
		bytes += sizeof(struct iphdr);
		field = htons((uint16_t)bytes);
		memcpy(to + 20 + offsetof(struct iphdr, tot_len), &field, 2);
		field = ib_ip_checksum(ah->checksum + bytes);
		memcpy(to + 20 + offsetof(struct iphdr, check), &field, 2);
	} else {
		field = htons((uint16_t)bytes);
		memcpy(to + offsetof(struct ibv_grh, paylen), &field, 2);
	}
}

bool hca_address_is_local(const struct ibv_ah_attr *to)
{
	if (hca_subnet_on())
		return hca_subnet_is_own_lid(to->dlid);
	return !to->is_global || hca_gid_is_local(&to->grh.dgid);
}

/* As on every RoCE port a GRH is required (IBV_QPF_GRH_REQUIRED), except for the LID of this port. */
static bool address_is_valid(const struct ibv_ah_attr *attr)
{
	if (attr->port_num != 1 || attr->sl > 15)
		return false;
	if (hca_subnet_on())
		return !hca_subnet_check_address(attr);
	return attr->is_global || attr->dlid == HCA_PORT_LID;
}

int hca_ah_create(struct ibv_pd *ibpd, struct ibv_ah_attr *attr,
		  struct ibv_ah **out)
{
	struct hca_destination to = { .qpn = HCA_QPN_UNKNOWN };
	const struct hca_transport_ops *route;
	struct ibv_ah_attr full;
	union ibv_gid source;
	struct hca_ah *ah;
	int ret;

	if (!hca_live(ibpd, HCA_PD))
		return -EINVAL;
	if (hca_without(ibpd->context) & HCA_WITHOUT_UD)
		return -EOPNOTSUPP;
	if (!address_is_valid(attr))
		return -EINVAL;
	/* A vector without a GRH is good without a source GID, too: transport shm needs none. */
	ret = hca_address_complete(attr, &full, &source);
	if (attr->is_global && ret)
		return -EINVAL;
	to.ah = &full;
	to.multicast = attr->is_global && hca_gid_is_multicast(&attr->grh.dgid);
	to.local = !to.multicast && hca_address_is_local(attr);
	route = hca_path_choose(&to);
	if (!route && !attr->is_global)
		return hca_address_refuse();
	if (hca_quota_take(HCA_QUOTA_AH))
		return -ENOMEM;
	ah = calloc(1, sizeof(*ah));
	if (!ah) {
		hca_quota_give(HCA_QUOTA_AH);
		return -ENOMEM;
	}
	ah->ibv.context = ibpd->context;
	ah->ibv.pd = ibpd;
	ah->attr = full;
	ah->pd_id = hca_pd(ibpd)->id;
	ah->multicast = to.multicast;
	ah->local = to.local;
	if (ah->multicast)
		ah->mcast_bit = hca_mcast_bit(&attr->grh.dgid);
	ah->sgid = source;
	ah->route = route;
	grh_fill(ah, &source);
	/* Connects to the processes that use multicast now, so that sends need not wait. */
	if (ah->multicast)
		hca_local_group_enter(false);
	hca_pd_get(hca_pd(ibpd));
	hca_live_begin(&ah->ibv, HCA_AH);
	*out = &ah->ibv;
	return 0;
}

int hca_ah_destroy(struct ibv_ah *ibah)
{
	if (!hca_live(ibah, HCA_AH))
		return -EINVAL;
	hca_live_end(ibah, HCA_AH);
	hca_pd_put(hca_pd(ibah->pd));
	free(hca_ah(ibah));
	hca_quota_give(HCA_QUOTA_AH);
	return 0;
}

int hca_ah_init_from_wc(struct ibv_context *ctx, uint8_t port,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	struct ibv_gid_entry e;
	union ibv_gid local = { 0 }, remote = { 0 };
	const uint8_t *raw = (const uint8_t *)grh;

	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->sl = wc->sl;
	attr->port_num = port;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	if (ntohl(grh->version_tclass_flow) >> 28 == 6) {
		local = grh->dgid;
		remote = grh->sgid;
		attr->grh.hop_limit = grh->hop_limit;
		attr->grh.traffic_class = (uint8_t)(
			ntohl(grh->version_tclass_flow) >> 20);
		attr->grh.flow_label = ntohl(grh->version_tclass_flow) & 0xfffff;
	} else if (raw[20] >> 4 == 4) {
		const struct iphdr *ip = (const void *)(raw + 20);

		local.raw[10] = local.raw[11] = 0xff;
		remote.raw[10] = remote.raw[11] = 0xff;
		memcpy(local.raw + 12, &ip->daddr, 4);
		memcpy(remote.raw + 12, &ip->saddr, 4);
		attr->grh.hop_limit = ip->ttl;
		attr->grh.traffic_class = ip->tos;
	} else {
		return -EPROTONOSUPPORT;
	}
	attr->is_global = 1;
	attr->grh.dgid = remote;
	for (uint32_t i = 0; !hca_gid_by_index(i, &e); i++) {
		if (!memcmp(e.gid.raw, local.raw, 16)) {
			attr->grh.sgid_index = (uint8_t)i;
			return 0;
		}
	}
	return -EINVAL;
}
