/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes allocations of the calling thread fail: those of the gateway (the linker puts
 * these functions in place of the C library's) and those of jansson. Allocations inside
 * of libconfig and the C library do not fail.
 */
#ifndef TEST_SIMULATE_ALLOC_H
#define TEST_SIMULATE_ALLOC_H

#include <stdbool.h>

/* Once, before jansson is used. */
void alloc_init(void);
/* From the `after`-th allocation on (0: the next one), `count` fail. */
void alloc_fail(unsigned after, unsigned count);
/* No allocation fails any more. True: one has failed. */
bool alloc_succeed(void);
/* The address in this program of the first failed allocation, for `addr2line -fe`. */
const void *alloc_failed_at(void);

#endif
