/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system's librdmacm.so.1, to which identifiers on real devices are forwarded. No lock of
 * ours is held during a call of it.
 */
#ifndef RDMACM_SYSTEM_SYSTEM_H
#define RDMACM_SYSTEM_SYSTEM_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "rdmacm/abi-calls.h"
#include "util/cancel.h"
#include "util/container_of.h"

enum forward_call {
#define FORWARD_ENUM(name, version) FORWARD_##name,
	FORWARD_CALLS(FORWARD_ENUM)
#undef FORWARD_ENUM
	FORWARD_CALL_COUNT
};

/* The functions of the system's library; NULL: its version has no such function. */
extern void *forward_system[FORWARD_CALL_COUNT];

#define FORWARD_SYSTEM(name) ((__typeof__(&name))forward_system[FORWARD_##name])

/*
 * Number of nested calls of the system's library in this thread. That library calls
 * its own public functions by name, and the loader resolves these to ours; they
 * are passed through.
 */
extern _Thread_local unsigned forward_depth;

/* Calls a function of the system's library. */
#define FORWARD_CALL(name, ...)                                         \
	({                                                              \
		__typeof__(name(__VA_ARGS__)) forward_ret_;             \
		forward_depth++;                                        \
		forward_ret_ = FORWARD_SYSTEM(name)(__VA_ARGS__);       \
		forward_depth--;                                        \
		forward_ret_;                                           \
	})
#define FORWARD_CALL_VOID(name, ...)                 \
	do {                                         \
		forward_depth++;                     \
		FORWARD_SYSTEM(name)(__VA_ARGS__);   \
		forward_depth--;                     \
	} while (0)

/* First statement of a public function that is a cancellation point: passes a call
 * that the system's library makes to the system's function. */
#define FORWARD_WAITING(name, ...)                                \
	do {                                                      \
		if (unlikely(forward_depth))                      \
			return FORWARD_SYSTEM(name)(__VA_ARGS__); \
	} while (0)

/* First statement of the others: the same, and disables cancellation. */
#define FORWARD_INSIDE(...)           \
	FORWARD_WAITING(__VA_ARGS__); \
	CANCEL_OFF

/* Is there a real device, and is the system's library open? Opens it if need be. */
bool forward_ready(void);
/* The same, but never opens it. */
bool forward_opened(void);
/* Opens soft0 devices on first use and replaces failed ones. 0; -ENODEV: there are
 * neither devices of ours nor of the system's library; or another error. */
int cma_devices_init(void);

#endif
