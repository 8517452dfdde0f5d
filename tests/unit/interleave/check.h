/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A checker that runs the adapter's own code in every order of its steps.
 *
 * The sources under test are compiled for the thread sanitizer of the compiler, which
 * puts a call before each access to memory; its run-time library is not linked, the
 * functions that it would have are here (hooks.c). So each atomic operation of the
 * product, with the memory order that it names, comes to the checker. The threads of a
 * scenario are coroutines; the checker decides before each access that matters which
 * of them goes on, and what a load may still find, and runs the scenario again and
 * again until it has tried all decisions within the limits.
 *
 * Memory is C's (C11 5.1.2.4 and 7.17.3, without results out of thin air): each
 * location has the list of values that were ever stored there, each thread a view of how
 * far it has seen each list, and a load finds the newest value or any older one that the
 * view allows. Stores that release carry the view of their thread, loads that acquire
 * take it over; fences are as in the standard. What this allows is at least what
 * AArch64 does, but for stores that overtake earlier loads. Under CHECK_TSO all
 * stores release, all loads acquire, and read-modify-write operations are full fences,
 * as on x86; under CHECK_SC each load finds the newest value.
 *
 * Accesses that are not atomic, to memory named by check_data(), are looked at, too:
 * two of which neither is known to come first are an error.
 */
#ifndef INTERLEAVE_CHECK_H
#define INTERLEAVE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECK_THREADS 4
#define CHECK_NONE (~0u)

enum check_memory { CHECK_SC, CHECK_TSO, CHECK_C11 };

/* Deliberate faults: the checker has to find what follows from them. */
enum check_without {
	WITHOUT_NOTHING,
	WITHOUT_FENCES,     /* thread fences do nothing */
	WITHOUT_MEMBARRIER, /* membarrier(2) does nothing */
	WITHOUT_LOCK,       /* `lock` is not taken */
	WITHOUT_ORDER,      /* accesses to `lock`, here any location, are relaxed */
	WITHOUT_MEND,       /* the scenario leaves something out by itself */
};

struct check_break {
	const char *what;
	enum check_without without;
	const void *lock;
	int thread;         /* of this one only, -1: of all */
	enum check_memory memory;
};

struct check_scenario {
	const char *name;
	void (*setup)(void);
	void (*threads[CHECK_THREADS])(void); /* NULL: no more */
	void (*finish)(void); /* all have ended: what must hold then */
	unsigned idle;        /* threads that may be asleep in the end; a bit each */
	/* At most so many times a thread is interrupted though it could go on, and
	 * finds an old value; 0: the usual number. */
	unsigned interruptions, old_values; /* CHECK_NONE: in sequence by default */
	const struct check_break *breaks; /* ends with a NULL `what` */
};

/* 0, or 1 after printing what is wrong. Arguments: the number of interruptions and of
 * old values, which are added to the usual ones, for longer runs. */
int check_main(int argc, char **argv, const struct check_scenario *scenarios,
	       size_t count);

/* ---- for scenarios ---- */
__attribute__((format(printf, 1, 2))) void check_fail(const char *fmt, ...);
static inline void check_that(bool good, const char *what)
{
	if (!good)
		check_fail("%s", what);
}
/* Which fault is tried. */
bool check_is_without(enum check_without w);
/* Accesses that are not atomic are looked at here. */
void check_data(const void *at, size_t bytes);
/* The thread waits until *word is not 0; an end of the run in which it never is, is an
 * error, but for a thread that may be idle. What it sees then is not older. */
void check_sleep(const uint64_t *word);
/* A message of the scenario for the list of steps that is printed with an error. */
void check_note(const char *what);

/* ---- for what stands in for the product's and the system's functions ---- */
void check_lock(void *lock);
bool check_trylock(void *lock);
void check_unlock(void *lock);
/* In a loop that waits for another thread: goes on when that has stored something. */
void check_wait(void);
void check_membarrier(void);

/* ---- for hooks.c ---- */
enum check_op { CHECK_LOAD, CHECK_STORE, CHECK_SWAP, CHECK_ADD, CHECK_AND, CHECK_OR,
		CHECK_COMPARE };
/* The value found; for CHECK_COMPARE `value` is stored if it is *expected. */
uint64_t check_atomic(enum check_op op, void *at, unsigned bytes, uint64_t value,
		      const uint64_t *expected, int order);
void check_fence(int order);
void check_plain(const void *at, size_t bytes, bool write);

#endif
