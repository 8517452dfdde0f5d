/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A checker that runs the adapter's own code in every order of its steps.
 *
 * The sources under test are compiled for the compiler's thread sanitizer, which inserts a
 * call before each memory access. Its run-time library is not linked; hooks.c has the
 * functions that it would provide. So the checker gets each atomic operation of the
 * product with its memory order. The threads of a scenario are coroutines. Before each
 * access that other threads can observe the checker decides which of them runs, and which
 * value a load finds. It repeats the scenario until it has tried all decisions within the
 * limits.
 *
 * Memory is C's (C11 5.1.2.4 and 7.17.3, without out-of-thin-air results): each location
 * has the list of values that were stored there, each thread a view, which is how far it has
 * seen each list. A load finds the newest value or any older one that the view allows.
 * Release stores carry the view of their thread, acquire loads take it over; fences are as in
 * the standard. This allows at least what AArch64 allows, except for stores before earlier
 * loads. Under CHECK_TSO all stores release, all loads acquire, and read-modify-write
 * operations are full fences, as on x86; under CHECK_SC each load finds the newest value.
 *
 * Accesses that are not atomic, to memory named by check_data(), are checked as well: two
 * of them that are not ordered are an error.
 */
#ifndef INTERLEAVE_CHECK_H
#define INTERLEAVE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECK_THREADS 4
#define CHECK_NONE (~0u)

enum check_memory { CHECK_SC, CHECK_TSO, CHECK_C11 };

/* Deliberate faults, which the checker has to find. */
enum check_without {
	WITHOUT_NOTHING,
	WITHOUT_FENCES,     /* thread fences do nothing */
	WITHOUT_MEMBARRIER, /* membarrier(2) does nothing */
	WITHOUT_LOCK,       /* `lock` is not taken */
	WITHOUT_ORDER,      /* accesses to the location in `lock` are relaxed */
	WITHOUT_MEND,       /* the scenario itself leaves out a step */
};

struct check_break {
	const char *what;
	enum check_without without;
	const void *lock;
	int thread;         /* the thread that has the fault; -1: all */
	enum check_memory memory;
};

struct check_scenario {
	const char *name;
	void (*setup)(void);
	void (*threads[CHECK_THREADS])(void); /* NULL: there are no more */
	void (*finish)(void); /* after all threads have ended: checks the result */
	unsigned idle;        /* threads that may sleep at the end; a bit each */
	/* Limits for the interruptions of threads that could go on, and for loads that
	 * find an old value; 0: the usual limit. */
	unsigned interruptions, old_values; /* CHECK_NONE: in sequence by default */
	const struct check_break *breaks; /* ends with a NULL `what` */
};

/* 0, or 1 after printing the fault. Arguments: numbers of interruptions and of old values
 * that are added to the limits, for longer runs. */
int check_main(int argc, char **argv, const struct check_scenario *scenarios,
	       size_t count);

/* ---- for scenarios ---- */
__attribute__((format(printf, 1, 2))) void check_fail(const char *fmt, ...);
static inline void check_that(bool good, const char *what)
{
	if (!good)
		check_fail("%s", what);
}
/* Is this fault being tried? */
bool check_is_without(enum check_without w);
/* Names memory whose non-atomic accesses are checked. */
void check_data(const void *at, size_t bytes);
/* The thread waits until *word is not 0, and then sees that value. If it never is, the run
 * is an error, unless the thread is in `idle`. */
void check_sleep(const uint64_t *word);
/* Adds a line to the list of steps that is printed with an error. */
void check_note(const char *what);

/* ---- for the replacements of the product's and the system's functions ---- */
void check_lock(void *lock);
bool check_trylock(void *lock);
void check_unlock(void *lock);
/* In a loop that waits for another thread: returns after that has stored something. */
void check_wait(void);
void check_membarrier(void);

/* ---- for hooks.c ---- */
enum check_op { CHECK_LOAD, CHECK_STORE, CHECK_SWAP, CHECK_ADD, CHECK_AND, CHECK_OR,
		CHECK_COMPARE };
/* Returns the value found; CHECK_COMPARE stores `value` if that is *expected. */
uint64_t check_atomic(enum check_op op, void *at, unsigned bytes, uint64_t value,
		      const uint64_t *expected, int order);
void check_fence(int order);
void check_plain(const void *at, size_t bytes, bool write);

#endif
