/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending datagrams with any transport (datagram.c). */
#ifndef HCA_DATAGRAM_H
#define HCA_DATAGRAM_H

#include <stdbool.h>

struct hca_qp;
struct hca_swqe;

/* Transmits the waiting entries in the send queue of a UD queue pair, each by the transport
 * of its address handle. sq_lock is held. */
void hca_transmit_datagrams(struct hca_qp *qp);
/* Do the keys permit access to the buffers of the entry? sq_lock is held. */
bool hca_datagram_allowed(const struct hca_qp *qp, const struct hca_swqe *e);
/* Counts the entry as sent and lost: 0, or -EFAULT as for entries that are sent.
 * sq_lock is held. */
int hca_datagram_lose(struct hca_qp *qp, const struct hca_swqe *e);

#endif
