/* SPDX-License-Identifier: BSD-2-Clause */
/* What a rendezvous knows, on a clock of the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ripc/find/places.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

static struct places places;
static uint64_t now = SECOND;
static struct places_out out[PLACES_OUT_MAX];

static int setup(void **state)
{
	return places_init(&places, 4, (const uint8_t[16]){ 1, 2, 3 });
}

static int teardown(void **state)
{
	places_free(&places);
	return 0;
}

static union address source_of(uint64_t instance)
{
	union address a;

	address_parse("192.0.2.1", (uint16_t)(1000 + instance), &a);
	return a;
}

/* A packet of an instance; how many answers. */
static unsigned say(uint64_t instance, uint8_t type, uint32_t id, const char *name,
		    uint16_t lifetime_s)
{
	struct packet_resolve p = { .type = type, .nonce = 100 + instance, .id = id,
		.lifetime_s = lifetime_s, .where = { .instance = instance, .port = 5 } };
	const union address from = source_of(instance);

	strcpy(p.name, name);
	return places_take(&places, now, &from, &p, out);
}

static void expect_out(uint8_t type, uint64_t to, uint64_t nonce, uint64_t where)
{
	const union address a = source_of(to);

	assert_int_equal(out[0].packet.type, type);
	assert_true(address_same(&out[0].to, &a, true));
	if (nonce)
		assert_int_equal(out[0].packet.nonce, nonce);
	if (where)
		assert_int_equal(out[0].packet.where.instance, where);
}

static void enter(uint64_t instance, uint32_t id, const char *name, uint16_t lifetime_s)
{
	assert_int_equal(say(instance, PACKET_ENTER, id, name, lifetime_s), 1);
	expect_out(PACKET_ENTERED, instance, 100 + instance, instance);
	assert_int_equal(out[0].packet.lifetime_s, lifetime_s);
}

/* The owner answers the question in `out`. */
static unsigned owner_tells(uint64_t instance)
{
	struct packet_resolve p = out[0].packet;
	const union address from = source_of(instance);

	p.type = PACKET_TELL;
	p.where = (struct packet_where){ .instance = instance };
	return places_take(&places, now, &from, &p, out);
}

static void tells_where_a_service_is(void **state)
{
	uint8_t wanted[16];
	const union address source = source_of(1);

	enter(1, 7, "store", 30);
	assert_int_equal(say(2, PACKET_ASK, 7, "", 0), 1);
	expect_out(PACKET_TELL, 2, 102, 1);
	assert_int_equal(out[0].packet.id, 7);
	assert_int_equal(out[0].packet.where.port, 5);
	/* It has told no address: the one that it spoke from. */
	address_to_bytes(&source, wanted);
	assert_memory_equal(out[0].packet.where.address, wanted, sizeof(wanted));
	assert_int_equal(say(2, PACKET_ASK, 0, "store", 0), 1);
	assert_int_equal(out[0].packet.id, 7);
	assert_string_equal(out[0].packet.name, "store");
	assert_int_equal(say(2, PACKET_ASK, 8, "", 0), 0);
	assert_int_equal(say(2, PACKET_ASK, 0, "shop", 0), 0);
}

static void forgets_when_the_lifetime_is_over_or_it_leaves(void **state)
{
	enter(1, 7, "", 2);
	enter(1, 8, "", 2);
	now += SECOND;
	enter(1, 8, "", 2); /* again */
	now += SECOND;
	assert_int_equal(say(2, PACKET_ASK, 7, "", 0), 0);
	assert_int_equal(say(2, PACKET_ASK, 8, "", 0), 1);
	assert_int_equal(say(1, PACKET_ENTER, 8, "", 0), 1);
	expect_out(PACKET_ENTERED, 1, 101, 1);
	assert_int_equal(say(2, PACKET_ASK, 8, "", 0), 0);
	places_expire(&places, now);
	assert_int_equal(places.count, 0);
}

static void refuses_another_one_while_the_owner_is_there(void **state)
{
	enter(1, 7, "", 30);
	assert_int_equal(say(2, PACKET_ENTER, 7, "", 30), 1);
	expect_out(PACKET_ASK, 1, 0, 0); /* is it still there? */
	assert_int_equal(owner_tells(1), 1);
	expect_out(PACKET_ENTERED, 2, 102, 1);
	assert_int_equal(out[0].packet.lifetime_s, 0);
	/* For a while without asking. */
	assert_int_equal(say(3, PACKET_CLAIM, 7, "", 0), 1);
	expect_out(PACKET_TELL, 3, 103, 1);
	now += PLACES_SURE_NS;
	assert_int_equal(say(3, PACKET_CLAIM, 7, "", 0), 1);
	expect_out(PACKET_ASK, 1, 0, 0);
	assert_int_equal(owner_tells(1), 1);
	expect_out(PACKET_TELL, 3, 103, 1);
}

