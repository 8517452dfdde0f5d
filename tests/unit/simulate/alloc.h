/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocations that fail, of the calling thread: those of the gateway (the linker puts
 * these functions in the place of the library's) and those of jansson. What libconfig
 * and the C library allocate for themselves does not fail.
 */
#ifndef TEST_SIMULATE_ALLOC_H
#define TEST_SIMULATE_ALLOC_H

#include <stdbool.h>

/* Once, before jansson is used. */
void alloc_init(void);
/* From the `after`-th allocation on (0: the next one), `count` fail. */
void alloc_fail(unsigned after, unsigned count);
/* None fails any more. True when one has. */
bool alloc_succeed(void);
/* Where in this program the first that failed was asked for, for `addr2line -fe`. */
const void *alloc_failed_at(void);

#endif
