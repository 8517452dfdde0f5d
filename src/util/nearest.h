/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the known name that is nearest to a misspelt one, for "did you mean" in messages.
 *
 *	struct nearest n = NEAREST("qeuelen");
 *	nearest_try(&n, "queuelen");
 *	nearest_hint(&n, buf, sizeof(buf));   -> ", did you mean 'queuelen'?"
 */
#ifndef UTIL_NEAREST_H
#define UTIL_NEAREST_H

#include <limits.h>
#include <stddef.h>

struct nearest {
	const char *given;
	const char *best;  /* borrowed; NULL when nothing is near */
	unsigned distance;
};

#define NEAREST(name) ((struct nearest){ .given = (name), .distance = UINT_MAX })

/* Remembers `candidate` (borrowed) if it is nearer than all that were tried before. */
void nearest_try(struct nearest *n, const char *candidate);

/* Writes the hint to `buf`, or "" when no candidate is near enough. Returns buf. */
const char *nearest_hint(const struct nearest *n, char *buf, size_t size);

#endif
