/* SPDX-License-Identifier: BSD-2-Clause */
/* Matching of what was sent with what was received. */
#include "bench/delivery/match.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct delivery_samples sent, received;

static void add(struct delivery_samples *l, uint64_t sequence, double value,
		long latency_ns)
{
	struct sample *s = calloc(1, sizeof(*s) + sizeof(s->data[0]));

	s->sequence = sequence;
	s->length = 1;
	s->data[0].f = value;
	s->origin = (struct timespec){ 100, (long)sequence * 1000 };
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	if (latency_ns) {
		s->received = s->origin;
		s->received.tv_nsec += latency_ns;
		s->flags |= SAMPLE_HAS_RECEIVED;
	}
	assert_int_equal(delivery_samples_add(l, s), 0);
	free(s);
}

static int clear(void **state)
{
	delivery_samples_free(&sent);
	delivery_samples_free(&received);
	memset(&sent, 0, sizeof(sent));
	memset(&received, 0, sizeof(received));
	return 0;
}

static struct delivery_result match(struct delivery_options o)
{
	struct delivery_result r;

	assert_int_equal(delivery_match(&sent, &received, &o, &r), 0);
	return r;
}

static void equal_files_are_equal(void **state)
{
	struct delivery_result r;

	for (uint64_t i = 0; i < 1000; i++) {
		add(&sent, i, sin((double)i), 0);
		add(&received, i, sin((double)i), (long)(i + 1) * 100);
	}
	r = match((struct delivery_options){ 0 });
	assert_int_equal(r.sent, 1000);
	assert_int_equal(r.matched, 1000);
	assert_int_equal(r.lost + r.before + r.out_of_order + r.duplicates +
			 r.unknown + r.values_differ + r.times_differ, 0);
	assert_int_equal(r.latency_count, 1000);
	assert_int_equal(r.latency_ns[0], 100);
	assert_int_equal(r.latency_ns[1], 50000);
	assert_int_equal(r.latency_ns[2], 99000);
	assert_int_equal(r.latency_ns[3], 99900);
	assert_int_equal(r.latency_ns[4], 100000);
}

/* A generator that stamps planned times: SENT says when each was made. */
static void service_latency_counts_from_the_receive_time_of_what_was_sent(void **state)
{
	struct delivery_result r;

	for (uint64_t i = 0; i < 100; i++) {
		add(&sent, i, 1, i == 7 ? 0 : 50000 + (long)i);
		if (i != 8)
			add(&received, i, 1, 50000 + (long)(2 * i) + 300);
	}
	r = match((struct delivery_options){ 0 });
	assert_int_equal(r.latency_count, 99);
	assert_int_equal(r.latency_ns[4], 50000 + 198 + 300);
	/* What has none, or did not arrive, does not count. */
	assert_int_equal(r.service_count, 98);
	assert_int_equal(r.service_ns[0], 300);
	assert_int_equal(r.service_ns[4], 399);
	assert_int_equal(r.service_ns[1], 350);
}

static void start_up_is_not_loss(void **state)
{
	struct delivery_result r;

	for (uint64_t i = 0; i < 100; i++)
		add(&sent, i, 1, 0);
	for (uint64_t i = 10; i < 100; i++)
		if (i != 50 && i != 99)
			add(&received, i, 1, 1);
	r = match((struct delivery_options){ 0 });
	assert_int_equal(r.before, 10);
	assert_int_equal(r.lost, 2);
	assert_int_equal(r.matched, 88);
}

static void disorder_duplicates_and_foreign_rows_are_told_apart(void **state)
{
	static const uint64_t order[] = { 0, 2, 1, 3, 3, 4, 17, 5 };
	struct delivery_result r;

	for (uint64_t i = 0; i < 6; i++)
		add(&sent, i, 1, 0);
	for (size_t i = 0; i < 8; i++)
		add(&received, order[i], 1, 1);
	r = match((struct delivery_options){ 0 });
	assert_int_equal(r.lost, 0);
	assert_int_equal(r.out_of_order, 2); /* 1 behind 2, 5 behind 17 */
	assert_int_equal(r.duplicates, 1);
	assert_int_equal(r.unknown, 1);
	assert_int_equal(r.values_differ, 0);
}

static void nothing_received_is_before_the_connection(void **state)
{
	struct delivery_result r;

	add(&sent, 0, 1, 0);
	r = match((struct delivery_options){ 0 });
	assert_int_equal(r.before, 1);
	assert_int_equal(r.lost, 0);
	assert_int_equal(r.latency_count, 0);
}

static void values_are_compared_bit_by_bit_unless_told_otherwise(void **state)
{
	struct delivery_options o = { 0 };

	add(&sent, 0, 1, 0);
	add(&received, 0, 1 + 1e-15, 1);
	add(&sent, 1, NAN, 0);
	add(&received, 1, -NAN, 1);
	add(&sent, 2, 0.0, 0);
	add(&received, 2, -0.0, 1);
	assert_int_equal(match(o).values_differ, 2);
	o.epsilon = 1e-12;
	assert_int_equal(match(o).values_differ, 0);
	o.epsilon = 0;
	o.ignore_values = true;
	assert_int_equal(match(o).values_differ, 0);
}

static void origins_are_compared_unless_told_otherwise(void **state)
{
	struct delivery_options o = { 0 };

	add(&sent, 0, 1, 0);
	add(&received, 0, 1, 1);
	received.samples[0].origin.tv_nsec++;
	assert_int_equal(match(o).times_differ, 1);
	o.ignore_times = true;
	assert_int_equal(match(o).times_differ, 0);
}

static void without_sequence_the_position_counts(void **state)
{
	struct delivery_options o = { .ignore_sequence = true,
				     .ignore_times = true };

	for (uint64_t i = 0; i < 10; i++) {
		add(&sent, i, (double)i, 0);
		add(&received, 1000 - i, (double)i, 1);
	}
	assert_int_equal(match(o).matched, 10);
	assert_int_equal(match(o).values_differ, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(equal_files_are_equal, clear),
		cmocka_unit_test_teardown(service_latency_counts_from_the_receive_time_of_what_was_sent, clear),
		cmocka_unit_test_teardown(start_up_is_not_loss, clear),
		cmocka_unit_test_teardown(disorder_duplicates_and_foreign_rows_are_told_apart, clear),
		cmocka_unit_test_teardown(nothing_received_is_before_the_connection, clear),
		cmocka_unit_test_teardown(values_are_compared_bit_by_bit_unless_told_otherwise, clear),
		cmocka_unit_test_teardown(origins_are_compared_unless_told_otherwise, clear),
		cmocka_unit_test_teardown(without_sequence_the_position_counts, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
