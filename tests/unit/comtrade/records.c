/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads real COMTRADE records, which are not part of the tree, and compares
 * every channel with known numbers (golden.json beside them). Their folder is
 * the first argument; skipped when it is not there.
 */
#include "../nodes/fixture.h"

#include <jansson.h>
#include <math.h>

#include "gateway/comtrade/comtrade.h"

static const char *folder;
static json_t *all;

struct channel {
	double min, max, squares, first, last;
	unsigned count, missing;
	/* Of digital ones. */
	int64_t initial, now;
	unsigned toggles;
	uint64_t first_toggle;
};

static void take_analog(struct channel *c, double v)
{
	if (isnan(v)) {
		c->missing++;
		return;
	}
	if (!c->count || v < c->min)
		c->min = v;
	if (!c->count || v > c->max)
		c->max = v;
	if (!c->count)
		c->first = v;
	c->last = v;
	c->squares += v * v;
	c->count++;
}

static void take_digital(struct channel *c, int64_t v, uint64_t n)
{
	assert_true(v == 0 || v == 1);
	if (!c->count)
		c->initial = c->now = v;
	if (v != c->now && !c->toggles++)
		c->first_toggle = n;
	c->now = v;
	c->count++;
}

static void assert_number(const char *what, const json_t *golden,
			  const char *key, double v)
{
	double expected = json_number_value(json_object_get(golden, key));

	/* The table has nine digits. */
	if (!(fabs(v - expected) <= 1e-8 * fabs(expected) + 1e-12))
		fail_msg("%s: %s is %.12g, not %.12g", what, key, v, expected);
}

static void assert_text(const char *what, const json_t *golden, const char *key,
			const char *text)
{
	const char *expected = json_string_value(json_object_get(golden, key));

	if (expected && strcmp(text, expected))
		fail_msg("%s: %s is '%s', not '%s'", what, key, text, expected);
}

static char *load(const char *name, size_t *len)
{
	char path[600];
	char *buf = malloc(2 << 20);
	FILE *in;

	snprintf(path, sizeof(path), "%s/comtrade/%s", folder, name);
	in = fopen(path, "re");
	assert_non_null(in);
	assert_non_null(buf);
	*len = fread(buf, 1, 2 << 20, in);
	fclose(in);
	/* Some forget the end of the last line. */
	if (strstr(path, ".dat") && memchr(" ,0123456789", buf[*len - 1], 12) &&
	    buf[1] == ',')
		buf[(*len)++] = '\n';
	return buf;
}

/* As the record writes it: with two digits of the year in 1991. */
static void assert_time(const char *name, const json_t *golden, const char *key,
			const struct comtrade_cfg *c, const struct comtrade_time *t)
{
	char text[40], other[40];

	comtrade_time_print(text, t);
	if (c->revision == 1991) {
		snprintf(other, sizeof(other), "%.2s/%.2s/%s", text + 3, text,
			 text + 8);
		strcpy(text, other);
	}
	assert_text(name, golden, key, text);
}

static void check_configuration(const char *name, const struct comtrade_cfg *c,
				const json_t *g)
{
	const struct comtrade_rate *last = &c->rates[c->rate_count - 1];

	assert_number(name, g, "revision", c->revision);
	assert_number(name, g, "line_frequency_hz", c->line_hz);
	assert_text(name, g, "file_type", comtrade_data_name(c->data));
	assert_number(name, g, "analog", c->analog_count);
	assert_number(name, g, "digital", c->digital_count);
	assert_number(name, g, "rates", c->rate_count);
	assert_number(name, g, "first_rate_hz", c->rates[0].hz);
	assert_number(name, g, "last_endsamp", (double)last->end);
	if (json_is_number(json_object_get(g, "time_multiplier")))
		assert_number(name, g, "time_multiplier", c->time_multiplier);
	assert_time(name, g, "start", c, &c->start);
	assert_time(name, g, "trigger", c, &c->trigger);
}

