/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests as they come by any way: which are there, and their statuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "gateway/control/api.h"
#include "gateway/control/metrics.h"
#include "gateway/control/server.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/log_recent.h"

static struct super_node *sn;
static struct config *config;

static int setup(void **state)
{
	sn = fake_super_node(
		"stats = 0.0; hugepages = 0;"
		"nodes = { a = { type = \"source\"; mode = \"paced\"; in = { hooks = ( \"stats\" ) } }; b = { type = \"sink\" }; };"
		"paths = ( { in = \"a\"; out = \"b\"; hooks = ( { type = \"shift_seq\"; offset = 3 }, \"ts\" ) } );", &config);
	assert_non_null(sn);
	return super_node_start(sn);
}

static int teardown(void **state)
{
	super_node_stop(sn);
	fake_end(sn, config);
	return 0;
}

static json_t *ask(const char *method, const char *path, const json_t *body,
		   int expected)
{
	int status = 0;
	json_t *o = control_handle(sn, method, path, body, &status);

	assert_non_null(o);
	assert_int_equal(status, expected);
	if (expected >= 300)
		assert_true(json_is_string(json_object_get(o, "error")));
	return o;
}

static void everything_can_be_asked_for(void **state)
{
	static const char *const paths[] = {
		"/capabilities", "/status", "/config", "/nodes", "/node/a",
		"/node/b/stats", "/paths", "/path/0", "/path/a%20-%3E%20b",
		"/path/a -> b/stats", "/stats", "/api/v2/nodes",
		"/api/v2/node/a?layout=dot", "/metrics", "/graph.dot", "/graph.gv?layout=dot",
		"/openapi.json", "/config/text", "/log", "/log?after=7",
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		json_decref(ask("GET", paths[i], NULL, 200));
}

static void answers_have_the_fields_that_scripts_look_for(void **state)
{
	json_t *o = ask("GET", "/capabilities", NULL, 200), *hooks, *hook;
	json_int_t offset = 0;
	size_t i;

	assert_true(json_array_size(json_object_get(o, "apis")) > 15);
	assert_true(json_array_size(json_object_get(o, "nodes")) == 6);
	json_decref(o);
	o = ask("GET", "/node/a", NULL, 200);
	assert_string_equal(json_string_value(json_object_get(o, "state")),
			    "started");
	assert_string_equal(json_string_value(json_object_get(o, "mode")),
			    "paced");
	assert_true(json_is_object(json_object_get(o, "in")));
	assert_true(json_is_integer(json_object_get(json_object_get(o, "stats"),
						    "received")));
	json_decref(o);
	o = ask("GET", "/paths", NULL, 200);
	hooks = json_object_get(json_array_get(o, 0), "hooks");
	assert_int_equal(json_array_size(hooks), 2);
	json_array_foreach(hooks, i, hook) {
		assert_true(json_is_integer(json_object_get(hook, "priority")));
		if (!strcmp(json_string_value(json_object_get(hook, "type")), "shift_seq"))
			offset = json_integer_value(json_object_get(hook, "offset"));
	}
	assert_int_equal(offset, 3);
	json_decref(o);
	o = ask("GET", "/status", NULL, 200);
	assert_string_equal(json_string_value(json_object_get(o, "state")),
			    "running");
	assert_true(json_is_object(json_object_get(o, "kernel")));
	assert_true(json_is_array(json_object_get(json_object_get(o, "system"),
						  "load")));
	json_decref(o);
}

static json_int_t clock_figure(const char *key)
{
	json_t *o = ask("GET", "/status", NULL, 200);
	const json_t *clock = json_object_get(o, "clock");
	json_int_t value;

	assert_true(json_is_integer(json_object_get(clock, key)));
	assert_string_equal(json_string_value(json_object_get(clock, "follows")),
			    "CLOCK_REALTIME");
	value = json_integer_value(json_object_get(clock, key));
	json_decref(o);
	return value;
}

static void who_waits_for_the_end_holds_the_clock_to_the_systems(void **state)
{
	uint64_t end = clock_now_ns() + 20 * NSEC_PER_SEC;
	json_int_t first = clock_figure("readings");

	if (!clock_state.tsc)
		skip();
	/* At least four readings a second, although no thread reads the time. */
	while (clock_figure("readings") < first + 2 && clock_now_ns() < end)
		assert_false(super_node_wait(sn, 50));
	assert_true(clock_figure("readings") >= first + 2);
	assert_true(clock_figure("uncertainty_ns") > 0);
	assert_true(llabs(clock_figure("offset_ns")) < 1000000);
}

static void the_clock_can_be_the_atomic_time(void **state)
{
	struct clock_status status;
	struct config *c;
	struct super_node *tai = fake_super_node(
		"clock = \"tai\"; stats = 0.0; hugepages = 0;"
		"nodes = { a = { type = \"source\"; mode = \"paced\" }; b = { type = \"sink\" }; };"
		"paths = ( { in = \"a\"; out = \"b\" } );", &c);

	assert_non_null(tai);
	assert_int_equal(super_node_start(tai), 0);
	clock_get_status(&status);
	assert_string_equal(status.wall, "CLOCK_TAI");
	super_node_stop(tai);
	fake_end(tai, c);
	clock_set_wall(CLOCK_WALL_REALTIME);
}

static json_int_t number(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}

/* As VILLASnode gives them: figures by the names of metrics. */
static void figures_of_a_node_are_those_of_its_hook_stats(void **state)
{
	static const char *const metrics[] = { "skipped", "reordered", "gap_sent",
		"gap_received", "owd", "age", "signal_cnt", "rtp.loss_fraction",
		"rtp.pkts_lost", "rtp.jitter" };
	static const char *const figures[] = { "highest", "lowest", "mean",
		"variance", "stddev", "p99" };
	json_t *o, *m;

	while (fake_seen(fake_of(sn, "b")) < 5)
		super_node_wait(sn, 1);
	o = ask("GET", "/node/a/stats", NULL, 200);
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		number(json_object_get(o, metrics[i]), "total");
	m = json_object_get(o, "signal_cnt");
	assert_true(number(m, "total") >= 5);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		assert_true(json_is_real(json_object_get(m, figures[i])));
	assert_true(number(json_object_get(o, "stats"), "received") >= 5);
	json_decref(o);
	/* The other has no such hook. */
	o = ask("GET", "/node/b/stats", NULL, 200);
	assert_null(json_object_get(o, "owd"));
	json_decref(o);
}

static void a_reset_clears_all_counters_and_the_hook_stats(void **state)
{
	struct node *a = super_node_find(sn, "a"), *b = super_node_find(sn, "b");
	json_t *o;

	while (fake_seen(fake_of(sn, "b")) < 5)
		super_node_wait(sn, 1);
	json_decref(ask("POST", "/node/a/stop", NULL, 200));
	b->counters.not_stored = b->counters.losses[NODE_LOSS_STUCK] = 5;
	a->counters.missed = a->counters.made_up = 7;
	json_decref(ask("POST", "/stats/reset", NULL, 200));
	o = ask("GET", "/node/a/stats", NULL, 200);
	assert_int_equal(number(json_object_get(o, "signal_cnt"), "total"), 0);
	assert_int_equal(number(json_object_get(o, "stats"), "received"), 0);
	assert_int_equal(number(json_object_get(o, "stats"), "missed"), 0);
	assert_int_equal(number(json_object_get(o, "stats"), "made_up"), 0);
	json_decref(o);
	o = ask("GET", "/node/b/stats", NULL, 200);
	assert_int_equal(number(json_object_get(o, "stats"), "not_stored"), 0);
	assert_int_equal(number(json_object_get(json_object_get(o, "stats"),
						"losses"), "stuck"), 0);
	json_decref(o);
	o = ask("GET", "/path/0/stats", NULL, 200);
	assert_int_equal(number(json_object_get(o, "stats"), "samples"), 0);
	json_decref(o);
	json_decref(ask("POST", "/node/a/start", NULL, 200));
}

static void commands_are_carried_out(void **state)
{
	static const char *const verbs[] = { "stop", "start", "pause", "resume",
					     "restart", "stats/reset" };

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		char path[64];

		snprintf(path, sizeof(path), "/node/a/%s", verbs[i]);
		json_decref(ask("POST", path, NULL, 200));
		snprintf(path, sizeof(path), "/path/0/%s", verbs[i]);
		json_decref(ask("POST", path, NULL, 200));
	}
	json_decref(ask("POST", "/stats/reset", NULL, 200));
	/* Again: nothing to do, and no error. */
	json_decref(ask("POST", "/node/a/start", NULL, 200));
}

