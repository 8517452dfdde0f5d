/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMPP in virtual time: the bytes of segments, windows, repetition, every way to fail, and
 * transactions over a channel that loses, doubles and delays packets, from one seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "util/prng.h"
#include "wire/bytes.h"
#include "wire/mad/rmpp.h"

#define DATA_MAX 20000
#define US 1000ull
#define MS 1000000ull

static const struct mad_rmpp_config sa = MAD_RMPP_CONFIG_SA;
static uint8_t data[DATA_MAX], buffer[DATA_MAX];

static void head_make(uint8_t head[MAD_BYTES])
{
	memset(head, 0, MAD_BYTES);
	memcpy(head, (uint8_t[]){ 1, MAD_CLASS_SUBN_ADM, 2, MAD_GET_TABLE_RESP }, 4);
	head[15] = 7;      /* transaction */
	head[55] = 0x5a;   /* the last byte of the header of the class */
	memset(head + 56, 0xee, 200); /* must not be seen */
}

static struct mad_rmpp_sender sender(const struct mad_rmpp_config *config, size_t bytes)
{
	struct mad_rmpp_sender s;
	uint8_t head[MAD_BYTES];

	head_make(head);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + i / 256);
	assert_int_equal(mad_rmpp_send_begin(&s, config, head, data, bytes, 0), 0);
	return s;
}

static struct mad_rmpp_receiver receiver(const struct mad_rmpp_config *config, size_t capacity)
{
	struct mad_rmpp_receiver r;

	memset(buffer, 0, sizeof(buffer));
	assert_int_equal(mad_rmpp_receive_begin(&r, config, buffer, capacity, 0), 0);
	return r;
}

static struct mad_rmpp rmpp_of(const uint8_t *packet)
{
	struct mad_rmpp rmpp;

	mad_rmpp_unpack(packet + MAD_RMPP_AT, &rmpp);
	return rmpp;
}

static void answer(uint8_t *packet, uint8_t type, uint8_t status, uint32_t segment, uint32_t length)
{
	const struct mad_rmpp rmpp = { .version = 1, .type = type, .flags = MAD_RMPP_ACTIVE,
				       .status = status, .segment = segment, .length = length };

	memset(packet, 0, MAD_BYTES);
	mad_rmpp_pack(&rmpp, packet + MAD_RMPP_AT);
}

/* ---- bytes ---- */

static void one_segment_is_first_and_last(void **state)
{
	struct mad_rmpp_sender s = sender(&sa, 200);
	uint8_t out[MAD_BYTES];

	(void)state;
	assert_true(mad_rmpp_send_next(&s, 0, out));
	assert_memory_equal(out + 24, ((uint8_t[]){ 1, 1, 31 << 3 | 7, 0, 0, 0, 0, 1, 0, 0, 0, 220 }),
			    12);
	assert_int_equal(out[3], MAD_GET_TABLE_RESP);
	assert_int_equal(out[55], 0x5a);
	assert_memory_equal(out + 56, data, 200);
	assert_false(mad_rmpp_send_next(&s, 0, out));
}

static void no_data_is_one_segment_with_the_header_of_the_class(void **state)
{
	struct mad_rmpp_sender s = sender(&sa, 0);
	struct mad_rmpp_receiver r = receiver(&sa, 0);
	uint8_t out[MAD_BYTES], reply[MAD_BYTES];

	(void)state;
	assert_true(mad_rmpp_send_next(&s, 0, out));
	assert_int_equal(rmpp_of(out).length, 20);
	assert_int_equal(rmpp_of(out).flags, MAD_RMPP_ACTIVE | MAD_RMPP_FIRST | MAD_RMPP_LAST);
	assert_true(mad_rmpp_receive(&r, out, 0, reply));
	assert_int_equal(r.state, MAD_RMPP_DONE);
	assert_int_equal(r.bytes, 0);
	mad_rmpp_send_receive(&s, reply, 0);
	assert_int_equal(s.state, MAD_RMPP_DONE);
}

/* Three NodeRecords of 14 * 8 bytes. */
static void lengths_count_the_headers_of_the_class(void **state)
{
	struct mad_rmpp_sender s = sender(&sa, 336);
	uint8_t out[MAD_BYTES];

	(void)state;
	assert_true(mad_rmpp_send_next(&s, 0, out));
	assert_int_equal(rmpp_of(out).length, 2 * 20 + 336);
	assert_int_equal(rmpp_of(out).flags, MAD_RMPP_ACTIVE | MAD_RMPP_FIRST);
	answer(out, MAD_RMPP_ACK, 0, 1, 64);
	mad_rmpp_send_receive(&s, out, 0);
	assert_true(mad_rmpp_send_next(&s, 0, out));
	assert_int_equal(rmpp_of(out).segment, 2);
	assert_int_equal(rmpp_of(out).length, 20 + 136);
	assert_int_equal(rmpp_of(out).flags, MAD_RMPP_ACTIVE | MAD_RMPP_LAST);
	assert_memory_equal(out + 56, data + 200, 136);
}