static void check_channels(const char *name, const struct comtrade_cfg *c,
			   const json_t *g, const struct channel *channels)
{
	const json_t *list = json_object_get(g, "analog_channels");
	const json_t *item;
	unsigned changing = 0;
	char what[100];
	size_t i;

	assert_int_equal(json_array_size(list), c->analog_count);
	json_array_foreach(list, i, item) {
		const struct channel *k = &channels[i];

		snprintf(what, sizeof(what), "%s A%zu", name, i + 1);
		assert_text(what, item, "id", c->analog[i].name);
		assert_text(what, item, "unit", c->analog[i].unit);
		assert_number(what, item, "missing", k->missing);
		assert_number(what, item, "min", k->min);
		assert_number(what, item, "max", k->max);
		assert_number(what, item, "rms", sqrt(k->squares / k->count));
		assert_number(what, item, "first", k->first);
		assert_number(what, item, "last", k->last);
	}
	list = json_object_get(g, "digital_channels_not_constant_zero");
	json_array_foreach(list, i, item) {
		size_t index = (size_t)json_integer_value(
			json_object_get(item, "index"));
		const struct channel *k = &channels[c->analog_count + index - 1];

		snprintf(what, sizeof(what), "%s D%zu", name, index);
		assert_text(what, item, "id", c->digital[index - 1].name);
		assert_number(what, item, "initial", (double)k->initial);
		assert_number(what, item, "toggles", k->toggles);
		if (k->toggles)
			assert_number(what, item, "first_toggle_n",
				      (double)k->first_toggle);
	}
	for (unsigned k = c->analog_count; k < comtrade_cfg_values(c); k++)
		changing += channels[k].toggles || channels[k].initial;
	assert_int_equal(changing, json_array_size(list));
}

static void check_row(const char *name, const json_t *g, const char *prefix,
		      const struct comtrade_row *row)
{
	char key[40];
	const json_t *stamp;

	snprintf(key, sizeof(key), "%s_timestamp", prefix);
	stamp = json_object_get(g, key);
	assert_int_equal(row->has_stamp, json_is_number(stamp));
	if (row->has_stamp)
		assert_number(name, g, key, (double)row->stamp);
	snprintf(key, sizeof(key), "%s_n", prefix);
	if (json_object_get(g, key))
		assert_number(name, g, key, (double)row->number);
}

/* Decodes the data in pieces, as they come from a file. */
static void check_data(const char *name, const struct comtrade_cfg *c,
		       const char *at, size_t len, const json_t *g)
{
	unsigned count = comtrade_cfg_values(c);
	struct channel *channels = calloc(count, sizeof(*channels));
	union signal_data *values = calloc(count, sizeof(*values));
	struct comtrade_error err;
	struct comtrade_row row = { 0 }, last = { 0 };
	unsigned rows = 0;
	size_t used;
	int ret;

	while ((ret = comtrade_row_decode(c, at, len, &used, &row, values,
					  &err)) != 0 && ret != -ENODATA) {
		if (ret < 0)
			fail_msg("%s: row %u: %s", name, rows + 1, err.text);
		for (unsigned i = 0; i < c->analog_count; i++)
			take_analog(&channels[i], values[i].f);
		for (unsigned i = c->analog_count; i < count; i++)
			take_digital(&channels[i], values[i].i, row.number);
		at += used;
		len -= used;
		if (rows < 2)
			check_row(name, g, rows ? "second" : "first", &row);
		last = row;
		rows++;
	}
	/* Nothing is left over but the end mark. */
	assert_true(len == 0 || *at == 0x1a);
	assert_number(name, g, "rows", rows);
	check_row(name, g, "last", &last);
	check_channels(name, c, g, channels);
	free(values);
	free(channels);
}

static void check_pair(const char *name, const char *cfg, const char *dat)
{
	const json_t *g = json_object_get(json_object_get(all, "comtrade"), name);
	struct comtrade_error err = { 0 };
	struct comtrade_cfg *c;
	char *text, *data;
	size_t len, dat_len;

	assert_non_null(g);
	text = load(cfg, &len);
	data = load(dat, &dat_len);
	if (comtrade_cfg_parse(&c, text, len, 0, &err))
		fail_msg("%s:%u: %s", cfg, err.line, err.text);
	check_configuration(name, c, g);
	check_data(name, c, data, dat_len, g);
	comtrade_cfg_free(c);
	free(data);
	free(text);
}

static void check_single(const char *name, const char *file)
{
	const json_t *g = json_object_get(json_object_get(all, "comtrade"), name);
	struct comtrade_error err = { 0 };
	struct comtrade_cff parts;
	struct comtrade_cfg *c;
	size_t len;
	char *text = load(file, &len);

	assert_non_null(g);
	assert_int_equal(comtrade_cff_find(text, len, &parts, &err), 1);
	assert_int_equal(comtrade_cfg_parse(&c, text + parts.cfg_start,
					    parts.cfg_end - parts.cfg_start, 0,
					    &err), 0);
	if (parts.has_size)
		assert_int_equal(parts.dat_size, len - parts.dat_start);
	check_configuration(name, c, g);
	check_data(name, c, text + parts.dat_start, len - parts.dat_start, g);
	comtrade_cfg_free(c);
	free(text);
}

