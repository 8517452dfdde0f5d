/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding and loading plug-ins; see plugin.h. */
#define LOG_ROOM "gateway/plugin"
#include "gateway/plugin/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "util/beside.h"
#include "util/container_of.h"
#include "util/log.h"

/* Seen from the executable: in a build folder, and installed. */
static const char *const places[] = { "lib/modules", GATEWAY_MODULES_FROM_BINDIR };

void *plugin_symbol(const char *module, const char *symbol)
{
	char path[2 * PATH_MAX], file[NAME_MAX + 1];
	void *handle, *found;
	int n = snprintf(file, sizeof(file), "%s.so", module);

	if (n < 0 || (size_t)n >= sizeof(file) ||
	    beside_executable(places, ARRAY_SIZE(places), file, path,
			      sizeof(path))) {
		log_error("the module %s.so is not installed", module);
		return NULL;
	}
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	found = handle ? dlsym(handle, symbol) : NULL;
	if (!found)
		log_error("cannot load %s: %s", path, dlerror());
	return found;
}

const void *plugin_type(const struct plugin *p)
{
	return p->type ? p->type : plugin_symbol(p->module, p->symbol);
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

bool plugin_is_listed(const struct plugin *table, const char *name)
{
	return find_in(table, name) != NULL;
}

const void *plugin_find(const struct plugin *table, const char *name)
{
	const struct plugin *p = find_in(table, name);

	for (size_t i = 0; !p && i < ARRAY_SIZE(extensions); i++)
		if (extensions[i].table == table)
			p = find_in(extensions[i].more, name);
	return p ? plugin_type(p) : NULL;
}
