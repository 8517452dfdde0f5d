/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control of a running super-node: nodes and paths that stop, pause and come
 * back while others go on. The fake nodes assert that nobody is in their read or
 * write while they are started or stopped.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"
#include "gateway/base/turn.h"
#include "gateway/super_node/super_node_control.h"
#include "util/clock.h"

#define TOP "stats = 0.0; hugepages = 0;\n"

static struct super_node *start(const char *text, struct config **c)
{
	struct super_node *sn = fake_super_node(text, c);

	assert_non_null(sn);
	assert_int_equal(super_node_start(sn), 0);
	return sn;
}

static void end(struct super_node *sn, struct config *c)
{
	super_node_stop(sn);
	fake_end(sn, c);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* Waits until `f` has seen more than `n`; otherwise the test's time limit ends it. */
static void wait_seen(struct fake *f, unsigned n)
{
	for (unsigned i = 0; fake_seen(f) <= n; i++) {
		assert_true(i < 20000);
		nap();
	}
}

static void wait_path_state(struct super_node *sn, const char *path,
			    const char *state)
{
	for (unsigned i = 0; i < 20000; i++) {
		json_t *o = super_node_path_json(sn, path, true);
		bool there = !strcmp(json_string_value(json_object_get(o, "state")),
				     state);

		json_decref(o);
		if (there)
			return;
		nap();
	}
	fail_msg("path %s does not become %s", path, state);
}

static int64_t node_stat(struct super_node *sn, const char *node,
			 const char *key)
{
	json_t *o = super_node_node_json(sn, node, true);
	int64_t v = json_integer_value(
		json_object_get(json_object_get(o, "stats"), key));

	json_decref(o);
	return v;
}

#define PAIR                                                              \
	TOP "nodes = { a = { type = \"source\"; mode = \"paced\" };"      \
	    "          b = { type = \"sink\"; } };"                       \
	    "paths = ( { in = \"a\"; out = \"b\" } );"

static void a_stopped_destination_is_left_out_and_comes_back(void **state)
{
	struct config *c;
	struct super_node *sn = start(PAIR, &c);
	struct fake *b = fake_of(sn, "b");
	unsigned seen;

	wait_seen(b, 5);
	assert_int_equal(super_node_node_control(sn, "b", CONTROL_STOP), 0);
	seen = fake_seen(b);
	while (node_stat(sn, "b", "not_sent") < 5)
		nap();
	assert_int_equal(fake_seen(b), seen);
	assert_int_equal(super_node_node_control(sn, "b", CONTROL_STOP),
			 -EALREADY);
	assert_int_equal(super_node_node_control(sn, "b", CONTROL_START), 0);
	wait_seen(b, seen);
	end(sn, c);
}

static void a_stopped_source_makes_its_path_wait_without_errors(void **state)
{
	struct config *c;
	struct super_node *sn = start(PAIR, &c);
	struct fake *b = fake_of(sn, "b");
	unsigned seen;

	wait_seen(b, 5);
	assert_int_equal(super_node_node_control(sn, "a", CONTROL_STOP), 0);
	wait_path_state(sn, "a -> b", "waiting");
	/* What was read is still written. */
	while (fake_seen(b) < (unsigned)node_stat(sn, "a", "received"))
		nap();
	seen = fake_seen(b);
	nap();
	assert_int_equal(fake_seen(b), seen);
	assert_int_equal(super_node_node_control(sn, "a", CONTROL_PAUSE),
			 -EPERM);
	assert_int_equal(super_node_node_control(sn, "a", CONTROL_START), 0);
	wait_path_state(sn, "0", "running");
	wait_seen(b, seen);
	/* Begun anew: hooks took the old numbers for no reason to drop. */
	assert_null(strstr(fake_log(), "error"));
	end(sn, c);
}

static void a_source_that_refuses_to_start_again_stays_stopped(void **state)
{
	struct config *c;
	struct super_node *sn = start(PAIR, &c);
	struct fake *a = fake_of(sn, "a"), *b = fake_of(sn, "b");
	unsigned seen;

	wait_seen(b, 1);
	atomic_store(&a->refuse, true);
	assert_int_equal(super_node_node_control(sn, "a", CONTROL_RESTART),
			 -EIO);
	wait_path_state(sn, "0", "waiting");
	assert_int_equal(fake_log_errors(), 1);
	atomic_store(&a->refuse, false);
	seen = fake_seen(b);
	assert_int_equal(super_node_node_control(sn, "a", CONTROL_START), 0);
	wait_seen(b, seen);
	super_node_stop(sn);
	fake_log_start();
	fake_end(sn, c);
}

/* What was under way is kept back, so nothing is missing afterwards. */
static void pausing_a_source_or_path_loses_nothing(void **state)
{
	struct config *c;
	struct super_node *sn = start(PAIR, &c);
	struct fake *b = fake_of(sn, "b");

	for (unsigned i = 0; i < 40; i++) {
		bool path = i % 2;
		unsigned seen = fake_seen(b);
		int ret;

		wait_seen(b, seen + i % 3);
		ret = path ? super_node_path_control(sn, "a -> b", CONTROL_PAUSE) :
			     super_node_node_control(sn, "a", CONTROL_PAUSE);
		assert_int_equal(ret, 0);
		if (path) {
			seen = fake_seen(b);
			nap();
			assert_int_equal(fake_seen(b), seen);
		}
		ret = path ? super_node_path_control(sn, "a -> b", CONTROL_RESUME) :
			     super_node_node_control(sn, "a", CONTROL_RESUME);
		assert_int_equal(ret, 0);
	}
	/* Also between a read and what goes out of it. */
	for (unsigned i = 0; i < 3000 && fake_seen(b) < FAKE_SEEN_MAX / 2; i++) {
		assert_int_equal(super_node_path_control(sn, "a -> b", CONTROL_PAUSE), 0);
		if (i % 8 == 0)
			nap();
		assert_int_equal(super_node_path_control(sn, "a -> b", CONTROL_RESUME), 0);
		for (unsigned k = (i * 7919) % 40000; k; k--)
			atomic_signal_fence(memory_order_seq_cst);
	}
	super_node_stop(sn);
	for (unsigned i = 0; i < b->seen_count; i++)
		assert_int_equal(b->seen[i], i);
	fake_end(sn, c);
}

/* Pauses and resumes until the reader of `f` has noticed and said so. */
static void until_resumed(struct super_node *sn, const char *node,
			  const char *path, struct fake *f)
{
	const uint64_t one = 1;
	unsigned before = atomic_load(&f->resumed);

	for (unsigned i = 0; atomic_load(&f->resumed) == before; i++) {
		assert_true(i < 20000);
		assert_int_equal(path ? super_node_path_control(sn, path, CONTROL_PAUSE) :
					super_node_node_control(sn, node, CONTROL_PAUSE), 0);
		nap();
		assert_int_equal(path ? super_node_path_control(sn, path, CONTROL_RESUME) :
					super_node_node_control(sn, node, CONTROL_RESUME), 0);
		if (f->event_fd)
			assert_int_equal(write(f->event_fd, &one, sizeof(one)),
					 sizeof(one));
		nap();
	}
}

/* However it is read: directly, through a queue, or with others by descriptors. */
static void a_node_is_told_that_it_was_not_read_for_a_pause(void **state)
{
	static const char *const configs[] = {
		PAIR,
		TOP "nodes = { a = { type = \"source\"; mode = \"paced\" };"
		    "          c = { type = \"source\"; mode = \"paced\" };"
		    "          b = { type = \"sink\"; } };"
		    "paths = ( { in = ( \"a\", \"c\" ); out = \"b\" } );",
		TOP "nodes = { a = { type = \"polled\" }; c = { type = \"polled\" }; };"
		    "paths = ( { in = ( \"a\", \"c\" ) } );",
	};

	for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
		struct config *c;
		struct super_node *sn = start(configs[i], &c);
		struct fake *a = fake_of(sn, "a");

		if (i < 2)
			wait_seen(fake_of(sn, "b"), 20);
		assert_int_equal(atomic_load(&a->resumed), 0);
		until_resumed(sn, "a", NULL, a);
		until_resumed(sn, NULL, "0", a);
		end(sn, c);
	}
}

