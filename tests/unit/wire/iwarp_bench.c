/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long CRC-32C takes, by each method that this processor has, and how long FPDUs take: framed
 * without copying, and received with and without a buffer. In nanoseconds for one call or FPDU;
 * the smallest of several rounds counts.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "wire/iwarp/crc32c.h"
#include "wire/iwarp/receiver.h"

#define ROUNDS 50
#define CALLS 2000

static uint8_t data[65536], stream[65536 + IWARP_FPDU_EXTRA];
static size_t stream_bytes;
static uint32_t result; /* of each call, for the next one: none can be left out */

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void crc_alone(unsigned method, size_t bytes)
{
	result = crc32c_run(method, result, data, bytes);
}

static void gather(unsigned crc, size_t bytes)
{
	struct iwarp_framer f = { .crc = crc };
	struct iovec pieces[] = { { data, IWARP_TAGGED_BYTES }, { data + 64, bytes } }, out[8];
	uint8_t own[IWARP_FPDU_EXTRA];

	result += iwarp_framer_gather(&f, pieces, 2, own, out, 8);
}

static void receive(unsigned how, size_t bytes)
{
	static uint8_t buffer[IWARP_ULPDU_MAX];
	struct iwarp_receiver r;
	const uint8_t *at = stream;
	size_t left = stream_bytes;

	iwarp_receiver_init(&r, false, how & 1, how & 2 ? buffer : NULL);
	while (iwarp_receiver_take(&r, &at, &left) != IWARP_NOTHING)
		result += r.segment.bytes;
}

/* A WRITE of so many bytes. */
static void fill_stream(size_t bytes)
{
	struct iwarp_framer f = { .crc = true };
	struct iwarp_segment s = { .opcode = IWARP_WRITE, .last = true };
	uint8_t header[IWARP_HEADERS_MAX];
	struct iovec pieces[] = { { header, iwarp_segment_encode(&s, header) },
				  { data, bytes } };

	stream_bytes = iwarp_framer_write(&f, pieces, 2, stream);
}

static void measure(const char *name, void (*call)(unsigned, size_t), unsigned arg)
{
	static const size_t sizes[] = { 16, 256, 1440, 4096, 16384, 64000 };

	printf("%-18s", name);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double best = 1e9;

		fill_stream(sizes[i]);
		for (unsigned round = 0; round < ROUNDS; round++) {
			unsigned calls = CALLS * 16 / (16 + (unsigned)sizes[i] / 64);
			double begin = now_ns(), took;

			for (unsigned k = 0; k < calls; k++)
				call(arg, sizes[i]);
			took = (now_ns() - begin) / calls;
			if (took < best)
				best = took;
		}
		printf("  %5zu B %8.1f", sizes[i], best);
	}
	printf("\n");
}

int main(void)
{
	memset(data, 0x5a, sizeof(data));
	for (unsigned method = 0; method < CRC32C_METHODS; method++)
		if (crc32c_method_there(method))
			measure(crc32c_method_name(method), crc_alone, method);
	measure("gather", gather, false);
	measure("gather, CRC", gather, true);
	measure("receive", receive, 0);
	measure("receive, CRC", receive, 1);
	measure("whole, CRC", receive, 3);
	return 0;
}
