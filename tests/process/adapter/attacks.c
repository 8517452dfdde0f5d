/* SPDX-License-Identifier: BSD-2-Clause */
/* The segments of a hostile peer; see terminates.h. RFC 5040, 4.8 and 7; RFC 5041, 7; RFC 5044, 8. */
#include <string.h>

#include "terminates.h"
#include "wire/iwarp/error.h"

static struct iwarp_segment send_of(uint32_t msn, uint32_t bytes)
{
	return (struct iwarp_segment){ .opcode = IWARP_SEND, .last = true, .msn = msn,
				       .bytes = bytes };
}

static struct iwarp_segment write_to(const struct region *mr, uint64_t at, uint32_t bytes)
{
	return (struct iwarp_segment){ .opcode = IWARP_WRITE, .last = true, .stag = mr->rkey,
				       .to = mr->addr + at, .bytes = bytes };
}

static struct iwarp_segment read_of(const struct region *mr, uint64_t at, uint32_t bytes)
{
	return (struct iwarp_segment){
		.opcode = IWARP_READ_REQUEST, .last = true, .msn = 1,
		.read = { .sink_stag = 9, .source_stag = mr->rkey, .source_to = mr->addr + at,
			  .bytes = bytes } };
}

/* With another value in one byte of its headers. */
static void add_changed(struct raw *r, struct iwarp_segment s, unsigned at, uint8_t value)
{
	uint8_t headers[IWARP_HEADERS_MAX];
	size_t bytes = iwarp_segment_encode(&s, headers);

	headers[at] = value;
	raw_frame(r, headers, bytes, s.bytes);
}

#define MAKES(name) static void name(struct raw *r, const struct prey *prey)
/* One segment. */
#define SENDS(name, ...)                                      \
	MAKES(name)                                           \
	{                                                     \
		const struct iwarp_segment s_ = __VA_ARGS__;  \
                                                              \
		(void)prey;                                   \
		raw_add(r, &s_);                              \
	}
/* One segment with a byte that is changed. */
#define CHANGES(name, at, value, ...)                         \
	MAKES(name)                                           \
	{                                                     \
		(void)prey;                                   \
		add_changed(r, __VA_ARGS__, at, value);       \
	}

/* ---- MPA ---- */

MAKES(nothing)
{
	(void)r;
	(void)prey;
}

MAKES(wrong_crc)
{
	struct iwarp_segment s = write_to(&prey->open, 0, 100);

	raw_add(r, &s);
	r->out[r->bytes - 1] ^= 1;
}

/* The first marker of the stream is at its first byte, the second one is in this FPDU. */
MAKES(wrong_marker)
{
	struct iwarp_segment s = write_to(&prey->open, 0, 1000);

	raw_add(r, &s);
	r->out[512 + 3] ^= 4;
}

/* ---- DDP, tagged ---- */

MAKES(too_short_for_a_header)
{
	static const uint8_t bytes[] = { 0xc1, 0x40, 0, 0, 0 };

	(void)prey;
	raw_frame(r, bytes, sizeof(bytes), 0);
}

MAKES(an_empty_frame)
{
	(void)prey;
	raw_frame(r, (const uint8_t *)"", 0, 0);
}

MAKES(write_with_a_wrong_key)
{
	struct iwarp_segment s = write_to(&prey->open, 0, 100);

	s.stag ^= 0x4000;
	raw_add(r, &s);
}

/* Its first segment may be written. */
MAKES(write_that_runs_out_of_the_memory)
{
	struct iwarp_segment s = write_to(&prey->open, 0, 1000);

	s.last = false;
	raw_add(r, &s);
	s.last = true;
	s.to = prey->open.addr + (TO - FROM) - 999;
	raw_add(r, &s);
}

SENDS(write_beyond_the_memory, write_to(&prey->open, TO - FROM - 99, 100))
SENDS(write_before_the_memory, write_to(&prey->open, (uint64_t)-1, 100))
SENDS(write_with_a_key_of_another_domain, write_to(&prey->foreign, 0, 100))
SENDS(write_that_wraps, write_to(&prey->open, (uint64_t)-50 - prey->open.addr, 100))
CHANGES(write_of_another_version, 0, 0xc2, write_to(&prey->open, 0, 100))
CHANGES(write_without_a_version, 0, 0xc0, write_to(&prey->open, 0, 100))

/* ---- DDP, untagged ---- */

CHANGES(send_on_no_queue, 9, 9, send_of(1, 100))
CHANGES(send_on_a_queue_far_away, 6, 0x80, send_of(1, 100))
SENDS(send_of_a_later_number, send_of(2, 100))
SENDS(send_of_an_earlier_number, send_of(0, 100))
SENDS(send_that_begins_in_the_middle, { .opcode = IWARP_SEND, .last = true, .msn = 1, .mo = 10,
					.bytes = 50 })
SENDS(send_with_an_offset_that_wraps, { .opcode = IWARP_SEND, .last = true, .msn = 1,
					.mo = UINT32_MAX - 10, .bytes = 50 })
