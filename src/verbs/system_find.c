/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the system's library that has the soname of one of ours: libibverbs.so.1, or
 * librdmacm.so.1 (busbar_system_dlopen()). Decides whether it is to be opened.
 *
 * It is opened by an absolute path, because in this process its soname stands for ours.
 * The folder of the C library is tried first: on every distribution this is the
 * loader's own folder for the machine's architecture.
 */
#define LOG_ROOM "verbs"
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hca/host/settings.h"
#include "util/log.h"
#include "verbs/abi.h"
#include "verbs/private.h"
#include "verbs/system.h"

const char *ibv_get_sysfs_path(void);

/* Compares device and inode: the loader treats two names of one file as one library. */
static bool is_own_file(const struct busbar_system_library *lib, const char *path)
{
	struct stat st, own;
	Dl_info info;

	return dladdr(lib->own, &info) && info.dli_fname &&
	       !stat(info.dli_fname, &own) && !stat(path, &st) &&
	       st.st_dev == own.st_dev && st.st_ino == own.st_ino;
}

/* RTLD_LOCAL: libraries that are loaded later must not be bound to its names. */
static void *try_open(const struct busbar_system_library *lib, const char *path,
		      const char **why)
{
	void *handle;

	if (is_own_file(lib, path)) {
		*why = "that is this busbar library itself";
		return NULL;
	}
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		*why = dlerror();
		return NULL;
	}
	/* Another copy of busbar's library would search for the system's in turn. */
	if (dlvsym(handle, lib->mark, "BUSBAR_1")) {
		*why = "that is a library of busbar";
		dlclose(handle);
		return NULL;
	}
	log_debug("system library %s", path);
	return handle;
}

static void *open_named(const struct busbar_system_library *lib, const char *path)
{
	const char *why = "not an absolute path";
	void *handle = path[0] == '/' ? try_open(lib, path, &why) : NULL;

	/* Logged once, though several threads may try at the same time. */
	if (!handle && !atomic_flag_test_and_set(lib->said))
		log_error("%s=%s: %s; wanted: the path of the system's %s, or off",
			  lib->env, path, why, lib->soname);
	return handle;
}

static void *open_in(const struct busbar_system_library *lib, const char *dir,
		     int len)
{
	char path[PATH_MAX];
	const char *why;
	void *handle;

	snprintf(path, sizeof(path), "%.*s/%s", len, dir, lib->soname);
	if (access(path, R_OK))
		return NULL;
	handle = try_open(lib, path, &why);
	if (!handle)
		log_debug("%s is not taken for the system library: %s", path, why);
	return handle;
}

/* The setting; in a set-user-id program "auto", because the user controls the value. */
static const char *setting(const struct busbar_system_library *lib)
{
	const char *name = lib->setting;

	if (!name || !*name || !strcasecmp(name, "auto"))
		return NULL;
	if (getauxval(AT_SECURE) && strcasecmp(name, "off") != 0) {
		log_warn("%s is not used in a set-user-id program", lib->env);
		return NULL;
	}
	return name;
}

void *verbs_system_library_open(const struct busbar_system_library *lib)
{
	static const char *const dirs[] = {
#if defined(__x86_64__)
		"/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
		"/usr/lib/aarch64-linux-gnu",
#endif
		"/usr/lib64", "/lib64", "/usr/lib", "/lib", "/usr/local/lib",
	};
	const char *name = setting(lib);
	void *handle = NULL;
	Dl_info info;

	if (name)
		return strcasecmp(name, "off") ? open_named(lib, name) : NULL;
	if (dladdr((void *)(uintptr_t)dlopen, &info) && info.dli_fname &&
	    info.dli_fname[0] == '/')
		handle = open_in(lib, info.dli_fname,
				 (int)(strrchr(info.dli_fname, '/') -
				       info.dli_fname));
	for (size_t i = 0; !handle && i < ARRAY_SIZE(dirs); i++)
		handle = open_in(lib, dirs[i], (int)strlen(dirs[i]));
	if (!handle)
		log_debug("no %s of the system", lib->soname);
	return handle;
}

static struct busbar_system_library libibverbs(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	return (struct busbar_system_library){
		.soname = "libibverbs.so.1",
		.env = "BUSBAR_SYSTEM_LIBIBVERBS",
		.setting = hca_settings.system_libibverbs,
		.mark = "busbar_owns_device",
		.own = (const void *)(uintptr_t)verbs_system_dlopen,
		.said = &said,
	};
}

void *verbs_system_dlopen(void)
{
	struct busbar_system_library lib = libibverbs();

	return verbs_system_library_open(&lib);
}

static bool sysfs_has(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", ibv_get_sysfs_path(), name);
	/* A system call, because `busbar exec` makes access() find soft0 as well. */
	return !syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
}

/*
 * Most hosts without an adapter have no RDMA in the kernel; programs there need not load
 * the system's library and what it needs. Looks in sysfs only: a query by netlink
 * would make the kernel load modules. True if there is no sysfs, or if the setting
 * names a library.
 */
bool verbs_system_kernel_has_rdma(void)
{
	struct busbar_system_library lib = libibverbs();

	return setting(&lib) || !sysfs_has("class") ||
	       sysfs_has("class/infiniband") ||
	       sysfs_has("class/infiniband_verbs");
}
