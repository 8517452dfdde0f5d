/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * New configurations for a running super-node: what is the same goes on without
 * losing a sample, what differs is replaced, and errors change nothing.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fake.h"
#include "gateway/path/path.h"
#include "gateway/super_node/super_node_control.h"
#include "gateway/super_node/super_node_private.h"
#include "gateway/super_node/super_node_reload.h"

#define TOP "stats = 0.0; hugepages = 0;\n"
#define NODES                                                        \
	"a = { type = \"source\"; mode = \"paced\" };"               \
	"b = { type = \"sink\" };"
#define OTHERS                                                       \
	"c = { type = \"source\"; mode = \"paced\"; base = 100 };"   \
	"l = { type = \"loopback\"; queuelen = 4096 };"              \
	"d = { type = \"sink\"; own_memory = true };"
#define PATHS                                                        \
	"{ in = \"a\"; out = \"b\" },"                               \
	"{ in = \"c\"; out = \"l\" }, { in = \"l\"; out = \"d\" }"

static struct super_node *start(const char *text, struct config **c)
{
	struct super_node *sn = fake_super_node(text, c);

	assert_non_null(sn);
	assert_int_equal(super_node_start(sn), 0);
	return sn;
}

static json_t *as_json(const char *text)
{
	struct config *c = fake_config(text);
	json_t *o = json_deep_copy(config_root(c));

	config_destroy(c);
	return o;
}

/* Reloads libconfig text; the caller decrefs the report. */
static json_t *reload(struct super_node *sn, const char *text, int expected)
{
	json_t *o = as_json(text), *report;

	assert_int_equal(super_node_reload(sn, o, &report), expected);
	json_decref(o);
	return report;
}

static bool says(const json_t *report, const char *key, const char *what)
{
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(report, key), i, v)
		if (!strcmp(json_string_value(v), what))
			return true;
	return false;
}

static size_t many(const json_t *report, const char *key)
{
	return json_array_size(json_object_get(report, key));
}

static void wait_seen(struct super_node *sn, const char *node, unsigned more)
{
	struct fake *f = fake_of(sn, node);
	unsigned before = fake_seen(f);

	for (unsigned i = 0; fake_seen(f) < before + more; i++) {
		assert_true(i < 20000);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

static void assert_no_gap(struct super_node *sn, const char *node)
{
	struct fake *f = fake_of(sn, node);

	for (unsigned i = 0; i < f->seen_count; i++)
		assert_int_equal(f->seen[i], i);
}

#define BASE TOP "nodes = { " NODES OTHERS " }; paths = ( " PATHS " );"

static void the_same_settings_in_other_words_change_nothing(void **state)
{
	struct config *c;
	struct super_node *sn = start(BASE, &c);
	struct node *a = super_node_find(sn, "a");
	json_t *report;

	wait_seen(sn, "b", 5);
	report = reload(sn,
		TOP "nodes = {"
		    "a = { enabled = true; type = \"source\"; limit = 10.0; mode = \"paced\"; vectorize = 1 };"
		    "b = { type = \"sink\"; hooks = ( ); };" OTHERS "};"
		    "paths = ( { in = ( \"a\" ); out = ( \"b\" ); queuelen = \"1024\"; mode = \"any\" },"
		    "{ in = \"c\"; out = \"l\"; rate = 0 }, { in = \"l\"; out = \"d\" } );", 0);
	assert_int_equal(many(report, "kept"), 8);
	assert_int_equal(many(report, "started"), 0);
	assert_int_equal(many(report, "stopped"), 0);
	json_decref(report);
	assert_ptr_equal(super_node_find(sn, "a"), a);
	wait_seen(sn, "b", 5);
	super_node_stop(sn);
	assert_no_gap(sn, "d");
	fake_end(sn, c);
}

struct onlooker {
	const volatile bool *role;
	atomic_bool end;
	bool was;
};

static void *look_on(void *arg)
{
	struct onlooker *o = arg;

	while (!atomic_load_explicit(&o->end, memory_order_relaxed))
		o->was = *o->role;
	return NULL;
}

/* As threads of nodes do; the thread sanitizer would notice a write. */
static void what_threads_of_kept_nodes_read_is_not_written(void **state)
{
	struct config *c;
	struct super_node *sn = start(BASE, &c);
	struct onlooker o = { .role = &super_node_find(sn, "a")->is_source };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, look_on, &o), 0);
	for (unsigned i = 0; i < 50; i++) {
		wait_seen(sn, "b", 1);
		json_decref(reload(sn, BASE, 0));
	}
	atomic_store_explicit(&o.end, true, memory_order_relaxed);
	pthread_join(thread, NULL);
	assert_true(o.was);
	super_node_stop(sn);
	fake_end(sn, c);
}

