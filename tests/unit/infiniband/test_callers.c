/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of several callers an infiniband node takes: the rules, and hosts in simulated time. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/node/infiniband/callers.h"
#include "util/container_of.h"

#define MSEC (NSEC_PER_SEC / 1000)

/* All combinations, by what each rule says. */
static void every_case_has_its_verdict(void **state)
{
	for (unsigned bits = 0; bits < 32; bits++) {
		struct callers_case c = {
			.caller_waits = bits & 1,
			.caller_failed = bits & 2,
			.place_taken = bits & 4,
			.holder_failed = bits & 8,
			.holder_had_time = bits & 16,
		};
		bool takes = callers_rule(&c);

		if (c.caller_waits)
			assert_false(takes);
		else if (!c.place_taken)
			assert_true(takes);
		else if (!c.caller_failed && c.holder_failed)
			assert_true(takes);
		else if (c.caller_failed && !c.holder_failed)
			assert_false(takes);
		else
			assert_int_equal(takes, c.holder_had_time);
	}
}

/* A node whose place hosts call for. */
static struct node {
	struct callers t;
	struct caller_ip holder;
	bool taken;
	uint64_t since, now;
	unsigned accepted;
} n;

#define START (1000 * MSEC) /* a clock does not begin with 0 */

static void reset(void)
{
	n = (struct node){ .now = START };
}

static struct caller_ip host(unsigned number)
{
	return (struct caller_ip){ .bytes = { [10] = 0xff, 0xff, 10, 0, (uint8_t)(number >> 8),
					      (uint8_t)number } };
}

static void end_call(void)
{
	if (n.taken)
		callers_note_failure(&n.t, &n.holder, n.since, n.now);
	n.taken = false;
}

static bool call(unsigned number)
{
	struct caller_ip ip = host(number);

	if (!callers_may_take(&n.t, &ip, n.taken ? &n.holder : NULL, n.since, n.now))
		return false;
	end_call();
	n.holder = ip;
	n.taken = true;
	n.since = n.now;
	n.accepted++;
	return true;
}

static bool holds(unsigned number)
{
	struct caller_ip ip = host(number);

	return n.taken && !memcmp(&ip, &n.holder, sizeof(ip));
}

static void confirm(void)
{
	callers_forget(&n.t, &n.holder);
	n.taken = false;
}

static void pass(unsigned ms)
{
	n.now += ms * MSEC;
}

/* The peer tries every 200 ms and confirms after `trip` ms. When is it connected? */
static unsigned connected_after(unsigned peer, unsigned trip, unsigned gap,
				void (*stranger)(unsigned at))
{
	for (unsigned at = 0; at < 60000; at++, pass(1)) {
		if (at % gap == 0)
			stranger(at);
		if (at % 200 == 100)
			call(peer);
		if (holds(peer) && n.now - n.since >= trip * MSEC) {
			confirm();
			return at;
		}
		if (n.taken && n.now - n.since >= 5000 * MSEC)
			end_call();
	}
	return 60000;
}

static void steady(unsigned at)
{
	call(1);
}

/* A stranger that ends each call shortly before another one may take its place. */
static void withdraws(unsigned at)
{
	if (holds(1) && n.now - n.since >= 490 * MSEC)
		end_call();
	call(1);
}

static void many_addresses(unsigned at)
{
	call(1000 + at % 5000);
}

static void a_peer_connects_in_spite_of_strangers(void **state)
{
	static const unsigned gaps[] = { 1, 3, 10, 33, 250, 1000 };
	static const unsigned trips[] = { 1, 50, 400 };

	for (unsigned g = 0; g < ARRAY_SIZE(gaps); g++)
		for (unsigned t = 0; t < ARRAY_SIZE(trips); t++)
			for (unsigned withdrawn = 0; withdrawn < 2; withdrawn++) {
				reset();
				assert_in_range(connected_after(9, trips[t], gaps[g],
						withdrawn ? withdraws : steady), 0, 2000);
				/* It connects again, and the stranger has failed before. */
				assert_in_range(connected_after(9, trips[t], gaps[g],
						withdrawn ? withdraws : steady), 0, 600);
			}
	/* Each call from another address, but not many of them. */
	reset();
	assert_in_range(connected_after(9, 50, 300, many_addresses), 0, 10000);
}

/* Its first calls were too slow, or were forged by another host. */
static void a_peer_that_has_failed_connects_in_the_end(void **state)
{
	reset();
	for (unsigned i = 0; i < 3; i++) {
		assert_true(call(9));
		pass(600);
		end_call();
		pass(2000);
	}
	assert_in_range(connected_after(9, 50, 33, steady), 0, 10000);
	assert_true(call(9));
	pass(1);
	assert_false(call(1));
}

static void a_stranger_costs_few_accepted_calls(void **state)
{
	reset();
	for (unsigned at = 0; at < 300000; at++, pass(1)) {
		call(1);
		if (n.taken && n.now - n.since >= 5000 * MSEC)
			end_call();
	}
	/* Five minutes, 300000 calls: the waits have grown to the longest one. */
	assert_in_range(n.accepted, 5, 30);
}

static void the_wait_doubles_and_is_forgotten(void **state)
{
	uint64_t wait = CALLERS_FIRST_NS;

	reset();
	for (unsigned i = 0; i < 10; i++) {
		assert_true(call(1));
		n.now += CALLERS_CONFIRM_NS;
		end_call();
		n.now += wait - 1;
		assert_false(call(1));
		n.now++;
		wait = MIN(2 * wait, CALLERS_LONGEST_NS);
	}
	n.now += CALLERS_LATELY_NS;
	assert_true(call(1));
	pass(10);
	assert_false(call(2)); /* of the same standing again */
	n.now = n.since + CALLERS_CONFIRM_NS;
	assert_true(call(2));
	confirm();
	n.now += CALLERS_FIRST_NS - 1;
	assert_false(call(1));
	n.now++;
	assert_true(call(1)); /* the wait has begun anew */
}

/* A forged request in the peer's name is rejected by the peer: no wait that grows. */
static void forged_requests_lock_out_nobody(void **state)
{
	reset();
	for (unsigned i = 0; i < 100; i++) {
		assert_true(call(9));
		pass(1);
		end_call();
		pass(20);
	}
	assert_true(call(9));
	for (unsigned i = 0; i < 49; i++) {
		pass(10);
		assert_false(call(9)); /* nor does one displace the peer's own */
	}
}

static void the_host_that_failed_first_is_forgotten_first(void **state)
{
	reset();
	for (unsigned i = 0; i <= CALLERS_MAX; i++) {
		assert_true(call(i));
		pass(100);
		end_call();
	}
	n.now = n.since + 100 * MSEC;
	assert_true(call(0));
	confirm();
	assert_false(call(CALLERS_MAX)); /* waits still */
	pass(100);
	for (unsigned i = 1; i <= CALLERS_MAX; i++) {
		assert_true(call(i));
		assert_true(call(0));
		n.taken = false;
	}
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_case_has_its_verdict),
		T(a_peer_connects_in_spite_of_strangers),
		T(a_peer_that_has_failed_connects_in_the_end),
		T(a_stranger_costs_few_accepted_calls),
		T(the_wait_doubles_and_is_forgotten),
		T(forged_requests_lock_out_nobody),
		T(the_host_that_failed_first_is_forgotten_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
