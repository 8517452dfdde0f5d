/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of packets of transport fabric, against the encoder and decoder of whole packets in
 * wire/ib/native.h, which shares no code with them; and its carrier, over a pair of sockets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/fabric/link.h"
#include "transport/fabric/plugged.h"
#include "util/prng.h"
#include "wire/ib/native.h"

#define PAYLOAD_MOST 4096

static struct prng prng;

static uint32_t below(uint32_t n)
{
	return (uint32_t)prng_below(&prng, n);
}

/* ---- packets ---- */

/* A packet with any values, by wire/ib/native.h, from the LRH to the ICRC; its length. */
static size_t any_packet(struct ib_native *n, uint8_t to[IB_NATIVE_BYTES_MAX])
{
	static const uint8_t opcodes[] = { IB_SEND_ONLY, IB_WRITE_ONLY, IB_READ_REQUEST,
					   IB_ACKNOWLEDGE, IB_SERVICE_UD | IB_SEND_ONLY,
					   IB_SERVICE_UC | IB_SEND_MIDDLE };
	size_t headers;

	*n = (struct ib_native){
		.lrh = { .sl = (uint8_t)below(16), .dlid = (uint16_t)(1 + below(0xbffe)),
			 .slid = (uint16_t)(1 + below(0xbffe)) },
		.has_bth = true,
		.has_grh = below(2),
		.grh = { .traffic_class = (uint8_t)below(256), .hop_limit = (uint8_t)below(256),
			 .flow_label = below(1 << 20) },
		.packet = { .opcode = opcodes[below(sizeof(opcodes))], .migrated = true,
			    .pkey = (uint16_t)below(1 << 16), .dest_qpn = below(1 << 24),
			    .psn = below(1 << 24) },
	};
	for (unsigned i = 0; i < 16; i++) {
		/* Not of multicast, which has LIDs of its own. */
		n->grh.sgid[i] = (uint8_t)below(i ? 256 : 255);
		n->grh.dgid[i] = (uint8_t)below(i ? 256 : 255);
	}
	if (ib_opcodes[n->packet.opcode].payload)
		n->packet.bytes = below(PAYLOAD_MOST + 1);
	headers = ib_native_encode(n, to);
	assert_true(headers > 0);
	for (uint32_t i = 0; i < n->packet.bytes; i++)
		to[headers + i] = (uint8_t)below(256);
	return ib_native_finish(n, headers, to) - IB_VCRC_BYTES;
}

static void each_packet_has_the_headers_and_the_icrc_of_the_specification(void **state)
{
	uint8_t packet[IB_NATIVE_BYTES_MAX], headers[FABRIC_LINK_BYTES], icrc[IB_ICRC_BYTES];
	struct carrier_addr to, from;
	struct fabric_link link;
	struct ib_native n;
	struct icrc c;

	for (unsigned run = 0; run < 2000; run++) {
		const size_t bytes = any_packet(&n, packet);
		const size_t at = fabric_link_decode(packet, bytes, &link);
		const uint8_t *bth = packet + at;

		assert_int_equal(at, IB_LRH_BYTES + (n.has_grh ? IB_GRH_BYTES : 0));
		assert_int_equal(link.dlid, n.lrh.dlid);
		assert_int_equal(link.slid, n.lrh.slid);
		/* As it arrives, and as it leaves. */
		fabric_link_ends(&link, &to, &from);
		fabric_link_of(&to, &from, true, &link);
		assert_int_equal(fabric_link_encode(&link, bytes - at, headers), at);
		assert_memory_equal(headers, packet, at);
		fabric_icrc_begin(&c, &link, bth, bytes - at);
		icrc_add(&c, bth + IB_BTH_BYTES, bytes - at - IB_BTH_BYTES - IB_ICRC_BYTES);
		icrc_end(&c, icrc);
		assert_memory_equal(icrc, packet + bytes - IB_ICRC_BYTES, IB_ICRC_BYTES);
	}
}

static void what_changes_on_the_way_is_not_in_the_icrc(void **state)
{
	uint8_t packet[IB_NATIVE_BYTES_MAX];
	struct fabric_link link;
	struct ib_native n;
	struct icrc before, behind;

	for (unsigned run = 0; run < 200; run++) {
		const size_t bytes = any_packet(&n, packet);
		size_t at = fabric_link_decode(packet, bytes, &link);

		fabric_icrc_begin(&before, &link, packet + at, bytes - at);
		packet[0] |= 0x30;       /* another lane */
		packet[at + 4] |= 0xc0;  /* FECN, BECN */
		if (n.has_grh)
			packet[IB_LRH_BYTES + 7]--; /* the hop limit */
		assert_int_equal(fabric_link_decode(packet, bytes, &link), at);
		fabric_icrc_begin(&behind, &link, packet + at, bytes - at);
		assert_int_equal(before.crc, behind.crc);
		packet[at + 7] ^= 1; /* the queue pair does not change */
		fabric_icrc_begin(&behind, &link, packet + at, bytes - at);
		assert_int_not_equal(before.crc, behind.crc);
	}
}

