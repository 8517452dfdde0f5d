/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the system's libibumad.so.3; see system.h. */
#define LOG_ROOM "umad"
#include "umad/system.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "umad/umad.h"
#include "util/container_of.h"
#include "util/log.h"

#define MARK "busbar_is_umad"
#define ENVIRONMENT "BUSBAR_SYSTEM_LIBIBUMAD"

static void *handle;

/* A library that exports this symbol is busbar's and not the system's. */
UMAD_EXPORT int busbar_is_umad(void);
UMAD_EXPORT int busbar_is_umad(void)
{
	return 1;
}

static void *try_open(const char *path)
{
	void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (h && dlsym(h, MARK)) {
		dlclose(h);
		h = NULL;
	}
	if (h)
		log_debug("system library %s", path);
	return h;
}

static void find(void)
{
	static const char *const paths[] = {
#if defined(__x86_64__)
		"/usr/lib/x86_64-linux-gnu/libibumad.so.3",
#elif defined(__aarch64__)
		"/usr/lib/aarch64-linux-gnu/libibumad.so.3",
#endif
		"/usr/lib64/libibumad.so.3", "/usr/lib/libibumad.so.3",
	};
	const char *named = getauxval(AT_SECURE) ? NULL : getenv(ENVIRONMENT);

	if (named && !strcasecmp(named, "off"))
		return;
	if (named && *named && strcasecmp(named, "auto") != 0) {
		handle = named[0] == '/' ? try_open(named) : NULL;
		if (!handle)
			log_error(ENVIRONMENT "=%s is no library of the system; wanted: the path of the system's libibumad.so.3, auto, or off",
				  named);
		return;
	}
	if (access("/sys/class/infiniband_mad", F_OK))
		return;
	for (size_t i = 0; !handle && i < ARRAY_SIZE(paths); i++)
		handle = access(paths[i], R_OK) ? NULL : try_open(paths[i]);
}

void *umad_system_find(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find);
	return handle ? dlsym(handle, name) : NULL;
}
