/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths and the super-node with fake nodes: what arrives, in which order nodes
 * live, and that no sample is lost or given back twice, whatever nodes hold on
 * to. A sample given back twice trips the assertion on its reference count; one
 * that is lost is reported by its pool.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "gateway/path/path.h"
#include "gateway/super_node/super_node_control.h"
#include "gateway/super_node/super_node_private.h"

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
		"paths = ( { end = \"all\"; in = ( \"a\", \"b\" ); out = \"s\" } );", &c);
	struct fake *s;

	assert_non_null(sn);
	fake_run(sn);
	s = fake_of(sn, "s");
	/* 500 outputs, numbered anew; they grow as sources have delivered. */
	assert_sequence(s, 500);
	for (unsigned i = 0; i < 500; i++) {
		assert_true(s->lengths[i] == 2 || s->lengths[i] == 4);
		assert_true(!i || s->lengths[i] >= s->lengths[i - 1]);
		/* From `b` alone on it is as long as both. */
		assert_true(s->lengths[i] == 4 || s->first[i] == i);
	}
	assert_int_equal(s->lengths[499], 4);
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
		"paths = ( { end = \"all\"; in = ( \"a\", \"b\" ); out = \"s\"; mode = \"all\" } );", &c);

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
		"paths = ( { end = \"all\"; in = ( \"a\", \"b\" ); out = \"s\"; mask = ( \"b\" ) } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_int_equal(fake_of(sn, "s")->seen_count, 30);
	fake_end(sn, c);
}

static void an_output_is_as_long_as_its_sources_have_delivered(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 20; in = { signals = \"1f\" } };"
		"          b = { type = \"source\"; limit = 0; in = { signals = \"2f\" } };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { end = \"all\"; in = ( \"a\", \"b\" ); out = \"s\" } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "s"), 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(fake_of(sn, "s")->lengths[i], 1);
	fake_end(sn, c);
}

static void every_sample_that_comes_is_counted_in_the_numbers(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 100; base = 1000; in = { signals = \"1f\" } };"
		"          b = { type = \"source\"; limit = 30; in = { signals = \"1f\" } };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { end = \"all\"; in = ( \"a\", \"b\" ); out = \"s\"; mask = ( \"b\" ) } );", &c);
	struct fake *s;

	assert_non_null(sn);
	fake_run(sn);
	s = fake_of(sn, "s");
	assert_int_equal(s->seen_count, 30);
	for (unsigned i = 0; i < 30; i++) {
		unsigned of_a = s->first[i] >= 1000 ?
					(unsigned)s->first[i] - 999 : 0;

		assert_int_equal(s->seen[i], i + of_a);
	}
	fake_end(sn, c);
}

static void a_path_ends_with_the_first_source_that_ends(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 50; in = { signals = \"1f\" } };"
		"          b = { type = \"source\"; limit = 1; mode = \"idle\"; in = { signals = \"1f\" } };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { in = ( \"a\", \"b\" ); out = \"s\" } );", &c);
	struct fake *s;
	unsigned of_a = 0;

	fake_log_start();
	log_set_level(LOG_INFO);
	assert_non_null(sn);
	fake_run(sn);
	s = fake_of(sn, "s");
	/* Nothing of the one that ended is missing. */
	assert_true(s->seen_count >= 50);
	for (unsigned i = 0; i < s->seen_count; i++)
		of_a += s->first[i] == of_a;
	assert_int_equal(of_a, 50);
	assert_non_null(strstr(fake_log(), "node a has ended, and the path with it"));
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

/* Samples of a slow source on their way through a loop; how many of them the thread
 * of the source brings to the end. */
static unsigned carried(const char *loop, const char *path, const char *sink)
{
	char text[1024];
	struct config *c;
	struct super_node *sn;
	unsigned count;

	snprintf(text, sizeof(text), TOP
		 "nodes = { a = { type = \"source\"; mode = \"slow\"; limit = 200; };"
		 "          l = { type = \"loopback\"; %s };"
		 "          s = { type = \"sink\"; %s } };"
		 "paths = ( { in = \"a\"; out = \"l\" }, { in = \"l\"; out = \"s\"; %s } );",
		 loop, sink, path);
	sn = fake_super_node(text, &c);
	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "s"), 200);
	count = fake_of(sn, "s")->carried;
	fake_end(sn, c);
	return count;
}

