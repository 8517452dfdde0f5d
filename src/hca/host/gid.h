/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of GIDs: the addresses of the network namespace, or the port's in a simulated subnet. */
#ifndef HCA_GID_H
#define HCA_GID_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Is the GID an IPv4 address, mapped to IPv6? */
static inline bool hca_gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, prefix, sizeof(prefix));
}

/* Is this GID an address of this host (network namespace)? */
bool hca_gid_is_local(const union ibv_gid *gid);
/* 0, -ENODATA: the entry is empty, or -EINVAL: the table has no such entry. */
int hca_gid_by_index(uint32_t index, struct ibv_gid_entry *entry);
/* The one GID of an iWARP device: the hardware address of the first interface that leads out of
 * this host, and zeros, with the number of the interface; without such an interface zeros alone. */
void hca_gid_of_hardware(union ibv_gid *gid, uint32_t *interface);
/* Is any interface up? */
bool hca_port_is_up(void);
/* The longest path MTU whose packets every interface takes whole that leads out of this host,
 * is up and has an address; IBV_MTU_4096 where none does. */
enum ibv_mtu hca_port_network_mtu(void);
/* Reads the addresses of the host again. *digest: a hash of all GIDs; *up: is any interface up.
 * 0 or a negative errno. */
int hca_gid_digest(uint64_t *digest, bool *up);
/* In a forked child: drops the table of the parent. */
void hca_gid_forked(void);

#endif
