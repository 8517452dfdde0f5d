/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to subnet administration (IBA volume 1, 15): the path to a port, and membership in groups. A
 * request goes from queue pair 1 to that of the subnet manager's port, and is repeated a few times.
 * Answers of more than one datagram are not asked for.
 */
#ifndef TRANSPORT_FABRIC_SA_H
#define TRANSPORT_FABRIC_SA_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/host/subnet_peer.h"

struct packet_port;

/* 0; -ETIMEDOUT: no answer came; -EHOSTUNREACH: there is none, or it is refused (logged); or another
 * negative errno. They may wait for a second. No lock of the data path is held. */
int fabric_sa_path(struct packet_port *port, const union ibv_gid *to, struct hca_subnet_path *path);
/* The port becomes a member, and stays one: other processes of the host may be members, too. */
int fabric_sa_join(struct packet_port *port, const union ibv_gid *mgid, bool sends_only,
		   struct hca_subnet_path *path);
/* A MAD of this class came to queue pair 1. Any thread, with any locks. */
void fabric_sa_arrived(const uint8_t *mad);
/* In a forked child. */
void fabric_sa_forked(void);

#endif