static void a_writer_runs_the_path_behind_a_loop_whose_thread_sleeps(void **state)
{
	unsigned most = 0;

	/* A thread that begins late finds much to do itself; not always. */
	for (unsigned i = 0; i < 20 && most <= 100; i++)
		most = MAX(most, carried("", "", ""));
	assert_true(most > 100);
}

static void a_path_that_may_wait_or_has_a_processor_of_its_own_runs_itself(void **state)
{
	assert_int_equal(carried("mode = \"pthread\";", "", ""), 0);
	assert_int_equal(carried("", "affinity = 1;", ""), 0);
	assert_int_equal(carried("", "hooks = ( { type = \"print\"; output = \"/dev/null\" } );", ""), 0);
	assert_int_equal(carried("", "", "mode = \"wait\"; limit = 0;"), 0);
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

/* Names of what a destination gets, separated by blanks. */
static const char *names_of(struct super_node *sn, const char *node)
{
	static char text[256];
	const struct signal_list *l = super_node_find(sn, node)->out.signals;

	text[0] = '\0';
	for (unsigned i = 0; i < l->count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s%s%s%s", i ? " " : "", l->signals[i].name,
			 l->signals[i].unit && *l->signals[i].unit ? "/" : "",
			 l->signals[i].unit ? l->signals[i].unit : "");
	return text;
}

#define NAMED "signals = ( { name = \"ua\"; unit = \"V\" }, { name = \"ub\" }, { name = \"uc\" }, { name = \"n\" } );"

static void parts_of_a_node_are_forwarded_in_the_order_asked_for(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 200; values = 4; vectorize = 6; in = { " NAMED " } };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { in = ( \"a[2-3]\", \"a.ua\", \"a.hdr.sequence\", \"a.data[ua-ub]\", \"a.hdr.length\" ); out = \"s\" } );", &c);
	struct fake *s;

	assert_non_null(sn);
	fake_run(sn);
	s = fake_of(sn, "s");
	assert_string_equal(names_of(sn, "s"),
			    "uc n ua/V sequence ua/V ub length");
	/* One source: its sequence numbers stay. */
	assert_sequence(s, 200);
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(s->lengths[i], 7);
		assert_true(s->data[i][0].f == 2000000 + i);
		assert_true(s->data[i][1].f == 3000000 + i);
		assert_true(s->data[i][2].f == i);
		assert_int_equal(s->data[i][3].i, i);
		assert_true(s->data[i][4].f == i);
		assert_true(s->data[i][5].f == -(double)i);
		assert_int_equal(s->data[i][6].i, 4);
	}
	fake_end(sn, c);
}

static void timestamps_are_forwarded_as_seconds_and_nanoseconds(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 5; }; s = { type = \"sink\"; } };"
		"paths = ( { in = ( \"a.ts.origin\", \"a.ts.received\" ); out = \"s\" } );", &c);
	time_t before = time(NULL) - 1;
	struct fake *s;

	assert_non_null(sn);
	fake_run(sn);
	s = fake_of(sn, "s");
	assert_string_equal(names_of(sn, "s"),
			    "origin.sec/s origin.nsec/ns received.sec/s received.nsec/ns");
	assert_sequence(s, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_true(s->data[i][0].i >= before);
		assert_true(s->data[i][0].i <= time(NULL) + 1);
		assert_in_range(s->data[i][1].i, 0, 999999999);
		/* Received behind the origin. */
		assert_true(s->data[i][2].i * 1000000000 + s->data[i][3].i >=
			    s->data[i][0].i * 1000000000 + s->data[i][1].i);
	}
	fake_end(sn, c);
}

