/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-types, hooks and formats by name. Most are part of the executable; those
 * that need a library which not everybody has (verbs, Lua, OpenSSL ...) are
 * modules: shared objects below lib/modules that are loaded when a configuration
 * names them, so that the executable itself needs none of these libraries.
 *
 * The tables are made by meson.build from the folders. A name that is in none of
 * them is looked for as a module that was built elsewhere (busbar-plugin(7)):
 * node_NAME.so, hook_NAME.so or format_NAME.so in the folders that BUSBAR_MODULES
 * names, then in that of the installed modules. '.' and '-' of a name are '_' in the
 * file and the symbol.
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
	const char *package; /* Debian's, with the library that the module needs; "": unknown */
};

/* The last entry has no name. */
extern const struct plugin node_plugins[], hook_plugins[], format_plugins[];
/* What this build left out, with the package to build it with. */
extern const struct plugin node_plugins_left_out[], hook_plugins_left_out[],
	format_plugins_left_out[];

/*
 * What a program brings along for itself, found by plugin_find() like what the
 * table holds (but not listed). Before any configuration is read; one table for
 * each of the three, borrowed.
 */
void plugin_extend(const struct plugin *table, const struct plugin *more);

/* Its struct node_type, hook_type or format_type; a module is loaded and stays.
 * NULL when that fails, which is logged. */
const void *plugin_type(const struct plugin *p);

/* The same by name, also of a module that was built elsewhere; NULL also when there
 * is none. */
const void *plugin_find(const struct plugin *table, const char *name);

/* Whether the table lists it or there is a file for it; plugin_find() then fails
 * because of its module. */
bool plugin_is_there(const struct plugin *table, const char *name);

/*
 * Where plugin_find() has looked for a module of this name, as the end of a message:
 * "; there is no node_NAME.so in DIR, DIR". With `hint`, what a message says instead
 * (a similar name), "" unless BUSBAR_MODULES is set. For a plug-in that the build left out,
 * which package it needs. Returns buf.
 */
const char *plugin_places(const struct plugin *table, const char *name,
			  const char *hint, char *buf, size_t size);
#define PLUGIN_PLACES_SIZE 600

/* A symbol of a module that was built with this gateway, seen from the executable.
 * NULL (logged) when either cannot be had or the module is of another version. */
void *plugin_symbol(const char *module, const char *symbol);

#endif
