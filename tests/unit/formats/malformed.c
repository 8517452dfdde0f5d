/* SPDX-License-Identifier: BSD-2-Clause */
/* Malformed lines are refused with a reason, and reading goes on behind them. */
#include "samples.h"

#include <math.h>

static const struct {
	const char *format, *line, *reason;
} cases[] = {
#define HUMAN "{ \"type\": \"villas.human\" }"
#define CSV "{ \"type\": \"csv\" }"
#define PLAIN "{ \"type\": \"csv\", \"columns\": \"plain\" }"
	{ HUMAN, "abc\t1\n", "timestamp \"abc\"" },
	{ HUMAN, "1.\t1\n", "timestamp \"1.\"" },
	{ HUMAN, "99999999999999999999\t1\n", "timestamp" },
	{ HUMAN, "1.5+x\t1\n", "offset \"+x\"" },
	{ HUMAN, "1.5+1e99\t1\n", "offset" },
	{ HUMAN, "1.5(5\t1\n", "sequence number" },
	{ HUMAN, "1.5(-5)\t1\n", "sequence number" },
	{ HUMAN, "1.5(99999999999999999999)\t1\n", "sequence number" },
	{ HUMAN, "1.5Fx\t1\n", "does not belong" },
	{ HUMAN, "1.5\t1\tabc\n", "value \"abc\" is not a real number" },
	{ HUMAN, "1.5\t1\t2\t3\t4\t5\n", "more than 4 values" },
	{ HUMAN, "1.5\t1\t2\t3.5\n", "is not an integer" },
	{ HUMAN, "1.5\t1\t2\t3\t1+2\n", "complex" },
	{ CSV, "1,2\n", "only 2 columns" },
	{ CSV, "1.5,0,nan,nan,1\n", "seconds \"1.5\"" },
	{ CSV, "1,1000000000,nan,nan,1\n", "nanoseconds" },
	{ CSV, "1,0,abc,nan,1\n", "offset \"abc\"" },
	{ CSV, "1,0,nan,1.5,1\n", "sequence number \"1.5\"" },
	{ CSV, "1,0,nan,1,1,2;3\n", "value \"2;3\"" },
	{ CSV, "1,0,nan,1,1,2,\n", "is not an integer" },
	{ PLAIN, "time,a\n28-Apr-2025,1\n", "set time_format" },
	{ PLAIN, "a,time\n1\n", "the line has 1 columns, the header line 2" },
	{ PLAIN, "time,a\n1,2,3\n", "the line has 3 columns, the header line 2" },
	{ PLAIN, "time,a,b\n1,2\n", "the line has 2 columns, the header line 3" },
	{ PLAIN, "time,a\n1,x,3\n", "the line has 3 columns, the header line 2" },
	{ PLAIN, "time,a\n1,2,,\n", "the line has 4 columns, the header line 2" },
	{ PLAIN, "time,a\n1,\x01\x02""abc\n", "value \"??abc\"" },
};

static struct signal_list *four_signals(void)
{
	struct signal_list *l = signal_list_new(4, SIGNAL_FLOAT);

	l->signals[2].type = SIGNAL_INTEGER;
	l->signals[3].type = SIGNAL_COMPLEX;
	return l;
}

static void malformed_lines_are_refused_with_a_reason(void **state)
{
	struct signal_list *signals = four_signals();
	struct pool pool;
	struct sample *s;

	assert_int_equal(pool_init(&pool, 1, 4, &memory_heap), 0);
	s = make_sample(&pool);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made_format m = make_format(cases[i].format, signals);

		if (scan_text(m.format, cases[i].line, s) != -EBADMSG)
			fail_msg("accepted: %s", cases[i].line);
		if (!strstr(format_error(m.format), cases[i].reason))
			fail_msg("'%s' does not say '%s'", format_error(m.format),
				 cases[i].reason);
		drop_format(&m);
	}
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
	signal_list_put(signals);
}

static void reading_goes_on_behind_a_malformed_line(void **state)
{
	static const char text[] = "1.0(0)\t1\n1.1(1)\tbad\n1.2(2)\t3\n";
	struct made_format m = make_format(HUMAN, NULL);
	struct sample *smps[4];
	struct pool pool;
	size_t pos = 0, used;

	assert_int_equal(pool_init(&pool, 4, 4, &memory_heap), 0);
	for (unsigned i = 0; i < 4; i++)
		smps[i] = make_sample(&pool);
	/* First what stands before it, then the error, then what follows. */
	assert_int_equal(m.format->type->scan(m.format, text, sizeof(text) - 1,
					      &used, smps, 4), 1);
	assert_int_equal(smps[0]->sequence, 0);
	pos += used;
	assert_int_equal(m.format->type->scan(m.format, text + pos,
			sizeof(text) - 1 - pos, &used, smps, 4), -EBADMSG);
	pos += used;
	assert_int_equal(m.format->type->scan(m.format, text + pos,
			sizeof(text) - 1 - pos, &used, smps, 4), 1);
	assert_int_equal(smps[0]->sequence, 2);
	assert_int_equal(pos + used, sizeof(text) - 1);
	sample_put_many(smps, 4);
	assert_int_equal(pool_destroy(&pool), 0);
	drop_format(&m);
}

