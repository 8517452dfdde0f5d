/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the time goes: sums of parts, and time stamps of two nodes as columns. */
#include "bench/result/budget.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/node/budget.h"
#include "bench/node/rows.h"
#include "util/clock.h"

#define HZ 2000000000 /* two ticks a nanosecond */
#define ORIGIN 1700000000000000000

static json_t *latency(const char *label, int count, int p10, int p50, int p90)
{
	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i}", "label", label, "count", count,
			 "p10", p10, "p50", p50 - 1, "p90", p90, "middle", p50);
}

static void parts_are_added_up_and_the_rest_is_what_they_leave(void **state)
{
	json_t *l = json_pack("{s:o, s:o, s:o, s:o, s:o}",
			      "from_step", latency("other", 9, 1, 2, 3),
			      "write", latency("write, from outside", 7, 90, 100, 120),
			      "write.a", latency("first", 5, 10, 30, 50),
			      "write.b", latency("second", 5, 40, 60, 80),
			      "writes", latency("no part", 5, 1, 1, 1));
	struct budget b;

	assert_true(budget_of(l, "write", &b));
	assert_int_equal(b.count, 2);
	assert_string_equal(b.parts[1].label, "second");
	assert_true(b.parts[1].p10 == 40 && b.parts[1].median == 59 && b.parts[1].p90 == 80);
	assert_true(b.sum_ns == 90 && b.rest_ns == 10);
	assert_true(budget_share(&b, b.parts[0].middle) == 30);
	assert_false(budget_of(l, "from_step", &b));
	assert_true(budget_is_part("write.a") && !budget_is_part("write"));
	assert_true(budget_is_part_of("write.a", "write"));
	assert_false(budget_is_part_of("writes", "write"));
	json_decref(l);
}

static void what_was_not_measured_is_not_zero(void **state)
{
	json_t *l = json_pack("{s:{s:s, s:i}, s:o}", "way", "label", "way", "count", 0,
			      "way.a", latency("first", 5, 10, 30, 50));
	struct budget b;

	assert_true(budget_of(l, "way", &b));
	assert_true(b.sum_ns == 30 && isnan(b.rest_ns) && isnan(budget_share(&b, 30)));
	json_decref(l);
}

/* A file of `sent` and `received` rows; malloc()ed. */
static void *stamps(uint64_t sent, uint64_t received, const struct ib_budget_row *rows,
		    size_t *size)
{
	struct ib_budget_header h = { .row_bytes = sizeof(*rows), .sent = sent,
				      .received = received, .tick_hz = HZ,
				      .stamp_ps = 10000 };
	char *data;

	memcpy(h.magic, IB_BUDGET_MAGIC, sizeof(h.magic));
	*size = sizeof(h) + (sent + received) * sizeof(*rows);
	data = malloc(*size);
	assert_non_null(data);
	memcpy(data, &h, sizeof(h));
	if (sent + received)
		memcpy(data + sizeof(h), rows, (sent + received) * sizeof(*rows));
	return data;
}

static void load(uint64_t sent, uint64_t received, const struct ib_budget_row *rows,
		 struct bench_node_stamps *out)
{
	size_t size;
	void *data = stamps(sent, received, rows, &size);

	assert_int_equal(bench_node_stamps_parse(data, size, out), 0);
}

static void a_file_of_another_size_or_kind_is_refused(void **state)
{
	const struct ib_budget_row rows[3] = { { .sequence = 2 }, { .sequence = 1 } };
	struct bench_node_stamps s;
	size_t size;
	char *data;

	for (int wrong = 0; wrong < 7; wrong++) {
		struct ib_budget_header *h;

		data = stamps(2, 1, rows, &size);
		h = (struct ib_budget_header *)data;
		switch (wrong) {
		case 0: size--; break;
		case 1: size = sizeof(*h) - 1; break;
		case 2: h->magic[7] = '9'; break;
		case 3: h->row_bytes = 72; break;
		case 4: h->sent = UINT64_MAX; h->received = 4; break;
		case 5: h->tick_hz = 0; break;
		case 6: size = 0; break;
		}
		assert_int_equal(bench_node_stamps_parse(data, size, &s), -EBADMSG);
		bench_node_stamps_free(&s);
	}
	load(2, 1, rows, &s);
	assert_int_equal(s.sent[0].sequence, 1);
	bench_node_stamps_free(&s);
}

static int64_t span(const struct bench_node_budget *b, size_t row, unsigned from, unsigned to)
{
	int64_t x = b->values[from * b->rows + row], y = b->values[to * b->rows + row];

	assert_true(x != RESULT_ABSENT && y != RESULT_ABSENT);
	return y - x;
}

