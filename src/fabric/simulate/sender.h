/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapters of a scenario: who sends, and what is done with a packet that comes. Private to the folder. */
#ifndef FABRIC_SIMULATE_SENDER_H
#define FABRIC_SIMULATE_SENDER_H

#include "fabric/simulate/state.h"

/* A flow of the engine for each sender. -ENOSPC. */
int simulate_sender_open(struct simulate_state *st);
/* The time of the sender's `due` has come: it starts, or has one more message to send. */
void simulate_sender_due(struct simulate_state *st, struct simulate_sender *sd);
/* Sends as much as the sender may now. */
void simulate_sender_pump(struct simulate_state *st, struct simulate_sender *sd);
/* Of struct fabric_ops, with a struct simulate_state as the argument. */
void simulate_sender_writable(void *arg, uint32_t node, uint8_t port);
void simulate_sender_deliver(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p);
void simulate_sender_drop(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p, enum fabric_drop why);

#endif
