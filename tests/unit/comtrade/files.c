/* SPDX-License-Identifier: BSD-2-Clause */
/* COMTRADE records as files of node `file`, and as streams of the format. */
#include "../nodes/fixture.h"

#include <math.h>
#include <poll.h>
#include <sys/stat.h>

#include "gateway/format/comtrade_file.h"
#include "util/log.h"

#define VALUES 4
#define ROWS 2500
#define START_NS INT64_C(1700000000123456789)

static struct sample *smp, *got;

static struct sample *new_sample(void)
{
	struct sample *s = calloc(1, sizeof(*s) + 64 * sizeof(s->data[0]));

	s->capacity = 64;
	return s;
}

#define SIGNALS "\"signals\": [ { \"name\": \"I, A\", \"unit\": \"kA\" }, " \
	"{ \"name\": \"trip\", \"type\": \"boolean\" }, " \
	"{ \"name\": \"count\", \"type\": \"integer\" }, { \"name\": \"U\" } ]"

static double value_of(unsigned row)
{
	return 100 * sin(row * 0.01) + 1e-9 * row;
}

static int64_t time_of(unsigned row)
{
	return START_NS + row * INT64_C(333333);
}

static void fill(struct signal_list *signals, unsigned row)
{
	int64_t ns = time_of(row);

	smp->signals = signals;
	smp->length = VALUES;
	smp->flags = SAMPLE_HAS_DATA | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_SEQUENCE;
	smp->sequence = 1000 + row;
	smp->origin = timespec_from_ns((uint64_t)ns);
	smp->data[0].f = value_of(row);
	smp->data[1].i = row / 100 % 2;
	smp->data[2].i = row;
	smp->data[3].f = row % 10 == 3 ? NAN : -value_of(row);
}

static void write_rows(struct made_node *m, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		unsigned release = 1;

		fill(m->node.out.signals, i);
		assert_int_equal(node_write(&m->node, &smp, 1, &release), 1);
	}
}

static void make_writer(struct made_node *m, const char *file, const char *options)
{
	char text[1200];

	snprintf(text, sizeof(text), "{ \"uri\": \"%s\", \"format\": { \"type\": "
		 "\"comtrade\"%s }, \"out\": { \"flush\": true, " SIGNALS " } }",
		 scratch(file), options);
	make_node(m, &node_file, text);
	assert_int_equal(m->node.type->start(&m->node), 0);
}

static void record(const char *file, const char *options)
{
	struct made_node m;

	make_writer(&m, file, options);
	write_rows(&m, 0, ROWS);
	assert_int_equal(m.node.type->stop(&m.node), 0);
	drop_node(&m);
}

static void make_reader(struct made_node *m, const char *file, const char *options)
{
	char text[600];

	snprintf(text, sizeof(text), "{ \"uri\": \"%s\", \"format\": \"comtrade\", "
		 "\"in\": { %s } }", scratch(file), options);
	make_node(m, &node_file, text);
	assert_int_equal(m->node.type->start(&m->node), 0);
}

static void stop(struct made_node *m)
{
	m->node.type->stop(&m->node);
	drop_node(m);
}

#define AT_ONCE "\"epoch_mode\": \"original\""

static bool near(double a, double b, double step)
{
	return (isnan(a) && isnan(b)) || fabs(a - b) <= step;
}

/* Analog channels come first: I, count, U, then trip. */
static void assert_row(unsigned row, double step, int64_t time_step)
{
	int64_t ns = got->origin.tv_sec * INT64_C(1000000000) + got->origin.tv_nsec;

	assert_int_equal(got->length, VALUES);
	assert_int_equal(got->sequence, row + 1);
	fill(NULL, row);
	if (!near(got->data[0].f, smp->data[0].f, step) ||
	    !near(got->data[1].f, (double)row, step) ||
	    !near(got->data[2].f, smp->data[3].f, step) ||
	    got->data[3].i != smp->data[1].i)
		fail_msg("row %u has other values", row);
	if (llabs(ns - time_of(row)) > time_step)
		fail_msg("row %u is %jd ns off", row,
			 (intmax_t)(ns - time_of(row)));
}

