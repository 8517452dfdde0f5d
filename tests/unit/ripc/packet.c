/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash, and the packets that carry an authentication code: resolver, connections. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ripc/wire/packet.h"
#include "ripc/wire/siphash.h"

static const struct packet_key no_key;

static struct packet_key key_of(const char *secret)
{
	struct packet_key key;

	packet_key_make(&key, secret, strlen(secret));
	return key;
}

static void of_hex(const char *hex, uint8_t *out, size_t bytes)
{
	assert_int_equal(strlen(hex), 2 * bytes);
	for (size_t i = 0; i < bytes; i++)
		out[i] = (uint8_t)strtoul((char[]){ hex[2 * i], hex[2 * i + 1], 0 }, NULL, 16);
}

/* Key and text count up from 0, as in the vectors of the authors. */
static void hashes_as_the_reference_does(void **state)
{
	static const struct {
		size_t length;
		const char *code;
	} vectors[] = {
		{ 0, "a3817f04ba25a8e66df67214c7550293" },
		{ 1, "da87c1d86b99af44347659119b22fc45" },
		{ 7, "a1f1ebbed8dbc153c0b84aa61ff08239" },
		{ 8, "3b62a9ba6258f5610f83e264f31497b4" },
		{ 15, "5493e99933b0a8117e08ec0f97cfc3d9" },
		{ 63, "5150d1772f50834a503e069a973fbd7c" },
	};
	uint8_t key[16], text[64], wanted[SIPHASH_BYTES], got[SIPHASH_BYTES];

	for (unsigned i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)i;
	memcpy(key, text, sizeof(key));
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		of_hex(vectors[i].code, wanted, sizeof(wanted));
		siphash(key, text, vectors[i].length, got);
		assert_memory_equal(got, wanted, sizeof(got));
	}
}

static void makes_another_key_of_each_secret(void **state)
{
	struct packet_key a = key_of("0123456789abcdef"), b = key_of("0123456789abcdefg"),
			  c = key_of("1123456789abcdef"), d = key_of("0123456789abcdef");

	assert_true(a.set);
	assert_memory_equal(a.bytes, d.bytes, sizeof(a.bytes));
	assert_memory_not_equal(a.bytes, b.bytes, sizeof(a.bytes));
	assert_memory_not_equal(a.bytes, c.bytes, sizeof(a.bytes));
}

static struct packet_resolve example(uint8_t type)
{
	struct packet_resolve p = {
		.type = type, .nonce = UINT64_C(0x1122334455667788), .from = 7,
		.id = 0x01020304, .lifetime_s = 60,
		.where = { .instance = UINT64_C(0xa1a2a3a4a5a6a7a8), .port = 0x1234,
			   .ud_qpn = 0x00abcdef, .ud_qkey = 0x80000001 },
		.name = "store",
	};

	memset(p.where.address, 0x11, sizeof(p.where.address));
	memset(p.where.ud_gid, 0x22, sizeof(p.where.ud_gid));
	return p;
}

static void same(const struct packet_resolve *a, const struct packet_resolve *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->nonce, b->nonce);
	assert_int_equal(a->from, b->from);
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->lifetime_s, b->lifetime_s);
	assert_int_equal(a->where.instance, b->where.instance);
	assert_memory_equal(a->where.address, b->where.address, 16);
	assert_int_equal(a->where.port, b->where.port);
	assert_int_equal(a->where.ud_qpn, b->where.ud_qpn);
	assert_int_equal(a->where.ud_qkey, b->where.ud_qkey);
	assert_memory_equal(a->where.ud_gid, b->where.ud_gid, 16);
	assert_string_equal(a->name, b->name);
}

static void brings_every_question_and_answer_over(void **state)
{
	const struct packet_key keys[] = { no_key, key_of("0123456789abcdef") };

	for (unsigned k = 0; k < 2; k++)
		for (uint8_t type = PACKET_ASK; type <= PACKET_ENTERED; type++)
			for (size_t name = 0; name <= RIPC_NAME_MAX; name += 21) {
				struct packet_resolve p = example(type), got;
				uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];
				size_t length;

				memset(p.name, 0, sizeof(p.name));
				memset(p.name, 'n', name);
				length = packet_resolve_encode(&p, &keys[k], bytes);
				assert_int_equal(packet_resolve_decode(&got, &keys[k], bytes,
								       length), 0);
				same(&p, &got);
			}
}

static void is_the_same_on_every_machine(void **state)
{
	const struct packet_resolve p = example(PACKET_ASK);
	uint8_t wanted[81], got[PACKET_RESOLVE_BYTES_MAX];

	of_hex("52495052" "01" "01" "00" "05" "1122334455667788" "00000007" "01020304"
	       "003c" "1234" "a1a2a3a4a5a6a7a8" "11111111111111111111111111111111"
	       "00abcdef" "80000001" "22222222222222222222222222222222" "73746f7265",
	       wanted, sizeof(wanted));
	assert_int_equal(packet_resolve_encode(&p, &no_key, got), sizeof(wanted));
	assert_memory_equal(got, wanted, sizeof(wanted));
}

