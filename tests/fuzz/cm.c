/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the CM decoders. Built plainly, main() runs a bounded number of
 * random mutations of valid messages (argument 1: runs, argument 2: seed); built
 * with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/cm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cm_mad mad, again;
	struct cm_ip_header ip;
	uint8_t out[CM_MAD_SIZE];
	int ret = wire_cm_decode(data, size, &mad);

	if (ret && ret != -EBADMSG)
		abort();
	if (!ret) {
		/* What was accepted can be said again, and means the same. */
		if (wire_cm_encode(&mad, out) ||
		    wire_cm_decode(out, sizeof(out), &again) ||
		    memcmp(&mad, &again, sizeof(mad)))
			abort();
	}
	wire_cm_ip_decode(data, size, &ip);
	return 0;
}

#ifndef FUZZER
int main(int argc, char **argv)
{
	static const uint8_t types[] = { 0x10, 0x11, 0x12, 0x13, 0x14, 0x15,
					 0x16, 0x17, 0x18, 0x19,
					 0x1a, 0x1b };
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000;
	unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 1;

	printf("seed %u\n", seed);
	for (unsigned long run = 0; run < runs; run++) {
		size_t size = rand_r(&seed) % 8 ? CM_MAD_SIZE :
						  (size_t)rand_r(&seed) % 300;
		/* Exactly `size` bytes, so that a sanitizer sees overreading. */
		uint8_t *data = malloc(size ? size : 1);

		if (!data)
			return 1;
		for (size_t i = 0; i < size; i++)
			data[i] = (uint8_t)rand_r(&seed);
		if (size >= 18) {
			memcpy(data, (uint8_t[]){ 1, 7, 2, 3 }, 4);
			data[16] = 0;
			data[17] = types[(size_t)rand_r(&seed) % sizeof(types)];
			for (int flips = rand_r(&seed) % 3; flips > 0; flips--)
				data[(size_t)rand_r(&seed) % size] ^=
					(uint8_t)(1 << rand_r(&seed) % 8);
		}
		LLVMFuzzerTestOneInput(data, size);
		free(data);
	}
	return 0;
}
#endif
