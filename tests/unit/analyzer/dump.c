/* SPDX-License-Identifier: BSD-2-Clause */
/* dump FILE: the RDMA headers of each packet of a capture file, as our decoders read them: a line
 * of number, time, opcode, destination QP, PSN, syndrome, address and length. */
#include <stdio.h>
#include <stdlib.h>

#include "wire/capture/link.h"
#include "wire/capture/reader.h"
#include "wire/ib/header.h"

static void line(unsigned number, const struct capture_packet *p)
{
	struct capture_rdma_packet rdma;
	struct ib_packet ib;

	if (capture_find_rdma(p->link, p->data, p->captured, &rdma) != CAPTURE_RDMA ||
	    !ib_decode_captured(rdma.bth, rdma.captured, rdma.bytes, &ib))
		return;
	printf("%u %ju.%09ju %u 0x%06x %u", number, (uintmax_t)(p->when_ns / 1000000000),
	       (uintmax_t)(p->when_ns % 1000000000), ib.opcode, ib.dest_qpn, ib.psn);
	/* Wireshark shows no AETH of XRC. */
	if (ib.headers & IB_HAS_AETH && (ib.opcode & IB_SERVICE_MASK) != IB_SERVICE_XRC)
		printf(" syndrome %u", ib.aeth.syndrome);
	if (ib.headers & IB_HAS_RETH)
		printf(" address 0x%016jx length %u", (uintmax_t)ib.reth.va, ib.reth.length);
	if (ib.headers & IB_HAS_ATOMICETH)
		printf(" address 0x%016jx", (uintmax_t)ib.atomiceth.va);
	putchar('\n');
}

int main(int argc, char **argv)
{
	static uint8_t bytes[64 << 20];
	static struct capture_reader r;
	struct capture_packet p;
	enum capture_status status;
	size_t size, used, at = 0;
	unsigned number = 0;
	FILE *f = fopen(argc > 1 ? argv[1] : "", "rb");

	if (!f)
		return 1;
	size = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	capture_begin(&r);
	while ((status = capture_next(&r, bytes + at, size - at, &used, &p)) < CAPTURE_MORE) {
		if (status == CAPTURE_PACKET)
			line(++number, &p);
		at += used;
	}
	return status == CAPTURE_CORRUPT || !capture_end(&r, size - at);
}
