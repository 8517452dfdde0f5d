/* SPDX-License-Identifier: BSD-2-Clause */
/* What the adapter benchmark makes of what its ends have counted. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/hca/case.h"
#include "bench/result/result.h"

/* The status, and how many messages are lost; of three that were sent. */
static int outcome_of(enum hca_service type, enum hca_mode mode, uint64_t there, uint64_t back,
		      double *lost)
{
	const struct hca_case c = {
		.type = type, .mode = mode, .size = 8, .sges = 1, .burst = 3, .repetitions = 1,
	};
	struct hca_outcome o;
	struct hca_shared *s;
	int ret;

	assert_int_equal(hca_shared_create(&c, &s), 0);
	s->end[HCA_SENDER].sent = 3;
	s->end[HCA_SENDER].received = back;
	s->end[HCA_RECEIVER].received = there;
	ret = hca_outcome_make(&c, s, &o);
	for (size_t i = 0; !ret && i < o.figure_count; i++)
		if (!strcmp(o.figures[i].name, "lost"))
			*lost = o.figures[i].value;
	if (!ret)
		hca_outcome_free(&o);
	hca_shared_destroy(s);
	return ret;
}

static void messages_that_are_lost_are_an_error_with_rc_only(void **state)
{
	double lost = -1;

	assert_int_equal(outcome_of(HCA_RC, HCA_ONEWAY, 2, 0, &lost), -EIO);
	assert_int_equal(outcome_of(HCA_RC, HCA_THROUGHPUT, 2, 0, &lost), -EIO);
	assert_int_equal(outcome_of(HCA_RC, HCA_ROUNDTRIP, 3, 2, &lost), -EIO);
	assert_int_equal(outcome_of(HCA_UD, HCA_ONEWAY, 2, 0, &lost), 0);
	assert_true(lost == 1);
	assert_int_equal(outcome_of(HCA_UC, HCA_ROUNDTRIP, 3, 1, &lost), 0);
	assert_true(lost == 2);
}

static void rc_that_loses_nothing_is_none(void **state)
{
	double lost = -1;

	assert_int_equal(outcome_of(HCA_RC, HCA_ONEWAY, 3, 0, &lost), 0);
	assert_true(lost == 0);
	assert_int_equal(outcome_of(HCA_RC, HCA_ROUNDTRIP, 3, 3, &lost), 0);
	assert_true(lost == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_that_are_lost_are_an_error_with_rc_only),
		cmocka_unit_test(rc_that_loses_nothing_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