/* What /metrics says of node b in `family`; -1: nothing. */
static int metric_of_b(const char *family)
{
	char label[120], *text, *at;
	int value;

	snprintf(label, sizeof(label), "%s{node=\"b\",type=\"sink\"} ", family);
	text = metrics_text(sn, false, &(size_t){ 0 });
	assert_non_null(text);
	at = strstr(text, label);
	value = at ? atoi(at + strlen(label)) : -1;
	free(text);
	return value;
}

static void every_state_of_a_node_is_seen_in_the_metrics(void **state)
{
	static const char *const families[] = {
		"busbar_node_received_samples_total", "busbar_node_sent_samples_total",
		"busbar_node_not_sent_samples_total", "busbar_node_lost_samples_total",
	};
	struct node *b = super_node_find(sn, "b");
	enum node_state was;

	json_decref(ask("POST", "/path/0/stop", NULL, 200));
	was = node_state(b);
	for (unsigned i = 0; i < 4 * (NODE_STOPPED + 1); i++) {
		enum node_state s = (enum node_state)(i / 4);
		bool paused = i & 1, enabled = i & 2;
		bool up = s == NODE_STARTED || s == NODE_PENDING_CONNECT || s == NODE_CONNECTED;

		json_decref(ask("POST", paused ? "/node/b/pause" : "/node/b/resume", NULL, 200));
		node_set_state(b, s);
		b->enabled = enabled;
		if (metric_of_b("busbar_node_running") != (up && enabled && !paused))
			fail_msg("%s, paused %d, enabled %d", node_state_name(s), paused, enabled);
		for (size_t f = 0; f < ARRAY_SIZE(families); f++)
			assert_true(metric_of_b(families[f]) >= 0);
		node_set_state(b, was);
		b->enabled = true;
	}
	/* There is no other state. */
	assert_string_equal(node_state_name((enum node_state)(NODE_STOPPED + 1)), "unknown");
	json_decref(ask("POST", "/node/b/resume", NULL, 200));
	json_decref(ask("POST", "/path/0/start", NULL, 200));
}