static void figures_of_a_node_are_forwarded(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 50; in = { hooks = ( { type = \"stats\"; output = \"/dev/null\" } ) } };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { in = ( \"a.stats.signal_cnt.total\", \"a.stats.owd.highest\", \"a.stats.signal_cnt.mean\", \"a.stats.age.total\" ); out = \"s\" } );", &c);
	struct fake *s;

	assert_non_null(sn);
	fake_run(sn);
	s = fake_of(sn, "s");
	assert_string_equal(names_of(sn, "s"),
			    "signal_cnt.total owd.highest/s signal_cnt.mean age.total");
	assert_sequence(s, 50);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(s->data[i][0].i, i + 1);
		/* From the second sample on. */
		assert_true(!i ? isnan(s->data[i][1].f) :
				 s->data[i][1].f >= 0 && s->data[i][1].f < 20);
		assert_true(s->data[i][2].f == 2);
		/* The path records it when a sample goes out. */
		assert_int_equal(s->data[i][3].i, i);
	}
	fake_end(sn, c);
}

/* What has not come yet is what `init` says; what a sample lacks stays. */
static void the_register_begins_with_the_initial_values(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 3; values = 2; in = { signals = ( { name = \"x\"; init = 5 }, { name = \"y\" }, { name = \"z\"; init = 2.5 } ) } };"
		"          b = { type = \"source\"; limit = 0; in = { signals = ( { name = \"i\"; type = \"integer\"; init = -7 }, { name = \"j\"; type = \"boolean\"; init = true } ) } };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { end = \"all\"; in = ( \"b\", \"a\", \"a.z\" ); out = \"s\" } );", &c);
	struct fake *s;

	assert_non_null(sn);
	fake_run(sn);
	s = fake_of(sn, "s");
	assert_sequence(s, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(s->lengths[i], 6);
		assert_int_equal(s->data[i][0].i, -7);
		assert_int_equal(s->data[i][1].i, 1);
		assert_true(s->data[i][2].f == i);
		assert_true(s->data[i][3].f == -(double)i);
		assert_true(s->data[i][4].f == 2.5);
		assert_true(s->data[i][5].f == 2.5);
	}
	fake_end(sn, c);
}

static void two_sources_are_interleaved_as_mapped(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 100; in = { signals = \"2f\" } };"
		"          b = { type = \"source\"; limit = 100; base = 1000; in = { signals = \"2f\" } };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { end = \"all\"; in = ( \"a[0]\", \"b[0]\", \"a[1]\", \"b[1]\" ); out = \"s\"; mode = \"all\" } );", &c);
	struct fake *s;

	assert_non_null(sn);
	fake_run(sn);
	s = fake_of(sn, "s");
	assert_true(s->seen_count >= 1 && s->seen_count <= 100);
	for (unsigned i = 0; i < s->seen_count; i++) {
		assert_int_equal(s->lengths[i], 4);
		assert_true(s->data[i][2].f == -s->data[i][0].f);
		assert_true(s->data[i][3].f == -s->data[i][1].f);
		assert_true(s->data[i][1].f >= 1000);
	}
	/* The last output holds the last of at least one of them. */
	assert_true(s->data[s->seen_count - 1][0].f == 99 ||
		    s->data[s->seen_count - 1][1].f == 1099);
	fake_end(sn, c);
}

static void a_part_of_a_node_that_another_path_reads(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 2000; values = 3; vectorize = 3; in = { signals = \"3f\" } };"
		"          b = { type = \"sink\"; }; d = { type = \"sink\"; own_memory = true }; e = { type = \"sink\" } };"
		"paths = ( { in = \"a[2]\"; out = \"b\" }, { in = \"a.signal1\"; out = \"d\"; queuelen = 2048 },"
		"          { in = \"a\"; out = \"e\"; queuelen = 2048 } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "b"), 2000);
	assert_sequence(fake_of(sn, "d"), 2000);
	assert_sequence(fake_of(sn, "e"), 2000);
	assert_true(fake_of(sn, "b")->first[1999] == 2000000 + 1999);
	assert_true(fake_of(sn, "d")->first[1999] == -1999);
	assert_int_equal(fake_of(sn, "e")->lengths[1999], 3);
	assert_int_equal(fake_of(sn, "d")->foreign, 0);
	fake_end(sn, c);
}

/* The second path stands first, and knows the names all the same. */
static void mapped_names_are_known_behind_a_loop(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 100; values = 4; in = { " NAMED " } };"
		"          l = { type = \"loopback\"; }; s = { type = \"sink\"; } };"
		"paths = ( { in = ( \"l.hdr.length\", \"l.uc\" ); out = \"s\" }, { in = ( \"a.hdr.sequence\", \"a[ub-uc]\" ); out = \"l\" } );", &c);
	struct fake *s;

	assert_non_null(sn);
	fake_run(sn);
	s = fake_of(sn, "s");
	assert_string_equal(names_of(sn, "s"), "length uc");
	assert_sequence(s, 100);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(s->data[i][0].i, 3);
		assert_true(s->data[i][1].f == 2000000 + i);
	}
	fake_end(sn, c);
}

static void numbers_of_several_sources_can_be_kept(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 20; in = { signals = \"2f\" } };"
		"          b = { type = \"source\"; limit = 10; in = { signals = \"2f\" } };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { end = \"all\"; in = ( \"a\", \"b\" ); out = \"s\"; original_sequence_no = true } );", &c);
	uint64_t sum = 0;
	struct fake *s;

	assert_non_null(sn);
	fake_run(sn);
	s = fake_of(sn, "s");
	assert_int_equal(s->seen_count, 30);
	for (unsigned i = 0; i < 30; i++)
		sum += s->seen[i];
	assert_int_equal(sum, 19 * 20 / 2 + 9 * 10 / 2);
	fake_end(sn, c);
}

/* The first value of the last sample that the sink was given; -1: none yet. */
static double last_value(struct fake *s)
{
	unsigned n = fake_seen(s);

	return n ? s->first[n - 1] : -1;
}

/* With an empty mask nothing triggers but the rate. */
static void rate_alone_sends_with_an_empty_mask(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 1000; mode = \"idle\" };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { in = \"a\"; out = \"s\"; rate = 200; mask = () } );", &c);
	struct fake *s;

	assert_non_null(sn);
	assert_int_equal(super_node_start(sn), 0);
	s = fake_of(sn, "s");
	for (unsigned tries = 0; tries < 2000 && (fake_seen(s) < 10 || last_value(s) < 999);
	     tries++)
		assert_false(super_node_wait(sn, 10));
	super_node_stop(sn);
	assert_true(s->seen_count >= 10);
	/* Far fewer than came in, and the latest that had come. */
	assert_true(s->seen_count < 1000);
	assert_true(s->first[s->seen_count - 1] == 999);
	fake_end(sn, c);
}

