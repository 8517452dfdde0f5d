/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of queue pair 1, from and to the socket of slot 0. All processes that take part in
 * connection management share that socket; each packet is read by one of them (gsi.h).
 */
#ifndef TRANSPORT_ROCE_QP1_H
#define TRANSPORT_ROCE_QP1_H

#include "transport/roce/gsi.h"

struct packet_port;

/* Begins to read the socket `fd` on the progress thread, and lets roce_qp1_emit() send by
 * `port`, which is open. 0 or a negative errno. */
int roce_qp1_open(int fd, struct packet_port *port);
/* Not on the progress thread, before the descriptor and the port are closed. */
void roce_qp1_close(void);
/* In a forked child, before the parent's descriptor is closed. */
void roce_qp1_forked(void);

/* See roce_gsi_emit. -ENETDOWN: not open. */
int roce_qp1_emit(const struct hca_gsi_address *to, const uint8_t mad[HCA_GSI_MAD_BYTES]);

#endif