static void an_ack_goes_back_with_the_other_direction(void **state)
{
	struct mad_rmpp_sender s = sender(&sa, 1000);
	struct mad_rmpp_receiver r = receiver(&sa, DATA_MAX);
	uint8_t out[MAD_BYTES], reply[MAD_BYTES];

	(void)state;
	assert_true(mad_rmpp_send_next(&s, 0, out));
	assert_true(mad_rmpp_receive(&r, out, 0, reply));
	assert_int_equal(reply[3], MAD_GET_TABLE);
	assert_int_equal(reply[15], 7);
	assert_int_equal(rmpp_of(reply).type, MAD_RMPP_ACK);
	assert_int_equal(rmpp_of(reply).segment, 1);
	assert_int_equal(rmpp_of(reply).length, 65);
}

/* ---- windows and time ---- */

static void the_sender_keeps_to_the_window(void **state)
{
	struct mad_rmpp_sender s = sender(&sa, 10 * 200);
	uint8_t out[MAD_BYTES], ack[MAD_BYTES];

	(void)state;
	assert_int_equal(mad_rmpp_send_due_ns(&s), 0);
	assert_true(mad_rmpp_send_next(&s, 0, out));
	assert_false(mad_rmpp_send_next(&s, 0, out));
	assert_int_equal(mad_rmpp_send_due_ns(&s), sa.timeout_ns);
	answer(ack, MAD_RMPP_ACK, 0, 1, 4);
	mad_rmpp_send_receive(&s, ack, 1);
	for (unsigned i = 2; i <= 4; i++) {
		assert_true(mad_rmpp_send_next(&s, 2, out));
		assert_int_equal(rmpp_of(out).segment, i);
	}
	assert_false(mad_rmpp_send_next(&s, 2, out));
	/* An old ACK changes nothing; one that only widens the window does. */
	answer(ack, MAD_RMPP_ACK, 0, 0, 9);
	mad_rmpp_send_receive(&s, ack, 3);
	assert_false(mad_rmpp_send_next(&s, 3, out));
	answer(ack, MAD_RMPP_ACK, 0, 1, 5);
	mad_rmpp_send_receive(&s, ack, 3);
	assert_true(mad_rmpp_send_next(&s, 3, out));
	assert_int_equal(rmpp_of(out).segment, 5);
}

static void without_an_ack_the_sender_repeats_and_gives_up(void **state)
{
	struct mad_rmpp_sender s = sender(&sa, 600);
	uint8_t out[MAD_BYTES];
	uint64_t now = 0;

	(void)state;
	for (unsigned i = 0; i <= sa.retries; i++) {
		assert_true(mad_rmpp_send_next(&s, now, out));
		assert_int_equal(rmpp_of(out).segment, 1);
		assert_false(mad_rmpp_send_next(&s, now + sa.timeout_ns - 1, out));
		now = mad_rmpp_send_due_ns(&s);
		assert_int_equal(now, (i + 1) * sa.timeout_ns);
	}
	assert_true(mad_rmpp_send_next(&s, now, out));
	assert_int_equal(rmpp_of(out).type, MAD_RMPP_ABORT);
	assert_int_equal(rmpp_of(out).status, MAD_RMPP_TOO_MANY_RETRIES);
	assert_int_equal(s.state, MAD_RMPP_FAILED);
	assert_false(mad_rmpp_send_next(&s, now, out));
	assert_true(mad_rmpp_send_due_ns(&s) == UINT64_MAX);
}

static void an_ack_without_a_new_window_is_waited_for_and_given_up(void **state)
{
	struct mad_rmpp_sender s = sender(&sa, 600);
	uint8_t out[MAD_BYTES];
	uint64_t now = 0;

	(void)state;
	assert_true(mad_rmpp_send_next(&s, 0, out));
	answer(out, MAD_RMPP_ACK, 0, 1, 1);
	mad_rmpp_send_receive(&s, out, 0);
	for (unsigned i = 0; i <= sa.retries; i++) {
		assert_false(mad_rmpp_send_next(&s, now, out));
		assert_true(mad_rmpp_send_due_ns(&s) > now);
		now = mad_rmpp_send_due_ns(&s);
	}
	assert_true(mad_rmpp_send_next(&s, now, out));
	assert_int_equal(rmpp_of(out).status, MAD_RMPP_TOO_MANY_RETRIES);
}

