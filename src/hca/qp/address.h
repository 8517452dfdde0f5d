/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses: the headers of datagrams, GIDs, multicast groups. */
#ifndef HCA_ADDRESS_H
#define HCA_ADDRESS_H

#include <stdint.h>
#include <stdbool.h>
#include <infiniband/verbs.h>

#include "hca/limits.h"
#include "hca/qp/ah.h"
#include "hca/qp/qp.h"

/* ---- ah.c ---- */
/* Writes the GRH that is delivered before a datagram of `length` bytes; `imm`: with immediate
 * data. */
void hca_ah_header(const struct hca_ah *ah, uint32_t length, bool imm,
		   uint8_t to[HCA_GRH_BYTES]);
/* The destination in the GRH of a datagram, IPv6 or IPv4; false: it is neither. */
bool hca_grh_destination(const uint8_t grh[HCA_GRH_BYTES], union ibv_gid *gid);

/* ---- gid.c ---- */
/* Is this GID an address of this host (network namespace)? */
bool hca_gid_is_local(const union ibv_gid *gid);
/* 0, -ENODATA: the entry is empty, or -EINVAL: the table has no such entry. */
int hca_gid_by_index(uint32_t index, struct ibv_gid_entry *entry);
/* Is any interface up? */
bool hca_port_is_up(void);
/* Reads the addresses of the host again. *digest: a hash of all GIDs; *up: is any interface up.
 * 0 or a negative errno. */
int hca_gid_digest(uint64_t *digest, bool *up);
/* In a forked child: drops the table of the parent. */
void hca_gid_forked(void);

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
