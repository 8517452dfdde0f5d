/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics of a node: what is recorded and read, also from another thread, the
 * hook that records and prints them, and the node that sends them. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"
#include "gateway/plugin/stats.h"

static double get(const struct node_stats *st, enum stats_metric m,
		  enum stats_type t)
{
	return node_stats_figure(st, m, t);
}

static void assert_near(double got, double expected, double within)
{
	if (!(fabs(got - expected) <= within))
		fail_msg("%.17g instead of %.17g", got, expected);
}

static void nothing_recorded_is_not_a_number(void **state)
{
	struct node_stats *st = node_stats_new(20, 500);
	struct node n = { .stats = NULL };

	assert_non_null(st);
	assert_true(get(st, STATS_OWD, STATS_TOTAL) == 0);
	for (int t = 0; t < STATS_TYPES; t++)
		if (t != STATS_TOTAL)
			assert_true(isnan(get(st, STATS_OWD,
					      (enum stats_type)t)));
	assert_true(isnan(node_stats_value(&n, STATS_OWD, STATS_TOTAL)));
	n.stats = st;
	assert_true(node_stats_value(&n, STATS_OWD, STATS_TOTAL) == 0);
	node_stats_put(st);
}

static void figures_are_those_of_the_values(void **state)
{
	struct node_stats *st = node_stats_new(20, 500);

	for (int i = 1; i <= 1000; i++)
		node_stats_update_ns(st, STATS_OWD, i * 1000);
	assert_true(get(st, STATS_OWD, STATS_TOTAL) == 1000);
	assert_true(get(st, STATS_OWD, STATS_LAST) == 1e-3);
	assert_true(get(st, STATS_OWD, STATS_HIGHEST) == 1e-3);
	assert_true(get(st, STATS_OWD, STATS_LOWEST) == 1e-6);
	assert_near(get(st, STATS_OWD, STATS_MEAN), 500.5e-6, 1e-15);
	/* n (n + 1) / 12 for the numbers 1 to n. */
	assert_near(get(st, STATS_OWD, STATS_VAR), 1000 * 1001 / 12.0 * 1e-12,
		    1e-18);
	assert_near(get(st, STATS_OWD, STATS_STDDEV),
		    sqrt(1000 * 1001 / 12.0) * 1e-6, 1e-12);
	assert_near(get(st, STATS_OWD, STATS_P50), 500e-6, 8e-6);
	assert_near(get(st, STATS_OWD, STATS_P90), 900e-6, 15e-6);
	assert_near(get(st, STATS_OWD, STATS_P99), 990e-6, 16e-6);
	assert_near(get(st, STATS_OWD, STATS_P999), 999e-6, 1e-6);
	/* The others are not touched. */
	assert_true(get(st, STATS_AGE, STATS_TOTAL) == 0);
	node_stats_put(st);
}

static void one_value_is_all_of_its_figures(void **state)
{
	struct node_stats *st = node_stats_new(0, 0);

	node_stats_update(st, STATS_SIGNAL_CNT, 8);
	for (int t = 0; t < STATS_TYPES; t++) {
		double expected = t == STATS_VAR || t == STATS_STDDEV ? 0 :
				  t == STATS_TOTAL ? 1 : 8;

		assert_true(get(st, STATS_SIGNAL_CNT, (enum stats_type)t) ==
			    expected);
	}
	node_stats_put(st);
}

/* Clocks that differ make delays negative; that must be seen. */
static void values_below_zero_are_kept(void **state)
{
	struct node_stats *st = node_stats_new(20, 10);

	for (int i = -100; i < 300; i++)
		node_stats_update_ns(st, STATS_OWD, i * 1000);
	assert_true(get(st, STATS_OWD, STATS_LOWEST) == -100e-6);
	assert_near(get(st, STATS_OWD, STATS_MEAN), 99.5e-6, 1e-12);
	assert_near(get(st, STATS_OWD, STATS_P50), 99e-6, 2e-6);
	assert_near(get(st, STATS_OWD, STATS_P90), 259e-6, 5e-6);
	node_stats_put(st);

	st = node_stats_new(20, 10);
	for (int i = 1; i <= 100; i++)
		node_stats_update_ns(st, STATS_OWD, -i * 1000);
	assert_near(get(st, STATS_OWD, STATS_P50), -51e-6, 1e-6);
	assert_near(get(st, STATS_OWD, STATS_P99), -2e-6, 0.1e-6);
	assert_true(get(st, STATS_OWD, STATS_HIGHEST) == -1e-6);
	node_stats_put(st);
}