static void the_whole_has_a_time_limit_at_both_ends(void **state)
{
	struct mad_rmpp_sender s = sender(&sa, 600);
	struct mad_rmpp_receiver r = receiver(&sa, DATA_MAX);
	uint8_t out[MAD_BYTES];

	(void)state;
	assert_int_equal(mad_rmpp_receive_due_ns(&r), sa.total_ns);
	mad_rmpp_receive_expire(&r, sa.total_ns - 1);
	assert_int_equal(r.state, MAD_RMPP_RUNNING);
	mad_rmpp_receive_expire(&r, sa.total_ns);
	assert_int_equal(r.state, MAD_RMPP_FAILED);
	assert_int_equal(r.status, MAD_RMPP_TOO_LONG);
	assert_true(mad_rmpp_send_next(&s, sa.total_ns, out));
	assert_int_equal(rmpp_of(out).type, MAD_RMPP_ABORT);
	assert_int_equal(rmpp_of(out).status, MAD_RMPP_TOO_LONG);
}

static void a_late_segment_fails_the_receiver(void **state)
{
	struct mad_rmpp_sender s = sender(&sa, 600);
	struct mad_rmpp_receiver r = receiver(&sa, DATA_MAX);
	uint8_t out[MAD_BYTES], reply[MAD_BYTES];

	(void)state;
	assert_true(mad_rmpp_send_next(&s, 0, out));
	assert_true(mad_rmpp_receive(&r, out, sa.total_ns, reply));
	assert_int_equal(rmpp_of(reply).type, MAD_RMPP_ABORT);
	assert_int_equal(rmpp_of(reply).status, MAD_RMPP_TOO_LONG);
}

/* ---- faults ---- */

static void wrong_acks_end_the_transaction(void **state)
{
	static const struct {
		uint8_t version, type, status;
		uint32_t segment, length;
		uint8_t why;
	} acks[] = {
		{ 1, MAD_RMPP_ACK, 0, 2, 9, MAD_RMPP_SEGMENT_TOO_BIG },
		{ 1, MAD_RMPP_ACK, 0, 1, 0, MAD_RMPP_WINDOW_TOO_SMALL },
		{ 1, MAD_RMPP_ACK, 5, 1, 9, MAD_RMPP_BAD_STATUS },
		{ 2, MAD_RMPP_ACK, 0, 1, 9, MAD_RMPP_BAD_VERSION },
		{ 1, 9, 0, 1, 9, MAD_RMPP_BAD_TYPE },
	};
	uint8_t out[MAD_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(acks) / sizeof(acks[0]); i++) {
		struct mad_rmpp_sender s = sender(&sa, 600);

		assert_true(mad_rmpp_send_next(&s, 0, out));
		answer(out, acks[i].type, acks[i].status, acks[i].segment, acks[i].length);
		out[MAD_RMPP_AT] = acks[i].version;
		mad_rmpp_send_receive(&s, out, 0);
		assert_int_equal(mad_rmpp_send_due_ns(&s), 0);
		assert_true(mad_rmpp_send_next(&s, 0, out));
		assert_int_equal(rmpp_of(out).type, MAD_RMPP_ABORT);
		assert_int_equal(rmpp_of(out).status, acks[i].why);
	}
}

static void an_abort_ends_the_sender_in_silence(void **state)
{
	struct mad_rmpp_sender s = sender(&sa, 600);
	uint8_t out[MAD_BYTES];

	(void)state;
	answer(out, MAD_RMPP_ABORT, MAD_RMPP_UNSPECIFIED, 0, 0);
	mad_rmpp_send_receive(&s, out, 0);
	assert_int_equal(s.state, MAD_RMPP_FAILED);
	assert_int_equal(s.status, MAD_RMPP_UNSPECIFIED);
	assert_false(mad_rmpp_send_next(&s, 0, out));
}