static void a_missing_time_column_is_refused_for_every_line(void **state)
{
	struct made_format m = make_format("{ \"type\": \"csv\", \"columns\": "
		"\"plain\", \"time_column\": \"when\" }", NULL);
	struct pool pool;
	struct sample *s;

	assert_int_equal(pool_init(&pool, 1, 4, &memory_heap), 0);
	s = make_sample(&pool);
	assert_int_equal(scan_text(m.format, "a,b\n", s), -EBADMSG);
	assert_non_null(strstr(format_error(m.format), "time_column"));
	assert_int_equal(scan_text(m.format, "1,2\n", s), -EBADMSG);
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
	drop_format(&m);
}

/* Numbers beyond 64 bits in a real signal, in each JSON format; the sample is kept. */
static void numbers_too_large_for_an_integer_are_real_ones(void **state)
{
	static const struct { const char *number; double value; } numbers[] = {
		{ "9223372036854775807", 9223372036854775807.0 },
		{ "9223372036854775808", 9223372036854775808.0 },
		{ "-9223372036854775808", -9223372036854775808.0 },
		{ "-9223372036854775809", -9223372036854775809.0 },
		{ "18446744073709551615", 18446744073709551615.0 },
		{ "123456789012345678901234567890", 123456789012345678901234567890.0 },
		{ "-1e22", -1e22 }, { "1e308", 1e308 }, { "5e-324", 5e-324 },
		{ "1e-400", 0 }, { "1e400", HUGE_VAL }, { "-1.5E+999", -HUGE_VAL },
	};
	static const struct { const char *format, *before, *behind; } formats[] = {
		{ "json", "{\"data\": [1, ", "]}" },
		{ "json", "{\"unknown\": {\"a\\\"1e999\": 1e999}, \"data\": [1, ", "]}" },
		{ "json.kafka", "{\"payload\": {\"signal0\": 1, \"signal1\": ", "}}" },
		{ "json.edgeflex", "{\"signal0\": 1, \"signal1\":", "}" },
		{ "json.reserve", "{\"measurements\": [{\"name\": \"signal0\", \"value\": 1},"
		  "{\"name\": \"signal1\", \"value\": ", "}]}" },
		{ "value", "", "\n" },
		{ "iotagent_ul", "signal0|1|signal1|", "\n" },
		{ "csv", "1,2,nan,3,1,", "\n" },
		{ "villas.human", "1.5 1 ", "\n" },
	};
	struct signal_list *l = signal_list_new(2, SIGNAL_FLOAT);
	struct pool pool;
	struct sample *s;

	assert_int_equal(pool_init(&pool, 1, 4, &memory_heap), 0);
	s = make_sample(&pool);
	for (size_t k = 0; k < ARRAY_SIZE(formats); k++)
		for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
			char config[64], text[256];
			struct made_format m;

			snprintf(config, sizeof(config), "{ \"type\": \"%s\" }", formats[k].format);
			snprintf(text, sizeof(text), "%s%s%s", formats[k].before,
				 numbers[i].number, formats[k].behind);
			m = make_format(config, l);
			if (scan_text(m.format, text, s) != 1)
				fail_msg("%s: %s", text, format_error(m.format));
			if (s->data[s->length - 1].f != numbers[i].value)
				fail_msg("%s is %g", text, s->data[s->length - 1].f);
			drop_format(&m);
		}
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
	signal_list_put(l);
}

static void a_sequence_number_of_64_bits_is_read(void **state)
{
	static const char *const texts[] = {
		"{\"sequence\": 18446744073709551615}",
		"{\"sequence\": 18446744073709551615, \"x\": 1}",
	};
	struct made_format m = make_format("{ \"type\": \"json\" }", NULL);
	struct pool pool;
	struct sample *s;

	assert_int_equal(pool_init(&pool, 1, 4, &memory_heap), 0);
	s = make_sample(&pool);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		s->sequence = 0;
		assert_int_equal(scan_text(m.format, texts[i], s), 1);
		assert_true(s->sequence == UINT64_MAX);
	}
	/* For an integer signal and a time it stays an error, of this sample alone. */
	assert_int_equal(scan_text(m.format, "{\"ts\": {\"origin\": [9223372036854775808, 0]}}", s),
			 -EBADMSG);
	assert_int_equal(scan_text(m.format, "{\"sequence\": 18446744073709551616}", s), -EBADMSG);
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
	drop_format(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed_lines_are_refused_with_a_reason),
		cmocka_unit_test(reading_goes_on_behind_a_malformed_line),
		cmocka_unit_test(numbers_too_large_for_an_integer_are_real_ones),
		cmocka_unit_test(a_sequence_number_of_64_bits_is_read),
		cmocka_unit_test(a_missing_time_column_is_refused_for_every_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
