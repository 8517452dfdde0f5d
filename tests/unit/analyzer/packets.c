/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packets COUNT SEED LINK FORMAT [tagged] [ip6]: writes a capture file of COUNT packets with random
 * headers to standard output. LINK and FORMAT as for fixture.c. The same seed gives the same packets
 * with every link type.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

static uint64_t state;

static uint64_t any(void)
{
	uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* A known one of RC or UC that Wireshark knows, too. */
static uint8_t opcode(void)
{
	for (;;) {
		uint8_t op = (uint8_t)(any() % (IB_SERVICE_UC + IB_WRITE_ONLY_IMM + 1));

		if (ib_opcodes[op].known && op <= IB_SEND_ONLY_INVALIDATE)
			return op;
		if (ib_opcodes[op].known && (op & IB_SERVICE_MASK) == IB_SERVICE_UC)
			return op;
	}
}

static struct ib_packet headers(void)
{
	struct ib_packet ib = {
		.opcode = opcode(), .migrated = any() & 1, .ack_req = any() & 1, .solicited = any() & 1,
		.pkey = (uint16_t)any(), .dest_qpn = 2 + (uint32_t)(any() % (IB_QPN_MASK - 2)),
		.psn = (uint32_t)any() & IB_QPN_MASK,
		.reth = { any(), (uint32_t)any(), (uint32_t)any() },
		.atomiceth = { any(), any(), any(), (uint32_t)any() },
		.aeth = { (uint8_t)any(), (uint32_t)any() & IB_QPN_MASK },
		.atomicacketh = { any() }, .immdt = (uint32_t)any(), .ieth = { (uint32_t)any() },
	};

	if (ib_opcodes[ib.opcode].payload)
		ib.bytes = (uint32_t)(any() % 4097);
	return ib;
}

int main(int argc, char **argv)
{
	struct scene_file f = { .ns = true };
	unsigned count = argc > 4 ? (unsigned)atoi(argv[1]) : 0;
	struct ib_packet *ib = calloc(count + 1, sizeof(*ib));
	struct scene s = { 0 };
	uint8_t *bytes;
	size_t size;
	int64_t ns = 0;

	if (!count || !ib)
		return 2;
	state = strtoull(argv[2], NULL, 0);
	f.link = (uint16_t)atoi(argv[3]);
	f.ng = !strncmp(argv[4], "pcapng", 6);
	f.big = strchr(argv[4], '-');
	for (int i = 5; i < argc; i++) {
		f.tagged |= !strcmp(argv[i], "tagged");
		f.ip6 |= !strcmp(argv[i], "ip6");
	}
	for (unsigned i = 0; i < count; i++) {
		ib[i] = headers();
		ns += (int64_t)(any() % 1000000000);
		scene_add(&s, &(struct scene_packet){
			.ns = ns, .from = (uint16_t)(1 + any() % 40000), .to = (uint16_t)(1 + any() % 40000),
			.marked = any() & 1, .payload = ib[i].bytes, .headers = &ib[i] });
	}
	bytes = scene_write(&s, &f, &size);
	size = fwrite(bytes, size, 1, stdout);
	free(bytes);
	scene_free(&s);
	free(ib);
	return size != 1;
}
