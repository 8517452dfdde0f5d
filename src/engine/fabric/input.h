/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a packet that comes to a port. */
#ifndef ENGINE_FABRIC_INPUT_H
#define ENGINE_FABRIC_INPUT_H

#include "engine/fabric/state.h"

/* The packet that owns the event comes to its next stage. */
void fabric_input_due(struct fabric *f, struct fabric_due *due);

#endif
