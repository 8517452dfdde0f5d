/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions for which the wrappers stand. */
#include "preload/real.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static void *libraries[2];

static void open_libraries(void)
{
	libraries[0] = dlopen("libibverbs.so.1", RTLD_LAZY);
	libraries[1] = dlopen("librdmacm.so.1", RTLD_LAZY | RTLD_NOLOAD);
}

/* Does a library that is preloaded below this one have the function? Its names have no versions. */
static int is_preloaded(void *function)
{
	Dl_info info;
	const char *name;

	if (!dladdr(function, &info) || !info.dli_fname)
		return 0;
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	return strncmp(name, "libibverbs.so", 13) && strncmp(name, "librdmacm.so", 12);
}

void *real_find(const char *name, const char *version)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	void *found = dlvsym(RTLD_NEXT, name, version), *next = dlsym(RTLD_NEXT, name);

	if (next && next != found && is_preloaded(next))
		return next;
	if (found)
		return found;
	/* If the program opened the library by dlopen(), RTLD_NEXT does not find it. */
	pthread_once(&once, open_libraries);
	return dlvsym(libraries[*version == 'R'], name, version);
}
