/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FPDUs: bytes counted by hand, a sender that goes byte by byte and was written from RFC 5044, 4,
 * alone, and the receiver with streams that are cut anywhere and wrong anywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "iwarp_samples.h"
#include "util/container_of.h"
#include "wire/iwarp/fpdu.h"
#include "wire/iwarp/receiver.h"

static struct prng prng = { 23 };

/* ---- a sender, byte by byte ---- */

struct slow {
	uint8_t *to;
	size_t at;           /* position in the stream, of which `to` is the beginning */
	size_t length_at;    /* of this FPDU */
	bool markers, crc;
	uint32_t sum;
	uint32_t spoil;      /* added to the pointer of each marker */
};

static void slow_raw(struct slow *s, uint8_t byte)
{
	s->to[s->at++] = byte;
	s->sum ^= byte;
	for (int bit = 0; bit < 8; bit++)
		s->sum = s->sum & 1 ? s->sum >> 1 ^ 0x82f63b78 : s->sum >> 1;
}

static void slow_byte(struct slow *s, uint8_t byte, bool first)
{
	if (s->markers && s->at % 512 == 0) {
		size_t pointer = first ? 0 : s->at - s->length_at;

		pointer += s->spoil;
		slow_raw(s, 0);
		slow_raw(s, 0);
		slow_raw(s, (uint8_t)(pointer >> 8));
		slow_raw(s, (uint8_t)pointer);
	}
	if (first)
		s->length_at = s->at;
	slow_raw(s, byte);
}

static void slow_fpdu(struct slow *s, const uint8_t *ulpdu, size_t bytes)
{
	uint32_t sum;
	size_t pad = (4 - (2 + bytes) % 4) % 4;

	s->sum = 0xffffffff;
	slow_byte(s, (uint8_t)(bytes >> 8), true);
	slow_byte(s, (uint8_t)bytes, false);
	for (size_t i = 0; i < bytes; i++)
		slow_byte(s, ulpdu[i], false);
	while (pad--)
		slow_byte(s, 0, false);
	if (s->markers && s->at % 512 == 0) { /* covered by the CRC */
		size_t pointer = s->at - s->length_at + s->spoil;

		slow_raw(s, 0);
		slow_raw(s, 0);
		slow_raw(s, (uint8_t)(pointer >> 8));
		slow_raw(s, (uint8_t)pointer);
	}
	sum = s->crc ? ~s->sum : 0;
	for (int i = 0; i < 4; i++)
		slow_raw(s, (uint8_t)(sum >> 8 * i));
}

/* ---- sending ---- */

#define WRITE_BYTES 0xc1, 0x40, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12

static void an_fpdu_stands_as_rfc_5044_says(void **state)
{
	static uint8_t ulpdu[] = { WRITE_BYTES, 'a' };
	static const uint8_t want[] = {
		0, 15, WRITE_BYTES, 'a', 0, 0, 0, 0xfa, 0x7e, 0x36, 0x83,
	};
	static const uint8_t with_marker[] = {
		0, 0, 0, 0, 0, 15, WRITE_BYTES, 'a', 0, 0, 0, 0, 0, 0, 0,
	};
	struct iwarp_framer f = { .crc = true }, marked = { .markers = true };
	struct iovec piece = { ulpdu, sizeof(ulpdu) };
	uint8_t got[64];

	(void)state;
	assert_int_equal(iwarp_framer_bytes(&f, 15), sizeof(want));
	assert_int_equal(iwarp_framer_write(&f, &piece, 1, got), sizeof(want));
	assert_memory_equal(got, want, sizeof(want));
	assert_int_equal(f.position, sizeof(want));
	assert_int_equal(iwarp_framer_bytes(&marked, 15), sizeof(with_marker));
	assert_int_equal(iwarp_framer_write(&marked, &piece, 1, got), sizeof(with_marker));
	assert_memory_equal(got, with_marker, sizeof(with_marker));
}

