/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-types, hooks and formats by name. Most are part of the executable; those
 * that need a library which not everybody has (verbs, Lua, OpenSSL ...) are
 * modules: shared objects below lib/modules that are loaded when a configuration
 * names them, so that the executable itself needs none of these libraries.
 *
 * The tables are made by meson.build from the folders.
 */
#ifndef GATEWAY_PLUGIN_PLUGIN_H
#define GATEWAY_PLUGIN_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

struct plugin {
	const char *name;   /* as configurations say it */
	const void *type;   /* NULL: in a module */
	const char *symbol;
	const char *module; /* its file, without .so; several may share one */
};

/* The last entry has no name. */
extern const struct plugin node_plugins[], hook_plugins[], format_plugins[];

/*
 * What a program brings along for itself, found by plugin_find() like what the
 * table holds (but not listed). Before any configuration is read; one table for
 * each of the three, borrowed.
 */
void plugin_extend(const struct plugin *table, const struct plugin *more);

/* Its struct node_type, hook_type or format_type; a module is loaded and stays.
 * NULL when that fails, which is logged. */
const void *plugin_type(const struct plugin *p);

/* The same by name; NULL also when there is none. */
const void *plugin_find(const struct plugin *table, const char *name);

/* Whether the table lists it; plugin_find() then fails because of its module. */
bool plugin_is_listed(const struct plugin *table, const char *name);

/* A symbol of a module; NULL (logged) when either cannot be had. */
void *plugin_symbol(const char *module, const char *symbol);

#endif
