/* SPDX-License-Identifier: BSD-2-Clause */
/* The paths of an engine in layers without circles. Private to the folder. */
#ifndef FABRIC_ROUTING_LAYERS_H
#define FABRIC_ROUTING_LAYERS_H

#include "fabric/routing/tables.h"

/* Makes tables of shortest paths; -ENOMEM. */
typedef int routing_engine(const struct topology *t, struct routing **r);

/* As routing_lash(), with the paths of an engine. */
int routing_in_layers(const struct topology *t, routing_engine *engine, unsigned layers_max, struct routing **r,
		      struct routing_layers **layers, char *why, size_t why_bytes);

#endif
