/* SPDX-License-Identifier: BSD-2-Clause */
/* A fence that is free on some processors. */
#ifndef UTIL_FENCE_H
#define UTIL_FENCE_H

#include <stdatomic.h>

/*
 * A full fence after an atomic read-modify-write operation (sequentially consistent, the
 * default). In C such an operation is ordered only with others of its kind: on AArch64
 * a later load may be executed before its store. On x86 a locked instruction is a full
 * fence already.
 */
static inline void fence_behind_exchange(void)
{
#if (defined(__x86_64__) || defined(__i386__)) && !defined(UTIL_FENCE_ALWAYS)
	atomic_signal_fence(memory_order_seq_cst);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif
