/* SPDX-License-Identifier: BSD-2-Clause */
/* Which parameters become axes, and which ones name the curves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "bench/report/axes.h"

static void add(struct report *r, json_t *parameters)
{
	struct report_case *c = report_case_add(r, "id", "hca");

	assert_non_null(c);
	json_decref(c->parameters);
	c->parameters = parameters;
}

static void find(struct report *r, struct report_axes *axes)
{
	assert_int_equal(report_group_cases(r), 0);
	assert_int_equal(r->group_count, 1);
	assert_int_equal(report_axes_find(&r->groups[0], axes), 0);
}

static void a_swept_size_is_the_axis_and_types_name_the_curves(void **state)
{
	static const char *const types[] = { "RC", "UC" };
	struct report_axes axes;
	struct report r = { 0 };

	for (int i = 5; i-- > 0;)
		for (int t = 0; t < 2; t++)
			/* The burst follows from the size. */
			add(&r, json_pack("{s:s, s:i, s:i, s:i}", "type", types[t], "size",
					  8 << i, "burst", i < 2 ? 8000 : 4096 - i, "mtu", 4096));
	find(&r, &axes);
	assert_string_equal(axes.x.key, "size");
	assert_null(axes.y.key);
	assert_int_equal(axes.line_count, 2);
	assert_string_equal(axes.lines[0].label, "RC");
	assert_int_equal(axes.lines[0].count, 5);
	for (size_t i = 0; i < 5; i++)
		assert_true(report_axis_value(&axes.x, axes.lines[0].cases[i]) == 8 << i);
	report_axes_free(&axes);
	report_free(&r);
}

static void rate_and_values_span_a_surface(void **state)
{
	struct report_axes axes;
	struct report r = { 0 };

	for (int rate = 1; rate <= 3; rate++)
		for (int values = 1; values <= 4; values++)
			add(&r, json_pack("{s:f, s:i}", "rate", rate * 1000.0, "values",
					  values));
	find(&r, &axes);
	assert_string_equal(axes.x.key, "rate");
	assert_string_equal(axes.y.key, "values");
	assert_int_equal(axes.line_count, 1);
	report_axes_free(&axes);
	report_free(&r);
}

static void two_values_are_no_axis(void **state)
{
	char label[REPORT_LABEL_MAX];
	struct report_axes axes;
	struct report r = { 0 };

	add(&r, json_pack("{s:b, s:i, s:s}", "poll_send", 1, "size", 8, "mode", ""));
	add(&r, json_pack("{s:b, s:i, s:s}", "poll_send", 0, "size", 32, "mode", "RC"));
	find(&r, &axes);
	assert_null(axes.x.key);
	assert_true(isnan(report_axis_value(&axes.x, &r.cases[0])));
	assert_int_equal(axes.line_count, 2);
	assert_string_equal(report_case_label(&r.groups[0], &r.cases[0], label),
			    "poll-send, size 8, none");
	assert_string_equal(report_case_label(&r.groups[0], &r.cases[1], label),
			    "no poll-send, size 32, RC");
	report_axes_free(&axes);
	report_free(&r);
}

static void a_case_alone_has_its_id_as_label(void **state)
{
	char label[REPORT_LABEL_MAX];
	struct report_axes axes;
	struct report r = { 0 };

	add(&r, json_pack("{s:i}", "size", 8));
	find(&r, &axes);
	assert_int_equal(axes.line_count, 1);
	assert_string_equal(report_case_label(&r.groups[0], &r.cases[0], label), "id");
	report_axes_free(&axes);
	report_free(&r);
}

static void long_labels_are_cut(void **state)
{
	char label[REPORT_LABEL_MAX], name[300];
	struct report r = { 0 };

	memset(name, 'x', sizeof(name));
	name[299] = '\0';
	add(&r, json_pack("{s:s, s:s}", "a", name, "b", "1"));
	add(&r, json_pack("{s:s, s:s}", "a", "y", "b", "2"));
	assert_int_equal(report_group_cases(&r), 0);
	assert_int_equal(strlen(report_case_label(&r.groups[0], &r.cases[0], label)),
			 REPORT_LABEL_MAX - 1);
	report_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_swept_size_is_the_axis_and_types_name_the_curves),
		cmocka_unit_test(rate_and_values_span_a_surface),
		cmocka_unit_test(two_values_are_no_axis),
		cmocka_unit_test(a_case_alone_has_its_id_as_label),
		cmocka_unit_test(long_labels_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