static void markers_stand_at_each_512th_byte_and_point_back(void **state)
{
	static uint8_t ulpdu[1200], got[2000];
	struct iwarp_framer f = { .markers = true };
	/* Ends where a marker is due: 4 + 2 + 502 + 4. */
	struct iovec piece = { ulpdu, 502 };

	(void)state;
	assert_int_equal(iwarp_framer_write(&f, &piece, 1, got), 512);
	assert_memory_equal(got, ((const uint8_t[]){ 0, 0, 0, 0, 0x01, 0xf6 }), 6);
	/* The marker belongs to the FPDU behind it. */
	piece.iov_len = 1200;
	assert_int_equal(iwarp_framer_bytes(&f, 1200), 4 + 2 + 1200 + 2 + 4 + 8);
	assert_int_equal(iwarp_framer_write(&f, &piece, 1, got), 1220);
	assert_memory_equal(got, ((const uint8_t[]){ 0, 0, 0, 0, 0x04, 0xb0 }), 6);
	assert_memory_equal(got + 512, ((const uint8_t[]){ 0, 0, 0x01, 0xfc }), 4);
	assert_memory_equal(got + 1024, ((const uint8_t[]){ 0, 0, 0x03, 0xfc }), 4);
}

static void random_streams_are_those_of_the_slow_way(void **state)
{
	static uint8_t ulpdu[3000], slow_out[60000], got[60000];

	(void)state;
	for (unsigned run = 0; run < 40; run++) {
		struct iwarp_framer f = { .markers = run & 1, .crc = run & 2 };
		struct slow slow = { .to = slow_out, .markers = run & 1, .crc = run & 2 };

		while (f.position < sizeof(got) - 3200) {
			struct iovec piece = { ulpdu, prng_below(&prng, run & 4 ? 40 : 3000) };
			size_t at = f.position, bytes = iwarp_framer_bytes(&f, piece.iov_len);

			sample_fill(&prng, ulpdu, piece.iov_len);
			slow_fpdu(&slow, ulpdu, piece.iov_len);
			assert_int_equal(iwarp_framer_write(&f, &piece, 1, got + at), bytes);
			assert_int_equal(f.position, slow.at);
			assert_memory_equal(got + at, slow_out + at, bytes);
		}
	}
}

/* `bytes` bytes at `data`, cut into `count` random pieces. */
static void cut(uint8_t *data, size_t bytes, struct iovec *pieces, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		size_t n = i + 1 < count ? prng_below(&prng, bytes + 1) : bytes;

		pieces[i] = (struct iovec){ data, n };
		data += n;
		bytes -= n;
	}
}

static size_t join(const struct iovec *pieces, unsigned count, uint8_t *to)
{
	size_t sum = 0;

	for (unsigned i = 0; i < count; i++) {
		memcpy(to + sum, pieces[i].iov_base, pieces[i].iov_len);
		sum += pieces[i].iov_len;
	}
	return sum;
}

static void gathered_pieces_are_the_same_bytes(void **state)
{
	static uint8_t ulpdu[IWARP_MULPDU_MAX], want[70000], got[70000];
	static uint8_t own[IWARP_FPDU_EXTRA];
	struct iovec pieces[8], out[2 * IWARP_MARKERS_MAX + ARRAY_SIZE(pieces) + 2];

	(void)state;
	sample_fill(&prng, ulpdu, sizeof(ulpdu));
	for (unsigned run = 0; run < 300; run++) {
		struct iwarp_framer a = { .markers = run & 1, .crc = run & 2 }, b;
		unsigned count = 1 + (unsigned)prng_below(&prng, ARRAY_SIZE(pieces)), n;
		size_t bytes;

		/* Where a marker is there are no FPDUs' ends but in front of it. */
		a.position = 512 * prng_below(&prng, 9) + 4 * (prng_below(&prng, 127) + 1) % 512;
		b = a;
		cut(ulpdu, run % 10 ? prng_below(&prng, 3000) : IWARP_MULPDU_MAX, pieces, count);
		bytes = iwarp_framer_write(&a, pieces, count, want);
		n = iwarp_framer_gather(&b, pieces, count, own, out, ARRAY_SIZE(out));
		assert_in_range(n, 1, ARRAY_SIZE(out));
		if (!a.markers)
			assert_in_range(n, 1, count + 2);
		assert_int_equal(join(out, n, got), bytes);
		assert_memory_equal(got, want, bytes);
		assert_int_equal(a.position, b.position);
		/* One entry less is refused, and nothing has happened. */
		b.position -= bytes;
		assert_int_equal(iwarp_framer_gather(&b, pieces, count, own, out, n - 1), 0);
		assert_int_equal(b.position, a.position - bytes);
	}
}

