/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type comedi with a board of the test (fake.h); and its pure part. */
#include "../nodes/fixture.h"

#include <math.h>
#include <signal.h>

#include "fake.h"
#include "gateway/node/comedi/daq.h"

extern const struct node_type node_comedi;

static const struct daq_scale volts = { -10, 10, 65535, false };

#define SCANS 300

/* ---- the pure part ---- */

static void each_code_becomes_its_value_and_back(void **state)
{
	for (uint32_t code = 0; code <= volts.maxdata; code++) {
		union signal_data v;
		uint32_t back;
		bool limit = false, limit_back = false;

		daq_from_code(&volts, SIGNAL_FLOAT, code, &v, &limit);
		assert_null(daq_to_code(&volts, SIGNAL_FLOAT, &v, &back, &limit_back));
		assert_int_equal(back, code);
		assert_int_equal(limit, code == 0 || code == volts.maxdata);
		assert_false(limit_back);
		daq_from_code(&volts, SIGNAL_INTEGER, code, &v, &limit);
		assert_int_equal(v.i, code);
	}
}

static void values_beyond_the_range_become_its_ends_and_are_told(void **state)
{
	static const struct {
		double value;
		uint32_t code;
		bool limit;
	} rows[] = { { 10, 65535, false }, { 10.01, 65535, true }, { -1e300, 0, true },
		     { INFINITY, 65535, true }, { -10, 0, false }, { 0, 32768, false } };
	uint32_t code;
	union signal_data v;
	bool limit;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		v.f = rows[i].value;
		limit = false;
		assert_null(daq_to_code(&volts, SIGNAL_FLOAT, &v, &code, &limit));
		assert_int_equal(code, rows[i].code);
		assert_int_equal(limit, rows[i].limit);
	}
	v.f = NAN;
	assert_string_equal(daq_to_code(&volts, SIGNAL_FLOAT, &v, &code, &limit), "is not a number");
	v.i = 65536;
	assert_non_null(daq_to_code(&volts, SIGNAL_INTEGER, &v, &code, &limit));
	v.i = -1;
	assert_non_null(daq_to_code(&volts, SIGNAL_INTEGER, &v, &code, &limit));
	assert_non_null(daq_to_code(&volts, SIGNAL_COMPLEX, &v, &code, &limit));
}

static void codes_have_two_or_four_bytes(void **state)
{
	char buf[8];

	for (int wide = 0; wide < 2; wide++) {
		memset(buf, 0x55, sizeof(buf));
		daq_code_put(buf + 1, wide, 0xabcd);
		assert_int_equal(daq_code_get(buf + 1, wide), 0xabcd);
		assert_int_equal(buf[0], 0x55);
		assert_int_equal(buf[1 + daq_code_size(wide)], 0x55);
	}
}

/* The board's clock is off by 100 ppm; data are handed on in blocks, 1 to 9 ms late. */
static void scans_have_the_times_of_the_board(void **state)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		const double real_period = 1e6 * (1 + sign * 1e-4);
		struct daq_clock c = { 0 };
		uint64_t scans = 0, seed = 1, told, begin = UINT64_C(1000000000000);
		int64_t worst = 0;

		daq_clock_start(&c, 1e6, begin);
		for (unsigned reads = 0; reads < 20000; reads++) {
			uint64_t count = 1 + (seed >> 33) % 5, now, real;
			int64_t off;

			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			scans += count;
			real = begin + (uint64_t)((double)scans * real_period);
			now = real + (1 + (seed >> 40) % 9) * 1000000;
			daq_clock_advance(&c, count, now);
			told = daq_clock_time(&c, 0);
			off = (int64_t)(told - real);
			assert_true(told <= now);
			if (reads > 1000)
				worst = MAX(worst, off < 0 ? -off : off);
		}
		/* Of 60 s, in which the clocks have come apart by 6 ms. */
		assert_true(worst < 3000000);
	}
}

