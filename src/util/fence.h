/* SPDX-License-Identifier: BSD-2-Clause */
/* A fence that is free on some processors, and fences of other threads. */
#ifndef UTIL_FENCE_H
#define UTIL_FENCE_H

#include <linux/membarrier.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/*
 * Fences that one side of a protocol has for nothing because the other side, which is
 * rare, has the kernel run a full fence on every processor where a thread of the other
 * side runs (membarrier(2)): between its own store before the call and its load after it.
 *
 * The other side's threads then need a compiler barrier only; without the kernel's help
 * they need an atomic_thread_fence(), too, so they have to know which of the two it is.
 */
enum fence_others {
	FENCE_PROCESS, /* the threads of this process */
	FENCE_HOST,    /* those of all processes that asked for FENCE_HOST, too */
};

/* Before the first fence_others(), in each process that is to be reached: does the kernel
 * offer it? May be repeated. */
static inline bool fence_others_offered(enum fence_others whose)
{
	return syscall(SYS_membarrier,
		       whose == FENCE_HOST ?
			       MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED :
			       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
		       0, 0) == 0;
}

/* A full fence for the caller and, where `offered`, for all the others. Does not sleep. */
static inline void fence_others(enum fence_others whose, bool offered)
{
	if (offered)
		syscall(SYS_membarrier,
			whose == FENCE_HOST ? MEMBARRIER_CMD_GLOBAL_EXPEDITED :
					      MEMBARRIER_CMD_PRIVATE_EXPEDITED,
			0, 0);
	else
		atomic_thread_fence(memory_order_seq_cst);
}

#endif
