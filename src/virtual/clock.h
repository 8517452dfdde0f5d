/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter in virtual time: its clock and its progress thread, which the linker wraps, so that
 * all runs on one thread and time passes only where the program says so. A wait for hours takes
 * milliseconds, and all times are exact.
 */
#ifndef VIRTUAL_CLOCK_H
#define VIRTUAL_CLOCK_H

#include <stdint.h>

uint64_t virtual_now_ns(void);
/* Sets the time, which never goes back. */
void virtual_set_ns(uint64_t ns);
/* Runs the progress thread, as if it had been woken, until it sleeps again. Returns when it wakes
 * by itself; UINT64_MAX: not at all. */
uint64_t virtual_progress(void);

#endif