/* Exactly `length` bytes of memory, so that a sanitizer sees a read behind them. */
static int decoded(const uint8_t *bytes, size_t length, const struct packet_key *key)
{
	uint8_t *copy = malloc(length ? length : 1);
	struct packet_resolve got;
	int ret;

	assert_non_null(copy);
	memcpy(copy, bytes, length);
	ret = packet_resolve_decode(&got, key, copy, length);
	free(copy);
	return ret;
}

static void refuses_what_is_cut_off_or_too_long(void **state)
{
	const struct packet_key keys[] = { no_key, key_of("0123456789abcdef") };

	for (unsigned k = 0; k < 2; k++) {
		const struct packet_resolve p = example(PACKET_TELL);
		uint8_t bytes[PACKET_RESOLVE_BYTES_MAX + 1] = { 0 };
		const size_t length = packet_resolve_encode(&p, &keys[k], bytes);

		for (size_t cut = 0; cut < length; cut++)
			assert_int_equal(decoded(bytes, cut, &keys[k]), -EBADMSG);
		assert_int_equal(decoded(bytes, length + 1, &keys[k]), -EBADMSG);
		assert_int_equal(decoded(bytes, length, &keys[k]), 0);
	}
}

static void refuses_another_magic_version_or_flag(void **state)
{
	const struct packet_resolve p = example(PACKET_ASK);
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];
	const size_t length = packet_resolve_encode(&p, &no_key, bytes);

	bytes[0] ^= 1;
	assert_int_equal(decoded(bytes, length, &no_key), -EBADMSG);
	bytes[0] ^= 1;
	bytes[4]++;
	assert_int_equal(decoded(bytes, length, &no_key), -EPROTONOSUPPORT);
	/* Another version may be of any length. */
	assert_int_equal(decoded(bytes, 5, &no_key), -EPROTONOSUPPORT);
	bytes[4]--;
	bytes[6] = 2;
	assert_int_equal(decoded(bytes, length, &no_key), -EBADMSG);
}

static void refuses_every_changed_bit_with_a_secret(void **state)
{
	const struct packet_key key = key_of("0123456789abcdef");
	const struct packet_resolve p = example(PACKET_TELL);
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];
	const size_t length = packet_resolve_encode(&p, &key, bytes);

	for (size_t bit = 0; bit < 8 * length; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_not_equal(decoded(bytes, length, &key), 0);
		if (bit / 8 >= 8) /* behind what says how to read it */
			assert_int_equal(decoded(bytes, length, &key), -EKEYREJECTED);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(decoded(bytes, length, &key), 0);
}

static void refuses_a_missing_foreign_or_unwanted_code(void **state)
{
	const struct packet_key key = key_of("0123456789abcdef"),
				other = key_of("fedcba9876543210");
	const struct packet_resolve p = example(PACKET_ASK);
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];
	size_t length = packet_resolve_encode(&p, &no_key, bytes);

	assert_int_equal(decoded(bytes, length, &key), -EKEYREJECTED);
	length = packet_resolve_encode(&p, &key, bytes);
	assert_int_equal(decoded(bytes, length, &other), -EKEYREJECTED);
	assert_int_equal(decoded(bytes, length, &no_key), -EKEYREJECTED);
}

static int decoded_again(const struct packet_resolve *p)
{
	uint8_t bytes[PACKET_RESOLVE_BYTES_MAX];

	return decoded(bytes, packet_resolve_encode(p, &no_key, bytes), &no_key);
}

static void refuses_what_makes_no_sense(void **state)
{
	struct packet_resolve p = example(0);

	assert_int_equal(decoded_again(&p), -EBADMSG);
	p = example(PACKET_ENTERED + 1);
	assert_int_equal(decoded_again(&p), -EBADMSG);
	p = example(PACKET_ASK);
	p.where.instance = 0;
	assert_int_equal(decoded_again(&p), -EBADMSG);
	p = example(PACKET_ASK);
	p.id = 0;
	assert_int_equal(decoded_again(&p), 0);
	p.name[0] = 0;
	assert_int_equal(decoded_again(&p), -EBADMSG);
	p = example(PACKET_TELL);
	p.id = 0;
	assert_int_equal(decoded_again(&p), -EBADMSG);
}

