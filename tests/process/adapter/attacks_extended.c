/* SPDX-License-Identifier: BSD-2-Clause */
/* The segments of a hostile peer to an end that takes atomics and immediate data; see terminates.h. RFC
 * 7306, 5, 6 and 8. */
#include "terminates.h"

#define MAKES(name) static void name(struct raw *r, const struct prey *prey)

/* Adds 1 to the word at `at`. */
static struct iwarp_segment atomic_of(const struct region *mr, uint64_t at, uint32_t msn)
{
	return (struct iwarp_segment){
		.opcode = IWARP_ATOMIC_REQUEST, .last = true, .msn = msn,
		.atomic = { .operation = IWARP_FETCH_ADD, .request = 7, .stag = mr->rkey,
			    .to = mr->addr + at, .add_swap = 1 } };
}

static struct iwarp_segment immediate_of(uint32_t msn)
{
	return (struct iwarp_segment){ .opcode = IWARP_IMMEDIATE, .last = true, .msn = msn };
}

static struct iwarp_segment write_of(const struct region *mr, uint32_t bytes)
{
	return (struct iwarp_segment){ .opcode = IWARP_WRITE, .last = true, .stag = mr->rkey,
				       .to = mr->addr, .bytes = bytes };
}

static void add(struct raw *r, struct iwarp_segment s)
{
	raw_add(r, &s);
}

static void add_in_part(struct raw *r, struct iwarp_segment s)
{
	s.last = false;
	raw_add(r, &s);
}

/* With another value in one byte of its headers. */
static void add_changed(struct raw *r, struct iwarp_segment s, unsigned at, uint8_t value)
{
	uint8_t headers[IWARP_HEADERS_MAX];
	size_t bytes = iwarp_segment_encode(&s, headers);

	headers[at] = value;
	raw_frame(r, headers, bytes, 0);
}

/* ---- atomics ---- */

MAKES(atomic_without_the_right)
{
	add(r, atomic_of(&prey->open, 0, 1));
}

MAKES(atomic_that_is_not_aligned)
{
	add(r, atomic_of(&prey->atomic, 4, 1));
}

MAKES(atomic_with_a_wrong_key)
{
	struct iwarp_segment s = atomic_of(&prey->atomic, 0, 1);

	s.atomic.stag ^= 0x4000;
	add(r, s);
}

MAKES(atomic_behind_the_memory)
{
	add(r, atomic_of(&prey->atomic, TO - FROM, 1));
}

MAKES(atomic_in_front_of_the_memory)
{
	add(r, atomic_of(&prey->atomic, (uint64_t)-8, 1));
}

MAKES(atomic_at_the_last_address)
{
	add(r, atomic_of(&prey->atomic, (uint64_t)-8 - prey->atomic.addr, 1));
}

MAKES(atomic_with_a_key_of_another_domain)
{
	add(r, atomic_of(&prey->foreign, 0, 1));
}

MAKES(atomic_with_a_mask)
{
	struct iwarp_segment s = atomic_of(&prey->atomic, 0, 1);

	s.atomic.add_swap_mask = 0x80;
	add(r, s);
}

MAKES(swap_of_some_bits)
{
	struct iwarp_segment s = atomic_of(&prey->atomic, 0, 1);

	s.atomic.operation = IWARP_COMPARE_SWAP;
	s.atomic.add_swap_mask = UINT64_MAX;
	s.atomic.compare_mask = UINT64_MAX - 1;
	add(r, s);
}

MAKES(unknown_atomic)
{
	add_changed(r, atomic_of(&prey->atomic, 0, 1), IWARP_UNTAGGED_BYTES + 3, 1);
}

MAKES(atomic_of_a_later_number)
{
	add(r, atomic_of(&prey->atomic, 0, 2));
}

/* The first one is carried out, the others are not. */
MAKES(atomic_that_is_repeated)
{
	for (int i = 0; i < 3; i++)
		add(r, atomic_of(&prey->atomic, 0, 1));
}

/* As many as were granted are carried out. */
MAKES(atomics_and_reads_beyond_ird)
{
	for (uint32_t i = 1; i <= IRD; i++)
		add(r, (struct iwarp_segment){
			.opcode = IWARP_READ_REQUEST, .last = true, .msn = i,
			.read = { .source_stag = prey->open.rkey, .source_to = prey->open.addr,
				  .bytes = 8 } });
	add(r, atomic_of(&prey->atomic, 0, IRD + 1));
}

