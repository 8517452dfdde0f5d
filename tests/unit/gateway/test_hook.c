/* SPDX-License-Identifier: BSD-2-Clause */
/* The built-in hooks, their order, and private copies of shared samples. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"
#include "gateway/plugin/hook.h"
#include "util/clock.h"

struct fixture {
	struct config *c;
	struct hook_list *hooks;
	struct node node;
	struct pool pool;
};

static int setup(struct fixture *f, const char *hooks, bool builtin)
{
	struct signal_list *none;
	unsigned capacity = 2;
	int ret;

	clock_init();
	fake_log_start();
	memset(f, 0, sizeof(*f));
	f->node.name = (char *)"n";
	f->c = fake_config(hooks);
	assert_int_equal(pool_init(&f->pool, 8, 2, &memory_heap), 0);
	ret = hook_list_parse(&f->hooks, f->c,
			      json_object_get(config_root(f->c), "hooks"),
			      HOOK_NODE_READ, &f->node, "n");
	if (ret)
		return ret;
	if (builtin)
		assert_int_equal(hook_list_add_builtin(f->hooks, f->c,
						       HOOK_NODE_READ,
						       &f->node, "n"),
				 0);
	assert_int_equal(hook_list_signals(f->hooks, NULL, &none, &capacity), 0);
	return hook_list_start(f->hooks);
}

static void end(struct fixture *f)
{
	hook_list_stop(f->hooks);
	hook_list_destroy(f->hooks);
	config_destroy(f->c);
	assert_int_equal(pool_destroy(&f->pool), 0);
}

/* Sends one sample; true when it comes out. */
static bool pass(struct fixture *f, uint64_t sequence, uint64_t origin_ns)
{
	struct sample *s = sample_alloc(&f->pool);
	unsigned n;

	s->sequence = sequence;
	s->origin = timespec_from_ns(origin_ns);
	s->received = timespec_from_ns(origin_ns + 5000);
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
		   SAMPLE_HAS_RECEIVED;
	n = hook_list_process(f->hooks, &s, 1);
	if (n)
		sample_put(s);
	return n;
}

static void fix_adds_what_is_missing(void **state)
{
	struct fixture f;
	struct sample *s;

	assert_int_equal(setup(&f, "hooks = ( \"fix\" );", false), 0);
	f.node.sequence = 40;
	s = sample_alloc(&f.pool);
	assert_int_equal(hook_list_process(f.hooks, &s, 1), 1);
	assert_int_equal(s->sequence, 40);
	assert_true(s->received.tv_sec > 0);
	assert_int_equal(s->origin.tv_sec, s->received.tv_sec);
	assert_int_equal(s->flags, SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
					   SAMPLE_HAS_RECEIVED);
	sample_put(s);
	/* What is there stays. */
	s = sample_alloc(&f.pool);
	s->sequence = 7;
	s->origin.tv_sec = 3;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN;
	assert_int_equal(hook_list_process(f.hooks, &s, 1), 1);
	assert_int_equal(s->sequence, 7);
	assert_int_equal(s->origin.tv_sec, 3);
	assert_true(s->received.tv_sec > 0);
	sample_put(s);
	end(&f);
}

static void drop_takes_out_doubles_and_latecomers(void **state)
{
	struct fixture f;

	assert_int_equal(setup(&f, "", true), 0);
	assert_true(pass(&f, 0, 1000));
	assert_true(pass(&f, 1, 2000));
	assert_false(pass(&f, 1, 2000));
	assert_true(pass(&f, 5, 6000));
	assert_false(pass(&f, 3, 4000));
	assert_true(pass(&f, 6, 7000));
	end(&f);
}

static void a_restarted_source_is_let_through(void **state)
{
	struct fixture f;

	assert_int_equal(setup(&f, "", true), 0);
	assert_true(pass(&f, 1000, 1000000));
	assert_true(pass(&f, 0, 2000000));
	assert_true(pass(&f, 1, 2001000));
	/* The first samples of the next start are lost. */
	assert_true(pass(&f, 900, 3000000));
	assert_true(pass(&f, 12, 4000000));
	assert_true(pass(&f, 13, 4001000));
	assert_false(pass(&f, 13, 4001000));
	assert_non_null(strstr(fake_log(), "began anew, sequence 12 after 900"));
	end(&f);
}

