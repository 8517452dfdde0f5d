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

struct json_out {
	FILE *out;
	bool comma; /* this level has an element already */
};

void json_out_open(struct json_out *j, const char *key, char bracket); /* { or [ */
void json_out_close(struct json_out *j, char bracket);                 /* } or ] */
void json_out_string(struct json_out *j, const char *key, const char *value);
void json_out_uint(struct json_out *j, const char *key, uint64_t value);
void json_out_number(struct json_out *j, const char *key, double value);
void json_out_bool(struct json_out *j, const char *key, bool value);

#endif