static void wait_spinner(bool there)
{
	for (unsigned i = 0; turn_has_spinner() != there; i++) {
		assert_true(i < 20000);
		nap();
	}
}

/* Other paths would wait for it to run them. */
static void a_generator_that_rests_counts_as_no_spinner(void **state)
{
	static const enum control_verb rests[] = { CONTROL_PAUSE, CONTROL_STOP };
	static const enum control_verb goes_on[] = { CONTROL_RESUME, CONTROL_START };
	struct config *c;
	struct super_node *sn = start(TOP "nodes = { a = { type = \"source\"; mode = \"paced\" } };"
				      "paths = ( { in = \"a\" } );", &c);

	wait_spinner(true);
	/* In a read, behind it, between two. */
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(super_node_path_control(sn, "0", rests[i % 2]), 0);
		wait_spinner(false);
		assert_int_equal(super_node_path_control(sn, "0", goes_on[i % 2]), 0);
		wait_spinner(true);
		assert_int_equal(super_node_node_control(sn, "a", rests[i % 2]), 0);
		wait_spinner(false);
		assert_int_equal(super_node_node_control(sn, "a", goes_on[i % 2]), 0);
		wait_spinner(true);
	}
	end(sn, c);
	assert_false(turn_has_spinner());
}

static void a_paused_destination_drops_and_counts(void **state)
{
	struct config *c;
	struct super_node *sn = start(PAIR, &c);
	struct fake *b = fake_of(sn, "b");
	unsigned seen;

	assert_int_equal(super_node_node_control(sn, "b", CONTROL_PAUSE), 0);
	assert_int_equal(super_node_node_control(sn, "b", CONTROL_PAUSE),
			 -EALREADY);
	while (node_stat(sn, "b", "not_sent") < 5)
		nap();
	seen = fake_seen(b);
	assert_int_equal(super_node_node_control(sn, "b", CONTROL_RESUME), 0);
	wait_seen(b, seen);
	assert_int_equal(super_node_node_control(sn, "b", CONTROL_RESUME),
			 -EALREADY);
	end(sn, c);
}