static void numbers_of_32_bits_that_wrap_are_no_restart(void **state)
{
	/* The second time with losses. */
	static const uint64_t numbers[][4] = { { UINT32_MAX - 1, UINT32_MAX, 0, 1 },
					       { UINT32_MAX - 6, UINT32_MAX - 5, 3, 4 } };

	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
		struct fixture f;

		assert_int_equal(setup(&f, "", true), 0);
		for (uint64_t i = 0; i < 4; i++)
			assert_true(pass(&f, numbers[k][i], (i + 1) * 1000000));
		assert_false(pass(&f, numbers[k][3], 4000000));
		assert_null(strstr(fake_log(), "began anew"));
		end(&f);
	}
}

/* A wrong number goes through, and so do those behind it. */
static void one_wrong_number_stops_nothing(void **state)
{
	static const uint64_t wrong[] = { UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63,
					  UINT64_C(1) << 40, UINT32_MAX, 0, 5 };

	for (size_t k = 0; k < ARRAY_SIZE(wrong); k++) {
		struct fixture f;

		assert_int_equal(setup(&f, "", true), 0);
		for (uint64_t i = 0; i < 40; i++)
			assert_true(pass(&f, i == 10 ? wrong[k] : 1000 + i, (i + 1) * 1000000));
		end(&f);
	}
}

/* Numbers that stand still: what drop leaves out it says. */
static void a_number_that_stands_still_is_told(void **state)
{
	static const uint64_t numbers[] = { 0, 7, UINT64_MAX };

	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
		struct fixture f;

		assert_int_equal(setup(&f, "", true), 0);
		assert_true(pass(&f, numbers[k], 1000000));
		for (uint64_t i = 1; i < 6; i++)
			assert_false(pass(&f, numbers[k], (i + 1) * 1000000));
		assert_non_null(strstr(fake_log(), "sample after sample has the sequence number"));
		end(&f);
	}
}

/* A network's doubles have the same time: no word but at the end. */
static void doubles_are_no_number_that_stands_still(void **state)
{
	struct fixture f;

	assert_int_equal(setup(&f, "", true), 0);
	for (uint64_t i = 0; i < 20; i++) {
		assert_true(pass(&f, i, (i + 1) * 1000000));
		assert_false(pass(&f, i, (i + 1) * 1000000));
	}
	assert_null(strstr(fake_log(), "sample after sample"));
	end(&f);
}

static void hooks_run_by_priority(void **state)
{
	static const char *const order[] = { "restart", "stats", "drop", "fix" };
	unsigned i = 0;
	struct fixture f;

	assert_int_equal(setup(&f,
			       "hooks = ( { type = \"fix\"; priority = 50 }, { type = \"stats\"; output = \"/dev/null\" } );",
			       true),
			 0);
	assert_int_equal(f.hooks->count, 4);
	list_for_each(h, &f.hooks->hooks, struct hook, entry)
		assert_string_equal(h->type->name, order[i++]);
	end(&f);
}

static void a_disabled_hook_is_not_there(void **state)
{
	struct fixture f;

	assert_int_equal(setup(&f, "hooks = ( { type = \"drop\"; enabled = false } );", false), 0);
	assert_int_equal(f.hooks->count, 0);
	assert_true(pass(&f, 1, 1));
	assert_true(pass(&f, 1, 1));
	end(&f);
}