static void headers_that_cannot_be_are_refused(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
	} wrong[] = {
		{ 0, 0x01 },  /* version */
		{ 1, 0x00 },  /* no BTH */
		{ 1, 0x06 },  /* a reserved bit */
		{ 2, 0xff },  /* with the next one: to the permissive LID */
		{ 4, 0x08 },  /* a reserved bit */
		{ 5, 0x01 },  /* another length */
		{ 6, 0xc0 },  /* from a group */
		{ 8, 0x40 },  /* version of the GRH */
		{ 13, 0x01 }, /* its length */
		{ 14, 0x11 }, /* no BTH behind it */
	};
	const struct fabric_link good = { .global = true, .dlid = 0x12ff, .slid = 7 };
	uint8_t packet[FABRIC_LINK_BYTES + 16] = { 0 };
	struct fabric_link link;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fabric_link_encode(&good, 16, packet);
		assert_int_equal(fabric_link_decode(packet, sizeof(packet), &link),
				 FABRIC_LINK_BYTES);
		packet[wrong[i].at] = wrong[i].value;
		assert_int_equal(fabric_link_decode(packet, sizeof(packet), &link), 0);
	}
	fabric_link_encode(&good, 16, packet);
	for (size_t bytes = 0; bytes < sizeof(packet); bytes++)
		assert_int_equal(fabric_link_decode(packet, bytes, &link), 0);
}

/* ---- the carrier ---- */

static struct {
	unsigned units, messages, ends;
	uint8_t first[64];
	size_t bytes;
	struct carrier_addr from;
} heard;

static void hear_unit(void *arg, const struct carrier_unit *unit)
{
	heard.units++;
	heard.bytes = carrier_unit_bytes(unit);
	heard.from = unit->from;
	carrier_unit_gather(unit, 0, heard.bytes < 64 ? heard.bytes : 64, heard.first);
}

static void hear_message(const struct plug_head *head, const void *body)
{
	heard.messages++;
}

static void hear_end(void)
{
	heard.ends++;
}

/* The other end of its socket. */
static int open_carrier(struct carrier **out)
{
	const struct carrier_upper upper = { .deliver = hear_unit };
	struct plugged_params params = { .message = hear_message, .ended = hear_end };
	int fds[2];

	memset(&heard, 0, sizeof(heard));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
	params.fd = fds[0];
	assert_int_equal(plugged_open(&params, out), 0);
	carrier_set_upper(*out, &upper);
	return fds[1];
}

#define SEGMENT 1028u /* BTH, 1012 bytes, ICRC */

/* A train whose pieces are cut elsewhere than its packets. */
static void fill_train(uint8_t *bytes, unsigned packets, struct iovec iov[3], struct carrier_unit *unit)
{
	const struct fabric_end to = { .lid = 5, .sl = 3 }, from = { .lid = 9 };

	for (unsigned i = 0; i < packets * SEGMENT; i++)
		bytes[i] = (uint8_t)(i / SEGMENT * 16 + i % SEGMENT % 13);
	iov[0] = (struct iovec){ bytes, 100 };
	iov[1] = (struct iovec){ bytes + 100, 2 * SEGMENT };
	iov[2] = (struct iovec){ bytes + 100 + 2 * SEGMENT, (packets - 2) * SEGMENT - 100 };
	*unit = (struct carrier_unit){ .iov = iov, .count = 3, .segment = SEGMENT,
				       .to = fabric_addr_of(&to), .from = fabric_addr_of(&from) };
}

static void expect_packet(int fd, const uint8_t *bytes)
{
	uint8_t message[PLUG_MESSAGE_BYTES];
	const size_t head = sizeof(struct plug_head) + IB_LRH_BYTES;

	assert_int_equal(recv(fd, message, sizeof(message), 0), head + SEGMENT);
	assert_int_equal(((const struct plug_head *)(const void *)message)->type, PLUG_PACKET);
	assert_memory_equal(message + head, bytes, SEGMENT);
}

