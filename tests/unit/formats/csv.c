/* SPDX-License-Identifier: BSD-2-Clause */
/* csv and tsv: fields in quotes as RFC 4180 has them, written and read. */
#include "samples.h"

#include <math.h>
#include <unistd.h>

#include "gateway/part/reader.h"
#include "gateway/sample/signals.h"

/* What needs quotes, brackets, or neither. */
static const char *const awkward[] = {
	"plain", "a,b", "a;b", "a\tb", "say \"hi\"", "\"", "\"\"", "two\nlines",
	"end\r", "\r\n", "bus[1]", "[x]", "#first", " blank ", "", "'", "a\"b,c\nd",
};

#define COUNT ((unsigned)(sizeof(awkward) / sizeof(awkward[0])))

/* Name `i`, shifted so that each one comes first and last once. */
static struct signal_list *make_list(unsigned shift)
{
	struct signal_list *l = signal_list_alloc(COUNT);

	for (unsigned i = 0; i < COUNT; i++) {
		const char *name = awkward[(i + shift) % COUNT];

		assert_int_equal(signal_set(&l->signals[i], name,
					    (i + shift) % 3 ? NULL : "k\"V,]",
					    SIGNAL_FLOAT), 0);
	}
	return l;
}

static void round_trip_names(const char *text, bool timed)
{
	for (unsigned shift = 0; shift < COUNT; shift++) {
		struct signal_list *l = make_list(shift), *back;
		struct made_format m = make_format(text, l);
		const struct format_type *type = m.format->type;
		size_t need = type->header(m.format, NULL, 0, l), used;
		char *buf = malloc(need + 1000);
		struct sample *in, *out;
		struct pool pool;

		/* It counts what it would write, and writes no more. */
		memset(buf, 'x', need + 1000);
		assert_int_equal(type->header(m.format, buf, need / 2, l), need);
		assert_int_equal(buf[need / 2], 'x');
		assert_int_equal(type->header(m.format, buf, need + 1000, l), need);
		assert_int_equal(pool_init(&pool, 2, COUNT, &memory_heap), 0);
		in = make_sample(&pool);
		out = make_sample(&pool);
		in->flags = SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
		in->origin = (struct timespec){ 5, 6 };
		for (in->length = 0; in->length < COUNT; in->length++)
			in->data[in->length].f = in->length;
		assert_int_equal(type->print(m.format, buf + need, 1000, &used,
					     &in, 1), 1);
		used += need;

		/* With the time in front the names are told apart from it. */
		back = type->names(m.format, buf, used);
		assert_non_null(back);
		assert_int_equal(back->count, COUNT);
		for (unsigned i = 0; i < COUNT; i++) {
			assert_string_equal(back->signals[i].name, l->signals[i].name);
			if (l->signals[i].unit)
				assert_string_equal(back->signals[i].unit,
						    l->signals[i].unit);
			else
				assert_null(back->signals[i].unit);
		}
		/* Cut anywhere, nothing is taken for a line that is none. */
		for (size_t cut = 0; cut <= used; cut++) {
			size_t taken, more;
			int n;

			type->reset(m.format);
			n = type->scan(m.format, buf, cut, &taken, &out, 1);
			assert_true(n >= 0 && taken <= cut);
			if (!n)
				n = type->scan(m.format, buf + taken, used - taken,
					       &more, &out, 1);
			assert_int_equal(n, 1);
			assert_int_equal(out->length, COUNT);
			assert_int_equal(out->data[COUNT - 1].f, COUNT - 1);
			assert_int_equal(!!(out->flags & SAMPLE_HAS_ORIGIN), timed);
		}
		sample_put(in);
		sample_put(out);
		assert_int_equal(pool_destroy(&pool), 0);
		free(buf);
		signal_list_put(back);
		drop_format(&m);
		signal_list_put(l);
	}
}

static void names_with_quotes_separators_and_line_breaks_read_back(void **state)
{
	round_trip_names("{ \"type\": \"csv\", \"columns\": \"plain\" }", true);
	round_trip_names("{ \"type\": \"tsv\", \"columns\": \"plain\" }", true);
	round_trip_names("{ \"type\": \"csv\", \"columns\": \"plain\", \"separator\": \";\" }",
			 true);
	round_trip_names("{ \"type\": \"csv\", \"columns\": \"plain\", \"time_column\": \"none\" }",
			 false);
}

