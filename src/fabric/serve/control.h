/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the fabric's process (PLUG_ASK), one line each:
 *
 *	show            all nodes, ports, counters and clients, as JSON (show.h)
 *	cut NAME[:PORT], join NAME[:PORT]   the cable of a port; without a port of all ports
 *	fail NAME       all cables of a switch or host
 *	stop            the fabric ends
 */
#ifndef FABRIC_SERVE_CONTROL_H
#define FABRIC_SERVE_CONTROL_H

#include "fabric/serve/state.h"

/* Carries the line out, and answers it. */
void serve_control(struct serve_client *c, const char *line, size_t bytes, uint32_t question);

#endif
