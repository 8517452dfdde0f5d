/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of iWARP: frames of MPA, DDP segments, and the receiver of FPDUs. The first byte of
 * an input says which (enum kind), the second is the seed of the pieces in which the receiver gets
 * the rest. Built plainly, main() runs a bounded number of random mutations of valid inputs
 * (argument 1: runs, argument 2: seed) and of a small corpus; built with -fsanitize=fuzzer and
 * -DFUZZER, libFuzzer drives it.
 */
#include <stdlib.h>
#include <string.h>

#define MUTATE_BYTES "\x00\x01\x02\x03\x0f\x40\x41\x43\x47\x4a\x80\x81\xc0\xc1\xff\xfc"
#include "drive.h"
#include "iwarp_samples.h"
#include "wire/iwarp/mpa.h"
#include "wire/iwarp/receiver.h"

enum kind { /* bits of the first byte */
	MARKERS = 1,
	CRC = 2,
	WHAT = 0x0c,
	STREAM = 0x00, STREAM_TOO = 0x04, SEGMENT = 0x08, MPA = 0x0c,
	REPLY = 0x10,
};

static void check(bool good)
{
	if (!good)
		abort();
}

/* ---- frames of MPA ---- */

/* What was accepted can be said again, and means the same. */
static void mpa(const uint8_t *data, size_t size, bool reply)
{
	struct iwarp_mpa frame, again;
	uint8_t out[2][IWARP_MPA_FRAME_MAX];
	size_t bytes = 0, same = 0;
	enum iwarp_error error = iwarp_mpa_decode(data, size, reply, &frame, &bytes);

	if (error) {
		check(iwarp_error_control(error) == 0x20040000);
		return;
	}
	check(bytes >= IWARP_MPA_HEADER_BYTES && bytes <= IWARP_MPA_FRAME_MAX);
	if (bytes > size)
		return;
	check(frame.private_data + frame.private_bytes == data + bytes);
	check(iwarp_mpa_encode(&frame, out[0]) == bytes);
	check(!iwarp_mpa_decode(out[0], bytes, reply, &again, &same) && same == bytes);
	check(iwarp_mpa_encode(&again, out[1]) == bytes && !memcmp(out[0], out[1], bytes));
}

/* ---- segments ---- */

static void terminate(const struct iwarp_segment *s)
{
	const struct iwarp_terminate *t = &s->terminate;

	check(iwarp_layer_text(t->layer) && iwarp_type_text(t->layer, t->type) &&
	      iwarp_code_text(t->layer, t->type, t->code));
	check(t->ddp_bytes <= sizeof(t->ddp) && t->rdmap_bytes <= sizeof(t->rdmap));
}

static void fill(enum iwarp_error error, const uint8_t *data, size_t there, size_t size)
{
	struct iwarp_segment s = { .opcode = IWARP_TERMINATE, .msn = 1 }, back;
	uint8_t out[IWARP_HEADERS_MAX];
	size_t bytes, header;

	iwarp_terminate_fill(&s.terminate, error, data, there, size);
	bytes = iwarp_segment_encode(&s, out);
	check(bytes >= IWARP_UNTAGGED_BYTES + IWARP_TERMINATE_MIN);
	check(!iwarp_segment_decode(out, bytes, bytes, &back, &header));
	check(back.terminate.layer == s.terminate.layer && !back.terminate.siw_order &&
	      back.terminate.code == s.terminate.code);
}

static void segment(const uint8_t *data, size_t size)
{
	size_t need = iwarp_segment_need(data, size, size), header = 0, same = 0;
	uint8_t out[2][IWARP_HEADERS_MAX];
	struct iwarp_segment s, again;
	enum iwarp_error error;

	check(need <= size && need <= IWARP_HEADERS_MAX);
	error = iwarp_segment_decode(data, need, size, &s, &header);
	check(error < IWARP_ERRORS);
	fill(error ? error : IWARP_DDP_MSN, data, need, size);
	if (error)
		return;
	check(header <= need && header + s.bytes == size);
	if (s.opcode == IWARP_TERMINATE)
		terminate(&s);
	check(iwarp_segment_encode(&s, out[0]) == header);
	check(!iwarp_segment_decode(out[0], header, header + s.bytes, &again, &same) &&
	      same == header && again.bytes == s.bytes);
	check(iwarp_segment_encode(&again, out[1]) == header &&
	      !memcmp(out[0], out[1], header));
}

