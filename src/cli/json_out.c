/* SPDX-License-Identifier: BSD-2-Clause */
/* See json_out.h. */
#include "cli/json_out.h"

#include <inttypes.h>
#include <string.h>

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

void cli_json_string(struct cli_json *j, const char *key, const char *value)
{
	begin(j, key);
	quoted(j->out, value);
}

void cli_json_uint(struct cli_json *j, const char *key, uint64_t value)
{
	begin(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void cli_json_number(struct cli_json *j, const char *key, double value)
{
	begin(j, key);
	fprintf(j->out, "%.9g", value);
}

void cli_json_bool(struct cli_json *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->out);
}
