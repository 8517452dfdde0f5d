/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of MQTT, byte by byte as the standard has them (OASIS MQTT 3.1.1 and 5). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/node/mqtt/packet.h"

#define READ(p, bytes, v5) read_packet(p, bytes, sizeof(bytes) - 1, v5)

static int read_packet(struct mqtt_packet *p, const char *bytes, size_t len, bool v5)
{
	const uint8_t *at = (const uint8_t *)bytes;
	struct mqtt_head h;

	assert_int_equal(mqtt_head_read(&h, at, len), 1);
	assert_int_equal(h.size + h.body, len);
	return mqtt_packet_read(p, &h, at + h.size, v5);
}

static void an_answer_to_a_connection_has_a_code_and_limits(void **state)
{
	struct mqtt_packet p;

	assert_int_equal(READ(&p, "\x20\x02\x01\x00", false), 0);
	assert_true(p.session && !p.code && p.size_max == UINT32_MAX && p.may_retain);
	assert_int_equal(READ(&p, "\x20\x02\x00\x05", false), 0);
	assert_string_equal(mqtt_code_text(p.code, false), "not authorized");
	assert_int_equal(READ(&p, "\x20\x12\x00\x00\x0f\x21\x00\x14\x24\x01\x25\x00\x27\x00\x01\x00\x00"
				  "\x13\x00\x3c", true), 0);
	assert_true(p.id_count_max == 20 && p.qos_max == 1 && !p.may_retain);
	assert_true(p.size_max == 65536 && p.keepalive_s == 60);
	/* Of a broker that does not know version 5. */
	assert_int_equal(READ(&p, "\x20\x02\x00\x01", true), 0);
	assert_int_equal(p.code, 1);
}

static void a_property_that_is_none_or_does_not_end_is_refused(void **state)
{
	struct mqtt_packet p;

	assert_int_equal(READ(&p, "\x20\x05\x00\x00\x02\x7f\x00", true), -EPROTO);
	assert_int_equal(READ(&p, "\x20\x06\x00\x00\x03\x80\x01\x00", true), -EPROTO);
	assert_int_equal(READ(&p, "\x20\x05\x00\x00\x02\x21\x00", true), -EPROTO);
	assert_int_equal(READ(&p, "\x20\x06\x00\x00\x03\x21\x00\x00", true), -EPROTO);
	assert_int_equal(READ(&p, "\x20\x05\x00\x00\x09\x24\x01", true), -EPROTO);
	assert_int_equal(READ(&p, "\x20\x08\x00\x00\x05\x1f\x00\x09hi", true), -EPROTO);
}

static void a_message_lies_behind_topic_number_and_properties(void **state)
{
	struct mqtt_packet p;

	assert_int_equal(READ(&p, "\x33\x09\x00\x03" "a/b\x00\x07hi", false), 0);
	assert_true(p.qos == 1 && p.retain && p.id == 7 && p.len == 2);
	assert_memory_equal(p.data, "hi", 2);
	assert_int_equal(READ(&p, "\x34\x0d\x00\x03" "a/b\x00\x07\x03\x0b\xff\x01hi", true), 0);
	assert_true(p.qos == 2 && !p.retain && p.id == 7 && p.len == 2);
	assert_int_equal(READ(&p, "\x30\x03\x00\x01t", false), 0);
	assert_true(!p.qos && !p.id && !p.len);
}

static void a_message_without_sense_is_refused(void **state)
{
	struct mqtt_packet p;

	/* QoS 3, number 0, no topic, a topic beyond the end. */
	assert_int_equal(READ(&p, "\x36\x05\x00\x01t\x00\x07", false), -EPROTO);
	assert_int_equal(READ(&p, "\x32\x05\x00\x01t\x00\x00", false), -EPROTO);
	assert_int_equal(READ(&p, "\x30\x02\x00\x00", false), -EPROTO);
	assert_int_equal(READ(&p, "\x30\x03\x00\x02t", false), -EPROTO);
}

static void what_only_clients_send_is_refused(void **state)
{
	struct mqtt_packet p;

	assert_int_equal(READ(&p, "\x10\x00", false), -EPROTO);
	assert_int_equal(READ(&p, "\x82\x05\x00\x01\x00\x00\x00", false), -EPROTO);
	assert_int_equal(READ(&p, "\xc0\x00", false), -EPROTO);
	/* A goodbye of the broker has version 5 only. */
	assert_int_equal(READ(&p, "\xe0\x01\x8b", false), -EPROTO);
	assert_int_equal(READ(&p, "\xe0\x01\x8b", true), 0);
	assert_string_equal(mqtt_code_text(p.code, true), "it shuts down");
}

static void a_length_has_four_bytes_at_most(void **state)
{
	struct mqtt_head h;

	assert_int_equal(mqtt_head_read(&h, (const uint8_t *)"\x30\xff\xff\xff", 4), 0);
	assert_int_equal(mqtt_head_read(&h, (const uint8_t *)"\x30\xff\xff\xff\x7f", 5), 1);
	assert_int_equal(h.body, MQTT_BODY_MAX);
	assert_int_equal(mqtt_head_read(&h, (const uint8_t *)"\x30\xff\xff\xff\xff", 5), -EPROTO);
}

static void a_connection_is_written_as_the_standard_says(void **state)
{
	static const char old[] = "\x10\x1a\x00\x04MQTT\x04\xee\x00\x05\x00\x01i\x00\x01w\x00\x02up"
				  "\x00\x01u\x00\x01p";
	static const char new[] = "\x10\x13\x00\x04MQTT\x05\x00\x00\x05\x05\x11\x00\x00\x0e\x10\x00\x01i";
	struct mqtt_connect c = { .clean = true, .keepalive_s = 5, .id = "i", .user = "u",
				  .password = "p", .will_topic = "w", .will = "up", .will_qos = 1,
				  .will_retain = true };
	struct stream_buffer b = { 0 };

	assert_int_equal(mqtt_put_connect(&b, &c), 0);
	assert_int_equal(b.end, sizeof(old) - 1);
	assert_memory_equal(b.at, old, b.end);
	b.end = 0;
	c = (struct mqtt_connect){ .v5 = true, .keepalive_s = 5, .id = "i", .expiry_s = 3600 };
	assert_int_equal(mqtt_put_connect(&b, &c), 0);
	assert_int_equal(b.end, sizeof(new) - 1);
	assert_memory_equal(b.at, new, b.end);
	stream_buffer_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_to_a_connection_has_a_code_and_limits),
		cmocka_unit_test(a_property_that_is_none_or_does_not_end_is_refused),
		cmocka_unit_test(a_message_lies_behind_topic_number_and_properties),
		cmocka_unit_test(a_message_without_sense_is_refused),
		cmocka_unit_test(what_only_clients_send_is_refused),
		cmocka_unit_test(a_length_has_four_bytes_at_most),
		cmocka_unit_test(a_connection_is_written_as_the_standard_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