static void packets_of_a_train_become_messages_in_their_order(void **state)
{
	static uint8_t bytes[8 * SEGMENT];
	struct carrier_unit unit;
	struct carrier *c;
	struct iovec iov[3];
	int fd = open_carrier(&c);

	fill_train(bytes, 8, iov, &unit);
	assert_int_equal(carrier_emit(c, &unit, 1), 1);
	for (unsigned i = 0; i < 8; i++)
		expect_packet(fd, bytes + i * SEGMENT);
	assert_int_equal(carrier_next_ns(c), UINT64_MAX);
	carrier_close(c);
	close(fd);
}

static void an_acknowledgement_at_the_end_of_a_train_leaves_first(void **state)
{
	static uint8_t bytes[3 * SEGMENT];
	struct carrier_unit unit;
	struct carrier *c;
	struct iovec iov[3];
	int fd = open_carrier(&c);

	fill_train(bytes, 3, iov, &unit);
	bytes[2 * SEGMENT] = IB_ACKNOWLEDGE;
	assert_int_equal(carrier_emit(c, &unit, 1), 1);
	expect_packet(fd, bytes + 2 * SEGMENT);
	expect_packet(fd, bytes);
	expect_packet(fd, bytes + SEGMENT);
	carrier_close(c);
	close(fd);
}

static void a_full_socket_loses_nothing(void **state)
{
	static uint8_t bytes[8 * SEGMENT];
	struct carrier_unit unit;
	unsigned trains = 0, read = 0;
	struct carrier *c;
	struct iovec iov[3];
	int fd = open_carrier(&c), ret;

	fill_train(bytes, 8, iov, &unit);
	while ((ret = carrier_emit(c, &unit, 1)) == 1)
		trains++;
	assert_int_equal(ret, -EAGAIN);
	assert_true(trains > 1 && trains < 1000);
	while (read < 8 * trains) {
		expect_packet(fd, bytes + read++ % 8 * SEGMENT);
		/* Sends what is left of a train. */
		carrier_poll(c, 1);
	}
	assert_int_equal(recv(fd, bytes, 1, 0), -1);
	assert_int_equal(carrier_emit(c, &unit, 1), 1);
	carrier_close(c);
	close(fd);
}

static void say(int fd, enum plug_type type, uint32_t a)
{
	assert_int_equal(plug_send(fd, type, a, 0, NULL, 0), 0);
}

static void what_arrives_is_told_by_its_kind(void **state)
{
	uint8_t packet[IB_NATIVE_BYTES_MAX];
	struct plugged_counters counters;
	struct ib_native n;
	struct carrier *c;
	int fd = open_carrier(&c);
	size_t bytes = any_packet(&n, packet), at = IB_LRH_BYTES + (n.has_grh ? IB_GRH_BYTES : 0);

	assert_int_equal(plug_send(fd, PLUG_PACKET, 0, 0, packet, bytes), 0);
	say(fd, PLUG_EVENT, 10);
	say(fd, (enum plug_type)200, 0);
	packet[0] |= 1;
	assert_int_equal(plug_send(fd, PLUG_PACKET, 0, 0, packet, bytes), 0);
	carrier_poll(c, 8);
	assert_int_equal(heard.units, 1);
	assert_int_equal(heard.bytes, bytes - at);
	assert_int_equal(fabric_end_of(&heard.from).lid, n.lrh.slid);
	assert_memory_equal(heard.first, packet + at, bytes - at < 64 ? bytes - at : 64);
	assert_int_equal(heard.messages, 1);
	plugged_count(c, &counters);
	assert_int_equal(counters.malformed, 2);
	carrier_close(c);
	close(fd);
}

static void the_end_is_told_once_and_then_packets_get_lost(void **state)
{
	static uint8_t bytes[4 * SEGMENT];
	struct carrier_unit unit;
	struct carrier *c;
	struct iovec iov[3];
	int fd = open_carrier(&c);

	fill_train(bytes, 4, iov, &unit);
	say(fd, PLUG_EVENT, 9);
	close(fd);
	carrier_poll(c, 8);
	carrier_poll(c, 8);
	assert_int_equal(heard.messages, 1);
	assert_int_equal(heard.ends, 1);
	assert_int_equal(carrier_emit(c, &unit, 1), 1);
	carrier_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_packet_has_the_headers_and_the_icrc_of_the_specification),
		cmocka_unit_test(what_changes_on_the_way_is_not_in_the_icrc),
		cmocka_unit_test(headers_that_cannot_be_are_refused),
		cmocka_unit_test(packets_of_a_train_become_messages_in_their_order),
		cmocka_unit_test(an_acknowledgement_at_the_end_of_a_train_leaves_first),
		cmocka_unit_test(a_full_socket_loses_nothing),
		cmocka_unit_test(what_arrives_is_told_by_its_kind),
		cmocka_unit_test(the_end_is_told_once_and_then_packets_get_lost),
	};

	prng = prng_from(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