SENDS(send_that_is_too_long, send_of(1, RECEIVE_BYTES + 1))
CHANGES(send_of_another_version, 0, 0x42, send_of(1, 100))
CHANGES(read_request_with_an_offset, 17, 1, read_of(&prey->open, 0, 8))

MAKES(send_with_a_gap)
{
	struct iwarp_segment s = send_of(1, 40);

	(void)prey;
	s.last = false;
	raw_add(r, &s);
	s.last = true;
	s.mo = 41;
	raw_add(r, &s);
}

MAKES(send_that_grows_too_long)
{
	struct iwarp_segment s = send_of(1, 60);

	(void)prey;
	s.last = false;
	raw_add(r, &s);
	s.mo = 60;
	raw_add(r, &s);
}

MAKES(send_without_a_receive)
{
	(void)prey;
	for (uint32_t i = 1; i <= 2; i++) {
		struct iwarp_segment s = send_of(i, 50);

		raw_add(r, &s);
	}
}

MAKES(reads_beyond_ird)
{
	for (uint32_t i = 1; i <= IRD + 1; i++) {
		struct iwarp_segment s = read_of(&prey->open, 0, 8);

		s.msn = i;
		raw_add(r, &s);
	}
}

MAKES(read_of_a_later_number)
{
	struct iwarp_segment s = read_of(&prey->open, 0, 8);

	s.msn = 2;
	raw_add(r, &s);
}

MAKES(read_request_that_is_too_long)
{
	struct iwarp_segment s = read_of(&prey->open, 0, 8);
	uint8_t headers[IWARP_HEADERS_MAX];

	raw_frame(r, headers, iwarp_segment_encode(&s, headers), 4);
}

/* ---- RDMAP ---- */

SENDS(send_of_one, send_of(1, RECEIVE_BYTES))

MAKES(read_with_a_wrong_key)
{
	struct iwarp_segment s = read_of(&prey->open, 0, 100);

	s.read.source_stag ^= 0x4000;
	raw_add(r, &s);
}

MAKES(read_into_what_wraps)
{
	struct iwarp_segment s = read_of(&prey->open, 0, 100);

	s.read.sink_to = (uint64_t)-50;
	raw_add(r, &s);
}

SENDS(read_beyond_the_memory, read_of(&prey->open, TO - FROM - 99, 100))
SENDS(read_of_gigabytes, read_of(&prey->open, 0, UINT32_MAX))
SENDS(read_without_the_right, read_of(&prey->closed, 0, 100))
SENDS(write_without_the_right, write_to(&prey->closed, 0, 100))
SENDS(read_with_a_key_of_another_domain, read_of(&prey->foreign, 0, 100))
SENDS(read_that_wraps, read_of(&prey->open, (uint64_t)-50 - prey->open.addr, 100))
/* What was registered by a verb is no message's to take back. */
SENDS(invalidates_a_region, { .opcode = IWARP_SEND_INVALIDATE, .last = true, .msn = 1,
			      .invalidate_stag = prey->open.rkey })
SENDS(invalidates_nothing, { .opcode = IWARP_SEND_SE_INVALIDATE, .last = true, .msn = 1,
			     .invalidate_stag = prey->open.rkey ^ 0x4000 })
CHANGES(send_of_another_rdmap_version, 1, 0x83, send_of(1, 100))
CHANGES(send_without_an_rdmap_version, 1, 0x03, send_of(1, 100))
CHANGES(an_unknown_opcode, 1, 0x4c, send_of(1, 0))
CHANGES(a_tagged_send, 1, 0x43, write_to(&prey->open, 0, 100))
CHANGES(a_send_on_the_queue_of_reads, 9, 1, send_of(1, 100))
SENDS(an_atomic, { .opcode = IWARP_ATOMIC_REQUEST, .last = true, .msn = 1,
		   .atomic = { .operation = IWARP_FETCH_ADD, .stag = prey->open.rkey,
			       .to = prey->open.addr } })
SENDS(immediate_data, { .opcode = IWARP_IMMEDIATE, .last = true, .msn = 1 })
SENDS(an_answer_to_nothing, { .opcode = IWARP_READ_RESPONSE, .last = true,
			      .stag = prey->open.rkey, .to = prey->open.addr, .bytes = 100 })
CHANGES(read_request_that_goes_on, 0, 0x01, read_of(&prey->open, 0, 8))

MAKES(read_request_that_is_too_short)
{
	struct iwarp_segment s = read_of(&prey->open, 0, 8);
	uint8_t headers[IWARP_HEADERS_MAX];

	raw_frame(r, headers, iwarp_segment_encode(&s, headers) - 4, 0);
}