static void what_is_no_number_is_not_recorded(void **state)
{
	struct node_stats *st = node_stats_new(20, 10);

	node_stats_update(st, STATS_RTP_JITTER, NAN);
	node_stats_update(st, STATS_RTP_JITTER, INFINITY);
	assert_true(get(st, STATS_RTP_JITTER, STATS_TOTAL) == 0);
	node_stats_update(st, STATS_RTP_PKTS_LOST, 1e300);
	node_stats_update(st, STATS_RTP_LOSS_FRACTION, 0.25);
	assert_true(get(st, STATS_RTP_PKTS_LOST, STATS_P50) <= 1e300);
	assert_near(get(st, STATS_RTP_LOSS_FRACTION, STATS_P50), 0.25, 0.005);
	node_stats_put(st);
}

/* The first `warmup` values set the range, all count in the rest. */
static void buckets_take_their_range_from_the_warmup(void **state)
{
	struct node_stats *st = node_stats_new(10, 100);
	struct stats_buckets b;
	uint64_t sum = 0;

	for (int i = 0; i < 100; i++) {
		assert_false(node_stats_buckets(st, STATS_GAP_SENT, &b));
		node_stats_update(st, STATS_GAP_SENT, i % 2 ? 0.9 : 1.1);
	}
	assert_true(node_stats_buckets(st, STATS_GAP_SENT, &b));
	assert_near(b.low, 0.7, 1e-9);
	assert_near(b.high, 1.3, 1e-9);
	node_stats_update(st, STATS_GAP_SENT, 0.5);
	node_stats_update(st, STATS_GAP_SENT, 2);
	node_stats_update(st, STATS_GAP_SENT, 3);
	for (int i = 0; i < 50; i++)
		node_stats_update(st, STATS_GAP_SENT, 1.01);
	node_stats_update(st, STATS_GAP_SENT, b.low);
	node_stats_update(st, STATS_GAP_SENT, b.high);
	assert_true(node_stats_buckets(st, STATS_GAP_SENT, &b));
	assert_int_equal(b.count, 10);
	assert_int_equal(b.lower, 1);
	assert_int_equal(b.higher, 2);
	assert_int_equal(b.rows[5], 50);
	assert_int_equal(b.rows[0], 1);
	assert_int_equal(b.rows[9], 1);
	for (unsigned i = 0; i < b.count; i++)
		sum += b.rows[i];
	assert_int_equal(sum, 52);
	assert_true(get(st, STATS_GAP_SENT, STATS_TOTAL) == 155);
	node_stats_put(st);

	/* All alike: still rows that hold them. */
	st = node_stats_new(10, 0);
	for (int i = 0; i < 5; i++)
		node_stats_update(st, STATS_SIGNAL_CNT, 8);
	assert_true(node_stats_buckets(st, STATS_SIGNAL_CNT, &b));
	assert_true(b.low < 8 && b.high > 8);
	assert_int_equal(b.lower + b.higher, 0);
	node_stats_put(st);
}

static void a_reset_forgets_everything(void **state)
{
	struct node_stats *st = node_stats_new(5, 2);
	struct stats_buckets b;

	for (int i = 0; i < 10; i++) {
		node_stats_update(st, STATS_SKIPPED, 100);
		node_stats_update_ns(st, STATS_OWD, -5);
	}
	node_stats_reset(st);
	assert_true(get(st, STATS_SKIPPED, STATS_TOTAL) == 0);
	assert_true(isnan(get(st, STATS_SKIPPED, STATS_HIGHEST)));
	assert_false(node_stats_buckets(st, STATS_SKIPPED, &b));
	node_stats_update(st, STATS_SKIPPED, 2);
	node_stats_update_ns(st, STATS_OWD, 5);
	assert_true(get(st, STATS_SKIPPED, STATS_TOTAL) == 1);
	assert_true(get(st, STATS_SKIPPED, STATS_HIGHEST) == 2);
	assert_true(get(st, STATS_SKIPPED, STATS_P99) == 2);
	assert_true(get(st, STATS_SKIPPED, STATS_VAR) == 0);
	assert_true(get(st, STATS_OWD, STATS_LOWEST) == 5e-9);
	node_stats_put(st);
}

