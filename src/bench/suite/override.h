/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters that the command line of `busbar bench run` sets for all cases of a suite, so that a
 * suite runs on other hardware without being copied. They take the place of values and of lists
 * of values; an option applies to the cases whose kind has the parameter.
 */
#ifndef BENCH_SUITE_OVERRIDE_H
#define BENCH_SUITE_OVERRIDE_H

#include <stdbool.h>
#include <stddef.h>

#define SUITE_OVERRIDES_MAX 32

struct suite_override {
	char *key, *value; /* owned */
	bool used;         /* a case has such a parameter */
	bool wrong;        /* that does not take this value; logged */
};

struct suite_overrides {
	struct suite_override list[SUITE_OVERRIDES_MAX];
	size_t count;
};

/* "KEY=VALUE"; the last one of a key counts. 0, or -EINVAL, logged, or -ENOMEM. */
int suite_overrides_parse(struct suite_overrides *o, const char *text);
int suite_overrides_add(struct suite_overrides *o, const char *key, const char *value);
void suite_overrides_free(struct suite_overrides *o);

/* Once a suite was read: is each of use, and its value right? Logs the first one that no case
 * has. */
bool suite_overrides_are_right(const struct suite_overrides *o);
#endif
