/* SPDX-License-Identifier: BSD-2-Clause */
/* What shapes say of runs whose truth is known: rows that were made, with a delay put in, steps
 * left out or a generator held up, on machines that were calm or not. */
#include "bench/result/shapes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/result/verdicts.h"
#include "util/prng.h"

#define ROWS 4000
#define RUNS 12
#define CASES_MAX 8
/* In the list of shapes. */
enum { BUSY = 0, GAPS = 1, MTU = 7, TIMERS = 13, DEPTH = 14, COUNTS = 15 };

struct run {
	struct result_read cases[CASES_MAX];
	size_t count;
	json_t *disturbance;
};

static double uniform(struct prng *p)
{
	return ((double)(prng_next(p) >> 11) + 0.5) * 0x1p-53;
}

static struct result_read *add(struct run *r, const char *id, const char *scenario,
			       json_t *parameters)
{
	struct result_read *c = &r->cases[r->count++];

	assert_true(r->count <= CASES_MAX);
	c->id = strdup(id);
	c->description = json_pack("{s:s, s:o}", "scenario", scenario, "parameters", parameters);
	c->summary = json_pack("{s:{}, s:{}}", "latencies", "figures");
	c->header = calloc(2, sizeof(*c->header));
	c->values = calloc(2, sizeof(*c->values));
	assert_non_null(c->description);
	assert_non_null(c->summary);
	return c;
}

static int64_t *column(struct result_read *c, const char *name)
{
	int64_t *values = calloc(ROWS, sizeof(*values));

	assert_non_null(values);
	strcpy(c->header[c->columns].name, name);
	c->values[c->columns++] = values;
	c->rows = ROWS;
	return values;
}

/* A latency around `ns`, with 20 % of noise in runs of 40 that are late together. `held_ns`: one
 * row in a thousand is longer by that. */
static void latency(struct result_read *c, const char *name, double ns, double held_ns,
		    uint64_t seed)
{
	struct prng prng = prng_from(seed);
	int64_t *to, largest = 0, *from = column(c, "from");
	double late = 0;

	to = column(c, "to");
	for (int i = 0; i < ROWS; i++) {
		if (i % 40 == 0)
			late = 0.1 * ns * (uniform(&prng) - 0.5);
		from[i] = INT64_C(1000000) * i;
		to[i] = from[i] + llrint(ns + late + 0.2 * ns * (uniform(&prng) - 0.5));
		if (held_ns > 0 && i % 1000 == 999)
			to[i] += (int64_t)held_ns;
		largest = to[i] - from[i] > largest ? to[i] - from[i] : largest;
	}
	json_object_set_new(json_object_get(c->summary, "latencies"), name,
			    json_pack("{s:s, s:s, s:f, s:I}", "from", "from", "to", "to", "p50",
				      ns, "max", (json_int_t)largest));
}

/* A generator that leaves out `share` of its steps, a few one after the other. */
static void generator(struct result_read *c, double share, uint64_t seed)
{
	struct prng prng = prng_from(seed);
	int64_t *sequence = column(c, "sequence"), next = 0, missed = 0;

	for (int i = 0; i < ROWS; i++) {
		/* A pause leaves out four steps. */
		int64_t gap = uniform(&prng) < share / (1 - share) / 4 ? 4 : 0;

		missed += gap;
		next += gap;
		sequence[i] = next++;
	}
	json_object_set_new(json_object_get(c->summary, "figures"), "missed_share",
			    json_pack("{s:f}", "value", 100.0 * (double)missed / (double)next));
}

static void burst(struct run *r, const char *scenario, const char *type, double ns, uint64_t seed)
{
	char id[20];

	snprintf(id, sizeof(id), "%s_%s", scenario, type);
	latency(add(r, id, scenario, json_pack("{s:s}", "type", type)), "t_lat", ns, 0, seed);
}