static void *record_much(void *arg)
{
	struct node_stats *st = arg;

	for (int i = 1; i <= 50000; i++)
		node_stats_update_ns(st, STATS_OWD, 1000 + i % 100);
	return NULL;
}

/* Also what the thread sanitizer has to say is meant here. */
static void another_thread_reads_meanwhile(void **state)
{
	struct node_stats *st = node_stats_get(node_stats_new(20, 50));
	double total = 0, before = 0;
	pthread_t thread;
	int ret;

	ret = pthread_create(&thread, NULL, record_much, st);
	assert_int_equal(ret, 0);
	while (total < 50000) {
		struct stats_buckets b;

		total = get(st, STATS_OWD, STATS_TOTAL);
		assert_true(total >= before);
		before = total;
		if (total == 0)
			continue;
		for (int t = 0; t < STATS_TYPES; t++) {
			double v = get(st, STATS_OWD, (enum stats_type)t);

			if (t != STATS_TOTAL && t != STATS_VAR &&
			    t != STATS_STDDEV)
				assert_in_range((uint64_t)(v * 1e9 + 0.5), 1000,
						1100);
		}
		node_stats_buckets(st, STATS_OWD, &b);
	}
	pthread_join(thread, NULL);
	node_stats_put(st);
	node_stats_put(st);
}

static void names_are_those_that_users_know(void **state)
{
	char problem[256];
	enum stats_metric m;
	enum stats_type t;

	for (int i = 0; i < STATS_METRICS; i++) {
		for (int k = 0; k < STATS_TYPES; k++) {
			char text[64];

			snprintf(text, sizeof(text), "%s.%s",
				 stats_metric_names[i], stats_type_names[k]);
			assert_int_equal(stats_parse(text, &m, &t, problem,
						     sizeof(problem)),
					 0);
			assert_int_equal(m, i);
			assert_int_equal(t, k);
		}
	}
	assert_int_equal(stats_parse("owdx.mean", &m, &t, problem,
				     sizeof(problem)),
			 -EINVAL);
	assert_string_equal(problem, "no metric 'owdx', did you mean 'owd'?");
}

#define TOP "idle_stop = true; stats = 100.0; hugepages = 0;\n"

/* Runs a path whose source has the hook; the printed text, to be freed. */
static char *run_hook(const char *settings)
{
	char path[] = "/tmp/busbar-test-XXXXXX", config[600], *text;
	int fd = mkstemp(path);
	struct super_node *sn;
	struct config *c;
	FILE *f;
	size_t n;

	assert_true(fd >= 0);
	snprintf(config, sizeof(config), TOP
		 "nodes = { a-1 = { type = \"source\"; limit = 40; in = { hooks = ( { type = \"stats\"; output = \"%s\"; %s } ) } };"
		 "          s = { type = \"sink\"; } };"
		 "paths = ( { in = \"a-1\"; out = \"s\" } );", path, settings);
	sn = fake_super_node(config, &c);
	assert_non_null(sn);
	fake_run(sn);
	assert_true(node_stats_value(super_node_find(sn, "a-1"),
				     STATS_SIGNAL_CNT, STATS_TOTAL) == 40);
	fake_end(sn, c);
	f = fdopen(fd, "r");
	text = calloc(1, 65536);
	assert_non_null(text);
	n = fread(text, 1, 65535, f);
	assert_true(n > 0);
	fclose(f);
	unlink(path);
	return text;
}

static void the_hook_prints_for_people(void **state)
{
	char *text = run_hook("verbose = true; warmup = 10; buckets = 4;");

	assert_non_null(strstr(text, "a-1: 40 samples, 0 lost, 0 reordered"));
	assert_non_null(strstr(text, "owd"));
	assert_non_null(strstr(text, "age"));
	assert_non_null(strstr(text, "p99.9"));
	assert_non_null(strstr(text, "    up to "));
	/* What never came is left out. */
	assert_null(strstr(text, "rtp"));
	free(text);
}

