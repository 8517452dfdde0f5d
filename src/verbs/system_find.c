/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a library of the system is whose soname is ours in this process, and
 * whether it is worth opening: libibverbs.so.1, and librdmacm.so.1 for our other
 * library (busbar_system_dlopen()).
 *
 * The loader knows it only by the soname that is ours in this process, so it
 * takes an absolute path. The folder of the C library comes first: it is the
 * loader's own folder on every distribution, for this kind of machine.
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

#include "hca/settings.h"
#include "util/log.h"
#include "verbs/abi.h"
#include "verbs/private.h"
#include "verbs/system.h"

const char *ibv_get_sysfs_path(void);

/* Two loads of one file are one library, so a link to ours is ours too. */
static bool is_own_file(const struct busbar_system_library *lib, const char *path)
{
	struct stat st, own;
	Dl_info info;

	return dladdr(lib->own, &info) && info.dli_fname &&
	       !stat(info.dli_fname, &own) && !stat(path, &st) &&
	       st.st_dev == own.st_dev && st.st_ino == own.st_ino;
}

/* RTLD_LOCAL: its names must not be found before ours by what is loaded later. */
static void *try_open(const struct busbar_system_library *lib, const char *path,
		      const char **why)
{
	void *handle;

	if (is_own_file(lib, path)) {
		*why = "that is busbar's own";
		return NULL;
	}
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		*why = dlerror();
		return NULL;
	}
	/* Another copy of busbar's would come back here for its own. */
	if (dlvsym(handle, lib->mark, "BUSBAR_1")) {
		*why = "that is a busbar's";
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

	/* Several threads may come here before the first has given up. */
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

/* A program with more rights than its user must not load what the user names. */
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
	/* Not by access(): under `busbar exec` that one finds soft0 as well. */
	return !syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
}

/*
 * Most hosts of a software adapter have no RDMA in the kernel, and their programs
 * need not load a second library and what that needs. Only looked at in sysfs:
 * asking by netlink would make the kernel load its modules. Without sysfs the
 * library itself may find out; and somebody who names a library means it.
 */
bool verbs_system_kernel_has_rdma(void)
{
	struct busbar_system_library lib = libibverbs();

	return setting(&lib) || !sysfs_has("class") ||
	       sysfs_has("class/infiniband") ||
	       sysfs_has("class/infiniband_verbs");
}
