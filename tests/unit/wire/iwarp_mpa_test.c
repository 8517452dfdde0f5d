/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA request and reply frames: bytes counted by hand from RFC 5044, 7.1, and RFC 6581, round
 * trips, every prefix and every wrong bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#include "util/prng.h"
#include "wire/iwarp/mpa.h"

static struct prng prng = { 5 };

/* From memory of exactly that length, so that a sanitizer sees what is read beyond. */
static enum iwarp_error decode(const uint8_t *frame, size_t bytes, bool reply,
			       struct iwarp_mpa *mpa, size_t *frame_bytes)
{
	uint8_t *copy = malloc(bytes ? bytes : 1);
	enum iwarp_error error;

	assert_non_null(copy);
	memcpy(copy, frame, bytes);
	error = iwarp_mpa_decode(copy, bytes, reply, mpa, frame_bytes);
	free(copy);
	return error;
}

static void is_frame(const struct iwarp_mpa *mpa, const uint8_t *want, size_t bytes)
{
	uint8_t got[IWARP_MPA_FRAME_MAX];

	assert_int_equal(iwarp_mpa_encode(mpa, got), bytes);
	assert_memory_equal(got, want, bytes);
}

static void a_request_of_revision_1_stands_as_rfc_5044_says(void **state)
{
	static const uint8_t want[] = {
		'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'q', ' ', 'F', 'r', 'a', 'm', 'e',
		0xc0, 0x01, 0x00, 0x03, 'a', 'b', 'c',
	};

	(void)state;
	is_frame(&(struct iwarp_mpa){ .markers = true, .crc = true, .revision = 1,
				      .private_data = (const uint8_t *)"abc",
				      .private_bytes = 3 },
		 want, sizeof(want));
}

static void a_reply_of_revision_2_stands_as_rfc_6581_says(void **state)
{
	static const uint8_t want[] = {
		'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'p', ' ', 'F', 'r', 'a', 'm', 'e',
		0x30, 0x02, 0x00, 0x05, 0x80 | 0x12, 0x34, 0x40 | 0x3f, 0xff, 'x',
	};

	(void)state;
	is_frame(&(struct iwarp_mpa){ .reply = true, .reject = true, .revision = 2,
				      .enhanced = true, .peer_to_peer = true, .rtr_read = true,
				      .ird = 0x1234, .ord = 0x3fff,
				      .private_data = (const uint8_t *)"x",
				      .private_bytes = 1 },
		 want, sizeof(want));
}

/* What Linux's siw sends (revision 2, no CRC, IRD and ORD of 128, READ as the first message). */
static void a_request_of_siw_is_read(void **state)
{
	static const uint8_t frame[] = {
		'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R', 'e', 'q', ' ', 'F', 'r', 'a', 'm', 'e',
		0x18, 0x02, 0x00, 0x04, 0x80, 0x80, 0xc0, 0x80,
	};
	struct iwarp_mpa mpa;
	size_t bytes;

	(void)state;
	assert_int_equal(decode(frame, sizeof(frame), false, &mpa, &bytes), IWARP_OK);
	assert_int_equal(bytes, sizeof(frame));
	assert_false(mpa.markers || mpa.crc || mpa.reject || mpa.reply || mpa.rtr_send);
	assert_true(mpa.enhanced && mpa.peer_to_peer && mpa.rtr_write && mpa.rtr_read);
	assert_int_equal(mpa.revision, 2);
	assert_int_equal(mpa.ird, 128);
	assert_int_equal(mpa.ord, 128);
	assert_int_equal(mpa.private_bytes, 0);
}

static struct iwarp_mpa random_frame(const uint8_t *private_data)
{
	uint64_t bits = prng_next(&prng);
	struct iwarp_mpa mpa = {
		.reply = bits & 1, .markers = bits & 2, .crc = bits & 4,
		.reject = (bits & 1) && (bits & 8),
		.revision = (uint8_t)prng_below(&prng, 3),
		.private_data = private_data,
		.private_bytes = (uint16_t)prng_below(&prng, bits & 16 ? 20 : 509),
	};

