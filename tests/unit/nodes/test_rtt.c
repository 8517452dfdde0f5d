/* SPDX-License-Identifier: BSD-2-Clause */
/* test_rtt: which cases there are, when they end, and what their files say. */
#include "fixture.h"

#include "gateway/node/test_rtt/cases.h"
#include "gateway/node/test_rtt/tally.h"
#include "gateway/super_node/super_node.h"

static struct pool pool;

static int set_up(void **state)
{
	return pool_init(&pool, 64, 64, &memory_heap);
}

static int tear_down(void **state)
{
	return (int)pool_destroy(&pool);
}

static int parse(const char *text, struct config **c, struct rtt_case **cases,
		 unsigned *count)
{
	struct rtt_settings common;

	assert_int_equal(config_load_text("test", text, strlen(text), c), 0);
	assert_int_equal(config_unpack_part(*c, config_root(*c), rtt_setting_keys,
					    RTT_SETTING_COUNT, &common), 0);
	return rtt_cases_parse(cases, count, *c, config_root(*c), &common);
}

static void cases_are_all_rates_with_all_values(void **state)
{
	struct rtt_case *k;
	struct config *c;
	unsigned n;

	assert_int_equal(parse("{ \"count\": 7, \"warmup\": 2, \"values\": 3, \"cases\": ["
			       "{ \"rates\": [10, 55.5], \"values\": [1, 8] },"
			       "{ \"rates\": 0.5, \"count\": 9, \"warmup\": 0, \"mode\": \"max\", \"duration\": 4 } ] }",
			       &c, &k, &n), 0);
	assert_int_equal(n, 5);
	assert_true(k[0].rate_hz == 10 && k[0].values == 1);
	assert_true(k[1].rate_hz == 10 && k[1].values == 8);
	assert_true(k[2].rate_hz == 55.5 && k[2].values == 1);
	assert_true(k[3].rate_hz == 55.5 && k[3].values == 8);
	assert_true(k[3].count == 7 && k[3].warmup_s == 2 && k[3].mode == RTT_MIN);
	/* What the case says goes first, a zero too. */
	assert_true(k[4].rate_hz == 0.5 && k[4].values == 3 && k[4].count == 9);
	assert_true(k[4].warmup_s == 0 && k[4].mode == RTT_MAX && k[4].duration_s == 4);
	free(k);
	config_destroy(c);
}

static void an_object_or_the_node_itself_is_one_entry(void **state)
{
	static const char *const texts[] = {
		"{ \"cases\": { \"rates\": [100], \"values\": [2, 4] } }",
		"{ \"rates\": 100, \"values\": [2, 4] }",
		"{ \"rates\": \"100\", \"cases\": [ { \"values\": [2, \"4\"] } ] }",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct rtt_case *k;
		struct config *c;
		unsigned n;

		assert_int_equal(parse(texts[i], &c, &k, &n), 0);
		assert_int_equal(n, 2);
		assert_true(k[1].rate_hz == 100 && k[1].values == 4);
		/* Without any limit there is the usual one. */
		assert_true(k[1].count == 1000 && k[1].duration_s == 0);
		free(k);
		config_destroy(c);
	}
}

static void wrong_settings_are_refused(void **state)
{
	static const char *const texts[] = {
		"{ }",
		"{ \"cases\": [] }",
		"{ \"cases\": [ 5 ] }",
		"{ \"cases\": 5 }",
		"{ \"cases\": { \"rates\": 5 } }",
		"{ \"cases\": { \"rates\": [], \"values\": 1 } }",
		"{ \"cases\": { \"rates\": [0], \"values\": 1 } }",
		"{ \"cases\": { \"rates\": -1, \"values\": 1 } }",
		"{ \"cases\": { \"rates\": 1, \"values\": 1.5 } }",
		"{ \"cases\": { \"rates\": 1, \"values\": 100000 } }",
		"{ \"cases\": { \"rates\": 1, \"values\": 1, \"limit\": 5, \"count\": 6 } }",
		"{ \"cases\": { \"rates\": 1, \"values\": 1, \"mode\": \"least\" } }",
		"{ \"rates\": 1, \"values\": 1, \"count\": -1 }",
		"{ \"rates\": 1, \"values\": 1, \"format\": \"cvs\" }",
		"{ \"rates\": 1, \"values\": 8, \"in\": { \"signals\": \"7f\" } }",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct made_node m;

		if (try_node(&m, &node_test_rtt, texts[i]) != -EINVAL)
			fail_msg("accepted: %s", texts[i]);
		assert_true(config_errors(m.config) > 0);
		drop_node(&m);
	}
}

