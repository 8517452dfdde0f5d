/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs of MPI print, and what their marks and the adapter's counters say. */
#include "bench/mpi/output.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/mpi/launch.h"

static int times_of(const char *text, struct mpi_times *t)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	int ret = mpi_times_parse(f, t);

	fclose(f);
	return ret;
}

static int error_of(const char *text)
{
	struct mpi_times t;
	int ret = times_of(text, &t);

	mpi_times_free(&t);
	return ret;
}

static void rows_of_the_table_are_read(void **state)
{
	struct mpi_row r;

	assert_true(mpi_row_parse("message_rate         1/s         3.5e+06  messages a second\n",
				  &r));
	assert_string_equal(r.name, "message_rate");
	assert_string_equal(r.unit, "1/s");
	assert_string_equal(r.meaning, "messages a second");
	assert_true(r.value == 3.5e6);
	assert_true(mpi_row_parse("damaged - 0 messages", &r));
	assert_string_equal(r.unit, "");
}

static void other_lines_are_no_rows(void **state)
{
	static const char *const lines[] = {
		"# name unit value meaning\n", "", "\n", " damaged - 0 messages\n",
		"Damaged - 0 messages\n", "damaged - none messages\n", "damaged - 0\n",
		"damaged - nan messages\n", "damaged - 0x messages\n", "damaged\n",
		"damaged - 0 m\303essages\n",
		"a_name_that_is_longer_than_any_of_ours - 0 messages\n",
	};
	struct mpi_row r;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(mpi_row_parse(lines[i], &r));
}

static void times_become_columns(void **state)
{
	struct mpi_times t;

	assert_int_equal(times_of("# t_begin t_half t_called\n10 20 15\n30 45 -5\n", &t), 0);
	assert_int_equal(t.columns, 3);
	assert_int_equal(t.rows, 2);
	assert_string_equal(t.names[2], "t_called");
	assert_int_equal(t.values[1][1], 45);
	assert_int_equal(t.values[2][1], -5);
	mpi_times_free(&t);
}

static void times_that_are_not_whole_are_refused(void **state)
{
	assert_int_equal(error_of("# t_begin t_half\n"), -EBADMSG);
	assert_int_equal(error_of("# t_begin\n1\n"), -EBADMSG);
	assert_int_equal(error_of("# t_half t_called\n1 2\n"), -EBADMSG);
	assert_int_equal(error_of("# t_begin t_done\n1 2\n"), -EBADMSG);
	assert_int_equal(error_of("# t_begin t_begin\n1 2\n"), -EBADMSG);
	assert_int_equal(error_of("# t_begin t_other\n1 2\n"), -EBADMSG);
	assert_int_equal(error_of("t_begin t_half\n1 2\n"), -EBADMSG);
	assert_int_equal(error_of("# t_begin t_half\n1 2\n3\n"), -EBADMSG);
	assert_int_equal(error_of("# t_begin t_half\n1 2 3\n"), -EBADMSG);
	assert_int_equal(error_of("# t_begin t_half\n1 2.5\n"), -EBADMSG);
	assert_int_equal(error_of("# t_begin t_half\n1 2\n3 4"), -EBADMSG);
}

static void marks_count_whole_lines(void **state)
{
	pid_t pids[3];

	assert_int_equal(mpi_marks_parse("", pids, 3), 0);
	assert_int_equal(mpi_marks_parse("12\n34\n", pids, 3), 2);
	assert_int_equal(pids[1], 34);
	assert_int_equal(mpi_marks_parse("12\n3", pids, 3), 1);
	assert_int_equal(mpi_marks_parse("12\nx\n", pids, 3), 1);
	assert_int_equal(mpi_marks_parse("1\n2\n3\n4\n", pids, 3), 3);
	assert_int_equal(mpi_marks_parse("-5\n", pids, 3), 0);
}

static void counters_of_the_processes_are_added_up(void **state)
{
	static const char text[] =
		"{\"processes\": [ {\"pid\": 1, \"traffic\": {\"tx_send_messages\": 3,"
		" \"tx_send_imm_messages\": 1, \"tx_send_bytes\": 100, \"rx_send_bytes\": 7,"
		" \"tx_retries\": 9, \"tx_write_messages\": 2, \"tx_write_bytes\": 50}},"
		" {\"pid\": 2, \"traffic\": {\"tx_read_messages\": 5, \"tx_read_bytes\": 1}},"
		" {\"pid\": 3, \"problem\": \"it is another user's\"},"
		" {\"pid\": 4, \"traffic\": {\"tx_send_messages\": 1000}} ]}";
	json_t *devices = json_loads(text, 0, NULL);
	struct mpi_counters c;

	assert_int_equal(mpi_counters_sum(devices, (pid_t[]){ 1, 2 }, 2, &c), 0);
	assert_int_equal(c.sends, 4);
	assert_int_equal(c.writes, 2);
	assert_int_equal(c.reads, 5);
	assert_int_equal(c.bytes, 151);
	assert_int_equal(mpi_counters_sum(devices, (pid_t[]){ 1, 5 }, 2, &c), -ENOENT);
	assert_int_equal(mpi_counters_sum(devices, (pid_t[]){ 3 }, 1, &c), -EBADMSG);
	json_decref(devices);
}

/* A capture, block by block. */
struct capture {
	uint8_t bytes[4096];
	size_t size;
};

static void put32(struct capture *c, uint32_t v)
{
	memcpy(c->bytes + c->size, &v, sizeof(v));
	c->size += sizeof(v);
}