static void a_path_that_rests_does_not_hold_up_those_it_reads_for(void **state)
{
	struct config *c;
	struct super_node *sn = start(
		TOP "nodes = { a = { type = \"source\"; mode = \"paced\" };"
		    "          b = { type = \"sink\"; }; d = { type = \"sink\"; } };"
		    "paths = ( { in = \"a\"; out = \"b\" }, { in = \"a\"; out = \"d\" } );",
		&c);
	struct fake *b = fake_of(sn, "b"), *d = fake_of(sn, "d");
	unsigned seen;

	for (unsigned i = 0; i < 2; i++) {
		struct fake *rests = i ? d : b, *goes = i ? b : d;
		const char *path = i ? "1" : "0";

		assert_int_equal(super_node_path_control(sn, path, CONTROL_STOP),
				 0);
		wait_path_state(sn, path, "stopped");
		seen = fake_seen(rests);
		wait_seen(goes, fake_seen(goes) + 20);
		assert_int_equal(fake_seen(rests), seen);
		assert_int_equal(super_node_path_control(sn, path,
							 CONTROL_RESUME),
				 -EPERM);
		assert_int_equal(super_node_path_control(sn, path,
							 CONTROL_START), 0);
		wait_seen(rests, seen);
	}
	end(sn, c);
}

static void a_source_that_has_ended_begins_anew(void **state)
{
	struct config *c;
	struct super_node *sn = start(
		TOP "nodes = { a = { type = \"source\"; limit = 10 };"
		    "          l = { type = \"loopback\"; };"
		    "          b = { type = \"sink\"; }; d = { type = \"sink\"; } };"
		    "paths = ( { in = \"a\"; out = \"l\" }, { in = \"l\"; out = \"b\" },"
		    "          { in = \"a\"; out = \"d\" } );", &c);
	struct fake *b = fake_of(sn, "b"), *d = fake_of(sn, "d");

	for (unsigned round = 1; round <= 20; round++) {
		wait_seen(b, round * 10 - 1);
		wait_seen(d, round * 10 - 1);
		for (unsigned p = 0; p < 3; p++)
			wait_path_state(sn, (const char *[]){ "0", "1", "2" }[p],
					"ended");
		assert_int_equal(fake_seen(b), round * 10);
		assert_int_equal(fake_seen(d), round * 10);
		assert_int_equal(super_node_node_control(sn, "a",
							 CONTROL_RESTART), 0);
	}
	end(sn, c);
}