static void an_fpdu_fits_into_a_segment_wherever_markers_fall(void **state)
{
	(void)state;
	assert_int_equal(iwarp_mulpdu(1460, false), 1454);
	assert_int_equal(iwarp_mulpdu(1460, true), 1442);
	assert_int_equal(iwarp_mulpdu(1447, false), 1438);
	assert_int_equal(iwarp_mulpdu(100, true), IWARP_MULPDU_MIN);
	assert_int_equal(iwarp_mulpdu(65483, false), 65474 > IWARP_MULPDU_MAX ? IWARP_MULPDU_MAX :
								   65474);
	for (unsigned run = 0; run < 20000; run++) {
		struct iwarp_framer f = { .markers = run & 1,
					  .position = 4 * prng_below(&prng, 1000) };
		size_t mss = 150 + prng_below(&prng, run % 3 ? 9000 : 65500);
		size_t bytes = iwarp_framer_bytes(&f, iwarp_mulpdu(mss, f.markers));

		assert_true(bytes <= mss);
		/* Nothing is given away but for alignment, the cap, and a marker not met. */
		if (mss < 64000 && f.position % 512 == 0)
			assert_true(bytes + 3 >= mss);
	}
}

static void a_ulpdu_that_no_marker_can_point_over_is_not_sent(void **state)
{
	static uint8_t ulpdu[IWARP_MULPDU_MAX + 1], to[IWARP_MULPDU_MAX + IWARP_FPDU_EXTRA];
	struct iovec piece = { ulpdu, sizeof(ulpdu) }, out[300];
	struct iwarp_framer f = { .markers = true };

	(void)state;
	assert_int_equal(iwarp_framer_write(&f, &piece, 1, to), 0);
	assert_int_equal(iwarp_framer_gather(&f, &piece, 1, to, out, 300), 0);
	assert_int_equal(f.position, 0);
	piece.iov_len--;
	assert_in_range(iwarp_framer_write(&f, &piece, 1, to), IWARP_MULPDU_MAX + 8, 0xffff);
}

/* ---- receiving ---- */

#define STREAM_MAX 20000

/* All ULPDUs that were handed out, one behind the other, each with its length in front. */
struct got {
	uint8_t bytes[STREAM_MAX + 1000];
	size_t size;
	unsigned fpdus;
	enum iwarp_error error;
	size_t payload;      /* of this segment, so far */
	size_t at;           /* of this segment in `bytes` */
};

static uint8_t buffer[IWARP_ULPDU_MAX];

static void got_headers(struct got *g, const struct iwarp_receiver *r)
{
	g->at = g->size;
	g->size += 4;
	g->size += iwarp_segment_encode(&r->segment, g->bytes + g->size);
	assert_int_equal(g->size - g->at - 4, r->header_bytes);
	g->payload = 0;
}

static void got_payload(struct got *g, const uint8_t *data, size_t bytes, size_t offset)
{
	assert_int_equal(offset, g->payload);
	memcpy(g->bytes + g->size, data, bytes);
	g->size += bytes;
	g->payload += bytes;
}

static void got_fpdu(struct got *g, const struct iwarp_receiver *r)
{
	uint32_t length;

	if (r->buffer) {
		got_headers(g, r);
		if (r->segment.bytes)
			got_payload(g, r->segment.payload, r->segment.bytes, 0);
	}
	assert_int_equal(g->payload, r->segment.bytes);
	length = (uint32_t)(g->size - g->at - 4);
	memcpy(g->bytes + g->at, &length, 4);
	g->fpdus++;
}

/* From memory of exactly that length, so that a sanitizer sees what is read beyond. */
static void feed(struct iwarp_receiver *r, const uint8_t *stream, size_t bytes, struct got *g)
{
	uint8_t *copy = malloc(bytes ? bytes : 1);
	const uint8_t *data = copy;
	enum iwarp_event event;

	assert_non_null(copy);
	memcpy(copy, stream, bytes);
	while ((event = iwarp_receiver_take(r, &data, &bytes)) != IWARP_NOTHING) {
		if (event == IWARP_HEADER)
			got_headers(g, r);
		if (event == IWARP_PAYLOAD)
			got_payload(g, r->piece, r->piece_bytes, r->piece_offset);
		if (event == IWARP_FPDU)
			got_fpdu(g, r);
		g->error = r->error;
		assert_int_equal(event == IWARP_BROKEN, r->error != IWARP_OK);
		if (event == IWARP_BROKEN)
			break;
	}
	assert_true(event == IWARP_BROKEN || bytes == 0);
	/* What was handed out without being sure does not count. */
	if (event == IWARP_BROKEN && !r->buffer && g->at && !g->bytes[g->at])
		g->size = g->at;
	free(copy);
}

