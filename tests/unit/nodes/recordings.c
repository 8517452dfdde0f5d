/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replays real recordings, which are not part of the tree, and compares every
 * channel with known numbers (golden.json beside them). Their folder is the
 * first argument; skipped when it is not there.
 */
#include "fixture.h"

#include <jansson.h>
#include <math.h>

static struct pool pool;
static struct sample *smp;
static const char *folder;

struct channel {
	double min, max, sum, first, last;
	unsigned count, nan;
};

static void take(struct channel *c, double v)
{
	if (isnan(v)) {
		c->nan++;
		return;
	}
	if (!c->count || v < c->min)
		c->min = v;
	if (!c->count || v > c->max)
		c->max = v;
	if (!c->count)
		c->first = v;
	c->last = v;
	c->sum += v;
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

static void check_recording(const char *name, const char *format)
{
	struct channel channels[32] = { 0 };
	const json_t *golden, *values, *columns;
	char path[600];
	struct made_node m;
	unsigned rows = 0, k = 0;
	json_t *all;

	snprintf(path, sizeof(path), "%s/golden.json", folder);
	all = json_load_file(path, 0, NULL);
	assert_non_null(all);
	golden = json_object_get(json_object_get(all, "csv"), name);
	assert_non_null(golden);
	values = json_object_get(golden, "values");
	columns = json_object_get(golden, "columns");

	snprintf(path, sizeof(path), "{ \"uri\": \"%s/%s\", \"format\": %s, "
		 "\"in\": { \"epoch_mode\": \"original\" } }", folder, name, format);
	make_node(&m, &node_file, path);
	assert_int_equal(m.node.type->start(&m.node), 0);
	while (node_read_one(&m, smp) == 1) {
		assert_true(smp->flags & SAMPLE_HAS_ORIGIN);
		assert_int_equal(smp->sequence, rows);
		assert_int_equal(smp->length, json_array_size(columns) - 1);
		for (unsigned i = 0; i < smp->length; i++)
			take(&channels[i], smp->data[i].f);
		rows++;
	}
	assert_int_equal(rows, json_integer_value(json_object_get(golden, "rows")));
	for (size_t i = 0; i < json_array_size(columns); i++) {
		const char *column = json_string_value(json_array_get(columns, i));
		const json_t *g = json_object_get(values, column);

		if (!g) /* the time */
			continue;
		/* The signals have the names of the columns. */
		assert_string_equal(m.node.in.signals->signals[k].name, column);
		assert_number(column, g, "min", channels[k].min);
		assert_number(column, g, "max", channels[k].max);
		assert_number(column, g, "mean", channels[k].sum / channels[k].count);
		assert_number(column, g, "first", channels[k].first);
		assert_number(column, g, "last", channels[k].last);
		assert_number(column, g, "nan", channels[k].nan);
		k++;
	}
	assert_int_equal(k, m.node.in.signals->count);
	m.node.type->stop(&m.node);
	drop_node(&m);
	json_decref(all);
}

#define PLAIN "{ \"type\": \"csv\", \"columns\": \"plain\" }"

static void the_waveform_of_a_power_quality_meter(void **state)
{
	check_recording("waveform/keating_ion7650_30k7.csv", PLAIN);
	/* The last sample was at 0.066661795 s. */
	assert_int_equal(smp->origin.tv_sec, 0);
	assert_int_equal(smp->origin.tv_nsec, 66661795);
}

static void a_frequency_event_at_thirty_frames(void **state)
{
	check_recording("frequency/gmlc_frequency_event_30fps.csv", PLAIN);
	assert_int_equal(smp->origin.tv_sec, 149);
	assert_int_equal(smp->origin.tv_nsec, 970000000);
}

static void a_blackout_with_missing_values_and_dates(void **state)
{
	check_recording("frequency/iberia_blackout_2025_toledo_2s.csv",
			"{ \"type\": \"csv\", \"columns\": \"plain\", "
			"\"time_format\": \"%d-%b-%Y %H:%M:%S\" }");
	/* 28 April 2025, 12:59:58, taken as UTC. */
	assert_int_equal(smp->origin.tv_sec, 1745845198);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_waveform_of_a_power_quality_meter),
		cmocka_unit_test(a_frequency_event_at_thirty_frames),
		cmocka_unit_test(a_blackout_with_missing_values_and_dates),
	};
	int failed;

	folder = getenv("BUSBAR_TEST_DATA") ? getenv("BUSBAR_TEST_DATA") : argv[1];
	if (!folder || access(folder, R_OK)) {
		fprintf(stderr, "no recordings in '%s': skipped\n",
			folder ? folder : "");
		return 77;
	}
	if (pool_init(&pool, 1, 64, &memory_heap))
		return 1;
	smp = sample_alloc(&pool);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	sample_put(smp);
	pool_destroy(&pool);
	return failed ? 1 : 0;
}
