/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * container_of and small compile-time helpers.
 *
 * Casts between an embedded member and its owner happen only here and in the
 * named inline functions that use it.
 */
#ifndef UTIL_CONTAINER_OF_H
#define UTIL_CONTAINER_OF_H

#include <stddef.h>

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define CACHE_LINE 64
#define cache_aligned __attribute__((aligned(CACHE_LINE)))

#endif
