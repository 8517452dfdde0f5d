/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers of DDP and RDMAP: bytes counted by hand from RFC 5040, RFC 5041 and RFC 7306, round
 * trips, every prefix, every wrong bit, each rule that a segment can break, TERMINATEs in both
 * orders of bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "iwarp_samples.h"

static struct prng prng = { 17 };

/* ---- bytes ---- */

static void is_encoded(const struct iwarp_segment *s, const uint8_t *want, size_t bytes)
{
	uint8_t got[IWARP_HEADERS_MAX], again[IWARP_HEADERS_MAX];
	struct iwarp_segment back;
	size_t header;

	memset(got, 0xee, sizeof(got));
	assert_int_equal(iwarp_segment_encode(s, got), bytes);
	assert_memory_equal(got, want, bytes);
	assert_int_equal(iwarp_segment_decode(got, bytes, bytes, &back, &header), IWARP_OK);
	assert_int_equal(header, bytes);
	assert_int_equal(iwarp_segment_encode(&back, again), bytes);
	assert_memory_equal(again, want, bytes);
}
#define IS_ENCODED(segment, ...)                                          \
	do {                                                              \
		const uint8_t want[] = { __VA_ARGS__ };                   \
		is_encoded(&(struct iwarp_segment)segment, want, sizeof(want)); \
	} while (0)
#define SEGMENT(...) { __VA_ARGS__ }
#define STAG_AND_TO .stag = 0x01020304, .to = 0x1112131415161718
#define STAG_AND_TO_BYTES                                                  \
	0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18

static void tagged_segments_stand_as_rfc_5041_says(void **state)
{
	(void)state;
	IS_ENCODED(SEGMENT(.opcode = IWARP_WRITE, .last = true, STAG_AND_TO),
		   0xc1, 0x40, STAG_AND_TO_BYTES);
	IS_ENCODED(SEGMENT(.opcode = IWARP_WRITE, STAG_AND_TO), 0x81, 0x40, STAG_AND_TO_BYTES);
	IS_ENCODED(SEGMENT(.opcode = IWARP_READ_RESPONSE, .last = true, STAG_AND_TO),
		   0xc1, 0x42, STAG_AND_TO_BYTES);
}

#define NUMBERS .msn = 0x21222324, .mo = 0x31323334
#define NUMBERS_BYTES 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34

static void untagged_segments_stand_as_rfc_5041_says(void **state)
{
	(void)state;
	IS_ENCODED(SEGMENT(.opcode = IWARP_SEND, .last = true, NUMBERS,
			   .invalidate_stag = 0x41424344),
		   0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, NUMBERS_BYTES);
	IS_ENCODED(SEGMENT(.opcode = IWARP_SEND_INVALIDATE, NUMBERS,
			   .invalidate_stag = 0x41424344),
		   0x01, 0x44, 0x41, 0x42, 0x43, 0x44, 0, 0, 0, 0, NUMBERS_BYTES);
	IS_ENCODED(SEGMENT(.opcode = IWARP_SEND_SE, .last = true, NUMBERS),
		   0x41, 0x45, 0, 0, 0, 0, 0, 0, 0, 0, NUMBERS_BYTES);
	IS_ENCODED(SEGMENT(.opcode = IWARP_SEND_SE_INVALIDATE, .last = true, NUMBERS,
			   .invalidate_stag = 0x41424344),
		   0x41, 0x46, 0x41, 0x42, 0x43, 0x44, 0, 0, 0, 0, NUMBERS_BYTES);
}

static void a_read_request_stands_as_rfc_5040_says(void **state)
{
	(void)state;
	/* L flag and offset are those of a message of one segment, whatever was given. */
	IS_ENCODED(SEGMENT(.opcode = IWARP_READ_REQUEST, NUMBERS,
			   .read = { .sink_stag = 0x51525354, .sink_to = 0x6162636465666768,
				     .bytes = 0x71727374, .source_stag = 0x01020304,
				     .source_to = 0x1112131415161718 }),
		   0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0x21, 0x22, 0x23, 0x24, 0, 0, 0, 0,
		   0x51, 0x52, 0x53, 0x54, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
		   0x71, 0x72, 0x73, 0x74, STAG_AND_TO_BYTES);
}