static void the_hook_prints_json(void **state)
{
	char *text = run_hook("format = \"json\"; verbose = true; warmup = 10; buckets = 4;");
	char *last = text + strlen(text) - 1;
	json_t *o, *m;

	while (last > text && last[-1] != '\n')
		last--;
	o = json_loads(last, 0, NULL);
	assert_non_null(o);
	assert_string_equal(json_string_value(json_object_get(o, "node")),
			    "a-1");
	m = json_object_get(o, "age");
	assert_int_equal(json_integer_value(json_object_get(m, "total")), 40);
	assert_true(json_real_value(json_object_get(m, "lowest")) >= 0);
	assert_int_equal(json_array_size(json_object_get(m, "buckets")), 4);
	m = json_object_get(o, "gap_sent");
	assert_int_equal(json_integer_value(json_object_get(m, "total")), 39);
	m = json_object_get(o, "rtp.jitter");
	assert_int_equal(json_integer_value(json_object_get(m, "total")), 0);
	assert_true(json_is_null(json_object_get(m, "mean")));
	json_decref(o);
	free(text);
}

static void the_hook_prints_for_matlab(void **state)
{
	char *text = run_hook("format = \"matlab\"; verbose = true; warmup = 10; buckets = 4;");

	assert_non_null(strstr(text, "a_1.signal_cnt = struct('last', 2, 'highest', 2, 'lowest', 2, 'mean', 2, 'var', 0, 'stddev', 0, 'total', 40, 'p50', 2, 'p90', 2, 'p99', 2, 'p99_9', 2, 'low', "));
	assert_non_null(strstr(text, "'lower', 0, 'higher', 0, 'buckets', ["));
	assert_non_null(strstr(text, "a_1.rtp_jitter = struct('last', NaN,"));
	free(text);
}

#define STATS_NODE(signals) \
	"nodes = { a = { type = \"source\"; limit = 500; in = { hooks = ( { type = \"stats\"; output = \"/dev/null\" } ) } };" \
	"          b = { type = \"source\"; };" \
	"          f = { type = \"stats\"; rate = 500; in = { signals = ( " signals " ) } };" \
	"          s = { type = \"sink\"; }; t = { type = \"sink\" } };" \
	"paths = ( { in = \"a\"; out = \"t\" }, { in = \"f\"; out = \"s\" } );"

/* The last integer of that place that the sink was given; -1: none yet. */
static int64_t last_figure(struct fake *s, unsigned place)
{
	unsigned n = fake_seen(s);

	return n ? s->data[n - 1][place].i : -1;
}

static void the_node_sends_figures_of_others(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP STATS_NODE(
		"{ name = \"n\"; stats = \"a.signal_cnt.total\" }, { stats = \"a.owd.p99.9\" },"
		" { name = \"w\"; unit = \"1\"; type = \"float\"; stats = \"a.signal_cnt.total\" }, { stats = \"a.rtp.jitter.mean\" }"),
		&c);
	const struct signal_list *l;
	struct fake *s;
	unsigned last;

	assert_non_null(sn);
	s = fake_of(sn, "s");
	l = super_node_find(sn, "f")->in.signals;
	assert_string_equal(l->signals[0].name, "n");
	assert_int_equal(l->signals[0].type, SIGNAL_INTEGER);
	assert_string_equal(l->signals[1].name, "a.owd.p99.9");
	assert_string_equal(l->signals[1].unit, "s");
	assert_string_equal(l->signals[2].unit, "1");
	assert_int_equal(l->signals[2].type, SIGNAL_FLOAT);
	assert_int_equal(super_node_start(sn), 0);
	for (unsigned tries = 0; tries < 2000 && last_figure(s, 0) < 500; tries++)
		assert_false(super_node_wait(sn, 10));
	super_node_stop(sn);
	last = s->seen_count - 1;
	assert_int_equal(s->lengths[last], 4);
	assert_int_equal(s->data[last][0].i, 500);
	assert_true(s->data[last][1].f > 0 && s->data[last][1].f < 20);
	assert_true(s->data[last][2].f == 500);
	assert_true(isnan(s->data[last][3].f));
	fake_end(sn, c);
}

