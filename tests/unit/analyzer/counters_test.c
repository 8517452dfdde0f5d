/* SPDX-License-Identifier: BSD-2-Clause */
/* Each row of the table by which counters are judged, and what must not be taken for a pitfall. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "analyzer/counters.h"

#define MS INT64_C(1000000)
#define ALL ((1u << ANALYZER_COUNTS) - 1)
#define T ANALYZER_COUNT_TIMEOUTS
#define RNR ANALYZER_COUNT_RNR_NAKS
#define SEQ ANALYZER_COUNT_SEQUENCE
#define GAPS ANALYZER_COUNT_GAPS
#define AGAIN ANALYZER_COUNT_REPEATS
#define ASKED ANALYZER_COUNT_REQUESTS
#define LEFT ANALYZER_COUNT_GIVEN_UP
#define PAGES ANALYZER_COUNT_PAGE_FAULTS
#define BYTES ANALYZER_COUNT_BYTES
#define BAD ANALYZER_COUNT_DAMAGED

/* Growth of some counters in an interval of 100 ms, `at` intervals after the start. */
struct grown {
	unsigned at;
	enum analyzer_kind kind; /* that is expected */
	struct {
		enum analyzer_counter counter;
		uint64_t by;
	} counter[6];
};

static enum analyzer_kind add(struct analyzer_counters *c, const struct grown *g, uint32_t known)
{
	struct analyzer_interval i = { .begin_ns = g->at * 100 * MS, .end_ns = (g->at + 1) * 100 * MS,
				       .known = known };

	for (size_t k = 0; k < sizeof(g->counter) / sizeof(g->counter[0]); k++)
		i.grown[g->counter[k].counter] += g->counter[k].by;
	return analyzer_counters_add(c, &i);
}

/* All intervals have their kinds; those between are quiet. Returns the verdict. */
static enum analyzer_kind judge(struct analyzer_counters *c, const struct grown *g, size_t count)
{
	unsigned at = 0;

	memset(c, 0, sizeof(*c));
	for (size_t k = 0; k < count; at++) {
		const struct grown quiet = { .at = at, .kind = ANALYZER_NONE };
		const struct grown *now = g[k].at == at ? &g[k++] : &quiet;
		enum analyzer_kind kind = add(c, now, ALL);

		if (kind != now->kind)
			fail_msg("interval %u is %d and not %d", at, kind, now->kind);
	}
	return analyzer_counters_verdict(c);
}

#define JUDGE(c, ...) judge(c, (const struct grown[]){ __VA_ARGS__ }, \
			    sizeof((const struct grown[]){ __VA_ARGS__ }) / sizeof(struct grown))

static void a_timeout_behind_an_rnr_nak_is_damming_of_the_server_side(void **state)
{
	struct analyzer_counters c;

	assert_int_equal(JUDGE(&c, { 1, ANALYZER_RNR, { { RNR, 1 }, { BYTES, 500 } } },
			       { 6, ANALYZER_DAMMING, { { T, 1 }, { BYTES, 500 }, { AGAIN, 1 } } }),
			 ANALYZER_DAMMING);
	assert_int_equal(c.side, ANALYZER_SERVER);
	assert_int_equal(c.stalls, 1);
	assert_int_equal(analyzer_counters_confidence(&c, ANALYZER_DAMMING), ANALYZER_MEDIUM);
	/* Both within one interval. */
	assert_int_equal(JUDGE(&c, { 0, ANALYZER_DAMMING, { { RNR, 1 }, { T, 1 } } }), ANALYZER_DAMMING);
	assert_int_equal(analyzer_counters_confidence(&c, ANALYZER_DAMMING), ANALYZER_LOW);
}

static void a_busy_port_lowers_the_confidence(void **state)
{
	struct analyzer_counters c;

	JUDGE(&c, { 0, ANALYZER_RNR, { { RNR, 1 }, { BYTES, 1000000 } } },
	      { 1, ANALYZER_NONE, { { BYTES, 1000000 } } }, { 2, ANALYZER_NONE, { { BYTES, 1000000 } } },
	      { 3, ANALYZER_NONE, { { BYTES, 1000000 } } }, { 4, ANALYZER_DAMMING, { { T, 1 } } });
	assert_int_equal(analyzer_counters_confidence(&c, ANALYZER_DAMMING), ANALYZER_LOW);
}