	if (mpa.revision == 2 && (bits & 32)) {
		mpa.enhanced = true;
		mpa.peer_to_peer = bits & 64;
		mpa.rtr_send = bits & 128;
		mpa.rtr_write = bits & 256;
		mpa.rtr_read = bits & 512;
		mpa.ird = (uint16_t)prng_below(&prng, 0x4000);
		mpa.ord = (uint16_t)prng_below(&prng, 0x4000);
	}
	return mpa;
}

static void random_frames_come_back_as_they_were(void **state)
{
	uint8_t private_data[512], frame[IWARP_MPA_FRAME_MAX], again[IWARP_MPA_FRAME_MAX];

	(void)state;
	for (unsigned i = 0; i < sizeof(private_data); i++)
		private_data[i] = (uint8_t)prng_next(&prng);
	for (unsigned run = 0; run < 5000; run++) {
		struct iwarp_mpa mpa = random_frame(private_data), back;
		size_t bytes = iwarp_mpa_encode(&mpa, frame), got;

		assert_true(bytes >= IWARP_MPA_HEADER_BYTES);
		assert_int_equal(iwarp_mpa_decode(frame, bytes, mpa.reply, &back, &got),
				 IWARP_OK);
		assert_int_equal(got, bytes);
		assert_ptr_equal(back.private_data + back.private_bytes, frame + bytes);
		assert_memory_equal(back.private_data, private_data, mpa.private_bytes);
		assert_int_equal(iwarp_mpa_encode(&back, again), bytes);
		assert_memory_equal(again, frame, bytes);
		/* FPDUs behind the frame are none of its business. */
		assert_int_equal(iwarp_mpa_decode(frame, sizeof(frame), mpa.reply, &back, &got),
				 IWARP_OK);
		assert_int_equal(got, bytes);
	}
}

static void each_prefix_says_how_much_is_missing(void **state)
{
	uint8_t private_data[30] = { 0 }, frame[IWARP_MPA_FRAME_MAX];
	struct iwarp_mpa mpa = { .revision = 2, .enhanced = true, .ird = 3, .ord = 4,
				 .private_data = private_data, .private_bytes = 30 };
	size_t bytes = iwarp_mpa_encode(&mpa, frame);

	(void)state;
	for (size_t there = 0; there < bytes; there++) {
		struct iwarp_mpa untouched, got;
		size_t need = 0;

		memset(&untouched, 0x5a, sizeof(untouched));
		memset(&got, 0x5a, sizeof(got));
		assert_int_equal(decode(frame, there, false, &got, &need), IWARP_OK);
		assert_int_equal(need, there < 20 ? 20 : bytes);
		assert_memory_equal(&got, &untouched, sizeof(got));
		if (there)
			assert_int_equal(decode((const uint8_t *)"X", 1, false, &got, &need),
					 IWARP_MPA_KEY);
	}
}

static bool bit_is_reserved(unsigned byte, unsigned mask, const struct iwarp_mpa *mpa)
{
	if (byte != 16)
		return false;
	return mask <= 0x08 || (mask == 0x20 && !mpa->reply) ||
	       (mask == 0x10 && mpa->revision < 2);
}

/* But for what is reserved in a frame like `mpa`. */
static bool same_frame(const struct iwarp_mpa *mpa, const uint8_t *a, const uint8_t *b,
		       size_t bytes)
{
	for (unsigned bit = 0; bit < 8 * bytes; bit++) {
		unsigned mask = 1u << bit % 8;

		if (((a[bit / 8] ^ b[bit / 8]) & mask) && !bit_is_reserved(bit / 8, mask, mpa))
			return false;
	}
	return true;
}

/* Any bit of the header: another frame, which encodes to these bytes, a frame whose end has not
 * come, or none. Reserved bits change nothing. */
