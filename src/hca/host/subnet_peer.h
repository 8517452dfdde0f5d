/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Other hosts of the simulated subnet of subnet.h: their IPv4 addresses, GIDs and LIDs, for the connection
 * manager. Host N of a fabric has the address 10.0.0.0 + N. The running fabric tells what belongs
 * together, in place of a name service and of subnet administration (PathRecord); answers are kept
 * for a second.
 */
#ifndef HCA_SUBNET_PEER_H
#define HCA_SUBNET_PEER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct plug_peer;

/* How packets get to a port, or to a group. */
struct hca_subnet_path {
	uint16_t lid;
	uint8_t sl;
	uint8_t mtu;         /* enum ibv_mtu */
	uint8_t rate;        /* enum ibv_rate */
	uint8_t packet_life; /* 4.096 us * 2^n */
};

/* For the transport: how the fabric and subnet administration are asked. All may wait for a second.
 * Negative errno values: -ENOENT and -EHOSTUNREACH: there is no such host, path or group; -ETIMEDOUT: no
 * answer came. */
struct hca_subnet_ops {
	/* `peer` has a number or a GUID, and is filled in. */
	int (*find)(struct plug_peer *peer);
	int (*path)(const union ibv_gid *to, struct hca_subnet_path *path);
	/* The port becomes a member of the group. */
	int (*join)(const union ibv_gid *mgid, bool sends_only, struct hca_subnet_path *path);
};
/* NULL: nobody can be asked. */
void hca_subnet_set_ops(const struct hca_subnet_ops *ops);
/* As in the table; -ENETDOWN: nobody can be asked. */
int hca_subnet_path_to(const union ibv_gid *to, struct hca_subnet_path *path);
int hca_subnet_join(const union ibv_gid *mgid, bool sends_only, struct hca_subnet_path *path);

/* The IPv4 address of this port. */
void hca_subnet_own_ipv4(uint8_t ip[4]);
/* The first GID of the host with the IPv4 address. It may ask, and wait up to a second. 0; -ENOENT:
 * there is no such host; or another negative errno. */
int hca_subnet_gid_of_ipv4(const uint8_t ip[4], union ibv_gid *gid);
/* The LID of the port with the GID. As above. */
int hca_subnet_lid_of_gid(const union ibv_gid *gid, uint16_t *lid);
/* A packet with this GID came from the LID. */
void hca_subnet_learn_lid(const union ibv_gid *gid, uint16_t lid);
/* In a forked child. */
void hca_subnet_peer_forked(void);

#endif
