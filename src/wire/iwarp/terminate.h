/* SPDX-License-Identifier: BSD-2-Clause */
/* The body of a TERMINATE, behind the DDP header (RFC 5040, 4.8); for segment.c. */
#ifndef WIRE_IWARP_TERMINATE_H
#define WIRE_IWARP_TERMINATE_H

#include "wire/iwarp/segment.h"

/* Writes it and returns its end; NULL: lengths and flags do not agree. */
uint8_t *iwarp_terminate_put(const struct iwarp_terminate *t, uint8_t *to);

/*
 * `bytes` is 4 at least. The order of the bits in the first word is found out: Linux's siw writes
 * layer and type, and the flags, the other way round (bit-fields of a little-endian machine).
 * Flags tell the orders apart. Without flags the RFC's order counts if it yields a code that an
 * RFC defines; so of siw "unexpected opcode" and "invalid version" read as errors of MPA, and
 * errors of MPA that it sends while the connection is set up (codes 5 to 7) as errors of RDMAP.
 */
enum iwarp_error iwarp_terminate_get(const uint8_t *from, size_t bytes,
				     struct iwarp_terminate *t);

#endif
