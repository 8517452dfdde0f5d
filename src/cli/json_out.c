/* SPDX-License-Identifier: BSD-2-Clause */
/* See json_out.h. */
#include "cli/json_out.h"

#include <inttypes.h>

/* The length of the UTF-8 character at `s` (RFC 3629); 0: it is not valid. */
static unsigned utf8_length(const unsigned char *s)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned n = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 :
		     *s >> 3 == 30 ? 4 : 0;
	uint32_t c = n == 2 ? *s & 31u : n == 3 ? *s & 15u : *s & 7u;

	if (n < 2)
		return n;
	for (unsigned i = 1; i < n; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		c = c << 6 | (s[i] & 63u);
	}
	return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

/* Invalid UTF-8, which command lines may have and JSON may not, becomes the replacement
 * character. */
static void quoted(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	fputc('"', out);
	while (*s) {
		unsigned n = utf8_length(s);

		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s < ' ')
			fprintf(out, "\\u%04x", *s);
		else if (n == 0)
			fputs("\\ufffd", out);
		else
			fwrite(s, 1, n, out);
		s += n ? n : 1;
	}
	fputc('"', out);
}

static void begin(struct cli_json *j, const char *key)
{
	if (j->comma)
		fputs(", ", j->out);
	j->comma = true;
	if (key) {
		quoted(j->out, key);
		fputs(": ", j->out);
	}
}

void cli_json_open(struct cli_json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->out);
	j->comma = false;
}

void cli_json_close(struct cli_json *j, char bracket)
{
	fputc(bracket, j->out);
	j->comma = true;
}

void cli_json_members(struct cli_json *j, const struct cli_json_member *members)
{
	for (const struct cli_json_member *m = members; m->kind; m++) {
		begin(j, m->key);
		switch (m->kind) {
		case 'u': fprintf(j->out, "%" PRIu64, m->u); break;
		case 'f': fprintf(j->out, "%.9g", m->f); break;
		case 'b': fputs(m->b ? "true" : "false", j->out); break;
		default: quoted(j->out, m->s); break;
		}
	}
}
