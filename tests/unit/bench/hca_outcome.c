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

/* What was posted at 1,000 ns and then every 1,000 ns waits in a queue, which is drained within
 * 30 ns at 5,000. */
static void a_queue_that_is_drained_is_no_rate(void **state)
{
	const struct hca_case modes[] = {
		{ .type = HCA_RC, .mode = HCA_ONEWAY, .size = 100, .sges = 1, .burst = 4,
		  .repetitions = 1 },
		{ .type = HCA_RC, .mode = HCA_THROUGHPUT, .size = 100, .sges = 1, .burst = 4,
		  .repetitions = 1 },
	};

	for (size_t m = 0; m < 2; m++) {
		double rate = 0, payload = 0;
		struct hca_outcome o;
		struct hca_shared *s;

		assert_int_equal(hca_shared_create(&modes[m], &s), 0);
		for (size_t i = 0; i < s->rows; i++) {
			s->column[HCA_T_SUBM][i] = 1000 * (i + 1);
			s->column[HCA_T_RECV][i] = 5000 + 10 * i;
		}
		s->column[HCA_T_RECV][s->rows - 1] = 5000;
		s->end[HCA_SENDER].sent = s->end[HCA_RECEIVER].received = 4;
		s->end[HCA_RECEIVER].busy_ns = 30;
		assert_int_equal(hca_outcome_make(&modes[m], s, &o), 0);
		for (size_t i = 0; i < o.figure_count; i++) {
			if (!strcmp(o.figures[i].name, "rate"))
				rate = o.figures[i].value;
			if (!strcmp(o.figures[i].name, "bandwidth"))
				payload = o.figures[i].value;
		}
		/* Four in 4 us. */
		assert_true(rate > 0.99e6 && rate <= 1e6);
		assert_true(payload > 99 && payload <= 100);
		hca_outcome_free(&o);
		hca_shared_destroy(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_that_are_lost_are_an_error_with_rc_only),
		cmocka_unit_test(rc_that_loses_nothing_is_none),
		cmocka_unit_test(a_queue_that_is_drained_is_no_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