static void figures_can_be_read_and_set_to_zero(void **state)
{
	struct config *c;
	struct super_node *sn = start(PAIR, &c);
	json_t *all, *path;
	double p50 = -1;
	const char *path_state;

	wait_seen(fake_of(sn, "b"), 20);
	all = super_node_snapshot(sn);
	assert_non_null(all);
	path = json_array_get(json_object_get(all, "paths"), 0);
	assert_int_equal(json_unpack(path, "{s:s, s:{s:{s:f}}}", "state",
				     &path_state, "stats", "latency", "p50_us",
				     &p50), 0);
	assert_string_equal(path_state, "running");
	assert_true(p50 > 0);
	json_decref(all);
	assert_true(node_stat(sn, "a", "received") >= 20);
	assert_int_equal(super_node_node_control(sn, "a", CONTROL_STOP), 0);
	while (fake_seen(fake_of(sn, "b")) < (unsigned)node_stat(sn, "a", "received"))
		nap();
	assert_int_equal(super_node_node_reset(sn, NULL), 0);
	assert_int_equal(super_node_path_reset(sn, "0"), 0);
	assert_int_equal(node_stat(sn, "a", "received"), 0);
	all = super_node_path_json(sn, "0", true);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(
				 json_object_get(all, "stats"), "latency"),
				 "count")), 0);
	json_decref(all);
	end(sn, c);
}

static void what_does_not_exist_or_fit_is_refused(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(PAIR, &c);

	assert_non_null(sn);
	assert_int_equal(super_node_node_control(sn, "a", CONTROL_STOP),
			 -ESHUTDOWN);
	assert_int_equal(super_node_start(sn), 0);
	assert_int_equal(super_node_node_control(sn, "x", CONTROL_STOP),
			 -ENOENT);
	assert_int_equal(super_node_path_control(sn, "7", CONTROL_STOP),
			 -ENOENT);
	assert_int_equal(super_node_node_control(sn, "a", CONTROL_START),
			 -EALREADY);
	assert_int_equal(super_node_node_control(sn, "a", CONTROL_RESUME),
			 -EALREADY);
	assert_int_equal(super_node_node_rewind(sn, "a"), -ENOTSUP);
	assert_null(super_node_node_json(sn, "x", false));
	super_node_stop(sn);
	assert_int_equal(super_node_node_control(sn, "a", CONTROL_STOP),
			 -ESHUTDOWN);
	fake_end(sn, c);
}

static void identifiers_are_given_or_stay_the_same(void **state)
{
	char first[2][37];
	struct config *c;

	for (unsigned i = 0; i < 2; i++) {
		struct super_node *sn = fake_super_node(
			TOP "nodes = { a = { type = \"source\" }; b = { type = \"sink\"; uuid = \"0123ABCD-89ab-cdef-0123-456789abcdef\" }; };"
			    "paths = ( { in = \"a\"; out = \"b\" } );", &c);

		assert_non_null(sn);
		strcpy(first[i], super_node_find(sn, "a")->uuid);
		assert_string_equal(super_node_find(sn, "b")->uuid,
				    "0123abcd-89ab-cdef-0123-456789abcdef");
		super_node_destroy(sn);
		config_destroy(c);
	}
	assert_string_equal(first[0], first[1]);
	assert_int_equal(strlen(first[0]), 36);
}

