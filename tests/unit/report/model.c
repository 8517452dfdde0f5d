/* SPDX-License-Identifier: BSD-2-Clause */
/* Shares of different wholes: what is lost is a share of what was not missed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/report/model.h"

static void missed_and_lost_never_exceed_all(void **state)
{
	struct report r = { 0 };
	struct report_case *c = report_case_add(&r, "a", "node");

	(void)state;
	assert_non_null(c);
	assert_true(isnan(report_missed(c)));
	assert_int_equal(report_value_add(c, "lost", NULL, "", 7), 0);
	assert_true(isnan(report_missed(c)));
	assert_int_equal(report_value_add(c, "lost_share", NULL, "%", 60), 0);
	assert_true(fabs(report_missed(c) - 60) < 1e-9);
	assert_int_equal(report_value_add(c, "missed_share", NULL, "%", 50), 0);
	assert_true(fabs(report_missed(c) - 80) < 1e-9);
	report_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missed_and_lost_never_exceed_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
