/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Management datagrams of soft0 without a fabric: between the programs of one user on this host,
 * by LID 1 or 0, and to the counters of the port (performance management), which are the sums over
 * the processes that use the adapter now. There is no subnet manager, and no other node: what
 * is sent elsewhere gets no answer.
 *
 * An agent has a socket for answers, under a name with the upper half of its transaction
 * identifiers, and one for requests under the name of its class. The kernel says who sent a
 * datagram (SCM_CREDENTIALS): those of other users are dropped.
 *
 * All functions but the first two are called with the port's lock held.
 */
#ifndef UMAD_PLAIN_H
#define UMAD_PLAIN_H

#include "umad/umad.h"

/* Is soft0 among the devices that programs see? */
bool umad_plain_exists(void);
/* The state of its port; host_number is 0. 0 or a negative errno. */
int umad_plain_look(struct plug_welcome *welcome, struct plug_port *port);

void umad_plain_init(struct umad_port_open *p);
void umad_plain_forget(struct umad_port_open *p);
/* 0, -EPERM: another program has the class, or another negative errno. */
int umad_plain_agent_open(struct umad_port_open *p, unsigned number, const struct plug_agent *agent);
int umad_plain_agent_close(struct umad_port_open *p, unsigned number);
/* 0, also if nobody receives it; -EAGAIN: the receiver has no room. */
int umad_plain_send(struct umad_port_open *p, const struct plug_mad *head,
		    const uint8_t mad[PLUG_MAD_BYTES]);
/* Takes one MAD that has come for an agent of the port. */
bool umad_plain_receive(struct umad_port_open *p, struct plug_mad *head, uint8_t mad[PLUG_MAD_BYTES]);
/* Repeats requests, and ends those that got no answer. */
void umad_plain_turn(struct umad_port_open *p);
uint64_t umad_plain_due_ns(const struct umad_port_open *p);

#endif
