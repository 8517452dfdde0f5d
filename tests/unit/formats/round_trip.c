/* SPDX-License-Identifier: BSD-2-Clause */
/* Whatever a line format prints it reads back, bit by bit. */
#include "samples.h"

#include <math.h>

#define VALUES_MAX 10000
#define BATCH 4

static const char *const formats[] = {
	"{ \"type\": \"villas.human\" }",
	"{ \"type\": \"csv\" }",
	"{ \"type\": \"tsv\" }",
	"{ \"type\": \"csv\", \"separator\": \";\" }",
	"{ \"type\": \"villas.human\", \"real_precision\": 0 }",
};

struct setup {
	struct pool pool;
	struct signal_list *signals;
	struct sample *in[BATCH], *out[BATCH];
};

static void set_up(struct setup *t, unsigned values)
{
	assert_int_equal(pool_init(&t->pool, 2 * BATCH, values ? values : 1,
				   &memory_heap), 0);
	t->signals = signal_list_new(values, SIGNAL_FLOAT);
	for (unsigned i = 0; i < values; i++)
		t->signals->signals[i].type = (enum signal_type)(random_bits() % 4);
	for (unsigned i = 0; i < BATCH; i++) {
		t->in[i] = make_sample(&t->pool);
		t->out[i] = make_sample(&t->pool);
		randomise(t->in[i], values ? (unsigned)(random_bits() % (values + 1)) : 0,
			  t->signals);
	}
	t->in[0]->length = values;
	randomise(t->in[0], values, t->signals);
}

static void tear_down(struct setup *t)
{
	for (unsigned i = 0; i < BATCH; i++) {
		sample_put(t->in[i]);
		sample_put(t->out[i]);
	}
	assert_int_equal(pool_destroy(&t->pool), 0);
	signal_list_put(t->signals);
}

/* csv has no column for the flag of a new frame. */
static uint32_t carried(const struct format *f)
{
	uint32_t all = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
		       SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA;

	return strcmp(f->type->name, "villas.human") ? all :
						       all | SAMPLE_NEW_FRAME;
}

static void round_trip(const char *text, unsigned values)
{
	struct setup t;
	struct made_format m;
	size_t size = 300 + (size_t)values * 80, used, taken;
	char *buf = malloc(BATCH * size);

	set_up(&t, values);
	m = make_format(text, t.signals);
	assert_int_equal(m.format->type->print(m.format, buf, BATCH * size,
					       &used, t.in, BATCH), BATCH);
	assert_int_equal(m.format->type->scan(m.format, buf, used, &taken, t.out,
					      BATCH), BATCH);
	assert_int_equal(taken, used);
	for (unsigned i = 0; i < BATCH; i++)
		assert_same(t.in[i], t.out[i], carried(m.format));
	drop_format(&m);
	tear_down(&t);
	free(buf);
}

static void samples_of_all_types_read_back_bit_equal(void **state)
{
	for (unsigned f = 0; f < ARRAY_SIZE(formats); f++)
		for (unsigned i = 0; i < 300; i++)
			round_trip(formats[f], (unsigned)(random_bits() % 70));
}

static void samples_of_ten_thousand_values_read_back_bit_equal(void **state)
{
	for (unsigned f = 0; f < ARRAY_SIZE(formats); f++)
		for (unsigned i = 0; i < 3; i++)
			round_trip(formats[f], VALUES_MAX);
}

static void a_full_buffer_holds_whole_lines_only(void **state)
{
	for (unsigned k = 0; k < ARRAY_SIZE(formats); k++) {
		struct setup t;
		struct made_format m;

		set_up(&t, 20);
		m = make_format(formats[k], t.signals);
		for (size_t size = 0; size < 8000; size += 37) {
			char *buf = malloc(size + 1);
			size_t used = 12345, taken;
			int n = m.format->type->print(m.format, buf, size, &used,
						      t.in, BATCH);

			assert_in_range(n, 0, BATCH);
			assert_true(used <= size);
			if (n == 0)
				assert_int_equal(used, 0);
			assert_int_equal(m.format->type->scan(m.format, buf, used,
					&taken, t.out, BATCH), n);
			for (int i = 0; i < n; i++)
				assert_same(t.in[i], t.out[i], carried(m.format));
			free(buf);
		}
		drop_format(&m);
		tear_down(&t);
	}
}