static void what_differs_is_replaced_and_the_rest_loses_nothing(void **state)
{
	struct config *c;
	struct super_node *sn = start(BASE, &c);
	struct node *b = super_node_find(sn, "b");
	json_t *report;

	for (unsigned round = 1; round < 30; round++) {
		char text[1024];

		wait_seen(sn, "b", 2);
		snprintf(text, sizeof(text),
			 TOP "nodes = { c = { type = \"source\"; mode = \"paced\"; base = %u };"
			     "l = { type = \"loopback\"; queuelen = 4096 };"
			     "d = { type = \"sink\"; own_memory = true };" NODES " }; paths = ( " PATHS " );",
			 round);
		report = reload(sn, text, 0);
		assert_true(says(report, "kept", "node a"));
		assert_true(says(report, "kept", "node l"));
		assert_true(says(report, "kept", "path a -> b"));
		assert_true(says(report, "kept", "path l -> d"));
		assert_true(says(report, "started", "node c"));
		assert_true(says(report, "stopped", "path c -> l"));
		assert_int_equal(many(report, "failed"), 0);
		json_decref(report);
		assert_ptr_equal(super_node_find(sn, "b"), b);
		wait_seen(sn, "d", 2);
	}
	super_node_stop(sn);
	assert_no_gap(sn, "b");
	fake_end(sn, c);
}

/* The source stays and goes on; its new path continues where the old one was. The loopback node
 * has room for what comes in 4 s, as replacing a path may take long on a busy machine. */
#define CALM TOP "nodes = { " NODES                                                    \
	"c = { type = \"source\"; mode = \"paced\"; base = 100; pace_us = 1000 };" \
	"l = { type = \"loopback\"; queuelen = 4096 };"                              \
	"d = { type = \"sink\"; own_memory = true }; }; paths = ( "

static void a_path_is_replaced_below_a_source_that_stays(void **state)
{
	struct config *c;
	struct super_node *sn = start(CALM PATHS " );", &c);
	json_t *report;

	for (unsigned round = 1; round < 20; round++) {
		char text[1024];

		wait_seen(sn, "b", 2);
		wait_seen(sn, "d", 2);
		snprintf(text, sizeof(text), CALM
			 "{ in = \"a\"; out = \"b\"; queuelen = %u },"
			 "{ in = \"c\"; out = \"l\" }, { in = \"l\"; out = \"d\"; queuelen = %u } );",
			 64 + round, 64 + round);
		report = reload(sn, text, 0);
		assert_int_equal(many(report, "kept"), 6);
		assert_true(says(report, "kept", "node l"));
		assert_true(says(report, "stopped", "path l -> d"));
		json_decref(report);
	}
	super_node_stop(sn);
	assert_no_gap(sn, "d");
	fake_end(sn, c);
}

