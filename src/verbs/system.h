/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system's libibverbs.so.1, which handles the real devices.
 *
 * Two libraries with one soname: ours was loaded by that name, so all who need it, the
 * system's providers included, are bound to ours. The system's library is opened by
 * its absolute path, and its functions are found only through this file. A public
 * function passes a call with a handle of the system's library on to that library. A
 * private function always jumps there (thunk.h), because ours has no use for it.
 *
 * The first call that needs all devices opens it (listing them, ibv_fork_init()).
 * Providers that register earlier are stored until then. It is never closed.
 */
#ifndef VERBS_SYSTEM_H
#define VERBS_SYSTEM_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "hca/hca.h"
#include "util/cancel.h"
#include "util/container_of.h"
#include "verbs/abi-system.h"

/* Is the system's library open? Opens it if the setting allows it, the file exists and
 * the kernel has RDMA. Cheap after the first call. */
bool verbs_system_open(void);

/* A provider registers for the private node `node`: passed on, or stored until open. */
void verbs_system_register(unsigned int node, const void *driver);

/* Makes the private data byte equal in both libraries; a program may set either. */
void verbs_system_sync_data(void);

/*
 * Opens the system's library by its absolute path, but never one of busbar's. NULL: not
 * found or off; logged if the setting names a file. In system_find.c.
 */
void *verbs_system_dlopen(void);
struct busbar_system_library;
void *verbs_system_library_open(const struct busbar_system_library *lib);

/* Can there be a real device at all? */
bool verbs_system_kernel_has_rdma(void);

extern atomic_bool verbs_system_is_open;

/* The functions of the system's library; NULL: its version has no such function. */
extern void *verbs_system_public[VERBS_PUBLIC_COUNT];

#define VERBS_SYSTEM(name) \
	((__typeof__(&name))verbs_system_public[VERBS_##name])

/* Is the system's library open? Never opens it. */
static inline bool verbs_system_opened(void)
{
	return unlikely(atomic_load_explicit(&verbs_system_is_open,
					     memory_order_acquire));
}

/* NULL is not foreign: our functions return an error for it. */
static inline bool verbs_device_foreign(const struct ibv_device *device)
{
	return verbs_system_opened() && device && !hca_owns_device(device);
}

static inline bool verbs_foreign(const struct ibv_context *context)
{
	return verbs_system_opened() && context &&
	       !hca_owns_device(context->device);
}

#define OWNER(object) ((object) ? (object)->context : NULL)

/*
 * First statement of a public function that is a cancellation point (it sleeps with
 * no lock held): passes a call with a foreign handle to the system's library.
 * `missing` makes the result, in the function's convention (abi.h), if that library has
 * no such function. While the system's library is not open, the handle is not
 * read: its object may have been destroyed.
 */
#define VERBS_FORWARD_WAITING(context, missing, name, ...)                \
	do {                                                              \
		if (verbs_system_opened() && verbs_foreign(context))      \
			return VERBS_SYSTEM(name) ?                       \
				       VERBS_SYSTEM(name)(__VA_ARGS__) :  \
				       missing(-EOPNOTSUPP);              \
	} while (0)

/* First statement of the others: the same, and disables cancellation. */
#define VERBS_FORWARD(...)                  \
	VERBS_FORWARD_WAITING(__VA_ARGS__); \
	CANCEL_OFF

#define VERBS_FORWARD_VOID(context, name, ...)                   \
	do {                                                     \
		if (verbs_system_opened() &&                     \
		    verbs_foreign(context)) {                    \
			if (VERBS_SYSTEM(name))                  \
				VERBS_SYSTEM(name)(__VA_ARGS__); \
			return;                                  \
		}                                                \
	} while (0);                                             \
	CANCEL_OFF

/* ---- generated from symbols.list (abi-stubs.c) ---- */

struct verbs_symbol {
	const char *name;
	const char *version;
};

struct verbs_private {
	const char *name;
	verbs_jump *jump;
};

extern const struct verbs_symbol verbs_public_symbols[VERBS_PUBLIC_COUNT];
extern const struct verbs_private verbs_private_functions[VERBS_PRIVATE_COUNT];
extern const unsigned int verbs_nodes[]; /* terminated by 0 */

/* Data of the private nodes. */
#define VERBS_PRIVATE_DATA "verbs_allow_disassociate_destroy"
extern bool verbs_data_verbs_allow_disassociate_destroy;

#endif
