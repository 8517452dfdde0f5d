/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending datagrams, whatever transport carries them (datagram.c). */
#ifndef HCA_DATAGRAM_H
#define HCA_DATAGRAM_H

#include <stdbool.h>

struct hca_qp;
struct hca_swqe;

/* Transmits what waits in the send queue of a UD queue pair: each entry by the transport
 * of its address handle. sq_lock is held. */
void hca_transmit_datagrams(struct hca_qp *qp);
/* Do the keys of its buffers allow that the entry is sent? sq_lock is held. */
bool hca_datagram_allowed(const struct hca_qp *qp, const struct hca_swqe *e);
/* It is sent and lost on its way, as datagrams may be: 0, or -EFAULT as for others.
 * sq_lock is held. */
int hca_datagram_lose(struct hca_qp *qp, const struct hca_swqe *e);

#endif