/* ---- the receiver ---- */

/* What came: a sum over all headers and payload bytes of whole FPDUs. */
struct result {
	enum iwarp_error error;
	unsigned fpdus;
	uint64_t sum, sure;
	uint32_t payload;
	bool idle;
};

static void add(struct result *r, const uint8_t *data, size_t bytes)
{
	while (bytes--)
		r->sum = (r->sum ^ *data++) * UINT64_C(0x100000001b3);
}

static void add_headers(struct result *r, const struct iwarp_receiver *rx)
{
	uint8_t header[IWARP_HEADERS_MAX];
	size_t bytes = iwarp_segment_encode(&rx->segment, header);

	check(bytes == rx->header_bytes);
	add(r, header, bytes);
	r->payload = 0;
}

static void add_payload(struct result *r, const uint8_t *data, size_t bytes)
{
	add(r, data, bytes);
	r->payload += (uint32_t)bytes;
}

static void event_came(struct result *r, const struct iwarp_receiver *rx, enum iwarp_event event)
{
	if (event == IWARP_HEADER || (event == IWARP_FPDU && rx->buffer))
		add_headers(r, rx);
	if (event == IWARP_PAYLOAD) {
		check(!rx->buffer && rx->piece_offset == r->payload && rx->piece_bytes);
		add_payload(r, rx->piece, rx->piece_bytes);
	}
	if (event == IWARP_FPDU && rx->buffer && rx->segment.bytes)
		add_payload(r, rx->segment.payload, rx->segment.bytes);
	if (event == IWARP_FPDU) {
		check(r->payload == rx->segment.bytes);
		r->fpdus++;
		r->sure = r->sum;
	}
	if (event == IWARP_BROKEN) {
		check(rx->error && rx->broken_there <= rx->broken_bytes);
		fill(rx->error, rx->broken, rx->broken_there, rx->broken_bytes);
	}
}

/* In random pieces, each from memory of exactly that length; in one piece without a `seed`. */
static struct result receive(uint8_t kind, uint8_t *buffer, unsigned seed, const uint8_t *data,
			     size_t size)
{
	struct prng prng = prng_from(seed);
	struct iwarp_receiver rx;
	struct result r = { 0 };
	enum iwarp_event event = IWARP_NOTHING;

	iwarp_receiver_init(&rx, kind & MARKERS, kind & CRC, buffer);
	while (size && event != IWARP_BROKEN) {
		size_t n = seed ? 1 + prng_below(&prng, seed % 3 ? 30 : 700) : size, left;
		uint8_t *copy;
		const uint8_t *at;

		left = n = n < size ? n : size;
		copy = malloc(n);
		check(copy != NULL);
		memcpy(copy, data, n);
		at = copy;
		do {
			event = iwarp_receiver_take(&rx, &at, &left);
			check(at + left == copy + n);
			event_came(&r, &rx, event);
		} while (event != IWARP_NOTHING && event != IWARP_BROKEN);
		free(copy);
		data += n;
		size -= n;
	}
	r.error = rx.error;
	r.idle = iwarp_receiver_idle(&rx);
	return r;
}

static void stream(uint8_t kind, unsigned seed, const uint8_t *data, size_t size)
{
	static uint8_t buffer[IWARP_ULPDU_MAX];
	struct result whole = receive(kind, buffer, 0, data, size);
	struct result pieces = receive(kind, buffer, seed + 1, data, size);
	struct result placed = receive(kind, NULL, 0, data, size);
	struct result both = receive(kind, NULL, seed + 1, data, size);

	/* The same however it is cut. */
	check(whole.error == pieces.error && whole.fpdus == pieces.fpdus &&
	      whole.sure == pieces.sure && whole.idle == pieces.idle);
	check(placed.error == both.error && placed.fpdus == both.fpdus &&
	      placed.sure == both.sure && placed.idle == both.idle);
	/* Without a buffer a wrong header may be seen before a wrong marker. */
	check(whole.fpdus == placed.fpdus && whole.sure == placed.sure);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	switch (data[0] & WHAT) {
	case MPA:
		mpa(data + 2, size - 2, data[0] & REPLY);
		break;
	case SEGMENT:
		segment(data + 2, size - 2);
		break;
	default:
		stream(data[0], data[1], data + 2, size - 2);
	}
	return 0;
}

