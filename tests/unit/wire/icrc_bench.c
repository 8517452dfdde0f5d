/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long the ICRC takes, in nanoseconds: the CRC alone by each method that this
 * processor has, whole packets with their headers, and the search for an unknown IPv4
 * identification. The smallest of several rounds counts.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "wire/ib/icrc.h"

#define ROUNDS 50
#define CALLS 5000

static uint8_t data[4096];
static uint32_t result; /* of each call, for the next one: none can be left out */

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void crc_alone(enum icrc_method method, uint32_t bytes)
{
	result = icrc_run(method, result, data, bytes);
}

static void packet(enum icrc_method version, uint32_t bytes)
{
	const struct icrc_ip ip = {
		.version = (uint8_t)version, .src_port = 49152, .dst_port = IB_UDP_PORT,
		.udp_length = (uint16_t)(bytes + 24), .id = (uint16_t)result,
		.dont_fragment = true,
	};
	static const uint8_t bth[IB_BTH_BYTES] = { 0x04, 0x40, 0xff, 0xff };
	struct icrc c;

	icrc_begin(&c, &ip, bth);
	icrc_add(&c, data, bytes);
	result = c.crc;
}

static void any_id(enum icrc_method unused, uint32_t bytes)
{
	const struct icrc c = { result };

	(void)unused;
	result += 1 + icrc_matches_any_id(&c, (uint16_t)(bytes + 24), data, NULL);
}

static void measure(const char *name, void (*call)(enum icrc_method, uint32_t), unsigned arg)
{
	static const uint32_t sizes[] = { 4, 16, 64, 256, 1024, 4096 };

	printf("%-12s", name);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double best = 1e9;

		for (unsigned round = 0; round < ROUNDS; round++) {
			double begin = now_ns(), took;

			for (unsigned k = 0; k < CALLS; k++)
				call(arg, sizes[i]);
			took = (now_ns() - begin) / CALLS;
			if (took < best)
				best = took;
		}
		printf("  %4u B %7.1f", (unsigned)sizes[i], best);
	}
	printf("\n");
}

int main(void)
{
	memset(data, 0x5a, sizeof(data));
	for (unsigned method = 0; method < ICRC_METHODS; method++)
		if (icrc_method_there(method))
			measure(icrc_method_name(method), crc_alone, method);
	measure("IPv4 packet", packet, 4);
	measure("IPv6 packet", packet, 6);
	measure("any id", any_id, 0);
	return 0;
}