static void a_shared_sample_is_copied_before_it_is_changed(void **state)
{
	struct sample *s, *other;
	struct fixture f;

	assert_int_equal(setup(&f, "hooks = ( \"fix\" );", false), 0);
	s = other = sample_alloc(&f.pool);
	sample_get(other);
	assert_int_equal(hook_list_process(f.hooks, &s, 1), 1);
	assert_ptr_not_equal(s, other);
	assert_int_equal(other->flags, 0);
	assert_int_equal(other->refcnt, 1);
	sample_put(s);
	sample_put(other);
	end(&f);

	/* One that only reads gets the original. */
	assert_int_equal(setup(&f, "hooks = ( \"drop\" );", false), 0);
	s = other = sample_alloc(&f.pool);
	sample_get(other);
	assert_int_equal(hook_list_process(f.hooks, &s, 1), 1);
	assert_ptr_equal(s, other);
	sample_put(s);
	sample_put(other);
	end(&f);
}

static void stats_counts_and_prints_json(void **state)
{
	char path[] = "/tmp/busbar-test-XXXXXX", text[200];
	int fd = mkstemp(path);
	struct fixture f;
	json_t *o;

	assert_true(fd >= 0);
	close(fd);
	snprintf(text, sizeof(text),
		 "hooks = ( { type = \"stats\"; format = \"json\"; warmup = 2; output = \"%s\" } );",
		 path);
	assert_int_equal(setup(&f, text, false), 0);
	for (unsigned i = 0; i < 12; i++)
		assert_true(pass(&f, i, 1000000 + 1000 * i));
	assert_true(pass(&f, 15, 1015000)); /* 12, 13, 14 are lost */
	assert_true(pass(&f, 13, 1013000));
	end(&f);

	o = json_load_file(path, JSON_DISABLE_EOF_CHECK, NULL);
	assert_non_null(o);
	assert_int_equal(json_integer_value(json_object_get(o, "received")), 14);
	assert_int_equal(json_integer_value(json_object_get(o, "lost")), 3);
	assert_int_equal(json_integer_value(json_object_get(
				 json_object_get(o, "reordered"), "total")),
			 1);
	assert_true(json_real_value(json_object_get(json_object_get(o, "owd"),
						    "highest")) == 5e-6);
	assert_true(json_real_value(json_object_get(
			    json_object_get(o, "gap_sent"), "p50")) < 1.1e-6);
	json_decref(o);
	unlink(path);
}

static void a_hook_refuses_a_place_it_cannot_stand(void **state)
{
	struct config *c;

	assert_null(fake_super_node("nodes = { a = { type = \"source\"; out = { hooks = ( \"stats\" ) } } };", &c));
	assert_non_null(strstr(fake_log(), "hook 'stats' cannot stand on the `out` side"));
	config_destroy(c);
}

static void builtin_hooks_go_before_others_of_their_priority(void **state)
{
	static const char *const order[] = { "fix", "restart", "dump", "drop" };
	unsigned i = 0;
	struct fixture f;

	assert_int_equal(setup(&f, "hooks = ( \"dump\" );", true), 0);
	assert_int_equal(f.hooks->count, 4);
	list_for_each(h, &f.hooks->hooks, struct hook, entry)
		assert_string_equal(h->type->name, order[i++]);
	end(&f);
}

static void a_complete_sample_is_not_copied_by_builtin_hooks(void **state)
{
	struct sample *s, *other;
	struct fixture f;

	assert_int_equal(setup(&f, "", true), 0);
	s = other = sample_get(sample_alloc(&f.pool));
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
		   SAMPLE_HAS_RECEIVED;
	assert_int_equal(hook_list_process(f.hooks, &s, 1), 1);
	assert_ptr_equal(s, other);
	sample_put(s);
	sample_put(other);
	end(&f);
}

static void a_restart_is_told_also_when_its_sample_is_dropped(void **state)
{
	struct fixture f;

	/* decimate has dropped two of three when the source begins anew; the
	 * first sample of that is skipped before it comes there. */
	assert_int_equal(setup(&f, "hooks = ( { type = \"skip_first\"; samples = 1; priority = 10 },"
				   " { type = \"decimate\"; ratio = 4; priority = 20 } );", true), 0);
	assert_false(pass(&f, 100, 1000));
	assert_true(pass(&f, 101, 2000));
	assert_false(pass(&f, 102, 3000));
	assert_false(pass(&f, 0, 4000));
	assert_true(f.hooks->began_anew);
	assert_true(pass(&f, 1, 5000));
	assert_false(f.hooks->began_anew);
	assert_false(pass(&f, 2, 6000));
	end(&f);
}

