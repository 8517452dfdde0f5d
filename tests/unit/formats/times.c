/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times before 1970, beyond 32 bits and at the limits of 64: what each format writes,
 * what it reads, and that it reads back what it wrote.
 */
#include "samples.h"

#include <limits.h>

#include "gateway/sample/signals.h"
#include "gateway/sample/time.h"

static const int64_t seconds[] = {
	0, 1, 2, -1, -2, -3, 59, -59, 1700000000, -1700000000, INT32_MAX,
	INT64_C(2147483648), INT32_MIN, INT64_C(-2147483649), UINT32_MAX,
	INT64_C(4294967296), INT64_C(9223372036), INT64_C(9223372037),
	INT64_C(-9223372037), INT64_C(-9223372038), INT64_C(253402300799),
	INT64_MAX - 1, INT64_MAX, INT64_MIN, INT64_MIN + 1,
};

static const long fractions[] = {
	0, 1, 9, 10, 99999999, 100000000, 250000000, 500000000, 750000000, 999999999,
};

/* `step`: of the times that the format carries. */
static const struct {
	const char *config;
	long step;
	int64_t least, most; /* seconds */
	bool received;
} formats[] = {
	{ "{ \"type\": \"villas.human\" }", 1, INT64_MIN, INT64_MAX, true },
	{ "{ \"type\": \"csv\" }", 1, INT64_MIN, INT64_MAX, true },
	{ "{ \"type\": \"tsv\" }", 1, INT64_MIN, INT64_MAX, true },
	{ "{ \"type\": \"csv\", \"columns\": \"plain\" }", 1, INT64_MIN, INT64_MAX, false },
	{ "{ \"type\": \"tsv\", \"columns\": \"plain\" }", 1, INT64_MIN, INT64_MAX, false },
	{ "{ \"type\": \"json\" }", 1, INT64_MIN, INT64_MAX, true },
	{ "{ \"type\": \"json.kafka\" }", 1000000, INT64_MIN / 1000, INT64_MAX / 1000 - 1, false },
	{ "{ \"type\": \"json.edgeflex\" }", 1000000, INT64_MIN / 1000, INT64_MAX / 1000 - 1, false },
	{ "{ \"type\": \"json.reserve\" }", 1000000, INT64_MIN / 1000, INT64_MAX / 1000 - 1, false },
	{ "{ \"type\": \"protobuf\" }", 1, INT64_MIN, INT64_MAX, true },
	{ "{ \"type\": \"busbar.binary\" }", 1, INT64_MIN, INT64_MAX, true },
	{ "{ \"type\": \"villas.binary\" }", 1, 0, UINT32_MAX, false },
	{ "{ \"type\": \"villas.web\" }", 1, 0, UINT32_MAX, false },
	{ "{ \"type\": \"raw\", \"bits\": 64, \"fake\": true }", 1, INT64_MIN, INT64_MAX, false },
	{ "{ \"type\": \"raw\", \"bits\": 32, \"fake\": true }", 1, 0, UINT32_MAX, false },
};

static void read_back(struct format *f, struct sample *in, struct sample *out, long step,
		      bool received)
{
	char buf[4096];
	size_t head = 0, used, taken;
	const struct format_type *type = f->type;

	if (type->reset)
		type->reset(f);
	if (type->header)
		head = type->header(f, buf, sizeof(buf), f->signals);
	assert_int_equal(type->print(f, buf + head, sizeof(buf) - head, &used, &in, 1), 1);
	assert_int_equal(type->scan(f, buf, head + used, &taken, &out, 1), 1);
	assert_true(out->flags & SAMPLE_HAS_ORIGIN);
	if (out->origin.tv_sec != in->origin.tv_sec ||
	    out->origin.tv_nsec != in->origin.tv_nsec - in->origin.tv_nsec % step)
		fail_msg("%s: %jd s %ld ns came back as %jd s %ld ns: %.*s", type->name,
			 (intmax_t)in->origin.tv_sec, in->origin.tv_nsec,
			 (intmax_t)out->origin.tv_sec, out->origin.tv_nsec,
			 (int)used, type->binary ? "" : buf + head);
	if (received)
		assert_same_time(in->received, out->received);
}