/* The names of a villas header stand in a comment, which is one line. */
static void a_comment_of_names_stays_one_line(void **state)
{
	struct signal_list *l = make_list(0);
	struct made_format m = make_format("{ \"type\": \"csv\" }", l);
	char buf[1000];
	size_t used = m.format->type->header(m.format, buf, sizeof(buf), l);

	assert_true(used < sizeof(buf));
	assert_ptr_equal(memchr(buf, '\n', used), buf + used - 1);
	assert_null(memchr(buf, '\r', used));
	buf[used] = '\0';
	assert_non_null(strstr(buf, ",\"say \"\"hi\"\"\","));
	drop_format(&m);
	signal_list_put(l);
}

struct line {
	const char *text;
	int n;           /* samples */
	double last;     /* value */
	unsigned length;
};

static void check_lines(const char *format, const struct line *lines, size_t count)
{
	struct made_format m = make_format(format, NULL);
	struct sample *s;
	struct pool pool;

	assert_int_equal(pool_init(&pool, 1, 8, &memory_heap), 0);
	s = make_sample(&pool);
	for (size_t i = 0; i < count; i++) {
		size_t used;

		m.format->type->reset(m.format);
		assert_int_equal(m.format->type->scan(m.format, lines[i].text,
			strlen(lines[i].text), &used, &s, 1), lines[i].n);
		if (lines[i].n != 1)
			continue;
		assert_int_equal(s->length, lines[i].length);
		assert_true(s->data[s->length - 1].f == lines[i].last);
	}
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
	drop_format(&m);
}

static void values_may_stand_in_quotes(void **state)
{
	static const struct line lines[] = {
		{ "\"1\",\"2\",nan,\"3\",\"4.5\"\n", 1, 4.5, 1 },
		{ "1,2,nan,3,\"4.5\" ,6\n", 1, 6, 2 },
		{ "1,2,nan,3,\"4\"5,6\n", -EBADMSG, 0, 0 },
		{ "1,2,nan,3,\"4,6\n", -EBADMSG, 0, 0 },
		{ "1,2,nan,3,\"4\"\"5\"\n", -EBADMSG, 0, 0 },
	};

	check_lines("{ \"type\": \"csv\" }", lines, sizeof(lines) / sizeof(*lines));
}

static void a_time_column_is_found_by_its_quoted_name(void **state)
{
	static const struct line lines[] = {
		{ "a,\"the \"\"time\"\"\"\n7,5\n", 1, 7, 1 },
		{ "a,\"THE \"\"TIME\"\"\"\r\n7,5\r\n", 1, 7, 1 },
		{ "a,the \"time\"\n7,5\n", 1, 7, 1 },
		{ "a,other\n7,5\n", -EBADMSG, 0, 0 },
	};

	check_lines("{ \"type\": \"csv\", \"columns\": \"plain\", \"time_column\": \"the \\\"time\\\"\" }",
		    lines, sizeof(lines) / sizeof(*lines));
}

static void a_separator_that_numbers_are_made_of_is_refused(void **state)
{
	const char *text = "{ \"a\": { \"type\": \"csv\", \"separator\": \".\" },"
			   "  \"b\": { \"type\": \"tsv\", \"separator\": \"\\n\" } }";
	struct config *c;
	struct format *f;

	assert_int_equal(config_load_text("test", text, strlen(text), &c), 0);
	assert_int_equal(format_new(&f, c, json_object_get(config_root(c), "a"),
				    NULL, NULL), -EINVAL);
	assert_int_equal(format_new(&f, c, json_object_get(config_root(c), "b"),
				    NULL, NULL), -EINVAL);
	assert_int_equal(config_errors(c), 2);
	config_destroy(c);
}

/* The quote is never closed: the file ends, and so does reading it. */
static void a_file_whose_names_have_an_open_quote_ends(void **state)
{
	static const char text[] = "time,\"a\n1,2\n3,4\n";
	char path[] = "/tmp/busbar-csv-XXXXXX";
	struct made_format m = make_format("{ \"type\": \"csv\", \"columns\": \"plain\" }",
					   NULL);
	struct reader r;
	struct sample *s;
	struct pool pool;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(pool_init(&pool, 1, 8, &memory_heap), 0);
	s = make_sample(&pool);
	assert_int_equal(reader_open(&r, path, m.format, 4096), 0);
	unlink(path);
	assert_int_equal(reader_next(&r, &s, 1, true), 0);
	assert_true(reader_at_eof(&r));
	assert_int_equal(r.malformed, 1);
	reader_close(&r);
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
	drop_format(&m);
}

