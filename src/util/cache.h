/* SPDX-License-Identifier: BSD-2-Clause */
/* Hints to the processor's caches. They change nothing but the time that accesses take. */
#ifndef UTIL_CACHE_H
#define UTIL_CACHE_H

/*
 * The line of `at`, just written, is read next by another processor: it goes to the cache that
 * they share, where the other one finds it sooner than in this processor's own. CLDEMOTE (Intel
 * SDM, volume 2); older processors, and those of AMD, execute it as a NOP.
 */
static inline void cache_hand_over(const void *at)
{
#if defined(__x86_64__)
	__asm__ volatile("cldemote %0" : : "m"(*(const char *)at));
#endif
}

#endif