static void top_level_keys_are_checked(void **state)
{
	static const struct {
		const char *text, *message;
	} wrong[] = {
		{ "logging = { pattern = \"%v %Q\" };", "'%Q' is not understood" },
		{ "logging = { level = \"loud\" };", "'loud' is none of" },
		{ "logging = { expressions = \"x\" };", "expected a list" },
		{ "logging = { expressions = ( { name = \"x\"; level = \"y\" } ) };", "'y' is none of" },
		{ "logging = { expressions = ( { name = \"x\" } ) };", "level: missing" },
		{ "http = { htdocs = \"x\" };", "htdocs: unknown key" },
		{ "http = { enabled = false; ssl_cert = \"x\" };", "ssl_private_key: is missing" },
		{ "http = { address = \"localhost\" };", "no numeric address" },
		{ "http = { address = \"*\" };", "address: other hosts can reach" },
		{ "http = { address = \"192.0.2.1\"; tokens = ( ) };", "token_file, tokens or ssl_ca" },
		{ "http = { ssl_ca = \"x\" };", "ssl_cert: is missing" },
		{ "http = { tokens = ( { role = \"king\"; sha256 = \"x\" } ) };", "role" },
		{ "http = { tokens = ( { role = \"watch\"; sha256 = \"12\" } ) };", "64 hexadecimal digits" },
		{ "http = { tokens = \"x\" };", "tokens: expected a list" },
		{ "http = { origins = ( \"lab.example/x\" ) };", "origins: expected origins" },
		{ "uuid = \"12\";", "is no UUID" },
		{ "control = \"\";", "expected a path" },
		{ "priority = 100;", "out of range" },
	};
	static const char *const right[] = {
		"http = { port = 80 };", "http = { enabled = false; address = \"*\" };",
		"http = { address = \"*\"; token_file = \"/x\" };",
		"http = { address = \"::1\"; origins = ( \"https://lab.example:8443\" ) };",
	};
	struct config *c;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_null(fake_super_node(wrong[i].text, &c));
		if (!strstr(fake_log(), wrong[i].message))
			fail_msg("%s: %s", wrong[i].text, fake_log());
		config_destroy(c);
	}
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		struct super_node *sn = fake_super_node(right[i], &c);

		assert_non_null(sn);
		fake_end(sn, c);
	}
}

static void *command(void *arg)
{
	struct super_node *sn = ((void **)arg)[0];
	uint64_t x = *(uint64_t *)((void **)arg)[1] * 2 + 1;

	for (unsigned i = 0; i < 400; i++) {
		static const char *const nodes[] = { "a", "m", "l", "b", "d" };
		static const char *const paths[] = { "0", "1", "2" };

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (x % 9 == 0)
			json_decref(super_node_snapshot(sn));
		else if (x % 9 == 1)
			super_node_path_reset(sn, paths[x / 64 % 3]);
		else if (x % 3)
			super_node_node_control(sn, nodes[x / 64 % 5],
						(enum control_verb)(x / 512 % 5));
		else
			super_node_path_control(sn, paths[x / 64 % 3],
						(enum control_verb)(x / 512 % 5));
	}
	return NULL;
}

/* Nodes that hold on to samples, a loop, a path of two sources with a rate. */
static void command_from_several_threads(bool barrier_by_kernel)
{
	uint64_t seeds[] = { 11, 222, 3333 };
	pthread_t threads[3];
	void *args[3][2];
	struct config *c;
	struct super_node *sn = fake_super_node(
		TOP "nodes = { a = { type = \"source\"; mode = \"paced\"; };"
		    "          m = { type = \"source\"; mode = \"paced\"; };"
		    "          l = { type = \"loopback\"; queuelen = 16 };"
		    "          b = { type = \"sink\"; mode = \"hold\" }; d = { type = \"sink\"; mode = \"hold\"; vectorize = 3 } };"
		    "paths = ( { in = \"a\"; out = \"l\"; queuelen = 64 },"
		    "          { in = ( \"l\", \"m\" ); out = \"b\"; rate = 500.0; queuelen = 64 },"
		    "          { in = \"a\"; out = \"d\"; queuelen = 64 } );", &c);

	assert_non_null(sn);
	if (!barrier_by_kernel)
		gate_barrier_by_kernel = false;
	assert_int_equal(super_node_start(sn), 0);
	for (unsigned i = 0; i < 3; i++) {
		args[i][0] = sn;
		args[i][1] = &seeds[i];
		pthread_create(&threads[i], NULL, command, args[i]);
	}
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	super_node_stop(sn);
	assert_true(fake_seen(fake_of(sn, "b")) > 0);
	fake_end(sn, c);
}

static void commands_from_several_threads_lose_no_sample(void **state)
{
	command_from_several_threads(true);
}

static void so_it_is_where_the_kernel_runs_no_barriers(void **state)
{
	command_from_several_threads(false);
}

