/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes JSON in one pass, on one line. Commas and escapes are written here; the caller
 * opens and closes objects and arrays. Keys are NULL inside arrays.
 */
#ifndef CLI_JSON_OUT_H
#define CLI_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cli_json {
	FILE *out;
	bool comma; /* this level has an element already */
};

void cli_json_open(struct cli_json *j, const char *key, char bracket); /* { or [ */
void cli_json_close(struct cli_json *j, char bracket);                 /* } or ] */
void cli_json_string(struct cli_json *j, const char *key, const char *value);
void cli_json_uint(struct cli_json *j, const char *key, uint64_t value);
void cli_json_number(struct cli_json *j, const char *key, double value);
void cli_json_bool(struct cli_json *j, const char *key, bool value);

#endif
