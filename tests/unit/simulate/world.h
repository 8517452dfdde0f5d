/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A world in which a gateway runs deterministically: one thread at a time, in an
 * order that a random number decides, with a clock that only advances when it is
 * read, when threads take turns, and when all of them wait.
 *
 * The product is not changed for it. The linker (--wrap) puts this world in the
 * place of those functions of the C library by which threads start, wait, are woken
 * and tell the time. Threads are real ones, so that sanitizers and thread-local
 * variables see what they always see, but all of them wait but one.
 */
#ifndef TEST_SIMULATE_WORLD_H
#define TEST_SIMULATE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

/* The calling thread is the first in a new world; everything in it follows from
 * `seed`. */
void world_begin(uint64_t seed);
/* All other threads must have been joined. */
void world_end(void);

/* Others may take a turn. */
void world_turn(void);
/* Sleeps in the world's time. */
void world_sleep_ns(uint64_t ns);
uint64_t world_now_ns(void);
/* Turns since world_begin(). */
uint64_t world_turns(void);
/* A number below `below` of the world's own sequence. */
unsigned world_draw(unsigned below);
/* Mixes what happened into the run's fingerprint: two runs of one seed must have
 * the same. */
void world_note(uint64_t what);
uint64_t world_fingerprint(void);

/* Ends the program: says what is wrong, and by which seed it comes back. */
_Noreturn void world_fail(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

#endif
