/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A list of hooks from a piece of configuration, and samples that go through it.
 * The text holds `hooks` and, where the signals are known, `signals`.
 */
#ifndef TEST_HOOKS_HARNESS_H
#define TEST_HOOKS_HARNESS_H

#include "../gateway/fake.h"
#include "gateway/plugin/hook.h"

#define POOL_SIZE 64

struct harness {
	struct config *c;
	struct signal_list *in, *out;
	struct hook_list *hooks;
	unsigned capacity;
	bool started;
	struct node node;
	struct pool pool;
	struct sample *last; /* what came out of harness_run() */
};

/* Parses, tells signals, starts. 0 or a negative errno; harness_end() either way. */
int harness_open(struct harness *t, enum hook_place place, const char *text);
/* The same; must succeed. */
void harness_start(struct harness *t, enum hook_place place, const char *text);
/* Stops, destroys, and asserts that every sample is back. */
void harness_end(struct harness *t);

/* A sample with number, origin at `origin_ns`, received 5 us later, no values. */
struct sample *harness_sample(struct harness *t, uint64_t sequence,
			      uint64_t origin_ns);
/* Appends a value. */
void put_real(struct sample *s, double v);
void put_integer(struct sample *s, int64_t v);
void put_complex(struct sample *s, float re, float im);

/* Through the hooks: what comes out (valid until the next call), or NULL. */
struct sample *harness_run(struct harness *t, struct sample *s);
/* A sample with one real value at 1 s + sequence * 1 ms. */
struct sample *harness_step(struct harness *t, uint64_t sequence, double v);

/* That this configuration is refused with a message that holds `expected`. */
void expect_refused(enum hook_place place, const char *text,
		    const char *expected);

#endif
