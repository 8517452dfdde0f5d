/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the decoders of packets of an InfiniBand link and of flow control packets. Built
 * plainly, main() runs a bounded number of random mutations of valid packets (argument 1: runs,
 * argument 2: seed); built with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "wire/ib/native.h"

static void check(bool good)
{
	if (!good)
		abort();
}

/* A packet that was accepted can be made again, but for reserved bits, pad and CRCs. */
static void again(const struct ib_native *n, const uint8_t *data, size_t size)
{
	static uint8_t packet[IB_NATIVE_BYTES_MAX];
	struct ib_native other;
	size_t headers;

	if (!n->has_bth)
		return;
	headers = ib_native_encode(n, packet);
	check(headers == n->payload_at);
	memcpy(packet + headers, data + n->payload_at, n->payload_bytes);
	check(ib_native_finish(n, headers, packet) == size);
	check(ib_native_decode(packet, size, IB_CHECK_ALL, &other) == IB_NATIVE_GOOD);
	check(other.lrh.dlid == n->lrh.dlid && other.lrh.sl == n->lrh.sl);
	check(other.packet.psn == n->packet.psn && other.payload_bytes == n->payload_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ib_native n;
	uint8_t icrc[IB_ICRC_BYTES];
	struct ib_flow flow;

	for (unsigned checks = 0; checks <= IB_CHECK_ALL; checks++) {
		enum ib_native_fault fault = ib_native_decode(data, size, checks, &n);

		check(fault < IB_NATIVE_FAULTS);
		if (fault)
			continue;
		check(size <= IB_NATIVE_BYTES_MAX && n.payload_at + n.payload_bytes <= size);
		check(!n.has_bth || n.payload_bytes <= IB_MTU_MAX);
		again(&n, data, size);
	}
	ib_native_icrc(data, size, icrc);
	if (size >= IB_FLOW_BYTES && ib_flow_decode(data, &flow))
		check(flow.op <= IB_FLOW_INIT && flow.vl < IB_VL_MANAGEMENT);
	return 0;
}

#ifndef FUZZER
#define PAYLOAD 300

static size_t valid(uint8_t *to)
{
	struct ib_native n = {
		.lrh = { .vl = random_below(16), .sl = random_below(16),
			 .dlid = (uint16_t)(1 + random_below(0xbfff)), .slid = 7 },
		.has_grh = random_below(2), .has_bth = true,
		.packet = { .opcode = (uint8_t)random_below(256) },
	};
	size_t headers;

	while (!ib_opcodes[n.packet.opcode].known)
		n.packet.opcode++;
	if (ib_opcodes[n.packet.opcode].payload)
		n.packet.bytes = (uint32_t)random_below(PAYLOAD);
	headers = ib_native_encode(&n, to);
	memset(to + headers, 0x33, n.packet.bytes);
	return ib_native_finish(&n, headers, to);
}

static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t size = mutate_times(bytes, valid(bytes), capacity, random_below(3));

	if (!random_below(8)) {
		ib_flow_encode(&(struct ib_flow){ .op = random_below(3), .vl = random_below(16) }, bytes);
		size = mutate_times(bytes, IB_FLOW_BYTES, capacity, random_below(2));
	}
	/* Or nothing would come past the first check. */
	if (random_below(2))
		ib_native_set_vcrc(bytes, size);
	return size;
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 300000, 600, make);
}
#endif