/* Two samples, the first with all stamps, the second without. Each stamp costs 10 ns. */
static void parts_are_shorter_by_the_stamps_and_the_way_by_those_on_it(void **state)
{
	const struct ib_budget_row source[2] = {
		{ .sequence = 5, .samples = 1, .age_ns = 100,
		  .at = { 1000, 1040, 1100, 1200, 1240, 1300, 1330 } },
		{ .sequence = 6, .samples = 1, .age_ns = 90, .whole = 1,
		  .at = { 3000, 0, 0, 0, 0, 0, 3200 } },
	};
	const struct ib_budget_row target[2] = {
		{ .sequence = 5, .samples = 1, .age_ns = INT64_MIN,
		  .at = { 1050, 1080, 1180, 1240, 1300, 1380, 1410 } },
		{ .sequence = 6, .samples = 1, .age_ns = INT64_MIN, .whole = 1,
		  .at = { 3020, 0, 0, 0, 0, 0, 3260 } },
	};
	struct delivery_sample sent[2], received[2];
	struct delivery_samples a = { .samples = sent, .count = 2 };
	struct delivery_samples b = { .samples = received, .count = 2 };
	struct bench_node_stamps from, to;
	struct bench_node_budget budget;

	for (size_t i = 0; i < 2; i++) {
		sent[i] = (struct delivery_sample){
			.sequence = 5 + i, .match = i, .flags = SAMPLE_HAS_RECEIVED,
			.received = timespec_from_ns(ORIGIN + i * 10000) };
		received[i] = sent[i];
		received[i].received = timespec_from_ns(ORIGIN + i * 10000 + 250);
	}
	load(2, 0, source, &from);
	load(0, 2, target, &to);
	assert_int_equal(bench_node_budget_fill(&from, &to, &a, &b, &budget), 0);
	assert_int_equal(budget.writes, 2);
	assert_int_equal(budget.reads, 2);
	/* 40 ticks are 20 ns, of which 10 are the stamp's. */
	assert_int_equal(span(&budget, 0, BUDGET_WRITE, BUDGET_WRITE + 1), 10);
	assert_int_equal(span(&budget, 0, BUDGET_WRITE + 2, BUDGET_WRITE + 3), 40);
	assert_int_equal(span(&budget, 0, BUDGET_READ + 1, BUDGET_READ + 2), 40);
	assert_int_equal(span(&budget, 1, BUDGET_WRITE_CALL, BUDGET_WRITE_END), 90);
	assert_int_equal(span(&budget, 1, BUDGET_READ_CALL, BUDGET_READ_END), 110);
	/* 100 ns until write, less a stamp. */
	assert_int_equal(budget.values[BUDGET_WRITE * budget.rows], ORIGIN + 90);
	/* From post_send to the end of poll_cq 80 ticks, less one stamp. */
	assert_int_equal(span(&budget, 0, BUDGET_WRITE + 2, BUDGET_WAY_POLLED), 30);
	assert_int_equal(span(&budget, 0, BUDGET_WAY_POLLED, BUDGET_WAY_STAMPED), 20);
	/* The clock was asked when four stamps had been taken. */
	assert_int_equal(budget.values[BUDGET_WAY_RECV * budget.rows], ORIGIN + 250 - 40);
	assert_int_equal(budget.values[BUDGET_ARRIVED * budget.rows + 1],
			 ORIGIN + 10000 + 250 - 10);
	/* Not both: a call has all stamps or none. */
	assert_true(budget.values[BUDGET_ARRIVED * budget.rows] == RESULT_ABSENT);
	assert_true(budget.values[BUDGET_WRITE * budget.rows + 1] == RESULT_ABSENT);
	assert_true(budget.values[BUDGET_READ_CALL * budget.rows] == RESULT_ABSENT);
	bench_node_budget_free(&budget);
	bench_node_stamps_free(&from);
	bench_node_stamps_free(&to);
}

/* Calls of several samples say nothing about one; a sample may be in no call. */
static void calls_of_several_samples_do_not_count(void **state)
{
	const struct ib_budget_row source[1] = { { .sequence = 5, .samples = 2, .age_ns = 1 } };
	struct delivery_sample sent[1] = { { .sequence = 5, .match = DELIVERY_NONE,
					     .flags = SAMPLE_HAS_RECEIVED } };
	struct delivery_samples a = { .samples = sent, .count = 1 }, b = { .count = 0 };
	struct bench_node_stamps from, to;
	struct bench_node_budget budget;

	load(1, 0, source, &from);
	load(0, 0, NULL, &to);
	assert_int_equal(bench_node_budget_fill(&from, &to, &a, &b, &budget), 0);
	assert_int_equal(budget.writes, 0);
	for (size_t i = 0; i < BUDGET_COLUMNS; i++)
		assert_true(budget.values[i] == RESULT_ABSENT);
	bench_node_budget_free(&budget);
	bench_node_stamps_free(&from);
	bench_node_stamps_free(&to);
}

/* Steps of 10 us; up to 100 us are made up. Two steps are missed after the sample 1, whose way
 * ended `done_ns` after its plan. */
static uint64_t missed_behind(int64_t done_ns)
{
	struct delivery_sample sent[] = { { .sequence = 0, .match = 0 },
					  { .sequence = 1, .match = 1 },
					  { .sequence = 4, .match = 2 } };
	struct delivery_sample received[3];
	struct delivery_samples a = { .samples = sent, .count = 3 };
	struct delivery_samples b = { .samples = received, .count = 3 };

	for (size_t i = 0; i < 3; i++) {
		sent[i].origin = timespec_from_ns(ORIGIN + sent[i].sequence * 10000);
		received[i] = sent[i];
		received[i].received = sent[i].origin;
	}
	received[1].received = timespec_from_ns(ORIGIN + 10000 + (uint64_t)done_ns);
	return bench_node_missed_behind(&a, &b, 10000, 100000);
}

static void a_miss_is_the_paths_if_it_came_back_too_late_for_the_step(void **state)
{
	assert_int_equal(missed_behind(500), 0);
	assert_int_equal(missed_behind(109999), 0);
	/* The step at 10 us is late by more than 100, that at 20 us is not yet. */
	assert_int_equal(missed_behind(110001), 1);
	assert_int_equal(missed_behind(120001), 2);
	assert_int_equal(missed_behind(500000), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_added_up_and_the_rest_is_what_they_leave),
		cmocka_unit_test(what_was_not_measured_is_not_zero),
		cmocka_unit_test(a_file_of_another_size_or_kind_is_refused),
		cmocka_unit_test(parts_are_shorter_by_the_stamps_and_the_way_by_those_on_it),
		cmocka_unit_test(calls_of_several_samples_do_not_count),
		cmocka_unit_test(a_miss_is_the_paths_if_it_came_back_too_late_for_the_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