static void every_format_reads_back_the_times_that_it_carries(void **state)
{
	struct signal_list *l = signal_list_new(1, SIGNAL_FLOAT);
	struct sample *in, *out;
	struct pool pool;

	assert_int_equal(pool_init(&pool, 2, 4, &memory_heap), 0);
	in = make_sample(&pool);
	out = make_sample(&pool);
	in->flags = SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA;
	in->length = 1;
	in->data[0].f = 1.5;
	for (size_t k = 0; k < ARRAY_SIZE(formats); k++) {
		struct made_format m = make_format(formats[k].config, l);

		in->signals = l;
		for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
			if (seconds[i] < formats[k].least || seconds[i] > formats[k].most)
				continue;
			for (size_t n = 0; n < ARRAY_SIZE(fractions); n++) {
				size_t other = (i * 7 + n) % ARRAY_SIZE(seconds);

				in->origin = (struct timespec){ seconds[i], fractions[n] };
				in->received = (struct timespec){
					seconds[other],
					fractions[(n + 3) % ARRAY_SIZE(fractions)] };
				read_back(m.format, in, out, formats[k].step,
					  formats[k].received);
			}
		}
		drop_format(&m);
	}
	sample_put(in);
	sample_put(out);
	assert_int_equal(pool_destroy(&pool), 0);
	signal_list_put(l);
}

/* Text of one time, and the time that it is; `sec` is BAD where it is refused. */
#define BAD INT64_C(77777)
struct golden {
	const char *text;
	int64_t sec;
	long nsec;
	bool loose; /* not for villas.human */
};

static const struct golden goldens[] = {
	{ "0", 0, 0, false },
	{ "-0", 0, 0, false },
	{ "1.5", 1, 500000000, false },
	{ "-1.5", -2, 500000000, false },
	{ "-0.5", -1, 500000000, false },
	{ "-0.25", -1, 750000000, false },
	{ "-0.000000001", -1, 999999999, false },
	{ "-1.000000000", -1, 0, false },
	{ "-2.999999999", -3, 1, false },
	{ "+3.25", 3, 250000000, true },
	{ "0.9999999999", 1, 0, false },
	{ "-0.9999999999", -1, 0, false },
	{ "0.9999999994", 0, 999999999, false },
	{ "-0.9999999994", -1, 1, false },
	{ "1.29999999999999999", 1, 300000000, false },
	{ "-1700000000.123456789", -1700000001, 876543211, false },
	{ "9223372036854775807.999999999", INT64_MAX, 999999999, false },
	{ "-9223372036854775808", INT64_MIN, 0, false },
	{ "-9223372036854775807.5", INT64_MIN, 500000000, false },
	{ "-9223372036854775808.5", BAD, 0, false },
	{ "9223372036854775808", BAD, 0, false },
	{ "18446744073709551616.5", BAD, 0, false },
	{ "-.5", -1, 500000000, true },
	{ "5.", 5, 0, true },
	{ "1.5e-3", 0, 1500000, true },
	{ "-1.5e-3", -1, 998500000, true },
	{ "-1.5E+3", -1500, 0, true },
	{ "1.700000000123456789e9", 1700000000, 123456789, true },
	{ "-1.700000000123456789e+09", -1700000001, 876543211, true },
	{ "17e-1", 1, 700000000, true },
	{ "12345e-12", 0, 12, true },
	{ "0.00001e5", 1, 0, true },
	{ "9e18", INT64_C(9000000000000000000), 0, true },
	{ "1e-400", 0, 0, true },
	{ "0e99999999", 0, 0, true },
	{ "1e19", BAD, 0, true },
	{ "1e400", BAD, 0, true },
	{ "-", BAD, 0, false },
	{ ".", BAD, 0, false },
	{ "--1", BAD, 0, false },
	{ "nan", BAD, 0, false },
};

static void check_golden(const char *config, const char *before, const char *behind,
			 bool loose)
{
	struct made_format m = make_format(config, NULL);
	struct pool pool;
	struct sample *s;

	assert_int_equal(pool_init(&pool, 1, 4, &memory_heap), 0);
	s = make_sample(&pool);
	for (size_t i = 0; i < ARRAY_SIZE(goldens); i++) {
		const struct golden *g = &goldens[i];
		bool good = g->sec != BAD;
		char text[128];
		int ret;

		if (g->loose && !loose)
			continue;
		snprintf(text, sizeof(text), "%s%s%s", before, g->text, behind);
		if (m.format->type->reset)
			m.format->type->reset(m.format);
		ret = scan_text(m.format, text, s);
		if (ret != (good ? 1 : -EBADMSG) ||
		    (good && (s->origin.tv_sec != g->sec || s->origin.tv_nsec != g->nsec)))
			fail_msg("%s: \"%s\" gives %d, %jd s %ld ns", config, g->text, ret,
				 (intmax_t)s->origin.tv_sec, s->origin.tv_nsec);
	}
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
	drop_format(&m);
}