static void a_line_in_pieces_waits_for_its_end(void **state)
{
	for (unsigned k = 0; k < ARRAY_SIZE(formats); k++) {
		struct setup t;
		struct made_format m;
		char buf[4096];
		size_t used, taken;

		set_up(&t, 5);
		m = make_format(formats[k], t.signals);
		m.format->type->print(m.format, buf, sizeof(buf), &used, t.in, 1);
		for (size_t cut = 0; cut < used; cut++) {
			char *piece = malloc(cut + 1);

			memcpy(piece, buf, cut);
			assert_int_equal(m.format->type->scan(m.format, piece, cut,
					&taken, t.out, 1), 0);
			assert_int_equal(taken, 0);
			free(piece);
		}
		drop_format(&m);
		tear_down(&t);
	}
}

static void headers_are_comments_for_the_reader(void **state)
{
	for (unsigned k = 0; k < ARRAY_SIZE(formats); k++) {
		struct setup t;
		struct made_format m;
		char buf[8192];
		size_t head, used, taken;

		set_up(&t, 5);
		m = make_format(formats[k], t.signals);
		head = m.format->type->header(m.format, buf, sizeof(buf), t.signals);
		assert_true(head < sizeof(buf) && buf[head - 1] == '\n');
		assert_non_null(strstr(buf, "signal4"));
		/* Counts like snprintf() when there is no room. */
		assert_int_equal(m.format->type->header(m.format, NULL, 0, t.signals), head);
		m.format->type->print(m.format, buf + head, sizeof(buf) - head, &used,
				      t.in, 1);
		assert_int_equal(m.format->type->scan(m.format, buf, head + used,
				&taken, t.out, BATCH), 1);
		assert_same(t.in[0], t.out[0], carried(m.format));
		drop_format(&m);
		tear_down(&t);
	}
}

static void masked_fields_are_left_out(void **state)
{
	struct setup t;
	struct made_format m = make_format(
		"{ \"type\": \"villas.human\", \"ts_received\": false, \"sequence\": false }", NULL);
	char buf[1024] = "";
	size_t used;

	set_up(&t, 1);
	t.in[0]->flags = SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED |
			 SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_DATA;
	t.in[0]->origin = (struct timespec){ 5, 500000000 };
	t.in[0]->signals = NULL;
	t.in[0]->data[0].f = -2.5;
	m.format->type->print(m.format, buf, sizeof(buf), &used, t.in, 1);
	buf[used] = '\0';
	assert_string_equal(buf, "5.500000000\t-2.5\n");
	drop_format(&m);

	m = make_format("{ \"type\": \"csv\", \"offset\": false, \"data\": false }", NULL);
	t.in[0]->sequence = 77;
	m.format->type->print(m.format, buf, sizeof(buf), &used, t.in, 1);
	buf[used] = '\0';
	assert_string_equal(buf, "5,500000000,nan,77\n");
	drop_format(&m);

	m = make_format("{ \"type\": \"csv\", \"real_precision\": 3 }", NULL);
	t.in[0]->received = (struct timespec){ 5, 500012345 };
	m.format->type->print(m.format, buf, sizeof(buf), &used, t.in, 1);
	buf[used] = '\0';
	assert_string_equal(buf, "5,500000000,0.000012345,77,-2.500\n");
	drop_format(&m);
	tear_down(&t);
}

