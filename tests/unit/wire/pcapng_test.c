/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of capture files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "pcapng_read.h"
#include "wire/pcapng.h"

static uint8_t file[8192];

static size_t head(void)
{
	size_t at = pcapng_section(file, sizeof(file),
				   &(struct pcapng_section){ .os = "Linux",
							     .application = "busbar" });

	assert_true(at && at % 4 == 0);
	at += pcapng_interface(file + at, sizeof(file) - at,
			       &(struct pcapng_interface){ .link = PCAPNG_ETHERNET,
							   .snap = 96,
							   .name = "soft0-shm" });
	return at;
}

static void a_packet_is_read_as_it_was_written(void **state)
{
	static const uint8_t data[] = "seventeen bytes..";
	const struct pcapng_packet p = {
		.when_ns = UINT64_C(1795421440692846559), .data = data, .captured = 17,
		.length = 1000, .direction = PCAPNG_INBOUND, .dropped = 3,
		.comment = "sent again",
	};
	struct pcapng_file f;
	struct read_packet r;
	size_t at = head();

	at += pcapng_packet(file + at, sizeof(file) - at, &p);
	at += pcapng_statistics(file + at, sizeof(file) - at,
				&(struct pcapng_statistics){ .received = 4, .dropped = 3,
							     .comment = "the end" });
	pcapng_from_memory(file, at, &f);
	assert_true(pcapng_next(&f, &r));
	assert_int_equal(r.when_ns, p.when_ns);
	assert_int_equal(r.captured, 17);
	assert_int_equal(r.length, 1000);
	assert_int_equal(r.flags, 1);
	assert_int_equal(r.dropped, 3);
	assert_memory_equal(r.data, data, 17);
	assert_string_equal(r.comment, "sent again");
	assert_string_equal(f.names[0], "soft0-shm");
	assert_false(pcapng_next(&f, &r));
	assert_int_equal(f.statistics, 1);
	assert_int_equal(f.received[0], 4);
	assert_int_equal(f.dropped[0], 3);
	assert_string_equal(f.comment, "the end");
}

static void every_length_is_padded(void **state)
{
	uint8_t data[64] = { 0 };
	struct pcapng_file f;
	struct read_packet r;
	size_t at = head();

	for (uint32_t i = 0; i < 9; i++)
		at += pcapng_packet(file + at, sizeof(file) - at,
				    &(struct pcapng_packet){ .data = data, .captured = i,
							     .length = i });
	pcapng_from_memory(file, at, &f);
	for (uint32_t i = 0; i < 9; i++) {
		assert_true(pcapng_next(&f, &r));
		assert_int_equal(r.captured, i);
		assert_int_equal(r.flags, 0);
	}
	assert_false(pcapng_next(&f, &r));
}

static void a_block_without_room_is_not_there(void **state)
{
	uint8_t data[40] = { 0 }, *exact;
	const struct pcapng_packet p = { .data = data, .captured = 40, .length = 40,
					 .comment = "a comment" };
	size_t need = pcapng_packet(file, sizeof(file), &p);

	assert_true(need > 40);
	for (size_t room = 0; room < need; room++) {
		/* For the address sanitizer. */
		exact = malloc(room ? room : 1);
		assert_int_equal(pcapng_packet(exact, room, &p), 0);
		free(exact);
	}
	exact = malloc(need);
	assert_int_equal(pcapng_packet(exact, need, &p), need);
	free(exact);
}

static void long_texts_are_cut(void **state)
{
	char text[1000];
	struct pcapng_file f;
	struct read_packet r;
	size_t at = head();

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	at += pcapng_packet(file + at, sizeof(file) - at,
			    &(struct pcapng_packet){ .comment = text });
	pcapng_from_memory(file, at, &f);
	assert_true(pcapng_next(&f, &r));
	assert_int_equal(strlen(r.comment), PCAPNG_TEXT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_is_read_as_it_was_written),
		cmocka_unit_test(every_length_is_padded),
		cmocka_unit_test(a_block_without_room_is_not_there),
		cmocka_unit_test(long_texts_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