static void every_pair_has_the_known_values(void **state)
{
	static const char *const names[] = {
		"strathmore_275kv_fault", "c60_330kv_breaker",
		"keating_ion7650_30k7", "ret670_transformer_open",
		"earthfault_varrate_ascii", "sepam_s40_3kv", "ritm_vc4_binary32",
		"psl603_readout_segments", "psl603ua_1991_demotest",
		"sirius2l_1991_steady", "pc_bin_1999", "pc_iso8859_1_ascii",
		"pc_iso8859_1_bin", "pc_ascii_2013",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char cfg[100], dat[100];

		snprintf(cfg, sizeof(cfg), "%s.cfg", names[i]);
		snprintf(dat, sizeof(dat), "%s.dat", names[i]);
		check_pair(names[i], cfg, dat);
	}
}

static void missing_values_are_left_out(void **state)
{
	check_pair("pc_ascii_2013_missing", "pc_ascii_2013.cfg",
		   "pc_ascii_2013_missing.dat");
	check_pair("pc_bin_1999_missing", "pc_bin_1999.cfg",
		   "pc_bin_1999_missing.dat");
}

static void end_marks_behind_the_configuration_do_no_harm(void **state)
{
	check_pair("pc_ascii_2013", "pc_ascii_2013_sub_char.cfg",
		   "pc_ascii_2013.dat");
}

static void single_files_have_the_known_values(void **state)
{
	check_single("pc_ascii_2013.cff", "pc_ascii_2013.cff");
	check_single("pc_float32_2013", "pc_float32_2013.cff");
	check_single("ghbz_220kv_nonstandard", "ghbz_220kv_nonstandard.cff");
}

/* Through the node: time of the first, the second and the last sample. */
static void check_times(const char *file, const char *options, unsigned rows,
			uint64_t number, int64_t first, int64_t second,
			int64_t last)
{
	char text[900];
	struct made_node m;
	struct sample *s = calloc(1, sizeof(*s) + 400 * sizeof(s->data[0]));
	int64_t ns, expected;
	unsigned count = 0;

	s->capacity = 400;
	snprintf(text, sizeof(text), "{ \"uri\": \"%s/comtrade/%s\", \"format\": "
		 "{ \"type\": \"comtrade\"%s }, \"in\": { \"epoch_mode\": \"original\" } }",
		 folder, file, options);
	make_node(&m, &node_file, text);
	assert_non_null(m.node.in.signals);
	assert_int_equal(m.node.type->start(&m.node), 0);
	while (node_read_one(&m, s) == 1) {
		assert_true(s->flags & SAMPLE_HAS_ORIGIN);
		assert_int_equal(s->length, m.node.in.signals->count);
		assert_int_equal(s->sequence, number + count);
		ns = s->origin.tv_sec * INT64_C(1000000000) + s->origin.tv_nsec;
		count++;
		expected = count == 1 ? first : count == 2 ? second : last;
		if ((count <= 2 || count == rows) && ns != expected)
			fail_msg("%s: row %u is at %jd, not %jd", file, count,
				 (intmax_t)ns, (intmax_t)expected);
	}
	assert_int_equal(count, rows);
	m.node.type->stop(&m.node);
	drop_node(&m);
	free(s);
}

#define NS INT64_C(1000000000)

static void times_are_start_plus_stamp_without_rounding(void **state)
{
	const int64_t breaker = INT64_C(1333694579) * NS + 391076000;

	check_times("c60_330kv_breaker.cfg", "", 1360, 1, breaker,
		    breaker + 1249000, breaker + 1698295000);
}

static void stamps_in_nanoseconds_wrap_and_go_on(void **state)
{
	/* 27 July 2023 09:19:53.156666511, nine hours ahead of UTC. */
	const int64_t start = INT64_C(1690449593) * NS + 156666511 - 32400 * NS;

	check_times("ret670_transformer_open.cfg", "", 7200, 1, start,
		    start + 833333,
		    start + INT64_C(4294967296) + INT64_C(1704196971));
	/* The zone of the record can be overruled. */
	check_times("ret670_transformer_open.cfg", ", \"time_zone\": \"0\"", 7200,
		    1, start + 32400 * NS, start + 32400 * NS + 833333,
		    start + 32400 * NS + INT64_C(4294967296) +
			    INT64_C(1704196971));
}