struct stream {
	uint8_t bytes[STREAM_MAX];
	size_t size;
	unsigned fpdus;
	bool markers, crc;
};

static void make_stream(struct stream *s, unsigned kind, size_t room, size_t most)
{
	struct iwarp_framer f = { .markers = kind & 1, .crc = kind & 2 };

	s->markers = f.markers;
	s->crc = f.crc;
	s->size = sample_stream(&prng, &f, most, s->bytes, room, &s->fpdus);
}

static void receive_pieces(const struct stream *s, bool whole, size_t piece, struct got *g)
{
	struct iwarp_receiver r;
	size_t at = 0;

	memset(g, 0, sizeof(*g));
	iwarp_receiver_init(&r, s->markers, s->crc, whole ? buffer : NULL);
	assert_true(iwarp_receiver_idle(&r));
	while (at < s->size) {
		size_t n = piece ? piece : 1 + prng_below(&prng, 900);

		n = MIN(n, s->size - at);
		feed(&r, s->bytes + at, n, g);
		at += n;
	}
	if (!g->error)
		assert_true(iwarp_receiver_idle(&r));
}

static void receive_in_two(const struct stream *s, bool whole, size_t at, struct got *g)
{
	struct iwarp_receiver r;

	memset(g, 0, sizeof(*g));
	iwarp_receiver_init(&r, s->markers, s->crc, whole ? buffer : NULL);
	feed(&r, s->bytes, at, g);
	feed(&r, s->bytes + at, s->size - at, g);
}

static void same(const struct got *a, const struct got *b)
{
	assert_int_equal(a->error, b->error);
	assert_int_equal(a->fpdus, b->fpdus);
	assert_int_equal(a->size, b->size);
	assert_memory_equal(a->bytes, b->bytes, a->size);
}

static struct stream stream;
static struct got want, got;

static void what_was_sent_arrives_whatever_the_pieces(void **state)
{
	(void)state;
	for (unsigned run = 0; run < 200; run++) {
		make_stream(&stream, run, STREAM_MAX, run & 16 ? 3000 : 60);
		receive_pieces(&stream, true, STREAM_MAX, &want);
		assert_int_equal(want.error, IWARP_OK);
		assert_int_equal(want.fpdus, stream.fpdus);
		for (unsigned whole = 0; whole < 2; whole++) {
			receive_pieces(&stream, whole, STREAM_MAX, &got);
			same(&want, &got);
			receive_pieces(&stream, whole, 1, &got);
			same(&want, &got);
			receive_pieces(&stream, whole, 0, &got);
			same(&want, &got);
		}
	}
}

/* Against what the sender was given. */
static void segments_arrive_as_they_were_sent(void **state)
{
	static uint8_t ulpdu[IWARP_HEADERS_MAX + 3000];

	(void)state;
	for (unsigned run = 0; run < 400; run++) {
		struct iwarp_framer f = { .markers = run & 1, .crc = run & 2 };
		struct iwarp_segment s = sample_segment(&prng, sample_opcode(&prng), 3000);
		struct iovec piece = { ulpdu, sample_ulpdu(&prng, &s, ulpdu) };

		stream.markers = f.markers;
		stream.crc = f.crc;
		stream.size = iwarp_framer_write(&f, &piece, 1, stream.bytes);
		receive_pieces(&stream, run & 4, 0, &got);
		assert_int_equal(got.error, IWARP_OK);
		assert_int_equal(got.size, 4 + piece.iov_len);
		assert_memory_equal(got.bytes + 4, ulpdu, piece.iov_len);
	}
}

static void a_stream_may_be_cut_at_each_byte(void **state)
{
	(void)state;
	for (unsigned run = 0; run < 8; run++) {
		make_stream(&stream, run, 2600, 150);
		receive_pieces(&stream, true, STREAM_MAX, &want);
		for (size_t at = 0; at <= stream.size; at++) {
			receive_in_two(&stream, run & 4, at, &got);
			same(&want, &got);
		}
	}
}

