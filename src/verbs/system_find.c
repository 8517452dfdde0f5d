/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the system's libibverbs.so.1 is, and whether it is worth opening.
 *
 * The loader knows it only by the soname that is ours in this process, so it
 * takes an absolute path. The folder of the C library comes first: it is the
 * loader's own folder on every distribution, for this kind of machine.
 */
#define LOG_ROOM "verbs"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca/settings.h"
#include "util/log.h"
#include "verbs/abi.h"
#include "verbs/system.h"

#define SONAME "libibverbs.so.1"

const char *ibv_get_sysfs_path(void);

/* Two loads of one file are one library, so a link to ours is ours too. */
static bool is_own_file(const char *path)
{
	struct stat st, own;
	Dl_info info;

	return dladdr((void *)(uintptr_t)verbs_system_dlopen, &info) &&
	       info.dli_fname && !stat(info.dli_fname, &own) &&
	       !stat(path, &st) && st.st_dev == own.st_dev &&
	       st.st_ino == own.st_ino;
}

/* Another copy of busbar's would come back here for its own system library. */
static bool is_busbar(void *handle)
{
	return dlvsym(handle, "busbar_owns_device", "BUSBAR_1") != NULL;
}

/* RTLD_LOCAL: its names must not be found before ours by what is loaded later. */
static void *try_open(const char *path, const char **why)
{
	void *handle;

	if (is_own_file(path)) {
		*why = "that is busbar's own";
		return NULL;
	}
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		*why = dlerror();
		return NULL;
	}
	if (is_busbar(handle)) {
		*why = "that is a busbar's";
		dlclose(handle);
		return NULL;
	}
	log_debug("system library %s", path);
	return handle;
}

static void *open_named(const char *path)
{
	/* Several threads may come here before the first has given up. */
	static atomic_flag said = ATOMIC_FLAG_INIT;
	const char *why = "not an absolute path";
	void *handle = path[0] == '/' ? try_open(path, &why) : NULL;

	if (!handle && !atomic_flag_test_and_set(&said))
		log_error("BUSBAR_SYSTEM_LIBIBVERBS=%s: %s; wanted: the path of the system's " SONAME ", or off",
			  path, why);
	return handle;
}

static void *open_in(const char *dir, int len)
{
	char path[PATH_MAX];
	const char *why;
	void *handle;

	snprintf(path, sizeof(path), "%.*s/" SONAME, len, dir);
	if (access(path, R_OK))
		return NULL;
	handle = try_open(path, &why);
	if (!handle)
		log_debug("%s is not taken for the system library: %s", path, why);
	return handle;
}

/* A program with more rights than its user must not load what the user names. */
static const char *setting(void)
{
	const char *name = hca_settings.system_libibverbs;

	if (!name || !*name || !strcasecmp(name, "auto"))
		return NULL;
	if (getauxval(AT_SECURE) && strcasecmp(name, "off") != 0) {
		log_warn("BUSBAR_SYSTEM_LIBIBVERBS is not used in a set-user-id program");
		return NULL;
	}
	return name;
}

void *verbs_system_dlopen(void)
{
	static const char *const dirs[] = {
#if defined(__x86_64__)
		"/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
		"/usr/lib/aarch64-linux-gnu",
#endif
		"/usr/lib64", "/lib64", "/usr/lib", "/lib", "/usr/local/lib",
	};
	const char *name = setting();
	void *handle = NULL;
	Dl_info info;

	if (name)
		return strcasecmp(name, "off") ? open_named(name) : NULL;
	if (dladdr((void *)(uintptr_t)dlopen, &info) && info.dli_fname &&
	    info.dli_fname[0] == '/')
		handle = open_in(info.dli_fname,
				 (int)(strrchr(info.dli_fname, '/') -
				       info.dli_fname));
	for (size_t i = 0; !handle && i < ARRAY_SIZE(dirs); i++)
		handle = open_in(dirs[i], (int)strlen(dirs[i]));
	if (!handle)
		log_debug("no libibverbs.so.1 of the system");
	return handle;
}

static bool sysfs_has(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", ibv_get_sysfs_path(), name);
	return !access(path, F_OK);
}

/*
 * Most hosts of a software adapter have no RDMA in the kernel, and their programs
 * need not load a second library and what that needs. Only looked at in sysfs:
 * asking by netlink would make the kernel load its modules. Without sysfs the
 * library itself may find out; and somebody who names a library means it.
 */
bool verbs_system_kernel_has_rdma(void)
{
	return setting() || !sysfs_has("class") ||
	       sysfs_has("class/infiniband") ||
	       sysfs_has("class/infiniband_verbs");
}