static void atomics_and_immediate_data_stand_as_rfc_7306_says(void **state)
{
	(void)state;
	IS_ENCODED(SEGMENT(.opcode = IWARP_ATOMIC_REQUEST, .msn = 9,
			   .atomic = { .operation = IWARP_COMPARE_SWAP, .request = 0x0a0b0c0d,
				       .stag = 0x01020304, .to = 0x1112131415161718,
				       .add_swap = 0x2122232425262728,
				       .add_swap_mask = 0x3132333435363738,
				       .compare = 0x4142434445464748,
				       .compare_mask = 0x5152535455565758 }),
		   0x41, 0x4a, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0,
		   0, 0, 0, 2, 0x0a, 0x0b, 0x0c, 0x0d, STAG_AND_TO_BYTES,
		   0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
		   0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
		   0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
		   0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58);
	IS_ENCODED(SEGMENT(.opcode = IWARP_ATOMIC_RESPONSE, .msn = 9,
			   .atomic_response = { 0x0a0b0c0d, 0x2122232425262728 }),
		   0x41, 0x4b, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 0,
		   0x0a, 0x0b, 0x0c, 0x0d, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28);
	IS_ENCODED(SEGMENT(.opcode = IWARP_IMMEDIATE, .msn = 9, .immediate = 0x0102030405060708),
		   0x41, 0x48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0,
		   1, 2, 3, 4, 5, 6, 7, 8);
	IS_ENCODED(SEGMENT(.opcode = IWARP_IMMEDIATE_SE, .msn = 9, .immediate = 1),
		   0x41, 0x49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0,
		   0, 0, 0, 0, 0, 0, 0, 1);
}

#define TERMINATE_DDP 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0

static void a_terminate_stands_as_rfc_5040_says(void **state)
{
	(void)state;
	IS_ENCODED(SEGMENT(.opcode = IWARP_TERMINATE, .msn = 1,
			   .terminate = { .layer = IWARP_LAYER_LLP, .code = 2 }),
		   TERMINATE_DDP, 0x20, 0x02, 0, 0);
	IS_ENCODED(SEGMENT(.opcode = IWARP_TERMINATE, .msn = 1,
			   .terminate = { .layer = IWARP_LAYER_DDP,
					  .type = IWARP_TYPE_DDP_TAGGED, .code = 1,
					  .has_length = true, .has_ddp = true,
					  .segment_bytes = 0x1234, .ddp_bytes = 14,
					  .ddp = { 0xc1, 0x40, STAG_AND_TO_BYTES } }),
		   TERMINATE_DDP, 0x11, 0x01, 0xc0, 0, 0x12, 0x34,
		   0xc1, 0x40, STAG_AND_TO_BYTES);
}

/* ---- what decode yields ---- */

static void each_field_of_a_segment_is_read(void **state)
{
	static const uint8_t write[] = { 0xc1, 0x40, STAG_AND_TO_BYTES, 'a', 'b', 'c' };
	static const uint8_t send[] = { 0x01, 0x44, 0x41, 0x42, 0x43, 0x44, 0, 0, 0, 0,
					NUMBERS_BYTES, 'd' };
	struct iwarp_segment s;
	size_t header;

	(void)state;
	assert_int_equal(iwarp_segment_decode(write, sizeof(write), sizeof(write), &s, &header),
			 IWARP_OK);
	assert_int_equal(s.opcode, IWARP_WRITE);
	assert_true(s.last);
	assert_int_equal(s.stag, 0x01020304);
	assert_int_equal(s.to, 0x1112131415161718);
	assert_int_equal(header, 14);
	assert_ptr_equal(s.payload, write + 14);
	assert_int_equal(s.bytes, 3);
	assert_int_equal(iwarp_segment_decode(send, sizeof(send), sizeof(send), &s, &header),
			 IWARP_OK);
	assert_int_equal(s.opcode, IWARP_SEND_INVALIDATE);
	assert_false(s.last);
	assert_int_equal(s.invalidate_stag, 0x41424344);
	assert_int_equal(s.msn, 0x21222324);
	assert_int_equal(s.mo, 0x31323334);
	assert_ptr_equal(s.payload, send + 18);
	assert_int_equal(s.bytes, 1);
}

