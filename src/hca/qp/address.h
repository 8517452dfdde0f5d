/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses: the headers of datagrams, multicast groups. */
#ifndef HCA_ADDRESS_H
#define HCA_ADDRESS_H

#include <stdint.h>
#include <stdbool.h>
#include <infiniband/verbs.h>

#include "hca/limits.h"
#include "hca/object/ah.h"

struct hca_qp;

/* ---- ah.c ---- */
/* Writes the address vector `to`, completed by a GRH and a hop limit, to *full, and its source
 * GID to *source. A vector without a GRH means this host: then both GIDs are the first one of
 * the host; but in a simulated subnet it stays as it is, and *source is empty. 0; -EINVAL or -ENODATA: there is no such source GID, and *source is empty. */
int hca_address_complete(const struct ibv_ah_attr *to, struct ibv_ah_attr *full,
			 union ibv_gid *source);
/* Does the address vector, which has no group's address, name this host? */
bool hca_address_is_local(const struct ibv_ah_attr *to);
/* Logs that no transport leads to this host; -EHOSTUNREACH. */
int hca_address_refuse(void);
/* Writes the GRH that is delivered before a datagram of `length` bytes; `imm`: with immediate
 * data. */
void hca_ah_header(const struct hca_ah *ah, uint32_t length, bool imm,
		   uint8_t to[HCA_GRH_BYTES]);
/* The destination in the GRH of a datagram, IPv6 or IPv4; false: it is neither. */
bool hca_grh_destination(const uint8_t grh[HCA_GRH_BYTES], union ibv_gid *gid);

/* ---- mcast.c ---- */
bool hca_gid_is_multicast(const union ibv_gid *gid);
/* The bit of a group in hca_segment.mcast_filter. */
unsigned hca_mcast_bit(const union ibv_gid *gid);
/* Calls fn for every QP attached to the group. fn must not attach or detach. */
void hca_mcast_each(const union ibv_gid *gid,
		    void (*fn)(struct hca_qp *qp, void *arg), void *arg);
/* In a forked child: drops the attachments of the parent. */
void hca_mcast_forked(void);

#endif
