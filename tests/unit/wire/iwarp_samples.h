/* SPDX-License-Identifier: BSD-2-Clause */
/* Random DDP segments and streams of FPDUs, for tests and fuzzers of wire/iwarp. */
#ifndef TESTS_IWARP_SAMPLES_H
#define TESTS_IWARP_SAMPLES_H

#include <string.h>

#include "util/prng.h"
#include "wire/iwarp/fpdu.h"
#include "wire/iwarp/segment.h"

static inline void sample_fill(struct prng *prng, void *to, size_t bytes)
{
	uint8_t *at = to;

	while (bytes--)
		*at++ = (uint8_t)prng_next(prng);
}

static inline void sample_terminate(struct prng *prng, struct iwarp_terminate *t)
{
	uint64_t bits = prng_next(prng);

	/* Of siw only that order counts which no flag tells apart; flags here always. */
	t->layer = bits & 15;
	t->type = bits >> 4 & 15;
	t->code = (uint8_t)(bits >> 8);
	t->has_length = bits >> 16 & 1;
	t->has_ddp = bits >> 17 & 1;
	t->has_rdmap = bits >> 18 & 1 || !(t->has_length || t->has_ddp);
	t->segment_bytes = t->has_length || t->has_ddp ? (uint16_t)(bits >> 32) : 0;
	if (t->has_ddp) {
		sample_fill(prng, t->ddp, sizeof(t->ddp));
		t->ddp_bytes = t->ddp[0] & 0x80 ? IWARP_TAGGED_BYTES : IWARP_UNTAGGED_BYTES;
		memset(t->ddp + t->ddp_bytes, 0, sizeof(t->ddp) - t->ddp_bytes);
	}
	if (t->has_rdmap && bits >> 19 & 1) {
		t->rdmap_bytes = IWARP_READ_REQUEST_BYTES;
		sample_fill(prng, t->rdmap, t->rdmap_bytes);
	}
}

static inline void sample_message(struct prng *prng, struct iwarp_segment *s)
{
	switch (s->opcode) {
	case IWARP_READ_REQUEST:
		s->read.sink_stag = (uint32_t)prng_next(prng);
		s->read.sink_to = prng_next(prng);
		s->read.bytes = (uint32_t)prng_next(prng);
		s->read.source_stag = (uint32_t)prng_next(prng);
		s->read.source_to = prng_next(prng) >> 1;
		break;
	case IWARP_TERMINATE:
		sample_terminate(prng, &s->terminate);
		break;
	case IWARP_IMMEDIATE:
	case IWARP_IMMEDIATE_SE:
		s->immediate = prng_next(prng);
		break;
	case IWARP_ATOMIC_REQUEST:
		s->atomic.operation = prng_next(prng) & 1 ? IWARP_FETCH_ADD : IWARP_COMPARE_SWAP;
		s->atomic.request = (uint32_t)prng_next(prng);
		s->atomic.stag = (uint32_t)prng_next(prng);
		s->atomic.to = prng_next(prng);
		s->atomic.add_swap = prng_next(prng);
		s->atomic.add_swap_mask = prng_next(prng);
		s->atomic.compare = prng_next(prng);
		s->atomic.compare_mask = prng_next(prng);
		break;
	case IWARP_ATOMIC_RESPONSE:
		s->atomic_response.request = (uint32_t)prng_next(prng);
		s->atomic_response.original = prng_next(prng);
		break;
	default:
		break;
	}
}

/* A segment of this opcode, which is known, with up to `most` bytes of payload. */
static inline struct iwarp_segment sample_segment(struct prng *prng, uint8_t opcode, size_t most)
{
	const struct iwarp_opcode_info *op = &iwarp_opcodes[opcode];
	struct iwarp_segment s;

	memset(&s, 0, sizeof(s));
	s.opcode = opcode;
	s.last = !op->payload || (prng_next(prng) & 1);
	if (op->payload)
		s.bytes = (uint32_t)prng_below(prng, most + 1);
	if (op->tagged) {
		s.stag = (uint32_t)prng_next(prng);
		s.to = prng_next(prng) >> 1;
	} else {
		s.msn = (uint32_t)prng_next(prng);
		if (op->payload)
			s.mo = (uint32_t)prng_next(prng) >> 1;
		if (op->invalidates)
			s.invalidate_stag = (uint32_t)prng_next(prng);
	}
	sample_message(prng, &s);
	return s;
}

static inline uint8_t sample_opcode(struct prng *prng)
{
	return (uint8_t)prng_below(prng, IWARP_ATOMIC_RESPONSE + 1);
}

/* The ULPDU of `s` at `to`, with random payload; its length. */
static inline size_t sample_ulpdu(struct prng *prng, const struct iwarp_segment *s, uint8_t *to)
{
	size_t header = iwarp_segment_encode(s, to);

	sample_fill(prng, to + header, s->bytes);
	return header + s->bytes;
}

/* FPDUs of random segments at `to` until less than `most` + 700 bytes are free; the length. */
static inline size_t sample_stream(struct prng *prng, struct iwarp_framer *f, size_t most,
				   uint8_t *to, size_t room, unsigned *fpdus)
{
	static uint8_t ulpdu[IWARP_ULPDU_MAX];
	size_t bytes = 0;

	*fpdus = 0;
	while (bytes + most + 700 < room) {
		struct iwarp_segment s = sample_segment(prng, sample_opcode(prng), most);
		struct iovec piece = { ulpdu, sample_ulpdu(prng, &s, ulpdu) };

		bytes += iwarp_framer_write(f, &piece, 1, to + bytes);
		++*fpdus;
	}
	return bytes;
}

#endif
