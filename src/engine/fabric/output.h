/* SPDX-License-Identifier: BSD-2-Clause */
/* What a port sends next, and when it is free again. */
#ifndef ENGINE_FABRIC_OUTPUT_H
#define ENGINE_FABRIC_OUTPUT_H

#include "engine/fabric/state.h"

/* The port was woken: sends something if it is free and there is something. */
void fabric_output_try(struct fabric *f, struct fabric_port *o);
/* The last byte of what it sent has left. */
void fabric_output_due(struct fabric *f, struct fabric_due *due);
/* The head of a lane may have lived too long. */
void fabric_output_lifetime(struct fabric *f, struct fabric_due *due);
/* The link went down: what is being sent is cut off. */
void fabric_output_stop(struct fabric *f, struct fabric_port *o);
/* Ticks of PortXmitWait until now. */
uint64_t fabric_output_waited(const struct fabric *f, const struct fabric_port *o);

#endif