static void random_segments_come_back_as_they_were(void **state)
{
	static uint8_t ulpdu[IWARP_HEADERS_MAX + 2000];
	uint8_t again[IWARP_HEADERS_MAX];

	(void)state;
	for (unsigned run = 0; run < 20000; run++) {
		struct iwarp_segment s = sample_segment(&prng, sample_opcode(&prng), 1500), back;
		size_t bytes = sample_ulpdu(&prng, &s, ulpdu), header;

		assert_int_equal(iwarp_segment_decode(ulpdu, bytes, bytes, &back, &header),
				 IWARP_OK);
		assert_int_equal(back.bytes, s.bytes);
		if (back.payload)
			assert_ptr_equal(back.payload, ulpdu + header);
		assert_int_equal(header + s.bytes, bytes);
		/* Zeroed by both, so that padding is the same. */
		back.payload = NULL;
		assert_memory_equal(&back, &s, sizeof(s));
		assert_int_equal(iwarp_segment_encode(&back, again), header);
		assert_memory_equal(again, ulpdu, header);
	}
}

/* From memory of exactly that length, so that a sanitizer sees what is read beyond. */
static enum iwarp_error decode(const uint8_t *ulpdu, size_t there, size_t bytes,
			       struct iwarp_segment *s, size_t *header)
{
	uint8_t *copy = malloc(there ? there : 1);
	enum iwarp_error error;

	assert_non_null(copy);
	memcpy(copy, ulpdu, there);
	error = iwarp_segment_decode(copy, there, bytes, s, header);
	free(copy);
	return error;
}

static void each_prefix_of_a_segment_is_refused(void **state)
{
	static uint8_t ulpdu[IWARP_HEADERS_MAX + 20];

	(void)state;
	for (unsigned run = 0; run < 500; run++) {
		struct iwarp_segment s = sample_segment(&prng, sample_opcode(&prng), 20), got;
		size_t bytes = sample_ulpdu(&prng, &s, ulpdu), header = bytes - s.bytes, h;

		/* As if the ULPDU were no longer than this. A TERMINATE without the header of a
		 * READ request is one that siw would send. */
		for (size_t there = 0; there < header; there++) {
			enum iwarp_error error = decode(ulpdu, there, there, &got, &h);

			if (s.opcode == IWARP_TERMINATE && s.terminate.rdmap_bytes &&
			    there == header - IWARP_READ_REQUEST_BYTES)
				assert_int_equal(error, IWARP_OK);
			else
				assert_int_equal(error, there < (iwarp_opcodes[s.opcode].tagged ?
								 14 : 18) ?
						 IWARP_DDP_SHORT : IWARP_RDMAP_LENGTH);
		}
	}
}

static void headers_can_be_decoded_before_the_payload_is_there(void **state)
{
	static uint8_t ulpdu[IWARP_HEADERS_MAX + 2000];

	(void)state;
	for (unsigned run = 0; run < 2000; run++) {
		struct iwarp_segment s = sample_segment(&prng, sample_opcode(&prng), 1500), got;
		size_t bytes = sample_ulpdu(&prng, &s, ulpdu), there = 0, need, header;

		while ((need = iwarp_segment_need(ulpdu, there, bytes)) > there) {
			if (there)
				assert_int_equal(decode(ulpdu, there, bytes, &got, &header),
						 IWARP_DDP_SHORT);
			there = need;
		}
		assert_in_range(there, 1, IWARP_HEADERS_MAX);
		assert_int_equal(decode(ulpdu, there, bytes, &got, &header), IWARP_OK);
		assert_int_equal(got.bytes, s.bytes);
		assert_int_equal(header + s.bytes, bytes);
	}
}

/* ---- wrong bits ---- */