static void section(struct capture *c)
{
	put32(c, 0x0a0d0d0a);
	put32(c, 28);
	put32(c, 0x1a2b3c4d);
	put32(c, 1);
	put32(c, UINT32_MAX);
	put32(c, UINT32_MAX);
	put32(c, 28);
	/* An interface of Ethernet, whose times are nanoseconds. */
	put32(c, 1);
	put32(c, 32);
	put32(c, 1);
	put32(c, 0);
	put32(c, 9 | 1 << 16);
	put32(c, 9);
	put32(c, 0);
	put32(c, 32);
}

#define SECTION_BYTES (28 + 32)

/* A packet of Ethernet, IPv4, UDP and a basic transport header of which the opcode counts. */
static void packet(struct capture *c, uint64_t when_ns, uint8_t opcode, uint16_t port,
		   uint32_t direction)
{
	uint8_t data[56] = { 0 };

	data[12] = 0x08;
	data[14] = 0x45;
	data[14 + 3] = sizeof(data) - 14;
	data[14 + 9] = 17;
	data[34 + 2] = (uint8_t)(port >> 8);
	data[34 + 3] = (uint8_t)port;
	data[34 + 5] = sizeof(data) - 34;
	data[42] = opcode;
	put32(c, 6);
	put32(c, 32 + sizeof(data) + 12);
	put32(c, 0);
	put32(c, (uint32_t)(when_ns >> 32));
	put32(c, (uint32_t)when_ns);
	put32(c, sizeof(data));
	put32(c, 1000);
	memcpy(c->bytes + c->size, data, sizeof(data));
	c->size += sizeof(data);
	put32(c, 2 | 4 << 16);
	put32(c, direction);
	put32(c, 0);
	put32(c, 32 + sizeof(data) + 12);
}

static void packets_are_counted_by_what_they_do(void **state)
{
	static const uint8_t opcodes[] = { 0x00, 0x04, 0x17, 0x0a, 0x0c, 0x0d, 0x10, 0x11, 0x64,
					   0x13, 0x81 };
	struct mpi_packets p = { 0 };
	struct capture c = { .size = 0 };

	section(&c);
	for (size_t i = 0; i < sizeof(opcodes); i++)
		packet(&c, (1ull << 40) + i, opcodes[i], 4791, 2);
	packet(&c, 1ull << 40, 0x04, 4791, 1);   /* one that came in */
	packet(&c, 1ull << 40, 0x04, 4790, 2);   /* of somebody else */
	packet(&c, 1, 0x04, 4791, 2);            /* before the mark */
	packet(&c, 1ull << 41, 0x04, 4791, 2);   /* behind it */
	assert_int_equal(mpi_packets_parse(c.bytes, c.size, 1ull << 40, (1ull << 40) + 100, &p),
			 0);
	assert_int_equal(p.sends, 4);
	assert_int_equal(p.writes, 1);
	assert_int_equal(p.read_requests, 1);
	assert_int_equal(p.read_responses, 2);
	assert_int_equal(p.acks, 1);
	assert_int_equal(p.others, 2);
	assert_int_equal(p.bytes, 11 * 1000);
}

static void captures_that_are_not_whole_are_refused(void **state)
{
	struct mpi_packets p = { 0 };
	struct capture c = { .size = 0 };

	assert_int_equal(mpi_packets_parse(c.bytes, 0, 0, 1, &p), -EBADMSG);
	packet(&c, 1, 0x04, 4791, 2);
	assert_int_equal(mpi_packets_parse(c.bytes, c.size, 0, 9, &p), -EBADMSG);
	c.size = 0;
	section(&c);
	packet(&c, 1, 0x04, 4791, 2);
	for (size_t size = 1; size < c.size; size++)
		if (size != 28 && size != SECTION_BYTES)
			assert_int_equal(mpi_packets_parse(c.bytes, size, 0, 9, &p), -EBADMSG);
	/* More bytes than the block has. */
	c.bytes[SECTION_BYTES + 20] = 0xff;
	assert_int_equal(mpi_packets_parse(c.bytes, c.size, 0, 9, &p), -EBADMSG);
}

/* Such as those that wait in MPI_Finalize for ever. */
static void what_hangs_at_its_end_has_measured(void **state)
{
	static const char *const scripts[] = {
		"printf '# name unit value meaning\\ndamaged - 0 messages\\n'; exec sleep 1000",
		"printf '# name unit value meaning\\ncounted - 5 messages\\n'; exec sleep 1000",
	};
	const atomic_bool stop = false;
	char path[] = "/tmp/busbar-mpi-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (int i = 0; i < 2; i++) {
		struct mpi_plan plan = { .output = path };
		struct mpi_marks marks;

		process_words_split(&plan.words, "sh -c");
		process_words_add(&plan.words, scripts[i]);
		/* The time is up when the program has been looked at a few times. */
		assert_int_equal(mpi_launch(&plan, 1.0, &stop, &marks), i ? -ETIMEDOUT : 0);
		assert_int_equal(marks.hung, !i);
		assert_int_equal(mpi_table_is_whole(path), !i);
		process_words_free(&plan.words);
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_the_table_are_read),
		cmocka_unit_test(other_lines_are_no_rows),
		cmocka_unit_test(times_become_columns),
		cmocka_unit_test(times_that_are_not_whole_are_refused),
		cmocka_unit_test(marks_count_whole_lines),
		cmocka_unit_test(counters_of_the_processes_are_added_up),
		cmocka_unit_test(packets_are_counted_by_what_they_do),
		cmocka_unit_test(captures_that_are_not_whole_are_refused),
		cmocka_unit_test(what_hangs_at_its_end_has_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