static void parts_come_and_go(void **state)
{
	struct config *c;
	struct super_node *sn = start(
		TOP "nodes = { " NODES "}; paths = ( { in = \"a\"; out = \"b\" } );", &c);
	json_t *report;

	for (unsigned round = 0; round < 5; round++) {
		report = reload(sn, BASE, 0);
		assert_true(says(report, "kept", "path a -> b"));
		assert_true(says(report, "started", "path l -> d"));
		json_decref(report);
		wait_seen(sn, "d", 3);
		report = reload(sn,
			TOP "nodes = { " NODES "}; paths = ( { in = \"a\"; out = \"b\" } );", 0);
		assert_true(says(report, "stopped", "node l"));
		assert_null(super_node_find(sn, "l"));
		json_decref(report);
		wait_seen(sn, "b", 3);
	}
	super_node_stop(sn);
	assert_no_gap(sn, "b");
	fake_end(sn, c);
}

/* A path whose thread does not run for a while waits for room, and loses nothing. */
#define KEPT "{ in = \"a\"; out = \"b\"; queue_full = \"block\" }"
#define ONE TOP "nodes = { " NODES "}; paths = ( " KEPT " );"

/* A recorder `d` in front of or behind the path that stays; both see all from then
 * on, and the counters of the one that stays go on. */
static void check_recorder(const char *start_with, const char *with, bool first)
{
	struct config *c;
	struct super_node *sn = start(start_with, &c);
	struct node *a = super_node_find(sn, "a");
	uint64_t before = 0;

	for (unsigned round = 0; round < 20; round++) {
		json_t *report = reload(sn, first == (round % 2 == 0) ? ONE : with, 0);
		struct path *p = super_node_path_by_id(sn, "a -> b");

		assert_true(says(report, "kept", "path a -> b"));
		assert_true(says(report, "kept", "node a"));
		assert_int_equal(many(report, "failed"), 0);
		json_decref(report);
		assert_ptr_equal(super_node_find(sn, "a"), a);
		assert_true(atomic_load(&p->forwarded) >= before);
		before = atomic_load(&p->forwarded);
		wait_seen(sn, "b", 3);
		if (super_node_find(sn, "d")) {
			struct fake *d = fake_of(sn, "d");

			wait_seen(sn, "d", 3);
			for (unsigned i = 1; i < fake_seen(d); i++)
				assert_int_equal(d->seen[i], d->seen[i - 1] + 1);
		}
	}
	assert_int_equal(atomic_load(&a->counters.lost), 0);
	super_node_stop(sn);
	assert_no_gap(sn, "b");
	assert_int_equal(path_dropped(super_node_path_by_id(sn, "a -> b")), 0);
	fake_end(sn, c);
}

#define RECORDER "nodes = { " NODES " d = { type = \"sink\"; own_memory = true }; };"

static void a_recorder_comes_and_goes_while_the_other_path_loses_nothing(void **state)
{
	static const char behind[] = TOP RECORDER
		"paths = ( " KEPT ", { in = \"a\"; out = \"d\"; queue_full = \"block\" } );";
	static const char before[] = TOP RECORDER
		"paths = ( { in = \"a\"; out = \"d\"; queue_full = \"block\" }, " KEPT " );";

	check_recorder(ONE, behind, false);
	check_recorder(ONE, before, false);
	/* It is there from the start: its path reads for the other one. */
	check_recorder(before, before, true);
	check_recorder(behind, behind, true);
}

/* What a reader still holds for others when another one takes over. */
static void the_reader_of_several_paths_goes_and_nothing_is_lost(void **state)
{
	static const char all[] = TOP "nodes = { " NODES " d = { type = \"sink\" }; e = { type = \"sink\" }; };"
		"paths = ( { in = \"a\"; out = \"d\" }, { in = \"a\"; out = \"b\"; queue_full = \"block\" }, { in = \"a\"; out = \"e\"; queue_full = \"block\" } );";
	static const char two[] = TOP "nodes = { " NODES " e = { type = \"sink\" }; };"
		"paths = ( { in = \"a\"; out = \"b\"; queue_full = \"block\" }, { in = \"a\"; out = \"e\"; queue_full = \"block\" } );";
	struct config *c;
	struct super_node *sn = start(all, &c);
	json_t *report;

	wait_seen(sn, "b", 5);
	for (unsigned round = 0; round < 6; round++) {
		report = reload(sn, round % 2 ? all : two, 0);
		assert_true(says(report, "kept", "path a -> b"));
		assert_true(says(report, "kept", "path a -> e"));
		json_decref(report);
		wait_seen(sn, "e", 5);
	}
	super_node_stop(sn);
	assert_no_gap(sn, "b");
	assert_no_gap(sn, "e");
	fake_end(sn, c);
}

