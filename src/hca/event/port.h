/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port follows the interfaces of the network namespace: it is active while any of them
 * is up (loopback included, because peers on this host are reached by it), and contexts
 * get an event when the state or the GIDs change. Inside of the host messages go through shared
 * memory, so the speed is the adapter's own, and connections go on when a link goes down.
 */
#ifndef HCA_PORT_H
#define HCA_PORT_H

/* Begins to watch the interfaces. If netlink is not permitted there are no events, and the
 * state is read when it is queried. process.lock is held. */
void hca_port_start(void);
/* Ends it; after the transport's end. */
void hca_port_stop(void);
/* In a forked child: forgets the parent's descriptor. */
void hca_port_forked(void);

#endif