/* A header and a row of three columns: which one is the time, and in which unit. */
static void the_time_column_is_found_with_its_unit(void **state)
{
	static const struct { const char *column, *header; int64_t sec; long nsec; bool timed; } cases[] = {
		{ "auto", "time,a,b", 1500, 250000000, true },
		{ "auto", "time[s],a,b", 1500, 250000000, true },
		{ "auto", "Time (s),a,b", 1500, 250000000, true },
		{ "auto", "TIME(S),a,b", 1500, 250000000, true },
		{ "auto", " t [sec] ,a,b", 1500, 250000000, true },
		{ "auto", "\"Time [seconds]\",a,b", 1500, 250000000, true },
		{ "auto", "time[],a,b", 1500, 250000000, true },
		{ "auto", "time[ms],a,b", 1, 500250000, true },
		{ "auto", "Timestamp (ms),a,b", 1, 500250000, true },
		{ "auto", "time (us),a,b", 0, 1500250, true },
		{ "auto", "time [\xc2\xb5s],a,b", 0, 1500250, true },
		{ "auto", "t[ns],a,b", 0, 1500, true },
		{ "auto", "\xef\xbb\xbftime,a,b", 1500, 250000000, true },
		{ "auto", "\xef\xbb\xbf\"time[s]\",a,b", 1500, 250000000, true },
		{ "auto", "t [\xc2\xb0" "C],a,b", 0, 0, false },
		{ "auto", "time of day,a,b", 0, 0, false },
		{ "time", "time[ms],a,b", 1, 500250000, true },
		{ "time[ms]", "time[ms],a,b", 1, 500250000, true },
		{ "clock", "Clock (s),a,b", 1500, 250000000, true },
		{ "0", "when[ms],a,b", 1, 500250000, true },
		{ "none", "time,a,b", 0, 0, false },
	};
	struct pool pool;
	struct sample *s;

	assert_int_equal(pool_init(&pool, 1, 8, &memory_heap), 0);
	s = make_sample(&pool);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char config[200], text[200];
		struct made_format m;

		snprintf(config, sizeof(config),
			 "{ \"type\": \"csv\", \"columns\": \"plain\", \"time_column\": \"%s\" }",
			 cases[i].column);
		m = make_format(config, NULL);
		snprintf(text, sizeof(text), "%s\n1500.25,2,3\n", cases[i].header);
		if (scan_text(m.format, text, s) != 1 ||
		    !!(s->flags & SAMPLE_HAS_ORIGIN) != cases[i].timed)
			fail_msg("%s: %s", text, format_error(m.format));
		assert_int_equal(s->length, cases[i].timed ? 2 : 3);
		if (cases[i].timed)
			assert_same_time(s->origin, (struct timespec){ cases[i].sec, cases[i].nsec });
		drop_format(&m);
	}
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
}

