/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main() of fuzz targets that are given random inputs without libFuzzer: argument 1 is the
 * number of runs, argument 2 the seed.
 */
#ifndef TESTS_FUZZ_DRIVE_H
#define TESTS_FUZZ_DRIVE_H

#include <stdio.h>
#include <stdlib.h>

#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DRIVE_BYTES_MAX 8192

/* An input of at most `capacity` bytes; how many. */
typedef size_t drive_make(uint8_t *bytes, size_t capacity);

static inline int drive(int argc, char **argv, unsigned long runs, size_t capacity,
			drive_make *make)
{
	static uint8_t bytes[DRIVE_BYTES_MAX];

	if (capacity > sizeof(bytes))
		return 1;
	if (argc > 1)
		runs = strtoul(argv[1], NULL, 0);
	random_state = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	printf("seed %llu\n", (unsigned long long)random_state);
	fflush(stdout);
	for (unsigned long run = 0; run < runs; run++) {
		size_t size = make(bytes, capacity);
		/* Exactly `size` bytes, so that a sanitizer sees overreading. */
		uint8_t *data = malloc(size ? size : 1);

		if (!data)
			return 1;
		memcpy(data, bytes, size);
		LLVMFuzzerTestOneInput(data, size);
		free(data);
	}
	return 0;
}

#endif
