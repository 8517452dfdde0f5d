/* SPDX-License-Identifier: BSD-2-Clause */
/* Hexadecimal digits. */
#ifndef UTIL_HEX_H
#define UTIL_HEX_H

/* -1: it is none. */
static inline int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif
