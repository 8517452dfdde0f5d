/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fuzzers of library calls share: random numbers from a printed seed,
 * pools of objects, and the rules for what a call may return.
 *
 * They call public functions in any order with any values that a program could
 * pass without being at fault itself: numbers, flags and sizes out of range, NULL
 * where a function checks it, objects that are in use. Not: destroyed objects,
 * and memory that is not there where the function has to read it.
 */
#ifndef FUZZ_API_H
#define FUZZ_API_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern uint64_t api_state;
extern const char *api_call; /* for messages */
extern unsigned long api_run;

_Noreturn void api_broken(const char *file, int line, const char *what);
#define must(cond) \
	((cond) ? (void)0 : api_broken(__FILE__, __LINE__, #cond))

uint32_t draw(uint32_t below);

static inline bool one_in(uint32_t n)
{
	return draw(n) == 0;
}

/* A number: small, at an edge, or any. */
uint32_t number(void);

/* A valid one of [0, n) mostly. */
static inline uint32_t mostly(uint32_t n)
{
	return one_in(12) ? number() : draw(n);
}

/* Some of the bits of `known`, seldom others. */
static inline uint32_t flags(uint32_t known)
{
	uint32_t f = draw(UINT32_MAX) & draw(UINT32_MAX) & known;

	return one_in(16) ? f | 1u << draw(32) : f;
}

/* ---- what calls may return ---- */

static inline bool is_errno(int e)
{
	return e > 0 && e < 134;
}

/* Pointer, or NULL with errno. */
static inline void *pointer(void *p)
{
	must(p || is_errno(errno));
	return p;
}

/* 0 or an errno value. */
static inline bool done(int ret)
{
	must(ret == 0 || is_errno(ret));
	return ret == 0;
}

/* 0 (or a count), or -1 with errno. */
static inline bool done_or_minus1(int ret)
{
	must(ret >= 0 || (ret == -1 && is_errno(errno)));
	return ret >= 0;
}

#define CALL(name) (api_call = (name), errno = 0)

/* ---- pools ---- */

enum { POOL = 8 };

struct pool {
	void *at[POOL];
	int count;
};

static inline void *pick(struct pool *p)
{
	return p->count ? p->at[draw((uint32_t)p->count)] : NULL;
}

static inline bool has_room(const struct pool *p)
{
	return p->count < POOL;
}

static inline void *keep(struct pool *p, void *object)
{
	if (object)
		p->at[p->count++] = object;
	return object;
}

static inline void forget(struct pool *p, const void *object)
{
	for (int i = 0; i < p->count; i++)
		if (p->at[i] == object) {
			p->at[i] = p->at[--p->count];
			return;
		}
}

/* ---- the run ---- */

/*
 * Runs `one` (which leaves nothing behind) again and again: SECONDS, SEED and the
 * number of the first run are the program's arguments. Descriptors that are left
 * after the first `warm` runs are what libraries keep; no more than `later` may
 * be added afterwards.
 */
int api_main(int argc, char **argv, unsigned long seconds, unsigned long warm,
	     int later, void (*one)(void));

#endif