/* Times that were ahead are corrected when scans come, but not to times before those that were told. */
static void times_rise_while_they_are_corrected(void **state)
{
	const uint64_t begin = UINT64_C(1000000000000), ms = 1000000;
	struct daq_clock c = { 0 };
	uint64_t last, next;

	/* The thread did not run between the command and its look at the clock. */
	daq_clock_start(&c, 1e6, begin);
	daq_clock_advance(&c, 1, begin);
	last = daq_clock_time(&c, 0);
	assert_int_equal(last, begin);
	daq_clock_advance(&c, 10, begin + ms);
	for (unsigned back = 10; back-- > 0; last = next) {
		next = daq_clock_time(&c, back);
		assert_true(next > last);
		assert_true(next <= begin + ms);
	}
	assert_int_equal(last, begin + ms);
	/* The next command, too. */
	daq_clock_start(&c, 1e6, begin);
	daq_clock_advance(&c, 1, begin + ms);
	assert_true(daq_clock_time(&c, 0) > last);
	/* The host's clock was set back. */
	daq_clock_advance(&c, 1, begin - 5000 * ms);
	assert_int_equal(daq_clock_time(&c, 0), begin - 5000 * ms);
}

static void a_gap_is_as_long_as_its_time(void **state)
{
	struct daq_clock c = { 0 };

	daq_clock_start(&c, 1e6, 5000000000);
	daq_clock_advance(&c, 10, 5010000000);
	assert_int_equal(daq_clock_missing(&c, 5010000000), 1);
	assert_int_equal(daq_clock_missing(&c, 5000000000), 1);
	assert_int_equal(daq_clock_missing(&c, 5110000000), 100);
}

/* ---- the node ---- */

static struct pool pool;

static int setup(void **state)
{
	signal(SIGPIPE, SIG_IGN);
	memset(&fake_board, 0, sizeof(fake_board));
	return pool_init(&pool, 4, 8, &memory_heap);
}

static int teardown(void **state)
{
	return (int)pool_destroy(&pool);
}

static void begin(struct made_node *m, const char *text, bool reads, bool writes)
{
	make_node(m, &node_comedi, text);
	m->node.is_source = reads;
	m->node.is_destination = writes;
	m->node.figures = calloc(m->node.type->figure_count, sizeof(*m->node.figures));
	assert_int_equal(m->node.type->start(&m->node), 0);
}

static void end(struct made_node *m)
{
	assert_int_equal(m->node.type->stop(&m->node), 0);
	free((void *)m->node.figures);
	drop_node(m);
}

static int write_values(struct made_node *m, const double values[], unsigned count)
{
	struct sample *s = sample_alloc(&pool);
	unsigned release = 1;
	int ret;

	for (unsigned i = 0; i < count; i++)
		s->data[i].f = values[i];
	s->length = count;
	s->signals = m->node.out.signals;
	s->flags = SAMPLE_HAS_DATA;
	ret = node_write(&m->node, &s, 1, &release);
	sample_put(s);
	return ret;
}

/* Of a command, by itself. */
static void wait_for_end(void)
{
	while (!atomic_load(&fake_board.ended))
		usleep(1000);
}

#define STREAM \
	"{\"device\": \"fake0\", \"in\": {\"rate\": 2000, \"bufsize\": 64, \"signals\": [" \
	"{\"name\": \"a\", \"channel\": 1}, {\"name\": \"b\", \"type\": \"integer\", \"channel\": 6}]}}"

static void a_stream_has_every_scan_in_order(void **state)
{
	struct sample *s = sample_alloc(&pool);
	uint64_t last_ns = 0;
	struct made_node m;

	atomic_store(&fake_board.ramp, true);
	begin(&m, STREAM, true, false);
	for (unsigned i = 0; i < SCANS; i++) {
		assert_int_equal(node_read_one(&m, s), 1);
		assert_int_equal(s->length, 2);
		assert_int_equal(s->data[1].i, i + 1);
		assert_true(fabs(s->data[0].f - (-10 + 20.0 * (i + 1) / 65535)) < 1e-9);
		assert_int_equal(s->sequence, i);
		assert_true(timespec_to_ns(s->origin) > last_ns);
		last_ns = timespec_to_ns(s->origin);
	}
	assert_int_equal(fake_board.period_ns, 500000);
	sample_put(s);
	end(&m);
}