static void lines_of_other_writers_are_understood(void **state)
{
	struct setup t;
	struct made_format m;
	struct sample *s;

	set_up(&t, 3);
	for (unsigned i = 0; i < 3; i++)
		t.signals->signals[i].type = SIGNAL_FLOAT;
	m = make_format("{ \"type\": \"villas.human\" }", t.signals);
	s = t.out[0];
	/* With exponent, as printf("%+e") writes an offset. */
	assert_int_equal(scan_text(m.format,
		"1637846259.201578969+1.070000e-07(5)F\t1.00000000000000000\t-2\t.5\r\n", s), 1);
	assert_same_time(s->origin, (struct timespec){ 1637846259, 201578969 });
	assert_same_time(s->received, (struct timespec){ 1637846259, 201579076 });
	assert_int_equal(s->sequence, 5);
	assert_true(s->flags & SAMPLE_NEW_FRAME);
	assert_int_equal(s->length, 3);
	assert_true(s->data[0].f == 1.0 && s->data[1].f == -2.0 && s->data[2].f == 0.5);
	/* The fraction is one: half a second, not five nanoseconds. */
	assert_int_equal(scan_text(m.format, "# comment\n\n1.5\t7\n", s), 1);
	assert_same_time(s->origin, (struct timespec){ 1, 500000000 });
	assert_false(s->flags & (SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_RECEIVED));
	/* An offset of days keeps its nanoseconds. */
	assert_int_equal(scan_text(m.format, "1.0+864000.000000001 7 8\n", s), 1);
	assert_same_time(s->received, (struct timespec){ 864001, 1 });
	assert_int_equal(scan_text(m.format, "100.25-0.5(1)\n", s), 1);
	assert_same_time(s->received, (struct timespec){ 99, 750000000 });
	assert_int_equal(s->length, 0);
	drop_format(&m);

	m = make_format("{ \"type\": \"csv\", \"skip_first_line\": true }", t.signals);
	assert_int_equal(scan_text(m.format,
		"secs,nsecs,offset,seq,a\n10,000000005,nan,nan,,NaN,3\n", s), 1);
	assert_same_time(s->origin, (struct timespec){ 10, 5 });
	assert_int_equal(s->length, 3);
	assert_true(isnan(s->data[0].f) && isnan(s->data[1].f) && s->data[2].f == 3);
	drop_format(&m);
	tear_down(&t);
}

static void plain_recordings_name_their_columns(void **state)
{
	static const struct {
		const char *format, *text;
		unsigned length;
		time_t sec;
		long nsec;
	} cases[] = {
		{ "{ \"type\": \"csv\", \"columns\": \"plain\" }",
		  "time_s,a,\"b,c\"\n0.000032566,1,nan\n", 2, 0, 32566 },
		{ "{ \"type\": \"csv\", \"columns\": \"plain\" }",
		  "a,Time\n1,2.5e-3\n", 1, 0, 2500000 },
		{ "{ \"type\": \"csv\", \"columns\": \"plain\", \"time_column\": \"2\" }",
		  "x,y,z\n1,2,77\n", 2, 77, 0 },
		{ "{ \"type\": \"csv\", \"columns\": \"plain\", \"time_column\": \"z\", \"time_format\": \"%d-%b-%Y %H:%M:%S\" }",
		  "x,y,z\n1,\"2\",28-Apr-2025 11:00:02\n", 2, 1745838002, 0 },
		{ "{ \"type\": \"csv\", \"columns\": \"plain\", \"time_column\": \"0\", \"header\": false }",
		  "-1.5,2,3\n", 2, -2, 500000000 },
	};
	struct setup t;

	set_up(&t, 3);
	for (unsigned i = 0; i < 3; i++)
		t.signals->signals[i].type = SIGNAL_FLOAT;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made_format m = make_format(cases[i].format, t.signals);

		assert_int_equal(scan_text(m.format, cases[i].text, t.out[0]), 1);
		assert_int_equal(t.out[0]->length, cases[i].length);
		assert_same_time(t.out[0]->origin,
				 (struct timespec){ cases[i].sec, cases[i].nsec });
		/* The file begins anew: the names come again. */
		m.format->type->reset(m.format);
		assert_int_equal(scan_text(m.format, cases[i].text, t.out[0]), 1);
		drop_format(&m);
	}
	tear_down(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_of_all_types_read_back_bit_equal),
		cmocka_unit_test(samples_of_ten_thousand_values_read_back_bit_equal),
		cmocka_unit_test(a_full_buffer_holds_whole_lines_only),
		cmocka_unit_test(a_line_in_pieces_waits_for_its_end),
		cmocka_unit_test(headers_are_comments_for_the_reader),
		cmocka_unit_test(masked_fields_are_left_out),
		cmocka_unit_test(lines_of_other_writers_are_understood),
		cmocka_unit_test(plain_recordings_name_their_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