/* Bits that senders clear and receivers ignore. */
static bool bit_is_reserved(const struct iwarp_segment *s, size_t byte, unsigned mask)
{
	const struct iwarp_opcode_info *op = &iwarp_opcodes[s->opcode];

	if (byte == 0)
		return mask & 0x3c;
	if (byte == 1)
		return mask & 0x30;
	if (!op->tagged && byte >= 2 && byte < 6)
		return !op->invalidates;
	if (s->opcode == IWARP_ATOMIC_REQUEST)
		return (byte >= 18 && byte < 21) || (byte == 21 && (mask & 0xf0));
	if (s->opcode == IWARP_TERMINATE)
		return (byte == 20 && (mask & 0x1f)) || byte == 21;
	return false;
}

/* But for what is reserved in a segment like `s`. */
static bool same_headers(const struct iwarp_segment *s, const uint8_t *a, const uint8_t *b,
			 size_t bytes)
{
	for (unsigned bit = 0; bit < 8 * bytes; bit++) {
		unsigned mask = 1u << bit % 8;

		if (((a[bit / 8] ^ b[bit / 8]) & mask) && !bit_is_reserved(s, bit / 8, mask))
			return false;
	}
	return true;
}

static void bit_is_seen_or_reserved(const struct iwarp_segment *s, uint8_t *ulpdu, size_t bytes,
				    unsigned bit)
{
	uint8_t again[IWARP_HEADERS_MAX], mask = (uint8_t)(1 << bit % 8);
	struct iwarp_segment other;
	enum iwarp_error error;
	size_t header;

	ulpdu[bit / 8] ^= mask;
	error = decode(ulpdu, bytes, bytes, &other, &header);
	if (error && bit_is_reserved(s, bit / 8, mask))
		fail_msg("%s: reserved bit %u: %s", iwarp_opcodes[s->opcode].name, bit,
			 iwarp_error_text(error));
	/* What comes in siw's order goes in the RFC's. */
	if (!error && !(other.opcode == IWARP_TERMINATE && other.terminate.siw_order) &&
	    (iwarp_segment_encode(&other, again) != header ||
	     !same_headers(&other, again, ulpdu, header)))
		fail_msg("%s: bit %u is lost", iwarp_opcodes[s->opcode].name, bit);
	ulpdu[bit / 8] ^= mask;
}

static void each_wrong_bit_is_another_segment_or_refused(void **state)
{
	static uint8_t ulpdu[IWARP_HEADERS_MAX + 20];

	(void)state;
	for (unsigned run = 0; run < 2000; run++) {
		struct iwarp_segment s = sample_segment(&prng, sample_opcode(&prng), 20);
		size_t bytes = sample_ulpdu(&prng, &s, ulpdu);

		for (unsigned bit = 0; bit < 8 * (bytes - s.bytes); bit++)
			bit_is_seen_or_reserved(&s, ulpdu, bytes, bit);
	}
}

/* ---- rules ---- */

static uint8_t segment[200];
static size_t segment_bytes;

static void start(uint8_t opcode, size_t payload)
{
	struct iwarp_segment s = sample_segment(&prng, opcode, 0);

	s.last = true;
	s.bytes = (uint32_t)payload;
	s.to = s.mo = 0;
	segment_bytes = sample_ulpdu(&prng, &s, segment);
}

static enum iwarp_error result(void)
{
	struct iwarp_segment s;
	size_t header;

	return decode(segment, segment_bytes, segment_bytes, &s, &header);
}

static void each_rule_that_is_broken_has_its_reason(void **state)
{
	(void)state;
	start(IWARP_WRITE, 4);
	assert_int_equal(result(), IWARP_OK);
	segment[0] = 0xc0;
	assert_int_equal(result(), IWARP_DDP_TAGGED_VERSION);
	start(IWARP_SEND, 4);
	segment[0] = 0x43;
	assert_int_equal(result(), IWARP_DDP_UNTAGGED_VERSION);
	start(IWARP_SEND, 4);
	segment[9] = 4;
	assert_int_equal(result(), IWARP_DDP_QN);
	segment[9] = IWARP_QN_READ_REQUEST; /* a queue, but not that of a SEND */
	assert_int_equal(result(), IWARP_RDMAP_OPCODE);
	start(IWARP_SEND, 4);
	segment[1] = 0x03; /* version 0, of the RDMA consortium */
	assert_int_equal(result(), IWARP_RDMAP_VERSION);
	segment[1] = 0x4c; /* no opcode */
	assert_int_equal(result(), IWARP_RDMAP_OPCODE);
	segment[1] = 0x40; /* a WRITE, untagged */
	assert_int_equal(result(), IWARP_RDMAP_OPCODE);
	start(IWARP_WRITE, 40);
	segment[1] = 0x43; /* a SEND, tagged */
	assert_int_equal(result(), IWARP_RDMAP_OPCODE);
}

