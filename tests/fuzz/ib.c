/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the decoders of RoCE v2 packets. Built plainly, main() runs a bounded
 * number of random mutations of valid packets (argument 1: runs, argument 2: seed); built
 * with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "transport/packet/frame/ib.h"
#include "wire/ib/header.h"

static void check(bool good)
{
	if (!good)
		abort();
}

/* What was accepted can be said again, and means the same. */
static void packet(const uint8_t *data, size_t size)
{
	struct ib_packet p, again;
	uint8_t out[2][IB_HEADERS_MAX], *copy;
	size_t header = ib_decode(data, size, &p);

	if (!header)
		return;
	check(header >= IB_BTH_BYTES && header <= IB_HEADERS_MAX);
	check(header + p.bytes + ib_pad(p.bytes) + IB_ICRC_BYTES == size);
	check(ib_encode(&p, out[0]) == header);
	copy = malloc(size);
	if (!copy)
		return;
	memcpy(copy, data, size);
	memcpy(copy, out[0], header);
	check(ib_decode(copy, size, &again) == header && again.bytes == p.bytes);
	check(ib_encode(&again, out[1]) == header && !memcmp(out[0], out[1], header));
	free(copy);
}

static void frame(const uint8_t *data, size_t size)
{
	struct packet_frame f;
	uint8_t out[PACKET_HEADER_BYTES];
	size_t header = packet_ib_decode(data, size, &f);

	if (!header)
		return;
	check(f.rc.bytes <= PACKET_MTU && header + f.rc.bytes + IB_ICRC_BYTES <= size);
	check(f.rc.op <= RC_CNP && f.service <= PACKET_XRC);
	check(f.dst_qpn <= IB_QPN_MASK && f.src_qpn <= IB_QPN_MASK);
	check(f.rc.psn <= IB_QPN_MASK && f.rc.msn <= IB_QPN_MASK);
	check(packet_ib_encode(&f, out) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	packet(data, size);
	frame(data, size);
	return 0;
}

#ifndef FUZZER
#define PAYLOAD 24

static size_t valid(uint8_t *to)
{
	struct ib_packet p = { .opcode = (uint8_t)random_below(256), .migrated = true,
			       .pkey = IB_PKEY_DEFAULT, .psn = 1, .dest_qpn = 2 };
	size_t header;

	while (!ib_opcodes[p.opcode].known)
		p.opcode++;
	if (ib_opcodes[p.opcode].payload)
		p.bytes = (uint32_t)random_below(PAYLOAD + 1);
	header = ib_encode(&p, to);
	memset(to + header, 0, PAYLOAD + IB_ICRC_BYTES);
	return header + p.bytes + ib_pad(p.bytes) + IB_ICRC_BYTES;
}

static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t size = valid(bytes);

	return mutate_times(bytes, size, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 1000000, IB_HEADERS_MAX + PAYLOAD + IB_ICRC_BYTES, make);
}
#endif
