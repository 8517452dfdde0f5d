/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits for threads that copy by a key (hca/run/copies.h), and for those that carry out packets. */
#include "transport/packet/base/state.h"

void packet_qp_fence(struct packet_port *port)
{
	hca_copies_wait(&port->copies);
	/* The holder of the lock may wait for a build of this thread. */
	if (hca_self.depth)
		return;
	hca_lock(&port->receive_lock);
	hca_unlock(&port->receive_lock);
}