static void a_receiver_is_idle_between_fpdus_only(void **state)
{
	struct iwarp_receiver r;
	unsigned idle;

	(void)state;
	for (unsigned kind = 0; kind < 4; kind++) {
		make_stream(&stream, kind, 5000, 300);
		memset(&got, 0, sizeof(got));
		iwarp_receiver_init(&r, stream.markers, stream.crc, NULL);
		idle = iwarp_receiver_idle(&r);
		for (size_t at = 0; at < stream.size; at++) {
			feed(&r, stream.bytes + at, 1, &got);
			idle += iwarp_receiver_idle(&r);
		}
		assert_int_equal(idle, stream.fpdus + 1);
	}
}

/* ---- what is wrong ---- */

/* The FPDUs in front of it are handed out, that one is not; nothing but the CRC is blamed. */
static void each_wrong_bit_is_found_by_the_crc(void **state)
{
	(void)state;
	for (unsigned kind = 2; kind < 4; kind++) {
		make_stream(&stream, kind, 1500, 60);
		receive_pieces(&stream, true, STREAM_MAX, &want);
		for (unsigned bit = 0; bit < 8 * stream.size; bit++) {
			stream.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			receive_in_two(&stream, bit & 1, prng_below(&prng, stream.size), &got);
			stream.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			/* A length may have grown beyond what there is. */
			assert_true(got.error == IWARP_FPDU_CRC || got.error == IWARP_OK);
			assert_true(got.fpdus < stream.fpdus);
			assert_memory_equal(got.bytes, want.bytes, got.fpdus ? 4 : 0);
		}
	}
}

/* With and without a buffer and wherever it is cut, without a CRC too. */
static void is_broken_everywhere(enum iwarp_error error, unsigned fpdus)
{
	for (unsigned whole = 0; whole < 2; whole++) {
		for (size_t at = 0; at < stream.size; at += 1 + at / 200) {
			receive_in_two(&stream, whole, at, &got);
			if (got.error != error)
				fail_msg("%s instead of %s", iwarp_error_text(got.error),
					 iwarp_error_text(error));
			assert_int_equal(got.fpdus, fpdus);
		}
		receive_pieces(&stream, whole, 1, &got);
		assert_int_equal(got.error, error);
	}
}

static void a_marker_that_points_elsewhere_is_refused(void **state)
{
	static uint8_t ulpdu[700] = { 0x41, 0x43 };

	(void)state;
	for (unsigned crc = 0; crc < 2; crc++) {
		struct slow slow = { .to = stream.bytes, .markers = true, .crc = crc };

		slow_fpdu(&slow, ulpdu, 100);
		slow.spoil = 4;
		slow_fpdu(&slow, ulpdu, 700);
		stream.size = slow.at;
		stream.markers = true;
		stream.crc = crc;
		is_broken_everywhere(IWARP_FPDU_MARKER, 1);
		/* One in front of an FPDU. */
		slow = (struct slow){ .to = stream.bytes, .markers = true, .crc = crc,
				      .spoil = 4 };
		slow_fpdu(&slow, ulpdu, 100);
		stream.size = slow.at;
		is_broken_everywhere(IWARP_FPDU_MARKER, 0);
		/* The lowest two bits do not count. */
		slow = (struct slow){ .to = stream.bytes, .markers = true, .crc = crc,
				      .spoil = 3 };
		slow_fpdu(&slow, ulpdu, 700);
		stream.size = slow.at;
		receive_pieces(&stream, true, 0, &got);
		assert_int_equal(got.error, IWARP_OK);
		assert_int_equal(got.fpdus, 1);
	}
}

static void no_marker_points_over_an_fpdu_that_is_too_long(void **state)
{
	static uint8_t ulpdu[IWARP_ULPDU_MAX] = { 0x41, 0x43 }, out[70000];
	struct slow slow = { .to = out, .markers = true, .crc = true };
	const uint8_t *data = out;
	struct iwarp_receiver r;
	size_t bytes;

	(void)state;
	slow_fpdu(&slow, ulpdu, sizeof(ulpdu));
	bytes = slow.at;
	iwarp_receiver_init(&r, true, true, buffer);
	assert_int_equal(iwarp_receiver_take(&r, &data, &bytes), IWARP_BROKEN);
	assert_int_equal(r.error, IWARP_FPDU_MARKER);
	/* Without markers any length is one. */
	slow = (struct slow){ .to = out, .crc = true };
	slow_fpdu(&slow, ulpdu, sizeof(ulpdu));
	data = out;
	bytes = slow.at;
	iwarp_receiver_init(&r, false, true, buffer);
	assert_int_equal(iwarp_receiver_take(&r, &data, &bytes), IWARP_FPDU);
	assert_int_equal(r.segment.bytes, sizeof(ulpdu) - IWARP_UNTAGGED_BYTES);
}

