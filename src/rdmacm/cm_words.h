/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of a machine's messages; inside of cm_machine.c. */
#ifndef RDMACM_CM_WORDS_H
#define RDMACM_CM_WORDS_H

#include "rdmacm/cm_machine.h"

/*
 * The message of a step: the application's `words` or none, addressed by the
 * machine; `heard`: what it answers, if anything. The machine is still in the
 * state before the step.
 */
void cm_words_make(const struct cm_machine *m, const struct cm_step *step,
		   unsigned service_code, const struct cm_mad *words,
		   const struct cm_mad *heard, struct cm_mad *mad);

/* The identifiers of the receiver and of the sender; 0 where there is none. */
void cm_words_parties(const struct cm_mad *mad, uint32_t *to, uint32_t *from);

#endif
