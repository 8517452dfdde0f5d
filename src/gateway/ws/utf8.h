/* SPDX-License-Identifier: BSD-2-Clause */
/* UTF-8 (RFC 3629) that comes in pieces, which may be cut within a character. */
#ifndef GATEWAY_WS_UTF8_H
#define GATEWAY_WS_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero at the start of a text. */
struct ws_utf8 {
	uint8_t more;         /* bytes that the last character lacks */
	uint8_t first, last;  /* what the next of them may be */
};

/* False: this piece does not go on with a valid text. */
bool ws_utf8_take(struct ws_utf8 *u, const void *data, size_t len);

/* The text may end here. */
static inline bool ws_utf8_is_whole(const struct ws_utf8 *u)
{
	return !u->more;
}

#endif