static void queuelen_is_rounded_up_to_a_power_of_two(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; }; s = { type = \"sink\"; } };"
		"paths = ( { in = \"a\"; out = \"s\"; queuelen = 1000 } );", &c);

	assert_non_null(sn);
	assert_non_null(strstr(fake_log(), "path a -> s: queuelen 1000 is rounded up to 1024"));
	fake_run(sn);
	fake_end(sn, c);
}

static uint64_t dropped_of(struct super_node *sn, unsigned path)
{
	json_t *o = super_node_summary(sn);
	json_t *p = json_array_get(json_object_get(o, "paths"), path);
	uint64_t n = (uint64_t)json_integer_value(json_object_get(p, "dropped"));
	json_t *queues = json_object_get(p, "queues"), *q;
	uint64_t sum = 0;
	size_t i;

	json_array_foreach(queues, i, q)
		sum += (uint64_t)json_integer_value(json_object_get(q, "dropped"));
	assert_int_equal(sum, n);
	json_decref(o);
	return n;
}

/* A slow destination behind a queue of eight, by policy. */
static struct super_node *run_full(const char *policy, const char *sink,
				   struct config **c)
{
	struct super_node *sn;
	char text[1024];

	snprintf(text, sizeof(text), TOP
		 "nodes = { a = { type = \"source\"; limit = 3000; };"
		 "          b = { type = \"sink\"; }; d = { type = \"sink\"; %s } };"
		 "paths = ( { in = \"a\"; out = \"b\" }, { in = \"a\"; out = \"d\"; queuelen = 8; %s } );",
		 sink, policy);
	sn = fake_super_node(text, c);
	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "b"), 3000);
	return sn;
}