static void knows_a_name_when_it_sees_one(void **state)
{
	static const struct {
		const char *name;
		bool valid;
	} names[] = {
		{ "", false }, { "a", true }, { "key value store", true },
		{ "Gr\xc3\xbc\xc3\x9f" "e", true }, { "\xe2\x82\xac", true },
		{ "\xf0\x9f\x98\x80", true },
		{ "a\nb", false }, { "\x7f", false }, { "\xc2\x85", false }, /* controls */
		{ "\xc3", false }, { "\x80", false }, { "\xff", false }, /* no UTF-8 */
		{ "\xc0\xaf", false }, { "\xe0\x80\xaf", false }, /* too long a way */
		{ "\xed\xa0\x80", false }, { "\xf4\x90\x80\x80", false }, /* no character */
	};
	char bytes[RIPC_NAME_MAX + 1];
	struct packet_resolve p = example(PACKET_ASK);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(packet_name_valid(names[i].name, strlen(names[i].name)),
				 names[i].valid);
	memset(bytes, 'n', sizeof(bytes));
	assert_true(packet_name_valid(bytes, RIPC_NAME_MAX));
	assert_false(packet_name_valid(bytes, RIPC_NAME_MAX + 1));
	assert_false(packet_name_valid("a\0b", 3));
	memcpy(p.name, "st\xff", 4);
	assert_int_equal(decoded_again(&p), -EBADMSG);
}

static const struct packet_connect connect_example = {
	.instance = UINT64_C(0xa1a2a3a4a5a6a7a8), .to = UINT64_C(0xb1b2b3b4b5b6b7b8),
	.credits = 32, .message_bytes = 2048,
};

static void brings_private_data_over(void **state)
{
	const struct packet_key keys[] = { no_key, key_of("0123456789abcdef") };

	for (unsigned k = 0; k < 2; k++) {
		/* Fabrics pad it. */
		uint8_t bytes[PACKET_CONNECT_BYTES + 4] = { 0 };
		struct packet_connect got;

		packet_connect_encode(&connect_example, &keys[k], 0, bytes);
		assert_int_equal(packet_connect_decode(&got, &keys[k], 0, bytes,
						       sizeof(bytes)), 0);
		assert_int_equal(got.instance, connect_example.instance);
		assert_int_equal(got.to, connect_example.to);
		assert_int_equal(got.credits, 32);
		assert_int_equal(got.message_bytes, 2048);
		for (size_t cut = 0; cut < PACKET_CONNECT_BYTES; cut++)
			assert_int_equal(packet_connect_decode(&got, &keys[k], 0, bytes, cut),
					 -EBADMSG);
	}
}

static void has_the_same_private_data_on_every_machine(void **state)
{
	uint8_t wanted[PACKET_CONNECT_BYTES], got[PACKET_CONNECT_BYTES];

	of_hex("52495043" "01" "00" "0020" "00000800" "a1a2a3a4a5a6a7a8" "b1b2b3b4b5b6b7b8"
	       "0000000000000000" "00000000000000000000000000000000", wanted, sizeof(wanted));
	packet_connect_encode(&connect_example, &no_key, 0, got);
	assert_memory_equal(got, wanted, sizeof(wanted));
}

static void refuses_changed_private_data(void **state)
{
	const struct packet_key key = key_of("0123456789abcdef"),
				other = key_of("fedcba9876543210");
	uint8_t bytes[PACKET_CONNECT_BYTES];
	struct packet_connect got;

	packet_connect_encode(&connect_example, &no_key, 0, bytes);
	assert_int_equal(packet_connect_decode(&got, &key, 0, bytes, sizeof(bytes)), -EKEYREJECTED);
	bytes[4]++;
	assert_int_equal(packet_connect_decode(&got, &no_key, 0, bytes, sizeof(bytes)),
			 -EPROTONOSUPPORT);
	packet_connect_encode(&connect_example, &key, 0, bytes);
	assert_int_equal(packet_connect_decode(&got, &no_key, 0, bytes, sizeof(bytes)),
			 -EKEYREJECTED);
	assert_int_equal(packet_connect_decode(&got, &other, 0, bytes, sizeof(bytes)),
			 -EKEYREJECTED);
	for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_not_equal(packet_connect_decode(&got, &key, 0, bytes, sizeof(bytes)),
				     0);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(packet_connect_decode(&got, &key, 0, bytes, sizeof(bytes)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_as_the_reference_does),
		cmocka_unit_test(makes_another_key_of_each_secret),
		cmocka_unit_test(brings_every_question_and_answer_over),
		cmocka_unit_test(is_the_same_on_every_machine),
		cmocka_unit_test(refuses_what_is_cut_off_or_too_long),
		cmocka_unit_test(refuses_another_magic_version_or_flag),
		cmocka_unit_test(refuses_every_changed_bit_with_a_secret),
		cmocka_unit_test(refuses_a_missing_foreign_or_unwanted_code),
		cmocka_unit_test(refuses_what_makes_no_sense),
		cmocka_unit_test(knows_a_name_when_it_sees_one),
		cmocka_unit_test(brings_private_data_over),
		cmocka_unit_test(has_the_same_private_data_on_every_machine),
		cmocka_unit_test(refuses_changed_private_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