/* Nobody reads until the buffer has overflowed; what follows is told to be behind a gap. */
static void an_overrun_is_counted_and_the_board_begins_again(void **state)
{
	struct sample *s = sample_alloc(&pool);
	unsigned before = 0, sent;
	struct made_node m;
	uint64_t gap = 0;

	atomic_store(&fake_board.ramp, true);
	begin(&m, "{\"device\": \"fake0\", \"in\": {\"rate\": 5000, \"bufsize\": 4, \"signals\": ["
		  "{\"channel\": 1}, {\"channel\": 6, \"type\": \"integer\"}]}}", true, false);
	wait_for_end();
	sent = atomic_load(&fake_board.scans_in);
	for (uint64_t next = 0; !gap; next++, before++) {
		assert_int_equal(node_read_one(&m, s), 1);
		gap = s->sequence - next;
	}
	/* All that the buffer held was read. */
	assert_int_equal(before - 1, sent);
	assert_int_equal(s->data[1].i, 1);
	assert_true(gap >= 1);
	assert_int_equal(fake_board.commands, 2);
	assert_int_equal(m.node.figures[FAULT_OVERRUN], 1);
	sample_put(s);
	end(&m);
}

static void what_came_while_the_node_was_paused_is_no_loss(void **state)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;
	uint64_t next;

	atomic_store(&fake_board.ramp, true);
	begin(&m, "{\"device\": \"fake0\", \"in\": {\"rate\": 5000, \"bufsize\": 4, \"signals\": ["
		  "{\"channel\": 1}, {\"channel\": 6, \"type\": \"integer\"}]}}", true, false);
	assert_int_equal(node_read_one(&m, s), 1);
	next = s->sequence + 1;
	wait_for_end();
	m.node.type->resume(&m.node);
	assert_int_equal(node_read_one(&m, s), 1);
	assert_int_equal(s->sequence, next);
	assert_int_equal(s->data[1].i, 1);
	assert_int_equal(m.node.figures[FAULT_OVERRUN], 0);
	sample_put(s);
	end(&m);
}

static void a_board_without_commands_is_read_at_the_steps_of_a_timer(void **state)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;

	atomic_store(&fake_board.output[1], 0x8000);
	begin(&m, "{\"device\": \"fake0\", \"in\": {\"subdevice\": 3, \"rate\": 500, \"signals\": ["
		  "{\"channel\": 1}, {\"channel\": 0, \"range\": 1, \"aref\": 2}]}}", true, false);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(node_read_one(&m, s), 1);
		assert_true(fabs(s->data[0].f - (-10 + 20.0 * 0x800000 / 0xffffff)) < 1e-9);
		assert_true(s->data[1].f == 0);
		assert_int_equal(s->sequence, i);
	}
	assert_int_equal(fake_board.commands, 0);
	assert_int_equal(m.node.figures[DAQ_AT_LIMIT], 20);
	atomic_store(&fake_board.broken, true);
	assert_int_equal(node_read_one(&m, s), 0);
	atomic_store(&fake_board.broken, false);
	assert_int_equal(node_read_one(&m, s), 1);
	assert_int_equal(s->sequence, 21);
	assert_int_equal(m.node.figures[DAQ_READ_ERRORS], 1);
	sample_put(s);
	end(&m);
}