static void decimal_seconds_are_read_with_their_sign(void **state)
{
	check_golden("{ \"type\": \"villas.human\" }", "", "(7)\t1.5\n", false);
	check_golden("{ \"type\": \"csv\", \"columns\": \"plain\" }", "time,u\n", ",1.5\n", true);
	check_golden("{ \"type\": \"tsv\", \"columns\": \"plain\" }", "u\ttime\n1.5\t", "\n", true);
}

static void decimal_seconds_are_written_with_their_sign(void **state)
{
	static const struct { int64_t sec; long nsec; const char *text; } cases[] = {
		{ 0, 0, "0.000000000" },
		{ -1, 500000000, "-0.500000000" },
		{ -1, 750000000, "-0.250000000" },
		{ -2, 500000000, "-1.500000000" },
		{ -1, 999999999, "-0.000000001" },
		{ -1, 0, "-1.000000000" },
		{ INT64_MIN, 0, "-9223372036854775808.000000000" },
		{ INT64_MIN, 1, "-9223372036854775807.999999999" },
		{ INT64_MAX, 999999999, "9223372036854775807.999999999" },
	};
	struct made_format m = make_format("{ \"type\": \"csv\", \"columns\": \"plain\" }", NULL);
	struct pool pool;
	struct sample *s;

	assert_int_equal(pool_init(&pool, 1, 4, &memory_heap), 0);
	s = make_sample(&pool);
	s->flags = SAMPLE_HAS_ORIGIN;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char buf[512];
		size_t used;

		s->origin = (struct timespec){ cases[i].sec, cases[i].nsec };
		assert_int_equal(m.format->type->print(m.format, buf, sizeof(buf), &used,
						       &s, 1), 1);
		buf[used - 1] = '\0';
		assert_string_equal(buf, cases[i].text);
	}
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
	drop_format(&m);
}

static void milliseconds_before_1970_and_fractions_of_them_are_read(void **state)
{
	static const struct { const char *text; int64_t sec; long nsec; } cases[] = {
		{ "-1", -1, 999000000 }, { "-1000", -1, 0 }, { "-1001", -2, 999000000 },
		{ "-0.5", -1, 999500000 }, { "1500.25", 1, 500250000 },
		{ "-1500.25", -2, 499750000 }, { "0.1", 0, 100000 },
		{ "999.9999999", 1, 0 }, { "-9223372036854775808", -9223372036854776, 192000000 },
	};
	struct made_format m = make_format("{ \"type\": \"json.edgeflex\" }", NULL);
	struct pool pool;
	struct sample *s;

	assert_int_equal(pool_init(&pool, 1, 4, &memory_heap), 0);
	s = make_sample(&pool);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[128];

		snprintf(text, sizeof(text), "{\"u\": 1.5, \"created\": %s}\n", cases[i].text);
		assert_int_equal(scan_text(m.format, text, s), 1);
		assert_same_time(s->origin, (struct timespec){ cases[i].sec, cases[i].nsec });
	}
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
	drop_format(&m);
}

/* Differences and sums of all pairs of times, against 128 bits. */
static void arithmetic_of_times_ends_at_the_limits(void **state)
{
	static const long nsecs[] = { 0, 1, 999999999, 1000000000, -1, LONG_MIN, LONG_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(seconds) * ARRAY_SIZE(nsecs); i++)
		for (size_t k = 0; k < ARRAY_SIZE(seconds) * ARRAY_SIZE(nsecs); k++) {
			struct timespec a = { seconds[i / ARRAY_SIZE(nsecs)],
					      nsecs[i % ARRAY_SIZE(nsecs)] };
			struct timespec b = { seconds[k / ARRAY_SIZE(nsecs)],
					      nsecs[k % ARRAY_SIZE(nsecs)] };
			int64_t since = sample_time_since_ns(a, b);
			struct timespec sum = sample_time_add_ns(a, seconds[k / ARRAY_SIZE(nsecs)]);

			assert_true(since == -sample_time_since_ns(b, a));
			assert_true(sum.tv_nsec >= 0 && sum.tv_nsec < 1000000000);
			if (since > -INT64_MAX && since < INT64_MAX && a.tv_nsec >= 0 &&
			    a.tv_nsec < 1000000000)
				assert_same_time(sample_time_add_ns(b, since), a);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_reads_back_the_times_that_it_carries),
		cmocka_unit_test(decimal_seconds_are_read_with_their_sign),
		cmocka_unit_test(decimal_seconds_are_written_with_their_sign),
		cmocka_unit_test(milliseconds_before_1970_and_fractions_of_them_are_read),
		cmocka_unit_test(arithmetic_of_times_ends_at_the_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
