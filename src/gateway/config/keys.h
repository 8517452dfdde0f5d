/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of configuration keys that are common to all of a kind, for who
 * documents or compares configurations. Those of a plug-in are in its type.
 */
#ifndef GATEWAY_CONFIG_KEYS_H
#define GATEWAY_CONFIG_KEYS_H

#include "gateway/config/config.h"

struct key_table {
	const struct config_key *keys;
	size_t count;
};

extern const struct key_table keys_top, keys_logging, keys_expression, keys_http;
extern const struct key_table keys_node, keys_direction; /* node_life.c */
extern const struct key_table keys_path;                 /* path_parse.c */
extern const struct key_table keys_hook;                 /* hook.c */
extern const struct key_table keys_format;               /* format.c */

/* Puts defaults of absent keys into `o` and gives numbers the kind that the key
 * wants. */
void keys_fill(json_t *o, const struct config_key *keys, size_t count);
/* Writes out the short forms of `format` and `hooks`. */
void keys_unfold(json_t *o);

#endif