static json_t *shape(const struct run *r, size_t which)
{
	json_t *all = shapes_evaluate(NULL, r->disturbance, r->cases, r->count), *one;

	assert_non_null(all);
	one = json_incref(json_array_get(all, which));
	json_decref(all);
	return one;
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void expect(const struct run *r, size_t which, const char *verdict, const char *reason)
{
	json_t *s = shape(r, which);

	assert_string_equal(text(s, "verdict"), verdict);
	if (reason && !strstr(text(s, "reason"), reason))
		fail_msg("'%s' is not in '%s'", reason, text(s, "reason"));
	json_decref(s);
}

static void drop(struct run *r)
{
	for (size_t i = 0; i < r->count; i++) {
		struct result_read *c = &r->cases[i];

		result_drop_rows(c);
		json_decref(c->description);
		json_decref(c->summary);
		free(c->id);
	}
	json_decref(r->disturbance);
	*r = (struct run){ .count = 0 };
}

static void a_delay_of_5_us_is_seen_in_each_run(void **state)
{
	for (uint64_t seed = 0; seed < RUNS; seed++) {
		struct run r = { .count = 0 };
		json_t *s, *interval;

		burst(&r, "B1", "RC", 1000, 2 * seed);
		burst(&r, "A1", "RC", 6000, 2 * seed + 1);
		s = shape(&r, BUSY);
		assert_string_equal(text(s, "verdict"), SHAPE_HOLDS);
		assert_true(json_is_true(json_object_get(s, "holds")));
		assert_true(json_is_null(json_object_get(s, "reason")));
		interval = json_object_get(s, "interval");
		assert_true(json_number_value(json_object_get(interval, "low")) > 5.5);
		assert_true(json_number_value(json_object_get(interval, "high")) < 6.5);
		json_decref(s);
		drop(&r);
		/* The other way round it does not hold. */
		burst(&r, "B1", "RC", 6000, 2 * seed);
		burst(&r, "A1", "RC", 1000, 2 * seed + 1);
		expect(&r, BUSY, SHAPE_FAILS, NULL);
		drop(&r);
	}
}

static void equal_latencies_are_never_called_faster(void **state)
{
	for (uint64_t seed = 0; seed < RUNS; seed++) {
		struct run r = { .count = 0 };

		burst(&r, "B1", "RC", 1000, 2 * seed);
		burst(&r, "A1", "RC", 1000, 2 * seed + 1);
		expect(&r, BUSY, SHAPE_OPEN, "does not tell whether it is more than 1");
		drop(&r);
	}
}

static void steps_left_out_on_purpose_are_told_apart(void **state)
{
	int decided = 0;

	for (uint64_t seed = 0; seed < RUNS; seed++) {
		struct run r = { .count = 0 };
		json_t *s;

		generator(add(&r, "N1_tsc", "N1", json_pack("{s:s}", "timer", "tsc")), 0.02,
			  2 * seed);
		generator(add(&r, "N1_timerfd", "N1", json_pack("{s:s}", "timer", "timerfd")),
			  0.2, 2 * seed + 1);
		expect(&r, TIMERS, SHAPE_HOLDS, NULL);
		drop(&r);
		generator(add(&r, "N1_tsc", "N1", json_pack("{s:s}", "timer", "tsc")), 0.05,
			  2 * seed);
		generator(add(&r, "N1_timerfd", "N1", json_pack("{s:s}", "timer", "timerfd")),
			  0.05, 2 * seed + 1);
		s = shape(&r, TIMERS);
		decided += strcmp(text(s, "verdict"), SHAPE_OPEN) != 0;
		json_decref(s);
		drop(&r);
	}
	/* Of equal shares one in a hundred is expected to be, a little more with some fifty
	 * pauses in each. */
	assert_true(decided <= 2);
}

/* One row of the shallow queue was held up and a hundred of the deep one: largest latencies of
 * which only one decides. */
static void a_single_pause_decides_nothing(void **state)
{
	struct run r = { .count = 0 };
	struct result_read *c;

	c = add(&r, "N9_receive-queue-512", "N9", json_object());
	latency(c, "from_step", 1000, 0, 1);
	c = add(&r, "N9_receive-queue-8192", "N9", json_object());
	latency(c, "from_step", 1000, 0, 2);
	c->values[1][ROWS / 2] += 500000;
	json_object_set_new(json_object_get(json_object_get(c->summary, "latencies"),
					    "from_step"), "max", json_integer(501000));
	expect(&r, DEPTH, SHAPE_OPEN, "the interval of the ratio");
	/* Held up all the time. */
	for (int i = 0; i < ROWS; i += 40)
		c->values[1][i] += 500000;
	expect(&r, DEPTH, SHAPE_HOLDS, NULL);
	drop(&r);
}

static void a_busy_machine_decides_nothing_and_says_why(void **state)
{
	struct run r = { .count = 0 };

	burst(&r, "B1", "RC", 1000, 1);
	burst(&r, "A1", "RC", 5000000, 2);
	expect(&r, BUSY, SHAPE_HOLDS, NULL);
	/* While one of both was measured. */
	json_object_set_new(r.cases[1].summary, "disturbance",
			    json_pack("{s:f, s:f}", "stolen_percent", 12.3, "others_percent",
				      0.5));
	expect(&r, BUSY, SHAPE_OPEN, "the host took the processors away for 12 % of the time "
				     "while A1_RC was measured");
	json_object_set_new(r.cases[1].summary, "disturbance",
			    json_pack("{s:f, s:f}", "stolen_percent", 0.1, "others_percent",
				      31.4));
	expect(&r, BUSY, SHAPE_OPEN, "other programs used 31 % of the processors");
	/* Of a short case only the run's shares are known. */
	json_object_set_new(r.cases[1].summary, "disturbance",
			    json_pack("{s:n, s:n}", "stolen_percent", "others_percent"));
	expect(&r, BUSY, SHAPE_HOLDS, NULL);
	r.disturbance = json_pack("{s:f}", "others_percent", 31.4);
	expect(&r, BUSY, SHAPE_OPEN, "used 31 % of the processors while the run was measured");
	json_decref(r.disturbance);
	r.disturbance = json_pack("{s:f}", "missed_percent", 41.9);
	expect(&r, BUSY, SHAPE_OPEN, "missed 41.9 % of its steps");
	drop(&r);
}

static void an_unsteady_floor_widens_the_interval(void **state)
{
	struct run r = { .count = 0 };

	burst(&r, "B1", "RC", 1000, 1);
	burst(&r, "A1", "RC", 2000, 2);
	r.disturbance = json_pack("{s:f}", "floor_ratio", 1.2);
	expect(&r, BUSY, SHAPE_HOLDS, NULL);
	json_object_set_new(r.disturbance, "floor_ratio", json_real(4));
	expect(&r, BUSY, SHAPE_OPEN, "a cache line took up to 4 times as long");
	drop(&r);
}

static void one_comparison_that_fails_is_enough(void **state)
{
	struct run r = { .count = 0 };

	burst(&r, "B1", "RC", 1000, 1);
	burst(&r, "A1", "RC", 3000, 2);
	burst(&r, "B1", "UD", 4000, 3);
	burst(&r, "A1", "UD", 3000, 4);
	expect(&r, BUSY, SHAPE_FAILS, NULL);
	drop(&r);
}

static void factors_have_intervals_too(void **state)
{
	struct run r = { .count = 0 };

	burst(&r, "B1", "RC", 1000, 1);
	burst(&r, "B2", "RC", 1200, 2);
	burst(&r, "A1", "RC", 3000, 3);
	burst(&r, "A2", "RC", 6600, 4);
	expect(&r, GAPS, SHAPE_HOLDS, NULL);
	drop(&r);
	burst(&r, "B1", "RC", 1000, 1);
	burst(&r, "B2", "RC", 1200, 2);
	burst(&r, "A1", "RC", 3000, 3);
	burst(&r, "A2", "RC", 3600, 4);
	expect(&r, GAPS, SHAPE_OPEN, NULL);
	drop(&r);
}

static void what_a_run_lacks_is_not_checked(void **state)
{
	struct run r = { .count = 0 };

	burst(&r, "B1", "RC", 1000, 1);
	expect(&r, BUSY, SHAPE_LACKS, "lacks these cases");
	/* Rows that are gone leave a ratio, and no interval. */
	burst(&r, "A1", "RC", 3000, 2);
	result_drop_rows(&r.cases[1]);
	expect(&r, BUSY, SHAPE_OPEN, "no single values");
	drop(&r);
}

/* Sizes of which the source says that they make no difference. */
static void a_single_point_shows_no_shape(void **state)
{
	struct run r = { .count = 0 };

	for (int i = 0; i < 3; i++) {
		latency(add(&r, "P2", "P2", json_pack("{s:s, s:i, s:i}", "type", "RC", "size",
						      4096, "mtu", 512 << i)),
			"t_lat", 1000 + i, 0, (uint64_t)i);
		expect(&r, MTU, i ? SHAPE_HOLDS : SHAPE_LACKS, NULL);
	}
	drop(&r);
}

static void a_count_needs_no_calm_machine(void **state)
{
	struct run r = { .count = 0 };
	struct result_read *c = add(&r, "E1", "E1-messages",
				    json_pack("{s:s, s:s, s:i}", "library", "openmpi", "call",
					      "send", "rendezvous_from", 16384));

	json_object_set_new(json_object_get(c->summary, "figures"), "wire_messages",
			    json_pack("{s:f}", "value", 1.02));
	r.disturbance = json_pack("{s:f}", "missed_percent", 80.0);
	expect(&r, COUNTS, SHAPE_HOLDS, NULL);
	drop(&r);
}

static void values_better_than_the_floor_are_marked(void **state)
{
	json_t *machine = json_pack("{s:{s:{s:f, s:f}, s:{s:f}}}", "floor", "cacheline_oneway_ns",
				    "median", 250.0, "best", 200.0, "memcpy_64k_gbs", "best",
				    6.0);
	struct run r = { .count = 0 };
	json_t *run = json_object(), *all;
	const json_t *list;

	burst(&r, "B1", "RC", 150, 1);
	burst(&r, "B1", "UC", 260, 2);
	json_object_set_new(json_object_get(r.cases[1].summary, "figures"), "bandwidth",
			    json_pack("{s:s, s:f}", "unit", "MB/s", "value", 91000.0));
	all = verdicts_of(&(struct result_folder){ NULL, run, machine, r.cases, r.count });
	list = json_object_get(all, "below_floor");
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(text(json_array_get(list, 0), "case"), "B1_RC");
	assert_string_equal(text(json_array_get(list, 0), "value_of"), "t_lat");
	assert_string_equal(text(json_array_get(list, 1), "case"), "B1_UC");
	assert_string_equal(text(json_array_get(list, 1), "floor_of"), "memcpy");
	json_decref(all);
	json_decref(run);
	json_decref(machine);
	drop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_delay_of_5_us_is_seen_in_each_run),
		cmocka_unit_test(equal_latencies_are_never_called_faster),
		cmocka_unit_test(steps_left_out_on_purpose_are_told_apart),
		cmocka_unit_test(a_single_pause_decides_nothing),
		cmocka_unit_test(a_busy_machine_decides_nothing_and_says_why),
		cmocka_unit_test(an_unsteady_floor_widens_the_interval),
		cmocka_unit_test(one_comparison_that_fails_is_enough),
		cmocka_unit_test(factors_have_intervals_too),
		cmocka_unit_test(what_a_run_lacks_is_not_checked),
		cmocka_unit_test(a_single_point_shows_no_shape),
		cmocka_unit_test(a_count_needs_no_calm_machine),
		cmocka_unit_test(values_better_than_the_floor_are_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
