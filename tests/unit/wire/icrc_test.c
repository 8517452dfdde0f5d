/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ICRC: packets as adapters and other programs sent them, and an implementation that
 * goes bit by bit over a whole packet and was written from annex A17 alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "util/prng.h"
#include "wire/ib/icrc.h"

#define PACKET_MAX 4400

static struct prng prng = { 7 };

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)prng_below(&prng, n);
}

static void random_fill(uint8_t *to, size_t bytes)
{
	while (bytes--)
		*to++ = (uint8_t)random_below(256);
}

/* ---- bit by bit ---- */

static uint32_t slow_run(uint32_t crc, const uint8_t *data, size_t bytes)
{
	while (bytes--) {
		crc ^= *data++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return crc;
}

static void set(uint8_t *at, size_t bytes)
{
	memset(at, 0xff, bytes);
}

/* Of an IP packet without its ICRC. */
static void slow_icrc(const uint8_t *ip, size_t bytes, uint8_t to[4])
{
	uint8_t copy[8 + PACKET_MAX], *p = copy + 8, *udp;
	uint32_t crc;

	set(copy, 8);
	memcpy(p, ip, bytes);
	if (p[0] >> 4 == 4) {
		set(p + 1, 1);
		set(p + 8, 1);
		set(p + 10, 2);
		udp = p + 20;
	} else {
		p[0] |= 0x0f;
		set(p + 1, 3);
		set(p + 7, 1);
		udp = p + 40;
	}
	set(udp + 6, 2);
	set(udp + 8 + 4, 1);
	crc = ~slow_run(~0u, copy, 8 + bytes);
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(crc >> 8 * i);
}

/* ---- packets ---- */

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static const uint8_t *parse(const uint8_t *packet, struct icrc_ip *ip)
{
	const uint8_t *udp;

	memset(ip, 0, sizeof(*ip));
	ip->version = packet[0] >> 4;
	if (ip->version == 4) {
		udp = packet + 20;
		ip->id = get16(packet + 4);
		ip->dont_fragment = packet[6] & 0x40;
		memcpy(ip->src, packet + 12, 4);
		memcpy(ip->dst, packet + 16, 4);
	} else {
		udp = packet + 40;
		memcpy(ip->src, packet + 8, 16);
		memcpy(ip->dst, packet + 24, 16);
	}
	ip->src_port = get16(udp);
	ip->dst_port = get16(udp + 2);
	ip->udp_length = get16(udp + 4);
	return udp + 8;
}

/* The packet from the IP header to the pad. */
static struct icrc calculate(const uint8_t *packet, size_t bytes)
{
	struct icrc_ip ip;
	const uint8_t *bth = parse(packet, &ip);
	struct icrc c;

	icrc_begin(&c, &ip, bth);
	icrc_add(&c, bth + 12, (size_t)(packet + bytes - bth) - 12);
	return c;
}

static void is_icrc_of(const uint8_t *packet, size_t bytes, const uint8_t icrc[4])
{
	const struct icrc c = calculate(packet, bytes);
	uint8_t out[4];

	icrc_end(&c, out);
	assert_memory_equal(out, icrc, 4);
	assert_true(icrc_matches(&c, icrc));
}

/* A CNP of a ConnectX-4 Lx, captured; published with the tests of scapy. */
static const uint8_t cnp[] = {
	0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00,
	0x11, 0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00,
	0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t cnp_icrc[] = { 0x82, 0xfd, 0x00, 0x2a };

/* A UC SEND of 18 bytes with two bytes of pad, from the same place. */
static const uint8_t uc_send[] = {
	0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11, 0xb4, 0xd5, 0xc0, 0xa8,
	0x00, 0x07, 0xc0, 0xa8, 0x00, 0x07, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x2c, 0xac, 0xa2,
	0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10, 0x46, 0x30,
	0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50, 0x54, 0x01, 0xbe, 0x88,
	0x5e, 0x50, 0x00, 0x00,
};
static const uint8_t uc_send_icrc[] = { 0x78, 0xf3, 0x53, 0xf3 };

/* An RDMA WRITE Only of 128 bytes of ones without DF, from the tests of open-rdma. */
static const uint8_t write_only[56 + 128] = {
	0x45, 0x00, 0x00, 0xbc, 0x00, 0x01, 0x00, 0x00, 0x40, 0x11, 0xf8, 0xda, 0xc0, 0xa8,
	0x00, 0x02, 0xc0, 0xa8, 0x00, 0x03, 0x12, 0xb7, 0x12, 0xb7, 0x00, 0xa8, 0x00, 0x00,
	0x0a, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x7f, 0x7e, 0x91, 0x00, 0x00, 0x00, 0x01, 0x70, 0x9a, 0x33, 0x00, 0x00, 0x00, 0x80,
	[56 ... 56 + 127] = 0xff,
};
static const uint8_t write_only_icrc[] = { 0xc6, 0x87, 0x22, 0x98 };

static void packets_of_others_have_this_icrc(void **state)
{
	uint8_t slow[4];

	(void)state;
	is_icrc_of(cnp, sizeof(cnp), cnp_icrc);
	is_icrc_of(uc_send, sizeof(uc_send), uc_send_icrc);
	is_icrc_of(write_only, sizeof(write_only), write_only_icrc);
	slow_icrc(cnp, sizeof(cnp), slow);
	assert_memory_equal(slow, cnp_icrc, 4);
}

static void fields_that_switches_change_do_not_count(void **state)
{
	uint8_t changed[sizeof(uc_send)];

	(void)state;
	memcpy(changed, uc_send, sizeof(changed));
	changed[28 + 4] = 0xc0; /* FECN and BECN */
	is_icrc_of(changed, sizeof(changed), uc_send_icrc);
}

/* Sets the lengths in its headers. Returns its own, without the ICRC. */
static size_t set_lengths(uint8_t *p, unsigned version, size_t payload)
{
	size_t ip = version == 4 ? 20 : 40, udp = 8 + 12 + payload + 4;
	uint16_t length = (uint16_t)(version == 4 ? ip + udp : udp);

	p[version == 4 ? 2 : 4] = (uint8_t)(length >> 8);
	p[version == 4 ? 3 : 5] = (uint8_t)length;
	p[ip + 4] = (uint8_t)(udp >> 8);
	p[ip + 5] = (uint8_t)udp;
	return ip + 8 + 12 + payload;
}

static size_t random_packet(uint8_t *p, unsigned version, size_t payload)
{
	random_fill(p, (version == 4 ? 20 : 40) + 8 + 12 + payload);
	p[0] = (uint8_t)(version == 4 ? 0x45 : 0x60 | (p[0] & 15));
	if (version == 4) {
		p[6] &= 0x40;
		p[7] = 0;
		p[9] = 17;
	} else {
		p[6] = 17;
	}
	return set_lengths(p, version, payload);
}

/* The same as by icrc_begin(), whatever the packets have in common. */
static void packets_of_a_series_have_the_icrc_of_each(void **state)
{
	uint8_t packet[PACKET_MAX];

	(void)state;
	for (unsigned run = 0; run < 2000; run++) {
		unsigned version = random_below(2) ? 4 : 6;
		/* Of few lengths, so that packets find those of earlier ones. */
		const unsigned lengths = 1 + random_below(6);
		struct icrc_series series = { 0 };
		uint8_t *bth;

		random_packet(packet, version, 4 * 99);
		bth = (uint8_t *)(uintptr_t)parse(packet, &series.ip);
		for (unsigned k = 0; k < 24; k++) {
			size_t bytes = set_lengths(packet, version, 4 * random_below(lengths));
			struct icrc_ip ip;
			struct icrc c;
			uint8_t out[4];

			random_fill(bth + 8, 4);
			if (!random_below(3))
				bth[random_below(8)] ^= (uint8_t)(1 << random_below(8));
			if (version == 4 && random_below(3))
				random_fill(packet + 4, 2);
			parse(packet, &ip);
			icrc_next(&c, &series, bth, ip.udp_length, ip.id);
			icrc_add(&c, bth + 8, (size_t)(packet + bytes - bth) - 8);
			icrc_end(&c, out);
			is_icrc_of(packet, bytes, out);
		}
	}
}

static void random_packets_have_the_icrc_of_the_slow_way(void **state)
{
	uint8_t packet[PACKET_MAX], slow[4];

	(void)state;
	for (unsigned run = 0; run < 4000; run++) {
		size_t bytes = random_packet(packet, run & 1 ? 4 : 6,
					     4 * random_below(run % 8 ? 40 : 1030));

		slow_icrc(packet, bytes, slow);
		is_icrc_of(packet, bytes, slow);
	}
}

static void pieces_of_any_length_yield_the_same(void **state)
{
	uint8_t packet[PACKET_MAX], slow[4];

	(void)state;
	for (unsigned run = 0; run < 2000; run++) {
		size_t bytes = random_packet(packet, run & 1 ? 4 : 6,
					     4 * random_below(200));
		struct icrc_ip ip;
		const uint8_t *at = parse(packet, &ip);
		struct icrc c;

		slow_icrc(packet, bytes, slow);
		icrc_begin(&c, &ip, at);
		at += 12;
		while (at < packet + bytes) {
			size_t n = random_below(run % 3 ? 20 : 300);

			if (n > (size_t)(packet + bytes - at))
				n = (size_t)(packet + bytes - at);
			icrc_add(&c, at, n);
			at += n;
		}
		assert_true(icrc_matches(&c, slow));
	}
}

/* From memory of exactly that length, so that a sanitizer sees what is read beyond. */
static void method_agrees(enum icrc_method method, size_t bytes)
{
	uint8_t *data = malloc(bytes ? bytes : 1);
	uint32_t crc = (uint32_t)prng_next(&prng);

	assert_non_null(data);
	random_fill(data, bytes);
	for (size_t skip = 0; skip < 3 && skip <= bytes; skip++)
		if (icrc_run(method, crc, data + skip, bytes - skip) !=
		    slow_run(crc, data + skip, bytes - skip))
			fail_msg("%s: %zu bytes", icrc_method_name(method), bytes - skip);
	free(data);
}

static void each_method_of_this_processor_agrees(void **state)
{
	(void)state;
	assert_true(icrc_method_there(ICRC_PORTABLE));
	assert_true(icrc_method_there(icrc_method_best()));
	for (unsigned method = 0; method < ICRC_METHODS; method++) {
		if (!icrc_method_there(method))
			continue;
		print_message("%s\n", icrc_method_name(method));
		for (size_t bytes = 0; bytes < 700; bytes++)
			method_agrees(method, bytes);
		for (size_t bytes = 4090; bytes < 4100; bytes++)
			method_agrees(method, bytes);
	}
}

/* ---- an identification that is not known ---- */

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* What the ICRC is with each of the 65536 ids, and whether it is found again. */
static void ids_are_found(size_t payload)
{
	static uint32_t all[65536];
	uint8_t packet[PACKET_MAX], icrc[4];
	size_t bytes = random_packet(packet, 4, payload);
	struct icrc without;
	uint16_t udp_length = get16(packet + 24), found;
	unsigned matches = 0;

	packet[4] = packet[5] = 0;
	without = calculate(packet, bytes);
	for (unsigned id = 0; id < 65536; id++) {
		struct icrc c;

		packet[4] = (uint8_t)(id >> 8);
		packet[5] = (uint8_t)id;
		c = calculate(packet, bytes);
		icrc_end(&c, icrc);
		memcpy(&all[id], icrc, 4);
		found = (uint16_t)~id;
		assert_true(icrc_matches_any_id(&without, udp_length, icrc, &found));
		assert_int_equal(found, id);
	}
	qsort(all, 65536, sizeof(all[0]), compare);
	for (unsigned run = 0; run < 300000; run++) {
		uint32_t any = (uint32_t)prng_next(&prng);
		bool is_one = bsearch(&any, all, 65536, sizeof(all[0]), compare);

		memcpy(icrc, &any, 4);
		matches += is_one;
		if (icrc_matches_any_id(&without, udp_length, icrc, NULL) != is_one)
			fail_msg("%zu bytes: %08x", payload, any);
	}
	assert_in_range(matches, 0, 40); /* 4.6 are to be expected */
}

static void an_unknown_id_is_found_and_nothing_else_passes(void **state)
{
	(void)state;
	ids_are_found(0);
	ids_are_found(4);
	ids_are_found(64);
	ids_are_found(4096 + 32);
}

static void an_error_is_no_id(void **state)
{
	uint8_t packet[sizeof(write_only)];

	(void)state;
	memcpy(packet, write_only, sizeof(packet));
	packet[4] = packet[5] = 0;
	for (unsigned bit = 0; bit < 8 * 128; bit++) {
		struct icrc c;
		uint16_t id;

		packet[56 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		c = calculate(packet, sizeof(packet));
		assert_false(icrc_matches_any_id(&c, 0xa8, write_only_icrc, &id));
		packet[56 + bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void lengths_that_no_packet_has_do_not_match(void **state)
{
	struct icrc c = { 0 };
	uint8_t icrc[4];

	(void)state;
	icrc_end(&c, icrc);
	assert_true(icrc_matches_any_id(&c, 24, icrc, NULL));
	for (unsigned length = 0; length < 24; length++)
		assert_false(icrc_matches_any_id(&c, (uint16_t)length, icrc, NULL));
	for (unsigned length = 24; length < 65536; length++)
		assert_int_equal(icrc_matches_any_id(&c, (uint16_t)length, icrc, NULL),
				 length % 4 == 0 && length <= 8 + 44 + 4096 + 4);
}

static void *first_use(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 1000; i++) {
		struct icrc c = calculate(cnp, sizeof(cnp));

		if (!icrc_matches(&c, cnp_icrc))
			return (void *)1;
	}
	return NULL;
}

static void threads_may_use_it_first_together(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, first_use, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_may_use_it_first_together), /* the first one */
		cmocka_unit_test(packets_of_others_have_this_icrc),
		cmocka_unit_test(fields_that_switches_change_do_not_count),
		cmocka_unit_test(packets_of_a_series_have_the_icrc_of_each),
		cmocka_unit_test(random_packets_have_the_icrc_of_the_slow_way),
		cmocka_unit_test(pieces_of_any_length_yield_the_same),
		cmocka_unit_test(each_method_of_this_processor_agrees),
		cmocka_unit_test(an_unknown_id_is_found_and_nothing_else_passes),
		cmocka_unit_test(an_error_is_no_id),
		cmocka_unit_test(lengths_that_no_packet_has_do_not_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
