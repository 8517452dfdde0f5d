/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths and the super-node with fake nodes: what arrives, in which order nodes
 * live, and that no sample is lost or given back twice, whatever nodes hold on
 * to. A sample given back twice trips the assertion on its reference count; one
 * that is lost is reported by its pool.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define TOP "idle_stop = true; stats = 0.0; hugepages = 0;\n"

static void assert_sequence(struct fake *f, unsigned count)
{
	assert_int_equal(f->seen_count, count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(f->seen[i], i);
}

static void one_source_reaches_one_destination_in_order(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 5000; vectorize = 7 };"
		"          b = { type = \"sink\"; vectorize = 3; } };"
		"paths = ( { in = \"a\"; out = \"b\" } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "b"), 5000);
	assert_true(super_node_find(sn, "a")->counters.received == 5000);
	assert_true(super_node_find(sn, "b")->counters.sent == 5000);
	fake_end(sn, c);
}

static void every_destination_gets_every_sample(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 3000; vectorize = 5; mode = \"few\" };"
		"          b = { type = \"sink\"; vectorize = 5; };"
		"          c = { type = \"sink\"; vectorize = 2; };"
		"          d = { type = \"sink\"; } };"
		"paths = ( { in = \"a\"; out = ( \"b\", \"c\", \"d\" ) } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "b"), 3000);
	assert_sequence(fake_of(sn, "c"), 3000);
	assert_sequence(fake_of(sn, "d"), 3000);
	fake_end(sn, c);
}

/* Many seeds of nodes that keep, swap, refuse and give back late. */
static void held_samples_are_released_exactly_once(void **state)
{
	for (unsigned seed = 1; seed <= 60; seed++) {
		char text[1024];
		struct super_node *sn;
		struct fake *b, *d;
		struct config *c;

		snprintf(text, sizeof(text), TOP
			 "nodes = { a = { type = \"source\"; limit = 700; mode = \"hold\"; seed = %u; vectorize = %u };"
			 "          b = { type = \"sink\"; mode = \"hold\"; seed = %u; vectorize = %u; };"
			 "          d = { type = \"sink\"; mode = \"hold\"; seed = %u; vectorize = %u; } };"
			 "paths = ( { in = \"a\"; out = ( \"b\", \"d\" ); queuelen = 16; } );",
			 seed, 1 + seed % 9, seed + 100, 1 + seed % 5, seed + 200,
			 1 + seed % 7);
		sn = fake_super_node(text, &c);
		assert_non_null(sn);
		fake_run(sn);
		b = fake_of(sn, "b");
		d = fake_of(sn, "d");
		assert_true(super_node_find(sn, "a")->counters.received == 700);
		assert_int_equal(b->seen_count +
				 super_node_find(sn, "b")->counters.not_sent,
				 700);
		assert_int_equal(d->seen_count +
				 super_node_find(sn, "d")->counters.not_sent,
				 700);
		fake_end(sn, c);
	}
}

/* A node may go on looking at what it has handed out. */
static void samples_that_a_source_keeps_are_processed_too(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 500; vectorize = 4; mode = \"keep\" };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { in = \"a\"; out = \"s\"; queuelen = 8; } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "s"), 500);
	fake_end(sn, c);
}

static void several_paths_read_one_node(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 2000; };"
		"          b = { type = \"sink\"; }; c = { type = \"sink\"; }; d = { type = \"sink\"; own_memory = true; } };"
		"paths = ( { in = \"a\"; out = \"b\" }, { in = \"a\"; out = \"c\"; queuelen = 4096 },"
		"          { in = \"a\"; out = \"d\"; queuelen = 4096; original_sequence_no = false } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "b"), 2000);
	assert_sequence(fake_of(sn, "c"), 2000);
	assert_sequence(fake_of(sn, "d"), 2000);
	assert_int_equal(fake_of(sn, "d")->foreign, 0);
	fake_end(sn, c);
}

static void mode_any_forwards_whenever_a_source_has_data(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 300; in = { signals = \"2f\" } };"
		"          b = { type = \"source\"; limit = 200; base = 1000; in = { signals = \"2f\" } };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { in = ( \"a\", \"b\" ); out = \"s\" } );", &c);
	struct fake *s;

	assert_non_null(sn);
	fake_run(sn);
	s = fake_of(sn, "s");
	/* 500 outputs, numbered anew, each as long as both together. */
	assert_sequence(s, 500);
	for (unsigned i = 0; i < 500; i++)
		assert_int_equal(s->lengths[i], 4);
	assert_true(s->first[499] == 299);
	assert_true(s->second[499] == -299);
	fake_end(sn, c);
}