/* `then` is not possible behind `first`, and the answer says why. */
static void assert_refused(const char *first, const char *then, const char *why)
{
	json_t *o;

	json_decref(ask("POST", first, NULL, 200));
	o = ask("POST", then, NULL, 409);
	assert_non_null(strstr(json_string_value(json_object_get(o, "error")), why));
	json_decref(o);
}

/* The first problem of a text; its whole answer in *answer. */
static const json_t *first_problem(const char *text, bool good, json_t **answer)
{
	json_t *body = json_pack("{ss}", "text", text);

	*answer = ask("POST", "/check", body, 200);
	json_decref(body);
	assert_int_equal(json_is_true(json_object_get(*answer, "good")), good);
	return json_array_get(json_object_get(*answer, "problems"), 0);
}

static void a_text_is_checked_and_nothing_changes(void **state)
{
	json_t *before = ask("GET", "/config", NULL, 200), *after, *answer;
	const json_t *p;

	p = first_problem("nodes = { a = { type = \"sink\"; }; };", true, &answer);
	assert_null(p);
	json_decref(answer);
	p = first_problem("nodes = {\n  a = { type = \"sink\";\n  rat = 3; };\n};", false, &answer);
	assert_int_equal(json_integer_value(json_object_get(p, "line")), 3);
	assert_string_equal(json_string_value(json_object_get(p, "key")), "nodes.a.rat");
	assert_string_equal(json_string_value(json_object_get(p, "level")), "error");
	assert_non_null(strstr(json_string_value(json_object_get(p, "message")), "unknown key"));
	json_decref(answer);
	/* libconfig tells the line; the text that is not closed ends behind it. */
	p = first_problem("nodes = {\n\n", false, &answer);
	assert_true(json_integer_value(json_object_get(p, "line")) >= 2);
	json_decref(answer);
	json_decref(ask("POST", "/check", NULL, 400));
	fake_log_start();
	after = ask("GET", "/config", NULL, 200);
	assert_true(json_equal(before, after));
	json_decref(before);
	json_decref(after);
}

static void the_configuration_is_told_as_it_was_written(void **state)
{
	json_t *o = ask("GET", "/config/text", NULL, 200);

	assert_non_null(strstr(json_string_value(json_object_get(o, "text")),
			       "hooks = ( \"stats\" )"));
	assert_true(json_is_string(json_object_get(o, "file")));
	json_decref(o);
}