static void offsets_must_not_wrap(void **state)
{
	(void)state;
	start(IWARP_WRITE, 4);
	memset(segment + 6, 0xff, 8);
	segment[13] = 0xfc; /* up to the last byte */
	assert_int_equal(result(), IWARP_OK);
	segment[13] = 0xfd;
	assert_int_equal(result(), IWARP_DDP_TO_WRAP);
	start(IWARP_WRITE, 0);
	memset(segment + 6, 0xff, 8);
	assert_int_equal(result(), IWARP_OK);
	start(IWARP_SEND, 4);
	memset(segment + 14, 0xff, 4);
	segment[17] = 0xfb; /* a message of 2^32 - 1 bytes */
	assert_int_equal(result(), IWARP_OK);
	segment[17] = 0xfc;
	assert_int_equal(result(), IWARP_DDP_MO);
	start(IWARP_READ_REQUEST, 0);
	memset(segment + 30, 0, 4);
	memset(segment + 38, 0xff, 8);
	segment[33] = 1;
	assert_int_equal(result(), IWARP_OK);
	segment[33] = 2;
	assert_int_equal(result(), IWARP_RDMAP_TO_WRAP);
}

static void messages_of_one_segment_are_whole(void **state)
{
	static const uint8_t opcodes[] = { IWARP_READ_REQUEST, IWARP_IMMEDIATE,
					   IWARP_IMMEDIATE_SE, IWARP_ATOMIC_REQUEST,
					   IWARP_ATOMIC_RESPONSE };

	(void)state;
	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		start(opcodes[i], 0);
		assert_int_equal(result(), IWARP_OK);
		segment_bytes++;
		assert_int_equal(result(), IWARP_DDP_TOO_LONG);
		segment_bytes -= 2;
		assert_int_equal(result(), IWARP_RDMAP_LENGTH);
		segment_bytes++;
		segment[0] = 0x01;
		assert_int_equal(result(), IWARP_RDMAP_NOT_LAST);
		segment[17] = 1;
		assert_int_equal(result(), IWARP_DDP_MO);
	}
	start(IWARP_ATOMIC_REQUEST, 0);
	segment[21] = 1;
	assert_int_equal(result(), IWARP_RDMAP_ATOMIC);
}

static void what_has_no_encoding_is_not_sent(void **state)
{
	uint8_t out[IWARP_HEADERS_MAX];
	struct iwarp_segment s = { .opcode = 0xc };

	(void)state;
	assert_int_equal(iwarp_segment_encode(&s, out), 0);
	s.opcode = 0x10;
	assert_int_equal(iwarp_segment_encode(&s, out), 0);
	s = (struct iwarp_segment){ .opcode = IWARP_ATOMIC_REQUEST, .atomic.operation = 1 };
	assert_int_equal(iwarp_segment_encode(&s, out), 0);
	s = (struct iwarp_segment){ .opcode = IWARP_TERMINATE, .terminate.ddp_bytes = 14 };
	assert_int_equal(iwarp_segment_encode(&s, out), 0);
	s = (struct iwarp_segment){ .opcode = IWARP_TERMINATE,
				    .terminate = { .has_ddp = true, .ddp_bytes = 14 } };
	assert_int_equal(iwarp_segment_encode(&s, out), 0); /* untagged: 18 */
	s = (struct iwarp_segment){ .opcode = IWARP_TERMINATE, .terminate.rdmap_bytes = 28 };
	assert_int_equal(iwarp_segment_encode(&s, out), 0);
}

/* ---- TERMINATE ---- */

