/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dump FILE [between]: the RDMA headers of each packet of a capture file, as our decoders read them:
 * a line of number, time, opcode, destination QP, PSN, partition key, whether an acknowledgement is
 * asked for, and of what the packet has: syndrome, message number, address, length, key, immediate data.
 * With `between` also the addresses, and whether a switch has marked the packet.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/bytes.h"
#include "wire/capture/link.h"
#include "wire/capture/reader.h"
#include "wire/ib/header.h"

static void address(const char *name, uint8_t family, const uint8_t bytes[16])
{
	char text[64];

	if (family == CAPTURE_LID)
		snprintf(text, sizeof(text), "%u", get_16(bytes));
	else
		inet_ntop(family == CAPTURE_IP4 ? AF_INET : AF_INET6, bytes, text, sizeof(text));
	printf(" %s %s", name, text);
}

/* Wireshark shows no AETH and no immediate data of XRC. */
static void answers(const struct ib_packet *ib)
{
	if ((ib->opcode & IB_SERVICE_MASK) == IB_SERVICE_XRC)
		return;
	if (ib->headers & IB_HAS_AETH)
		printf(" syndrome %u message %u", ib->aeth.syndrome, ib->aeth.msn);
	if (ib->headers & IB_HAS_IMMDT)
		printf(" immediate %u", ib->immdt);
}

static void line(unsigned number, const struct capture_packet *p, bool between)
{
	struct capture_rdma_packet rdma;
	struct ib_packet ib;

	if (capture_find_rdma(p->link, p->data, p->captured, &rdma) != CAPTURE_RDMA ||
	    !ib_decode_captured(rdma.bth, rdma.captured, rdma.bytes, &ib))
		return;
	printf("%u %ju.%09ju %u 0x%06x %u %u %u", number, (uintmax_t)(p->when_ns / 1000000000),
	       (uintmax_t)(p->when_ns % 1000000000), ib.opcode, ib.dest_qpn, ib.psn, ib.pkey, ib.ack_req);
	answers(&ib);
	if (ib.headers & IB_HAS_RETH)
		printf(" address 0x%016jx length %u key 0x%08x", (uintmax_t)ib.reth.va, ib.reth.length,
		       ib.reth.rkey);
	if (ib.headers & IB_HAS_ATOMICETH)
		printf(" address 0x%016jx key 0x%08x", (uintmax_t)ib.atomiceth.va, ib.atomiceth.rkey);
	if (between) {
		address("from", rdma.family, rdma.src);
		address("to", rdma.family, rdma.dst);
		if (rdma.marked)
			printf(" marked");
	}
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
			line(++number, &p, argc > 2);
		at += used;
	}
	return status == CAPTURE_CORRUPT || !capture_end(&r, size - at);
}
