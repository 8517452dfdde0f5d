/* SPDX-License-Identifier: BSD-2-Clause */
/* Address handles. */
#ifndef HCA_AH_H
#define HCA_AH_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/limits.h"
#include "util/container_of.h"

struct hca_transport_ops;

struct hca_ah {
	struct ibv_ah ibv;
	struct ibv_ah_attr attr;
	const struct hca_transport_ops *route; /* NULL: no transport reaches it */
	bool local;                   /* destination is an address of this host */
	bool ipv4;
	bool multicast;               /* destination is a group; then not local */
	unsigned mcast_bit;
	uint32_t pd_id;
	union ibv_gid sgid;
	uint32_t checksum;            /* of the IPv4 header, with length 0 */
	uint8_t grh[HCA_GRH_BYTES];   /* as delivered, except lengths and IPv4 checksum */
};

/* An IPv4 header is in the last 20 bytes of `grh`; the first 20 are zero. */
static inline bool hca_ah_is_ipv4(const struct hca_ah *ah)
{
	return !ah->grh[0];
}

static inline struct hca_ah *hca_ah(struct ibv_ah *ah)
{
	return container_of(ah, struct hca_ah, ibv);
}

#endif
