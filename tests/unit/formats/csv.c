/* SPDX-License-Identifier: BSD-2-Clause */
/* csv and tsv: fields in quotes as RFC 4180 has them, written and read. */
#include "samples.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_with_quotes_separators_and_line_breaks_read_back),
		cmocka_unit_test(a_comment_of_names_stays_one_line),
		cmocka_unit_test(values_may_stand_in_quotes),
		cmocka_unit_test(a_time_column_is_found_by_its_quoted_name),
		cmocka_unit_test(a_separator_that_numbers_are_made_of_is_refused),
		cmocka_unit_test(a_file_whose_names_have_an_open_quote_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
