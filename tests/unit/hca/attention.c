/* SPDX-License-Identifier: BSD-2-Clause */
/* When the progress thread looks again: what its poll has left for later is not forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hca/path/path.h"
#include "hca/share/process.h"

static unsigned messages; /* that have come; the last of them is held back by its poll */
static bool held_back;

static bool poll_one(struct hca_cq *cq, bool wait)
{
	if (!messages)
		return false;
	held_back = --messages == 0;
	return true;
}

static bool pending(void)
{
	return held_back;
}

static const struct hca_transport_ops transport = {
	.name = "test", .poll = poll_one, .pending = pending,
};

static int setup(void **state)
{
	struct hca_segment *segment = aligned_alloc(4096, (sizeof(*segment) + 4095) / 4096 * 4096);

	assert_non_null(segment);
	memset(segment, 0, sizeof(*segment));
	atomic_store(&segment->alive, 1);
	atomic_store(&segment->wants_kick, HCA_WAKE_ALL);
	hca_process.segment = segment;
	hca_transports.at[0] = &transport;
	hca_transports.count = hca_transports.paths = 1;
	atomic_store(&hca_transports.poll, poll_one);
	return 0;
}

static int teardown(void **state)
{
	free(hca_process.segment);
	hca_process.segment = NULL;
	return 0;
}

static void what_a_poll_holds_back_is_looked_at_again(void **state)
{
	/* Nothing has come: it sleeps until it is woken. */
	assert_int_equal(hca_attention_tick(), -1);
	messages = 3;
	assert_int_equal(hca_attention_tick(), 1);
	held_back = false;
	assert_int_equal(hca_attention_tick(), -1);
}

/* The program has polled since the last tick. */
static int tick_behind_polls(void)
{
	atomic_fetch_add(&hca_process.polls, 1);
	return hca_attention_tick();
}

static void a_program_that_polls_and_then_sleeps_is_looked_after(void **state)
{
	atomic_store(&hca_process.ticking, true);
	assert_true(tick_behind_polls() > 1);
	/* Without an armed queue nobody sleeps, and the program's polls find it. */
	held_back = true;
	assert_true(tick_behind_polls() > 1);
	atomic_store(&hca_process.armed, 1);
	assert_int_equal(tick_behind_polls(), 1);
	held_back = false;
	assert_true(tick_behind_polls() > 1);
	/* More has come than is moved at once: the rest at the next tick, which is now. */
	messages = 100;
	atomic_store(&hca_process.kicked, true);
	assert_int_equal(tick_behind_polls(), 0);
	assert_true(messages > 0);
	held_back = false;
	assert_int_equal(tick_behind_polls(), 1);
	assert_int_equal(messages, 0);
	held_back = false;
	/* It polls no more. Just behind the last poll it may only have lost its processor. */
	assert_true(hca_attention_tick() > 1);
	usleep(20000);
	assert_int_equal(hca_attention_tick(), -1);
	assert_false(atomic_load(&hca_process.ticking));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_poll_holds_back_is_looked_at_again),
		cmocka_unit_test(a_program_that_polls_and_then_sleeps_is_looked_after),
	};

	return cmocka_run_group_tests_name("attention", tests, setup, teardown);
}
