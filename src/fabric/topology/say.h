/* SPDX-License-Identifier: BSD-2-Clause */
/* The one line about a fault that functions of the room leave in `why`. Private to the room. */
#ifndef FABRIC_TOPOLOGY_SAY_H
#define FABRIC_TOPOLOGY_SAY_H

#include <stddef.h>

/* Writes the line, without control characters, cut to `why_bytes`; 0: nowhere. Returns `err`. */
int topology_say(char *why, size_t why_bytes, int err, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
