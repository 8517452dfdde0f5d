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
#include <stdint.h>

struct plug_peer;

/* For the transport: how the fabric is asked. `peer` has a number or a GUID, and is filled in. 0;
 * -ENOENT: there is no such host; or another negative errno. NULL: nobody can be asked. */
void hca_subnet_set_finder(int (*find)(struct plug_peer *peer));

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