static void wrong_segments_end_the_transaction(void **state)
{
	static const struct {
		uint8_t at, value, why;
	} changes[] = {
		{ 24, 2, MAD_RMPP_BAD_VERSION },
		{ 25, 7, MAD_RMPP_BAD_TYPE },
		{ 26, MAD_RMPP_ACTIVE, MAD_RMPP_BAD_FIRST },
		{ 27, 1, MAD_RMPP_BAD_STATUS },
		{ 31, 2, MAD_RMPP_BAD_FIRST },
		{ 35, 221, MAD_RMPP_BAD_LENGTH },
		{ 35, 19, MAD_RMPP_BAD_LENGTH },
	};
	uint8_t out[MAD_BYTES], reply[MAD_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct mad_rmpp_sender s = sender(&sa, 100);
		struct mad_rmpp_receiver r = receiver(&sa, DATA_MAX);

		assert_true(mad_rmpp_send_next(&s, 0, out));
		out[changes[i].at] = changes[i].value;
		assert_true(mad_rmpp_receive(&r, out, 0, reply));
		assert_int_equal(rmpp_of(reply).type, MAD_RMPP_ABORT);
		assert_int_equal(rmpp_of(reply).status, changes[i].why);
		assert_int_equal(r.state, MAD_RMPP_FAILED);
		assert_int_equal(r.bytes, 0);
	}
}

static void data_beyond_the_buffer_is_stopped(void **state)
{
	struct mad_rmpp_sender s = sender(&sa, 600);
	struct mad_rmpp_receiver r = receiver(&sa, 399);
	uint8_t out[MAD_BYTES], reply[MAD_BYTES];

	(void)state;
	assert_true(mad_rmpp_send_next(&s, 0, out));
	assert_true(mad_rmpp_receive(&r, out, 0, reply));
	mad_rmpp_send_receive(&s, reply, 0);
	assert_true(mad_rmpp_send_next(&s, 0, out));
	assert_true(mad_rmpp_receive(&r, out, 0, reply));
	assert_int_equal(rmpp_of(reply).type, MAD_RMPP_STOP);
	mad_rmpp_send_receive(&s, reply, 0);
	assert_int_equal(s.state, MAD_RMPP_FAILED);
	assert_int_equal(s.status, MAD_RMPP_NO_RESOURCES);
	assert_int_equal(buffer[399], 0);
}

static void a_repeated_segment_is_acknowledged_after_the_end(void **state)
{
	struct mad_rmpp_sender s = sender(&sa, 10);
	struct mad_rmpp_receiver r = receiver(&sa, DATA_MAX);
	uint8_t out[MAD_BYTES], reply[MAD_BYTES];

	(void)state;
	assert_true(mad_rmpp_send_next(&s, 0, out));
	assert_true(mad_rmpp_receive(&r, out, 0, reply));
	memset(reply, 0, sizeof(reply));
	assert_true(mad_rmpp_receive(&r, out, sa.total_ns + 1, reply));
	assert_int_equal(rmpp_of(reply).type, MAD_RMPP_ACK);
	assert_int_equal(rmpp_of(reply).segment, 1);
	assert_int_equal(r.bytes, 10);
}

static void impossible_settings_are_refused(void **state)
{
	struct mad_rmpp_config none = sa, wide = sa;
	struct mad_rmpp_sender s;
	struct mad_rmpp_receiver r;
	uint8_t head[MAD_BYTES] = { 0 };

	(void)state;
	none.window = 0;
	wide.class_bytes = 220;
	assert_int_equal(mad_rmpp_send_begin(&s, &none, head, data, 1, 0), -EINVAL);
	assert_int_equal(mad_rmpp_send_begin(&s, &wide, head, data, 1, 0), -EINVAL);
	assert_int_equal(mad_rmpp_receive_begin(&r, &wide, buffer, 1, 0), -EINVAL);
	/* The payload length of the first segment has 32 bits. */
	assert_int_equal(mad_rmpp_send_begin(&s, &sa, head, data, (size_t)UINT32_MAX, 0), -EINVAL);
}

/* ---- whole transactions ---- */

#define CHANNEL 64

struct channel {
	struct { uint8_t packet[MAD_BYTES]; uint64_t at; bool used; } slot[CHANNEL];
};

/* Lost, doubled and late as `trouble` says, 0 to 100. */
static void channel_put(struct channel *c, struct prng *random, unsigned trouble, uint64_t now,
			const uint8_t *packet)
{
	unsigned copies = prng_below(random, 100) < trouble ? 0 : 1;

	if (prng_below(random, 100) < trouble)
		copies++;
	for (unsigned i = 0; i < CHANNEL && copies; i++) {
		if (c->slot[i].used)
			continue;
		memcpy(c->slot[i].packet, packet, MAD_BYTES);
		c->slot[i].at = now + 10 * US + prng_below(random, 1 + trouble * 100 * US);
		c->slot[i].used = true;
		copies--;
	}
}

static bool channel_get(struct channel *c, uint64_t now, uint8_t *packet)
{
	for (unsigned i = 0; i < CHANNEL; i++)
		if (c->slot[i].used && c->slot[i].at <= now) {
			memcpy(packet, c->slot[i].packet, MAD_BYTES);
			c->slot[i].used = false;
			return true;
		}
	return false;
}