MAKES(atomic_that_goes_on)
{
	add_changed(r, atomic_of(&prey->atomic, 0, 1), 0, 0x01);
}

MAKES(atomic_on_the_queue_of_messages)
{
	add_changed(r, atomic_of(&prey->atomic, 0, 1), 9, 0);
}

MAKES(atomic_that_is_too_long)
{
	struct iwarp_segment s = atomic_of(&prey->atomic, 0, 1);
	uint8_t headers[IWARP_HEADERS_MAX];

	raw_frame(r, headers, iwarp_segment_encode(&s, headers), 4);
}

MAKES(atomic_answer_to_nothing)
{
	(void)prey;
	add(r, (struct iwarp_segment){ .opcode = IWARP_ATOMIC_RESPONSE, .last = true, .msn = 1 });
}

/* ---- immediate data ---- */

MAKES(immediate_data_without_a_receive)
{
	(void)prey;
	add(r, immediate_of(1));
	add(r, immediate_of(2));
}

MAKES(immediate_data_of_a_later_number)
{
	(void)prey;
	add(r, immediate_of(2));
}

MAKES(immediate_data_that_are_repeated)
{
	(void)prey;
	add(r, immediate_of(1));
	add(r, immediate_of(1));
}

MAKES(immediate_data_within_a_write)
{
	add_in_part(r, write_of(&prey->open, 100));
	add(r, immediate_of(1));
}

MAKES(immediate_data_within_a_message)
{
	(void)prey;
	add_in_part(r, (struct iwarp_segment){ .opcode = IWARP_SEND, .msn = 1, .bytes = 50 });
	add(r, immediate_of(1));
}

/* What was written is, but the program is not told so. */
MAKES(immediate_data_behind_a_refused_write)
{
	struct iwarp_segment s = write_of(&prey->open, 100);

	s.stag ^= 0x4000;
	add(r, s);
	add(r, immediate_of(1));
}

#define ATTACK(make_, says_, event_, ...) \
	{ .name = #make_, .make = make_, .says = says_, .event = event_, __VA_ARGS__ }
#define ACCESS IBV_EVENT_QP_ACCESS_ERR
#define REQUEST IBV_EVENT_QP_REQ_ERR

const struct attack extended_attacks[] = {
	ATTACK(atomic_without_the_right, 0x0102, ACCESS),
	ATTACK(atomic_that_is_not_aligned, 0x01ff, ACCESS),
	ATTACK(atomic_with_a_wrong_key, 0x0100, ACCESS),
	ATTACK(atomic_behind_the_memory, 0x0101, ACCESS),
	ATTACK(atomic_in_front_of_the_memory, 0x0101, ACCESS),
	ATTACK(atomic_at_the_last_address, 0x0101, ACCESS),
	ATTACK(atomic_with_a_key_of_another_domain, 0x0103, ACCESS),
	ATTACK(atomic_with_a_mask, 0x0206, REQUEST),
	ATTACK(swap_of_some_bits, 0x0206, REQUEST),
	ATTACK(unknown_atomic, 0x0206, REQUEST),
	ATTACK(atomic_of_a_later_number, 0x1203, REQUEST),
	ATTACK(atomic_that_is_repeated, 0x1203, REQUEST, .may_open = 1),
	ATTACK(atomics_and_reads_beyond_ird, 0x1202, REQUEST),
	ATTACK(atomic_that_goes_on, 0x0207, REQUEST),
	ATTACK(atomic_on_the_queue_of_messages, 0x0206, REQUEST),
	ATTACK(atomic_that_is_too_long, 0x1205, REQUEST),
	ATTACK(atomic_answer_to_nothing, 0x0206, REQUEST),

	ATTACK(immediate_data_without_a_receive, 0x1202, REQUEST, .received = true),
	ATTACK(immediate_data_of_a_later_number, 0x1203, REQUEST),
	ATTACK(immediate_data_that_are_repeated, 0x1203, REQUEST, .received = true),
	ATTACK(immediate_data_within_a_write, 0x0207, REQUEST, .may_open = 100),
	ATTACK(immediate_data_within_a_message, 0x0206, REQUEST, .may_receive = 50),
	ATTACK(immediate_data_behind_a_refused_write, 0x1100, ACCESS),
};
const unsigned extended_attack_count = sizeof(extended_attacks) / sizeof(extended_attacks[0]);
