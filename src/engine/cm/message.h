/* SPDX-License-Identifier: BSD-2-Clause */
/* Building the messages of a machine; used by machine.c only. */
#ifndef ENGINE_CM_MESSAGE_H
#define ENGINE_CM_MESSAGE_H

#include "engine/cm/machine.h"

/*
 * The message of `step`, with the machine's identifiers: the application's `message`,
 * or made here if NULL. `received`: the message that it answers, or NULL. The machine
 * is still in the state before the step.
 */
void cm_message_make(const struct cm_machine *m, const struct cm_step *step,
		   unsigned service_code, const struct cm_mad *message,
		   const struct cm_mad *received, struct cm_mad *mad);

#endif