static uint64_t channel_due(const struct channel *c, uint64_t due)
{
	for (unsigned i = 0; i < CHANNEL; i++)
		if (c->slot[i].used && c->slot[i].at < due)
			due = c->slot[i].at;
	return due;
}

/* One transaction; returns the number of DATA packets that were sent. */
static unsigned run(uint64_t seed, unsigned trouble, struct mad_rmpp_sender *s,
		    struct mad_rmpp_receiver *r)
{
	static struct channel there, back;
	struct prng random = prng_from(seed);
	uint8_t packet[MAD_BYTES], reply[MAD_BYTES];
	unsigned sent = 0;
	uint64_t now = 0;

	memset(&there, 0, sizeof(there));
	memset(&back, 0, sizeof(back));
	while (s->state == MAD_RMPP_RUNNING && now != UINT64_MAX) {
		while (mad_rmpp_send_next(s, now, packet)) {
			sent += rmpp_of(packet).type == MAD_RMPP_DATA;
			channel_put(&there, &random, trouble, now, packet);
		}
		while (channel_get(&there, now, packet))
			if (mad_rmpp_receive(r, packet, now, reply))
				channel_put(&back, &random, trouble, now, reply);
		while (channel_get(&back, now, packet))
			mad_rmpp_send_receive(s, packet, now);
		now = channel_due(&there, channel_due(&back, mad_rmpp_send_due_ns(s)));
	}
	return sent;
}

static void without_trouble_each_segment_goes_once(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes < 14000; bytes += 77) {
		struct mad_rmpp_sender s = sender(&sa, bytes);
		struct mad_rmpp_receiver r = receiver(&sa, bytes);

		assert_int_equal(run(1, 0, &s, &r), bytes ? (bytes + 199) / 200 : 1);
		assert_int_equal(s.state, MAD_RMPP_DONE);
		assert_int_equal(r.state, MAD_RMPP_DONE);
		assert_int_equal(r.bytes, bytes);
		assert_memory_equal(buffer, data, bytes);
	}
}

static void what_arrives_is_what_was_sent(void **state)
{
	unsigned done = 0, again = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 1500; seed++) {
		struct prng random = prng_from(seed);
		struct mad_rmpp_config config = { .class_bytes = (uint16_t)prng_below(&random, 60),
						  .window = 1 + (uint32_t)prng_below(&random, 20),
						  .timeout_ns = 20 * MS, .total_ns = 60000 * MS,
						  .retries = 10 };
		const size_t bytes = prng_below(&random, 8000);
		const unsigned trouble = (unsigned)prng_below(&random, 40);
		struct mad_rmpp_sender s = sender(&config, bytes);
		struct mad_rmpp_receiver r = receiver(&config, bytes);
		unsigned sent = run(seed, trouble, &s, &r);

		/* The sender may fail and the receiver be done, as the last ACK may be lost. */
		if (s.state == MAD_RMPP_DONE)
			assert_int_equal(r.state, MAD_RMPP_DONE);
		assert_memory_equal(buffer, data, r.bytes);
		if (r.state == MAD_RMPP_DONE)
			assert_int_equal(r.bytes, bytes);
		done += s.state == MAD_RMPP_DONE;
		again += sent > s.segments;
	}
	assert_true(done > 1200);
	assert_true(again > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_segment_is_first_and_last),
		cmocka_unit_test(no_data_is_one_segment_with_the_header_of_the_class),
		cmocka_unit_test(lengths_count_the_headers_of_the_class),
		cmocka_unit_test(an_ack_goes_back_with_the_other_direction),
		cmocka_unit_test(the_sender_keeps_to_the_window),
		cmocka_unit_test(without_an_ack_the_sender_repeats_and_gives_up),
		cmocka_unit_test(an_ack_without_a_new_window_is_waited_for_and_given_up),
		cmocka_unit_test(the_whole_has_a_time_limit_at_both_ends),
		cmocka_unit_test(a_late_segment_fails_the_receiver),
		cmocka_unit_test(wrong_acks_end_the_transaction),
		cmocka_unit_test(an_abort_ends_the_sender_in_silence),
		cmocka_unit_test(wrong_segments_end_the_transaction),
		cmocka_unit_test(data_beyond_the_buffer_is_stopped),
		cmocka_unit_test(a_repeated_segment_is_acknowledged_after_the_end),
		cmocka_unit_test(impossible_settings_are_refused),
		cmocka_unit_test(without_trouble_each_segment_goes_once),
		cmocka_unit_test(what_arrives_is_what_was_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
