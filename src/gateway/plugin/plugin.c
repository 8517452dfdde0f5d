/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding and loading plug-ins; see plugin.h. */
#define LOG_ROOM "gateway/plugin"
#include "gateway/plugin/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/plugin/module.h"
#include "util/beside.h"
#include "util/container_of.h"
#include "util/log.h"

/* Seen from the executable: in a build folder, and installed. */
static const char *const places[] = { "lib/modules", GATEWAY_MODULES_FROM_BINDIR };

/* A module tells its name by the first member of each kind of type. */
_Static_assert(!offsetof(struct node_type, name) &&
	       !offsetof(struct hook_type, name) &&
	       !offsetof(struct format_type, name), "the name comes first");

#define NAME_OF(name) #name,
static const char *const structures[] = { PLUGIN_STRUCTURES(NAME_OF) };
static const struct plugin_interface own = {
	.version = PLUGIN_INTERFACE, .sizes = PLUGIN_SIZES,
};

#define BUILD_AGAIN "build it again with the headers of this gateway"

static bool fits(const char *path, const struct plugin_interface *theirs)
{
	if (!theirs) {
		log_error("%s is no module of a gateway: it does not say for which version of the plug-in interface it was built; put PLUGIN_MODULE() into one of its files",
			  path);
		return false;
	}
	if (theirs->version != own.version) {
		log_error("%s was built for version %u of the plug-in interface, this gateway has version %u: "
			  BUILD_AGAIN, path, theirs->version, own.version);
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(structures); i++)
		if (theirs->sizes[i] != own.sizes[i]) {
			log_error("%s was built with a struct %s of %u bytes, this gateway has one of %u: "
				  BUILD_AGAIN, path, structures[i],
				  theirs->sizes[i], own.sizes[i]);
			return false;
		}
	return true;
}

static void *load(const char *path, const char *symbol, const char *package)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *found = NULL;

	if (!handle) {
		log_error("cannot load %s: %s%s%s", path, dlerror(),
			  *package ? "; the library is in Debian's package " : "", package);
		return NULL;
	}
	if (fits(path, dlsym(handle, "busbar_plugin_interface"))) {
		found = dlsym(handle, symbol);
		if (!found)
			log_error("%s has no symbol %s", path, symbol);
	}
	if (!found)
		dlclose(handle);
	return found;
}

static void *symbol_of_module(const char *module, const char *symbol, const char *package)
{
	char path[2 * PATH_MAX], file[NAME_MAX + 1];
	int n = snprintf(file, sizeof(file), "%s.so", module);

	if (n < 0 || (size_t)n >= sizeof(file) ||
	    beside_executable(places, ARRAY_SIZE(places), file, path,
			      sizeof(path))) {
		log_error("the module %s.so is not installed", module);
		return NULL;
	}
	return load(path, symbol, package);
}

void *plugin_symbol(const char *module, const char *symbol)
{
	return symbol_of_module(module, symbol, "");
}

const void *plugin_type(const struct plugin *p)
{
	return p->type ? p->type :
			 symbol_of_module(p->module, p->symbol, p->package ? p->package : "");
}

static struct {
	const struct plugin *table, *more;
} extensions[3];

void plugin_extend(const struct plugin *table, const struct plugin *more)
{
	size_t i = 0;

	while (extensions[i].table && extensions[i].table != table)
		i++;
	extensions[i].table = table;
	extensions[i].more = more;
}

