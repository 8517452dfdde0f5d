/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the tables of keys for people and editors: as JSON Schema, and key by key. Loads
 * all modules for that.
 */
#ifndef GATEWAY_SUPER_NODE_SCHEMA_H
#define GATEWAY_SUPER_NODE_SCHEMA_H

#include <jansson.h>
#include <stdio.h>

/* JSON Schema (draft 2020-12) of a whole configuration; a new reference. */
json_t *config_schema(void);

/* The schema of key `key` of free form (CONFIG_JSON) in definition `where` (NULL: a table of
 * keys that all have); a new object, which is empty where schema_forms.c does not know it. */
json_t *schema_form(const char *where, const char *key);
/* JSON Schema with single quotes in place of double ones, without the outer braces. */
json_t *schema_text(const char *schema);

/*
 * Explains `what`: a group ("paths", "logging"), a node-type, hook or
 * format, or a key of one of them ("paths.queuelen", "file.in.eof", "queuelen").
 * NULL lists the groups. 0, or -ENOENT (with the nearest name on standard error)
 * when there is no such thing.
 */
int config_explain(const char *what, FILE *out);

#endif