static void a_timeout_behind_a_page_fault_is_damming_of_the_client_side(void **state)
{
	struct analyzer_counters c;

	assert_int_equal(JUDGE(&c, { 0, ANALYZER_PAGE_FAULT, { { PAGES, 1 } } },
			       { 5, ANALYZER_DAMMING, { { T, 1 } } }), ANALYZER_DAMMING);
	assert_int_equal(c.side, ANALYZER_CLIENT);
}

static void an_rnr_nak_long_ago_explains_no_timeout(void **state)
{
	struct analyzer_counters c;

	assert_int_equal(JUDGE(&c, { 0, ANALYZER_RNR, { { RNR, 1 } } },
			       { 40, ANALYZER_TIMEOUT, { { T, 1 } } }), ANALYZER_TIMEOUT);
	assert_int_equal(JUDGE(&c, { 0, ANALYZER_TIMEOUT, { { T, 3 } } }), ANALYZER_TIMEOUT);
}

static void a_request_that_was_given_up_met_no_peer(void **state)
{
	struct analyzer_counters c;

	assert_int_equal(JUDGE(&c, { 0, ANALYZER_RNR, { { RNR, 1 } } },
			       { 4, ANALYZER_TIMEOUT, { { T, 1 }, { LEFT, 1 } } }), ANALYZER_TIMEOUT);
}

static void many_repeats_without_rnr_naks_are_a_read_flood(void **state)
{
	struct analyzer_counters c;

	assert_int_equal(JUDGE(&c, { 0, ANALYZER_READ_FLOOD,
				     { { AGAIN, 4000 }, { ASKED, 4100 }, { PAGES, 100 }, { BYTES, 9000000 } } }),
			 ANALYZER_READ_FLOOD);
	/* Of an adapter that does not count repeats as requests; a few timeouts beside. */
	assert_int_equal(JUDGE(&c, { 0, ANALYZER_READ_FLOOD,
				     { { AGAIN, 9000 }, { ASKED, 100 }, { T, 2 } } }),
			 ANALYZER_READ_FLOOD);
	assert_int_equal(analyzer_counters_confidence(&c, ANALYZER_READ_FLOOD), ANALYZER_MEDIUM);
}

static void a_timeout_with_many_requests_behind_it_is_no_flood(void **state)
{
	struct analyzer_counters c;

	assert_int_equal(JUDGE(&c, { 0, ANALYZER_TIMEOUT, { { T, 4 }, { AGAIN, 4000 } } }),
			 ANALYZER_TIMEOUT);
}

static void many_repeats_behind_rnr_naks_are_write_amplification(void **state)
{
	struct analyzer_counters c;

	assert_int_equal(JUDGE(&c, { 0, ANALYZER_WRITE_AMPLIFICATION,
				     { { RNR, 24 }, { AGAIN, 1200 }, { ASKED, 96 }, { PAGES, 24 } } }),
			 ANALYZER_WRITE_AMPLIFICATION);
	/* The end of an interval may come between an RNR NAK and what it makes the requester repeat. */
	assert_int_equal(JUDGE(&c, { 0, ANALYZER_RNR, { { RNR, 24 } } },
			       { 1, ANALYZER_WRITE_AMPLIFICATION, { { AGAIN, 1200 }, { ASKED, 96 } } }),
			 ANALYZER_WRITE_AMPLIFICATION);
}

static void sequence_errors_are_losses_of_the_fabric(void **state)
{
	struct analyzer_counters c;

	assert_int_equal(JUDGE(&c, { 0, ANALYZER_LOSS, { { SEQ, 1 }, { AGAIN, 5 }, { ASKED, 100 } } },
			       { 1, ANALYZER_LOSS, { { GAPS, 1 } } },
			       { 6, ANALYZER_LOSS, { { T, 1 } } }), ANALYZER_LOSS);
	/* Also with an RNR NAK before, and where a port counts damaged packets. */
	assert_int_equal(JUDGE(&c, { 0, ANALYZER_RNR, { { RNR, 1 } } },
			       { 2, ANALYZER_LOSS, { { BAD, 1 } } },
			       { 5, ANALYZER_LOSS, { { T, 1 } } }), ANALYZER_LOSS);
}

