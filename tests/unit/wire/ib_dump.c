/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints RoCE v2 packets in text2pcap's hex format for ib_tshark.sh, so that tshark, an
 * independent decoder, checks them. The invariant CRC is 0xcccccccc.
 */
#include <stdio.h>
#include <string.h>

#include "wire/ib/header.h"

static void print(struct ib_packet p)
{
	uint8_t out[IB_HEADERS_MAX + 16 + IB_ICRC_BYTES];
	size_t header, bytes;

	p.pkey = IB_PKEY_DEFAULT;
	p.migrated = true;
	p.dest_qpn = 0x010203;
	p.psn = 0x0a0b0c;
	header = ib_encode(&p, out);
	bytes = header + p.bytes + ib_pad(p.bytes) + IB_ICRC_BYTES;
	memset(out + header, 0xcc, bytes - header);
	for (size_t i = 0; i < bytes; i++) {
		if (i % 16 == 0)
			printf("%s%06zx", i ? "\n" : "", i);
		printf(" %02x", out[i]);
	}
	printf("\n\n");
}

int main(void)
{
	print((struct ib_packet){ .opcode = IB_SERVICE_RC | IB_SEND_ONLY_IMM,
				  .bytes = 5, .solicited = true, .ack_req = true,
				  .immdt = 0x11223344 });
	print((struct ib_packet){ .opcode = IB_SERVICE_RC | IB_SEND_LAST_INVALIDATE,
				  .bytes = 8, .ieth = { 0x55667788 } });
	print((struct ib_packet){ .opcode = IB_SERVICE_UC | IB_WRITE_ONLY_IMM, .bytes = 4,
				  .reth = { 0x0102030405060708, 0x11121314, 4 },
				  .immdt = 0x99aabbcc });
	print((struct ib_packet){ .opcode = IB_SERVICE_RC | IB_READ_REQUEST,
				  .reth = { 0x1112131415161718, 0x21222324, 65536 } });
	print((struct ib_packet){ .opcode = IB_SERVICE_RC | IB_READ_RESPONSE_ONLY,
				  .bytes = 3, .aeth = { 0x1f, 0x313233 } });
	print((struct ib_packet){ .opcode = IB_SERVICE_RC | IB_ACKNOWLEDGE,
				  .aeth = { 0x62, 0x414243 } });
	print((struct ib_packet){ .opcode = IB_SERVICE_RC | IB_COMPARE_SWAP,
				  .atomiceth = { .va = 0x5152535455565758,
						 .rkey = 0x61626364, .swap_add = 77,
						 .compare = 88 } });
	print((struct ib_packet){ .opcode = IB_SERVICE_RC | IB_ATOMIC_ACKNOWLEDGE,
				  .aeth = { 0, 0x717273 }, .atomicacketh = { 99 } });
	print((struct ib_packet){ .opcode = IB_SERVICE_UD | IB_SEND_ONLY, .bytes = 16,
				  .deth = { 0x81828384, 0x919293 } });
	return 0;
}