static void single_bits_change_the_frame_or_are_refused(const struct iwarp_mpa *mpa)
{
	uint8_t frame[IWARP_MPA_FRAME_MAX], again[IWARP_MPA_FRAME_MAX];
	size_t bytes = iwarp_mpa_encode(mpa, frame), got;

	for (unsigned bit = 0; bit < 8 * (bytes < 24 ? bytes : 24); bit++) {
		uint8_t mask = (uint8_t)(1 << bit % 8);
		struct iwarp_mpa other;
		enum iwarp_error error;

		frame[bit / 8] ^= mask;
		error = iwarp_mpa_decode(frame, bytes, mpa->reply, &other, &got);
		if (bit / 8 < 16)
			assert_int_equal(error, IWARP_MPA_KEY);
		if (bit_is_reserved(bit / 8, mask, mpa))
			assert_int_equal(error, IWARP_OK);
		if (!error && got <= bytes) {
			assert_int_equal(iwarp_mpa_encode(&other, again), got);
			assert_true(same_frame(&other, again, frame, got));
		}
		frame[bit / 8] ^= mask;
	}
}

static void each_wrong_bit_is_another_frame_or_refused(void **state)
{
	uint8_t private_data[512] = { 0 };

	(void)state;
	for (unsigned run = 0; run < 300; run++) {
		struct iwarp_mpa mpa = random_frame(private_data);

		single_bits_change_the_frame_or_are_refused(&mpa);
	}
}

static enum iwarp_error refused(unsigned flags, unsigned revision, unsigned length)
{
	uint8_t frame[20 + 600] = "MPA ID Req Frame";
	struct iwarp_mpa mpa;
	size_t bytes;

	frame[16] = (uint8_t)flags;
	frame[17] = (uint8_t)revision;
	frame[18] = (uint8_t)(length >> 8);
	frame[19] = (uint8_t)length;
	return iwarp_mpa_decode(frame, sizeof(frame), false, &mpa, &bytes);
}

static void what_is_no_frame_is_refused_with_its_reason(void **state)
{
	struct iwarp_mpa mpa;
	size_t bytes;

	(void)state;
	assert_int_equal(refused(0, 1, 512), IWARP_OK);
	assert_int_equal(refused(0, 1, 513), IWARP_MPA_PRIVATE_DATA);
	assert_int_equal(refused(0, 3, 0), IWARP_MPA_REVISION);
	assert_int_equal(refused(0x10, 2, 3), IWARP_MPA_ENHANCED);
	assert_int_equal(refused(0x10, 2, 4), IWARP_OK);
	assert_int_equal(refused(0x10, 1, 3), IWARP_OK); /* a reserved bit of revision 1 */
	assert_int_equal(iwarp_mpa_decode((const uint8_t *)"MPA ID Rep Frame", 16, false, &mpa,
					  &bytes), IWARP_MPA_KEY);
	assert_int_equal(iwarp_error_control(IWARP_MPA_KEY), 0x20040000);
}

static void values_without_a_field_are_not_sent(void **state)
{
	uint8_t out[IWARP_MPA_FRAME_MAX], data[513] = { 0 };

	(void)state;
	assert_int_equal(iwarp_mpa_encode(&(struct iwarp_mpa){ .revision = 3 }, out), 0);
	assert_int_equal(iwarp_mpa_encode(&(struct iwarp_mpa){ .reject = true }, out), 0);
	assert_int_equal(iwarp_mpa_encode(&(struct iwarp_mpa){ .revision = 1,
							       .enhanced = true }, out), 0);
	assert_int_equal(iwarp_mpa_encode(&(struct iwarp_mpa){ .revision = 2, .enhanced = true,
							       .ird = 0x4000 }, out), 0);
	assert_int_equal(iwarp_mpa_encode(&(struct iwarp_mpa){ .private_data = data,
							       .private_bytes = 513 }, out), 0);
	assert_int_equal(iwarp_mpa_encode(&(struct iwarp_mpa){ .revision = 2, .enhanced = true,
							       .private_data = data,
							       .private_bytes = 509 }, out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_of_revision_1_stands_as_rfc_5044_says),
		cmocka_unit_test(a_reply_of_revision_2_stands_as_rfc_6581_says),
		cmocka_unit_test(a_request_of_siw_is_read),
		cmocka_unit_test(random_frames_come_back_as_they_were),
		cmocka_unit_test(each_prefix_says_how_much_is_missing),
		cmocka_unit_test(each_wrong_bit_is_another_frame_or_refused),
		cmocka_unit_test(what_is_no_frame_is_refused_with_its_reason),
		cmocka_unit_test(values_without_a_field_are_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
