/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes JSON in one pass, on one line, which ends when all is closed. Commas and escapes are
 * written here; the caller opens and closes objects and arrays. Keys are NULL inside arrays.
 */
#ifndef CLI_JSON_OUT_H
#define CLI_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cli_json {
	FILE *out;
	bool comma; /* this level has an element already */
	unsigned depth; /* of what is open */
};

void cli_json_open(struct cli_json *j, const char *key, char bracket);  /* { or [ */
void cli_json_close(struct cli_json *j, char bracket);                  /* } or ] */
/* An object with an array: {"key": [ */
void cli_json_open_list(struct cli_json *j, const char *key);
void cli_json_close_list(struct cli_json *j);

/* A member of an object, or an element if its key is NULL. */
struct cli_json_member {
	const char *key;
	char kind; /* 'u', 's', 'f', 'b': the member of the union; '\0': the end of a list */
	union {
		uint64_t u;
		const char *s;
		double f;
		bool b;
	};
};

#define j_uint(key, value) ((struct cli_json_member){ (key), 'u', { .u = (value) } })
#define j_text(key, value) ((struct cli_json_member){ (key), 's', { .s = (value) } })
#define j_number(key, value) ((struct cli_json_member){ (key), 'f', { .f = (value) } })
#define j_bool(key, value) ((struct cli_json_member){ (key), 'b', { .b = (value) } })

/* Writes members, in their order: cli_json_put(j, j_uint("pid", pid), j_text("name", name)). */
#define cli_json_put(j, ...) \
	cli_json_members(j, (const struct cli_json_member[]){ __VA_ARGS__, { .kind = '\0' } })
/* The same as an object of their own. */
#define cli_json_object(j, key, ...) \
	(cli_json_open(j, key, '{'), cli_json_put(j, __VA_ARGS__), cli_json_close(j, '}'))
/* An array of `count` elements, which the statement behind it writes; it may not leave the loop:
 * cli_json_list(j, "links", i, count) put_link(j, &links[i]); */
#define cli_json_list(j, key, i, count) \
	for (size_t i = (cli_json_open(j, key, '['), 0); \
	     i < (count) || (cli_json_close(j, ']'), false); i++)
void cli_json_members(struct cli_json *j, const struct cli_json_member *members);

#endif
