/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system's own libibverbs.so.1 behind ours, for the real adapters.
 *
 * Two libraries of one soname: ours was loaded by that name, so whatever asks for
 * it, the system's providers included, is bound to ours. The system's one is
 * opened by its absolute path and found only through this file. A public
 * function looks at its handle and passes a foreign one on; a private function
 * jumps there always (thunk.h), since nothing of ours has a use for it.
 *
 * Opened by the first call that needs all devices (the list, ibv_fork_init());
 * a provider that registers earlier is remembered. Nothing is ever closed.
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

/* Whether the system's library is open; opens it if that makes sense: it is
 * wanted, it is there, and the kernel knows RDMA. Cheap after the first time. */
bool verbs_system_open(void);

/* A provider of the private node `node` makes itself known to its core. */
void verbs_system_register(unsigned int node, const void *driver);

/* The private data byte may be set by whichever library the loader bound. */
void verbs_system_sync_data(void);

/*
 * Opens the system's library by its absolute path, never a busbar's; NULL, and a
 * line in the log where somebody asked for a certain file. system_find.c.
 */
void *verbs_system_dlopen(void);
struct busbar_system_library;
void *verbs_system_library_open(const struct busbar_system_library *lib);

/* Whether a real device can be here at all. */
bool verbs_system_kernel_has_rdma(void);

extern atomic_bool verbs_system_is_open;

/* The system library's functions; NULL where it is too old to have one. */
extern void *verbs_system_public[VERBS_PUBLIC_COUNT];

#define VERBS_SYSTEM(name) \
	((__typeof__(&name))verbs_system_public[VERBS_##name])

/* Without opening it. */
static inline bool verbs_system_opened(void)
{
	return unlikely(atomic_load_explicit(&verbs_system_is_open,
					     memory_order_acquire));
}

/* NULL is ours: our answer to it is an error and no crash. */
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
 * First line of a public function that sleeps with nothing held, a cancellation
 * point: the owner of a foreign handle answers.
 * `missing` makes the answer where the system's library is too old to have it,
 * by the convention of the function (abi.h). While there is only our own library
 * the handle is not looked into: it may be of an object that is destroyed.
 */
#define VERBS_FORWARD_WAITING(context, missing, name, ...)                \
	do {                                                              \
		if (verbs_system_opened() && verbs_foreign(context))      \
			return VERBS_SYSTEM(name) ?                       \
				       VERBS_SYSTEM(name)(__VA_ARGS__) :  \
				       missing(-EOPNOTSUPP);              \
	} while (0)

/* First line of all others, which no cancellation ends half done. */
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
extern const unsigned int verbs_nodes[]; /* 0 at the end */

/* Data of the private nodes. */
#define VERBS_PRIVATE_DATA "verbs_allow_disassociate_destroy"
extern bool verbs_data_verbs_allow_disassociate_destroy;

#endif