#define ACCESS .event = IBV_EVENT_QP_ACCESS_ERR
#define REQUEST .event = IBV_EVENT_QP_REQ_ERR
#define FATAL .event = IBV_EVENT_QP_FATAL
#define ATTACK(make_, says_, ...) \
	{ .name = #make_, .make = make_, .says = says_, __VA_ARGS__ }
/* What no peer can cause: the connection manager says it. */
#define REFUSED(error_, says_, ...) \
	{ .name = #error_, .make = nothing, .says = says_, .how.refused = error_, __VA_ARGS__ }

const struct attack attacks[] = {
	ATTACK(wrong_crc, 0x2002, REQUEST, .how.crc = true),
	ATTACK(wrong_marker, 0x2003, REQUEST, .how.markers = true),

	ATTACK(too_short_for_a_header, 0x1000, REQUEST),
	ATTACK(an_empty_frame, 0x1000, REQUEST),
	ATTACK(write_with_a_wrong_key, 0x1100, ACCESS),
	ATTACK(write_beyond_the_memory, 0x1101, ACCESS),
	ATTACK(write_before_the_memory, 0x1101, ACCESS),
	ATTACK(write_that_runs_out_of_the_memory, 0x1101, ACCESS, .may_open = 1000),
	ATTACK(write_with_a_key_of_another_domain, 0x1102, ACCESS),
	ATTACK(write_that_wraps, 0x1103, ACCESS),
	ATTACK(write_of_another_version, 0x1104, REQUEST),
	ATTACK(write_without_a_version, 0x1104, REQUEST),

	ATTACK(send_on_no_queue, 0x1201, REQUEST),
	ATTACK(send_on_a_queue_far_away, 0x1201, REQUEST),
	ATTACK(send_without_a_receive, 0x1202, REQUEST, .may_receive = 50, .received = true),
	ATTACK(reads_beyond_ird, 0x1202, REQUEST),
	ATTACK(send_of_a_later_number, 0x1203, REQUEST),
	ATTACK(send_of_an_earlier_number, 0x1203, REQUEST),
	ATTACK(read_of_a_later_number, 0x1203, REQUEST),
	ATTACK(send_that_begins_in_the_middle, 0x1204, REQUEST),
	ATTACK(send_with_an_offset_that_wraps, 0x1204, REQUEST),
	ATTACK(send_with_a_gap, 0x1204, REQUEST, .may_receive = 40),
	ATTACK(read_request_with_an_offset, 0x1204, REQUEST),
	ATTACK(send_that_is_too_long, 0x1205, REQUEST, .receive = IBV_WC_LOC_LEN_ERR),
	ATTACK(send_that_grows_too_long, 0x1205, REQUEST, .may_receive = 60,
	       .receive = IBV_WC_LOC_LEN_ERR),
	ATTACK(read_request_that_is_too_long, 0x1205, REQUEST),
	ATTACK(send_of_another_version, 0x1206, REQUEST),

	{ .name = "send into a wrong key of the receiver", .make = send_of_one, .says = 0x0000,
	  FATAL, .bad_receive = true, .receive = IBV_WC_LOC_PROT_ERR },
	ATTACK(read_with_a_wrong_key, 0x0100, ACCESS),
	ATTACK(read_beyond_the_memory, 0x0101, ACCESS),
	ATTACK(read_of_gigabytes, 0x0101, ACCESS),
	ATTACK(read_without_the_right, 0x0102, ACCESS),
	ATTACK(write_without_the_right, 0x0102, ACCESS),
	ATTACK(read_with_a_key_of_another_domain, 0x0103, ACCESS),
	ATTACK(read_that_wraps, 0x0104, ACCESS),
	ATTACK(read_into_what_wraps, 0x0104, ACCESS),
	ATTACK(invalidates_a_region, 0x0109, ACCESS),
	ATTACK(invalidates_nothing, 0x0109, ACCESS),
	ATTACK(send_of_another_rdmap_version, 0x0205, REQUEST),
	ATTACK(send_without_an_rdmap_version, 0x0205, REQUEST),
	ATTACK(an_unknown_opcode, 0x0206, REQUEST),
	ATTACK(a_tagged_send, 0x0206, REQUEST),
	ATTACK(a_send_on_the_queue_of_reads, 0x0206, REQUEST),
	ATTACK(an_atomic, 0x0206, REQUEST),
	ATTACK(immediate_data, 0x0206, REQUEST),
	ATTACK(an_answer_to_nothing, 0x0206, REQUEST),
	ATTACK(read_request_that_is_too_short, 0x0207, REQUEST),
	ATTACK(read_request_that_goes_on, 0x0207, REQUEST),

	/* Atomics that are not aligned, which an RNIC does not have; and what no code of ours finds. */
	REFUSED(IWARP_RDMAP_PROTECTION, 0x01ff, ACCESS),
	REFUSED(IWARP_RDMAP_GLOBAL, 0x0208, REQUEST),
	REFUSED(IWARP_RDMAP_OPERATION, 0x02ff, REQUEST),
	REFUSED(IWARP_DDP_CATASTROPHIC, 0x1000, FATAL),
	REFUSED(IWARP_MPA_LOST, 0x2001, REQUEST),
	REFUSED(IWARP_MPA_ENHANCED, 0x2004, REQUEST),
	REFUSED(IWARP_MPA_CATASTROPHIC, 0x2005, FATAL),
	REFUSED(IWARP_MPA_IRD, 0x2006, REQUEST),
	REFUSED(IWARP_MPA_RTR, 0x2007, REQUEST),
};
const unsigned attack_count = sizeof(attacks) / sizeof(attacks[0]);