static void read_back(const char *file, double step, int64_t time_step)
{
	struct made_node m;
	const struct signal *s;
	unsigned rows = 0;

	make_reader(&m, file, AT_ONCE);
	assert_int_equal(m.node.in.signals->count, VALUES);
	s = m.node.in.signals->signals;
	assert_string_equal(s[0].name, "I; A");
	assert_string_equal(s[0].unit, "kA");
	assert_string_equal(s[1].name, "count");
	assert_string_equal(s[3].name, "trip");
	assert_int_equal(s[2].type, SIGNAL_FLOAT);
	assert_int_equal(s[3].type, SIGNAL_BOOLEAN);
	while (node_read_one(&m, got) == 1)
		assert_row(rows++, step, time_step);
	assert_int_equal(rows, ROWS);
	stop(&m);
}

static struct comtrade_cfg *parse_file(const char *file)
{
	static char text[8192];
	struct comtrade_error err = { 0 };
	struct comtrade_cff parts = { 0 };
	struct comtrade_cfg *c;
	FILE *in = fopen(scratch(file), "re");
	size_t len;

	assert_non_null(in);
	len = fread(text, 1, sizeof(text), in);
	fclose(in);
	if (text[0] == '-')
		assert_int_equal(comtrade_cff_find(text, len, &parts, &err), 1);
	else
		parts.cfg_end = len;
	assert_int_equal(comtrade_cfg_parse(&c, text + parts.cfg_start,
					    parts.cfg_end - parts.cfg_start, 0,
					    &err), 0);
	return c;
}

static void assert_header(const char *file, unsigned revision, double hz,
			  enum comtrade_data data)
{
	struct comtrade_cfg *c = parse_file(file);

	assert_int_equal(c->revision, revision);
	assert_int_equal(c->data, data);
	assert_int_equal(c->rates[0].end, ROWS);
	assert_true(fabs(c->rates[0].hz - hz) < 1e-9 * hz);
	assert_int_equal(c->analog[0].side, 'P');
	comtrade_cfg_free(c);
}

static void a_pair_of_floats_reads_back_equal(void **state)
{
	char name[256];

	record("pair.cfg", "");
	/* A float has 24 bits; a stamp of 32 bits counts microseconds. */
	read_back("pair.cfg", 100 * 0x1p-24 + ROWS * 0x1p-25, 500);
	/* Named by its data it is the same record. */
	read_back("pair.dat", 1e-4, 500);
	assert_header("pair.cfg", 2013, 3000.003, COMTRADE_FLOAT32);
	/* Nothing is left of the file that replaced the configuration. */
	snprintf(name, sizeof(name), "%s.new", scratch("pair.cfg"));
	assert_int_equal(access(name, F_OK), -1);
}

static void text_reads_back_to_the_same_bits_and_nanoseconds(void **state)
{
	record("text.cff", ", \"data\": \"ascii\"");
	read_back("text.cff", 0, 0);
	assert_header("text.cff", 2013, 3000.003, COMTRADE_ASCII);
}

