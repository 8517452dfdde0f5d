/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending from queue pair 1, for connection management (gsi.h) and subnet administration (sa.h). */
#ifndef TRANSPORT_FABRIC_QP1_H
#define TRANSPORT_FABRIC_QP1_H

#include <infiniband/verbs.h>

#include "hca/path/gsi.h"

struct packet_port;

/* Packets leave by this port; NULL: they do not leave any more. */
void fabric_qp1_start(struct packet_port *port);
/* NULL: stopped. */
struct packet_port *fabric_qp1_port(void);
/* Sends a MAD to queue pair 1 of the address. 0 or a negative errno. */
int fabric_qp1_emit(const struct ibv_ah_attr *to, const union ibv_gid *source,
		    const uint8_t mad[HCA_GSI_MAD_BYTES]);

#endif
