/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the frames that other processes put on the loopback interface
 * (carrier/raw_frame.h). Built plainly, main() runs a bounded number of random mutations of
 * valid frames (argument 1: runs, argument 2: seed); built with -fsanitize=fuzzer and
 * -DFUZZER, libFuzzer drives it.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "transport/carrier/raw_frame.h"
#include "transport/carrier/udp.h"

static void check(bool good)
{
	if (!good)
		abort();
}

static uint16_t port_of(const struct carrier_addr *a, int *family)
{
	uint8_t ip[16];
	uint16_t port;

	*family = carrier_udp_addr_ip(a, ip, &port);
	return port;
}

/* What was accepted can be said again, and means the same. */
static void say_again(const struct carrier_unit *unit, const struct iovec *packet)
{
	struct iovec iov = *packet, packet_again;
	struct carrier_unit u = *unit, again;
	uint8_t frame[RAW_FRAME_BYTES];
	size_t bytes;

	u.iov = &iov;
	u.count = 1;
	u.known = CARRIER_TOS | CARRIER_TTL;
	bytes = raw_frame_write(&u, iov.iov_len, 4791, frame);
	check(bytes && bytes <= sizeof(frame));
	memset(&again, 0, sizeof(again));
	check(raw_frame_read(frame, bytes, &again, &packet_again));
	check(packet_again.iov_len == iov.iov_len &&
	      !memcmp(packet_again.iov_base, iov.iov_base, iov.iov_len));
	check(again.known == unit->known && again.tos == unit->tos);
	/* A TTL of 0 asks for the usual one. */
	check(again.ttl == unit->ttl || !unit->ttl);
	check(again.segment == unit->segment && again.ip_id == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct carrier_unit unit;
	struct iovec packet;
	int from, to;

	memset(&unit, 0, sizeof(unit));
	if (size > RAW_FRAME_BYTES || !raw_frame_read(data, size, &unit, &packet))
		return 0;
	check(packet.iov_len && (const uint8_t *)packet.iov_base > data &&
	      (const uint8_t *)packet.iov_base + packet.iov_len == data + size);
	port_of(&unit.from, &from);
	port_of(&unit.to, &to);
	check(from == to && (from == AF_INET || from == AF_INET6));
	check((from == AF_INET) == !!(unit.known & CARRIER_IP_ID));
	if (packet.iov_len <= CARRIER_RAW_BYTES)
		say_again(&unit, &packet);
	return 0;
}

#ifndef FUZZER
static size_t make(uint8_t *bytes, size_t capacity)
{
	uint8_t v4[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 };
	uint8_t v6[16] = { [15] = 1 };
	uint8_t payload[CARRIER_RAW_BYTES];
	struct iovec iov = { payload, 1 + random_below(sizeof(payload)) };
	const uint8_t *ip = random_below(2) ? v4 : v6;
	struct carrier_unit u = {
		.iov = &iov, .count = 1, .known = CARRIER_TOS | CARRIER_TTL,
		.tos = (uint8_t)random_below(256), .ttl = (uint8_t)random_below(256),
		.to = carrier_udp_addr_of(ip, 0, 4791),
		.from = carrier_udp_addr_of(ip, 0, 4791),
	};
	size_t size;

	memset(payload, (int)random_below(256), iov.iov_len);
	u.segment = random_below(2) ? (uint32_t)random_below(200) : 0;
	size = raw_frame_write(&u, iov.iov_len, 4791, bytes);
	for (uint64_t n = random_below(6); n; n--) {
		bytes[random_below(RAW_HEADERS_V6)] ^= (uint8_t)(1u << random_below(8));
		if (random_below(2))
			size = mutate(bytes, size, capacity);
	}
	return size;
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 300000, RAW_FRAME_BYTES, make);
}
#endif