static void assert_growing(const struct fake *f)
{
	for (unsigned i = 1; i < f->seen_count; i++)
		assert_true(f->seen[i] > f->seen[i - 1]);
}

#define WAITS "mode = \"wait\"; limit = 3000;"

static void a_full_queue_drops_the_newest_and_counts(void **state)
{
	static const char *const policies[] = {
		"", "queue_full = \"drop_newest\";",
	};

	for (unsigned i = 0; i < 2; i++) {
		struct config *c;
		struct super_node *sn = run_full(policies[i], WAITS, &c);
		struct fake *d = fake_of(sn, "d");

		assert_growing(d);
		assert_true(dropped_of(sn, 1) > 0);
		assert_int_equal(d->seen_count + dropped_of(sn, 1), 3000);
		assert_non_null(strstr(fake_log(), "path a -> d is too slow for node a"));
		/* What came first stayed. */
		assert_true(d->seen[0] == 0);
		fake_end(sn, c);
	}
}

static void a_full_queue_drops_the_oldest_and_counts(void **state)
{
	struct config *c;
	struct super_node *sn = run_full("queue_full = \"drop_oldest\";", WAITS,
					 &c);
	struct fake *d = fake_of(sn, "d");

	assert_growing(d);
	assert_true(dropped_of(sn, 1) > 0);
	assert_int_equal(d->seen_count + dropped_of(sn, 1), 3000);
	/* What came last is there. */
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(d->seen[d->seen_count - 1 - i], 2999 - i);
	fake_end(sn, c);
}

static void a_full_queue_blocks_its_source(void **state)
{
	struct config *c;
	struct super_node *sn = run_full("queue_full = \"block\";", "", &c);

	assert_sequence(fake_of(sn, "d"), 3000);
	assert_int_equal(dropped_of(sn, 1), 0);
	fake_end(sn, c);
}

static void sources_of_a_register_drop_the_oldest(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 5000; in = { signals = \"2f\" } };"
		"          b = { type = \"source\"; limit = 5000; in = { signals = \"2f\" } };"
		"          s = { type = \"sink\"; mode = \"wait\"; limit = 10000 } };"
		"paths = ( { end = \"all\"; in = ( \"a[0]\", \"b[0]\" ); out = \"s\"; queuelen = 4; queue_full = \"drop_oldest\" } );", &c);
	struct fake *s;

	assert_non_null(sn);
	fake_run(sn);
	s = fake_of(sn, "s");
	assert_true(dropped_of(sn, 0) > 0);
	assert_int_equal(s->seen_count + dropped_of(sn, 0), 10000);
	assert_true(s->first[s->seen_count - 1] == 4999);
	assert_true(s->second[s->seen_count - 1] == 4999);
	fake_end(sn, c);
}

