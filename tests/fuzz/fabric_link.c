/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of what a fabric sends to the adapter: messages of plug/plug.h and the headers of
 * packets in them. Built plainly, main() runs a bounded number of random mutations of valid packets
 * (argument 1: runs, argument 2: seed); built with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "plug/plug.h"
#include "transport/fabric/link.h"

static void check(bool good)
{
	if (!good)
		abort();
}

/* What was accepted can be said again, and means the same: only the lane is not kept. */
static void packet(const uint8_t *data, size_t size)
{
	uint8_t again[FABRIC_LINK_BYTES];
	struct carrier_addr to, from;
	struct fabric_link link, other;
	const size_t headers = fabric_link_decode(data, size, &link);
	struct icrc c[2];

	if (!headers)
		return;
	check(size >= headers + IB_BTH_BYTES + IB_ICRC_BYTES && size <= 4 * 0x7ff);
	fabric_link_ends(&link, &to, &from);
	fabric_link_of(&to, &from, true, &other);
	check(fabric_link_encode(&other, size - headers, again) == headers);
	check(again[0] == (data[0] & 0x0f) && !memcmp(again + 1, data + 1, headers - 1));
	fabric_icrc_begin(&c[0], &link, data + headers, size - headers);
	fabric_icrc_begin(&c[1], &other, data + headers, size - headers);
	check(c[0].crc == c[1].crc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plug_head head = { 0 };

	memcpy(&head, data, size < sizeof(head) ? size : sizeof(head));
	if (plug_check(&head, size) && head.type == PLUG_PACKET)
		packet(data + sizeof(head), size - sizeof(head));
	if (size > sizeof(head))
		packet(data + sizeof(head), size - sizeof(head));
	return 0;
}

#ifndef FUZZER
#define BYTES_MOST 32u /* behind the headers */

static size_t make(uint8_t *bytes, size_t capacity)
{
	const size_t behind = IB_BTH_BYTES + IB_ICRC_BYTES + 4 * random_below(4);
	struct fabric_link link = { .sl = (uint8_t)random_below(16), .global = random_below(2),
				    .dlid = (uint16_t)random_below(1 << 16),
				    .slid = (uint16_t)random_below(1 << 16) };
	struct plug_head head = { .type = PLUG_PACKET };
	size_t headers;

	link.grh.hop_limit = (uint8_t)random_below(256);
	headers = fabric_link_encode(&link, behind, bytes + sizeof(head));
	head.bytes = (uint16_t)(headers + behind);
	memcpy(bytes, &head, sizeof(head));
	memset(bytes + sizeof(head) + headers, 0x5a, behind);
	return mutate_times(bytes, sizeof(head) + headers + behind, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 1000000, sizeof(struct plug_head) + FABRIC_LINK_BYTES + BYTES_MOST,
		     make);
}
#endif
