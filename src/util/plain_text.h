/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of others on its way to a terminal: control characters could make several lines of one, or
 * command the terminal. In UTF-8 those are U+0000 to U+001F, U+007F, and U+0080 to U+009F (two
 * bytes), of which U+009B begins a command as escape and [ do.
 */
#ifndef UTIL_PLAIN_TEXT_H
#define UTIL_PLAIN_TEXT_H

/* How many bytes at `text` are a control character; 0: it is another one, or the end. */
static inline unsigned plain_text_control(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;

	if (*c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f)
		return 2;
	return *c && (*c < ' ' || *c == 0x7f);
}

/* Replaces their bytes by '?'. Returns text. */
static inline char *plain_text(char *text)
{
	for (char *c = text; *c;) {
		unsigned count = plain_text_control(c);

		if (!count)
			c++;
		while (count--)
			*c++ = '?';
	}
	return text;
}

#endif
