/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the system's librdmacm.so.1; see system.h.
 *
 * The library is opened when the first channel or identifier is made while a real
 * device is listed; hosts without one never load it. As in src/verbs/system.c no
 * lock is held while the loader runs, so two threads may open it at the same time
 * and get the same handle. It is never closed.
 */
#define LOG_ROOM "rdmacm"
#include "rdmacm/system/system.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/base/base.h"
#include "rdmacm/device/device.h"
#include "util/log.h"
#include "util/settings.h"
#include "util/spin.h"
#include "verbs/private.h"

enum forward_state {
	FORWARD_CLOSED,
	FORWARD_OPEN,
	FORWARD_UNUSABLE, /* permanent */
};

void *forward_system[FORWARD_CALL_COUNT];
_Thread_local unsigned forward_depth;

static struct spin lock; /* held while forward_system is filled */
static atomic_int state;

static struct forward_settings {
	const char *path;
} forward_settings;

static const struct setting settings[] = {
	{ .env = "BUSBAR_SYSTEM_LIBRDMACM",
	  .fallback = "auto",
	  .help = "the system's own librdmacm.so.1 by its absolute path, auto to look for it, or off",
	  .type = SETTING_STRING,
	  .offset = offsetof(struct forward_settings, path) },
};

/* A thread that does not exist in the child may have held the lock at the fork. */
static void lock_forked(void)
{
	lock = (struct spin){ 0 };
}

__attribute__((constructor)) static void forward_load(void)
{
	pthread_atfork(NULL, NULL, lock_forked);
}

static void settings_read(void)
{
	settings_load(settings, ARRAY_SIZE(settings), &forward_settings);
}

/* A library that exports this symbol is busbar's and not the system's. */
CMA_EXPORT bool busbar_forwards(void);
CMA_EXPORT bool busbar_forwards(void)
{
	return forward_opened();
}

static const struct {
	const char *name, *version;
} calls[FORWARD_CALL_COUNT] = {
#define FORWARD_ROW(name, version) [FORWARD_##name] = { #name, version },
	FORWARD_CALLS(FORWARD_ROW)
#undef FORWARD_ROW
};

static void *library_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static atomic_flag said = ATOMIC_FLAG_INIT;
	struct busbar_system_library lib = {
		.soname = "librdmacm.so.1",
		.env = "BUSBAR_SYSTEM_LIBRDMACM",
		.mark = "busbar_forwards",
		.own = (const void *)(uintptr_t)forward_ready,
		.said = &said,
	};

	pthread_once(&once, settings_read);
	lib.setting = forward_settings.path;
	return busbar_system_dlopen(&lib);
}

/* Fails without a function of version 1.0; later functions may be missing. */
static bool table_find(void *handle, void *table[FORWARD_CALL_COUNT])
{
	for (size_t i = 0; i < FORWARD_CALL_COUNT; i++) {
		table[i] = dlvsym(handle, calls[i].name, calls[i].version);
		if (table[i] || strcmp(calls[i].version, "RDMACM_1.0") != 0)
			continue;
		log_warn("the system's librdmacm.so.1 has no %s@%s: connections of real adapters are left out",
			 calls[i].name, calls[i].version);
		return false;
	}
	return true;
}

static bool real_device_listed(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool found = false;

	for (size_t i = 0; list && list[i] && !found; i++)
		found = !busbar_owns_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return found;
}

bool forward_opened(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == FORWARD_OPEN;
}

bool forward_ready(void)
{
	void *table[FORWARD_CALL_COUNT], *handle;
	bool usable;

	if (atomic_load_explicit(&state, memory_order_acquire) != FORWARD_CLOSED)
		return forward_opened();
	if (!real_device_listed())
		return false;
	handle = library_open();
	if (!handle)
		LOG_AT(cma_devices_present() ? LOG_INFO : LOG_ERROR,
		       "without the system's librdmacm.so.1 connections of real adapters are left out");
	usable = handle && table_find(handle, table);
	spin_lock(&lock);
	if (atomic_load(&state) == FORWARD_CLOSED) {
		if (usable)
			memcpy(forward_system, table, sizeof(table));
		atomic_store_explicit(&state,
				      usable ? FORWARD_OPEN : FORWARD_UNUSABLE,
				      memory_order_release);
	}
	spin_unlock(&lock);
	return forward_opened();
}

int cma_devices_init(void)
{
	int ret = cma_devices_open();

	/* Without the lock of the devices: forward_ready() may load a library. */
	return ret == -ENODEV && forward_ready() ? 0 : ret;
}
