/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of messages. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ripc/wire/packet.h"

/* A message of this shape; SHORT has 3 bytes in its first item, 4 in the next. */
static struct packet_message example(uint8_t type, unsigned count, unsigned returns,
				     bool datagram)
{
	struct packet_message p = {
		.type = type, .credits = datagram ? 0 : 5, .from = 7, .to = 0x01020304,
		.instance = datagram ? UINT64_C(0xa1a2a3a4a5a6a7a8) : 0,
		.count = (uint8_t)count, .returns_count = (uint8_t)returns,
	};

	if (type != PACKET_SHORT && type != PACKET_CREDIT && type != PACKET_HOLD &&
	    type != PACKET_GO)
		p.number = UINT64_C(0x1122334455667788);
	if (type == PACKET_FAILED)
		p.error = ENOBUFS;
	for (unsigned i = 0; i < count; i++) {
		p.sizes[i] = i + 3;
		p.items[i] = (struct packet_memory){ .address = 0x1000 * (i + 1),
			.bytes = 100 + i, .key = 0xff000000 + i, .pushed = i % 3 == 1 };
	}
	for (unsigned i = 0; i < returns; i++)
		p.returns[i] = (struct packet_memory){ .address = 0x70000000 + 0x1000 * i,
			.bytes = 200 + i, .key = i };
	return p;
}

/* With the items of SHORT behind; how long in all. Room for those of 32 items. */
static size_t written(const struct packet_message *p, bool datagram, uint8_t *bytes)
{
	size_t length = packet_message_encode(p, datagram, bytes);

	assert_int_equal(length, packet_message_bytes(p->type, p->count, p->returns_count,
						      datagram));
	if (p->type == PACKET_SHORT)
		for (unsigned i = 0; i < p->count; i++)
			for (unsigned k = 0; k < p->sizes[i]; k++)
				bytes[length++] = (uint8_t)i;
	return length;
}

#define BYTES_MAX (PACKET_MESSAGE_BYTES_MAX + 2048)

static void same_memory(const struct packet_memory *a, const struct packet_memory *b)
{
	assert_int_equal(a->address, b->address);
	assert_int_equal(a->bytes, b->bytes);
	assert_int_equal(a->key, b->key);
	assert_int_equal(a->pushed, b->pushed);
}

static void there_and_back(const struct packet_message *p, bool datagram)
{
	uint8_t bytes[BYTES_MAX];
	struct packet_message got;
	size_t length = written(p, datagram, bytes), header;

	memset(&got, 0xee, sizeof(got));
	assert_int_equal(packet_message_decode(&got, datagram, bytes, length, &header), 0);
	assert_int_equal(header, packet_message_bytes(p->type, p->count, p->returns_count,
						      datagram));
	assert_int_equal(got.type, p->type);
	assert_int_equal(got.credits, p->credits);
	assert_int_equal(got.from, p->from);
	assert_int_equal(got.to, p->to);
	assert_int_equal(got.error, p->error);
	assert_int_equal(got.instance, p->instance);
	assert_int_equal(got.number, p->number);
	assert_int_equal(got.count, p->count);
	assert_int_equal(got.returns_count, p->returns_count);
	for (unsigned i = 0; i < p->count; i++) {
		if (p->type == PACKET_SHORT)
			assert_int_equal(got.sizes[i], p->sizes[i]);
		else
			same_memory(&got.items[i], &p->items[i]);
	}
	for (unsigned i = 0; i < p->returns_count; i++)
		same_memory(&got.returns[i], &p->returns[i]);
	/* And no entry behind them. */
	if (p->count < RIPC_ITEMS_MAX) {
		assert_int_equal(got.sizes[p->count], 0xeeeeeeee);
		assert_int_equal(got.items[p->count].key, 0xeeeeeeee);
	}
	if (p->returns_count < RIPC_RETURNS_MAX)
		assert_int_equal(got.returns[p->returns_count].key, 0xeeeeeeee);
}

static void brings_every_type_over(void **state)
{
	for (unsigned datagram = 0; datagram < 2; datagram++) {
		for (uint8_t type = PACKET_DONE; type <= PACKET_TYPE_LAST; type++) {
			struct packet_message p = example(type, 0, 0, datagram);

			there_and_back(&p, datagram);
		}
		for (uint8_t type = PACKET_SHORT; type <= PACKET_LONG; type++)
			for (unsigned n = 0; n <= RIPC_ITEMS_MAX; n++)
				for (unsigned r = 0; r <= RIPC_RETURNS_MAX; r++) {
					struct packet_message p = example(type, n, r, datagram);

					there_and_back(&p, datagram);
				}
	}
}