static void a_wrong_configuration_changes_nothing_and_tells_all_errors(void **state)
{
	struct config *c;
	struct super_node *sn = start(BASE, &c);
	json_t *report, *now;

	report = reload(sn,
		TOP "nodes = { a = { type = \"source\"; limt = 3 }; b = { type = \"snk\" } };"
		    "paths = ( { in = \"a\"; out = \"x\" } );", -EINVAL);
	assert_int_equal(many(report, "errors"), 3);
	json_decref(report);
	assert_int_equal(super_node_reload(sn, NULL, &report), -ENOENT);
	assert_int_equal(many(report, "errors"), 1);
	json_decref(report);
	now = super_node_config_json(sn);
	assert_non_null(json_object_get(json_object_get(now, "nodes"), "l"));
	json_decref(now);
	wait_seen(sn, "b", 3);
	super_node_stop(sn);
	assert_no_gap(sn, "b");
	fake_log_start(); /* the errors were meant */
	fake_end(sn, c);
}

static void what_cannot_start_is_told_and_can_be_started_later(void **state)
{
	struct config *c;
	struct super_node *sn = start(
		TOP "nodes = { " NODES "}; paths = ( { in = \"a\"; out = \"b\" } );", &c);
	json_t *report = reload(sn,
		TOP "nodes = { " NODES " c = { type = \"source\"; mode = \"paced\"; fail_start = true };"
		    " d = { type = \"sink\" }; };"
		    "paths = ( { in = \"a\"; out = \"b\" }, { in = \"c\"; out = \"d\" } );", 0);

	assert_true(says(report, "failed", "node c"));
	assert_true(says(report, "kept", "path a -> b"));
	json_decref(report);
	assert_int_equal(super_node_node_control(sn, "c", CONTROL_START), -EIO);
	fake_of(sn, "c")->fail_start = false;
	assert_int_equal(super_node_node_control(sn, "c", CONTROL_START), 0);
	wait_seen(sn, "d", 3);
	super_node_stop(sn);
	assert_no_gap(sn, "b");
	fake_log_start();
	fake_end(sn, c);
}

static bool is_recorded(struct super_node *sn, const char *node)
{
	struct fake *f = fake_of(sn, node);
	bool recorded;

	spin_lock(&f->lock);
	recorded = f->seen_count && f->first[f->seen_count - 1] > 0;
	spin_unlock(&f->lock);
	return recorded;
}

