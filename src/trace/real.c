/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions for which the wrappers stand. */
#include <dlfcn.h>
#include <pthread.h>

#include "trace/real.h"

static void *libraries[2];

static void open_libraries(void)
{
	libraries[0] = dlopen("libibverbs.so.1", RTLD_LAZY);
	libraries[1] = dlopen("librdmacm.so.1", RTLD_LAZY | RTLD_NOLOAD);
}

void *real_find(const char *name, const char *version)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	void *found = dlvsym(RTLD_NEXT, name, version);

	if (found)
		return found;
	/* If the program opened the library by dlopen(), RTLD_NEXT does not find it. */
	pthread_once(&once, open_libraries);
	return dlvsym(libraries[*version == 'R'], name, version);
}