/* A node that holds more than it has told leaves none for the output. */
static void outputs_without_a_free_sample_are_counted(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 500; in = { signals = \"2f\" } };"
		"          s = { type = \"sink\"; mode = \"hold\"; hoard = true; seed = 5 };"
		"          t = { type = \"sink\"; mode = \"hold\"; hoard = true; seed = 9 } };"
		"paths = ( { in = ( \"a[1]\", \"a[0]\" ); out = ( \"s\", \"t\" ); queuelen = 4 } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_true(dropped_of(sn, 0) > 0);
	assert_int_equal(fake_of(sn, "s")->seen_count +
			 super_node_find(sn, "s")->counters.not_sent +
			 dropped_of(sn, 0), 500);
	assert_non_null(strstr(fake_log(), "no free sample for its output"));
	/* Nothing allowed that, so the end says so, as an error. */
	assert_int_equal(super_node_losses(sn), dropped_of(sn, 0));
	assert_int_equal(fake_log_errors(), 1);
	fake_log_start();
	fake_end(sn, c);
}

static uint64_t in_hooks(const struct hook_list *l)
{
	struct hook_figures f = hook_list_figures(l);

	return f.dropped + f.failed + f.starved + f.held;
}

/* Nothing comes or goes that no counter tells of. */
static void assert_account(struct super_node *sn)
{
	uint64_t read, gone;

	list_for_each(p, &sn->paths, struct path, entry) {
		read = p->repeated;
		gone = p->merged + p->unmade + p->discarded + p->forwarded +
		       in_hooks(p->hooks);
		for (unsigned i = 0; i < p->source_count; i++) {
			struct node *n = p->sources[i].node;

			read += n->counters.received - in_hooks(n->in.hooks);
			gone += p->sources[i].overruns;
		}
		assert_int_equal(read, gone);
		for (unsigned d = 0; d < p->destination_count; d++) {
			struct node *n = p->destinations[d].node;
			uint64_t losses = 0;

			for (int c = 0; c < NODE_LOSSES; c++)
				losses += n->counters.losses[c];
			assert_int_equal(p->forwarded, in_hooks(n->out.hooks) +
						n->counters.sent + n->counters.not_sent);
			assert_int_equal(losses, n->counters.not_sent +
							 n->counters.not_stored);
		}
	}
}

static void every_sample_is_accounted_for(void **state)
{
	static const char *const paths[] = {
		"{ in = \"a\"; out = \"s\" }",
		"{ in = \"a\"; out = ( \"s\", \"t\" ); hooks = ( { type = \"reorder_ts\"; window_size = 5 }, { type = \"decimate\"; ratio = 2 } ) }",
		"{ in = ( \"a\", \"b\" ); out = \"s\"; mode = \"all\"; rate = 3000.0 }",
		"{ in = ( \"b\", \"a[0]\" ); out = \"s\"; mask = ( \"a\" ) }",
		"{ in = \"a\"; out = \"s\"; queuelen = 4; poll = true; queue_full = \"drop_oldest\" }",
		"{ in = \"a\"; out = \"s\" }, { in = \"a\"; out = \"t\"; queuelen = 4; hooks = ( { type = \"decimate\"; ratio = 2 } ) }",
	};

	for (unsigned k = 0; k < 5 * ARRAY_SIZE(paths); k++) {
		char text[1500];
		struct super_node *sn;
		struct config *c;

		snprintf(text, sizeof(text), TOP
			 "nodes = { a = { type = \"source\"; limit = 700; mode = \"few\"; seed = %u; vectorize = 7; in = { signals = \"2f\"; hooks = ( { type = \"skip_first\"; samples = 9 } ) } };"
			 "          b = { type = \"source\"; limit = 300; in = { signals = \"2f\" } };"
			 "          s = { type = \"sink\"; mode = \"hold\"; seed = %u; out = { hooks = ( { type = \"decimate\"; ratio = 3 } ) } };"
			 "          t = { type = \"sink\"; mode = \"hold\"; seed = %u } };"
			 "paths = ( %s );", k, k + 7, k + 30, paths[k % ARRAY_SIZE(paths)]);
		sn = fake_super_node(text, &c);
		if (!sn)
			fail_msg("%s: %s", text, fake_log());
		fake_run(sn);
		assert_account(sn);
		/* The API and the summary have one figure. */
		list_for_each(p, &sn->paths, struct path, entry) {
			json_t *o = super_node_path_json(sn, p->uuid, true);

			assert_int_equal(json_integer_value(json_object_get(
						json_object_get(o, "stats"), "dropped")),
					 path_dropped(p));
			json_decref(o);
		}
		super_node_destroy(sn);
		config_destroy(c);
	}
}

/* Stops while a reader waits for room. */
static void a_blocked_reader_stops_when_asked(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 3000; };"
		"          b = { type = \"sink\"; }; d = { type = \"sink\"; mode = \"wait\"; limit = 1000000 } };"
		"paths = ( { in = \"a\"; out = \"b\" }, { in = \"a\"; out = \"d\"; queuelen = 8; queue_full = \"block\" } );", &c);

	assert_non_null(sn);
	assert_int_equal(super_node_start(sn), 0);
	while (fake_seen(fake_of(sn, "b")) < 9)
		assert_false(super_node_wait(sn, 1));
	super_node_stop(sn);
	/* All that was read is somewhere. */
	assert_int_equal(fake_of(sn, "d")->seen_count + dropped_of(sn, 1),
			 super_node_find(sn, "a")->counters.received);
	fake_end(sn, c);
}