static void reads_terminate(const uint8_t *body, size_t bytes, struct iwarp_terminate *t)
{
	uint8_t ulpdu[100] = { TERMINATE_DDP };
	struct iwarp_segment s;
	size_t header;

	memcpy(ulpdu + 18, body, bytes);
	assert_int_equal(decode(ulpdu, 18 + bytes, 18 + bytes, &s, &header), IWARP_OK);
	*t = s.terminate;
}
#define READS_TERMINATE(t, ...)                                       \
	do {                                                          \
		const uint8_t body[] = { __VA_ARGS__ };               \
		reads_terminate(body, sizeof(body), t);               \
	} while (0)

static void is_terminate(const struct iwarp_terminate *t, bool siw, unsigned layer, unsigned type,
			 unsigned code)
{
	assert_int_equal(t->siw_order, siw);
	assert_int_equal(t->layer, layer);
	assert_int_equal(t->type, type);
	assert_int_equal(t->code, code);
}

static void a_terminate_of_siw_means_what_it_was_to_say(void **state)
{
	struct iwarp_terminate t;

	(void)state;
	/* RDMAP, remote protection, bounds, M and D; what siw sent and what the RFC wants. */
	READS_TERMINATE(&t, 0x10, 0x01, 0x03, 0x00, 0, 46, 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1,
			0, 0, 0, 1, 0, 0, 0, 0);
	is_terminate(&t, true, IWARP_LAYER_RDMAP, IWARP_TYPE_RDMAP_PROTECTION, 1);
	assert_true(t.has_length && t.has_ddp && !t.has_rdmap);
	assert_int_equal(t.segment_bytes, 46);
	assert_int_equal(t.ddp_bytes, 18);
	READS_TERMINATE(&t, 0x01, 0x01, 0xc0, 0x00, 0, 46, 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1,
			0, 0, 0, 1, 0, 0, 0, 0);
	is_terminate(&t, false, IWARP_LAYER_RDMAP, IWARP_TYPE_RDMAP_PROTECTION, 1);
	assert_true(t.has_length && t.has_ddp && !t.has_rdmap);

	READS_TERMINATE(&t, 0x10, 0x01, 0x01, 0x00, 0, 46);
	assert_true(t.has_length && !t.has_ddp && !t.has_rdmap);

	/* R without the header: siw about a SEND. */
	READS_TERMINATE(&t, 0x10, 0x02, 0x07, 0x00, 0, 20, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0,
			0, 0, 0, 1, 0, 0, 0, 0);
	is_terminate(&t, true, IWARP_LAYER_RDMAP, IWARP_TYPE_RDMAP_PROTECTION, 2);
	assert_true(t.has_rdmap);
	assert_int_equal(t.rdmap_bytes, 0);

	/* Without flags: by what is defined. */
	READS_TERMINATE(&t, 0x20, 0x02, 0, 0);
	is_terminate(&t, false, IWARP_LAYER_LLP, IWARP_TYPE_MPA, 2);
	READS_TERMINATE(&t, 0x02, 0x02, 0, 0);
	is_terminate(&t, true, IWARP_LAYER_LLP, IWARP_TYPE_MPA, 2);
	READS_TERMINATE(&t, 0x02, 0x06, 0, 0); /* both are; the RFC's */
	is_terminate(&t, false, IWARP_LAYER_RDMAP, IWARP_TYPE_RDMAP_OPERATION, 6);
	READS_TERMINATE(&t, 0x21, 0x04, 0, 0);
	is_terminate(&t, true, IWARP_LAYER_DDP, IWARP_TYPE_DDP_UNTAGGED, 4);
	READS_TERMINATE(&t, 0x00, 0xff, 0, 0);
	is_terminate(&t, false, IWARP_LAYER_RDMAP, IWARP_TYPE_CATASTROPHIC, 0xff);
	READS_TERMINATE(&t, 0x55, 0x55, 0, 0);
	is_terminate(&t, false, 5, 5, 0x55);
}

static void fills(enum iwarp_error error, const uint8_t *from, size_t there, size_t bytes,
		  const uint8_t *want, size_t want_bytes)
{
	struct iwarp_segment s = { .opcode = IWARP_TERMINATE, .msn = 1 };
	uint8_t got[IWARP_HEADERS_MAX];

	iwarp_terminate_fill(&s.terminate, error, from, there, bytes);
	assert_int_equal(iwarp_segment_encode(&s, got), 18 + want_bytes);
	assert_memory_equal(got + 18, want, want_bytes);
}
#define FILLS(error, from, there, bytes, ...)                                    \
	do {                                                                     \
		const uint8_t want[] = { __VA_ARGS__ };                          \
		fills(error, from, there, bytes, want, sizeof(want));            \
	} while (0)

