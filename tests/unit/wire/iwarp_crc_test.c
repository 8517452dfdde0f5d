/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32C: the check values of RFC 3720, B.4, an implementation that goes bit by bit, and each
 * method of this processor.
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
#include "wire/iwarp/crc32c.h"

static struct prng prng = { 11 };

static uint32_t slow_run(uint32_t crc, const uint8_t *data, size_t bytes)
{
	while (bytes--) {
		crc ^= *data++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
	}
	return crc;
}

static void fill(uint8_t *to, size_t bytes)
{
	while (bytes--)
		*to++ = (uint8_t)prng_next(&prng);
}

static void is_crc_of(const uint8_t *data, size_t bytes, const uint8_t want[4])
{
	uint32_t crc = crc32c_add(CRC32C_BEGIN, data, bytes);
	uint8_t got[4];

	crc32c_end(crc, got);
	assert_memory_equal(got, want, 4);
	assert_true(crc32c_matches(crc, want));
	crc32c_end(slow_run(CRC32C_BEGIN, data, bytes), got);
	assert_memory_equal(got, want, 4);
}

static void check_values_of_rfc_3720_are_right(void **state)
{
	static const uint8_t read_pdu[48] = { /* an iSCSI READ of 10 bytes */
		0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
		0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	};
	uint8_t data[32] = { 0 };

	(void)state;
	is_crc_of(data, 32, (const uint8_t[]){ 0xaa, 0x36, 0x91, 0x8a });
	memset(data, 0xff, 32);
	is_crc_of(data, 32, (const uint8_t[]){ 0x43, 0xab, 0xa8, 0x62 });
	for (unsigned i = 0; i < 32; i++)
		data[i] = (uint8_t)i;
	is_crc_of(data, 32, (const uint8_t[]){ 0x4e, 0x79, 0xdd, 0x46 });
	for (unsigned i = 0; i < 32; i++)
		data[i] = (uint8_t)(31 - i);
	is_crc_of(data, 32, (const uint8_t[]){ 0x5c, 0xdb, 0x3f, 0x11 });
	is_crc_of(read_pdu, sizeof(read_pdu), (const uint8_t[]){ 0x56, 0x3a, 0x96, 0xd9 });
	is_crc_of((const uint8_t *)"123456789", 9,
		  (const uint8_t[]){ 0x83, 0x92, 0x06, 0xe3 });
}

/* From memory of exactly that length, so that a sanitizer sees what is read beyond. */
static void method_agrees(enum crc32c_method method, size_t bytes)
{
	uint8_t *data = malloc(bytes ? bytes : 1);
	uint32_t crc = (uint32_t)prng_next(&prng);

	assert_non_null(data);
	fill(data, bytes);
	for (size_t skip = 0; skip < 3 && skip <= bytes; skip++)
		if (crc32c_run(method, crc, data + skip, bytes - skip) !=
		    slow_run(crc, data + skip, bytes - skip))
			fail_msg("%s: %zu bytes", crc32c_method_name(method), bytes - skip);
	free(data);
}

static void each_method_of_this_processor_agrees(void **state)
{
	(void)state;
	assert_true(crc32c_method_there(CRC32C_PORTABLE));
	assert_true(crc32c_method_there(crc32c_method_best()));
	for (unsigned method = 0; method < CRC32C_METHODS; method++) {
		if (!crc32c_method_there(method))
			continue;
		print_message("%s\n", crc32c_method_name(method));
		for (size_t bytes = 0; bytes < 1700; bytes += bytes < 300 ? 1 : 13)
			method_agrees(method, bytes);
		/* Around whole blocks of three lanes of 256 bytes. */
		for (size_t blocks = 768; blocks <= 3 * 768; blocks += 768)
			for (size_t bytes = blocks - 9; bytes < blocks + 9; bytes++)
				method_agrees(method, bytes);
		method_agrees(method, 65535);
	}
}

static void pieces_of_any_length_yield_the_same(void **state)
{
	static uint8_t data[4000];

	(void)state;
	for (unsigned run = 0; run < 500; run++) {
		size_t bytes = prng_below(&prng, sizeof(data)), at = 0;
		uint32_t crc = CRC32C_BEGIN;

		fill(data, bytes);
		while (at < bytes) {
			size_t n = prng_below(&prng, run % 3 ? 20 : 2000);

			n = n > bytes - at ? bytes - at : n;
			crc = crc32c_add(crc, data + at, n);
			at += n;
		}
		assert_int_equal(crc, slow_run(CRC32C_BEGIN, data, bytes));
	}
}

static void one_wrong_bit_does_not_match(void **state)
{
	uint8_t data[64], crc[4];

	(void)state;
	fill(data, sizeof(data));
	crc32c_end(crc32c_add(CRC32C_BEGIN, data, sizeof(data)), crc);
	for (unsigned bit = 0; bit < 8 * sizeof(data); bit++) {
		data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(crc32c_matches(crc32c_add(CRC32C_BEGIN, data, sizeof(data)),
					    crc));
		data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void *first_use(void *arg)
{
	for (unsigned i = 0; i < 1000; i++)
		if (crc32c_add(CRC32C_BEGIN, "123456789", 9) != ~0xe3069283u)
			return arg;
	return NULL;
}

static void threads_may_use_it_first_together(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, first_use, &prng), 0);
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
		cmocka_unit_test(check_values_of_rfc_3720_are_right),
		cmocka_unit_test(each_method_of_this_processor_agrees),
		cmocka_unit_test(pieces_of_any_length_yield_the_same),
		cmocka_unit_test(one_wrong_bit_does_not_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