static void each_mode_ends_a_case_when_it_says(void **state)
{
	static const struct {
		enum rtt_mode mode;
		uint64_t count;
		double duration;
		/* With count alone, duration alone, both, and count returned. */
		bool counted, passed, both, returned;
	} rows[] = {
		{ RTT_MIN, 10, 5, true, true, true, true },
		{ RTT_MIN, 10, 0, true, false, true, true },
		{ RTT_MIN, 0, 5, false, true, true, false },
		{ RTT_MAX, 10, 5, false, false, true, false },
		{ RTT_MAX, 10, 0, true, false, true, true },
		{ RTT_MAX, 0, 5, false, true, true, false },
		{ RTT_STOP_AFTER_COUNT, 10, 5, true, false, true, true },
		{ RTT_STOP_AFTER_DURATION, 10, 5, false, true, true, false },
		{ RTT_AT_LEAST_DURATION, 10, 5, false, true, true, false },
		{ RTT_AT_LEAST_COUNT, 10, 0, false, false, false, true },
		{ RTT_AT_LEAST_COUNT, 10, 5, false, true, true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rtt_case k = { .count = rows[i].count, .mode = rows[i].mode,
				      .duration_s = rows[i].duration };

		assert_false(rtt_case_is_over(&k, 9, 9, 4.9));
		assert_int_equal(rtt_case_is_over(&k, 10, 9, 4.9), rows[i].counted);
		assert_int_equal(rtt_case_is_over(&k, 9, 9, 5), rows[i].passed);
		assert_int_equal(rtt_case_is_over(&k, 10, 9, 5), rows[i].both);
		assert_int_equal(rtt_case_is_over(&k, 10, 10, 4.9), rows[i].returned);
	}
}

static void a_tally_tells_lost_late_repeated_and_foreign_apart(void **state)
{
	struct tally *t = aligned_alloc(CACHE_LINE, sizeof(*t));
	uint64_t took = 0;

	assert_non_null(t);
	memset(t, 0, sizeof(*t));
	tally_begin(t, 1000);
	for (uint64_t i = 0; i < 10; i++)
		tally_send(t, 5000 + i, i);
	assert_false(tally_receive(t, 999, 6000, &took));
	assert_false(tally_receive(t, 1010, 6000, &took));
	assert_int_equal(t->foreign, 2);
	assert_true(tally_receive(t, 1003, 6003, &took));
	assert_int_equal(took, 1000);
	assert_false(tally_receive(t, 1003, 6003, &took));
	assert_int_equal(t->repeated, 1);
	/* Overtaken is not lost. */
	assert_true(tally_receive(t, 1001, 7001, &took));
	assert_int_equal(took, 2000);
	assert_int_equal(tally_received(t), 2);
	for (unsigned i = 0; i < TALLY_WINDOW; i++)
		tally_send(t, 9000, 0);
	assert_false(tally_receive(t, 1005, 10000, &took));
	assert_int_equal(t->late, 1);
	assert_true(tally_receive(t, 1000 + TALLY_WINDOW, 9500, &took));
	assert_int_equal(took, 500);
	assert_int_equal(hist_percentile(&t->round_trip_ns, 100), 2000);
	/* From the planned time it took what it was late with, too. */
	assert_int_equal(t->planned_ns.count, 3);
	assert_int_equal(hist_percentile(&t->planned_ns, 100), 2001);
	assert_int_equal(t->planned_ns.sum, t->round_trip_ns.sum + 3 + 1);
	/* A new case begins with nothing. */
	tally_begin(t, 5);
	assert_int_equal(tally_sent(t) + tally_received(t) + t->late, 0);
	assert_int_equal(t->planned_ns.count, 0);
	free(t);
}

/* The object in the last line of a file, and how many samples stand before. */
static json_t *results_of(const char *path, unsigned *samples)
{
	char line[2048], last[2048] = "";
	FILE *f = fopen(path, "r");
	json_t *o;

	assert_non_null(f);
	*samples = 0;
	while (fgets(line, sizeof(line), f)) {
		*samples += line[0] != '#';
		strcpy(last, line);
	}
	fclose(f);
	assert_memory_equal(last, "# {", 3);
	o = json_loads(last + 2, 0, NULL);
	assert_non_null(o);
	return o;
}

static int64_t number(const json_t *o, const char *key)
{
	const json_t *j = json_object_get(o, key);

	assert_non_null(j);
	return json_is_boolean(j) ? json_is_true(j) :
				    (int64_t)json_number_value(j);
}

static int64_t trip(const json_t *o, const char *key)
{
	return number(json_object_get(o, "round_trip_ns"), key);
}

/* A started node that writes into a folder of the test; `keys` are the others of its
 * configuration. */
static void start_in_folder(struct made_node *m, const char *keys)
{
	char text[400];

	snprintf(text, sizeof(text), "{ \"output\": \"%s\", \"prefix\": \"p\", %s }",
		 scratch("folder"), keys);
	make_node(m, &node_test_rtt, text);
	assert_int_equal(m->node.type->start(&m->node), 0);
}

static void what_comes_back_and_what_does_not_is_in_the_file(void **state)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;
	unsigned sent = 0, lines;
	json_t *o;

	start_in_folder(&m, "\"rates\": 2000.0, \"values\": 3, \"count\": 30, "
			"\"timeout\": 0.05, \"in\": { }, \"out\": { }");
	while (node_read_one(&m, s) == 1) {
		const struct timespec pause = { .tv_nsec = 2000000 };
		unsigned release = 1;

		assert_int_equal(s->length, 3);
		assert_int_equal(s->sequence, sent);
		/* Every third is lost, every fifth comes twice, one is cut. */
		if (sent == 1)
			nanosleep(&pause, NULL);
		if (sent == 10)
			s->length = 2;
		if (sent % 3)
			node_write(&m.node, &s, 1, &release);
		if (sent % 5 == 0)
			node_write(&m.node, &s, 1, &release);
		sent++;
	}
	assert_int_equal(sent, 30);
	m.node.type->stop(&m.node);
	drop_node(&m);
	o = results_of(scratch("folder/p_values3_rate2000.log"), &lines);
	/* 0 and 15 are multiples of both and came back once. */
	assert_int_equal(lines, 21);
	/* From the planned time it is never shorter, and the pause is in the steps. */
	assert_true(number(json_object_get(o, "planned_round_trip_ns"), "p99.9") >=
		    trip(o, "p99.9"));
	assert_true(number(json_object_get(o, "planned_round_trip_ns"), "min") >=
		    trip(o, "min"));
	assert_true(number(json_object_get(o, "step_late_ns"), "max") >= 1000000);
	assert_int_equal(number(o, "sent"), 30);
	assert_int_equal(number(o, "count"), 30);
	assert_int_equal(number(o, "received"), 21);
	assert_int_equal(number(o, "lost"), 9);
	assert_int_equal(number(o, "repeated"), 3);
	assert_int_equal(number(o, "wrong_length"), 2);
	assert_int_equal(number(o, "complete"), 1);
	assert_true(trip(o, "max") >= 2000000);
	assert_true(trip(o, "min") > 0 && trip(o, "min") <= trip(o, "p50"));
	assert_true(trip(o, "p50") <= trip(o, "p99"));
	json_decref(o);
	sample_put(s);
	unlink(scratch("folder/p_values3_rate2000.log"));
	rmdir(scratch("folder"));
}