static void a_terminate_shows_the_segment_at_fault(void **state)
{
	static const uint8_t write[] = { 0xc1, 0x40, STAG_AND_TO_BYTES, 'a' };
	static const uint8_t read[] = {
		0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0,
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, STAG_AND_TO_BYTES,
	};

	(void)state;
	FILLS(IWARP_FPDU_CRC, write, 15, 15, 0x20, 0x02, 0, 0);
	FILLS(IWARP_DDP_STAG, NULL, 0, 0, 0x11, 0x00, 0, 0);
	FILLS(IWARP_DDP_STAG, write, 14, 1234, 0x11, 0x00, 0xc0, 0, 0x04, 0xd2,
	      0xc1, 0x40, STAG_AND_TO_BYTES);
	FILLS(IWARP_DDP_STAG, write, 13, 1234, 0x11, 0x00, 0, 0);
	FILLS(IWARP_DDP_TAGGED_VERSION, write, 14, 14, 0x11, 0x04, 0, 0);
	FILLS(IWARP_RDMAP_ACCESS, read, 46, 46, 0x01, 0x02, 0xe0, 0, 0, 46,
	      0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0,
	      1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, STAG_AND_TO_BYTES);
	FILLS(IWARP_DDP_MSN, read, 46, 46, 0x12, 0x03, 0xc0, 0, 0, 46,
	      0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0);
}

static void each_error_has_a_text_and_a_code_of_an_rfc(void **state)
{
	(void)state;
	for (unsigned e = IWARP_OK + 1; e < IWARP_ERRORS; e++) {
		uint32_t control = iwarp_error_control(e);
		uint8_t layer = (uint8_t)(control >> 28), type = control >> 24 & 15;

		if (!iwarp_error_text(e) ||
		    !iwarp_code_known(layer, type, (uint8_t)(control >> 16)))
			fail_msg("error %u has no text or code", e);
		assert_string_not_equal(iwarp_type_text(layer, type), "reserved");
		assert_string_not_equal(iwarp_layer_text(layer), "reserved");
	}
	assert_string_equal(iwarp_error_text(IWARP_ERRORS), "unknown error");
	assert_string_equal(iwarp_code_text(IWARP_LAYER_DDP, 2, 5),
			    "DDP Message too long for available buffer");
	assert_string_equal(iwarp_code_text(IWARP_LAYER_DDP, 2, 0), "reserved");
	assert_string_equal(iwarp_type_text(3, 0), "reserved");
	assert_string_equal(iwarp_layer_text(3), "reserved");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tagged_segments_stand_as_rfc_5041_says),
		cmocka_unit_test(untagged_segments_stand_as_rfc_5041_says),
		cmocka_unit_test(a_read_request_stands_as_rfc_5040_says),
		cmocka_unit_test(atomics_and_immediate_data_stand_as_rfc_7306_says),
		cmocka_unit_test(a_terminate_stands_as_rfc_5040_says),
		cmocka_unit_test(each_field_of_a_segment_is_read),
		cmocka_unit_test(random_segments_come_back_as_they_were),
		cmocka_unit_test(each_prefix_of_a_segment_is_refused),
		cmocka_unit_test(headers_can_be_decoded_before_the_payload_is_there),
		cmocka_unit_test(each_wrong_bit_is_another_segment_or_refused),
		cmocka_unit_test(each_rule_that_is_broken_has_its_reason),
		cmocka_unit_test(offsets_must_not_wrap),
		cmocka_unit_test(messages_of_one_segment_are_whole),
		cmocka_unit_test(what_has_no_encoding_is_not_sent),
		cmocka_unit_test(a_terminate_of_siw_means_what_it_was_to_say),
		cmocka_unit_test(a_terminate_shows_the_segment_at_fault),
		cmocka_unit_test(each_error_has_a_text_and_a_code_of_an_rfc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
