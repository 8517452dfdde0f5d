/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of keys that all nodes, paths, hooks or formats have, for code that documents
 * or compares configurations. The keys of a plug-in are in its type.
 */
#ifndef GATEWAY_CONFIG_KEYS_H
#define GATEWAY_CONFIG_KEYS_H

#include "gateway/config/config.h"

struct key_table {
	const struct config_key *keys;
	size_t count;
};

extern const struct key_table keys_top, keys_logging, keys_expression;
extern const struct key_table keys_http, keys_token;     /* http_settings.c */
extern const struct key_table keys_signal;               /* signals.c */
extern const struct key_table keys_node, keys_direction; /* node_life.c */
extern const struct key_table keys_path;                 /* path_parse.c */
extern const struct key_table keys_hook;                 /* hook.c */
extern const struct key_table keys_format;               /* format.c */

/* Adds the defaults of absent keys to `o` and converts numbers to the type of the key. */
void keys_fill(json_t *o, const struct config_key *keys, size_t count);
/* Replaces the short forms of `format` and `hooks` by objects. */
void keys_unfold(json_t *o);

#endif
