/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For whom a CM message is, and the answers to messages for which nobody has a connection
 * (IBA volume 1, 12.9.8.3). Pure functions.
 */
#ifndef WIRE_CM_ANSWER_H
#define WIRE_CM_ANSWER_H

#include "wire/cm.h"

/* The receiver's (`to`) and the sender's identifier; 0: the message has none. REQ, SIDR_REQ
 * and SIDR_REP have other fields for it. */
void wire_cm_parties(const struct cm_mad *mad, uint32_t *to, uint32_t *from);
/* Sets both, in a message that has them. */
void wire_cm_parties_set(struct cm_mad *mad, uint32_t to, uint32_t from);

/* The answer to a message that belongs to no connection; -ENOENT: it needs none. */
int wire_cm_stray_answer(const struct cm_mad *mad, struct cm_mad *answer);
/* The REJ or SIDR_REP, with an enum cm_reason, for a request that is not taken; -EPROTO:
 * `request` is neither REQ nor SIDR_REQ. */
int wire_cm_refusal(const struct cm_mad *request, int reason,
		    struct cm_mad *answer);

#endif
