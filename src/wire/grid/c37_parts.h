/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A configuration CFG-3 in several frames (C37.118.2-2011, CONT_IDX): each has the header, its
 * index and a part of the configuration. The first one has index 1, the last one 65535; a
 * configuration in one frame has 0. If the last but one is missing the indexes do not tell it, but
 * the configuration is too short then.
 */
#ifndef WIRE_GRID_C37_PARTS_H
#define WIRE_GRID_C37_PARTS_H

#include "wire/grid/c37.h"

/* Bytes of the body of a configuration that is put together, at most. */
#define C37_CONFIG_MAX (1u << 20)
/* The smallest frame that a part may have. */
#define C37_PART_MIN 64

/* Parts that have come. All zeros: none. */
struct c37_parts {
	uint8_t *bytes;    /* the body of the whole, which begins with an index of 0 */
	size_t len;
	uint16_t next;     /* index of the part that comes next; 0: none is awaited */
	uint16_t idcode;
};

/*
 * Takes a frame of type C37_CFG3. 1: *whole is the configuration, in p->bytes if it came in parts;
 * 0: other parts have to come; -EPROTO: because of *why it belongs to none, and all parts are
 * forgotten; -ENOMEM.
 */
int c37_parts_take(struct c37_parts *p, const struct c37_frame *f, struct c37_frame *whole,
		   const char **why);
void c37_parts_free(struct c37_parts *p);

/*
 * Writes the configuration whose body is `body` (with its index of 0) as frames of at most `part`
 * bytes (C37_PART_MIN or more), one behind the other. Their length; 0: there is no room.
 */
size_t c37_parts_write(const struct c37_frame *head, struct c37_bytes body, size_t part,
		       uint8_t *to, size_t size);

#endif
