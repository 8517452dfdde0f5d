/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which data lane of a port sends next (IBA volume 1, 7.6.9): two tables of lanes and weights, one
 * of high priority, and a limit after which the other gets a turn. Pure but for the port's own state.
 */
#ifndef ENGINE_FABRIC_ARBITER_H
#define ENGINE_FABRIC_ARBITER_H

#include "engine/fabric/state.h"

#define FABRIC_HIGH_UNLIMITED 255

/* All data lanes in the table of low priority, with the same weight; none in the other. */
void fabric_arbiter_init(struct fabric_port *o);
/* The high limit was set. */
void fabric_arbiter_limit(struct fabric_port *o);
/* A data lane of `can` (bits of lanes that have a packet and the credits for it) that sends next a
 * packet whose size the caller tells to fabric_arbiter_sent(); -1: those lanes are in no table. */
int fabric_arbiter_pick(struct fabric_port *o, uint16_t can);
void fabric_arbiter_sent(struct fabric_port *o, uint32_t bytes);

#endif