static void a_hook_that_cannot_go_on_says_why_and_how_often(void **state)
{
	struct fixture f;
	const char *first;

	assert_int_equal(setup(&f, "hooks = ( { type = \"gate\"; signal = 1 } );", false), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_false(pass(&f, i, 1000 * i));
	end(&f);
	first = strstr(fake_log(), "n: hook gate: a sample without the signal; such samples are dropped");
	assert_non_null(first);
	assert_null(strstr(first + 20, "a sample without the signal"));
	assert_non_null(strstr(fake_log(), "n: hook gate could not process 3 samples"));
}

static void a_name_alone_lacks_keys_at_its_place(void **state)
{
	struct fixture f;

	assert_int_not_equal(setup(&f, "hooks = ( \"fix\",\n\"decimate\" );", false), 0);
	assert_non_null(strstr(fake_log(), "test.conf:2: hooks[1].ratio: missing, but required"));
	config_destroy(f.c);
	assert_int_equal(pool_destroy(&f.pool), 0);
}

/* Samples that hooks hold at the end, wherever they stand, arrive. */
static void assert_all_arrive(const char *in, const char *path, const char *out)
{
	struct config *c;
	struct super_node *sn;
	char text[1000];
	struct fake *sink;

	snprintf(text, sizeof(text),
		 "hugepages = 0; idle_stop = true; nodes = { a = { type = \"source\"; limit = 500; in = { %s } };"
		 " b = { type = \"sink\"; out = { %s } } };"
		 " paths = ( { in = \"a\"; out = \"b\"; queuelen = 16; %s } );",
		 in, out, path);
	sn = fake_super_node(text, &c);
	assert_non_null(sn);
	fake_run(sn);
	sink = fake_of(sn, "b");
	assert_int_equal(sink->seen_count, 500);
	for (unsigned i = 0; i < 500; i++)
		assert_int_equal(sink->seen[i], i);
	fake_end(sn, c);
}

static void what_hooks_hold_arrives_at_the_end(void **state)
{
	const char *hooks = "hooks = ( { type = \"reorder_ts\"; window_size = 40; flush = true } );";

	assert_all_arrive(hooks, "", "");
	assert_all_arrive("", hooks, "");
	assert_all_arrive("", "", hooks);
	assert_all_arrive(hooks, hooks, hooks);
	/* Queued instead of direct. */
	assert_all_arrive(hooks, "poll = true; hooks = ( { type = \"reorder_ts\"; flush = true } );", hooks);
}

static void what_hooks_hold_arrives_when_it_is_stopped(void **state)
{
	const char *const keys[] = { "", "poll = true;" };

	for (unsigned k = 0; k < ARRAY_SIZE(keys); k++) {
		struct config *c;
		struct super_node *sn;
		char text[500];
		struct fake *sink;

		snprintf(text, sizeof(text),
			 "hugepages = 0; nodes = { a = { type = \"source\"; mode = \"idle\"; limit = 100; in = { hooks = ( { type = \"reorder_ts\"; flush = true } ) } };"
			 " b = { type = \"sink\" } }; paths = ( { in = \"a\"; out = \"b\"; hooks = ( { type = \"reorder_ts\"; flush = true } ); %s } );",
			 keys[k]);
		sn = fake_super_node(text, &c);
		assert_non_null(sn);
		sink = fake_of(sn, "b");
		assert_int_equal(super_node_start(sn), 0);
		for (unsigned i = 0; i < 5000 && fake_seen(sink) < 68; i++)
			usleep(1000);
		/* The source has given all, and would go on for ever. */
		assert_int_equal(fake_seen(sink), 68);
		super_node_stop(sn);
		assert_int_equal(fake_seen(sink), 100);
		fake_end(sn, c);
	}
}

static void held_samples_reach_every_path_of_a_node(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(
		"hugepages = 0; idle_stop = true; nodes = { a = { type = \"source\"; limit = 300; in = { hooks = ( { type = \"reorder_ts\"; flush = true } ) } };"
		" b = { type = \"sink\" }; d = { type = \"sink\" } };"
		" paths = ( { in = \"a\"; out = \"b\" }, { in = \"a\"; out = \"d\" } );", &c);

	assert_non_null(sn);
	fake_run(sn);
	assert_int_equal(fake_of(sn, "b")->seen_count, 300);
	assert_int_equal(fake_of(sn, "d")->seen_count, 300);
	fake_end(sn, c);
}

static void signals_of_hooks_reach_what_comes_behind(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(
		"hugepages = 0; idle_stop = true; nodes = { a = { type = \"source\"; limit = 5; in = { signals = ( { name = \"u\" }, { name = \"v\" } );"
		" hooks = ( { type = \"average\"; offset = 0; signals = ( \"u\", \"v\" ) } ) } };"
		" b = { type = \"sink\"; out = { hooks = ( { type = \"scale\"; signal = \"mean\"; offset = 7 } ) } } };"
		" paths = ( { in = \"a\"; out = \"b\"; hooks = ( { type = \"cast\"; signal = \"average\"; new_name = \"mean\" } ) } );", &c);

	assert_non_null(sn);
	assert_string_equal(super_node_find(sn, "b")->out.signals->signals[0].name, "mean");
	fake_run(sn);
	/* Its values are n and -n. */
	assert_true(fake_of(sn, "b")->first[4] == 7);
	assert_int_equal(fake_of(sn, "b")->lengths[4], 3);
	assert_true(fake_of(sn, "b")->second[4] == 4);
	fake_end(sn, c);
}

static void builtin_hooks_can_be_switched_off(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(
		"nodes = { a = { type = \"source\"; builtin = false }; b = { type = \"source\" };"
		" d = { type = \"source\"; in = { builtin = false } } };", &c);

	assert_non_null(sn);
	assert_int_equal(super_node_find(sn, "a")->in.hooks->count, 0);
	assert_int_equal(super_node_find(sn, "b")->in.hooks->count, 3);
	assert_int_equal(super_node_find(sn, "b")->out.hooks->count, 0);
	assert_int_equal(super_node_find(sn, "d")->in.hooks->count, 0);
	fake_end(sn, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fix_adds_what_is_missing),
		cmocka_unit_test(drop_takes_out_doubles_and_latecomers),
		cmocka_unit_test(a_restarted_source_is_let_through),
		cmocka_unit_test(numbers_of_32_bits_that_wrap_are_no_restart),
		cmocka_unit_test(hooks_run_by_priority),
		cmocka_unit_test(a_disabled_hook_is_not_there),
		cmocka_unit_test(a_shared_sample_is_copied_before_it_is_changed),
		cmocka_unit_test(stats_counts_and_prints_json),
		cmocka_unit_test(a_hook_refuses_a_place_it_cannot_stand),
		cmocka_unit_test(builtin_hooks_go_before_others_of_their_priority),
		cmocka_unit_test(a_complete_sample_is_not_copied_by_builtin_hooks),
		cmocka_unit_test(one_wrong_number_stops_nothing),
		cmocka_unit_test(a_number_that_stands_still_is_told),
		cmocka_unit_test(doubles_are_no_number_that_stands_still),
		cmocka_unit_test(a_restart_is_told_also_when_its_sample_is_dropped),
		cmocka_unit_test(a_hook_that_cannot_go_on_says_why_and_how_often),
		cmocka_unit_test(a_name_alone_lacks_keys_at_its_place),
		cmocka_unit_test(what_hooks_hold_arrives_at_the_end),
		cmocka_unit_test(what_hooks_hold_arrives_when_it_is_stopped),
		cmocka_unit_test(held_samples_reach_every_path_of_a_node),
		cmocka_unit_test(signals_of_hooks_reach_what_comes_behind),
		cmocka_unit_test(builtin_hooks_can_be_switched_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