static const struct plugin *find_in(const struct plugin *table, const char *name)
{
	for (const struct plugin *p = table; p && p->name; p++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

/* Modules that were built elsewhere. */

static const char *kind_of(const struct plugin *table)
{
	return table == node_plugins ? "node" :
	       table == hook_plugins ? "hook" : "format";
}

/* "node_NAME" into symbol; false when no file can be called so. */
static bool symbol_of(const struct plugin *table, const char *name, char *symbol,
		      size_t size)
{
	int n = snprintf(symbol, size, "%s_%s", kind_of(table), name);

	if (!*name || n < 0 || (size_t)n + sizeof(".so") > size ||
	    name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-")])
		return false;
	for (char *p = symbol; *p; p++)
		if (*p == '.' || *p == '-')
			*p = '_';
	return true;
}

/* The next folder of the list at *list, which is moved behind it: its length, 0 at
 * the end. */
static size_t next_folder(const char **list, const char **folder)
{
	size_t len;

	*folder = *list + strspn(*list, ":");
	len = strcspn(*folder, ":");
	*list = *folder + len;
	return len;
}

/* Not of who runs a set-user-ID program. */
static const char *folders(void)
{
	return secure_getenv("BUSBAR_MODULES") ?: "";
}

static bool is_elsewhere(const char *symbol, char *path, size_t size)
{
	const char *list = folders(), *folder;
	char file[NAME_MAX + 1];
	size_t len;

	while ((len = next_folder(&list, &folder))) {
		int n = snprintf(path, size, "%.*s/%s.so", (int)len, folder, symbol);

		/* With a slash, dlopen() searches nowhere else. */
		if (n > 0 && (size_t)n < size && !access(path, R_OK))
			return true;
	}
	return (size_t)snprintf(file, sizeof(file), "%s.so", symbol) < sizeof(file) &&
	       !beside_executable(places, ARRAY_SIZE(places), file, path, size);
}

static const void *find_elsewhere(const struct plugin *table, const char *name)
{
	char symbol[NAME_MAX + 1], path[2 * PATH_MAX];
	const char *const *type; /* its name comes first */

	if (!symbol_of(table, name, symbol, sizeof(symbol)) ||
	    !is_elsewhere(symbol, path, sizeof(path)))
		return NULL;
	type = load(path, symbol, "");
	if (type && (!*type || strcmp(*type, name))) {
		log_error("%s calls its %s '%s', not '%s'", path, kind_of(table),
			  *type ?: "", name);
		return NULL;
	}
	return type;
}

/* Of this gateway's own modules, as it is written without "..". */
static const char *own_folder(char *buf)
{
	char path[2 * PATH_MAX];

	return !beside_executable(places, ARRAY_SIZE(places), ".", path,
				  sizeof(path)) && realpath(path, buf) ?
		       buf : GATEWAY_MODULES_FROM_BINDIR;
}

const char *plugin_places(const struct plugin *table, const char *name,
			  const char *hint, char *buf, size_t size)
{
	const struct plugin *left_out = find_in(table == node_plugins ? node_plugins_left_out :
						table == hook_plugins ? hook_plugins_left_out :
									format_plugins_left_out,
						name);
	const char *list = folders(), *folder;
	char symbol[NAME_MAX + 1], last[PATH_MAX];
	size_t used, len;

	*buf = '\0';
	if (left_out) {
		snprintf(buf, size, "; this gateway was built without it: the library of Debian's package %s was missing",
			 left_out->package);
		return buf;
	}
	if ((*hint && !*list) || !symbol_of(table, name, symbol, sizeof(symbol)))
		return buf;
	used = (size_t)snprintf(buf, size, "; there is no %s.so in ", symbol);
	while ((len = next_folder(&list, &folder)) && used < size)
		used += (size_t)snprintf(buf + used, size - used, "%.*s, ",
					 (int)len, folder);
	if (used < size)
		snprintf(buf + used, size - used, "%s%s", own_folder(last),
			 *folders() ? "" : " (BUSBAR_MODULES can name more folders)");
	return buf;
}

bool plugin_is_there(const struct plugin *table, const char *name)
{
	char symbol[NAME_MAX + 1], path[2 * PATH_MAX];

	return find_in(table, name) ||
	       (symbol_of(table, name, symbol, sizeof(symbol)) &&
		is_elsewhere(symbol, path, sizeof(path)));
}

const void *plugin_find(const struct plugin *table, const char *name)
{
	const struct plugin *p = find_in(table, name);

	for (size_t i = 0; !p && i < ARRAY_SIZE(extensions); i++)
		if (extensions[i].table == table)
			p = find_in(extensions[i].more, name);
	return p ? plugin_type(p) : find_elsewhere(table, name);
}