/* Waits for the figure of a node that gives samples, not of one that is gone. */
static void wait_recorded(struct super_node *sn, const char *node)
{
	for (unsigned i = 0; !is_recorded(sn, node); i++) {
		assert_true(i < 20000);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

#define SHOWN                                                             \
	"s = { type = \"stats\"; rate = 200; in = { signals = ( { stats = \"a.signal_cnt.mean\" } ) } };" \
	"d = { type = \"sink\" }; e = { type = \"sink\" };"
#define RECORDED "a = { type = \"source\"; mode = \"paced\"; in = { signals = \"2f\"; hooks = ( \"stats\" ) }; base = "

/* A path or node that shows figures of another, where only one of them is new. */
static void figures_are_those_of_the_node_that_runs(void **state)
{
	struct config *c;
	struct super_node *sn = start(TOP "nodes = { " RECORDED "0 };" SHOWN "};"
		"paths = ( { in = ( \"a.stats.signal_cnt.mean\" ); out = \"d\" }, { in = \"s\"; out = \"e\" } );", &c);
	struct node *s = super_node_find(sn, "s");
	struct fake *e;
	json_t *report;
	unsigned seen;

	wait_recorded(sn, "d");
	wait_recorded(sn, "e");
	/* Another path on the node that stays, and another node `s`. */
	report = reload(sn, TOP "nodes = { " RECORDED "0 }; s = { type = \"stats\"; rate = 300; in = { signals = ( { stats = \"a.signal_cnt.mean\" } ) } };"
		"d = { type = \"sink\"; base = 1 }; e = { type = \"sink\"; base = 1 }; };"
		"paths = ( { in = ( \"a.stats.signal_cnt.mean\" ); out = \"d\" }, { in = \"s\"; out = \"e\" } );", 0);
	assert_true(says(report, "kept", "node a"));
	assert_true(says(report, "started", "node s"));
	json_decref(report);
	wait_recorded(sn, "d");
	wait_recorded(sn, "e");
	report = reload(sn, TOP "nodes = { " RECORDED "0 };" SHOWN "};"
		"paths = ( { in = \"a\"; out = \"d\" }, { in = \"s\"; out = \"e\" } );", 0);
	json_decref(report);
	/* `s` stays; its figures are those of the new `a`, which has none yet. */
	s = super_node_find(sn, "s");
	report = reload(sn, TOP "nodes = { a = { type = \"source\"; limit = 0; in = { signals = \"2f\"; hooks = ( \"stats\" ) } };" SHOWN "};"
		"paths = ( { in = \"a\"; out = \"d\" }, { in = \"s\"; out = \"e\" } );", 0);
	assert_true(says(report, "kept", "node s"));
	assert_true(says(report, "started", "node a"));
	json_decref(report);
	assert_ptr_equal(super_node_find(sn, "s"), s);
	e = fake_of(sn, "e");
	seen = fake_seen(e);
	wait_seen(sn, "e", 3);
	super_node_stop(sn);
	assert_true(e->seen_count > seen + 2);
	assert_false(e->first[e->seen_count - 1] > 0);
	fake_end(sn, c);
}

/* The same file again, once the reason is gone. */
static void what_could_not_be_prepared_gets_another_chance(void **state)
{
	static const char whole[] = TOP "nodes = { " NODES OTHERS "};"
		"paths = ( { in = \"a\"; out = \"b\" }, { in = \"c\"; out = \"d\" } );";
	struct config *c;
	struct super_node *sn = start(
		TOP "nodes = { " NODES "}; paths = ( { in = \"a\"; out = \"b\" } );", &c);
	json_t *report;

	atomic_store(&fake_refuse_prepare, true);
	report = reload(sn, whole, 0);
	atomic_store(&fake_refuse_prepare, false);
	assert_true(says(report, "failed", "node d"));
	assert_true(says(report, "failed", "path c -> d"));
	assert_true(says(report, "kept", "path a -> b"));
	json_decref(report);
	report = reload(sn, whole, 0);
	assert_int_equal(many(report, "failed"), 0);
	assert_true(says(report, "started", "node d"));
	assert_true(says(report, "started", "path c -> d"));
	assert_true(says(report, "kept", "path a -> b"));
	json_decref(report);
	wait_seen(sn, "d", 3);
	super_node_stop(sn);
	assert_no_gap(sn, "b");
	fake_log_start();
	fake_end(sn, c);
}

/* Its writer has ended and stays; so has the new path that reads it. */
static void a_path_that_reads_what_has_ended_ends(void **state)
{
	static const char format[] = TOP "nodes = { a = { type = \"source\"; limit = 20 }; l = { type = \"loopback\" }; d = { type = \"sink\" }; };"
		"paths = ( { in = \"a\"; out = \"l\" }, { in = \"l\"; out = \"d\"; queuelen = %u } );"
		"idle_stop = %s;";
	struct config *c;
	char text[512];
	struct super_node *sn;
	json_t *report;

	snprintf(text, sizeof(text), format, 64, "false");
	sn = start(text, &c);
	while (fake_seen(fake_of(sn, "d")) < 20)
		assert_false(super_node_wait(sn, 1));
	snprintf(text, sizeof(text), format, 128, "true");
	report = reload(sn, text, 0);
	assert_true(says(report, "kept", "path a -> l"));
	assert_true(says(report, "started", "path l -> d"));
	json_decref(report);
	assert_true(super_node_wait(sn, 20000));
	super_node_stop(sn);
	assert_no_gap(sn, "d");
	fake_end(sn, c);
}

/* Reloads may come from a thread that has none of it. */
static void new_paths_have_the_priority_of_the_gateway(void **state)
{
	static const char more[] = TOP "priority = 2; nodes = { " NODES OTHERS "};"
		"paths = ( { in = \"a\"; out = \"b\" }, { in = \"c\"; out = \"d\" } );";
	struct sched_param param = { .sched_priority = 0 };
	struct config *c;
	struct super_node *sn = start(
		TOP "priority = 2; nodes = { " NODES "}; paths = ( { in = \"a\"; out = \"b\" } );", &c);
	const struct path *p;
	int policy;

	assert_int_equal(pthread_setschedparam(pthread_self(), SCHED_OTHER,
					       &param), 0);
	json_decref(reload(sn, more, 0));
	p = list_entry(sn->paths.prev, struct path, entry);
	assert_int_equal(pthread_getschedparam(p->thread, &policy, &param), 0);
	if (!strstr(fake_log(), "(SCHED_FIFO) refused")) {
		assert_int_equal(policy, SCHED_FIFO);
		assert_int_equal(param.sched_priority, 2);
	}
	super_node_stop(sn);
	fake_end(sn, c);
}

/* A node that was polled may block in read again. */
static void descriptors_are_given_up_by_a_path_that_reads_alone(void **state)
{
	static const char format[] = TOP "nodes = { x = { type = \"polled\" }; y = { type = \"polled\" }; };"
		"paths = ( { in = %s } );";
	struct config *c;
	char text[256];
	struct super_node *sn;
	json_t *report;

	snprintf(text, sizeof(text), format, "( \"x\", \"y\" )");
	sn = start(text, &c);
	assert_true(atomic_load(&fake_of(sn, "x")->polled));
	snprintf(text, sizeof(text), format, "\"x\" }, { in = \"y\"");
	report = reload(sn, text, 0);
	assert_true(says(report, "kept", "node x"));
	json_decref(report);
	assert_false(atomic_load(&fake_of(sn, "x")->polled));
	super_node_stop(sn);
	fake_end(sn, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_settings_in_other_words_change_nothing),
		cmocka_unit_test(what_threads_of_kept_nodes_read_is_not_written),
		cmocka_unit_test(what_differs_is_replaced_and_the_rest_loses_nothing),
		cmocka_unit_test(a_path_is_replaced_below_a_source_that_stays),
		cmocka_unit_test(parts_come_and_go),
		cmocka_unit_test(a_recorder_comes_and_goes_while_the_other_path_loses_nothing),
		cmocka_unit_test(the_reader_of_several_paths_goes_and_nothing_is_lost),
		cmocka_unit_test(a_wrong_configuration_changes_nothing_and_tells_all_errors),
		cmocka_unit_test(what_cannot_start_is_told_and_can_be_started_later),
		cmocka_unit_test(figures_are_those_of_the_node_that_runs),
		cmocka_unit_test(what_could_not_be_prepared_gets_another_chance),
		cmocka_unit_test(a_path_that_reads_what_has_ended_ends),
		cmocka_unit_test(new_paths_have_the_priority_of_the_gateway),
		cmocka_unit_test(descriptors_are_given_up_by_a_path_that_reads_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
