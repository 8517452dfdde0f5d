/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of UD queue pairs over RoCE v2.
 *
 * A group is an IP multicast group: the GID ::ffff:a.b.c.d that of IPv4 a.b.c.d, any other one
 * the IPv6 address of the same bytes, as Linux' RDMA CM makes them. Destination queue pair
 * 0xffffff, and each process delivers to all of its queue pairs that are attached.
 *
 * Receiving: each process with a member joins with the socket of its slot, on every interface
 * that has a GID of the group's IP version when the first queue pair is attached, as
 * ibv_attach_mcast(3) names no interface. The kernel gives each of these sockets a copy; of
 * two interfaces in the same network each brings one, so members get two then. A
 * process that is killed leaves its membership to its slot's socket, which exists as long as
 * the group of processes (slots.h); what comes there is dropped.
 *
 * Sending: by the interface of the address handle's source GID, with the time to live of
 * its hop limit, 1 if that is 0. Where a transport inside of the host is used, too (shm), that
 * one brings datagrams to the processes of the host and roce to other hosts alone: packets do
 * not come back to the host (IP_MULTICAST_LOOP is off) and those that would leave by the loopback
 * interface are not sent, so nobody gets two. Where roce is used
 * alone they do, for the other members on the host and the sender's own process. Members of
 * one host that do not use the same transports miss the datagrams of those that use shm.
 */
#ifndef TRANSPORT_ROCE_GROUP_H
#define TRANSPORT_ROCE_GROUP_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct carrier;

/*
 * Joins or leaves, with the carrier over UDP. 0; -ENOMEM: the kernel allows the socket no more
 * groups; or another negative errno; errors of joining are logged. Not on the progress thread;
 * one call at a time.
 */
int roce_group_member(struct carrier *udp, const union ibv_gid *gid, bool joined);

/* Is the source of the address vector the loopback interface? */
bool roce_group_stays_here(const struct ibv_ah_attr *to);

#endif