static void mode_all_waits_for_every_source(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 100; in = { signals = \"2f\" } };"
		"          b = { type = \"source\"; limit = 1; in = { signals = \"2f\" } };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { in = ( \"a\", \"b\" ); out = \"s\"; mode = \"all\" } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_int_equal(fake_of(sn, "s")->seen_count, 1);
	fake_end(sn, c);
}

static void only_masked_sources_trigger(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 100; in = { signals = \"2f\" } };"
		"          b = { type = \"source\"; limit = 30; in = { signals = \"2f\" } };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { in = ( \"a\", \"b\" ); out = \"s\"; mask = ( \"b\" ) } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_int_equal(fake_of(sn, "s")->seen_count, 30);
	fake_end(sn, c);
}

static void rate_sends_the_last_sample_again(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 1; mode = \"idle\"; base = 42 };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { in = \"a\"; out = \"s\"; rate = 500 } );", &c);
	struct fake *s;

	assert_non_null(sn);
	assert_int_equal(super_node_start(sn), 0);
	s = fake_of(sn, "s");
	for (unsigned tries = 0; tries < 2000 && fake_seen(s) < 20; tries++)
		assert_false(super_node_wait(sn, 10));
	super_node_stop(sn);
	assert_true(s->seen_count >= 20);
	for (unsigned i = 0; i < s->seen_count; i++) {
		assert_int_equal(s->seen[i], i);
		assert_true(s->first[i] == 42);
	}
	fake_end(sn, c);
}

static void samples_pass_through_a_loop_with_sleeping_reader(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 4000; vectorize = 4; in = { signals = \"100f\" } };"
		"          l = { type = \"loopback\"; queuelen = 8192; in = { vectorize = 8 } };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { in = \"l\"; out = \"s\" }, { in = \"a\"; out = \"l\" } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "s"), 4000);
	/* What goes in tells what comes out. */
	assert_int_equal(super_node_find(sn, "l")->in.signals->count, 100);
	fake_end(sn, c);
}

static void samples_pass_through_a_polling_loop(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 2000; };"
		"          l = { type = \"loopback\"; queuelen = 2048; mode = \"polling\" };"
		"          s = { type = \"sink\"; mode = \"plain\" } };"
		"paths = ( { in = \"a\"; out = \"l\" }, { in = \"l\"; out = \"s\" } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "s"), 2000);
	fake_end(sn, c);
}

static void loops_are_waited_for_by_their_descriptors(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 500; in = { signals = \"2f\" } };"
		"          b = { type = \"source\"; limit = 400; in = { signals = \"2f\" } };"
		"          l = { type = \"loopback\"; }; m = { type = \"loopback\"; };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { in = \"a\"; out = \"l\" }, { in = \"b\"; out = \"m\" },"
		"          { in = ( \"l\", \"m\" ); out = \"s\"; poll = true } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "s"), 900);
	fake_end(sn, c);
}

static void a_full_loop_loses_and_counts(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 100; vectorize = 50 };"
		"          l = { type = \"loopback\"; queuelen = 8; vectorize = 50 } };"
		"paths = ( { in = \"a\"; out = \"l\" } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_true(super_node_find(sn, "l")->counters.sent == 8);
	assert_true(super_node_find(sn, "l")->counters.not_sent == 92);
	fake_end(sn, c);
}

static void a_blocked_source_stops_when_asked(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { l = { type = \"loopback\"; }; p = { type = \"loopback\"; mode = \"polling\" };"
		"          s = { type = \"sink\"; }; t = { type = \"sink\" } };"
		"paths = ( { in = \"l\"; out = \"s\" }, { in = \"p\"; out = \"t\" } );", &c);

	assert_non_null(sn);
	assert_int_equal(super_node_start(sn), 0);
	assert_false(super_node_wait(sn, 5));
	super_node_request_stop(sn);
	assert_true(super_node_wait(sn, 5000));
	super_node_stop(sn);
	fake_end(sn, c);
}

static void destinations_start_first_and_stop_last(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\" }; s = { type = \"sink\" }; unused = { type = \"sink\" } };"
		"paths = ( { in = \"a\"; out = \"s\" } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_string_equal(fake_events,
			    "prepare:s prepare:a start:s start:a stop:a stop:s");
	assert_int_equal(node_state(super_node_find(sn, "s")), NODE_STOPPED);
	assert_non_null(strstr(fake_log(), "unused is in no path"));
	fake_end(sn, c);
}

static void a_failing_start_is_unwound(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; fail_start = true }; s = { type = \"sink\"; own_memory = true } };"
		"paths = ( { in = \"a\"; out = \"s\" } );", &c);

	assert_non_null(sn);
	assert_int_equal(super_node_start(sn), -EIO);
	assert_string_equal(fake_events,
			    "prepare:s prepare:a start:s start:a stop:s");
	super_node_stop(sn);
	fake_end(sn, c);

	sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; }; s = { type = \"sink\"; fail_prepare = true } };"
		"paths = ( { in = \"a\"; out = \"s\" } );", &c);
	assert_non_null(sn);
	assert_int_equal(super_node_start(sn), -EIO);
	assert_string_equal(fake_events, "prepare:s");
	fake_end(sn, c);
}

