/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the datagrams of `busbar doctor`. Built plainly, main() tries all lengths
 * and every bit of valid ones, then a bounded number of random mutations (argument 1: runs,
 * argument 2: seed); built with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor_probe.h"
#include "wire/ib/header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t again[DOCTOR_PROBE_MAX];
	struct ib_packet packet;
	struct doctor_probe p;
	int ret = doctor_probe_decode(data, size, &p);

	if (ret && ret != -EBADMSG && ret != -EPROTONOSUPPORT)
		abort();
	if (ret)
		return 0;
	if ((p.kind != DOCTOR_REQUEST && p.kind != DOCTOR_REPLY) ||
	    p.status > DOCTOR_TOKEN || p.length != size || p.other < DOCTOR_PROBE_BYTES ||
	    p.other > DOCTOR_PROBE_MAX)
		abort();
	/* What was accepted says the same again. */
	doctor_probe_encode(&p, again);
	if (memcmp(data, again, size))
		abort();
	/* No transport takes it for a packet. */
	if (ib_decode(data, size, &packet))
		abort();
	return 0;
}

#ifndef FUZZER
/* Exactly `size` bytes, so that a sanitizer sees overreading. */
static void one(const uint8_t *from, size_t size)
{
	uint8_t *data = malloc(size ? size : 1);

	if (!data)
		exit(1);
	memcpy(data, from, size);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
}

static int every_length(void)
{
	static uint8_t bytes[DOCTOR_PROBE_MAX + 2];

	for (size_t size = 0; size < sizeof(bytes); size++) {
		struct doctor_probe p = { .kind = DOCTOR_REQUEST, .session = 1, .sequence = 2,
					  .length = (uint16_t)size,
					  .other = DOCTOR_PROBE_BYTES, .token = 3 };
		struct doctor_probe is;
		bool valid = size >= DOCTOR_PROBE_BYTES && size <= DOCTOR_PROBE_MAX;

		if (valid)
			doctor_probe_encode(&p, bytes);
		one(bytes, size);
		if ((doctor_probe_decode(bytes, size, &is) == 0) != valid) {
			printf("length %zu: %s\n", size, valid ? "refused" : "accepted");
			return 1;
		}
		/* One byte less or more is another datagram. */
		if (valid && (!doctor_probe_decode(bytes, size - 1, &is) ||
			      !doctor_probe_decode(bytes, size + 1, &is))) {
			printf("length %zu: accepted when cut or padded\n", size);
			return 1;
		}
	}
	return 0;
}

/* Of a header only session, sequence, length of the other and token may have any value. */
static int every_bit(void)
{
	const struct doctor_probe p = { .kind = DOCTOR_REPLY, .session = 1, .sequence = 2,
					.length = 100, .other = 256 };
	uint8_t bytes[100];

	for (unsigned bit = 0; bit < 8 * sizeof(bytes); bit++) {
		struct doctor_probe is;
		unsigned at = bit / 8;
		bool free_choice = (at >= 16 && at < 24) || (at >= 32 && at < 40);

		doctor_probe_encode(&p, bytes);
		bytes[at] ^= (uint8_t)(1u << bit % 8);
		one(bytes, sizeof(bytes));
		if (at == 3 || at == 26 || at == 27 || at == 28)
			continue;
		if ((doctor_probe_decode(bytes, sizeof(bytes), &is) == 0) != free_choice) {
			printf("bit %u: %s\n", bit, free_choice ? "refused" : "accepted");
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000;
	unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 1;

	if (every_length() || every_bit())
		return 1;
	printf("seed %u\n", seed);
	for (unsigned long run = 0; run < runs; run++) {
		uint8_t bytes[200];
		struct doctor_probe p = {
			.kind = (enum doctor_kind)(1 + rand_r(&seed) % 2),
			.session = (uint32_t)rand_r(&seed),
			.length = (uint16_t)(40 + rand_r(&seed) % 160),
			.other = (uint16_t)(40 + rand_r(&seed) % 8960),
		};

		doctor_probe_encode(&p, bytes);
		for (int flips = rand_r(&seed) % 4; flips > 0; flips--)
			bytes[(unsigned)rand_r(&seed) % p.length] ^=
				(uint8_t)(1 << rand_r(&seed) % 8);
		one(bytes, (size_t)(rand_r(&seed) % 8 ? p.length : rand_r(&seed) % 200));
	}
	return 0;
}
#endif