static void dates_have_fractions_and_zones(void **state)
{
	static const struct { const char *format, *text; int64_t sec; long nsec; } cases[] = {
		{ "%Y-%m-%d %H:%M:%S", "2024-02-29 12:00:00", 1709208000, 0 },
		{ "%Y-%m-%d %H:%M:%S", "2024-02-29 12:00:00.25", 1709208000, 250000000 },
		{ "%Y-%m-%d %H:%M:%S", "2024-02-29 12:00:00,000000001", 1709208000, 1 },
		{ "%Y-%m-%d %H:%M:%S.%f", "2024-02-29 12:00:00.123456", 1709208000, 123456000 },
		{ "%Y-%m-%d %H:%M:%S.%N", "2024-02-29 12:00:00", 1709208000, 0 },
		{ "%FT%T%z", "2024-02-29T12:00:00+0100", 1709204400, 0 },
		{ "%FT%T%z", "2024-02-29T12:00:00.5+01:00", 1709204400, 500000000 },
		{ "%FT%T%z", "2024-02-29T12:00:00.5-05:30", 1709227800, 500000000 },
		{ "%FT%T%z", "2024-02-29T12:00:00.999999999Z", 1709208000, 999999999 },
		{ "%FT%TZ", "2024-02-29T12:00:00.75Z", 1709208000, 750000000 },
		{ "%d/%m/%Y %I:%M:%S %p", "29/02/2024 01:00:00.125 PM", 1709211600, 125000000 },
		{ "%H:%M:%S", "00:01:30.5", 90, 500000000 },
		{ "%FT%T.%3N%z", "2024-02-29T12:00:00.123+0100", 1709204400, 123000000 },
		{ "%d.%m.%Y %H.%M.%S", "29.02.2024 12.00.00.5", 1709208000, 500000000 },
		{ "%S.%M.%H %F", "30.01.12 2024-02-29", 1709208090, 0 },
		{ "%F %T %Z", "2024-02-29 12:00:00.5 UTC", 1709208000, 500000000 },
		{ "%F %T %Z", "2024-02-29 12:00:00 CET", INT64_MAX, 0 },
		{ "%Z %F %T", "GMT 2024-02-29 12:00:00", 1709208000, 0 },
		{ "%s", "1709208000.5", 1709208000, 500000000 },
		{ "%FT%T", "1969-12-31T23:59:59.25", -1, 250000000 },
		{ "%FT%T%z", "1970-01-01T00:30:00.5+01:00", -1800, 500000000 },
		{ "%d-%b-%Y", "28-Apr-2025", 1745798400, 0 },
		{ "%FT%T", "2024-02-29T12:00:00.x", INT64_MAX, 0 },
		{ "%FT%T", "2024-02-29T12:00:00+01:00", INT64_MAX, 0 },
		{ "%F", "2024-02-29.5", INT64_MAX, 0 },
	};
	struct pool pool;
	struct sample *s;

	setenv("TZ", "America/New_York", 1);
	assert_int_equal(pool_init(&pool, 1, 8, &memory_heap), 0);
	s = make_sample(&pool);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool good = cases[i].sec != INT64_MAX;
		char config[200], text[200];
		struct made_format m;
		int ret;

		snprintf(config, sizeof(config),
			 "{ \"type\": \"csv\", \"separator\": \";\", \"columns\": \"plain\", \"time_format\": \"%s\" }",
			 cases[i].format);
		m = make_format(config, NULL);
		snprintf(text, sizeof(text), "time (UTC);a\n%s;2\n", cases[i].text);
		ret = scan_text(m.format, text, s);
		if (ret != (good ? 1 : -EBADMSG) ||
		    (good && (s->origin.tv_sec != cases[i].sec || s->origin.tv_nsec != cases[i].nsec)))
			fail_msg("%s as %s: %d, %jd s %ld ns", cases[i].text, cases[i].format, ret,
				 (intmax_t)s->origin.tv_sec, s->origin.tv_nsec);
		drop_format(&m);
	}
	unsetenv("TZ");
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
}

/* One recording with each end of line, with and without a byte-order mark, whole and cut
 * anywhere. */
static void lines_end_by_any_convention(void **state)
{
	static const char *const ends[] = { "\n", "\r\n", "\r", "\r\r\n" };
	static const struct { const char *format, *lines[3]; } files[] = {
		{ "{ \"type\": \"csv\", \"columns\": \"plain\" }", { "time,\"a\nb\"", "1.5,7", "2.5,8" } },
		{ "{ \"type\": \"tsv\" }", { "# secs", "1\t500000000\tnan\t1\t7", "2\t500000000\tnan\t2\t8" } },
		{ "{ \"type\": \"villas.human\" }", { "# seconds", "1.5(1)\t7", "2.5(2)\t8" } },
		{ "{ \"type\": \"value\" }", { "# none", "7", "8" } },
		{ "{ \"type\": \"iotagent_ul\" }", { "# none", "a|7", "a|8" } },
		{ "{ \"type\": \"json\" }", { "", "{\"data\": [7]}", "{\"data\": [8]}" } },
	};
	struct sample *smps[4];
	struct pool pool;

	assert_int_equal(pool_init(&pool, 4, 8, &memory_heap), 0);
	assert_int_equal(sample_alloc_many(&pool, smps, 4), 4);
	for (size_t i = 0; i < 2 * 4 * sizeof(files) / sizeof(*files); i++) {
		const char *end = ends[i / 2 % 4];
		struct made_format m = make_format(files[i / 8].format, NULL);
		const struct format_type *type = m.format->type;
		char text[200];
		size_t len = (size_t)snprintf(text, sizeof(text), "%s%s%s%s%s%s%s\n", i % 2 ? "\xef\xbb\xbf" : "",
			files[i / 8].lines[0], end, files[i / 8].lines[1], end,
			files[i / 8].lines[2], strcmp(end, "\r") ? end : "\r");

		/* What a reader adds at the end of the file is the newline. */
		len -= !strcmp(end, "\n") || !strcmp(end, "\r\n") || !strcmp(end, "\r\r\n");
		for (size_t cut = 0; cut <= len; cut++) {
			size_t used, more;
			int n, rest;

			if (type->reset)
				type->reset(m.format);
			n = type->scan(m.format, text, cut, &used, smps, 4);
			assert_true(n >= 0 && used <= cut);
			rest = type->scan(m.format, text + used, len - used, &more, smps + n, (unsigned)(4 - n));
			if (n + rest != 2 || smps[0]->data[0].f != 7 || smps[1]->data[0].f != 8)
				fail_msg("%s with end %zu cut at %zu: %d and %d samples, %s",
					 files[i / 8].format, i / 2 % 4, cut, n, rest, format_error(m.format));
		}
		drop_format(&m);
	}
	sample_put_many(smps, 4);
	assert_int_equal(pool_destroy(&pool), 0);
}

