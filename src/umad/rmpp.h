/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of more than one MAD, for agents that registered with RMPP: the kernel puts them
 * together and takes them apart for programs, so this library does, with the sender and receiver of
 * wire/mad/rmpp.h. All functions are called with the port's lock held.
 */
#ifndef UMAD_RMPP_H
#define UMAD_RMPP_H

#include "umad/umad.h"

/* Does this MAD of an agent with RMPP belong here? */
bool umad_rmpp_is(const uint8_t *mad);
/* A MAD with RMPP came. Puts a message into the queue when it is complete. */
void umad_rmpp_receive(struct umad_port_open *p, const struct plug_mad *head,
		       const uint8_t mad[PLUG_MAD_BYTES]);
/* Begins to send `bytes` at `mad`, which has all headers at its start; the bytes are copied. */
int umad_rmpp_send(struct umad_port_open *p, const struct plug_mad *head, const uint8_t *mad,
		   size_t bytes);
/* Sends what is due, and gives up what has waited too long. */
void umad_rmpp_turn(struct umad_port_open *p);
/* When umad_rmpp_turn() is due; UINT64_MAX: never. */
uint64_t umad_rmpp_due_ns(const struct umad_port_open *p);
void umad_rmpp_forget(struct umad_port_open *p);

#endif