static void is_small_where_it_counts(void **state)
{
	assert_int_equal(packet_message_bytes(PACKET_SHORT, 1, 0, false), 24);
	assert_int_equal(packet_message_bytes(PACKET_SHORT, 1, 0, true), 32);
	assert_int_equal(packet_message_bytes(PACKET_CREDIT, 0, 0, false), 20);
	assert_true(packet_message_bytes(PACKET_LONG, RIPC_ITEMS_MAX, RIPC_RETURNS_MAX,
					 true) <= PACKET_MESSAGE_BYTES_MAX);
	for (unsigned n = 0; n <= RIPC_ITEMS_MAX; n++)
		for (unsigned r = 0; r <= RIPC_RETURNS_MAX; r++)
			assert_int_equal(packet_message_bytes(PACKET_SHORT, n, r, r & 1) % 8, 0);
}

static void golden(const struct packet_message *p, bool datagram, const char *hex)
{
	uint8_t bytes[BYTES_MAX];
	char text[2 * PACKET_MESSAGE_BYTES_MAX + 1] = "";
	const size_t length = packet_message_encode(p, datagram, bytes);

	for (size_t i = 0; i < length; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	assert_string_equal(text, hex);
}

static void is_the_same_on_every_machine(void **state)
{
	struct packet_message p = example(PACKET_SHORT, 2, 0, false);

	golden(&p, false, "5249504d" "01" "01" "0005" "00000007" "01020304" "02" "00" "0000"
	       "00000003" "00000004" "00000000");
	p = example(PACKET_SHORT, 1, 0, true);
	golden(&p, true, "5249504d" "01" "01" "0000" "00000007" "01020304" "01" "00" "0000"
	       "a1a2a3a4a5a6a7a8" "00000003");
	p = example(PACKET_LONG, 2, 1, false);
	golden(&p, false, "5249504d" "01" "02" "0005" "00000007" "01020304" "02" "01" "0000"
	       "00000002" "1122334455667788" "0000000000001000" "0000000000000064" "ff000000"
	       "0000000000002000" "0000000000000065" "ff000001"
	       "0000000070000000" "00000000000000c8" "00000000");
	p = example(PACKET_DONE, 0, 0, false);
	golden(&p, false, "5249504d" "01" "03" "0005" "00000007" "01020304" "00" "00" "0000"
	       "00000000" "1122334455667788");
	p = example(PACKET_FAILED, 0, 0, false);
	golden(&p, false, "5249504d" "01" "04" "0005" "00000007" "01020304" "00" "00" "0000"
	       "00000069" "1122334455667788");
	p = example(PACKET_CREDIT, 0, 0, false);
	golden(&p, false, "5249504d" "01" "05" "0005" "00000007" "01020304" "00" "00" "0000");
	p = example(PACKET_REVOKE, 0, 0, false);
	golden(&p, false, "5249504d" "01" "06" "0005" "00000007" "01020304" "00" "00" "0000"
	       "00000000" "1122334455667788");
	p = example(PACKET_REVOKED, 0, 0, false);
	golden(&p, false, "5249504d" "01" "07" "0005" "00000007" "01020304" "00" "00" "0000"
	       "00000000" "1122334455667788");
}

/* Exactly `length` bytes of memory, so that a sanitizer sees a read behind them. */
static int decoded(const uint8_t *bytes, size_t length, bool datagram)
{
	uint8_t *copy = malloc(length ? length : 1);
	struct packet_message got;
	size_t header;
	int ret;

	assert_non_null(copy);
	memcpy(copy, bytes, length);
	ret = packet_message_decode(&got, datagram, copy, length, &header);
	free(copy);
	return ret;
}

static void refuses_what_is_cut_off_or_too_long(void **state)
{
	for (unsigned datagram = 0; datagram < 2; datagram++)
		for (uint8_t type = PACKET_SHORT; type <= PACKET_TYPE_LAST; type++) {
			const bool carries = type <= PACKET_LONG;
			const struct packet_message p = example(type, carries ? 3 : 0,
								carries ? 2 : 0, datagram);
			uint8_t bytes[BYTES_MAX];
			const size_t length = written(&p, datagram, bytes);

			for (size_t cut = 0; cut < length; cut++)
				assert_int_equal(decoded(bytes, cut, datagram), -EBADMSG);
			assert_int_equal(decoded(bytes, length + 1, datagram), -EBADMSG);
			assert_int_equal(decoded(bytes, length, datagram), 0);
		}
}

/* What comes of one byte being another one. */
static int with_byte(const struct packet_message *p, bool datagram, size_t at, uint8_t value)
{
	uint8_t bytes[BYTES_MAX] = { 0 };
	const size_t length = written(p, datagram, bytes);

	bytes[at] = value;
	return decoded(bytes, length, datagram);
}

static void refuses_another_magic_version_type_or_count(void **state)
{
	const struct packet_message p = example(PACKET_SHORT, 2, 0, false),
				    done = example(PACKET_DONE, 0, 0, false);

	assert_int_equal(with_byte(&p, false, 0, 0), -EBADMSG);
	assert_int_equal(with_byte(&p, false, 4, PACKET_VERSION + 1), -EPROTONOSUPPORT);
	assert_int_equal(with_byte(&p, false, 5, 0), -EBADMSG);
	assert_int_equal(with_byte(&p, false, 5, PACKET_TYPE_LAST + 1), -EBADMSG);
	assert_int_equal(with_byte(&p, false, 16, 255), -EBADMSG);
	assert_int_equal(with_byte(&p, false, 17, 255), -EBADMSG);
	assert_int_equal(with_byte(&p, false, 18, 1), -EBADMSG);
	assert_int_equal(with_byte(&p, false, 31, 1), -EBADMSG); /* padding */
	assert_int_equal(with_byte(&done, false, 16, 1), -EBADMSG);
	assert_int_equal(with_byte(&done, false, 23, 1), -EBADMSG);
}

static void refuses_sizes_that_do_not_add_up(void **state)
{
	struct packet_message p = example(PACKET_SHORT, 2, 0, false);
	uint8_t bytes[BYTES_MAX];
	size_t length = written(&p, false, bytes);

	/* The sum is right modulo 2^32. */
	p.sizes[0] = UINT32_MAX;
	p.sizes[1] = 8;
	packet_message_encode(&p, false, bytes);
	assert_int_equal(decoded(bytes, length, false), -EBADMSG);
}

static int memory_decoded(uint64_t address, uint64_t bytes, bool as_return)
{
	struct packet_message p = example(PACKET_LONG, 2, 1, false);
	uint8_t out[BYTES_MAX];

	*(as_return ? &p.returns[0] : &p.items[1]) =
		(struct packet_memory){ .address = address, .bytes = bytes };
	return decoded(out, written(&p, false, out), false);
}

static void refuses_memory_around_the_end_of_the_address_space(void **state)
{
	for (unsigned r = 0; r < 2; r++) {
		assert_int_equal(memory_decoded(UINT64_MAX - 9, 9, r), 0);
		assert_int_equal(memory_decoded(UINT64_MAX - 9, 11, r), -EBADMSG);
		assert_int_equal(memory_decoded(1, UINT64_MAX, r), -EBADMSG);
	}
	/* One is 100 bytes long. */
	assert_int_equal(memory_decoded(0, UINT64_MAX - 50, false), -EBADMSG);
}

static void refuses_numbers_that_no_message_has(void **state)
{
	struct packet_message p = example(PACKET_LONG, 1, 0, false);
	uint8_t bytes[BYTES_MAX];

	p.number = 0;
	assert_int_equal(decoded(bytes, written(&p, false, bytes), false), -EBADMSG);
	p = example(PACKET_FAILED, 0, 0, false);
	p.error = 0;
	assert_int_equal(decoded(bytes, written(&p, false, bytes), false), -EBADMSG);
	p.error = 4096;
	assert_int_equal(decoded(bytes, written(&p, false, bytes), false), -EBADMSG);
	p = example(PACKET_LONG, 1, 0, false);
	/* A pushed item that there is not. */
	assert_int_equal(with_byte(&p, false, 23, 2), -EBADMSG);
	p = example(PACKET_SHORT, 1, 0, true);
	p.instance = 0;
	assert_int_equal(decoded(bytes, written(&p, true, bytes), true), -EBADMSG);
	assert_int_equal(with_byte(&p, true, 7, 1), -EBADMSG); /* credits */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(brings_every_type_over),
		cmocka_unit_test(is_small_where_it_counts),
		cmocka_unit_test(is_the_same_on_every_machine),
		cmocka_unit_test(refuses_what_is_cut_off_or_too_long),
		cmocka_unit_test(refuses_another_magic_version_type_or_count),
		cmocka_unit_test(refuses_sizes_that_do_not_add_up),
		cmocka_unit_test(refuses_memory_around_the_end_of_the_address_space),
		cmocka_unit_test(refuses_numbers_that_no_message_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
