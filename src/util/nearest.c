/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Edit distance with transpositions of neighbours (optimal string alignment),
 * letters compared without case.
 */
#include "util/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "util/container_of.h"

#define NAME_MAX_LEN 64

static unsigned distance(const char *a, const char *b)
{
	unsigned rows[3][NAME_MAX_LEN + 1];
	size_t la = strlen(a), lb = strlen(b);

	if (la > NAME_MAX_LEN || lb > NAME_MAX_LEN)
		return UINT_MAX;
	for (unsigned j = 0; j <= lb; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= la; i++) {
		unsigned *row = rows[i % 3], *up = rows[(i - 1) % 3];
		int ca = tolower((unsigned char)a[i - 1]);

		row[0] = i;
		for (unsigned j = 1; j <= lb; j++) {
			int cb = tolower((unsigned char)b[j - 1]);
			unsigned d = MIN(up[j] + 1, row[j - 1] + 1);

			d = MIN(d, up[j - 1] + (ca != cb));
			if (i > 1 && j > 1 &&
			    ca == tolower((unsigned char)b[j - 2]) &&
			    cb == tolower((unsigned char)a[i - 2]))
				d = MIN(d, rows[(i - 2) % 3][j - 2] + 1);
			row[j] = d;
		}
	}
	return rows[la % 3][lb];
}

void nearest_try(struct nearest *n, const char *candidate)
{
	unsigned d = distance(n->given, candidate);

	if (d < n->distance) {
		n->distance = d;
		n->best = candidate;
	}
}

const char *nearest_hint(const struct nearest *n, char *buf, size_t size)
{
	size_t len = n->best ? strlen(n->best) : 0;

	/* A third of the letters wrong is still the same word; one letter of
	 * two is not. */
	if (n->best && n->distance <= (len < 3 ? 0 : (len + 1) / 3))
		snprintf(buf, size, ", did you mean '%s'?", n->best);
	else if (size)
		buf[0] = '\0';
	return buf;
}
