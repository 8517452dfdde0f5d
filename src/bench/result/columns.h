/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of a table whose number of rows is not known before. */
#ifndef BENCH_RESULT_COLUMNS_H
#define BENCH_RESULT_COLUMNS_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Makes room for one more row behind `rows`. `columns`: an array of `count` pointers to values of
 * 64 bits, which have *room rows now; what they point to is the caller's to free, also after an
 * error. 0 or -ENOMEM.
 */
static inline int columns_make_room(void *columns, size_t count, size_t rows, size_t *room)
{
	size_t more = *room ? 2 * *room : 4096;

	if (rows < *room)
		return 0;
	for (char *at = columns; count--; at += sizeof(void *)) {
		void *p;

		memcpy(&p, at, sizeof(p));
		p = reallocarray(p, more, sizeof(int64_t));
		if (!p)
			return -ENOMEM;
		memcpy(at, &p, sizeof(p));
	}
	*room = more;
	return 0;
}

#endif