static void assert_refused(const char *text, const char *part)
{
	struct config *c;

	assert_null(fake_super_node(text, &c));
	if (!strstr(fake_log(), part))
		fail_msg("no '%s' in:\n%s", part, fake_log());
	config_destroy(c);
}

static void the_node_refuses_what_it_cannot_send(void **state)
{
	assert_refused(STATS_NODE("{ stats = \"aa.owd.mean\" }"),
		       "nodes.f.in.signals[0].stats: no node 'aa'");
	assert_refused(STATS_NODE("{ stats = \"a.owd.men\" }"),
		       "did you mean 'mean'?");
	assert_refused(STATS_NODE("{ stats = \"b.owd.mean\" }"),
		       "node 'b' has no hook `stats`");
	assert_refused(STATS_NODE("{ stats = \"owd\" }"),
		       "'owd' is no figure; write NODE.METRIC.TYPE");
	assert_refused(STATS_NODE("{ name = \"x\" }"),
		       "stats: missing, but required");
	assert_refused(STATS_NODE("{ stats = \"a.owd.mean\"; typ = \"float\" }"),
		       "unknown key, did you mean 'type'?");
	assert_refused("nodes = { f = { type = \"stats\" } };",
		       "needs a list of figures");
	assert_refused("nodes = { f = { type = \"stats\"; node = \"nobody\"; in = { signals = ( { stats = \"owd.mean\" } ) } } };",
		       "node: ");
}

/* `node` says whose figures those are that name none. */
static void the_node_sends_figures_of_the_node_that_it_names(void **state)
{
	struct config *c;
	struct super_node *sn = fake_super_node(TOP
		"nodes = { a = { type = \"source\"; limit = 100; in = { hooks = ( { type = \"stats\"; output = \"/dev/null\" } ) } };"
		"          owd = { type = \"source\"; limit = 7; in = { hooks = ( { type = \"stats\"; output = \"/dev/null\" } ) } };"
		"          f = { type = \"stats\"; rate = 100; node = \"a\"; in = { signals = ( { stats = \"signal_cnt.total\" },"
		"                { stats = \"owd.total\" }, { stats = \"gap_sent.total\" }, { stats = \"owd.signal_cnt.total\" } ) } };"
		"          s = { type = \"sink\" } };"
		"paths = ( { in = \"a\" }, { in = \"owd\" }, { in = \"f\"; out = \"s\" } );", &c);
	struct fake *s;
	unsigned last;

	assert_non_null(sn);
	s = fake_of(sn, "s");
	assert_int_equal(super_node_start(sn), 0);
	/* Each of the two has its own thread. */
	for (unsigned tries = 0; tries < 2000 && (last_figure(s, 0) < 100 || last_figure(s, 3) < 7);
	     tries++)
		assert_false(super_node_wait(sn, 10));
	super_node_stop(sn);
	last = s->seen_count - 1;
	assert_int_equal(s->data[last][0].i, 100);
	/* Delays from the second sample on, like gaps. */
	assert_int_equal(s->data[last][1].i, 99);
	assert_int_equal(s->data[last][2].i, 99);
	assert_int_equal(s->data[last][3].i, 7);
	fake_end(sn, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_recorded_is_not_a_number),
		cmocka_unit_test(figures_are_those_of_the_values),
		cmocka_unit_test(one_value_is_all_of_its_figures),
		cmocka_unit_test(values_below_zero_are_kept),
		cmocka_unit_test(what_is_no_number_is_not_recorded),
		cmocka_unit_test(buckets_take_their_range_from_the_warmup),
		cmocka_unit_test(a_reset_forgets_everything),
		cmocka_unit_test(another_thread_reads_meanwhile),
		cmocka_unit_test(names_are_those_that_users_know),
		cmocka_unit_test(the_hook_prints_for_people),
		cmocka_unit_test(the_hook_prints_json),
		cmocka_unit_test(the_hook_prints_for_matlab),
		cmocka_unit_test(the_node_sends_figures_of_others),
		cmocka_unit_test(the_node_refuses_what_it_cannot_send),
		cmocka_unit_test(the_node_sends_figures_of_the_node_that_it_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