static void outputs_have_their_values_at_once_without_a_rate(void **state)
{
	struct made_node m;

	begin(&m, "{\"device\": \"fake0\", \"out\": {\"signals\": ["
		  "{\"channel\": 2}, {\"channel\": 0, \"range\": 1}]}}", false, true);
	assert_int_equal(write_values(&m, (const double[]){ 10, 2.5 }, 2), 1);
	assert_int_equal(fake_board.output[2], 65535);
	assert_int_equal(fake_board.output[0], 32768);
	assert_int_equal(m.node.figures[DAQ_AT_LIMIT], 0);
	assert_int_equal(write_values(&m, (const double[]){ 11, -1 }, 2), 1);
	assert_int_equal(m.node.figures[DAQ_AT_LIMIT], 2);
	assert_int_equal(fake_board.output[0], 0);
	/* Neither channel is touched. */
	assert_int_equal(write_values(&m, (const double[]){ 0, NAN }, 2), 0);
	assert_int_equal(fake_board.output[2], 65535);
	assert_int_equal(write_values(&m, (const double[]){ 0 }, 1), 0);
	assert_int_equal(m.node.counters.losses[NODE_LOSS_FORMAT], 2);
	atomic_store(&fake_board.broken, true);
	assert_int_equal(write_values(&m, (const double[]){ 0, 0 }, 2), 0);
	assert_int_equal(m.node.counters.losses[NODE_LOSS_REFUSED], 1);
	end(&m);
}

/* Scans of 2 channels; the writer is as fast as the board lets it be: of 28192 scans at 20 kHz the
 * buffer holds 16384. */
static void a_streamed_output_takes_samples_at_the_rate_of_the_board(void **state)
{
	struct made_node m;
	uint64_t begin_ns;
	unsigned ended;

	begin(&m, "{\"device\": \"fake0\", \"out\": {\"rate\": 20000, \"bufsize\": 64, \"signals\": ["
		  "{\"channel\": 2}, {\"channel\": 0}]}}", false, true);
	begin_ns = clock_now_ns();
	for (unsigned i = 0; i < 20000; i++)
		assert_int_equal(write_values(&m, (const double[]){ 5, -5 }, 2), 1);
	assert_true(clock_now_ns() - begin_ns > NSEC_PER_SEC / 2);
	assert_int_equal(fake_board.output[2], 49151);
	assert_int_equal(fake_board.output[0], 16384);
	/* None comes for a while. */
	wait_for_end();
	ended = atomic_load(&fake_board.ended);
	assert_int_equal(write_values(&m, (const double[]){ 1, 1 }, 2), 1);
	assert_int_equal(m.node.figures[DAQ_UNDERRUNS], ended);
	assert_int_equal(fake_board.commands, ended + 1);
	assert_int_equal(m.node.counters.not_sent, 0);
	end(&m);
}

static void lines_are_written_and_read(void **state)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;

	begin(&m, "{\"device\": \"fake0\", \"in\": {\"kind\": \"digital\", \"rate\": 1000, \"signals\": ["
		  "{\"channel\": 5, \"type\": \"boolean\"}, {\"channel\": 4, \"type\": \"integer\"}]}, "
		  "\"out\": {\"kind\": \"digital\", \"signals\": [{\"channel\": 5}, {\"channel\": 1}]}}",
	      true, true);
	assert_int_equal(write_values(&m, (const double[]){ 1, 1 }, 2), 1);
	assert_int_equal(fake_board.lines, 1u << 5 | 1u << 1);
	assert_int_equal(fake_board.directions, 1u << 5 | 1u << 1);
	assert_int_equal(node_read_one(&m, s), 1);
	assert_int_equal(s->data[0].i, 1);
	assert_int_equal(s->data[1].i, 0);
	assert_int_equal(write_values(&m, (const double[]){ 0, 1 }, 2), 1);
	assert_int_equal(fake_board.lines, 1u << 1);
	sample_put(s);
	end(&m);
}