static void a_stop_keeps_the_files_of_finished_cases_whole(void **state)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;
	unsigned lines, release = 1;
	json_t *o;

	start_in_folder(&m, "\"rates\": [2000, 1000], \"values\": 1, "
			"\"count\": 10");
	for (unsigned i = 0; i < 15; i++) {
		assert_int_equal(node_read_one(&m, s), 1);
		node_write(&m.node, &s, 1, &release);
	}
	m.node.type->interrupt(&m.node);
	assert_int_equal(node_read_one(&m, s), -EINTR);
	m.node.type->stop(&m.node);
	o = results_of(scratch("folder/p_values1_rate2000.log"), &lines);
	assert_int_equal(lines, 10);
	assert_int_equal(number(o, "received"), 10);
	assert_int_equal(number(o, "complete"), 1);
	json_decref(o);
	o = results_of(scratch("folder/p_values1_rate1000.log"), &lines);
	assert_int_equal(lines, 5);
	assert_int_equal(number(o, "received"), 5);
	assert_int_equal(number(o, "id"), 1);
	assert_int_equal(number(o, "complete"), 0);
	json_decref(o);
	drop_node(&m);
	sample_put(s);
	unlink(scratch("folder/p_values1_rate2000.log"));
	unlink(scratch("folder/p_values1_rate1000.log"));
	rmdir(scratch("folder"));
}

