/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port follows the interfaces of the network namespace: it is active as long as any
 * of them is up (loopback counts, for it is what peers on this host are reached by), and
 * contexts get an event when that changes or the GIDs do. Messages go through shared
 * memory, so speed and MTU are the adapter's own, and a link that goes down does not
 * stop those who are connected.
 */
#ifndef HCA_PORT_H
#define HCA_PORT_H

/* Begins to watch. Where that is not allowed there are no events, and the state is
 * looked up when it is asked for. process.lock is held. */
void hca_port_start(void);
/* Ends it; after the transport's end. */
void hca_port_stop(void);
/* In a forked child: what was watched is the parent's. */
void hca_port_forked(void);

#endif