static void rates_tell_the_time_where_stamps_are_missing(void **state)
{
	const int64_t sepam = INT64_C(1417676508) * NS + 813000000;
	const int64_t keating = INT64_C(1447824783) * NS + 765333000;

	/* One row more than the rates know. */
	check_times("sepam_s40_3kv.CFG", "", 2400, 1, sepam, sepam + 1666667,
		    sepam + 3998333333);
	check_times("keating_ion7650_30k7.cfg", "", 2048, 1, keating,
		    keating + 32566, keating + 66661795);
}

static void rates_tell_the_time_where_stamps_make_no_sense(void **state)
{
	const int64_t zeros = INT64_C(1483803341) * NS + 958268000;
	const int64_t tens = INT64_C(1613583432) * NS + 422969065;

	check_times("pc_bin_1999.cfg", "", 5, 1, zeros, zeros + 65104,
		    zeros + 260417);
	check_times("pc_float32_2013.cff", "", 301, 1, tens, tens + 10000000,
		    tens + 3000000000);
	/* The user may choose the stamps instead. */
	check_times("pc_bin_1999.cfg", ", \"time\": \"stamps\"", 5, 1, zeros,
		    zeros, zeros);
}

static void gaps_and_jumps_of_the_clock_are_kept(void **state)
{
	const int64_t start = INT64_C(1356370248) * NS + 384000000;

	check_times("psl603_readout_segments.cfg", "", 950, 1, start,
		    start + 1000000, start + 17241000000);
	/* The rates alone know nothing of the gaps. */
	check_times("psl603_readout_segments.cfg", ", \"time\": \"rate\"", 950, 1,
		    start, start + 1000000, start + 949000000);
}

static void stamps_may_count_from_the_trigger(void **state)
{
	/* 17 September 2015: months come first in 1991. */
	const int64_t start = INT64_C(1442487172) * NS + 987545000;
	const int64_t trigger = start + 77500000;

	check_times("psl603ua_1991_demotest.cfg", "", 2131, 1, start - 77500000,
		    start - 76666000, start + 17258333000);
	check_times("psl603ua_1991_demotest.cfg", ", \"zero\": \"trigger\"", 2131,
		    1, start, start + 834000, trigger + 17258333000);
	check_times("psl603ua_1991_demotest.cfg", ", \"zero\": \"first\"", 2131, 1,
		    start, start + 834000, trigger + 17258333000);
}

static void rates_that_vary_are_followed(void **state)
{
	const int64_t start = INT64_C(1495699996) * NS + 587000000;

	check_times("earthfault_varrate_ascii.dat", "", 5316, 1, start,
		    start + 416000, start + 2209084000);
	/* 83 rates of about 2400 Hz, 48 rows each. */
	check_times("earthfault_varrate_ascii.dat", ", \"time\": \"rate\"", 5316,
		    1, start, start + 416405, start + 2211419876);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_has_the_known_values),
		cmocka_unit_test(missing_values_are_left_out),
		cmocka_unit_test(end_marks_behind_the_configuration_do_no_harm),
		cmocka_unit_test(single_files_have_the_known_values),
		cmocka_unit_test(times_are_start_plus_stamp_without_rounding),
		cmocka_unit_test(stamps_in_nanoseconds_wrap_and_go_on),
		cmocka_unit_test(rates_tell_the_time_where_stamps_are_missing),
		cmocka_unit_test(rates_tell_the_time_where_stamps_make_no_sense),
		cmocka_unit_test(gaps_and_jumps_of_the_clock_are_kept),
		cmocka_unit_test(stamps_may_count_from_the_trigger),
		cmocka_unit_test(rates_that_vary_are_followed),
	};
	char path[600];
	int failed;

	folder = getenv("BUSBAR_TEST_DATA") ? getenv("BUSBAR_TEST_DATA") : argv[1];
	if (!folder || access(folder, R_OK)) {
		fprintf(stderr, "no recordings in '%s': skipped\n",
			folder ? folder : "");
		return 77;
	}
	snprintf(path, sizeof(path), "%s/golden.json", folder);
	all = json_load_file(path, 0, NULL);
	if (!all)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	json_decref(all);
	return failed ? 1 : 0;
}
