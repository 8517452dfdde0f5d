/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of services elsewhere, and how many answers a source gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ripc/find/known.h"
#include "ripc/find/limit.h"

#define SECOND UINT64_C(1000000000)

static struct known known;

static struct packet_where at(uint64_t instance)
{
	return (struct packet_where){ .instance = instance };
}

static uint64_t learn(enum known_how how, uint32_t id, const char *name, uint64_t instance,
		      uint64_t now_ns)
{
	const struct packet_where where = at(instance);

	return known_learn(&known, how, id, name, &where, now_ns);
}

static uint64_t instance_of(uint32_t id)
{
	struct known_service *s = known_find(&known, id);

	return s ? s->where.instance : 0;
}

static int setup(void **state)
{
	known_init(&known);
	return 0;
}

static int teardown(void **state)
{
	known_free(&known);
	return 0;
}

static void remembers_answers_and_who_asked(void **state)
{
	assert_int_equal(learn(KNOWN_ANSWERED, 1, "one", 11, SECOND), 0);
	assert_int_equal(learn(KNOWN_ASKED, 2, "", 22, SECOND), 0);
	assert_int_equal(learn(KNOWN_ANNOUNCED, 3, "", 33, SECOND), 0);
	assert_int_equal(instance_of(1), 11);
	assert_int_equal(instance_of(2), 22);
	assert_int_equal(instance_of(3), 0); /* nobody has asked for it */
	assert_int_equal(known_find_name(&known, "one")->id, 1);
	assert_null(known_find_name(&known, "two"));
}

static void says_when_a_service_has_moved(void **state)
{
	learn(KNOWN_ASKED, 1, "", 11, SECOND);
	assert_int_equal(learn(KNOWN_ASKED, 1, "", 11, SECOND), 0);
	assert_int_equal(learn(KNOWN_ASKED, 1, "", 12, SECOND), 11);
	assert_int_equal(learn(KNOWN_ANNOUNCED, 1, "", 13, SECOND), 12);
	assert_int_equal(learn(KNOWN_ANSWERED, 1, "", 14, SECOND), 13);
	assert_int_equal(instance_of(1), 14);
}

static void believes_an_answer_more_than_a_late_question(void **state)
{
	learn(KNOWN_ANSWERED, 1, "", 11, SECOND);
	assert_int_equal(learn(KNOWN_ASKED, 1, "", 12, SECOND + KNOWN_FRESH_NS - 1), 0);
	assert_int_equal(instance_of(1), 11);
	assert_int_equal(learn(KNOWN_ASKED, 1, "", 12, SECOND + KNOWN_FRESH_NS), 11);
	assert_int_equal(instance_of(1), 12);
	/* An answer counts at once. */
	assert_int_equal(learn(KNOWN_ANSWERED, 1, "", 13, 2 * SECOND), 12);
	assert_int_equal(learn(KNOWN_ANSWERED, 1, "", 14, 2 * SECOND), 13);
}

static void forgets_an_instance(void **state)
{
	learn(KNOWN_ANSWERED, 1, "", 11, SECOND);
	learn(KNOWN_ANSWERED, 2, "", 11, SECOND);
	learn(KNOWN_ANSWERED, 3, "", 12, SECOND);
	known_forget(&known, 11);
	assert_int_equal(instance_of(1), 0);
	assert_int_equal(instance_of(2), 0);
	assert_int_equal(instance_of(3), 12);
	assert_int_equal(learn(KNOWN_ANSWERED, 1, "", 12, SECOND), 0);
}

static void remembers_from_where_a_service_has_left(void **state)
{
	learn(KNOWN_ANSWERED, 1, "store", 11, SECOND);
	known_leave(&known, 12, 1); /* it was not there */
	assert_int_equal(instance_of(1), 11);
	known_leave(&known, 11, 1);
	assert_int_equal(instance_of(1), 0);
	assert_null(known_find_name(&known, "store"));
	/* However fresh the answer was. */
	assert_int_equal(learn(KNOWN_ANNOUNCED, 1, "", 12, SECOND), 11);
	assert_int_equal(instance_of(1), 12);
	known_leave(&known, 12, 1);
	assert_int_equal(learn(KNOWN_ANNOUNCED, 1, "", 12, SECOND), 0); /* it is back */
	assert_int_equal(instance_of(1), 12);
}

static void gives_a_name_to_one_service(void **state)
{
	learn(KNOWN_ANSWERED, 1, "store", 11, SECOND);
	learn(KNOWN_ANSWERED, 2, "store", 12, SECOND);
	assert_int_equal(known_find_name(&known, "store")->id, 2);
	assert_string_equal(known_find(&known, 1)->name, "");
}

static void has_a_bound_and_drops_what_was_not_used(void **state)
{
	for (uint32_t id = 1; id <= KNOWN_MAX; id++)
		learn(KNOWN_ASKED, id, "", id, SECOND);
	assert_int_equal(instance_of(1), 1); /* used: not the oldest any more */
	learn(KNOWN_ASKED, KNOWN_MAX + 1, "", 7, SECOND);
	assert_int_equal(known.count, KNOWN_MAX);
	assert_int_equal(instance_of(1), 1);
	assert_int_equal(instance_of(2), 0);
	assert_int_equal(instance_of(KNOWN_MAX + 1), 7);
}

static void limits_the_answers_to_a_source(void **state)
{
	static struct limit limit;
	union address source, other;
	unsigned given = 0;

	limit_init(&limit, (const uint8_t[16]){ 1, 2, 3 });
	address_parse("192.0.2.1", 1, &source);
	for (unsigned i = 0; i < 3 * LIMIT_BURST; i++)
		given += limit_take(&limit, &source, SECOND);
	assert_int_equal(given, LIMIT_BURST);
	/* Other sources do not suffer, but those few that share its place. */
	given = 0;
	for (unsigned i = 2; i < 12; i++) {
		char text[32];

		snprintf(text, sizeof(text), "192.0.2.%u", i);
		address_parse(text, 1, &other);
		given += limit_take(&limit, &other, SECOND);
	}
	assert_true(given >= 8);
	given = 0;
	for (uint64_t t = 0; t < 10 * LIMIT_RATE; t++)
		given += limit_take(&limit, &source, SECOND + t * SECOND / (10 * LIMIT_RATE));
	assert_in_range(given, LIMIT_RATE - 2, LIMIT_RATE);
	/* A long silence gives a burst, and no more. */
	given = 0;
	for (unsigned i = 0; i < 3 * LIMIT_BURST; i++)
		given += limit_take(&limit, &source, 1000 * SECOND);
	assert_int_equal(given, LIMIT_BURST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(remembers_answers_and_who_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(says_when_a_service_has_moved, setup, teardown),
		cmocka_unit_test_setup_teardown(believes_an_answer_more_than_a_late_question,
						setup, teardown),
		cmocka_unit_test_setup_teardown(forgets_an_instance, setup, teardown),
		cmocka_unit_test_setup_teardown(remembers_from_where_a_service_has_left, setup,
						teardown),
		cmocka_unit_test_setup_teardown(gives_a_name_to_one_service, setup, teardown),
		cmocka_unit_test_setup_teardown(has_a_bound_and_drops_what_was_not_used, setup,
						teardown),
		cmocka_unit_test(limits_the_answers_to_a_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