static void a_broken_segment_is_named_and_kept_for_a_terminate(void **state)
{
	static const struct {
		uint8_t ulpdu[20];
		size_t bytes;
		enum iwarp_error error;
	} cases[] = {
		{ { 0 }, 0, IWARP_DDP_SHORT },
		{ { 0xc1 }, 1, IWARP_DDP_SHORT },
		{ { 0xc1, 0x40 }, 13, IWARP_DDP_SHORT },
		{ { 0xc2, 0x40 }, 16, IWARP_DDP_TAGGED_VERSION },
		{ { 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 9 }, 20, IWARP_DDP_QN },
		{ { 0x41, 0x4f }, 20, IWARP_RDMAP_OPCODE },
		{ { 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1 }, 20, IWARP_RDMAP_LENGTH },
	};

	(void)state;
	for (unsigned run = 0; run < 4 * ARRAY_SIZE(cases); run++) {
		unsigned c = run / 4;
		struct slow slow = { .to = stream.bytes, .markers = run & 1, .crc = run & 2 };
		uint8_t good[20] = { 0x41, 0x43 };

		slow_fpdu(&slow, good, sizeof(good));
		slow_fpdu(&slow, cases[c].ulpdu, cases[c].bytes);
		slow_fpdu(&slow, good, sizeof(good));
		stream.size = slow.at;
		stream.markers = run & 1;
		stream.crc = run & 2;
		is_broken_everywhere(cases[c].error, 1);
	}
}

static void the_headers_of_a_broken_segment_are_kept(void **state)
{
	uint8_t ulpdu[90] = { 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 9 };

	(void)state;
	for (unsigned run = 0; run < 8; run++) {
		struct slow slow = { .to = stream.bytes, .markers = run & 1, .crc = run & 2 };
		struct iwarp_receiver r;
		const uint8_t *data = stream.bytes;
		size_t bytes;

		slow_fpdu(&slow, ulpdu, sizeof(ulpdu));
		bytes = slow.at;
		iwarp_receiver_init(&r, run & 1, run & 2, run & 4 ? buffer : NULL);
		assert_int_equal(iwarp_receiver_take(&r, &data, &bytes), IWARP_BROKEN);
		assert_int_equal(r.broken_bytes, sizeof(ulpdu));
		assert_in_range(r.broken_there, IWARP_UNTAGGED_BYTES, sizeof(ulpdu));
		assert_memory_equal(r.broken, ulpdu, r.broken_there);
		/* And it stays broken. */
		assert_int_equal(iwarp_receiver_take(&r, &data, &bytes), IWARP_BROKEN);
		assert_false(iwarp_receiver_idle(&r));
	}
}

static void without_crcs_the_field_does_not_count(void **state)
{
	(void)state;
	make_stream(&stream, 0, 1000, 40);
	memset(stream.bytes + stream.size - 4, 0xa5, 4);
	receive_pieces(&stream, true, 0, &got);
	assert_int_equal(got.error, IWARP_OK);
	assert_int_equal(got.fpdus, stream.fpdus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_fpdu_stands_as_rfc_5044_says),
		cmocka_unit_test(markers_stand_at_each_512th_byte_and_point_back),
		cmocka_unit_test(random_streams_are_those_of_the_slow_way),
		cmocka_unit_test(gathered_pieces_are_the_same_bytes),
		cmocka_unit_test(an_fpdu_fits_into_a_segment_wherever_markers_fall),
		cmocka_unit_test(a_ulpdu_that_no_marker_can_point_over_is_not_sent),
		cmocka_unit_test(what_was_sent_arrives_whatever_the_pieces),
		cmocka_unit_test(segments_arrive_as_they_were_sent),
		cmocka_unit_test(a_stream_may_be_cut_at_each_byte),
		cmocka_unit_test(a_receiver_is_idle_between_fpdus_only),
		cmocka_unit_test(each_wrong_bit_is_found_by_the_crc),
		cmocka_unit_test(a_marker_that_points_elsewhere_is_refused),
		cmocka_unit_test(no_marker_points_over_an_fpdu_that_is_too_long),
		cmocka_unit_test(a_broken_segment_is_named_and_kept_for_a_terminate),
		cmocka_unit_test(the_headers_of_a_broken_segment_are_kept),
		cmocka_unit_test(without_crcs_the_field_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
