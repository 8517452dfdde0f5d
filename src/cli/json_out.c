/* SPDX-License-Identifier: BSD-2-Clause */
/* See json_out.h. */
#include "cli/json_out.h"

#include <inttypes.h>

#include "util/utf8.h"

/* Invalid UTF-8, which command lines may have and JSON may not, becomes the replacement
 * character. */
static void quoted(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	uint32_t code;

	fputc('"', out);
	while (*s) {
		size_t n = utf8_length(s, &code);

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
	j->depth++;
}

void cli_json_close(struct cli_json *j, char bracket)
{
	fputc(bracket, j->out);
	j->comma = true;
	if (!--j->depth)
		fputc('\n', j->out);
}

void cli_json_open_list(struct cli_json *j, const char *key)
{
	cli_json_open(j, NULL, '{');
	cli_json_open(j, key, '[');
}

void cli_json_close_list(struct cli_json *j)
{
	cli_json_close(j, ']');
	cli_json_close(j, '}');
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