/* Each start fails, and leaves nothing behind. */
static void what_the_board_lacks_is_refused_at_the_start(void **state)
{
	static const char *const rows[] = {
		"{\"device\": \"no\", \"in\": {\"rate\": 1, \"signals\": [{\"channel\": 0}]}}",
		"{\"device\": \"fake0\", \"in\": {\"rate\": 1, \"signals\": [{\"channel\": 8}]}}",
		"{\"device\": \"fake0\", \"in\": {\"rate\": 1, \"signals\": [{\"channel\": 0, \"range\": 2}]}}",
		"{\"device\": \"fake0\", \"in\": {\"rate\": 1, \"subdevice\": 1, \"signals\": [{\"channel\": 0}]}}",
		"{\"device\": \"fake0\", \"in\": {\"rate\": 1, \"subdevice\": 4, \"signals\": [{\"channel\": 0}]}}",
		"{\"device\": \"fake0\", \"in\": {\"rate\": 1, \"subdevice\": 3, \"mode\": \"stream\", \"signals\": [{\"channel\": 0}]}}",
		"{\"device\": \"fake0\", \"in\": {\"rate\": 1e9, \"signals\": [{\"channel\": 0}]}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct made_node m;

		make_node(&m, &node_comedi, rows[i]);
		m.node.is_source = true;
		assert_true(m.node.type->start(&m.node) < 0);
		drop_node(&m);
	}
	{
		struct made_node m;

		make_node(&m, &node_comedi, STREAM);
		m.node.is_source = true;
		atomic_store(&fake_board.locked, true);
		assert_true(m.node.type->start(&m.node) < 0);
		atomic_store(&fake_board.locked, false);
		assert_int_equal(m.node.type->start(&m.node), 0);
		assert_int_equal(m.node.type->stop(&m.node), 0);
		drop_node(&m);
	}
}

static void settings_that_cannot_be_meant_are_refused(void **state)
{
	static const char *const rows[] = {
		"{\"device\": \"\"}",
		"{\"device\": \"f\", \"in\": {\"signals\": \"2f\"}}",
		"{\"device\": \"f\", \"in\": {\"signals\": [{\"name\": \"a\"}]}}",
		"{\"device\": \"f\", \"in\": {\"signals\": [{\"channel\": 0, \"type\": \"complex\"}]}}",
		"{\"device\": \"f\", \"in\": {\"signals\": [{\"channel\": 0, \"type\": \"boolean\"}]}}",
		"{\"device\": \"f\", \"in\": {\"signals\": [{\"channel\": 0, \"aref\": 4}]}}",
		"{\"device\": \"f\", \"in\": {\"kind\": \"digital\", \"signals\": [{\"channel\": 0, \"range\": 1}]}}",
		"{\"device\": \"f\", \"in\": {\"kind\": \"digital\", \"mode\": \"stream\", \"rate\": 1}}",
		"{\"device\": \"f\", \"out\": {\"mode\": \"stream\"}}",
		"{\"device\": \"f\", \"in\": {\"rate\": 0.1}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct made_node m;

		assert_int_equal(try_node(&m, &node_comedi, rows[i]), -EINVAL);
		drop_node(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_code_becomes_its_value_and_back),
		cmocka_unit_test(values_beyond_the_range_become_its_ends_and_are_told),
		cmocka_unit_test(codes_have_two_or_four_bytes),
		cmocka_unit_test(scans_have_the_times_of_the_board),
		cmocka_unit_test(times_rise_while_they_are_corrected),
		cmocka_unit_test(a_gap_is_as_long_as_its_time),
		cmocka_unit_test_setup_teardown(a_stream_has_every_scan_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(an_overrun_is_counted_and_the_board_begins_again, setup, teardown),
		cmocka_unit_test_setup_teardown(what_came_while_the_node_was_paused_is_no_loss, setup, teardown),
		cmocka_unit_test_setup_teardown(a_board_without_commands_is_read_at_the_steps_of_a_timer, setup, teardown),
		cmocka_unit_test_setup_teardown(outputs_have_their_values_at_once_without_a_rate, setup, teardown),
		cmocka_unit_test_setup_teardown(a_streamed_output_takes_samples_at_the_rate_of_the_board, setup, teardown),
		cmocka_unit_test_setup_teardown(lines_are_written_and_read, setup, teardown),
		cmocka_unit_test_setup_teardown(what_the_board_lacks_is_refused_at_the_start, setup, teardown),
		cmocka_unit_test(settings_that_cannot_be_meant_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