static void usual_traffic_is_nothing(void **state)
{
	struct analyzer_counters c;

	assert_int_equal(JUDGE(&c, { 0, ANALYZER_NONE, { { ASKED, 100000 }, { AGAIN, 63 }, { BYTES, 1u << 30 } } },
			       { 1, ANALYZER_NONE, { { ASKED, 100000 }, { AGAIN, 10000 } } }), ANALYZER_NONE);
	assert_int_equal(JUDGE(&c, { 0, ANALYZER_RNR, { { RNR, 3 }, { ASKED, 100 }, { AGAIN, 6 } } },
			       { 1, ANALYZER_PAGE_FAULT, { { RNR, 3 }, { PAGES, 3 } } }), ANALYZER_RNR);
}

static void the_gravest_kind_is_the_verdict(void **state)
{
	struct analyzer_counters c;

	assert_int_equal(JUDGE(&c, { 0, ANALYZER_DAMMING, { { RNR, 1 }, { T, 1 } } },
			       { 30, ANALYZER_READ_FLOOD, { { AGAIN, 4000 }, { ASKED, 10 } } },
			       { 31, ANALYZER_LOSS, { { SEQ, 4000 } } }), ANALYZER_DAMMING);
	assert_int_equal(c.grown[SEQ], 4000);
	assert_int_equal(c.intervals[ANALYZER_LOSS], 1);
}

static void what_a_missing_counter_hides_is_said(void **state)
{
	struct analyzer_counters c = { 0 };
	const struct grown rnr = { 0, ANALYZER_RNR, { { RNR, 1 }, { T, 1 } } };

	assert_null(analyzer_counters_doubt(ALL, ANALYZER_DAMMING));
	assert_non_null(analyzer_counters_doubt(ALL & ~(1u << T), ANALYZER_DAMMING));
	assert_null(analyzer_counters_doubt(ALL & ~(1u << PAGES), ANALYZER_DAMMING));
	assert_non_null(analyzer_counters_doubt(ALL & ~(1u << PAGES | 1u << RNR), ANALYZER_DAMMING));
	assert_non_null(analyzer_counters_doubt(ALL & ~(1u << AGAIN), ANALYZER_READ_FLOOD));
	assert_non_null(analyzer_counters_doubt(ALL & ~(1u << RNR), ANALYZER_WRITE_AMPLIFICATION));
	assert_non_null(analyzer_counters_doubt(0, ANALYZER_TIMEOUT));
	/* Without sequence errors a loss cannot be excluded. */
	assert_int_equal(add(&c, &rnr, ALL & ~(1u << SEQ)), ANALYZER_DAMMING);
	assert_int_equal(analyzer_counters_confidence(&c, ANALYZER_DAMMING), ANALYZER_LOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_timeout_behind_an_rnr_nak_is_damming_of_the_server_side),
		cmocka_unit_test(a_busy_port_lowers_the_confidence),
		cmocka_unit_test(a_timeout_behind_a_page_fault_is_damming_of_the_client_side),
		cmocka_unit_test(an_rnr_nak_long_ago_explains_no_timeout),
		cmocka_unit_test(a_request_that_was_given_up_met_no_peer),
		cmocka_unit_test(many_repeats_without_rnr_naks_are_a_read_flood),
		cmocka_unit_test(a_timeout_with_many_requests_behind_it_is_no_flood),
		cmocka_unit_test(many_repeats_behind_rnr_naks_are_write_amplification),
		cmocka_unit_test(sequence_errors_are_losses_of_the_fabric),
		cmocka_unit_test(usual_traffic_is_nothing),
		cmocka_unit_test(the_gravest_kind_is_the_verdict),
		cmocka_unit_test(what_a_missing_counter_hides_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
