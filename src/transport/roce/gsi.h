/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pair 1 over RoCE v2: between the packets of the transport and hca/path/gsi.h.
 * dispatch.h finds the process that a message is for.
 */
#ifndef TRANSPORT_ROCE_GSI_H
#define TRANSPORT_ROCE_GSI_H

#include <stddef.h>

#include "hca/path/gsi.h"

/* The transport names it in its hca_transport_ops. */
extern const struct hca_gsi_ops roce_gsi_ops;

/* What the transport does for queue pair 1. */
struct roce_gsi_port {
	/* Opens the network, and sees to it that a process of the host receives for queue
	 * pair 1 as long as this one runs. 0 or a negative errno, logged. Before each
	 * open() of hca_gsi_ops; may wait; not on the progress thread. */
	int (*open)(void);
	/* Sends a MAD as a UD SEND from queue pair 1 to queue pair 1 of the destination, with
	 * HCA_GSI_QKEY and HCA_GSI_PKEY: the contract of hca_gsi_ops.send. A process that
	 * relays answers, so it may be called before open(). */
	int (*emit)(const struct hca_gsi_address *to,
		    const uint8_t mad[HCA_GSI_MAD_BYTES]);
};

/* In the transport's start(): roce_gsi_ops may be called from now on. */
void roce_gsi_start(const struct roce_gsi_port *port);
/* In the transport's stop(), after the last call of the next function. */
void roce_gsi_stop(void);
/* The payload of a UD SEND for queue pair 1 came, with the Q_Key and P_Key above. Copies it;
 * the progress thread handles it. Any thread; takes only locks of its own, which no caller
 * can hold. If too many wait, it is dropped, and the sender will repeat it. */
void roce_gsi_arrived(const struct hca_gsi_address *from, const void *payload,
		      size_t len);
/* In a forked child. Waits for no lock. */
void roce_gsi_forked(void);

#endif