static void single_files_hold_every_type(void **state)
{
	static const struct {
		const char *file, *options;
		double step;
		int64_t time_step;
		enum comtrade_data data;
	} kinds[] = {
		{ "f.cff", "", 1e-4, 500, COMTRADE_FLOAT32 },
		{ "b.CFF", ", \"data\": \"binary32\", \"min\": -3000, \"max\": 3000, "
			   "\"resolution\": \"ns\"", 1e-6, 0, COMTRADE_BINARY32 },
		{ "s.cff", ", \"data\": \"binary\", \"min\": [-101, 0, -101], "
			   "\"max\": [101, 2500, 101]", 1250 / 65534. * 1.001, 500,
		  COMTRADE_BINARY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		record(kinds[i].file, kinds[i].options);
		read_back(kinds[i].file, kinds[i].step, kinds[i].time_step);
		assert_header(kinds[i].file, 2013, 3000.003, kinds[i].data);
	}
}

static void revision_1999_has_integers_and_microseconds(void **state)
{
	struct comtrade_cfg *c;

	record("old.cfg", ", \"revision\": 1999, \"min\": -3000, \"max\": 3000, "
	       "\"station\": \"M\xc3\xbcnchen\", \"line_frequency\": 60");
	read_back("old.cfg", 3000 / 65534. * 1.001, 1500);
	c = parse_file("old.cfg");
	assert_string_equal(c->station, "M\xc3\xbcnchen");
	assert_true(c->line_hz == 60 && !c->has_zone);
	comtrade_cfg_free(c);
}

static void names_in_capitals_are_found(void **state)
{
	char from[256];

	record("caps.cfg", "");
	snprintf(from, sizeof(from), "%s", scratch("caps.cfg"));
	assert_int_equal(rename(from, scratch("CAPS.CFG")), 0);
	snprintf(from, sizeof(from), "%s", scratch("caps.dat"));
	assert_int_equal(rename(from, scratch("Caps.Dat")), 0);
	read_back("caps.cfg", 1e-4, 500);
	read_back("CAPS.CFG", 1e-4, 500);
}

/* Waits until the recording has a head that knows of rows. */
static unsigned wait_for_rows(const char *file)
{
	for (int i = 0; i < 500; i++) {
		struct comtrade_cfg *c;
		unsigned rows = 0;

		if (!access(scratch(file), R_OK)) {
			c = parse_file(file);
			rows = (unsigned)c->rates[0].end;
			comtrade_cfg_free(c);
		}
		if (rows)
			return rows;
		poll(NULL, 0, 10);
	}
	fail_msg("no head in '%s'", file);
	return 0;
}

static void a_recording_that_never_ends_well_can_be_read(void **state)
{
	struct made_node writer, reader;
	unsigned told, rows = 0;

	make_writer(&writer, "killed.cfg", "");
	write_rows(&writer, 0, 100);
	told = wait_for_rows("killed.cfg");
	assert_true(told <= 100);
	/* The writer was not stopped: as if its process had been killed. */
	make_reader(&reader, "killed.cfg", AT_ONCE);
	while (node_read_one(&reader, got) == 1)
		assert_row(rows++, 1e-4, 500);
	assert_true(rows >= told);
	stop(&reader);
	stop(&writer);
}

static char told[2000];

static bool keep_line(enum log_level level, const char *line)
{
	strncat(told, line, sizeof(told) - 1 - strlen(told));
	return true;
}

static void expect_cut(const char *file, const char *data, unsigned lacks)
{
	struct made_node m;
	struct stat st;
	unsigned rows = 0;
	char wanted[100];

	record(file, ", \"data\": \"float32\"");
	assert_int_equal(stat(scratch(data), &st), 0);
	assert_int_equal(truncate(scratch(data), st.st_size - lacks), 0);
	told[0] = '\0';
	log_set_sink(keep_line);
	make_reader(&m, file, AT_ONCE);
	while (node_read_one(&m, got) == 1)
		assert_row(rows++, 1e-4, 500);
	stop(&m);
	log_set_sink(NULL);
	assert_int_equal(rows, ROWS - 1);
	/* 8 bytes, 3 analog channels, 16 digital ones. */
	snprintf(wanted, sizeof(wanted), "%s: the file ends within a sample: its last %u bytes",
		 data, 22 - lacks);
	if (!strstr(told, wanted))
		fail_msg("'%s' is not in '%s'", wanted, told);
}

static void a_row_that_is_cut_is_told(void **state)
{
	expect_cut("cut.cfg", "cut.dat", 1);
	expect_cut("shorter.cfg", "shorter.dat", 21);
	expect_cut("cut.cff", "cut.cff", 1);
	expect_cut("shorter.cff", "shorter.cff", 13);
}

static void put(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *name, const char *format, ...)
{
	FILE *f = fopen(scratch(name), "a");
	va_list args;

	assert_non_null(f);
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	fclose(f);
}

/* A record of 4.3 s at 1 kHz whose stamps have 16 bits, of a simulator that writes
 * revision 0 and the name of a zone. */
static void what_is_doubtful_in_a_record_is_told(void **state)
{
	static const char *const wanted[] = {
		"odd.cfg: the revision '0' is no year: dates are read day first",
		"odd.cfg: how far the record's clock is from UTC cannot be read",
		"odd.dat: row 67: its time stamp is 0.000464000 s from the start, by the rate of 1000 Hz it is 0.066000000 s",
	};
	struct made_node m;

	put("odd.cfg", "ST,DEV,0\n1,1A,0D\n1,u,,,V,1,0,0,-9,9,1,1,S\n50\n1\n1000,4300\n"
	    "02/03/2020,00:00:00.0\n02/03/2020,00:00:00.0\nASCII\n1\nCET,CET\nB,3\n");
	for (unsigned i = 0; i < 4300; i++)
		put("odd.dat", "%u,%u,5\n", i + 1, i * 1000 % 65536);
	told[0] = '\0';
	log_set_sink(keep_line);
	make_reader(&m, "odd.cfg", AT_ONCE);
	for (int64_t i = 0; i < 4300; i++) {
		assert_int_equal(node_read_one(&m, got), 1);
		assert_true((int64_t)timespec_to_ns(got->origin) ==
			    INT64_C(1583107200000000000) + i * 1000000);
	}
	stop(&m);
	log_set_sink(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!strstr(told, wanted[i]))
			fail_msg("'%s' is not in '%s'", wanted[i], told);
}

/* `change` bytes more or less, whole rows; what the end says of that. */
static void expect_length(const char *file, const char *data, const char *type,
			  off_t change, unsigned there)
{
	char wanted[100], options[40];
	struct made_node m;
	struct stat st;
	unsigned rows = 0;

	snprintf(options, sizeof(options), ", \"data\": \"%s\"", type);
	record(file, options);
	assert_int_equal(stat(scratch(data), &st), 0);
	assert_int_equal(truncate(scratch(data), st.st_size + change), 0);
	told[0] = '\0';
	log_set_sink(keep_line);
	make_reader(&m, file, AT_ONCE);
	while (node_read_one(&m, got) == 1)
		rows++;
	/* Once, however often it is asked. */
	assert_int_equal(node_read_one(&m, got), -ENODATA);
	stop(&m);
	log_set_sink(NULL);
	assert_int_equal(rows, there);
	if (there == ROWS) {
		if (strstr(told, "announces"))
			fail_msg("'%s' has all rows: '%s'", file, told);
		return;
	}
	snprintf(wanted, sizeof(wanted), "%s: the record announces %u rows, but %u are there",
		 data, ROWS, there);
	if (!strstr(told, wanted) ||
	    strstr(strstr(told, wanted) + strlen(wanted), "announces"))
		fail_msg("'%s' is not once in '%s'", wanted, told);
}

static void rows_that_are_missing_or_too_many_are_told(void **state)
{
	const off_t row = 22;

	expect_length("all.cfg", "all.dat", "float32", 0, ROWS);
	expect_length("fewer.cfg", "fewer.dat", "float32", -row, ROWS - 1);
	expect_length("half.cfg", "half.dat", "float32", -row * ROWS / 2,
		      ROWS / 2);
	expect_length("rowless.cfg", "rowless.dat", "float32", -row * ROWS, 0);
	/* A hole is a row of zeros. */
	expect_length("more.cfg", "more.dat", "float32", 2 * row, ROWS + 2);
	expect_length("all.cff", "all.cff", "float32", 0, ROWS);
	expect_length("fewer.cff", "fewer.cff", "float32", -row, ROWS - 1);
}

static void the_head_of_a_single_file_is_rewritten_while_it_grows(void **state)
{
	struct made_node m;
	struct comtrade_cfg *c;

	make_writer(&m, "grows.cff", "");
	write_rows(&m, 0, 10);
	for (int i = 0; i < 500; i++) {
		struct stat st;

		if (!stat(scratch("grows.cff"), &st) && st.st_size)
			break;
		poll(NULL, 0, 10);
	}
	assert_true(wait_for_rows("grows.cff") <= 10);
	write_rows(&m, 10, ROWS);
	stop(&m);
	c = parse_file("grows.cff");
	assert_int_equal(c->rates[0].end, ROWS);
	comtrade_cfg_free(c);
	read_back("grows.cff", 1e-4, 500);
}

static void what_is_there_is_not_lost_unasked(void **state)
{
	struct made_node m;
	char text[900];

	record("kept.cfg", "");
	snprintf(text, sizeof(text), "{ \"uri\": \"%s\", \"format\": \"comtrade\", "
		 "\"out\": { " SIGNALS " } }", scratch("kept.cfg"));
	make_node(&m, &node_file, text);
	assert_int_equal(m.node.type->start(&m.node), -EEXIST);
	drop_node(&m);
	read_back("kept.cfg", 1e-4, 500);
}

static void a_recording_of_nothing_has_its_channels(void **state)
{
	struct made_node m;
	struct comtrade_cfg *c;

	make_writer(&m, "empty.cfg", "");
	stop(&m);
	c = parse_file("empty.cfg");
	assert_int_equal(comtrade_cfg_values(c), VALUES);
	assert_int_equal(c->rates[0].end, 0);
	comtrade_cfg_free(c);
	make_reader(&m, "empty.cfg", AT_ONCE);
	assert_int_equal(node_read_one(&m, got), -ENODATA);
	stop(&m);
}

static void replay_rewinds_skips_and_keeps_a_rate(void **state)
{
	struct made_node m;

	record("replay.cff", "");
	make_reader(&m, "replay.cff", "\"rate\": 1e6, \"eof\": \"rewind\", "
		    "\"skip\": 2490, \"sequence\": \"new\"");
	for (unsigned i = 0; i < 25; i++) {
		assert_int_equal(node_read_one(&m, got), 1);
		assert_int_equal(got->sequence, i);
		assert_true(near(got->data[1].f, 2490 + i % 10, 0));
	}
	stop(&m);
	/* At its own pace: 300 rows last a tenth of a second. */
	make_reader(&m, "replay.cff", "\"skip\": 2200");
	uint64_t before = clock_monotonic_ns_slow();
	while (node_read_one(&m, got) == 1)
		;
	assert_true(clock_monotonic_ns_slow() - before >= 99 * 1000000);
	stop(&m);
}

static void expect_refused(const char *file, const char *options, const char *dir)
{
	struct made_node m;
	char text[900];

	snprintf(text, sizeof(text), "{ \"uri\": \"%s\", \"format\": { \"type\": "
		 "\"comtrade\"%s }, \"%s\": { } }", scratch(file), options, dir);
	assert_int_equal(try_node(&m, &node_file, text), -EINVAL);
	drop_node(&m);
}

static void settings_that_contradict_are_refused(void **state)
{
	char other[300];

	expect_refused("x.csv", "", "in");
	expect_refused("x", "", "out");
	expect_refused("x.cfg", ", \"data\": \"binary\"", "out");
	expect_refused("x.cfg", ", \"data\": \"binary32\", \"min\": 0", "out");
	expect_refused("x.cfg", ", \"revision\": 1991", "out");
	expect_refused("x.cfg", ", \"revision\": 1999, \"data\": \"float32\"",
		       "out");
	expect_refused("x.cff", ", \"revision\": 1999, \"min\": 0, \"max\": 1",
		       "out");
	expect_refused("x.cfg", ", \"revision\": 1999, \"min\": 0, \"max\": 1, "
				"\"resolution\": \"ns\"", "out");
	expect_refused("x.cfg", ", \"revision\": 2000", "in");
	expect_refused("x.cfg", ", \"min\": \"a\"", "in");
	expect_refused("x.cfg", ", \"primary\": 3", "in");
	expect_refused("x.cfg", ", \"time_zone\": \"Berlin\"", "in");
	expect_refused("x.cfg", ", \"time_quality\": \"G\"", "out");
	/* Its own data under the other name. */
	snprintf(other, sizeof(other), " }, \"out\": { \"uri\": \"%s\"",
		 scratch("x.dat"));
	expect_refused("x.cfg", other, "in");
}

static void a_bad_configuration_stops_the_start(void **state)
{
	struct made_node m;
	char text[600];
	FILE *out = fopen(scratch("bad.cfg"), "we");

	fputs("S,D,1999\n1,1A,0D\n1,x,,,,one,0\n50\n1\n1,1\n,\n,\nASCII\n1\n", out);
	fclose(out);
	snprintf(text, sizeof(text), "{ \"uri\": \"%s\", \"format\": \"comtrade\", "
		 "\"in\": { } }", scratch("bad.cfg"));
	make_node(&m, &node_file, text);
	assert_null(m.node.in.signals);
	assert_int_equal(m.node.type->start(&m.node), -EBADMSG);
	drop_node(&m);
	snprintf(text, sizeof(text), "{ \"uri\": \"%s\", \"format\": \"comtrade\", "
		 "\"in\": { } }", scratch("none.cfg"));
	make_node(&m, &node_file, text);
	assert_int_equal(m.node.type->start(&m.node), -ENOENT);
	drop_node(&m);
}

static struct format *new_format(const char *options, struct config **c)
{
	struct format *f;
	char text[300];

	snprintf(text, sizeof(text), "{ \"type\": \"comtrade\"%s }", options);
	assert_int_equal(config_load_text("test", text, strlen(text), c), 0);
	assert_int_equal(format_new(&f, *c, config_root(*c), NULL, NULL), 0);
	return f;
}

/* What a tool prints to a pipe, another one reads in whatever pieces. */
static void check_stream(const char *options, size_t piece, int64_t time_step)
{
	static char stream[400000];
	struct signal_list *l = signal_list_new(VALUES, SIGNAL_FLOAT);
	struct config *c[2];
	struct format *f = new_format(options, &c[0]), *g = new_format("", &c[1]);
	size_t len = 0, used, at = 0, have = 0;
	unsigned rows = 0;
	int n;

	l->signals[1].type = SIGNAL_BOOLEAN;
	l->signals[2].type = SIGNAL_INTEGER;
	for (unsigned i = 0; i < ROWS; i++) {
		fill(l, i);
		/* Too small a buffer changes nothing. */
		assert_int_equal(f->type->print(f, stream + len, 10, &used, &smp, 1),
				 0);
		assert_int_equal(used, 0);
		assert_int_equal(f->type->print(f, stream + len,
						sizeof(stream) - len, &used, &smp,
						1), 1);
		len += used;
	}
	while (rows < ROWS) {
		n = g->type->scan(g, stream + at, have - at, &used, &got, 1);
		assert_true(n >= 0);
		at += used;
		if (n == 1) {
			assert_row(rows++, 1e-4, time_step);
		} else {
			assert_true(have < len);
			have = MIN(have + piece, len);
		}
	}
	assert_int_equal(at, len);
	/* A reader without signals of its own has the record's now. */
	assert_int_equal(g->signals->count, VALUES);
	assert_int_equal(g->signals->signals[3].type, SIGNAL_BOOLEAN);
	for (int i = 0; i < 2; i++) {
		format_destroy(i ? g : f);
		config_destroy(c[i]);
	}
	signal_list_put(l);
}

static void streams_hold_single_files(void **state)
{
	check_stream("", sizeof(int), 0);
	check_stream("", 100000, 0);
	check_stream(", \"data\": \"float32\"", 7, 500);
	check_stream(", \"data\": \"float32\"", 100000, 500);
}

static void types_of_the_configuration_are_obeyed(void **state)
{
	struct made_node m;
	char text[600];

	record("types.cff", "");
	snprintf(text, sizeof(text), "{ \"uri\": \"%s\", \"format\": \"comtrade\", "
		 "\"in\": { " AT_ONCE ", \"signals\": \"1f1i1c1f\" } }",
		 scratch("types.cff"));
	make_node(&m, &node_file, text);
	assert_int_equal(m.node.type->start(&m.node), 0);
	for (unsigned i = 0; i < 150; i++)
		assert_int_equal(node_read_one(&m, got), 1);
	assert_int_equal(got->data[1].i, 149);
	assert_true(got->data[2].z.im == 0 && got->data[3].f == 1.0);
	stop(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pair_of_floats_reads_back_equal),
		cmocka_unit_test(text_reads_back_to_the_same_bits_and_nanoseconds),
		cmocka_unit_test(single_files_hold_every_type),
		cmocka_unit_test(revision_1999_has_integers_and_microseconds),
		cmocka_unit_test(names_in_capitals_are_found),
		cmocka_unit_test(a_recording_that_never_ends_well_can_be_read),
		cmocka_unit_test(a_row_that_is_cut_is_told),
		cmocka_unit_test(what_is_doubtful_in_a_record_is_told),
		cmocka_unit_test(rows_that_are_missing_or_too_many_are_told),
		cmocka_unit_test(the_head_of_a_single_file_is_rewritten_while_it_grows),
		cmocka_unit_test(what_is_there_is_not_lost_unasked),
		cmocka_unit_test(a_recording_of_nothing_has_its_channels),
		cmocka_unit_test(replay_rewinds_skips_and_keeps_a_rate),
		cmocka_unit_test(settings_that_contradict_are_refused),
		cmocka_unit_test(a_bad_configuration_stops_the_start),
		cmocka_unit_test(streams_hold_single_files),
		cmocka_unit_test(types_of_the_configuration_are_obeyed),
	};
	int failed;

	smp = new_sample();
	got = new_sample();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	clear_scratch();
	free(smp);
	free(got);
	return failed ? 1 : 0;
}
