/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a gateway deterministically: one thread at a time, in an order that a random number
 * decides, with a clock that advances only when it is read, when threads take turns, and
 * when all of them wait.
 *
 * The product is not changed for it. The linker (--wrap) replaces those functions of the C
 * library by which threads start, wait, are woken and read the time. Threads are real, so
 * sanitizers and thread-local variables work as usual, but only one of them runs.
 */
#ifndef TEST_SIMULATE_WORLD_H
#define TEST_SIMULATE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

/* The calling thread becomes the first one of a new run; `seed` decides all that happens. */
void world_begin(uint64_t seed);
/* All other threads must have been joined. */
void world_end(void);

/* Other threads may run now. */
void world_turn(void);
/* Sleeps in simulated time. */
void world_sleep_ns(uint64_t ns);
uint64_t world_now_ns(void);
/* Turns since world_begin(). */
uint64_t world_turns(void);
/* A random number below `below`, of the run's own sequence. */
unsigned world_draw(unsigned below);
/* Mixes `what` into the run's fingerprint; two runs of one seed must have the same. */
void world_note(uint64_t what);
uint64_t world_fingerprint(void);

/* Prints what is wrong and the seed that repeats it, and ends the program. */
_Noreturn void world_fail(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

#endif
