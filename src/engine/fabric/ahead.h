/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks for memory ahead of the events that need it. It changes nothing but the time that they take. */
#ifndef ENGINE_FABRIC_AHEAD_H
#define ENGINE_FABRIC_AHEAD_H

#include "engine/fabric/queue.h"

/* Events of a fabric that are due soon; for `soon` of its queue. */
void fabric_ahead(struct fabric_due *const *due, unsigned count);

#endif