static void refuses_the_name_of_another_one(void **state)
{
	enter(1, 7, "store", 30);
	assert_int_equal(say(2, PACKET_CLAIM, 8, "store", 0), 1);
	expect_out(PACKET_ASK, 1, 0, 0);
	assert_int_equal(owner_tells(1), 1);
	expect_out(PACKET_TELL, 2, 102, 1);
	/* What is free is not answered for. */
	assert_int_equal(say(2, PACKET_CLAIM, 9, "shop", 0), 0);
}

static void replaces_an_owner_that_does_not_answer(void **state)
{
	enter(1, 7, "", 30);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(say(2, PACKET_ENTER, 7, "", 30), 1);
		expect_out(PACKET_ASK, 1, 0, 0);
		now += 50 * MS;
	}
	enter(2, 7, "", 30);
	assert_int_equal(say(3, PACKET_ASK, 7, "", 0), 1);
	expect_out(PACKET_TELL, 3, 103, 2);
}

static void does_not_replace_it_after_one_lost_question(void **state)
{
	enter(1, 7, "", 300);
	assert_int_equal(say(2, PACKET_CLAIM, 7, "", 0), 1);
	now += 100 * SECOND;
	assert_int_equal(say(3, PACKET_ENTER, 7, "", 30), 1);
	expect_out(PACKET_ASK, 1, 0, 0);
	now += PLACES_DOUBT_NS;
	assert_int_equal(say(3, PACKET_ENTER, 7, "", 30), 1);
	expect_out(PACKET_ASK, 1, 0, 0);
	assert_int_equal(owner_tells(1), 1);
	expect_out(PACKET_ENTERED, 3, 103, 1);
}

static void believes_only_the_owner_and_the_number_it_was_asked_with(void **state)
{
	struct places_out asked;

	enter(1, 7, "", 30);
	assert_int_equal(say(2, PACKET_ENTER, 7, "", 30), 1);
	asked = out[0];
	assert_int_equal(owner_tells(3), 0); /* another source */
	out[0] = asked;
	out[0].packet.nonce++;
	assert_int_equal(owner_tells(1), 0);
	out[0] = asked;
	assert_int_equal(owner_tells(1), 1);
	assert_int_equal(owner_tells(1), 0); /* once */
	/* Nobody else takes it out or says that it has the same number. */
	struct packet_resolve p = { .type = PACKET_ENTER, .nonce = 1, .id = 7,
				    .where = { .instance = 1 } };
	const union address thief = source_of(9);

	assert_int_equal(places_take(&places, now, &thief, &p, out), 1);
	assert_int_equal(out[0].packet.lifetime_s, 0);
	assert_int_equal(say(2, PACKET_ASK, 7, "", 0), 1);
}

static void has_a_bound(void **state)
{
	for (uint32_t id = 1; id <= 4; id++)
		enter(1, id, "", 30);
	assert_int_equal(say(1, PACKET_ENTER, 5, "", 30), 1);
	expect_out(PACKET_ENTERED, 1, 101, 1);
	assert_int_equal(out[0].packet.lifetime_s, 0);
	enter(1, 4, "", 30); /* again, it is there already */
	now += 31 * SECOND;
	enter(1, 5, "", 30);
	assert_int_equal(places.count, 1);
}

static void bounds_the_lifetime(void **state)
{
	assert_int_equal(say(1, PACKET_ENTER, 1, "", UINT16_MAX), 1);
	assert_int_equal(out[0].packet.lifetime_s, PLACES_LIFETIME_MAX_S);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(tells_where_a_service_is),
		TEST(forgets_when_the_lifetime_is_over_or_it_leaves),
		TEST(refuses_another_one_while_the_owner_is_there),
		TEST(refuses_the_name_of_another_one),
		TEST(replaces_an_owner_that_does_not_answer),
		TEST(does_not_replace_it_after_one_lost_question),
		TEST(believes_only_the_owner_and_the_number_it_was_asked_with),
		TEST(has_a_bound),
		TEST(bounds_the_lifetime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
