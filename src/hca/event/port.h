/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port follows the interfaces of the network namespace: it is active while any of them
 * is up (loopback included, because peers on this host are reached by it), and contexts
 * get an event when the state or the GIDs change. Inside of the host messages go through shared
 * memory, so the speed is the adapter's own, and connections go on when a link goes down.
 *
 * In a simulated subnet (hca/host/subnet.h) the port is what the transport hears of it.
 */
#ifndef HCA_PORT_H
#define HCA_PORT_H

#include <infiniband/verbs.h>

struct plug_port;

/* The port of the subnet is like that now; contexts get the events that follow from what has changed. Any
 * thread, with any locks. */
void hca_port_is_now(const struct plug_port *port);
/* Contexts get this event of the port; others than those of a port are ignored. Any thread, with any
 * locks. */
void hca_port_event(enum ibv_event_type type);
/* Begins to watch the interfaces. If netlink is not permitted there are no events, and the
 * state is read when it is queried. process.lock is held. */
void hca_port_start(void);
/* Ends it; after the transport's end. */
void hca_port_stop(void);
/* In a forked child: forgets the parent's descriptor. */
void hca_port_forked(void);

#endif
