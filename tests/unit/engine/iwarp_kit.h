/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of an iWARP connection whose peer is the test: for the other tests beside this file. */
#ifndef TESTS_UNIT_ENGINE_IWARP_KIT_H
#define TESTS_UNIT_ENGINE_IWARP_KIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/iwarp/connection.h"
#include "util/container_of.h"

enum { ENTRIES = 16, MULPDU = 128, BEGIN_NS = 1000, CLOSE_NS = 500 };

static struct iwarp_connection c;
static struct iwarp_wqe ring[ENTRIES];
static struct iwarp_outcome last; /* of the last call */

static void check_at(bool good, const char *what, int line)
{
	if (good)
		return;
	printf("failed at line %d: %s\n", line, what);
	exit(1);
}
#define check(good, what) check_at(good, what, __LINE__)
/* Of the last call. */
#define expect_done(index, result, what) \
	check(last.done.upto == (index) && last.done.status == (result), what)

static inline struct iwarp_terms terms_of(bool initiator)
{
	return (struct iwarp_terms){ .initiator = initiator, .crc = true, .ird = 2, .ord = 2 };
}

static inline void open_terms(const struct iwarp_terms *t)
{
	const struct iwarp_connection_params p = {
		.terms = t, .mulpdu = MULPDU, .extended = true, .begin_ns = BEGIN_NS,
		.close_ns = CLOSE_NS, .ring = { ring, sizeof(ring[0]), ENTRIES - 1 },
	};

	iwarp_connection_open(&c, &p, 1);
	memset(&last, 0, sizeof(last));
}

static inline void open_end(bool initiator)
{
	const struct iwarp_terms t = terms_of(initiator);

	open_terms(&t);
}

static inline void post(uint8_t op, uint8_t flags, uint32_t length)
{
	ring[c.rq.head % ENTRIES] = (struct iwarp_wqe){
		.op = op, .flags = flags, .length = length, .imm = 0x01020304, .stag = 7,
		.to = 0x1000, .compare_add = 5, .swap = 6 };
	check(iwarp_request_possible(&c.rq, &ring[c.rq.head % ENTRIES]), "possible");
	iwarp_post(&c.rq);
}

static inline bool can_send(void)
{
	struct iwarp_tx tx;

	return iwarp_next(&c, c.rq.head, &tx);
}

/* Frames the next segment; TCP does not take it. */
static inline struct iwarp_segment frame(void)
{
	static uint8_t to[2 * MULPDU + IWARP_FPDU_EXTRA], payload[MULPDU];
	uint8_t headers[IWARP_HEADERS_MAX];
	struct iwarp_tx tx;
	struct iovec pieces[2] = { { headers, 0 }, { payload, 0 } };

	check(iwarp_next(&c, c.rq.head, &tx), "there is a segment");
	pieces[0].iov_len = iwarp_segment_encode(&tx.segment, headers);
	pieces[1].iov_len = tx.segment.bytes;
	check(iwarp_framer_write(&c.framer, pieces, 2, to), "an FPDU");
	iwarp_framed(&c, &tx);
	return tx.segment;
}

static inline void took_all(void)
{
	last = iwarp_took(&c, c.framer.position - c.taken);
}

static inline struct iwarp_segment send_one(void)
{
	struct iwarp_segment s = frame();

	took_all();
	return s;
}

/* The end carries out what this segment needs, with this answer. */
static inline struct iwarp_arrival arrive_with(struct iwarp_segment s, enum iwarp_answer answer)
{
	struct iwarp_arrival a;

	memset(&last, 0, sizeof(last));
	if (iwarp_arrived(&c, &s, &a))
		last = iwarp_carried_out(&c, &s, &a, answer, 9, IBV_WC_SUCCESS);
	return a;
}

static inline struct iwarp_arrival arrive(struct iwarp_segment s)
{
	return arrive_with(s, IWARP_DONE);
}

static inline struct iwarp_segment send_segment(uint32_t msn, uint32_t mo, uint32_t bytes,
						bool is_last)
{
	return (struct iwarp_segment){ .opcode = IWARP_SEND, .msn = msn, .mo = mo, .bytes = bytes,
				       .last = is_last };
}

static inline struct iwarp_segment write_segment(uint32_t bytes, bool is_last)
{
	return (struct iwarp_segment){ .opcode = IWARP_WRITE, .stag = 3, .to = 0x2000,
				       .bytes = bytes, .last = is_last };
}

static inline struct iwarp_segment read_request(uint32_t msn, uint32_t bytes)
{
	return (struct iwarp_segment){ .opcode = IWARP_READ_REQUEST, .msn = msn, .last = true,
				       .read = { .sink_stag = 40 + msn, .sink_to = 0x300,
						 .source_stag = 4, .source_to = 0x400,
						 .bytes = bytes } };
}

static inline struct iwarp_segment read_response(uint32_t stag, uint64_t to, uint32_t bytes,
						 bool is_last)
{
	return (struct iwarp_segment){ .opcode = IWARP_READ_RESPONSE, .stag = stag, .to = to,
				       .bytes = bytes, .last = is_last };
}

static inline struct iwarp_segment atomic_request(uint32_t msn)
{
	return (struct iwarp_segment){ .opcode = IWARP_ATOMIC_REQUEST, .msn = msn, .last = true,
				       .atomic = { .operation = IWARP_FETCH_ADD, .request = 5,
						   .stag = 4, .to = 0x400, .add_swap = 1 } };
}

static inline struct iwarp_segment atomic_response(uint32_t msn, uint32_t request)
{
	return (struct iwarp_segment){ .opcode = IWARP_ATOMIC_RESPONSE, .msn = msn, .last = true,
				       .atomic_response = { request, 77 } };
}

static inline struct iwarp_segment immediate(uint32_t msn)
{
	return (struct iwarp_segment){ .opcode = IWARP_IMMEDIATE, .msn = msn, .last = true,
				       .immediate = UINT64_C(0x0102030400000000) };
}

static inline struct iwarp_segment terminate_of(uint8_t layer, uint8_t type, uint8_t code)
{
	return (struct iwarp_segment){
		.opcode = IWARP_TERMINATE, .msn = 1, .last = true,
		.terminate = { .layer = layer, .type = type, .code = code } };
}

/* What is sent is a TERMINATE that says this, and then nothing. */
static inline void expect_terminate(enum iwarp_error error)
{
	uint32_t control = iwarp_error_control(error);
	struct iwarp_segment s = send_one();

	check(c.error == error, "the rule that was broken");
	check(s.opcode == IWARP_TERMINATE && s.msn == 1 && s.terminate.layer == control >> 28 &&
		      s.terminate.type == (control >> 24 & 15) &&
		      s.terminate.code == (control >> 16 & 255),
	      "a TERMINATE about it");
	check(!can_send(), "and nothing behind it");
	check(iwarp_action(&c, 1) == IWARP_SHUTDOWN, "the own direction ends");
	iwarp_shut(&c);
	check(iwarp_action(&c, 1) == IWARP_NO_ACTION, "the peer's is awaited");
}

#endif
