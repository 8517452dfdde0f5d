/* SPDX-License-Identifier: BSD-2-Clause */
/* See utf8.h. */
#include "gateway/ws/utf8.h"

#include <string.h>

/* The first byte of a character. What may follow has neither a longer form than needed, nor
 * halves of surrogate pairs, nor codes above U+10FFFF. */
static bool begin(struct ws_utf8 *u, uint8_t byte)
{
	u->first = 0x80;
	u->last = 0xbf;
	if (byte < 0x80)
		return true;
	if (byte < 0xc2 || byte > 0xf4)
		return false;
	u->more = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
	if (byte == 0xe0)
		u->first = 0xa0;
	if (byte == 0xed)
		u->last = 0x9f;
	if (byte == 0xf0)
		u->first = 0x90;
	if (byte == 0xf4)
		u->last = 0x8f;
	return true;
}

bool ws_utf8_take(struct ws_utf8 *u, const void *data, size_t len)
{
	const uint8_t *p = data, *end = p + len;
	uint64_t word;

	while (p < end) {
		if (u->more) {
			if (*p < u->first || *p > u->last)
				return false;
			u->more--;
			u->first = 0x80;
			u->last = 0xbf;
			p++;
			continue;
		}
		/* Most texts are ASCII. */
		for (; end - p >= 8; p += 8) {
			memcpy(&word, p, sizeof(word));
			if (word & UINT64_C(0x8080808080808080))
				break;
		}
		if (p < end && !begin(u, *p++))
			return false;
	}
	return true;
}