static void the_log_is_told_from_a_line_on(void **state)
{
	json_t *o, *lines;
	char path[40];
	json_int_t last;

	assert_int_equal(log_recent_keep(), 0);
	log_error("one \xff");
	o = ask("GET", "/log", NULL, 200);
	last = json_integer_value(json_object_get(o, "last"));
	json_decref(o);
	log_error("two\n");
	snprintf(path, sizeof(path), "/log?after=%" JSON_INTEGER_FORMAT, last);
	o = ask("GET", path, NULL, 200);
	lines = json_object_get(o, "lines");
	assert_int_equal(json_array_size(lines), 1);
	assert_string_equal(json_string_value(json_object_get(json_array_get(lines, 0), "message")),
			    "two?");
	json_decref(o);
	json_decref(ask("GET", "/log?after=-1", NULL, 400));
	fake_log_start();
}

static void what_is_wrong_is_said_with_a_status(void **state)
{
	json_t *body = json_pack("{si}", "config", 5);
	char longest[2000];

	json_decref(ask("GET", "/node/x", NULL, 404));
	json_decref(ask("GET", "/path/9", NULL, 404));
	json_decref(ask("POST", "/node/x/stop", NULL, 404));
	json_decref(ask("POST", "/node/a/explode", NULL, 404));
	json_decref(ask("GET", "/", NULL, 404));
	json_decref(ask("GET", "", NULL, 404));
	json_decref(ask("GET", "/node/a/b/c/d/e", NULL, 404));
	json_decref(ask("GET", "/shutdown", NULL, 405));
	json_decref(ask("DELETE", "/nodes", NULL, 405));
	json_decref(ask("POST", "/node/a/file/rewind", NULL, 501));
	json_decref(ask("POST", "/restart", NULL, 501));
	json_decref(ask("POST", "/path/0/resume", NULL, 200));
	assert_refused("/node/a/stop", "/node/a/resume", "the node is stopped");
	assert_refused("/path/0/stop", "/path/0/pause", "the path is stopped");
	json_decref(ask("POST", "/node/a/start", NULL, 200));
	json_decref(ask("POST", "/path/0/start", NULL, 200));
	json_decref(ask("POST", "/reload", body, 400));
	json_decref(body);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	json_decref(ask("GET", longest, NULL, 404));
}

static void assert_line(const char *line, const char *expected)
{
	char *answer = control_line(sn, line, strlen(line));

	assert_non_null(answer);
	assert_int_equal(answer[strlen(answer) - 1], '\n');
	assert_ptr_equal(strchr(answer, '\n'), answer + strlen(answer) - 1);
	if (!strstr(answer, expected))
		fail_msg("%s", answer);
	free(answer);
}

static void a_line_is_answered_by_a_line(void **state)
{
	assert_line("{\"path\":\"/node/a/stats\",\"id\":[7,\"x\"]}",
		    "\"id\":[7,\"x\"]");
	assert_line("{\"path\":\"/nodes\"}", "\"status\":200");
	assert_line("{\"path\":\"/node/x\",\"method\":\"GET\"}",
		    "\"status\":404");
	assert_line("{\"path\":7}", "\"status\":400");
	assert_line("[]", "\"status\":400");
	assert_line("nonsense", "\"status\":400");
	assert_line("{\"path\":\"/nodes\",\"path\":\"/paths\"}",
		    "\"status\":400");
	assert_line("", "\"status\":400");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_can_be_asked_for),
		cmocka_unit_test(answers_have_the_fields_that_scripts_look_for),
		cmocka_unit_test(who_waits_for_the_end_holds_the_clock_to_the_systems),
		cmocka_unit_test(the_clock_can_be_the_atomic_time),
		cmocka_unit_test(figures_of_a_node_are_those_of_its_hook_stats),
		cmocka_unit_test(a_reset_clears_all_counters_and_the_hook_stats),
		cmocka_unit_test(every_state_of_a_node_is_seen_in_the_metrics),
		cmocka_unit_test(commands_are_carried_out),
		cmocka_unit_test(a_text_is_checked_and_nothing_changes),
		cmocka_unit_test(the_configuration_is_told_as_it_was_written),
		cmocka_unit_test(the_log_is_told_from_a_line_on),
		cmocka_unit_test(what_is_wrong_is_said_with_a_status),
		cmocka_unit_test(a_line_is_answered_by_a_line),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
