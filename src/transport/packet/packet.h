/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every transport of packets needs: queue pairs, keys and completions of hca on one
 * side, the engine of connections (engine/rc) on the other. It knows no medium: the
 * transport on top opens a port with a carrier and says how a header becomes bytes and
 * where an address is. Its table of hca_transport_ops calls the functions below.
 *
 * The rooms, from the bottom: frame (packets, and captures of them), base (ports, and what both
 * sides of a connection need), responder, requester; the files of this folder include all of them.
 *
 * Locks, in the order in which they are taken: the port's receive_lock (everything that
 * arrives, the responders, the lists of the port), sq_lock (the requesters), the carrier's,
 * then those of receive and completion queues. All are taken as elide.h says.
 *
 * Carriers hold bytes and queue pair numbers, never queue pairs. A packet of a process to
 * itself arrives with the next poll.
 */
#ifndef TRANSPORT_PACKET_PACKET_H
#define TRANSPORT_PACKET_PACKET_H

#include "transport/packet/requester/requester.h"
#include "transport/packet/responder/responder.h"

/* ---- port.c ---- */
/* `ops`, `medium` and `train` are set; `carrier` becomes the port's when this succeeds.
 * 0 or -ENOMEM. */
int packet_port_open(struct packet_port *port, struct carrier *carrier);
/* No queue pair has a path here any more. */
void packet_port_close(struct packet_port *port);
/* In a forked child: the carrier's memory is given back, no lock is taken. */
void packet_port_forked(struct packet_port *port);
/* At the end of the process, in whatever state that is: sends acknowledgements that wait for a
 * later poll. Waits for no thread; if another thread uses the port, nothing is sent. */
void packet_port_end(struct packet_port *port);

/* ---- poll.c ---- */
/* As the entries of hca_transport_ops of the same names. */
bool packet_poll(struct packet_port *port, bool wait);
bool packet_pending(struct packet_port *port);
/* `port` is the transport's: a thread may reset the queue pair meanwhile and give it another
 * path. */
void packet_posted(struct packet_port *port, struct hca_qp *qp);
/* Moves all that has come. No lock is held. */
void packet_take_in(struct packet_port *port);
/* Is all of the backlog acknowledgements that may still wait for a reply of the program? */
bool packet_waits_for_reply(const struct packet_port *port);
/* A thread of the program is about to sleep: sends acknowledgements that waited for a reply. */
void packet_answer(struct packet_port *port);
/* The timer packet_presence.work. */
void packet_on_work(struct progress_timer *t);

/* ---- receive.c ---- */
/* Counts what decode() of a medium did not take. A device is open. */
void packet_count_fault(enum packet_fault fault);
/* For the carrier; `arg` is the port. receive_lock is held. */
void packet_deliver(void *arg, const struct carrier_unit *unit);
void packet_receive(struct packet_port *port, const struct carrier_unit *unit,
		    struct packet_frame *f, const uint8_t *payload);

/* ---- qp.c, timer.c: as the entries of hca_transport_ops, with packet_transmit() ---- */
int packet_open(struct packet_port *port, struct hca_qp *qp);
int packet_connect(struct hca_qp *qp);
void packet_ready(struct hca_qp *qp);
void packet_close(struct packet_port *port, struct hca_qp *qp);
void packet_expired(struct hca_qp *qp);

/* ---- demand.c ---- */
/* For hca_demand_open(); `arg` is the port. */
void packet_on_demand(void *arg);

/* ---- ud.c ---- */
int packet_datagram(struct packet_port *port, struct hca_qp *qp,
		    const struct hca_swqe *e);
/* receive_lock is held. */
void packet_receive_datagram(struct packet_port *port, struct hca_qp *qp,
			     const struct packet_frame *f, const uint8_t *payload);
/* A copy for each queue pair that is attached to the group in f->grh. */
void packet_receive_group(struct packet_port *port, const struct packet_frame *f,
			  const uint8_t *payload);

#endif