/* Another path waits for room in its queue, which takes as long as it takes. */
static void a_source_can_be_restarted_while_a_queue_is_full(void **state)
{
	struct config *c;
	struct super_node *sn = start(
		TOP "nodes = { a = { type = \"source\"; limit = 3000 }; b = { type = \"sink\" };"
		    "          d = { type = \"sink\"; mode = \"wait\"; limit = 1000000000 } };"
		    "paths = ( { in = \"a\"; out = \"b\" },"
		    "          { in = \"a\"; out = \"d\"; queuelen = 8; queue_full = \"block\" } );", &c);
	uint64_t since = clock_now_ns();

	/* The second path is in a write, and its queue is filled. */
	wait_seen(fake_of(sn, "b"), 8);
	assert_int_equal(super_node_node_control(sn, "a", CONTROL_RESTART), 0);
	assert_true(clock_now_ns() - since < 8 * NSEC_PER_SEC);
	atomic_store(&fake_of(sn, "d")->interrupted, true);
	wait_seen(fake_of(sn, "d"), 100);
	end(sn, c);
}

/* The end of the source and the path's stop may meet in the path's hooks. */
static void a_path_is_stopped_while_it_ends(void **state)
{
	struct config *c;
	struct super_node *sn = start(
		TOP "nodes = { a = { type = \"source\"; limit = 20 }; b = { type = \"sink\" }; };"
		    "paths = ( { in = \"a\"; out = \"b\"; hooks = ( { type = \"reorder_ts\"; window_size = 8 } ) } );"
		    "idle_stop = false;", &c);

	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(super_node_node_control(sn, "a", CONTROL_RESTART), 0);
		for (volatile unsigned k = 0; k < i * 50; k++)
			;
		assert_int_equal(super_node_path_control(sn, "0", CONTROL_STOP), 0);
		assert_int_equal(super_node_path_control(sn, "0", CONTROL_START), 0);
	}
	end(sn, c);
}

/* No path writes the node any more; a restart does not change that. */
static void a_loop_whose_writer_has_ended_ends_again(void **state)
{
	struct config *c;
	struct super_node *sn = start(
		TOP "nodes = { a = { type = \"source\"; limit = 20 }; l = { type = \"loopback\" }; d = { type = \"sink\" }; };"
		    "paths = ( { in = \"a\"; out = \"l\" }, { in = \"l\"; out = \"d\" } );"
		    "idle_stop = false;", &c);

	wait_path_state(sn, "1", "ended");
	assert_int_equal(super_node_node_control(sn, "l", CONTROL_RESTART), 0);
	/* Time to look again; too little of it hides a fault, no more. */
	for (int i = 0; i < 30; i++)
		nap();
	wait_path_state(sn, "1", "ended");
	assert_int_equal(super_node_node_control(sn, "a", CONTROL_RESTART), 0);
	wait_seen(fake_of(sn, "d"), 39);
	wait_path_state(sn, "1", "ended");
	end(sn, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_destination_is_left_out_and_comes_back),
		cmocka_unit_test(a_stopped_source_makes_its_path_wait_without_errors),
		cmocka_unit_test(a_source_that_refuses_to_start_again_stays_stopped),
		cmocka_unit_test(pausing_a_source_or_path_loses_nothing),
		cmocka_unit_test(a_node_is_told_that_it_was_not_read_for_a_pause),
		cmocka_unit_test(a_generator_that_rests_counts_as_no_spinner),
		cmocka_unit_test(a_paused_destination_drops_and_counts),
		cmocka_unit_test(a_path_that_rests_does_not_hold_up_those_it_reads_for),
		cmocka_unit_test(a_source_that_has_ended_begins_anew),
		cmocka_unit_test(figures_can_be_read_and_set_to_zero),
		cmocka_unit_test(what_does_not_exist_or_fit_is_refused),
		cmocka_unit_test(identifiers_are_given_or_stay_the_same),
		cmocka_unit_test(top_level_keys_are_checked),
		cmocka_unit_test(a_source_can_be_restarted_while_a_queue_is_full),
		cmocka_unit_test(a_path_is_stopped_while_it_ends),
		cmocka_unit_test(a_loop_whose_writer_has_ended_ends_again),
		cmocka_unit_test(commands_from_several_threads_lose_no_sample),
		cmocka_unit_test(so_it_is_where_the_kernel_runs_no_barriers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
