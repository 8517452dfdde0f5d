/* SPDX-License-Identifier: BSD-2-Clause */
/* Fences that some processors have for nothing. */
#ifndef UTIL_FENCE_H
#define UTIL_FENCE_H

#include <stdatomic.h>

/*
 * A full fence behind an atomic operation that reads and writes (sequentially
 * consistent, as they are without a memory order). In C such an operation is ordered
 * with others of its kind only: on AArch64 a later load may come before its store. A
 * locked instruction of x86 is a full fence already.
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
