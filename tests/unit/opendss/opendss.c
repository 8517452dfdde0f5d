/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type opendss with a library of the test (fake_dss.c). Argument: that library. */
#include "../nodes/fixture.h"

#include <math.h>

#include "gateway/part/fault.h"

extern const struct node_type node_opendss;

static const char *library;
static struct pool pool;

#define NETWORK "load l1\nload l2\ngenerator g\nisource i\nmonitor m1 2\nmonitor m2 1\n"
#define LISTS \
	"\"in\": {\"list\": [{\"name\": \"l1\", \"type\": \"load\", \"data\": [\"kW\", \"Pf\"]}, " \
	"{\"name\": \"g\", \"type\": \"generator\", \"data\": [\"kW\"]}]}, " \
	"\"out\": {\"list\": [\"m1\", \"m2\"]}"

static void write_file(const char *name, const char *content)
{
	FILE *f = fopen(scratch(name), "we");

	assert_non_null(f);
	fputs(content, f);
	fclose(f);
}

static int begin(struct made_node *m, const char *file, const char *lists)
{
	char text[1500];
	int ret;

	snprintf(text, sizeof(text), "{\"file_path\": \"%s\", \"library\": \"%s\", %s}", scratch(file),
		 library, lists);
	make_node(m, &node_opendss, text);
	m->node.is_source = m->node.is_destination = true;
	m->node.figures = calloc(m->node.type->figure_count, sizeof(*m->node.figures));
	ret = m->node.type->start(&m->node);
	if (ret) {
		free((void *)m->node.figures);
		drop_node(m);
	}
	return ret;
}

static void end(struct made_node *m)
{
	assert_int_equal(m->node.type->stop(&m->node), 0);
	free((void *)m->node.figures);
	drop_node(m);
}

static int write_values(struct made_node *m, const double values[], unsigned count)
{
	struct sample *s = sample_alloc(&pool);
	unsigned release = 1;
	int ret;

	for (unsigned i = 0; i < count; i++)
		s->data[i].f = values[i];
	s->length = count;
	s->origin = (struct timespec){ 1000 + (time_t)values[0], 5 };
	s->flags = SAMPLE_HAS_DATA | SAMPLE_HAS_ORIGIN;
	ret = node_write(&m->node, &s, 1, &release);
	sample_put(s);
	return ret;
}

static void expect(struct made_node *m, uint64_t sequence, double second, double kw, time_t origin)
{
	struct sample *s = sample_alloc(&pool);
	const double wanted[] = { 0, second, kw, 2 * kw, kw };

	assert_int_equal(node_read_one(m, s), 1);
	assert_int_equal(s->length, ARRAY_SIZE(wanted));
	for (unsigned i = 0; i < s->length; i++)
		assert_true(fabs(s->data[i].f - wanted[i]) < 1e-4);
	assert_int_equal(s->sequence, sequence);
	assert_int_equal(s->origin.tv_sec, origin);
	sample_put(s);
}

static int setup(void **state)
{
	write_file("net", NETWORK);
	return pool_init(&pool, 4, 8, &memory_heap);
}

static int teardown(void **state)
{
	clear_scratch();
	return (int)pool_destroy(&pool);
}

static void each_sample_that_is_written_is_a_step_whose_result_is_read(void **state)
{
	char before[300], after[300];
	struct made_node m;

	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(begin(&m, "net", LISTS), 0);
	assert_string_equal(getcwd(after, sizeof(after)), before);
	for (int i = 0; i < 5; i++)
		assert_int_equal(write_values(&m, (const double[]){ 100 + i, 1, 40 }, 3), 1);
	for (int i = 0; i < 5; i++)
		expect(&m, (uint64_t)i, i + 1, 100 + i + 0.03 - 40, 1100 + i);
	end(&m);
	/* And again, from the file. */
	assert_int_equal(begin(&m, "net", LISTS), 0);
	assert_int_equal(write_values(&m, (const double[]){ 1, 0, 0 }, 3), 1);
	expect(&m, 0, 1, 1, 1001);
	end(&m);
}

static void all_properties_reach_their_elements(void **state)
{
	struct made_node m;

	assert_int_equal(begin(&m, "net",
			       "\"in\": {\"list\": ["
			       "{\"name\": \"l2\", \"type\": \"load\", \"data\": [\"kW\", \"kV\", \"kVar\", \"Pf\"]}, "
			       "{\"name\": \"g\", \"type\": \"generator\", \"data\": [\"kV\", \"kVar\", \"Pf\"]}, "
			       "{\"name\": \"i\", \"type\": \"isource\", \"data\": [\"Amps\"]}]}, "
			       "\"out\": {\"list\": [\"m1\", \"m2\"]}"), 0);
	assert_int_equal(write_values(&m, (const double[]){ 10, 1, 10, 100, 1, 10, 100, 2 }, 8), 1);
	expect(&m, 0, 1, 10 + .01 + .2 + 3 + .04 + .5 + 6 + .14, 1010);
	end(&m);
}