static void threads_get_affinity_and_priority(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; mode = \"idle\"; affinity = 1; priority = 3 };"
		"          b = { type = \"source\"; mode = \"idle\"; };"
		"          s = { type = \"sink\"; } };"
		"paths = ( { end = \"all\"; in = ( \"a\", \"b\" ); out = \"s\"; affinity = 1; priority = 2 } );", &c);
	const struct path *p;
	struct sched_param param;
	cpu_set_t set;
	int policy;

	assert_non_null(sn);
	assert_int_equal(super_node_start(sn), 0);
	p = list_entry(sn->paths.next, struct path, entry);
	assert_int_equal(pthread_getaffinity_np(p->sources[0].thread,
						sizeof(set), &set),
			 0);
	/* CPU 0 may be forbidden to us; then it is said. */
	if (!strstr(fake_log(), "affinity 0x1 refused"))
		assert_int_equal(CPU_COUNT(&set), 1);
	assert_int_equal(pthread_getschedparam(p->sources[0].thread, &policy,
					       &param),
			 0);
	if (strstr(fake_log(), "(SCHED_FIFO) refused")) {
		/* Said once, with what is missing, and all goes on. */
		assert_null(strstr(strstr(fake_log(), "(SCHED_FIFO) refused") + 1,
				   "(SCHED_FIFO) refused"));
		assert_non_null(strstr(fake_log(), "CAP_SYS_NICE"));
	} else {
		assert_int_equal(policy, SCHED_FIFO);
		assert_int_equal(param.sched_priority, 3);
		pthread_getschedparam(p->thread, &policy, &param);
		assert_int_equal(param.sched_priority, 2);
	}
	super_node_stop(sn);
	fake_end(sn, c);
}