static void a_duration_makes_the_same_number_each_time(void **state)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;
	unsigned lines, release = 1;
	json_t *o;

	start_in_folder(&m, "\"rates\": 150, \"values\": 1, \"duration\": 0.2, "
			"\"warmup\": 0.05");
	while (node_read_one(&m, s) == 1)
		node_write(&m.node, &s, 1, &release);
	m.node.type->stop(&m.node);
	drop_node(&m);
	o = results_of(scratch("folder/p_values1_rate150.log"), &lines);
	/* Those that a busy host made us miss are known; the last may be behind the end. */
	assert_in_range(number(o, "sent"), 1, 30);
	assert_in_range(number(o, "sent") + number(o, "missed"), 30, 30 + number(o, "missed"));
	assert_int_equal(number(o, "received"), number(o, "sent"));
	assert_true(number(o, "warmup_sent") > 0);
	json_decref(o);
	sample_put(s);
	unlink(scratch("folder/p_values1_rate150.log"));
	rmdir(scratch("folder"));
}

static void late_steps_are_made_up_as_far_as_the_setting_says(void **state)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	struct sample *s = sample_alloc(&pool);

	/* 2 ms are four periods. No host is late by an hour. */
	for (int hour = 0; hour < 2; hour++) {
		struct made_node m;
		unsigned lines, release = 1;
		char text[400];
		json_t *o;

		snprintf(text, sizeof(text),
			 "\"rates\": 2000, \"values\": 1, \"count\": 10, \"catch_up\": %d",
			 hour * 3600);
		start_in_folder(&m, text);
		while (node_read_one(&m, s) == 1) {
			node_write(&m.node, &s, 1, &release);
			if (s->sequence == 1)
				nanosleep(&pause, NULL);
		}
		m.node.type->stop(&m.node);
		o = results_of(scratch("folder/p_values1_rate2000.log"), &lines);
		assert_int_equal(number(o, "sent"), 10);
		if (hour) {
			assert_int_equal(number(o, "missed"), 0);
			assert_true(number(o, "made_up") >= 3);
		} else {
			assert_true(number(o, "missed") >= 3);
			assert_int_equal(number(o, "made_up"), 0);
		}
		assert_int_equal(atomic_load(&m.node.counters.made_up),
				 number(o, "made_up"));
		json_decref(o);
		drop_node(&m);
		unlink(scratch("folder/p_values1_rate2000.log"));
		rmdir(scratch("folder"));
	}
	sample_put(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cases_are_all_rates_with_all_values),
		cmocka_unit_test(an_object_or_the_node_itself_is_one_entry),
		cmocka_unit_test(wrong_settings_are_refused),
		cmocka_unit_test(each_mode_ends_a_case_when_it_says),
		cmocka_unit_test(a_tally_tells_lost_late_repeated_and_foreign_apart),
		cmocka_unit_test(what_comes_back_and_what_does_not_is_in_the_file),
		cmocka_unit_test(a_stop_keeps_the_files_of_finished_cases_whole),
		cmocka_unit_test(a_duration_makes_the_same_number_each_time),
		cmocka_unit_test(late_steps_are_made_up_as_far_as_the_setting_says),
	};
	int ret;

	clock_init();
	ret = cmocka_run_group_tests(tests, set_up, tear_down);
	clear_scratch();
	return ret;
}