static void samples_lie_in_memory_that_every_node_wants(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; own_memory = true };"
		"          s = { type = \"sink\"; own_memory = true }; t = { type = \"sink\"; own_memory = true } };"
		"paths = ( { in = \"a\"; out = ( \"s\", \"t\" ) } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "s"), 10);
	assert_int_equal(fake_of(sn, "s")->foreign, 0);
	assert_int_equal(fake_of(sn, "t")->foreign, 0);
	assert_int_equal(fake_of(sn, "a")->blocks, 1);
	fake_end(sn, c);
}

static void a_reverse_path_needs_one_node_on_each_side(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { l = { type = \"loopback\" }; m = { type = \"loopback\" } };"
		"paths = ( { in = \"l\"; out = \"m\"; reverse = true } );", &c);

	assert_non_null(sn);
	assert_int_equal(super_node_start(sn), 0);
	super_node_stop(sn);
	fake_end(sn, c);

	sn = fake_super_node(TOP
		"nodes = { l = { type = \"loopback\" }; m = { type = \"loopback\" }; s = { type = \"sink\" } };"
		"paths = ( { in = \"l\"; out = ( \"m\", \"s\" ); reverse = true } );", &c);
	assert_null(sn);
	assert_non_null(strstr(fake_log(), "paths[0].reverse"));
	config_destroy(c);
}

static void the_summary_tells_what_happened(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 50 }; s = { type = \"sink\" } };"
		"paths = ( { in = \"a\"; out = \"s\" } );", &c);
	json_t *o;
	char line[256];

	assert_non_null(sn);
	fake_run(sn);
	o = super_node_summary(sn);
	assert_int_equal(json_integer_value(json_object_get(
				 json_object_get(json_object_get(o, "nodes"),
						 "s"),
				 "sent")),
			 50);
	assert_int_equal(json_integer_value(json_object_get(
				 json_array_get(json_object_get(o, "paths"), 0),
				 "samples")),
			 50);
	json_decref(o);
	super_node_progress(sn, line, sizeof(line));
	assert_non_null(strstr(line, "samples/s"));
	fake_end(sn, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_source_reaches_one_destination_in_order),
		cmocka_unit_test(every_destination_gets_every_sample),
		cmocka_unit_test(held_samples_are_released_exactly_once),
		cmocka_unit_test(samples_that_a_source_keeps_are_processed_too),
		cmocka_unit_test(several_paths_read_one_node),
		cmocka_unit_test(mode_any_forwards_whenever_a_source_has_data),
		cmocka_unit_test(mode_all_waits_for_every_source),
		cmocka_unit_test(only_masked_sources_trigger),
		cmocka_unit_test(rate_sends_the_last_sample_again),
		cmocka_unit_test(samples_pass_through_a_loop_with_sleeping_reader),
		cmocka_unit_test(samples_pass_through_a_polling_loop),
		cmocka_unit_test(loops_are_waited_for_by_their_descriptors),
		cmocka_unit_test(a_full_loop_loses_and_counts),
		cmocka_unit_test(a_blocked_source_stops_when_asked),
		cmocka_unit_test(destinations_start_first_and_stop_last),
		cmocka_unit_test(a_failing_start_is_unwound),
		cmocka_unit_test(samples_lie_in_memory_that_every_node_wants),
		cmocka_unit_test(a_reverse_path_needs_one_node_on_each_side),
		cmocka_unit_test(the_summary_tells_what_happened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