/* A path whose second source has not sent yet: 2 values, then 4. */
static void rows_have_as_many_columns_as_the_header(void **state)
{
	static const char *const formats[] = {
		"{ \"type\": \"csv\", \"columns\": \"plain\" }",
		"{ \"type\": \"tsv\", \"columns\": \"plain\", \"time_column\": \"none\" }",
	};
	struct signal_list *l = signal_list_new(4, SIGNAL_FLOAT), *h;
	struct sample *in, *out;
	struct pool pool;

	l->signals[3].type = SIGNAL_INTEGER;
	assert_int_equal(pool_init(&pool, 2, 8, &memory_heap), 0);
	in = make_sample(&pool);
	out = make_sample(&pool);
	in->flags = SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	in->origin = (struct timespec){ 5, 6 };
	in->signals = l;
	h = signal_list_header(l, 2);
	assert_int_equal(h->count, 4);
	for (size_t i = 0; i < 2 * sizeof(formats) / sizeof(*formats); i++) {
		struct made_format m = make_format(formats[i / 2], l);
		const struct format_type *type = m.format->type;
		char buf[1000];
		size_t head = 0, first, second, used;

		/* A recording that is appended to gets no header. */
		head = type->header(m.format, buf, sizeof(buf), h);
		if (i % 2)
			type->reset(m.format);
		for (in->length = 0; in->length < 2; in->length++)
			in->data[in->length].f = 1.5 + in->length;
		assert_int_equal(type->print(m.format, buf + head, 300, &first, &in, 1), 1);
		in->data[2].f = 3.5;
		in->data[3].i = 4;
		in->length = 4;
		assert_int_equal(type->print(m.format, buf + head + first, 300, &second, &in, 1), 1);
		type->reset(m.format);
		assert_int_equal(type->scan(m.format, buf, head + first + second, &used, &out, 1), 1);
		assert_int_equal(out->length, 3);
		assert_true(out->data[1].f == 2.5 && isnan(out->data[2].f));
		assert_int_equal(type->scan(m.format, buf + used, head + first + second - used,
					    &used, &out, 1), 1);
		assert_int_equal(out->length, 4);
		assert_int_equal(out->data[3].i, 4);
		drop_format(&m);
	}
	/* The default list says nothing: the first sample does. */
	signal_list_put(h);
	signal_list_put(l);
	l = signal_list_new(SIGNALS_DEFAULT, SIGNAL_FLOAT);
	h = signal_list_header(l, 3);
	assert_int_equal(h->count, 3);
	signal_list_put(h);
	h = signal_list_header(l, 66);
	assert_int_equal(h->count, 66);
	assert_string_equal(h->signals[65].name, "signal65");
	signal_list_put(h);
	signal_list_put(l);
	sample_put(in);
	sample_put(out);
	assert_int_equal(pool_destroy(&pool), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_with_quotes_separators_and_line_breaks_read_back),
		cmocka_unit_test(a_comment_of_names_stays_one_line),
		cmocka_unit_test(the_time_column_is_found_with_its_unit),
		cmocka_unit_test(dates_have_fractions_and_zones),
		cmocka_unit_test(lines_end_by_any_convention),
		cmocka_unit_test(rows_have_as_many_columns_as_the_header),
		cmocka_unit_test(values_may_stand_in_quotes),
		cmocka_unit_test(a_time_column_is_found_by_its_quoted_name),
		cmocka_unit_test(a_separator_that_numbers_are_made_of_is_refused),
		cmocka_unit_test(a_file_whose_names_have_an_open_quote_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