#ifndef FUZZER
#define STREAM_BYTES 4000

#define INPUT(bytes) { bytes, sizeof(bytes) - 1 }
#define DDP_UNTAGGED(qn) "\0\0\0\0\0\0\0" qn "\0\0\0\1\0\0\0\0"
static const struct {
	const char *bytes;
	size_t size;
} corpus[] = {
	/* A request of Linux's siw, and one of revision 1 with private data. */
	INPUT("\x0c\0MPA ID Req Frame\x18\x02\0\4\x80\x80\xc0\x80"),
	INPUT("\x0c\0MPA ID Req Frame\xc0\x01\0\3abc"),
	INPUT("\x1c\0MPA ID Rep Frame\x30\x02\0\4\0\1\x40\1"),
	/* A WRITE of nothing, a SEND, a READ request that is too short. */
	INPUT("\x08\0\xc1\x40\0\0\0\1\0\0\0\0\0\0\0\0"),
	INPUT("\x08\0\x41\x43" DDP_UNTAGGED("\0") "hello"),
	INPUT("\x08\0\x41\x41" DDP_UNTAGGED("\1") "\0\0\0\7"),
	/* TERMINATEs: of the RFC, of siw, of siw with an R flag and without the header. */
	INPUT("\x08\0\x41\x47" DDP_UNTAGGED("\2") "\x20\2\0\0"),
	INPUT("\x08\0\x41\x47" DDP_UNTAGGED("\2") "\x10\1\3\0\0\x2e\x41\x41" DDP_UNTAGGED("\1")),
	INPUT("\x08\0\x41\x47" DDP_UNTAGGED("\2") "\x10\2\7\0\0\x14\x41\x43" DDP_UNTAGGED("\0")),
	/* Streams: no ULPDU, two FPDUs, a marker in front. */
	INPUT("\0\0\0\0\0\0\0\0\0\0"),
	INPUT("\0\0\0\x0e\xc1\x40\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0"
	      "\0\x0f\xc1\x40\0\0\0\1\0\0\0\0\0\0\0\0x\0\0\0\0\0\0\0"),
	INPUT("\1\0\0\0\0\0\0\x0e\xc1\x40\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0"),
};

static size_t random_input(uint8_t *to)
{
	struct prng prng = prng_from(random_below(UINT64_MAX));
	struct iwarp_framer f = { .markers = random_below(2), .crc = !random_below(4) };
	struct iwarp_segment s = sample_segment(&prng, sample_opcode(&prng), 30);
	unsigned fpdus;

	to[1] = (uint8_t)random_below(256);
	if (!random_below(3)) {
		to[0] = SEGMENT;
		return 2 + sample_ulpdu(&prng, &s, to + 2);
	}
	to[0] = (uint8_t)(STREAM | (f.markers ? MARKERS : 0) | (f.crc ? CRC : 0));
	return 2 + sample_stream(&prng, &f, random_below(2) ? 30 : 600, to + 2,
				 800 + random_below(STREAM_BYTES - 800), &fpdus);
}

static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t size;

	if (random_below(3)) {
		size = random_input(bytes);
	} else {
		size_t i = random_below(sizeof(corpus) / sizeof(corpus[0]));

		size = corpus[i].size;
		memcpy(bytes, corpus[i].bytes, size);
	}
	return mutate_times(bytes, size, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++)
		LLVMFuzzerTestOneInput((const uint8_t *)corpus[i].bytes, corpus[i].size);
	return drive(argc, argv, 300000, STREAM_BYTES + 100, make);
}
#endif