static void a_reverse_path_carries_samples_back(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { x = { type = \"both\"; limit = 300 }; y = { type = \"both\"; limit = 200 } };"
		"paths = ( { in = \"x\"; out = \"y\"; reverse = true; mask = \"x\" } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "y"), 300);
	assert_sequence(fake_of(sn, "x"), 200);
	fake_end(sn, c);
}

static void poll_that_cannot_be_is_said(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 30; in = { signals = \"2f\" } }; b = { type = \"source\"; limit = 20; in = { signals = \"2f\" } };"
		"          s = { type = \"sink\" } };"
		"paths = ( { end = \"all\"; in = ( \"a\", \"b\" ); out = \"s\"; poll = true } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_non_null(strstr(fake_log(), "poll is asked for, but"));
	assert_sequence(fake_of(sn, "s"), 50);
	fake_end(sn, c);
}

/* poll() is given no more than a path has room for. */
static void every_one_of_many_sources_is_read(void **state)
{
	static char text[16384];
	struct config *c;
	struct super_node *sn;
	size_t len = (size_t)snprintf(text, sizeof(text), TOP
		"nodes = { a = { type = \"source\"; limit = 10; in = { hooks = ( \"stats\" ) } }; d = { type = \"sink\" };");
	char name[8];

	for (int i = 0; i < 70; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			" s%d = { type = \"stats\"; rate = 20; in = { signals = ( { stats = \"a.signal_cnt.total\" } ) } };", i);
	len += (size_t)snprintf(text + len, sizeof(text) - len,
				" }; paths = ( { in = \"a\" }, { out = \"d\"; in = (");
	for (int i = 0; i < 70; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s\"s%d\"", i ? ", " : "", i);
	snprintf(text + len, sizeof(text) - len, ") } );");
	sn = fake_super_node(text, &c);
	assert_non_null(sn);
	assert_int_equal(super_node_start(sn), 0);
	for (int i = 0; i < 70; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		for (int k = 0; !super_node_find(sn, name)->counters.received; k++) {
			assert_true(k < 5000);
			assert_false(super_node_wait(sn, 1));
		}
	}
	super_node_stop(sn);
	fake_end(sn, c);
}

static void a_rate_near_zero_sends_nothing_again(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 30 }; s = { type = \"sink\" } };"
		"paths = ( { in = \"a\"; out = \"s\"; rate = 1e-12 } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_sequence(fake_of(sn, "s"), 30);
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
		cmocka_unit_test(an_output_is_as_long_as_its_sources_have_delivered),
		cmocka_unit_test(every_sample_that_comes_is_counted_in_the_numbers),
		cmocka_unit_test(a_path_ends_with_the_first_source_that_ends),
		cmocka_unit_test(rate_sends_the_last_sample_again),
		cmocka_unit_test(samples_pass_through_a_loop_with_sleeping_reader),
		cmocka_unit_test(samples_pass_through_a_polling_loop),
		cmocka_unit_test(a_writer_runs_the_path_behind_a_loop_whose_thread_sleeps),
		cmocka_unit_test(a_path_that_may_wait_or_has_a_processor_of_its_own_runs_itself),
		cmocka_unit_test(loops_are_waited_for_by_their_descriptors),
		cmocka_unit_test(a_full_loop_loses_and_counts),
		cmocka_unit_test(a_blocked_source_stops_when_asked),
		cmocka_unit_test(destinations_start_first_and_stop_last),
		cmocka_unit_test(a_failing_start_is_unwound),
		cmocka_unit_test(samples_lie_in_memory_that_every_node_wants),
		cmocka_unit_test(a_reverse_path_needs_one_node_on_each_side),
		cmocka_unit_test(the_summary_tells_what_happened),
		cmocka_unit_test(parts_of_a_node_are_forwarded_in_the_order_asked_for),
		cmocka_unit_test(timestamps_are_forwarded_as_seconds_and_nanoseconds),
		cmocka_unit_test(figures_of_a_node_are_forwarded),
		cmocka_unit_test(the_register_begins_with_the_initial_values),
		cmocka_unit_test(two_sources_are_interleaved_as_mapped),
		cmocka_unit_test(a_part_of_a_node_that_another_path_reads),
		cmocka_unit_test(mapped_names_are_known_behind_a_loop),
		cmocka_unit_test(numbers_of_several_sources_can_be_kept),
		cmocka_unit_test(rate_alone_sends_with_an_empty_mask),
		cmocka_unit_test(queuelen_is_rounded_up_to_a_power_of_two),
		cmocka_unit_test(a_full_queue_drops_the_newest_and_counts),
		cmocka_unit_test(a_full_queue_drops_the_oldest_and_counts),
		cmocka_unit_test(a_full_queue_blocks_its_source),
		cmocka_unit_test(sources_of_a_register_drop_the_oldest),
		cmocka_unit_test(outputs_without_a_free_sample_are_counted),
		cmocka_unit_test(every_sample_is_accounted_for),
		cmocka_unit_test(a_blocked_reader_stops_when_asked),
		cmocka_unit_test(threads_get_affinity_and_priority),
		cmocka_unit_test(a_reverse_path_carries_samples_back),
		cmocka_unit_test(poll_that_cannot_be_is_said),
		cmocka_unit_test(every_one_of_many_sources_is_read),
		cmocka_unit_test(a_rate_near_zero_sends_nothing_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
