/* SPDX-License-Identifier: BSD-2-Clause */
/* Characters of UTF-8 (RFC 3629), in text that may be anything. */
#ifndef UTIL_UTF8_H
#define UTIL_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the valid character at `s`, and its number; 0: there is none. */
static inline size_t utf8_length(const unsigned char *s, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf8 ? 0 : s[0] >= 0xf0 ? 4 :
		   s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;

	if (!n)
		return 0;
	*code = n == 1 ? s[0] : s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	if (*code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return n;
}

#endif