static void a_step_without_a_result_is_refused_and_counted(void **state)
{
	struct made_node m;

	assert_int_equal(begin(&m, "net", LISTS), 0);
	assert_int_equal(write_values(&m, (const double[]){ 2000, 0, 0 }, 3), 0);
	assert_int_equal(m.node.counters.losses[NODE_LOSS_REFUSED], 1);
	assert_int_equal(m.node.figures[m.node.type->figure_count - 1], 1);
	assert_int_equal(write_values(&m, (const double[]){ -1, 0, 0 }, 3), 0);
	assert_int_equal(m.node.counters.losses[NODE_LOSS_REFUSED], 2);
	assert_int_equal(write_values(&m, (const double[]){ 1, NAN, 0 }, 3), 0);
	assert_int_equal(write_values(&m, (const double[]){ 1, 0 }, 2), 0);
	assert_int_equal(m.node.counters.losses[NODE_LOSS_FORMAT], 2);
	/* Steps of the library: the first one, and this. */
	assert_int_equal(write_values(&m, (const double[]){ 3, 0, 0 }, 3), 1);
	expect(&m, 0, 2, 3, 1003);
	end(&m);
}

static void results_that_nobody_reads_are_counted(void **state)
{
	struct made_node m;

	assert_int_equal(begin(&m, "net", LISTS), 0);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(write_values(&m, (const double[]){ 1, 0, 0 }, 3), 1);
	expect(&m, 0, 1, 1, 1001);
	assert_true(m.node.figures[FAULT_OVERRUN] >= 1900);
	end(&m);
}

static void a_snapshot_is_recorded_too(void **state)
{
	struct made_node m;

	write_file("snap", NETWORK "snapshot\n");
	assert_int_equal(begin(&m, "snap", LISTS), 0);
	assert_int_equal(write_values(&m, (const double[]){ 7, 0, 0 }, 3), 1);
	expect(&m, 0, 1, 7, 1007);
	end(&m);
}

static void a_record_that_is_cut_short_is_not_read(void **state)
{
	struct made_node m;

	write_file("cut", NETWORK "short\n");
	assert_int_equal(begin(&m, "cut", LISTS), 0);
	assert_int_equal(write_values(&m, (const double[]){ 7, 0, 0 }, 3), 0);
	assert_int_equal(m.node.counters.losses[NODE_LOSS_REFUSED], 1);
	end(&m);
}

static void what_is_missing_lets_the_start_fail(void **state)
{
	const char *was = library;
	struct made_node m, other;

	assert_true(begin(&m, "none", LISTS) < 0);
	write_file("fewer", "load l1\nmonitor m1 2\nmonitor m2 1\n");
	assert_true(begin(&m, "fewer", LISTS) < 0);
	write_file("blind", "load l1\ngenerator g\nmonitor m1 2\n");
	assert_true(begin(&m, "blind", LISTS) < 0);
	library = "/nowhere/libdss_capi.so";
	assert_int_equal(begin(&m, "net", LISTS), -ELIBACC);
	library = "libm.so.6";
	assert_int_equal(begin(&m, "net", LISTS), -ELIBACC);
	library = was;
	/* One circuit for all nodes. */
	assert_int_equal(begin(&m, "net", LISTS), 0);
	assert_int_equal(begin(&other, "net", LISTS), -EBUSY);
	assert_int_equal(write_values(&m, (const double[]){ 7, 0, 0 }, 3), 1);
	end(&m);
	assert_int_equal(begin(&m, "net", LISTS), 0);
	end(&m);
}

static void settings_that_cannot_be_meant_are_refused(void **state)
{
	static const char *const rows[] = {
		"{}",
		"{\"file_path\": \"a\\\"b\"}",
		"{\"file_path\": \"a\", \"library\": \"\"}",
		"{\"file_path\": \"a\", \"in\": {\"list\": {}}}",
		"{\"file_path\": \"a\", \"in\": {\"list\": [\"l1\"]}}",
		"{\"file_path\": \"a\", \"in\": {\"list\": [{\"name\": \"l\", \"type\": \"load\"}]}}",
		"{\"file_path\": \"a\", \"in\": {\"list\": [{\"name\": \"l\", \"type\": \"line\", \"data\": [\"kW\"]}]}}",
		"{\"file_path\": \"a\", \"in\": {\"list\": [{\"name\": \"l\", \"type\": \"load\", \"data\": [\"Amps\"]}]}}",
		"{\"file_path\": \"a\", \"in\": {\"list\": [{\"name\": \"l\", \"type\": \"isource\", \"data\": [\"kW\"]}]}}",
		"{\"file_path\": \"a\", \"in\": {\"list\": [{\"name\": \"\", \"type\": \"load\", \"data\": [\"kW\"]}]}}",
		"{\"file_path\": \"a\", \"out\": {\"list\": [1]}}",
		"{\"file_path\": \"a\", \"out\": {\"list\": \"m\"}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct made_node m;

		assert_int_equal(try_node(&m, &node_opendss, rows[i]), -EINVAL);
		drop_node(&m);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample_that_is_written_is_a_step_whose_result_is_read),
		cmocka_unit_test(all_properties_reach_their_elements),
		cmocka_unit_test(a_step_without_a_result_is_refused_and_counted),
		cmocka_unit_test(results_that_nobody_reads_are_counted),
		cmocka_unit_test(a_snapshot_is_recorded_too),
		cmocka_unit_test(a_record_that_is_cut_short_is_not_read),
		cmocka_unit_test(what_is_missing_lets_the_start_fail),
		cmocka_unit_test(settings_that_cannot_be_meant_are_refused),
	};

	library = argv[1];
	return cmocka_run_group_tests(tests, setup, teardown);
}
