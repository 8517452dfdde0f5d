/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is mapped, and how: a registration of a hole, or for writing of memory that
 * is read-only, fails as a pinning adapter's does. Later the program would be
 * ended by a signal instead.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "hca/paging.h"

/* Without /proc: holes are seen, protection is not. */
static bool present(uintptr_t at, uintptr_t end)
{
	static const size_t page = 4096;
	unsigned char vec[4096];

	for (at &= ~(page - 1); at < end; at += sizeof(vec) * page) {
		size_t bytes = end - at;

		if (bytes > sizeof(vec) * page)
			bytes = sizeof(vec) * page;
		if (mincore((void *)at, bytes, vec) && errno == ENOMEM)
			return false;
	}
	return true;
}

bool hca_range_mapped(const void *addr, size_t length, bool write)
{
	uintptr_t at = (uintptr_t)addr, end = at + length;
	char *line = NULL;
	size_t size = 0;
	FILE *maps;

	if (length == 0)
		return true;
	maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return present(at, end);
	/* In ascending order; `at` moves on over what is good. */
	while (at < end && getline(&line, &size, maps) > 0) {
		unsigned long from, to;
		char read, writable;

		if (sscanf(line, "%lx-%lx %c%c", &from, &to, &read, &writable) !=
			    4 ||
		    to <= at)
			continue;
		if (from > at || read != 'r' || (write && writable != 'w'))
			break;
		at = to;
	}
	free(line);
	fclose(maps);
	return at >= end;
}
